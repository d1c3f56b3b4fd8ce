/* Makes the messages that answer requests. */
#include "base/alloc.h"
#include "base/page.h"
#include "services/trainer/queue/internal.h"

#include <millrace/v1/queues.pb-c.h>

void mr_queue_fail(struct mr_queue_op *op, int err)
{
    struct mr_rpc_call *call = mr_queue_op_call(op);
    if (!call) return;
    const char *q = op->queue;
    if (err == MR_EAWAY)
        mr_trainer_fail(
            call, err, "queue \"%s\": queues are kept in Redis, which does not answer", q);
    else if (err == MR_EAGAIN)
        mr_trainer_fail(
            call, MR_ELIMIT, "queue \"%s\": Redis is slow or away, and too much waits for it", q);
    else if (err == MR_ECANCELED)
        mr_trainer_fail(call, MR_EAWAY, "queue \"%s\": the trainer is stopping", q);
    else if (err == MR_ENOENT)
        mr_trainer_fail(call, err, "there is no queue \"%s\"; Create makes one", q);
    else if (err == MR_ESTATE)
        mr_trainer_fail(call, err, "queue \"%s\" is closed: nothing can be put any more", q);
    else if (err == MR_ELIMIT && op->kind == MR_QUEUE_CREATE)
        mr_trainer_fail(call, err, "queue \"%s\" would be one of more than %d", q, MR_QUEUES_MAX);
    else if (err == MR_ELIMIT)
        mr_trainer_fail(call, err, "queue \"%s\" is full, and stayed so for wait_s", q);
    else
        mr_trainer_fail(
            call, MR_EINTERNAL, "queue \"%s\": what Redis keeps under its name is no queue", q);
}

static char *text(struct mr_str s)
{
    return mr_format("%.*s", MR_STR_ARG(s));
}

static void free_queue(Millrace__V1__Queue *q)
{
    mr_release(q->queue);
    for (size_t i = 0; i < q->n_dead_items; i++) {
        mr_release(q->dead_items[i]->item_id);
        mr_release(q->dead_items[i]->reason);
        mr_release(q->dead_items[i]);
    }
    mr_release(q->dead_items);
}

static void queue_to_pb(const struct mr_queue_facts *f, const struct mr_queue_dead *dead,
    size_t dead_count, Millrace__V1__Queue *out)
{
    millrace__v1__queue__init(out);
    out->queue = text(f->name);
    out->items_max = f->items_max;
    out->waiting = f->waiting;
    out->leased = f->leased;
    out->dead = f->dead;
    out->put_count = f->put_count;
    out->acked_count = f->acked_count;
    out->closed = f->is_closed;
    out->dead_items = mr_alloc_array(dead_count + 1, sizeof(void *));
    for (size_t i = 0; i < dead_count; i++) {
        Millrace__V1__DeadItem *item = mr_alloc(sizeof *item);
        millrace__v1__dead_item__init(item);
        item->item_id = text(dead[i].id);
        item->reason = text(dead[i].reason);
        item->time_ns = dead[i].time_ns;
        out->dead_items[out->n_dead_items++] = item;
    }
}

static void reply_queue(struct mr_queue_op *op, struct mr_rpc_call *call)
{
    Millrace__V1__Queue out;
    queue_to_pb(op->answer->queues, op->answer->dead, op->answer->dead_count, &out);
    (void)mr_rpc_call_reply_pb(call, &out.base);
    free_queue(&out);
}

static void reply_list(struct mr_queue_op *op, struct mr_rpc_call *call)
{
    size_t count = op->answer->count;
    Millrace__V1__ListQueuesResponse out = MILLRACE__V1__LIST_QUEUES_RESPONSE__INIT;
    Millrace__V1__Queue *all = mr_alloc_array(count + 1, sizeof *all);
    out.queues = mr_alloc_array(count + 1, sizeof(void *));
    for (size_t i = 0; i < count; i++) {
        queue_to_pb(&op->answer->queues[i], NULL, 0, &all[i]);
        out.queues[out.n_queues++] = &all[i];
    }
    MR_AUTO(mr_free_ptr) char *last = mr_format("%.*s", MR_STR_ARG(op->answer->last));
    MR_AUTO(mr_free_ptr) char *next = op->answer->more ? mr_page_token(last) : NULL;
    if (next) out.next_page_token = next;
    (void)mr_rpc_call_reply_pb(call, &out.base);
    for (size_t i = 0; i < count; i++)
        free_queue(&all[i]);
    mr_release(out.queues);
    mr_release(all);
}

