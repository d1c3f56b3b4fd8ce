/* Opens an array, checks that its partitions fit together, and maps those partitions that are
 * needed. */
#include "train/feed/rows.h"

#include "base/alloc.h"
#include "base/units.h"
#include "store/object/collection.h"
#include "store/object/value.h"

#include <stdio.h>

struct part {
    uint64_t first, count; /* range of rows */
    uint64_t bytes;        /* size of the object */
    /* address of another store that has the object; NULL: this node has the object, or no store is
     * known to have it */
    const char *source;
    mr_object_id id; /* no id: the partition is inline */
    struct mr_str inline_pack;
    struct mr_store_view view;
    void *copy;       /* memory of an inline partition */
    const char *data; /* NULL: not mapped yet */
    uint64_t stride;
};

struct mr_rows {
    const char *what;
    const struct mr_feed_store *store;
    struct mr_store_view view; /* a view of the whole value; not used if the value was lent */
    enum mr_dtype dtype;
    unsigned ndim;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    uint64_t row_bytes, row_elements;
    struct part *parts; /* partitions in order of rows, without gaps */
    uint32_t parts_count;
    bool is_drawn;
    struct mr_feed_moved moved;
};

void mr_rows_close(struct mr_rows **rows)
{
    struct mr_rows *r = *rows;
    if (!r) return;
    for (uint32_t i = 0; i < r->parts_count; i++) {
        if (r->parts[i].view.p) r->store->release(r->store->ctx, &r->parts[i].view);
        mr_release(r->parts[i].copy);
    }
    if (r->view.p) r->store->release(r->store->ctx, &r->view);
    mr_release(r->parts);
    mr_release(r);
    *rows = NULL;
}

uint64_t mr_rows_count(const struct mr_rows *r)
{
    return r->shape[0];
}

uint64_t mr_rows_bytes(const struct mr_rows *r)
{
    return r->row_bytes;
}

/* Computes the size of one row from the shape of the array. */
static int row_fill(struct mr_rows *r, struct mr_error *e)
{
    if (!r->ndim) return mr_fail(e, MR_EINVAL, "%s: a single number has no rows", r->what);
    r->row_elements = 1;
    for (unsigned i = 1; i < r->ndim; i++)
        r->row_elements *= r->shape[i]; /* cannot overflow: the shape was checked */
    r->row_bytes = r->row_elements * mr_dtype_bytes(r->dtype);
    if (!r->shape[0] || !r->row_elements) return mr_fail(e, MR_EINVAL, "%s: it is empty", r->what);
    return MR_OK;
}

/* Sets the data of a partition. Each of its rows has to be contiguous, because rows are copied as a
 * whole. */
static int part_take(
    const struct mr_rows *r, struct part *p, const struct mr_tensor *t, struct mr_error *e)
{
    bool same = t->dtype == r->dtype && t->ndim == r->ndim && t->shape[0] == p->count;
    for (unsigned i = 1; i < t->ndim && same; i++)
        same = t->shape[i] == r->shape[i];
    if (!same)
        return mr_fail(e, MR_EFORMAT,
            "%s: the partition from row %llu is not what the collection "
            "says of it",
            r->what, (unsigned long long)p->first);
    struct mr_tensor row = mr_tensor_row(t, 0);
    if (!mr_tensor_is_contiguous(&row) || t->strides[0] < 0)
        return mr_fail(
            e, MR_EINVAL, "%s: the numbers of a row are not contiguous in memory", r->what);
    p->data = t->data;
    p->stride = (uint64_t)t->strides[0];
    return MR_OK;
}

static int tensor_open(struct mr_rows *r, const struct mr_value *v, struct mr_error *e)
{
    r->dtype = v->tensor.dtype;
    r->ndim = v->tensor.ndim;
    memcpy(r->shape, v->tensor.shape, sizeof r->shape);
    int err = row_fill(r, e);
    if (err) return err;
    r->parts = mr_alloc(sizeof *r->parts);
    r->parts_count = 1;
    r->parts[0].count = r->shape[0];
    return part_take(r, &r->parts[0], &v->tensor, e);
}

