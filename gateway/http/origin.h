/* The Host and Origin checks that keep web pages of others away from a server on loopback. Tokens
 * and roles are rpc/tokens.h's, the same for every program. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Is the name in a Host header ("localhost:8470", "[::1]") one of `names`? MR_EPERM. */
int mr_guard_host(
    struct mr_str host, const char *const *names, size_t names_count, struct mr_error *e);
/* An Origin must be http:// or https:// and this very Host; absent (p NULL) is fine. MR_EPERM. */
int mr_guard_origin(struct mr_str origin, struct mr_str host, struct mr_error *e);
