/* HTTP to the gateway, over libcurl; the only file that knows it. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/time.h"

/* GET; the body is appended to `out` whatever the status. MR_EAWAY: no answer. */
int mr_http_get(
    const char *url, mr_duration timeout_ns, struct mr_buf *out, int *status, struct mr_error *e);