static int collection_open(struct mr_rows *r, const struct mr_value *v, struct mr_error *e)
{
    struct mr_collection c;
    int err = mr_collection_open(v, &c, e);
    if (err) return err;
    if (c.kind != MR_VALUE_TENSOR || c.axis != 0)
        return mr_fail(
            e, MR_EINVAL, "%s: expected a collection of tensors cut along axis 0 only", r->what);
    if (c.count > MR_FEED_PARTS_MAX)
        return mr_fail(
            e, MR_ELIMIT, "%s: %u partitions, at most %d", r->what, c.count, MR_FEED_PARTS_MAX);
    r->dtype = c.dtype;
    r->ndim = c.ndim;
    if (c.ndim) memcpy(r->shape, c.shape, c.ndim * sizeof *c.shape);
    err = row_fill(r, e);
    r->parts = mr_alloc_array(c.count + 1, sizeof *r->parts);
    uint64_t next = 0;
    for (uint32_t i = 0; i < c.count && !err; i++) {
        struct mr_collection_part p;
        err = mr_collection_part(&c, i, &p, e);
        if (err) return err;
        if (p.start[0] != next)
            return mr_fail(e, MR_EFORMAT,
                "%s: partition %u does not begin where the one before "
                "ends",
                r->what, i);
        next += p.shape[0];
        if (!p.shape[0]) continue;
        r->parts[r->parts_count++] = (struct part){.first = p.start[0],
            .count = p.shape[0],
            .bytes = p.nbytes,
            .id = p.id,
            .inline_pack = p.inline_pack};
    }
    if (!err && next != r->shape[0])
        err = mr_fail(e, MR_EFORMAT, "%s: its partitions have %llu rows, the whole %llu", r->what,
            (unsigned long long)next, (unsigned long long)r->shape[0]);
    return err;
}

int mr_rows_open_value(const char *what, struct mr_str extent, const struct mr_feed_store *store,
    struct mr_rows **out, struct mr_error *e)
{
    MR_AUTO(mr_rows_close) struct mr_rows *r = mr_alloc(sizeof *r);
    r->what = what;
    r->store = store;
    struct mr_value v;
    int err = mr_value_check(extent, &v, e);
    if (err) return err;
    r->is_drawn = v.is_drawn;
    if (v.kind == MR_VALUE_TENSOR) {
        err = tensor_open(r, &v, e);
    } else if (v.kind == MR_VALUE_COLLECTION) {
        err = collection_open(r, &v, e);
    } else {
        err = mr_fail(e, MR_EINVAL, "%s: expected a tensor or a collection of tensors, got a %s",
            what, mr_value_kind_name(v.kind));
    }
    if (err) return err;
    *out = MR_STEAL(r);
    return MR_OK;
}

int mr_rows_open(const char *what, const struct mr_arg *arg, const struct mr_feed_store *store,
    struct mr_rows **out, struct mr_error *e)
{
    if (arg->type == MR_ARG_TENSOR || arg->type == MR_ARG_VALUE)
        return mr_rows_open_value(what, arg->extent, store, out, e);
    if (arg->type != MR_ARG_OBJECT)
        return mr_fail(e, MR_EINVAL, "%s: expected a tensor or a collection of tensors", what);
    struct mr_store_view view = {0};
    const char *source = NULL;
    if (store->find) store->find(store->ctx, &arg->object, 1, &source);
    int err = store->get(store->ctx, arg->object, source, &view, e);
    if (err) return err;
    err = mr_rows_open_value(what, mr_str_of(view.p, view.bytes), store, out, e);
    if (err) {
        store->release(store->ctx, &view);
        return err;
    }
    (*out)->view = view;
    bool is_whole = (*out)->parts_count == 1 && (*out)->parts[0].data;
    if (is_whole && view.is_pulled) (*out)->moved = (struct mr_feed_moved){1, view.bytes};
    return MR_OK;
}

struct mr_feed_moved mr_rows_moved(const struct mr_rows *r)
{
    return r->moved;
}

