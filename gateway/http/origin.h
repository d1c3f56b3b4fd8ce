/* Checks of the headers Host and Origin. They keep web pages of other sites from using a gateway on
 * loopback through the browser of its user (DNS rebinding, cross-site requests). */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* The name in a Host header ("localhost:8470", "[::1]") must be one of `names`. MR_EPERM. */
int mr_origin_check_host(
    struct mr_str host, const char *const *names, size_t names_count, struct mr_error *e);
/* An Origin must be http:// or https:// followed by the value of Host. Absent (p NULL): MR_OK, as
 * programs other than browsers send none. MR_EPERM. */
int mr_origin_check(struct mr_str origin, struct mr_str host, struct mr_error *e);
