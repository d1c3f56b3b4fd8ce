/* One request to a queue, and the lines of requests that wait for an item or for room. Private to
 * services/trainer/queue.
 *
 *   (Put of an object: name it) ─▶ Redis ──ok──▶ (Take of objects: are they there?) ─▶ answer
 *                                  ▲   └─ empty, full ─▶ line ─ time over ─▶ answer
 *                                  └── its turn, news ────┘
 *
 * Redis is asked for the first request of a line only. When that request got something, Redis is
 * asked for the next one. */
#pragma once

#include "services/trainer/queue/service.h"
#include "services/trainer/shell/retry.h"
#include "store/meta/stream/queue.h"

enum mr_queue_op_kind {
    MR_QUEUE_PUT,
    MR_QUEUE_TAKE,
    MR_QUEUE_CREATE,
    MR_QUEUE_ACK,
    MR_QUEUE_NACK,
    MR_QUEUE_GET,
    MR_QUEUE_LIST,
    MR_QUEUE_CLOSE,
    MR_QUEUE_DELETE,
};

struct mr_queue_line {
    struct mr_list node;
    struct mr_queues *queues;
    char *queue;
    struct mr_list ops[2];        /* of puts, of takes, in the order of their coming */
    struct mr_queue_op *probe[2]; /* the one that was asked for, alone; NULL: none */
    uint32_t ops_count;           /* that know it; none: it is freed */
    uint64_t news;
    mr_time retry_at; /* a lease ends, or news may have been lost */
};

struct mr_queue_op {
    struct mr_waiting waiting; /* first */
    struct mr_queues *queues;
    enum mr_queue_op_kind kind;
    mr_rpc_call_id call;
    char *queue;
    struct mr_queue_answer *answer;

    struct mr_queue_line *line; /* put, take */
    struct mr_list place;       /* in it */
    uint64_t turn;              /* the number of its coming */
    uint64_t news;              /* of the line, when it was sent */
    mr_time until;              /* it waits for an item or for room */

    char *item_id, *value; /* put */
    bool is_object;
    bool is_id_ours;  /* drawn here: no other process can have put it */
    bool is_held;     /* the object has the item's name, from us */
    bool is_in_doubt; /* Redis was asked and has not answered: it may be put */

    uint32_t items_max, deliveries_max; /* take, create; list: rows */
    uint64_t lease_ms;
    size_t checking; /* objects of taken items that the store has been asked for */
    char **lost;     /* by item: why; NULL: it is there */

    char **receipts; /* ack, nack */
    size_t receipts_count;
    char *reason;
    bool is_dead;
};

struct mr_queues {
    struct mr_trainer_shell *trainer;
    struct mr_waiting_list waiting;
    struct mr_list lines;
    mr_time due; /* not above the least `until` and `retry_at` */
    uint64_t turns, items;
    uint64_t process; /* random: with a number, it names an item */
    mr_time release_at;
    size_t releasing; /* names that are being taken away */
    bool is_draining;
    struct mr_counter *puts, *takes, *acks, *lost;
};

/* service.c */
void mr_queue_op_begin(struct mr_queue_op *op); /* asks Redis, or waits in line */
void mr_queue_op_end(struct mr_queue_op **op);  /* of one that waits nowhere */
struct mr_rpc_call *mr_queue_op_call(const struct mr_queue_op *op); /* NULL: it is over */

void mr_queue_ignore(
    void *ctx, struct mr_queue_answer **answer); /* for answers without a waiting call */

/* reply.c */
void mr_queue_reply(struct mr_queue_op *op);
void mr_queue_fail(struct mr_queue_op *op, int err);

/* waiters.c */
void mr_queue_line_enter(struct mr_queue_op *op, uint64_t next_ms);
bool mr_queue_line_is_waiting(const struct mr_queue_op *op); /* do others stand before it? */
void mr_queue_line_find(struct mr_queue_op *op);
void mr_queue_line_left(struct mr_queue_op *op, bool is_served); /* it was asked for */
mr_time mr_queue_lines_turn(struct mr_queues *q, mr_time now);
void mr_queue_lines_end_waits(struct mr_queues *q, struct mr_str waiter);
void mr_queue_line_put(struct mr_queue_op *op); /* knows it no more */
void mr_queue_lines_free(struct mr_queues *q);

/* objects.c: objects of items, which the name queue/QUEUE/ITEM holds in the store. */
void mr_queue_object_hold(struct mr_queue_op *op); /* then begins, or fails */
/* The put ended so. true: the op goes on until the object has the name, then answers and ends. */
bool mr_queue_object_put(struct mr_queue_op *op, int err);
void mr_queue_object_drop(struct mr_queue_op *op);  /* it ends, and was not put */
bool mr_queue_object_check(struct mr_queue_op *op); /* true: it replies after the store's answer */
mr_time mr_queue_object_turn(struct mr_queues *q, mr_time now);
void mr_queue_object_release(struct mr_queues *q); /* soon */
