/* Gathers batches from the rows of items. Remembers the items of each batch until the servers or
 * ranks have learned the batch. */
#include "train/feed/queue.h"

#include "base/alloc.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "train/feed/lease.h"
#include "store/object/collection.h"
#include "store/object/value.h"

#define ITEMS_MAX 256u  /* limit of items in one batch */
#define UNSURE_MAX 512u /* limit of items in batches that are neither learned nor given up */

/* An item that waits for mr_queue_feed_settle: its last row is in batch number `batch`, which is
 * neither learned nor given up. */
struct unsure {
    struct mr_taken item;
    uint64_t batch;
};

struct item { /* an item whose x and y are open */
    struct mr_taken from;
    struct mr_store_view view;
    struct mr_rows *x, *y;
    void *inlines[2];
    int32_t *classes;
    uint64_t rows, at;
};

struct mr_queue_feed {
    struct mr_queue_feed_spec spec;
    struct mr_feed_store rows_store;
    struct item *items; /* all rows of the first `used` items are in the current batch */
    uint32_t items_count, used;
    struct unsure *unsure; /* items of earlier batches, in order of their batches */
    uint32_t unsure_count;
    float *x, *y;
    int32_t *index;
    bool is_index;
    uint64_t y_bytes; /* size of one row of y */
    uint32_t filled;  /* how many rows the current batch has so far */
    uint64_t batches;
    uint64_t item_batches; /* batches for which the rows of the largest item suffice */
    mr_time begun;         /* when the current batch was complete; 0: rows are still missing */
    mr_duration pace;      /* smoothed time from `begun` until mr_queue_feed_done */
    struct mr_taker *taker;
};

/* ---- items ----------------------------------------------------------------------------------- */

static void item_close(struct mr_queue_feed *f, struct item *it)
{
    mr_rows_close(&it->x);
    mr_rows_close(&it->y);
    mr_release(it->inlines[0]);
    mr_release(it->inlines[1]);
    mr_release(it->classes);
    if (it->view.p) mr_store_release(f->spec.store->store, &it->view);
}

/* Opens part `i` of the item: 0 is x, 1 is y. */
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
        return mr_fail(e, MR_EINVAL, "x has %llu rows and y %llu; expected one y for each x",
            (unsigned long long)it->rows, (unsigned long long)mr_rows_count(it->y));
    int err = mr_rows_check_x(it->x, s->inputs, e);
    if (!err) err = mr_rows_check_y(it->y, s->outputs, &is_index, e);
    const struct mr_row_range all = {0, it->rows};
    if (!err) err = mr_rows_map(it->x, &all, 1, e);
    if (!err) err = mr_rows_map(it->y, &all, 1, e);
    if (err) return err;
    if (f->y_bytes && is_index != f->is_index)
        return mr_fail(e, MR_EINVAL, "y is of another type than that of the items before");
    f->is_index = is_index;
    f->item_batches = MR_MAX(f->item_batches, it->rows / f->spec.batch);
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
    if (!err && f->spec.is_drawn)
        *f->spec.is_drawn |= mr_rows_is_drawn(it->x) || mr_rows_is_drawn(it->y);
    return err ? err : item_check(f, it, e);
}

/* Sets `*out` to the item from which the next row comes. Opens the next item if necessary. An
 * unusable item is put aside as dead. MR_EAGAIN: no item came in time. */
static int item_next(
    struct mr_queue_feed *f, mr_time deadline, struct item **out, struct mr_error *e)
{
    while (f->used == f->items_count) {
        if (f->items_count == ITEMS_MAX)
            return mr_fail(e, MR_EINVAL,
                "queue \"%s\": its items are so small that %u of them make no batch of %u",
                f->spec.queue, ITEMS_MAX, f->spec.batch);
        struct mr_taken t;
        if (!mr_taker_next(f->taker, deadline, &t)) return MR_EAGAIN;
        struct item *it = &f->items[f->items_count];
        *it = (struct item){.from = t};
        struct mr_error why;
        int err = item_open(f, it, &why);
        if (err) {
            bool is_bad = err != MR_ECANCELED;
            if (is_bad)
                mr_log(
                    MR_WARN, "queue.item_dead", "queue=\"%s\" why=\"%s\"", f->spec.queue, why.text);
            mr_taker_answer(
                f->taker, &t, is_bad ? MR_TAKEN_DEAD : MR_TAKEN_BACK, is_bad ? why.text : NULL);
            item_close(f, it);
            if (!is_bad) return err;
            continue;
        }
        f->items_count++;
    }
    *out = &f->items[f->used];
    return MR_OK;
}

/* Closes the items whose rows are all in the batch, and remembers them: they are acknowledged when
 * the batch was learned. */
static void used_take_away(struct mr_queue_feed *f)
{
    for (uint32_t i = 0; i < f->used; i++) {
        f->unsure[f->unsure_count++] = (struct unsure){f->items[i].from, f->batches};
        item_close(f, &f->items[i]);
    }
    f->items_count -= f->used;
    memmove(f->items, f->items + f->used, f->items_count * sizeof f->items[0]);
    f->used = 0;
}

/* ---- batches --------------------------------------------------------------------------------- */

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

/* Completes the batch with copies of its own rows, from its start. */
static void fill_up(struct mr_queue_feed *f)
{
    uint64_t x_floats = f->spec.inputs;
    for (uint32_t i = 0; f->filled < f->spec.batch; i++, f->filled++) {
        memcpy(f->x + f->filled * x_floats, f->x + i * x_floats, x_floats * sizeof *f->x);
        if (f->is_index)
            f->index[f->filled] = f->index[i];
        else
            memcpy(
                (char *)f->y + f->filled * f->y_bytes, (char *)f->y + i * f->y_bytes, f->y_bytes);
    }
}

