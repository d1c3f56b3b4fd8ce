/* A client in a control group with a memory limit. The kernel charges a page of shared memory to
 * the group of the process that first writes the page. So the store gives the clients of one group
 * no more segments than the group has room for. If these clients need more segments, the store
 * first evicts objects from the segments that they have. */
#pragma once

#include "base/defs.h"
#include "base/err.h"

struct mr_store;

struct mr_store_limit {
    uint64_t memory_bytes; /* the limit of the control group; 0: no limit */
    uint64_t own_bytes;    /* memory that this process itself uses, besides its segments */
    uint64_t group;        /* the group's id from mr_machine_read */
};

/* Returns how many bytes of segments the processes of one control group may have together: 80 % of
 * the group's limit `memory_bytes`, minus `own_bytes`, but at least a quarter of the limit.
 * `own_bytes`: memory that these processes themselves use, besides their segments. */
static inline uint64_t mr_store_written_max(uint64_t memory_bytes, uint64_t own_bytes)
{
    uint64_t most = memory_bytes / 10 * 8;
    return MR_MAX(most - MR_MIN(most, own_bytes), memory_bytes / 4);
}

/* Sends the store the limit of this client's control group. To be called once, after the open and
 * before the first object. A store in the same group ignores the limit, because its own limit
 * already covers these pages. MR_EAWAY: the store is gone. */
int mr_store_limit(struct mr_store *st, const struct mr_store_limit *limit, struct mr_error *e);
