/* Checks of the headers Host and Origin. They keep web pages of other sites from using a gateway on
 * loopback through the browser of its user (DNS rebinding, cross-site requests). */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Checks that the name in a Host header ("localhost:8470", "[::1]") is one of `names`. MR_EPERM:
 * the name is none of them. */
int mr_origin_check_host(
    struct mr_str host, const char *const *names, size_t names_count, struct mr_error *e);
/* Checks that an Origin is http:// or https:// followed by the value of Host. MR_EPERM: it is
 * another origin. An absent Origin (p NULL) is MR_OK, because programs other than browsers send
 * none. */
int mr_origin_check(struct mr_str origin, struct mr_str host, struct mr_error *e);
