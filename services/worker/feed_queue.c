/* Knows Take, Ack and Nack, and how rows of items become batches. */
#include "services/worker/feed_queue.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/flag.h"
#include "host/inbox.h"
#include "host/log.h"
#include "host/thread.h"
#include "millrace/v1/queues.pb-c.h"
#include "store/object/collection.h"
#include "store/object/value.h"

#include <stdio.h>

#define AHEAD 2u     /* taken and not in use yet: others want some, too */
#define ITEMS_MAX 8u /* items taken and not yet acknowledged */
#define TAKE_WAIT_S 0.2
#define LEASE_S 60.0
#define CALL_TIMEOUT (5 * MR_SECOND)
#define RETRY (100 * MR_MS)
#define IDLE_MAX (500 * MR_MS)
#define ANSWER_BYTES_MAX ((size_t)64 << 20)
#define RECEIPT_MAX 160

struct taken { /* from the thread */
    char receipt[RECEIPT_MAX];
    mr_object_id object;
    int err; /* MR_OK: an item; MR_ENOENT: closed and empty; else the queue cannot be used */
};

struct answer { /* to the thread */
    char receipt[RECEIPT_MAX];
    bool opened; /* no answer yet: the item is in use, another may be taken ahead */
    bool dead;   /* no batch: `reason` */
    bool back;   /* not learned: let another have it */
    char reason[256];
};

struct item { /* being used */
    struct taken from;
    struct mr_store_view view;
    struct mr_rows *x, *y;
    void *inlines[2];
    int32_t *classes;
    uint64_t rows, at;
};

struct mr_queue_feed {
    struct mr_queue_feed_spec spec;
    struct mr_feed_store rows_store;
    struct item
        items[ITEMS_MAX]; /* the first `used` are used up by the batch, the next is in use */
    uint32_t items_count, used;
    float *x, *y;
    int32_t *index;
    bool is_index;
    uint64_t y_bytes; /* of a row */
    uint32_t filled;  /* rows of the batch so far */
    uint64_t batches;
    bool is_over;
    mr_time idle_since; /* nothing came since; 0: something did */

    struct mr_thread *thread;
    struct mr_inbox *in;  /* of struct taken */
    struct mr_inbox *out; /* of struct answer */
    struct mr_flag stop;
};

/* ---- the thread -------------------------------------------------------------------------------
 */

static bool is_stopped(void *ctx)
{
    struct mr_queue_feed *f = ctx;
    return mr_flag_is_set(&f->stop);
}

struct taker {
    struct mr_queue_feed *f;
    struct mr_role_link *link;
    struct mr_pb_arena arena;
    uint32_t out;   /* given to the role and not answered */
    uint32_t ahead; /* of them, not in use yet */
    mr_time retry_at;
};

static int create(struct taker *t, struct mr_error *e)
{
    Millrace__V1__CreateQueueRequest r = MILLRACE__V1__CREATE_QUEUE_REQUEST__INIT;
    r.queue = (char *)(uintptr_t)t->f->spec.queue;
    const struct mr_role_stop stop = {is_stopped, t->f};
    return mr_role_call(
        t->link, "/millrace.v1.Queues/Create", &r.base, CALL_TIMEOUT, stop, NULL, NULL, NULL, e);
}

static void give(struct taker *t, const struct taken *item)
{
    int err = mr_inbox_push(t->f->in, item);
    mr_assert(!err); /* there is room for all that are ahead, and for the end */
    t->out += item->err == MR_OK;
    t->ahead += item->err == MR_OK;
}

static void take(struct taker *t)
{
    Millrace__V1__TakeItemsRequest r = MILLRACE__V1__TAKE_ITEMS_REQUEST__INIT;
    const Millrace__V1__TakeItemsResponse *got = NULL;
    const struct mr_role_stop stop = {is_stopped, t->f};
    struct mr_error e;
    r.queue = (char *)(uintptr_t)t->f->spec.queue;
    r.items_max = MR_MIN(AHEAD - t->ahead, ITEMS_MAX - t->out);
    r.wait_s = TAKE_WAIT_S;
    r.lease_s = LEASE_S;
    int err = mr_role_call(t->link, "/millrace.v1.Queues/Take", &r.base, CALL_TIMEOUT, stop,
        &millrace__v1__take_items_response__descriptor, &t->arena, &got, &e);
    if (err == MR_ENOENT) err = create(t, &e);
    if (err || !got) {
        t->retry_at = mr_time_after(mr_clock_now(), err ? RETRY : 0);
        return;
    }
    for (size_t i = 0; i < got->n_items; i++) {
        const Millrace__V1__QueueItem *q = got->items[i];
        struct taken item = {0};
        (void)snprintf(item.receipt, sizeof item.receipt, "%s", q->receipt);
        (void)mr_object_id_parse(mr_str(q->object), &item.object);
        give(t, &item);
    }
    if (!got->closed || got->n_items) return;
    give(t, &(struct taken){.err = MR_ENOENT});
    mr_flag_set(&t->f->stop, true);
}