static void reply_put(struct mr_queue_op *op, struct mr_rpc_call *call)
{
    Millrace__V1__PutItemResponse out = MILLRACE__V1__PUT_ITEM_RESPONSE__INIT;
    bool was_there = op->answer->err == MR_EEXIST && !op->is_id_ours;
    if (!was_there) mr_counter_add(op->queues->puts, 1);
    out.item_id = op->item_id;
    out.was_there = was_there;
    (void)mr_rpc_call_reply_pb(call, &out.base);
}

static void reply_items(struct mr_queue_op *op, struct mr_rpc_call *call)
{
    const struct mr_queue_answer *a = op->answer;
    size_t count = a ? a->count : 0;
    Millrace__V1__TakeItemsResponse out = MILLRACE__V1__TAKE_ITEMS_RESPONSE__INIT;
    Millrace__V1__QueueItem *items = mr_alloc_array(count + 1, sizeof *items);
    out.items = mr_alloc_array(count + 1, sizeof(void *));
    for (size_t i = 0; i < count; i++) {
        if (op->lost && op->lost[i]) continue;
        Millrace__V1__QueueItem *item = &items[out.n_items];
        millrace__v1__queue_item__init(item);
        item->item_id = text(a->items[i].id);
        if (a->items[i].is_object)
            item->object = text(a->items[i].value);
        else
            item->value_json = text(a->items[i].value);
        item->receipt = mr_format("%.*s-%s", MR_STR_ARG(a->items[i].lease), item->item_id);
        item->deliveries = a->items[i].deliveries;
        out.items[out.n_items++] = item;
    }
    out.closed = a && a->is_over;
    mr_counter_add(op->queues->takes, out.n_items);
    (void)mr_rpc_call_reply_pb(call, &out.base);
    for (size_t i = 0; i < out.n_items; i++) {
        mr_release(items[i].item_id);
        mr_release(items[i].receipt);
        if (items[i].object[0]) mr_release(items[i].object);
        if (items[i].value_json[0]) mr_release(items[i].value_json);
    }
    mr_release(out.items);
    mr_release(items);
}

static void reply_known(struct mr_queue_op *op, struct mr_rpc_call *call)
{
    Millrace__V1__AckItemsResponse out = MILLRACE__V1__ACK_ITEMS_RESPONSE__INIT;
    out.known = op->answer->known;
    if (op->kind == MR_QUEUE_ACK) mr_counter_add(op->queues->acks, out.known);
    (void)mr_rpc_call_reply_pb(call, &out.base);
}

void mr_queue_reply(struct mr_queue_op *op)
{
    struct mr_rpc_call *call = mr_queue_op_call(op);
    /* no answer: the time to wait in the line is over; a put fails, a take gets no items */
    int err = op->answer ? op->answer->err : op->kind == MR_QUEUE_PUT ? MR_ELIMIT : MR_OK;
    if (!call) return;
    if (err && !(err == MR_EEXIST && op->kind == MR_QUEUE_PUT)) {
        mr_queue_fail(op, err);
        return;
    }
    switch (op->kind) {
    case MR_QUEUE_PUT: reply_put(op, call); return;
    case MR_QUEUE_TAKE: reply_items(op, call); return;
    case MR_QUEUE_ACK:
    case MR_QUEUE_NACK: reply_known(op, call); return;
    case MR_QUEUE_LIST: reply_list(op, call); return;
    case MR_QUEUE_CREATE:
    case MR_QUEUE_GET:
    case MR_QUEUE_CLOSE: reply_queue(op, call); return;
    case MR_QUEUE_DELETE: {
        Millrace__V1__DeleteQueueResponse out = MILLRACE__V1__DELETE_QUEUE_RESPONSE__INIT;
        (void)mr_rpc_call_reply_pb(call, &out.base);
        return;
    }
    }
}
