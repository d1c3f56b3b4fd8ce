/* Work sharing among the threads of one process. A thread that has work in blocks, the owner of the
 * work, offers it. A thread without work of its own, a stealer, runs blocks of the owner, one at a
 * time, until its own work comes. Joining and leaving a piece of work take one atomic operation
 * each, so a block may be as short as tens of microseconds. A struct mr_work_sharing is a group of
 * threads. Each thread has a slot of its own in the group, and offers one piece of work at a time.
 * Threads join the work while it runs. A pool whose threads wait for work is
 * host/pool/thread_pool.h. */
#pragma once

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_LANES_MAX 32u /* threads in one piece of work, its owner included */

struct mr_work_sharing;
struct mr_inbox;

struct mr_blocks { /* a piece of work; borrowed until mr_work_sharing_run returns */
    uint32_t count;
    /* Threads that may run blocks at the same time, the owner included: 1 to MR_LANES_MAX. */
    uint32_t lanes;
    /* Runs one block, on any thread. Blocks begin in ascending order and end in any order. `lane`
     * is below `lanes`, and no two threads have the same lane at the same time. After an error no
     * further block begins. */
    int (*run)(void *ctx, uint32_t block, uint32_t lane);
    /* Called before each block, on any thread. True: no further block begins. NULL: all blocks
     * run. */
    bool (*is_stopped)(void *ctx);
    void *ctx;
};

struct mr_blocks_end {
    /* Error of the failed block with the lowest number. Which block this is does not depend on the
     * threads. MR_OK: no block has failed. */
    int err;
    uint32_t failed; /* number of the block with this error */
    /* True: is_stopped returned true, so perhaps not all blocks have run. */
    bool stopped;
    mr_duration waited_cpu; /* processor time that the owner spent waiting for stealers */
    mr_duration stolen_cpu; /* processor time that stealers spent in blocks */
};

struct mr_work_sharing *mr_work_sharing_new(uint32_t slots);
void mr_work_sharing_free(struct mr_work_sharing **h);

/* Sets the inbox in which the thread of this slot waits. An offer of work wakes an idle thread
 * through its inbox. Called twice for each thread: with an inbox before the thread starts, and with
 * NULL after the thread has ended. */
void mr_work_sharing_enter(struct mr_work_sharing *h, uint32_t slot, struct mr_inbox *inbox);

/* Offers the owner's blocks, and runs them together with the stealers. At the return each block is
 * done or will never begin. */
struct mr_blocks_end mr_work_sharing_run(
    struct mr_work_sharing *h, uint32_t slot, const struct mr_blocks *work);
/* Runs all blocks on the calling thread. */
struct mr_blocks_end mr_blocks_alone(const struct mr_blocks *work);

/* Runs blocks of other slots on an idle thread, until no block is left or `is_wanted` returns true.
 * `is_wanted` is called before each block. Returns true if the thread ran at least one block. */
bool mr_work_sharing_steal(
    struct mr_work_sharing *h, uint32_t slot, bool (*is_wanted)(void *ctx), void *ctx);
/* Returns the number of offers so far, which serves as an eventcount. An idle thread reads the
 * number, looks for work, marks itself as idle with mr_work_sharing_idle, and sleeps only if the
 * number has not changed. */
uint32_t mr_work_sharing_epoch(const struct mr_work_sharing *h);
void mr_work_sharing_idle(struct mr_work_sharing *h, uint32_t slot, bool on);
