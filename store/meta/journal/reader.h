/* Reads the journal without taking part in it: no epoch is taken, nothing is written. For tools
 * that look at a cluster whose scheduler does not answer. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct mr_redis;

/* Calls `fn` for every record that is there, the oldest first, until it says other than MR_OK;
 * waits for Redis. Records that a snapshot made needless may still be there. `prefix` NULL:
 * MR_META_PREFIX. */
int mr_journal_read(struct mr_redis *redis, const char *prefix,
    int (*fn)(void *ctx, struct mr_str record), void *ctx, struct mr_error *e);
