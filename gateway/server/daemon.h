/* Between listen.c, which knows sockets and options, and server.c, which knows requests. */
#pragma once

#include "gateway/server/request.h"

#define MR_HTTP_CONNECTION_BYTES (128 << 10) /* headers, and the read buffer */

struct MHD_Daemon *mr_daemon_start(struct mr_http *h, struct mr_error *e); /* NULL: it does not */
