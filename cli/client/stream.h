/* One stream of events of the gateway, read to its end across broken connections: what comes goes
 * to `sse`, whose last id is where a new connection goes on. */
#pragma once

#include "cli/client/client.h"
#include "cli/client/sse.h"

struct mr_stream {
    const struct mr_client *client;
    const char *path; /* "/v1/jobs/j1-7/events", escaped */
    struct mr_sse *sse;
    bool ends; /* an answer that ends in order is the end; otherwise it is asked for again */
    int fd;    /* watched as well; -1: none */
    /* Asked when something came, `fd` is readable, or some tenths of a second are over: is that
     * all? */
    bool (*is_over)(void *ctx);
    void *ctx;
};

/* MR_EAWAY: no gateway answered for a minute; other errors are the gateway's answer. */
int mr_stream_read(const struct mr_stream *s, struct mr_error *e);
