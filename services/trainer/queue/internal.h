/* One request to a queue, and the lines of requests that wait for an item or for room. Private to
 * services/trainer/queue. The four files call each other, because one request passes through all of
 * them, in either direction:
 *
 *   (Put of an object: name it) ─▶ Redis ──ok──▶ (Take of objects: are they there?) ─▶ answer
 *                                  ▲   └─ empty, full ─▶ line ─ deadline ─▶ answer
 *                                  └── its turn, news ────┘
 *
 * Only the first request of a line is sent to Redis. When it has succeeded, the next one is sent.
 */
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
    struct mr_list ops[2];        /* puts, takes; in order of arrival */
    struct mr_queue_op *probe[2]; /* the request of each line that Redis has now; NULL: none */
    uint32_t ops_count;           /* requests that refer to the line; 0: the line is freed */
    uint64_t news;
    mr_time retry_at; /* next retry: when a lease expires, or in case news were lost */
};

struct mr_queue_op {
    struct mr_waiting waiting; /* must be first */
    struct mr_queues *queues;
    enum mr_queue_op_kind kind;
    mr_rpc_call_id call;
    char *queue;
    struct mr_queue_answer *answer;

    struct mr_queue_line *line; /* put, take: its line */
    struct mr_list place;       /* in `line` */
    uint64_t turn;              /* number of its arrival */
    uint64_t news;              /* news of the line when the request was sent */
    mr_time until;              /* deadline of the wait for an item or for room */

    char *item_id, *value; /* put */
    bool is_object;
    bool is_id_ours;  /* made here: no other process can have put the item */
    bool is_held;     /* this request has given the object the item's name */
    bool is_in_doubt; /* Redis has not answered: the item may have been put */

    uint32_t items_max, deliveries_max; /* take, create; list: rows */
    uint64_t lease_ms;
    size_t checking; /* objects of taken items whose check has no answer yet */
    char **lost;     /* by item: why its object is lost; NULL: the object exists */

    char **receipts; /* ack, nack */
    size_t receipts_count;
    char *reason;
    bool is_dead;
};

struct mr_queues {
    struct mr_trainer_shell *trainer;
    struct mr_waiting_list waiting;
    struct mr_list lines;
    mr_time due; /* not later than the earliest `until` and `retry_at` */
    uint64_t turns, items;
    uint64_t process; /* random; part of the id of an item */
    mr_time release_at;
    size_t releasing; /* names whose removal has no answer yet */
    bool is_draining;
    struct mr_counter *puts, *takes, *acks, *lost;
};

/* service.c */
/* Sends the request to Redis, or puts it into its line. */
void mr_queue_op_begin(struct mr_queue_op *op);
void mr_queue_op_end(struct mr_queue_op **op); /* the request must not wait anywhere */
/* NULL: the call has ended. */
struct mr_rpc_call *mr_queue_op_call(const struct mr_queue_op *op);

void mr_queue_ignore(
    void *ctx, struct mr_queue_answer **answer); /* handler of answers that no call waits for */

/* reply.c */
void mr_queue_reply(struct mr_queue_op *op);
void mr_queue_fail(struct mr_queue_op *op, int err);

/* waiters.c */
void mr_queue_line_enter(struct mr_queue_op *op, uint64_t next_ms);
bool mr_queue_line_is_waiting(const struct mr_queue_op *op); /* are other requests before it? */
void mr_queue_line_find(struct mr_queue_op *op);
/* The request had its turn at Redis. */
void mr_queue_line_left(struct mr_queue_op *op, bool is_served);
mr_time mr_queue_lines_turn(struct mr_queues *q, mr_time now);
void mr_queue_lines_end_waits(struct mr_queues *q, struct mr_str waiter);
/* Releases the request's reference to its line. */
void mr_queue_line_put(struct mr_queue_op *op);
void mr_queue_lines_free(struct mr_queues *q);

/* objects.c: objects of items. The name queue/QUEUE/ITEM keeps an object in the store. */
/* Names the object; then the request begins or fails. */
void mr_queue_object_hold(struct mr_queue_op *op);
/* The put has ended with `err`. True: the request continues until the object has its name, and
 * answers then. */
bool mr_queue_object_put(struct mr_queue_op *op, int err);
void mr_queue_object_drop(struct mr_queue_op *op);  /* the request ends without a put */
bool mr_queue_object_check(struct mr_queue_op *op); /* true: the reply waits for the store */
mr_time mr_queue_object_turn(struct mr_queues *q, mr_time now);
/* Removes names that no item needs, in a later turn. */
void mr_queue_object_release(struct mr_queues *q);
