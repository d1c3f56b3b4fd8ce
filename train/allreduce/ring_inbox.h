/* The inbox of a rank: the network thread puts blocks in, and the rank's thread takes them out in
 * the order of (step, round), in which the ring needs them. */
#pragma once

#include "base/list.h"
#include "host/monitor.h"
#include "train/params/wire.h"

/* used as the round of a message that only asks whether the rank is there */
#define MR_RING_PROBE UINT32_MAX

struct mr_ring_block {
    struct mr_list node;
    uint64_t step;
    uint32_t round, contributors;
    uint64_t count; /* how many numbers the block has */
    uint64_t room;  /* how many numbers fit into `data` */
    uint64_t got;   /* how many bytes of the block have come */
    float data[];
};

struct mr_ring_inbox {
    struct mr_list node; /* link in the table of all inboxes of this process */
    uint32_t users;      /* guarded by the table's lock */
    char session[MR_SESSION_MAX];
    uint32_t generation, rank, ranks;
    uint64_t count; /* how many numbers the vector of a rank has */
    /* wakes the rank when the block that it waits for has come, or when `is_broken` is set; NULL:
     * the rank polls */
    void (*wake)(void *ctx);
    void *ctx;
    struct mr_monitor *lock; /* guards all members below */
    struct mr_list blocks;
    struct mr_list spare; /* blocks whose memory is kept for later blocks */
    uint32_t spare_count;
    uint64_t bytes;     /* sum over `blocks` */
    bool is_closed;     /* the rank has closed its inbox */
    bool is_broken;     /* the stream of the previous rank has ended */
    bool is_waited_for; /* the rank waits for the block of `wanted_step` and `wanted_round` */
    uint64_t wanted_step;
    uint32_t wanted_round;
};

/* Opens the inbox: senders find it from now on. The caller has filled in all members except node,
 * users, lock and the lists. */
void mr_ring_inbox_open(struct mr_ring_inbox *in);
/* Closes the inbox. From now on its senders' calls fail. */
void mr_ring_inbox_close(struct mr_ring_inbox **in);
/* Returns a counted reference to the inbox of the rank after `rank_from`. NULL: `e` says why. */
struct mr_ring_inbox *mr_ring_inbox_get(
    const char *session, uint32_t rank_from, uint32_t generation, struct mr_error *e);
void mr_ring_inbox_put(struct mr_ring_inbox **in);

/* Adds a message `p`, which has a block or a piece of one. */
int mr_ring_inbox_add(
    struct mr_ring_inbox *in, const struct mr_ring_message *p, struct mr_error *e);
/* Returns the block of this step and round, which the caller gives back with mr_ring_inbox_give.
 * NULL: the block is not complete, and the rank is woken when it is. */
struct mr_ring_block *mr_ring_inbox_take(struct mr_ring_inbox *in, uint64_t step, uint32_t round);
void mr_ring_inbox_give(struct mr_ring_inbox *in, struct mr_ring_block **b);
/* Notes that the previous rank sends no more. Complete blocks can still be taken. */
void mr_ring_inbox_break(struct mr_ring_inbox *in);
bool mr_ring_inbox_is_broken(struct mr_ring_inbox *in);

/* Sets the function that wakes the network thread of this process, which then calls
 * mr_ring_service_turn; NULL: there is no such thread. When mr_ring_set_waker returns, the function
 * that was set before is no longer running. */
void mr_ring_set_waker(void (*wake)(void *ctx), void *ctx);
