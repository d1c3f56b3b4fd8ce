/* Threads of one process that help each other: who has a piece of work in blocks offers it, and
 * who has nothing of his own to do takes blocks of it, one at a time, until his own work comes.
 * Joining and leaving is an atomic operation each, so blocks may be as short as tens of
 * microseconds. Each thread has a place of its own in the group, and offers one piece at a time. */
#pragma once

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_LANES_MAX 32u /* threads in one piece of work */

struct mr_work_sharing;
struct mr_inbox;

struct mr_blocks { /* lent until mr_work_sharing_run returns */
    uint32_t count;
    uint32_t lanes; /* threads at once, the owner's among them: 1 to MR_LANES_MAX */
    /* On any thread, in any order; begun in theirs. `lane` is below `lanes`, and the thread's alone
     * meanwhile. An error ends the work: no block is begun any more. */
    int (*run)(void *ctx, uint32_t block, uint32_t lane);
    bool (*is_stopped)(void *ctx); /* asked before each block, on any thread */
    void *ctx;
};

struct mr_blocks_end {
    int err;                /* of the first block, by number, that had one; which one that is does
                               not depend on the threads */
    uint32_t failed;        /* that block */
    bool stopped;           /* is_stopped said so; blocks may have been left out */
    mr_duration waited_cpu; /* processor time of the owner in which it ran no block */
    mr_duration stolen_cpu; /* processor time that other threads ran blocks */
};

struct mr_work_sharing *mr_work_sharing_new(uint32_t slots);
void mr_work_sharing_free(struct mr_work_sharing **h);

/* The thread of a place waits in this inbox, and is woken there when it idles; NULL: no more. Any
 * thread; before its own starts and after it ended. */
void mr_work_sharing_enter(struct mr_work_sharing *h, uint32_t slot, struct mr_inbox *inbox);

/* The owner's: all blocks are done, or will never be, at the return. */
struct mr_blocks_end mr_work_sharing_run(
    struct mr_work_sharing *h, uint32_t slot, const struct mr_blocks *work);
/* As above, by the caller alone. */
struct mr_blocks_end mr_blocks_alone(const struct mr_blocks *work);

/* A helper's: takes blocks of others, whoever has some; true: it did at least one. After each
 * block it asks whether it is wanted elsewhere. */
bool mr_work_sharing_steal(
    struct mr_work_sharing *h, uint32_t slot, bool (*is_wanted)(void *ctx), void *ctx);
/* How much has ever been offered. Who idles says so first and then looks whether this is still
 * what it was before it looked for work; only then it waits. */
uint32_t mr_work_sharing_epoch(const struct mr_work_sharing *h);
void mr_work_sharing_idle(struct mr_work_sharing *h, uint32_t slot, bool on);
