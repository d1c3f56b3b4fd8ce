/* Requests to queues, and the lines of requests that wait for an item or for room. Private to
 * services/trainer/queue. The four files call each other, because a request passes through all of
 * them, in either direction:
 *
 *   (Put of an object: name it) ─▶ Redis ──ok──▶ (Take of objects: are they there?) ─▶ answer
 *                                  ▲   └─ empty, full ─▶ line ─ deadline ─▶ answer
 *                                  └── its turn, news ────┘
 *
 * Of the requests in a line, only the first is sent to Redis. When that request has succeeded, the
 * next request is sent. */
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

struct mr_queue_line { /* the two lines of one queue: puts that wait, and takes that wait */
    struct mr_list node;
    struct mr_queues *queues;
    char *queue;
    struct mr_list ops[2]; /* [0]: puts, [1]: takes; in order of arrival */
    /* for each line, its request that was sent to Redis and has no answer yet; NULL: none */
    struct mr_queue_op *probe[2];
    uint32_t ops_count; /* number of requests that refer to the struct; at 0 it is freed */
    uint64_t news;      /* number of times that the queue was reported as changed */
    /* time when the first request of each line is sent again, because a lease expires then, or
     * because a report that the queue has changed may have been lost */
    mr_time retry_at;
};

struct mr_queue_op {
    struct mr_waiting waiting; /* has to be the first member */
    struct mr_queues *queues;
    enum mr_queue_op_kind kind;
    mr_rpc_call_id call;
    char *queue;
    struct mr_queue_answer *answer;

    struct mr_queue_line *line; /* only in a put or take: the lines of its queue */
    struct mr_list place;       /* member of the line's `ops` */
    uint64_t turn;              /* number of the request's arrival */
    uint64_t news;              /* value of the line's `news` when the request was sent */
    mr_time until;              /* end of the wait for an item or for room */

    char *item_id, *value; /* only in a put */
    bool is_object;
    bool is_id_ours;  /* the id was made here, so no other process can have put the item */
    bool is_held;     /* this request has given the object its name */
    bool is_in_doubt; /* Redis has not answered a put: the queue may have the item */

    /* items_max: only in take and create, and in list as the limit of the rows; deliveries_max:
     * only in create */
    uint32_t items_max, deliveries_max;
    uint64_t lease_ms;
    size_t checking; /* number of objects of taken items that the store is still asked about */
    char **lost;     /* for each item, why its object is lost; NULL: the object exists */

    char **receipts; /* only in ack and nack */
    size_t receipts_count;
    char *reason;
    bool is_dead;
};

struct mr_queues {
    struct mr_trainer_shell *trainer;
    struct mr_waiting_list waiting;
    struct mr_list lines;
    /* not later than the `until` of any request in a line, nor than the `retry_at` of any line */
    mr_time due;
    uint64_t turns, items;
    uint64_t process; /* a random number, which is a part of each item's id */
    mr_time release_at;
    size_t releasing; /* number of names whose removal has no answer yet */
    bool is_draining;
    struct mr_counter *puts, *takes, *acks, *lost;
};

/* service.c */
/* Sends the request to Redis. If it is new and other requests wait in its line, it is put behind
 * them instead. */
void mr_queue_op_begin(struct mr_queue_op *op);
/* Frees the request, which must not be in any list. */
void mr_queue_op_end(struct mr_queue_op **op);
/* Returns the request's call; NULL: the call has ended. */
struct mr_rpc_call *mr_queue_op_call(const struct mr_queue_op *op);

/* Frees an answer that no call waits for. */
void mr_queue_ignore(void *ctx, struct mr_queue_answer **answer);

/* reply.c */
void mr_queue_reply(struct mr_queue_op *op);
void mr_queue_fail(struct mr_queue_op *op, int err);

/* waiters.c */
void mr_queue_line_enter(struct mr_queue_op *op, uint64_t next_ms);
/* True: other requests wait in the line of this request. */
bool mr_queue_line_is_waiting(const struct mr_queue_op *op);
void mr_queue_line_find(struct mr_queue_op *op);
/* Called when Redis has answered the request. Sends the next request of the line if this request
 * succeeded (`is_served`), or if the queue has changed since this request was sent. */
void mr_queue_line_left(struct mr_queue_op *op, bool is_served);
mr_time mr_queue_lines_turn(struct mr_queues *q, mr_time now);
void mr_queue_lines_end_waits(struct mr_queues *q, struct mr_str waiter);
/* Drops the request's reference to its line. */
void mr_queue_line_put(struct mr_queue_op *op);
void mr_queue_lines_free(struct mr_queues *q);

/* objects.c: objects of items. The name queue/QUEUE/ITEM keeps an object in the store. */
/* Gives the object its name; then the request begins, or fails. */
void mr_queue_object_hold(struct mr_queue_op *op);
/* Called when the put has ended with `err`. If the put succeeded but the name existed before the
 * request, this function sets the name to the object. True: the request is answered and freed when
 * the store has answered. False: the caller answers and frees the request. */
bool mr_queue_object_put(struct mr_queue_op *op, int err);
/* Called when a request ends: removes the name that the request has given the object. Keeps the
 * name if the queue has the item or may have it, or if another waiting request puts the same
 * item. */
void mr_queue_object_drop(struct mr_queue_op *op);
/* Asks the store whether the objects of taken items exist. True: the reply waits for the store's
 * answers. False: there is nothing to ask, and the caller replies. */
bool mr_queue_object_check(struct mr_queue_op *op);
mr_time mr_queue_object_turn(struct mr_queues *q, mr_time now);
/* Schedules the removal of names that no item needs; mr_queue_object_turn starts it later. */
void mr_queue_object_release(struct mr_queues *q);
