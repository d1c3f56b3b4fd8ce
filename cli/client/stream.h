/* Reads one stream of events to its end. When the connection breaks, a new one resumes after the
 * last event id of `sse`. */
#pragma once

#include "cli/client/client.h"
#include "cli/client/sse.h"

struct mr_stream {
    const struct mr_client *client;
    const char *path; /* "/v1/jobs/j1-7/events", escaped */
    struct mr_sse *sse;
    bool ends; /* a complete answer is the end; otherwise the stream is requested again */
    int fd;    /* watched as well; -1: none */
    /* Called when bytes came, when `fd` is readable, and every 200 ms. True: stop reading. */
    bool (*is_over)(void *ctx);
    void *ctx;
};

/* MR_EAWAY: there was no sign of the gateway for a minute. Other errors are its answers. */
int mr_stream_read(const struct mr_stream *s, struct mr_error *e);