uint32_t mr_rows_parts(const struct mr_rows *r)
{
    return r->parts_count;
}

mr_object_id mr_rows_part(const struct mr_rows *r, uint32_t part, struct mr_row_part *out)
{
    const struct part *p = &r->parts[part];
    *out = (struct mr_row_part){.rows = p->count, .bytes = p->bytes};
    return p->id;
}

bool mr_rows_is_drawn(const struct mr_rows *r)
{
    return r->is_drawn;
}

static int part_map(struct mr_rows *r, struct part *p, struct mr_error *e)
{
    struct mr_value v;
    int err;
    if (mr_object_id_is_none(p->id)) {
        const struct mr_value_alloc heap = {mr_value_heap_alloc, &p->copy};
        err = mr_value_from_pack(p->inline_pack, &heap, &v, e);
    } else {
        err = r->store->get(r->store->ctx, p->id, p->source, &p->view, e);
        if (!err && p->view.is_pulled) {
            r->moved.parts++;
            r->moved.bytes += p->view.bytes;
        }
        if (!err) err = mr_value_check(mr_str_of(p->view.p, p->view.bytes), &v, e);
    }
    if (err) return err;
    if (v.kind != MR_VALUE_TENSOR)
        return mr_fail(e, MR_EFORMAT, "%s: the partition from row %llu is no tensor", r->what,
            (unsigned long long)p->first);
    return part_take(r, p, &v.tensor, e);
}

/* Returns the partition that has row `i`. */
static uint32_t part_of(const struct mr_rows *r, uint64_t i)
{
    uint32_t low = 0, high = r->parts_count - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (r->parts[middle].first <= i)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Makes the error for data that do not fit into the store. Mapped partitions stay pinned as long as
 * the feed lives, in all roles of the node. So data that a job could read from disk part by part
 * have to fit into memory here. */
static int no_room(const struct mr_rows *r, uint64_t n, struct mr_error *e)
{
    uint64_t memory = 0, pinned = 0;
    char all[MR_BYTES_TEXT_MAX], mine[MR_BYTES_TEXT_MAX], used[MR_BYTES_TEXT_MAX],
        room[MR_BYTES_TEXT_MAX];
    if (r->store->room) r->store->room(r->store->ctx, &memory, &pinned);
    mr_bytes_text(mr_rows_count(r) * mr_rows_bytes(r), all);
    mr_bytes_text(n * mr_rows_bytes(r), mine);
    mr_bytes_text(pinned, used);
    mr_bytes_text(memory, room);
    return mr_fail(e, MR_ELIMIT,
        "%s: the data do not fit into memory: of %s in all, this role pins its share of %s while it "
        "runs, as the other roles do; the object store of its node has %s, of which %s are in use: "
        "give it more (--memory), spread the roles over more nodes, or take fewer rows",
        r->what, all, mine, room, used);
}

/* Called after a get has timed out. True: the store was out of memory. False: another node did not
 * answer. */
static bool is_full(const struct mr_rows *r, const struct part *p)
{
    uint64_t memory = 0, pinned = 0;
    if (r->store->room) r->store->room(r->store->ctx, &memory, &pinned);
    uint64_t usable = memory - memory / 8; /* fragmentation may take an eighth */
    return memory && pinned + p->count * mr_rows_bytes(r) > usable;
}

static bool is_wanted(const struct part *p)
{
    return !p->data && !p->source && !mr_object_id_is_none(p->id);
}

/* Asks in one call which other stores have the partitions of these rows that are not mapped yet. */
static void find_all(struct mr_rows *r, const struct mr_row_range *ranges, uint32_t count)
{
    uint32_t n = 0, *at = mr_alloc_array(r->parts_count + 1, sizeof *at);
    mr_object_id *ids = mr_alloc_array(r->parts_count + 1, sizeof *ids);
    const char **sources = mr_alloc_array(r->parts_count + 1, sizeof *sources);
    uint32_t next = 0; /* never falls, since the ranges ascend */
    for (uint32_t k = 0; k < count; k++) {
        uint64_t behind = ranges[k].first + ranges[k].count;
        next = MR_MAX(next, part_of(r, ranges[k].first));
        for (; next < r->parts_count && r->parts[next].first < behind; next++) {
            if (!is_wanted(&r->parts[next])) continue;
            at[n] = next;
            ids[n++] = r->parts[next].id;
        }
    }
    if (n) r->store->find(r->store->ctx, ids, n, sources);
    for (uint32_t i = 0; i < n; i++)
        r->parts[at[i]].source = sources[i];
    mr_release(at);
    mr_release(ids);
    mr_release(sources);
}

static int map_range(
    struct mr_rows *r, const struct mr_row_range *range, uint64_t all, struct mr_error *e)
{
    uint64_t behind = range->first + range->count;
    for (uint32_t i = part_of(r, range->first); i < r->parts_count && r->parts[i].first < behind;
         i++) {
        int err = r->parts[i].data ? MR_OK : part_map(r, &r->parts[i], e);
        if (err == MR_ETIMEOUT && is_full(r, &r->parts[i])) err = MR_ELIMIT;
        if (err == MR_ELIMIT && !mr_object_id_is_none(r->parts[i].id)) return no_room(r, all, e);
        if (err) return err;
    }
    return MR_OK;
}

int mr_rows_map(
    struct mr_rows *r, const struct mr_row_range *ranges, uint32_t count, struct mr_error *e)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++)
        all += ranges[i].count;
    if (r->store->find) find_all(r, ranges, count);
    int err = MR_OK;
    for (uint32_t i = 0; i < count && !err; i++)
        err = map_range(r, &ranges[i], all, e);
    return err;
}

