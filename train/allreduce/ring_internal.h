/* Private to train/allreduce: the inbox of a rank. The network thread puts blocks in. The rank's
 * thread takes them out in the order of (step, round), in which the ring needs them. */
#pragma once

#include "base/list.h"
#include "host/monitor.h"
#include "train/params/wire.h"
#include "train/transport/segment.h"

#define MR_RING_PROBE UINT32_MAX /* round of a message that only asks whether the rank is there */

struct mr_ring_block {
    struct mr_list node;
    uint64_t step;
    uint32_t round, contributors;
    uint64_t count, room; /* numbers */
    uint64_t got;         /* bytes */
    float data[];
};

struct mr_ring_inbox {
    struct mr_list node; /* in the table of this process */
    uint32_t users;      /* guarded by the table's lock */
    char session[MR_SESSION_MAX];
    uint32_t generation, rank, ranks;
    uint64_t count;          /* of the model */
    void (*wake)(void *ctx); /* the rank, when what it waits for is there; NULL: it looks itself */
    void *ctx;
    struct mr_monitor *lock; /* guards all below */
    struct mr_list blocks, spare;
    uint32_t spare_count;
    uint64_t bytes;            /* of `blocks` */
    bool is_closed, is_broken; /* the rank's end; a sender's */
    bool is_waited_for;        /* the rank has looked for this in vain: */
    uint64_t wanted_step;
    uint32_t wanted_round;
};

void mr_ring_inbox_open(struct mr_ring_inbox *in);   /* filled in but for node, users and lock */
void mr_ring_inbox_close(struct mr_ring_inbox **in); /* its senders fail from now on */
struct mr_ring_inbox *mr_ring_inbox_get(const char *session, uint32_t rank_from,
    uint32_t generation, struct mr_error *e); /* NULL, and why */
void mr_ring_inbox_put(struct mr_ring_inbox **in);

/* `p` brings a block, or a piece of one. */
int mr_ring_inbox_add(
    struct mr_ring_inbox *in, const struct mr_ring_message *p, struct mr_error *e);
/* The whole block of that step and round: give it back. NULL: not there yet, and the rank is woken
 * when it is. */
struct mr_ring_block *mr_ring_inbox_take(struct mr_ring_inbox *in, uint64_t step, uint32_t round);
void mr_ring_inbox_give(struct mr_ring_inbox *in, struct mr_ring_block **b);
/* The rank before sends no more. What has come whole can still be taken. */
void mr_ring_inbox_break(struct mr_ring_inbox *in);
bool mr_ring_inbox_is_broken(struct mr_ring_inbox *in);