static void answer_one(struct taker *t, struct answer *a)
{
    char *receipts[1] = {a->receipt};
    struct mr_error e;
    if (a->opened) {
        t->ahead--;
        return;
    }
    const struct mr_role_stop never = {NULL, NULL};
    int err;
    if (a->dead || a->back) {
        Millrace__V1__NackItemsRequest r = MILLRACE__V1__NACK_ITEMS_REQUEST__INIT;
        r.queue = (char *)(uintptr_t)t->f->spec.queue;
        r.receipts = receipts;
        r.n_receipts = 1;
        r.dead = a->dead;
        r.reason = a->reason;
        err = mr_role_call(t->link, "/millrace.v1.Queues/Nack", &r.base, CALL_TIMEOUT, never, NULL,
            NULL, NULL, &e);
    } else {
        Millrace__V1__AckItemsRequest r = MILLRACE__V1__ACK_ITEMS_REQUEST__INIT;
        r.queue = (char *)(uintptr_t)t->f->spec.queue;
        r.receipts = receipts;
        r.n_receipts = 1;
        err = mr_role_call(
            t->link, "/millrace.v1.Queues/Ack", &r.base, CALL_TIMEOUT, never, NULL, NULL, NULL, &e);
    }
    if (err)
        mr_log(MR_WARN, "queue.answer_lost", "queue=\"%s\" why=\"%s\"", t->f->spec.queue, e.text);
    t->out--;
}

static void taker_main(void *ctx)
{
    struct mr_queue_feed *f = ctx;
    struct taker t = {.f = f, .link = mr_role_link_open(f->spec.trainer, f->spec.bearer)};
    mr_pb_arena_init(&t.arena, ANSWER_BYTES_MAX);
    for (;;) {
        struct answer a;
        while (mr_inbox_take(f->out, &a, 1))
            answer_one(&t, &a);
        if (mr_inbox_is_closed(f->out) && mr_inbox_is_empty(f->out)) break;
        mr_time now = mr_clock_now();
        if (!mr_flag_is_set(&f->stop) && t.ahead < AHEAD && t.out < ITEMS_MAX &&
            now >= t.retry_at) {
            take(&t);
            continue;
        }
        mr_time until = mr_time_after(now, RETRY);
        if (mr_inbox_wait(f->out, until, &a, 1)) answer_one(&t, &a);
    }
    mr_pb_arena_fini(&t.arena);
    mr_role_link_close(&t.link);
}

/* ---- items ------------------------------------------------------------------------------------
 */

static void item_close(struct mr_queue_feed *f, struct item *it)
{
    mr_rows_close(&it->x);
    mr_rows_close(&it->y);
    mr_release(it->inlines[0]);
    mr_release(it->inlines[1]);
    mr_release(it->classes);
    if (it->view.p) mr_store_release(f->spec.store->store, &it->view);
}

static void item_answer(
    struct mr_queue_feed *f, struct item *it, bool back, const char *dead, mr_time deadline)
{
    struct answer a = {.back = back, .dead = dead != NULL};
    memcpy(a.receipt, it->from.receipt, sizeof a.receipt);
    if (dead) (void)snprintf(a.reason, sizeof a.reason, "%s", dead);
    (void)mr_inbox_push_wait(f->out, &a, deadline);
}

/* Part `i` of the list, as rows. */
static int half_open(struct mr_queue_feed *f, const struct mr_collection *c, uint32_t i,
    struct item *it, struct mr_rows **out, struct mr_error *e)
{
    static const char *const names[2] = {"x of the item", "y of the item"};
    struct mr_collection_part p;
    int err = mr_collection_part(c, i, &p, e);
    if (err) return err;
    if (!mr_object_id_is_none(p.id)) {
        const struct mr_arg arg = {.type = MR_ARG_OBJECT, .object = p.id};
        return mr_rows_open(names[i], &arg, &f->rows_store, out, e);
    }
    struct mr_value v;
    const struct mr_value_alloc heap = {mr_value_heap_alloc, &it->inlines[i]};
    err = mr_value_from_pack(p.inline_pack, &heap, &v, e);
    if (err) return err;
    if (!v.extent) return mr_fail(e, MR_EINVAL, "%s: expected a tensor", names[i]);
    return mr_rows_open_value(names[i], mr_str_of(v.extent, v.nbytes), &f->rows_store, out, e);
}