const void *mr_rows_at(const struct mr_rows *r, uint64_t i)
{
    const struct part *p = &r->parts[r->parts_count == 1 ? 0 : part_of(r, i)];
    return p->data + (i - p->first) * p->stride;
}

int mr_rows_check_x(const struct mr_rows *r, uint64_t inputs, struct mr_error *e)
{
    char shape[MR_TENSOR_TEXT_MAX];
    mr_tensor_text(r->dtype, r->ndim, r->shape, shape);
    if (r->dtype != MR_DTYPE_F32)
        return mr_fail(e, MR_EINVAL,
            "%s: expected float32 (see the operators array.scale and "
            "array.astype), got %s",
            r->what, shape);
    if (r->row_elements != inputs)
        return mr_fail(e, MR_EINVAL,
            "%s: expected %llu numbers a row, as the model's input has, got %s", r->what,
            (unsigned long long)inputs, shape);
    return MR_OK;
}

int mr_rows_check_y(const struct mr_rows *r, uint64_t outputs, bool *is_index, struct mr_error *e)
{
    char shape[MR_TENSOR_TEXT_MAX];
    mr_tensor_text(r->dtype, r->ndim, r->shape, shape);
    *is_index = mr_dtype_is_integer(r->dtype) || r->dtype == MR_DTYPE_BOOL;
    if (*is_index && r->row_elements == 1) return MR_OK;
    if (!*is_index && r->dtype == MR_DTYPE_F32 && r->row_elements == outputs) return MR_OK;
    return mr_fail(e, MR_EINVAL,
        "%s: expected class numbers (integers, one a row) or float32 rows of %llu, as the model's "
        "output has, got %s",
        r->what, (unsigned long long)outputs, shape);
}

int mr_rows_classes(const struct mr_rows *r, uint64_t first, uint64_t n, uint64_t outputs,
    int32_t *out, struct mr_error *e)
{
    for (uint64_t i = 0; i < n; i++) {
        double v = mr_dtype_get_f64(r->dtype, mr_rows_at(r, first + i));
        double low = outputs == 1 ? INT32_MIN : 0;
        double high = outputs == 1 ? INT32_MAX : (double)outputs - 1;
        if (!(v >= low && v <= high))
            return mr_fail(e, MR_EINVAL,
                "%s: row %llu is class %.0f, but the model has classes 0 "
                "to %.0f",
                r->what, (unsigned long long)(first + i), v, high);
        out[i] = (int32_t)v;
    }
    return MR_OK;
}
