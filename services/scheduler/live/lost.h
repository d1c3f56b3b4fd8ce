/* Which workers and object stores were lost lately and have not come back. Thousands of workers may
 * be lost and return at once when a network fails. So the lost ones are sorted by name, and each
 * worker and store of the cluster is looked up once. No I/O and no clock. */
#pragma once

#include "services/scheduler/history/event_ring.h"

#define MR_LOST_MAX 256u

struct mr_lost_one {
    struct mr_str name; /* of the worker, or of the store's node; lent by the ring */
    bool is_store;
    bool is_here; /* a worker or store of this name is in the cluster again */
    uint64_t wall_ns;
};

struct mr_lost {
    struct mr_lost_one at[MR_LOST_MAX]; /* the newest first */
    uint32_t count;
    struct mr_lost_one *by_name[MR_LOST_MAX]; /* each name once */
    uint32_t names_count;
    uint64_t compared; /* number of comparisons of names, for tests */
};

/* Finds the workers and stores that were lost since `since_ns`, at most MR_LOST_MAX of them. Looks
 * at a bounded number of events, the newest first. `out` is valid until the ring changes. */
void mr_lost_find(const struct mr_cluster_ring *ring, uint64_t since_ns, struct mr_lost *out);
/* Tells that the cluster has the worker, or the store of the node. */
void mr_lost_here(struct mr_lost *l, bool is_store, struct mr_str name);