static int item_check(struct mr_queue_feed *f, struct item *it, struct mr_error *e)
{
    const struct mr_queue_feed_spec *s = &f->spec;
    bool is_index = false;
    it->rows = mr_rows_count(it->x);
    if (mr_rows_count(it->y) != it->rows)
        return mr_fail(e, MR_EINVAL, "x and y have not as many rows");
    int err = mr_rows_check_x(it->x, s->inputs, e);
    if (!err) err = mr_rows_check_y(it->y, s->outputs, &is_index, e);
    if (!err) err = mr_rows_map(it->x, 0, it->rows, e);
    if (!err) err = mr_rows_map(it->y, 0, it->rows, e);
    if (err) return err;
    if (f->y_bytes && is_index != f->is_index)
        return mr_fail(e, MR_EINVAL, "y is of another type than that of the items before");
    f->is_index = is_index;
    f->y_bytes = mr_rows_bytes(it->y);
    if (!is_index) {
        if (!f->y) f->y = mr_alloc_aligned(s->batch * f->y_bytes, 64);
        return MR_OK;
    }
    it->classes = mr_alloc_array(it->rows, sizeof *it->classes);
    return mr_rows_classes(it->y, 0, it->rows, s->outputs, it->classes, e);
}

static int item_open(struct mr_queue_feed *f, struct item *it, struct mr_error *e)
{
    struct mr_value v;
    struct mr_collection c;
    if (mr_object_id_is_none(it->from.object))
        return mr_fail(e, MR_EINVAL, "the item has no object: expected a list of x and y");
    int err = mr_role_get(f->spec.store, it->from.object, NULL, &it->view, e);
    if (!err) err = mr_value_check(mr_str_of(it->view.p, it->view.bytes), &v, e);
    if (err) return err;
    if (v.kind != MR_VALUE_COLLECTION)
        return mr_fail(e, MR_EINVAL,
            "expected a list of x and y, as queue.put makes it of two "
            "values, got a %s",
            mr_value_kind_name(v.kind));
    err = mr_collection_open(&v, &c, e);
    if (!err && c.count != 2)
        err = mr_fail(e, MR_EINVAL, "expected a list of x and y, got %u values", c.count);
    if (!err) err = half_open(f, &c, 0, it, &it->x, e);
    if (!err) err = half_open(f, &c, 1, it, &it->y, e);
    return err ? err : item_check(f, it, e);
}

/* Acknowledges the items whose rows are all in batches. */
static void give_up_used(struct mr_queue_feed *f)
{
    mr_time deadline = mr_time_after(mr_clock_now(), MR_SECOND);
    for (uint32_t i = 0; i < f->used; i++) {
        item_answer(f, &f->items[i], false, NULL, deadline);
        item_close(f, &f->items[i]);
    }
    f->items_count -= f->used;
    memmove(f->items, f->items + f->used, f->items_count * sizeof f->items[0]);
    f->used = 0;
}

/* Nothing came. A queue is empty for good only when nobody holds an item of it: rows that wait for
 * the rest of their batch are in the buffer, and their items go back as done. */
static int nothing_came(struct mr_queue_feed *f)
{
    mr_time now = mr_clock_now();
    if (!f->idle_since) f->idle_since = now;
    if (f->used && now - f->idle_since >= IDLE_MAX) give_up_used(f);
    return MR_EAGAIN;
}

/* The item to take rows from, opened; MR_EAGAIN, MR_ENOENT as mr_queue_feed_batch. */
static int item_next(
    struct mr_queue_feed *f, mr_time deadline, struct item **out, struct mr_error *e)
{
    while (f->used == f->items_count) {
        if (f->is_over) return MR_ENOENT;
        struct taken t;
        if (f->items_count == ITEMS_MAX)
            return mr_fail(e, MR_EINVAL,
                "queue \"%s\": its items are so small that %u of them make no batch of %u",
                f->spec.queue, ITEMS_MAX, f->spec.batch);
        if (!mr_inbox_wait(f->in, deadline, &t, 1)) return nothing_came(f);
        f->idle_since = 0;
        if (t.err) {
            f->is_over = true;
            continue;
        }
        const struct answer opened = {.opened = true};
        (void)mr_inbox_push_wait(f->out, &opened, mr_time_after(mr_clock_now(), MR_SECOND));
        struct item *it = &f->items[f->items_count];
        *it = (struct item){.from = t};
        struct mr_error why;
        int err = item_open(f, it, &why);
        if (err == MR_ECANCELED) return err;
        if (err) {
            mr_log(MR_WARN, "queue.item_dead", "queue=\"%s\" why=\"%s\"", f->spec.queue, why.text);
            item_answer(f, it, false, why.text, deadline);
            item_close(f, it);
            continue;
        }
        f->items_count++;
    }
    *out = &f->items[f->used];
    return MR_OK;
}

