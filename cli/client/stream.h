/* Reads one stream of events to its end. When the connection breaks, a new one resumes after the
 * last event id of `sse`. */
#pragma once

#include "cli/client/client.h"
#include "cli/client/sse.h"

struct mr_stream {
    const struct mr_client *client;
    const char *path; /* escaped path, for example "/v1/jobs/j1-7/events" */
    struct mr_sse *sse;
    /* True: a complete answer ends the reading. False: the stream is then requested again. */
    bool ends;
    int fd; /* a descriptor that is watched, too; -1: none */
    /* Called when bytes have come, when `fd` is readable, and every 200 ms. True: the reading
     * ends. */
    bool (*is_over)(void *ctx);
    void *ctx;
};

/* Reads the stream. MR_OK: is_over has returned true, or with `ends` the answer was complete.
 * MR_EAWAY: there was no sign of the gateway for a minute. Other errors are the gateway's
 * answers. */
int mr_stream_read(const struct mr_stream *s, struct mr_error *e);
