/* Puts gateway/http/framing.h between a connection and libmicrohttpd: every byte of the client is
 * checked before libmicrohttpd reads it. host/tls/intercept.h replaces the reads. */
#pragma once

#include "gateway/http/framing.h"
#include "host/tls/intercept.h"

struct mr_framing_filter { /* the filter of one connection, used on the connection's HTTP thread */
    struct mr_interceptor interceptor;
    struct mr_framing framing;
    struct mr_buf pending; /* checked bytes that did not fit into libmicrohttpd's buffer */
    size_t pending_at;
};

/* Starts to check the bytes that arrive on `fd`. False: the reads cannot be intercepted. */
bool mr_framing_filter_add(struct mr_framing_filter *c, int fd, bool is_tls);
/* To be called before `fd` is closed. */
void mr_framing_filter_remove(struct mr_framing_filter *c, int fd);
