/* Turns a batch, which is all that the core wants to tell one worker, into the next message of the
 * worker's session. A session gives numbers to operators and object stores, so that a name travels
 * once. The shell and the simulator use this file. */
#pragma once

#include "services/scheduler/core/core.h"
#include "session/down.h"
#include "session/memory.h"

struct mr_sched_numbers { /* numbers that one session gives */
    /* True: the worker asks stores for objects, so it is told of all stores, and again of a store
     * whose address was not known. False in the simulator, whose workers ask no store. */
    bool with_addresses;
    /* gives the session's number of an operator for the core's number of the operator; 0: the
     * worker does not know the operator yet */
    uint32_t *op;
    uint32_t *store; /* the same for stores */
    /* result of mr_sched_stores_changes when the worker was last told of all living stores */
    uint32_t stores_seen;
    uint32_t ops_room, stores_room;
    uint32_t ops_count, stores_count;
    /* mr_sched_batch_message may let out->registered point here; its caller may add to this struct
     * before the message is encoded */
    struct mr_ws_registered registered;
};

void mr_sched_numbers_fini(struct mr_sched_numbers *n);

/* Fills `out`. Its columns point into the batch, into memory that `m` gives, or into the core.
 * Batch and core must stay as they are until the message is encoded. */
void mr_sched_batch_message(const struct mr_sched *s, const struct mr_sched_batch *b,
    struct mr_sched_numbers *n, const struct mr_ws_memory *m, struct mr_ws_down *out);
