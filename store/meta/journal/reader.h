/* Reads a journal without claiming an epoch and without writing. For tools that look at a cluster
 * whose scheduler does not answer. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct mr_redis;

/* Calls `fn` for every record in the stream, oldest first, until `fn` returns an error. Waits for
 * Redis. The stream may still have records that a snapshot has replaced. `prefix` NULL:
 * MR_META_PREFIX. */
int mr_journal_read(struct mr_redis *redis, const char *prefix,
    int (*fn)(void *ctx, struct mr_str record), void *ctx, struct mr_error *e);
