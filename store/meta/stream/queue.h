/* Queues in Redis: every operation is one script, so a bound holds and an item is in one place,
 * however many processes use the queue.
 *
 *   put ──▶ waiting ──take──▶ leased ──ack──▶ gone
 *              ▲  ▲─nack, lease over─┘ └─nack dead, too many deliveries──▶ dead (the latest 1,000)
 *
 * An item that goes away and names an object leaves the name that holds the object in one set for
 * all queues: whoever takes the name away removes it there. So do the items of a queue that is
 * deleted, a few with each mr_queue_released, however many there are.
 *
 * What Redis returns is outside bytes and is checked. Callbacks come on the connection's thread,
 * exactly once, when the function has returned MR_OK; else (MR_EAWAY, MR_ELIMIT) never. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct mr_redis;
struct mr_reply;

#define MR_QUEUES_MAX 10000
#define MR_QUEUE_PAST_MAX                                                                          \
    10000 /* ids of items that are gone, the latest, which are not put again */

struct mr_queue_item {
    struct mr_str id;
    struct mr_str value; /* JSON text, or an object's id */
    bool is_object;
    struct mr_str lease; /* its number */
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
    /* MR_EAWAY, MR_EFORMAT; MR_ENOENT: there is no such queue; MR_ESTATE: it is closed; MR_ELIMIT:
     * it is full (put), there are too many queues (create); MR_EEXIST: the item was put already. */
    int err;
    bool is_live;     /* MR_EEXIST: it is still there */
    bool is_over;     /* take: closed, and nothing waits or is leased */
    uint64_t next_ms; /* until the first lease ends; 0: none runs */
    uint32_t known;   /* ack, nack */
    struct mr_queue_item *items;
    struct mr_queue_facts *queues; /* get: one; list */
    struct mr_queue_dead *dead;    /* get */
    struct mr_str *names;          /* released */
    bool more; /* released: items of deleted queues are still to be looked at; ask again. list: more
                */
    struct mr_str last; /* list: the name after which to go on */
    size_t count, dead_count;
    struct mr_reply *reply;
};

typedef void (*mr_queue_fn)(void *ctx, struct mr_queue_answer **answer); /* given */
void mr_queue_answer_free(struct mr_queue_answer **a);

/* 0: as it is, or the default of a new one. */
int mr_queue_create(struct mr_redis *r, struct mr_str queue, uint32_t items_max,
    uint32_t deliveries_max, mr_queue_fn fn, void *ctx);
int mr_queue_put(struct mr_redis *r, struct mr_str queue, struct mr_str id, struct mr_str value,
    bool is_object, mr_queue_fn fn, void *ctx);
int mr_queue_take(struct mr_redis *r, struct mr_str queue, uint32_t items_max, uint64_t lease_ms,
    mr_queue_fn fn, void *ctx);
/* Receipts are "<lease>-<id>". */
int mr_queue_ack(struct mr_redis *r, struct mr_str queue, const struct mr_str *receipts,
    size_t count, mr_queue_fn fn, void *ctx);
int mr_queue_nack(struct mr_redis *r, struct mr_str queue, const struct mr_str *receipts,
    size_t count, bool is_dead, struct mr_str reason, mr_queue_fn fn, void *ctx);
int mr_queue_get(struct mr_redis *r, struct mr_str queue, mr_queue_fn fn, void *ctx);
/* By name, from the first after `after` on ("": from the first). */
int mr_queue_list(
    struct mr_redis *r, struct mr_str after, uint32_t rows_max, mr_queue_fn fn, void *ctx);
int mr_queue_close(struct mr_redis *r, struct mr_str queue, mr_queue_fn fn, void *ctx); /* as get */
int mr_queue_delete(struct mr_redis *r, struct mr_str queue, mr_queue_fn fn, void *ctx);

/* Some of the names of objects that no item needs any more, and: these are taken away. */
int mr_queue_released(struct mr_redis *r, mr_queue_fn fn, void *ctx);
int mr_queue_forget(struct mr_redis *r, struct mr_str name, mr_queue_fn fn, void *ctx);