/* Called when no item came by the deadline. MR_OK: the batch was completed with copies of its own
 * rows. MR_EAGAIN: there is no batch yet. MR_ENOENT: no batch will come. */
static int nothing_came(struct mr_queue_feed *f)
{
    enum mr_taker_state s = mr_taker_state(f->taker);
    if (!f->filled) return s == MR_TAKER_OVER ? MR_ENOENT : MR_EAGAIN;
    if (s == MR_TAKER_GOES_ON) return MR_EAGAIN;
    if (f->spec.keep || s == MR_TAKER_FULL) {
        fill_up(f);
        return MR_OK;
    }
    /* data.remainder is "drop", so the incomplete last batch is not learned */
    for (uint32_t i = 0; i < f->used; i++) {
        mr_taker_answer(f->taker, &f->items[i].from, MR_TAKEN_DONE, NULL);
        item_close(f, &f->items[i]);
    }
    /* No open item has rows left, because the batch has taken all rows. So all items are closed. */
    f->items_count = f->used = f->filled = 0;
    return MR_EAGAIN;
}

int mr_queue_feed_batch(
    struct mr_queue_feed *f, mr_time deadline, struct mr_nn_batch *out, struct mr_error *e)
{
    while (f->filled < f->spec.batch) {
        struct item *it = NULL;
        if (f->unsure_count + f->items_count >= UNSURE_MAX) return MR_EAGAIN;
        int err = item_next(f, deadline, &it, e);
        if (err == MR_EAGAIN) {
            err = nothing_came(f);
            if (!err) break;
        }
        if (err) return err;
        while (f->filled < f->spec.batch && it->at < it->rows)
            put_row(f, it);
        if (it->at == it->rows) f->used++;
    }
    if (!f->begun) f->begun = mr_clock_now();
    *out = (struct mr_nn_batch){.x = f->x,
        .y = {.index = f->is_index ? f->index : NULL, .rows = f->is_index ? NULL : f->y},
        .step = f->batches};
    return MR_OK;
}

uint64_t mr_queue_feed_done(struct mr_queue_feed *f)
{
    /* The time is bounded, because a pause of the session says nothing about the pace. */
    mr_duration took = MR_MIN(mr_clock_now() - f->begun, 4 * f->pace + MR_SECOND);
    f->pace = (f->pace * 7 + took) / 8;
    f->begun = 0;
    mr_taker_set_pace(f->taker, f->pace, f->item_batches);
    f->batches++;
    used_take_away(f);
    f->filled = 0;
    return f->batches;
}

void mr_queue_feed_settle(struct mr_queue_feed *f, uint64_t batch, bool learned)
{
    uint32_t n = 0;
    while (n < f->unsure_count && f->unsure[n].batch <= batch) {
        mr_taker_answer(
            f->taker, &f->unsure[n].item, learned ? MR_TAKEN_DONE : MR_TAKEN_BACK, NULL);
        n++;
    }
    if (!n) return;
    f->unsure_count -= n;
    memmove(f->unsure, f->unsure + n, f->unsure_count * sizeof f->unsure[0]);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static int rows_get(
    void *ctx, mr_object_id id, const char *source, struct mr_store_view *out, struct mr_error *e)
{
    (void)source;
    return mr_role_get(ctx, id, NULL, out, e);
}

static void rows_release(void *ctx, struct mr_store_view *view)
{
    const struct mr_role_store *s = ctx;
    mr_store_release(s->store, view);
}

static void rows_room(void *ctx, uint64_t *memory, uint64_t *pinned)
{
    mr_role_room(ctx, memory, pinned);
}

int mr_queue_feed_open(
    const struct mr_queue_feed_spec *s, struct mr_queue_feed **out, struct mr_error *e)
{
    if (!s->store->store)
        return mr_fail(e, MR_ELOST, "this worker has no object store (--store) to take items from");
    struct mr_queue_feed *f = mr_alloc(sizeof *f);
    f->spec = *s;
    f->rows_store =
        (struct mr_feed_store){rows_get, rows_release, mr_unconst(s->store), rows_room, NULL};
    f->x = mr_alloc_aligned(s->batch * s->inputs * sizeof *f->x, 64);
    f->index = mr_alloc_array(s->batch, sizeof *f->index);
    f->items = mr_alloc_array(ITEMS_MAX, sizeof *f->items);
    f->unsure = mr_alloc_array(UNSURE_MAX + ITEMS_MAX, sizeof *f->unsure);
    f->taker = mr_taker_start(s->trainer, s->credential, s->queue);
    *out = f;
    return MR_OK;
}

void mr_queue_feed_close(struct mr_queue_feed **feed)
{
    struct mr_queue_feed *f = *feed;
    if (!f) return;
    mr_queue_feed_settle(f, UINT64_MAX, false);
    for (uint32_t i = 0; i < f->items_count; i++) {
        mr_taker_answer(f->taker, &f->items[i].from, MR_TAKEN_BACK, NULL);
        item_close(f, &f->items[i]);
    }
    mr_taker_stop(&f->taker, f->spec.store->stop);
    mr_release(f->items);
    mr_release(f->unsure);
    mr_release(f->x);
    mr_release(f->y);
    mr_release(f->index);
    mr_release(f);
    *feed = NULL;
}
