/* A worker's batch as the next message of its session. A session gives numbers to operators and
 * object stores, so that a name travels once. The shell and the simulator use this. */
#pragma once

#include "services/scheduler/core/core.h"
#include "session/down.h"
#include "session/memory.h"

struct mr_sched_numbers { /* of one session */
    /* The worker asks stores for objects, so it needs their addresses: it is told of all stores,
     * and again of one whose address was not known. Executors of the simulator need none. */
    bool with_addresses;
    uint32_t *op;         /* by the core's number; 0: the worker does not know the operator yet */
    uint32_t *store;      /* likewise */
    uint32_t stores_seen; /* the core's count of changes when the worker was told of all stores */
    uint32_t ops_room, stores_room;
    uint32_t ops_count, stores_count;
    struct mr_ws_registered registered; /* of the message; the shell may add to it */
};

void mr_sched_numbers_fini(struct mr_sched_numbers *n);

/* Columns point into the batch, or into memory that `m` gives, or are the core's. Batch and core
 * stay as they are until the message is encoded. */
void mr_sched_batch_message(const struct mr_sched *s, const struct mr_sched_batch *b,
    struct mr_sched_numbers *n, const struct mr_ws_memory *m, struct mr_ws_down *out);
