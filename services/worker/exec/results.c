/* Results of an item. A small result travels inline as a pack. Other results are made in the object
 * store and stay there. */
#include "services/worker/exec/internal.h"

#include "base/limits.h"
#include "base/pack.h"
#include "host/clock.h"

#define ROOM_TIMEOUT (60 * MR_SECOND) /* the wait for the store to spill other objects */

static int draft_new(struct mr_executor *x, uint64_t bytes, struct mr_error *e)
{
    mr_executor_result_drop(x);
    if (!x->env->store)
        return mr_fail(e, MR_ELIMIT,
            "the result has %llu bytes, and this worker has no object store (--store) for more than "
            "%zu",
            (unsigned long long)bytes, MR_INLINE_VALUE_BYTES_MAX);
    int err = mr_store_create_or_stop(
        x->env->store, bytes, ROOM_TIMEOUT, mr_executor_stop_of(x), &x->draft, e);
    x->has_draft = !err;
    if (err == MR_ELIMIT) x->lacks_bytes = bytes;
    return mr_executor_store_answered(x, err);
}

void mr_executor_result_drop(struct mr_executor *x)
{
    mr_executor_local_value_drop(x);
    if (x->has_draft) mr_store_abort(x->env->store, &x->draft);
    x->has_draft = false;
}

static bool wants_object(const struct mr_executor *x)
{
    return x->item->want_object || x->item->persist;
}

void *mr_executor_alloc_result(void *ctx, uint64_t bytes, struct mr_error *e)
{
    struct mr_executor *x = ctx;
    mr_executor_result_drop(x);
    /* A result that may be small enough to travel inline is made in the executor's memory: it would
     * be copied anyway. */
    if (bytes <= MR_SMALL_RESULT_BYTES && !(wants_object(x) && x->env->store)) return x->small;
    void *local = mr_executor_local_value_take(x, bytes);
    if (local) return local;
    mr_time from = mr_clock_now();
    int err = draft_new(x, bytes, e);
    mr_duration took = mr_clock_now() - from;
    x->output_ns += took;
    x->room_ns += err == MR_ELIMIT ? took : err ? 0 : MR_MIN(x->draft.waited, took);
    return err ? NULL : x->draft.p;
}

/* Seals the draft in the store as the item's result. */
static int draft_seal(struct mr_executor *x, struct mr_error *e)
{
    struct mr_strand_item *item = x->item;
    struct mr_store_owner owner = {item->job, item->index, item->attempt};
    mr_object_id id = x->draft.id;
    uint64_t bytes = x->draft.bytes;
    x->has_draft = false;
    int err = mr_store_seal(x->env->store, &x->draft, &owner, NULL, e);
    if (!err && item->persist) err = mr_remote_persist(x->env, id, item, mr_executor_stop_of(x), e);
    if (mr_executor_store_answered(x, err)) return err;
    item->result.object = id;
    item->result.object_bytes = bytes;
    return MR_OK;
}

int mr_executor_put(struct mr_executor *x, struct mr_str extent, struct mr_error *e)
{
    int err = draft_new(x, extent.n, e);
    if (err) return err;
    memcpy(x->draft.p, extent.p, extent.n);
    return draft_seal(x, e);
}

static int put_pack(struct mr_executor *x, struct mr_str pack, bool is_drawn, struct mr_error *e)
{
    uint64_t bytes = mr_value_pack_size(pack.n);
    if (!bytes) return mr_fail(e, MR_ELIMIT, "the result is larger than an object may be");
    int err = draft_new(x, bytes, e);
    if (err) return err;
    void *at = mr_value_pack_build(x->draft.p, pack.n);
    memcpy(at, pack.p, pack.n);
    if (is_drawn) mr_value_mark_drawn(x->draft.p);
    return draft_seal(x, e);
}

/* Makes a pack the item's result: inline if it is small, else in the store. In the store, a pack
 * of extension type MR_PACK_EXT_VALUE is stored as the value that the pack contains. */
static int result_pack(struct mr_executor *x, struct mr_str pack, bool is_drawn, struct mr_error *e)
{
    if (pack.n <= MR_INLINE_VALUE_BYTES_MAX && !wants_object(x)) {
        x->item->result.pack = mr_run_keep(x->run, pack);
        return MR_OK;
    }
    struct mr_pack_reader r = mr_pack_read(pack);
    struct mr_pack_item item;
    int err = mr_pack_next(&r, &item);
    if (err) return mr_fail(e, MR_EINTERNAL, "the operator returned bytes that are no value");
    if (item.type == MR_PACK_EXT && item.ext == MR_PACK_EXT_VALUE)
        return mr_executor_put(x, item.bytes, e);
    return put_pack(x, pack, is_drawn, e);
}

static int result_extent(struct mr_executor *x, struct mr_str extent, struct mr_error *e)
{
    if (x->made.p) {
        mr_executor_local_value_keep(x, extent.n);
        return MR_OK;
    }
    if (x->has_draft) {
        if (extent.n < x->draft.bytes) x->draft.bytes = extent.n;
        return draft_seal(x, e);
    }
    struct mr_value v;
    int err = mr_value_check(extent, &v, e);
    if (err) return err;
    if (!wants_object(x)) {
        mr_buf_clear(&x->text);
        err = mr_value_to_pack(&v, &x->text);
        if (!err) x->item->result.pack = mr_run_keep(x->run, mr_buf_str(&x->text));
        if (err != MR_ETOOBIG) return err;
    }
    return mr_executor_put(x, extent, e);
}

static int take_result(struct mr_executor *x, const struct mr_op_result *result, struct mr_error *e)
{
    x->item->result.end = MR_STRAND_DONE;
    switch (result->kind) {
    case MR_OP_RESULT_NONE:
        return mr_fail(e, MR_EINTERNAL, "%s: returned nothing", x->env->ops[x->item->op]->name);
    case MR_OP_RESULT_PACK: return result_pack(x, result->pack, result->is_drawn, e);
    case MR_OP_RESULT_EXTENT: return result_extent(x, result->extent, e);
    case MR_OP_RESULT_INPUT: {
        /* Makes a copy, because each value of a job is held and released by itself. */
        const struct mr_op_input *in = &x->inputs[result->input];
        struct mr_str extent = in->extent;
        bool is_head = x->env->ops[x->item->op]->flags & MR_OP_BY_REFERENCE;
        if (in->pack.n) return result_pack(x, in->pack, false, e);
        int err = is_head ? mr_executor_load(x, in->object, &extent, e) : MR_OK;
        return err ? err : result_extent(x, extent, e);
    }
    }
    return MR_EINTERNAL;
}

/* True: the result goes to the store. False: the result stays in the executor's memory. That takes
 * less time than reading the clock does. So the caller measures the time only for the store. */
static bool is_stored(const struct mr_executor *x, const struct mr_op_result *result)
{
    if (x->has_draft || wants_object(x) || result->kind == MR_OP_RESULT_INPUT) return true;
    size_t n = result->kind == MR_OP_RESULT_PACK ? result->pack.n : result->extent.n;
    return n > MR_INLINE_VALUE_BYTES_MAX && !x->made.p;
}

int mr_executor_result(struct mr_executor *x, const struct mr_op_result *result, struct mr_error *e)
{
    if (!is_stored(x, result)) return take_result(x, result, e);
    mr_time from = mr_clock_now();
    int err = take_result(x, result, e);
    x->output_ns += mr_clock_now() - from;
    return err;
}