/* ---- batches ----------------------------------------------------------------------------------
 */

static void put_row(struct mr_queue_feed *f, struct item *it)
{
    uint64_t x_bytes = mr_rows_bytes(it->x);
    memcpy((char *)f->x + f->filled * x_bytes, mr_rows_at(it->x, it->at), x_bytes);
    if (f->is_index) {
        f->index[f->filled] = it->classes[it->at];
    } else {
        memcpy((char *)f->y + f->filled * f->y_bytes, mr_rows_at(it->y, it->at), f->y_bytes);
    }
    it->at++;
    f->filled++;
}

/* The queue is empty for good: the rows that are left, once more from their start. */
static bool fill_up(struct mr_queue_feed *f)
{
    if (!f->filled || !f->spec.keep) return false;
    uint64_t x_floats = f->spec.inputs;
    for (uint32_t i = 0; f->filled < f->spec.batch; i++, f->filled++) {
        memcpy(f->x + f->filled * x_floats, f->x + i * x_floats, x_floats * sizeof *f->x);
        if (f->is_index)
            f->index[f->filled] = f->index[i];
        else
            memcpy(
                (char *)f->y + f->filled * f->y_bytes, (char *)f->y + i * f->y_bytes, f->y_bytes);
    }
    return true;
}

int mr_queue_feed_batch(
    struct mr_queue_feed *f, mr_time deadline, struct mr_nn_batch *out, struct mr_error *e)
{
    while (f->filled < f->spec.batch) {
        struct item *it = NULL;
        int err = item_next(f, deadline, &it, e);
        if (err == MR_ENOENT && fill_up(f)) break;
        if (err) return err;
        while (f->filled < f->spec.batch && it->at < it->rows)
            put_row(f, it);
        if (it->at == it->rows) f->used++;
    }
    *out = (struct mr_nn_batch){.x = f->x,
        .y = {.index = f->is_index ? f->index : NULL, .rows = f->is_index ? NULL : f->y},
        .step = f->batches};
    return MR_OK;
}

void mr_queue_feed_done(struct mr_queue_feed *f)
{
    give_up_used(f);
    f->filled = 0;
    f->batches++;
}

void mr_queue_feed_let_go(struct mr_queue_feed *f)
{
    give_up_used(f);
}

bool mr_queue_feed_is_over(const struct mr_queue_feed *f)
{
    return mr_flag_is_set(&f->stop);
}

/* ---- begin and end ----------------------------------------------------------------------------
 */

static int rows_get(void *ctx, mr_object_id id, struct mr_store_view *out, struct mr_error *e)
{
    return mr_role_get(ctx, id, NULL, out, e);
}

static void rows_release(void *ctx, struct mr_store_view *view)
{
    const struct mr_role_store *s = ctx;
    mr_store_release(s->store, view);
}

int mr_queue_feed_open(
    const struct mr_queue_feed_spec *s, struct mr_queue_feed **out, struct mr_error *e)
{
    if (!s->store->store)
        return mr_fail(e, MR_ELOST, "this worker has no object store (--store) to take items from");
    struct mr_queue_feed *f = mr_alloc(sizeof *f);
    f->spec = *s;
    f->rows_store = (struct mr_feed_store){rows_get, rows_release, (void *)(uintptr_t)s->store};
    f->x = mr_alloc_aligned(s->batch * s->inputs * sizeof *f->x, 64);
    f->index = mr_alloc_array(s->batch, sizeof *f->index);
    f->in = mr_inbox_new(2 * ITEMS_MAX, sizeof(struct taken));
    f->out = mr_inbox_new(8 * ITEMS_MAX, sizeof(struct answer));
    f->thread = mr_thread_start("queue-feed", taker_main, f);
    *out = f;
    return MR_OK;
}

void mr_queue_feed_close(struct mr_queue_feed **feed)
{
    struct mr_queue_feed *f = *feed;
    if (!f) return;
    mr_time deadline = mr_time_after(mr_clock_now(), MR_SECOND);
    mr_flag_set(&f->stop, true);
    for (uint32_t i = 0; i < f->items_count; i++) {
        item_answer(f, &f->items[i], true, NULL, deadline);
        item_close(f, &f->items[i]);
    }
    struct item unused = {0};
    while (mr_inbox_take(f->in, &unused.from, 1))
        if (!unused.from.err) item_answer(f, &unused, true, NULL, deadline);
    mr_inbox_close(f->out);
    mr_thread_join(&f->thread);
    mr_inbox_free(&f->in);
    mr_inbox_free(&f->out);
    mr_release(f->x);
    mr_release(f->y);
    mr_release(f->index);
    mr_release(f);
    *feed = NULL;
}
