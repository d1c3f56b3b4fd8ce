/* News of channels and queues: every change that somebody may wait for leaves a mark in one bounded
 * stream, which one connection reads, blocking. A mark names what changed; what it is now, its
 * reader looks up. Marks can be lost (the stream is bounded, Redis may be away): then the reader is
 * told to look at everything it waits for. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct mr_tail;
struct mr_redis_config;

/* On the connection's thread. `kind` is 'c' (channel) or 'q' (queue); 0: look at everything. */
typedef void (*mr_tail_fn)(void *ctx, char kind, struct mr_str name);

/* `address` and `password` as in redis.h. */
int mr_tail_open(const char *address, const char *password, mr_tail_fn fn, void *ctx,
    struct mr_tail **out, struct mr_error *e);
void mr_tail_close(struct mr_tail **t);
