/* A client in a control group that limits its memory: pages of shared memory count for the group of
 * whoever writes them first. The store gives the clients of a group together no more segments than
 * the group has room for, and lets their objects leave for new ones. */
#pragma once

#include "base/defs.h"
#include "base/err.h"

struct mr_store;

struct mr_store_limit {
    uint64_t memory_bytes; /* the group's limit; 0: there is none */
    uint64_t own_bytes;    /* of it, what this process uses besides */
    uint64_t group;        /* mr_machine's number of it */
};

/* What processes of a group may have in segments of their own: 80 % of its limit without what they
 * use besides, together `own_bytes`; a quarter of it at least. */
static inline uint64_t mr_store_written_max(uint64_t memory_bytes, uint64_t own_bytes)
{
    uint64_t most = memory_bytes / 10 * 8;
    return MR_MAX(most - MR_MIN(most, own_bytes), memory_bytes / 4);
}

/* Once, after the open and before the first object. A store in the same group counts these pages
 * already, and ignores it. MR_EAWAY. */
int mr_store_limit(struct mr_store *st, const struct mr_store_limit *limit, struct mr_error *e);
