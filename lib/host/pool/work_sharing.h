/* Work sharing among the threads of one process. A thread that has work in blocks offers it. A
 * thread without work of its own steals blocks, one at a time, until its own work comes. To join
 * and to leave takes one atomic operation each, so a block may be as short as tens of microseconds.
 * Each thread has a slot of its own in the group, and offers one piece of work at a time.
 *
 * Here threads join work while it runs. A pool whose threads wait for work is
 * host/pool/thread_pool.h.
 */
#pragma once

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_LANES_MAX 32u /* threads in one piece of work */

struct mr_work_sharing;
struct mr_inbox;

struct mr_blocks { /* borrowed until mr_work_sharing_run returns */
    uint32_t count;
    uint32_t lanes; /* threads at once, the owner's among them: 1 to MR_LANES_MAX */
    /* On any thread. Blocks begin in their order and end in any. `lane` is below `lanes`, and no
     * other thread has it meanwhile. After an error no further block begins. */
    int (*run)(void *ctx, uint32_t block, uint32_t lane);
    bool (*is_stopped)(void *ctx); /* asked before each block, on any thread */
    void *ctx;
};

struct mr_blocks_end {
    int err;                /* of the block with the lowest number that failed; which block
                               that is does not depend on the threads */
    uint32_t failed;        /* that block */
    bool stopped;           /* is_stopped said so; blocks may have been left out */
    mr_duration waited_cpu; /* processor time of the owner in which it ran no block */
    mr_duration stolen_cpu; /* processor time that other threads ran blocks */
};

struct mr_work_sharing *mr_work_sharing_new(uint32_t slots);
void mr_work_sharing_free(struct mr_work_sharing **h);

/* The inbox in which the slot's thread waits; an offer wakes an idle thread there. NULL: none any
 * more. Call it on any thread, before the slot's thread starts and after it has ended. */
void mr_work_sharing_enter(struct mr_work_sharing *h, uint32_t slot, struct mr_inbox *inbox);

/* Owner: when it returns, each block is done or will never begin. */
struct mr_blocks_end mr_work_sharing_run(
    struct mr_work_sharing *h, uint32_t slot, const struct mr_blocks *work);
/* As above, by the caller alone. */
struct mr_blocks_end mr_blocks_alone(const struct mr_blocks *work);

/* Stealer: runs blocks of other slots until `is_wanted`, which it asks after each block. True: it
 * ran at least one. */
bool mr_work_sharing_steal(
    struct mr_work_sharing *h, uint32_t slot, bool (*is_wanted)(void *ctx), void *ctx);
/* The number of offers so far, as in an eventcount. A thread reads the epoch, looks for work, says
 * that it idles, and waits only if the epoch has not changed. */
uint32_t mr_work_sharing_epoch(const struct mr_work_sharing *h);
void mr_work_sharing_idle(struct mr_work_sharing *h, uint32_t slot, bool on);
