/* The inbox of a rank: the network thread puts blocks in, and the rank's thread takes them out in
 * the order of (step, round), in which the ring needs them. */
#pragma once

#include "base/list.h"
#include "host/monitor.h"
#include "train/params/wire.h"

#define MR_RING_PROBE UINT32_MAX /* round of a message that only asks whether the rank is there */

struct mr_ring_block {
    struct mr_list node;
    uint64_t step;
    uint32_t round, contributors;
    uint64_t count; /* numbers of the block */
    uint64_t room;  /* numbers that fit */
    uint64_t got;   /* bytes that have come so far */
    float data[];
};

struct mr_ring_inbox {
    struct mr_list node; /* in the table of this process */
    uint32_t users;      /* guarded by the table's lock */
    char session[MR_SESSION_MAX];
    uint32_t generation, rank, ranks;
    uint64_t count;          /* numbers of the model */
    void (*wake)(void *ctx); /* wakes the rank when its block has come; NULL: the rank polls */
    void *ctx;
    struct mr_monitor *lock; /* guards all below */
    struct mr_list blocks;
    struct mr_list spare; /* blocks whose memory is used again */
    uint32_t spare_count;
    uint64_t bytes;     /* of `blocks` */
    bool is_closed;     /* by the rank */
    bool is_broken;     /* the stream of the rank before has ended */
    bool is_waited_for; /* the rank has looked in vain for the block of: */
    uint64_t wanted_step;
    uint32_t wanted_round;
};

/* The caller has filled all fields but node, users, lock and the lists. */
void mr_ring_inbox_open(struct mr_ring_inbox *in);
void mr_ring_inbox_close(struct mr_ring_inbox **in); /* calls of its senders fail from now on */
/* A counted reference to the inbox of the rank after `rank_from`; NULL: `e` says why. */
struct mr_ring_inbox *mr_ring_inbox_get(
    const char *session, uint32_t rank_from, uint32_t generation, struct mr_error *e);
void mr_ring_inbox_put(struct mr_ring_inbox **in);

/* `p` brings a block or a piece of one. */
int mr_ring_inbox_add(
    struct mr_ring_inbox *in, const struct mr_ring_message *p, struct mr_error *e);
/* The block of that step and round, given back with mr_ring_inbox_give. NULL: the block has not
 * come as a whole; the rank is woken when it has. */
struct mr_ring_block *mr_ring_inbox_take(struct mr_ring_inbox *in, uint64_t step, uint32_t round);
void mr_ring_inbox_give(struct mr_ring_inbox *in, struct mr_ring_block **b);
/* The rank before sends no more. Blocks that have come as a whole can still be taken. */
void mr_ring_inbox_break(struct mr_ring_inbox *in);
bool mr_ring_inbox_is_broken(struct mr_ring_inbox *in);

/* `wake` wakes the network thread of this process, which then calls mr_ring_service_turn; NULL: no
 * thread. After the call has returned, no wake of the function before is under way. */
void mr_ring_set_waker(void (*wake)(void *ctx), void *ctx);
