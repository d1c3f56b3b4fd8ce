/* Server-Sent Events, read piece by piece. Knows the notation, not what events mean. */
#pragma once

#include "base/buf.h"

#define MR_SSE_ID_BYTES_MAX 128

struct mr_sse {
    struct mr_buf line;           /* not yet complete */
    struct mr_buf event;          /* data of the event under way */
    char type[32];                /* of it; "": message */
    char id[MR_SSE_ID_BYTES_MAX]; /* of the last event that had one: where to go on */
    void (*on_event)(void *ctx, const char *type, struct mr_str data);
    void *ctx;
};

void mr_sse_init(
    struct mr_sse *s, void (*on_event)(void *ctx, const char *type, struct mr_str data), void *ctx);
void mr_sse_fini(struct mr_sse *s);
void mr_sse_restart(
    struct mr_sse *s); /* a new connection: forgets what is incomplete, not the id */
int mr_sse_take(void *sse, const char *p, size_t n); /* as mr_http_request.on_data; MR_ELIMIT */
