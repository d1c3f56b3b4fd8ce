/* Queues in Redis. Every operation is one Lua script, so for any number of processes the bound of a
 * queue holds, and an item is in exactly one state.
 *
 *   put ──▶ waiting ──take──▶ leased ──ack──▶ gone
 *              ▲                │  │
 *              └─nack, lease over  └─nack dead, too many deliveries──▶ dead (the latest 1,000)
 *
 * An item may stand for an object. A name in the object's store then holds the object. A script
 * that removes such an item adds the name to one set for all queues. mr_queue_released answers with
 * names in this set. The caller deletes each name in the store. Then it calls mr_queue_forget,
 * which removes the name from the set. The items of a deleted queue are set aside. Each call of
 * mr_queue_released examines a few of these items, and adds the names of their objects to the set.
 *
 * Everything read from Redis is untrusted and checked. If a function returns MR_OK, its callback is
 * called exactly once, on the connection's thread; otherwise (MR_EAWAY, MR_ELIMIT) never. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct mr_redis;
struct mr_reply;

#define MR_QUEUES_MAX 10000
/* The ids of the last items that were put into a queue; the queue remembers at least this many. An
 * item with such an id is not put again. */
#define MR_QUEUE_PAST_MAX 10000

struct mr_queue_item {
    struct mr_str id;
    struct mr_str value; /* JSON text, or an object id */
    bool is_object;
    struct mr_str lease; /* number of the item's lease */
    uint32_t deliveries;
};

struct mr_queue_dead {
    struct mr_str id, reason;
    uint64_t time_ns;
};

struct mr_queue_facts {
    struct mr_str name;
    uint32_t items_max, waiting, leased, dead;
    uint64_t put_count, acked_count;
    bool is_closed;
};

struct mr_queue_answer {
    /* MR_OK, MR_EAWAY, MR_EFORMAT, or MR_ECANCELED if the connection was closed. MR_ENOENT: there
     * is no such queue. MR_ESTATE: the queue is closed. MR_ELIMIT: the queue is full (put) or there
     * are too many queues (create). MR_EEXIST: the item was put already. */
    int err;
    bool is_live;     /* with MR_EEXIST: the item is still in the queue */
    bool is_over;     /* after a take: the queue is closed and empty, with no leases */
    uint64_t next_ms; /* ms until the first lease ends; 0: there is no lease */
    uint32_t known;   /* after ack or nack: number of receipts that were valid */
    struct mr_queue_item *items;
    struct mr_queue_facts *queues; /* after get: one queue; after list: a page of queues */
    struct mr_queue_dead *dead;    /* after get: the latest dead items */
    struct mr_str *names;          /* after mr_queue_released: names of objects */
    /* After mr_queue_released: true if more items of deleted queues wait, so the caller calls
     * again. After list: true if there are more queues. */
    bool more;
    struct mr_str last; /* after list: the name after which the next page begins */
    size_t count, dead_count;
    struct mr_reply *reply;
};

/* Receives the answer, which the callee then owns. */
typedef void (*mr_queue_fn)(void *ctx, struct mr_queue_answer **answer);
void mr_queue_answer_free(struct mr_queue_answer **a);

/* Makes a queue or changes its bounds. A bound of 0: the bound is kept; a new queue gets the
 * default. */
int mr_queue_create(struct mr_redis *r, struct mr_str queue, uint32_t items_max,
    uint32_t deliveries_max, mr_queue_fn fn, void *ctx);
int mr_queue_put(struct mr_redis *r, struct mr_str queue, struct mr_str id, struct mr_str value,
    bool is_object, mr_queue_fn fn, void *ctx);
int mr_queue_take(struct mr_redis *r, struct mr_str queue, uint32_t items_max, uint64_t lease_ms,
    mr_queue_fn fn, void *ctx);
/* End leases: mr_queue_ack with success, which removes the items, and mr_queue_nack with failure. A
 * receipt is "<lease>-<id>". */
int mr_queue_ack(struct mr_redis *r, struct mr_str queue, const struct mr_str *receipts,
    size_t count, mr_queue_fn fn, void *ctx);
int mr_queue_nack(struct mr_redis *r, struct mr_str queue, const struct mr_str *receipts,
    size_t count, bool is_dead, struct mr_str reason, mr_queue_fn fn, void *ctx);
int mr_queue_get(struct mr_redis *r, struct mr_str queue, mr_queue_fn fn, void *ctx);
/* Lists queues by name, after `after` ("": from the first queue). */
int mr_queue_list(
    struct mr_redis *r, struct mr_str after, uint32_t rows_max, mr_queue_fn fn, void *ctx);
/* mr_queue_close closes a queue, and answers with the queue as mr_queue_get does, but without the
 * dead items. mr_queue_delete deletes a queue; its answer has only `err`. */
int mr_queue_close(struct mr_redis *r, struct mr_str queue, mr_queue_fn fn, void *ctx);
int mr_queue_delete(struct mr_redis *r, struct mr_str queue, mr_queue_fn fn, void *ctx);

/* Answers with some names of objects that no item of any queue needs any more. */
int mr_queue_released(struct mr_redis *r, mr_queue_fn fn, void *ctx);
/* Removes a name from the set of mr_queue_released, after its object was released. */
int mr_queue_forget(struct mr_redis *r, struct mr_str name, mr_queue_fn fn, void *ctx);
