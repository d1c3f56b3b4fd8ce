/* The change feed of channels and queues. Every change that a process may wait for adds an entry to
 * one bounded stream in Redis. Each mr_tail has one connection, which reads the stream with
 * blocking reads. An entry only names the channel or queue that has changed, so a process
 * that waits looks up the present state. Entries can be lost, because the stream is bounded and
 * Redis may be away. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct mr_tail;
struct mr_redis_config;

/* Called on the connection's thread for each change. `kind` is 'c' (channel) or 'q' (queue). 0:
 * entries may be lost, or no entry came for 15 s; the callee looks up everything that it waits
 * for. */
typedef void (*mr_tail_fn)(void *ctx, char kind, struct mr_str name);

/* Opens the change feed. `address` and `password` are those of redis.h. */
int mr_tail_open(const char *address, const char *password, mr_tail_fn fn, void *ctx,
    struct mr_tail **out, struct mr_error *e);
void mr_tail_close(struct mr_tail **t);
