/* A parser of server-sent events that takes bytes in pieces. */
#pragma once

#include "base/buf.h"

#define MR_SSE_ID_BYTES_MAX 128

struct mr_sse {
    struct mr_buf line;  /* bytes of a line that is not yet complete */
    struct mr_buf event; /* data of the current event */
    char type[32];       /* type of the current event; "": message */
    /* Id of the last event that had one. A new connection resumes after this event. */
    char id[MR_SSE_ID_BYTES_MAX];
    void (*on_event)(void *ctx, const char *type, struct mr_str data);
    void *ctx;
};

void mr_sse_init(
    struct mr_sse *s, void (*on_event)(void *ctx, const char *type, struct mr_str data), void *ctx);
void mr_sse_fini(struct mr_sse *s);
/* Prepares for a new connection: drops an incomplete event and keeps the id. */
void mr_sse_restart(struct mr_sse *s);
/* Takes bytes of the stream and calls on_event for each complete event; used as
 * mr_http_request.on_data. MR_ELIMIT: a line or the data of an event exceed 16 MiB. */
int mr_sse_take(void *sse, const char *p, size_t n);
