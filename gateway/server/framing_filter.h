/* One connection of which everything that the client sends passes gateway/http/framing.h before
 * libmicrohttpd reads it (host/tls/intercept.h). */
#pragma once

#include "gateway/http/framing.h"
#include "host/tls/intercept.h"

struct mr_checked { /* its thread's */
    struct mr_interceptor interceptor;
    struct mr_framing framing;
    struct mr_buf pending; /* passed, but there was no room to give it */
    size_t pending_at;
};

/* From now on what comes by this descriptor is checked. False: it cannot be. */
bool mr_checked_add(struct mr_checked *c, int fd, bool is_tls);
void mr_checked_remove(struct mr_checked *c, int fd); /* before it is closed */
