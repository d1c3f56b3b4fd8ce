/* Inputs of an item: packs as they are, objects as pinned views, and results of earlier items of
 * the strand. Also a summary of the inputs for the report of a failure. */
#include "services/worker/exec/internal.h"

#include "base/alloc.h"
#include "base/pack.h"
#include "base/units.h"
#include "host/clock.h"
#include "graph/args.h"
#include "store/object/value_text.h"

#include <stdio.h>

#define GET_TIMEOUT (10 * MR_SECOND) /* the wait for an object that must be read back from disk */
#define SUMMARY_BYTES_MAX ((size_t)400)

static void views_room(struct mr_executor *x, uint32_t n)
{
    if (n <= x->views_room) return;
    uint32_t room = MR_MAX(n, x->views_room * 2);
    x->views = mr_grow(x->views, x->views_room * sizeof *x->views, room * sizeof *x->views);
    x->views_room = room;
}

static void inputs_room(struct mr_executor *x, uint32_t n)
{
    views_room(x, n);
    if (n <= x->inputs_room) return;
    uint32_t room = MR_MAX(n, x->inputs_room * 2);
    x->inputs = mr_grow(x->inputs, x->inputs_room * sizeof *x->inputs, room * sizeof *x->inputs);
    x->inputs_room = room;
}

/* Writes the result of an item whose input cannot be read. `err` has the reason. MR_ELIMIT: the
 * store has no memory to read the object back from disk; the object is not lost. MR_ECANCELED: the
 * task was cancelled. Other errors: the object is gone. */
static int input_gone(struct mr_executor *x, uint32_t i, int err, const struct mr_error *e)
{
    if (err == MR_ELIMIT) {
        char bytes[MR_BYTES_TEXT_MAX];
        struct mr_buf *b = &x->text;
        mr_bytes_text(x->item->inputs[i].object_bytes, bytes);
        mr_buf_clear(b);
        mr_buf_printf(b, "there was no room to bring back an input of %s: %s", bytes, e->text);
        x->item->result.end = MR_STRAND_NO_ROOM;
        x->item->result.message = mr_run_keep(x->run, mr_buf_str(b));
        return MR_ELIMIT;
    }
    if (err == MR_ECANCELED) {
        x->item->result.end = MR_STRAND_STOPPED;
        return err;
    }
    x->item->result.end = MR_STRAND_INPUT_GONE;
    x->item->result.gone = i;
    x->item->result.message = mr_run_keep(x->run, mr_str(e->text));
    return MR_ELOST;
}

static int map_object(
    struct mr_executor *x, mr_object_id id, struct mr_op_input *in, struct mr_error *e)
{
    if (!x->env->store) return mr_fail(e, MR_ELOST, "this worker has no object store");
    struct mr_store_view *view = &x->views[x->views_count];
    int err =
        mr_store_get_or_stop(x->env->store, id, NULL, GET_TIMEOUT, mr_executor_stop_of(x), view, e);
    if (err) return err;
    x->views_count++;
    x->restore_ns += view->restored_ns;
    in->object = id;
    in->extent = mr_str_of(view->p, view->bytes);
    return MR_OK;
}

/* Returns a copy that is freed with the run, aligned as the header of a mapped extent is. */
static struct mr_str keep_header(struct mr_executor *x, const void *bytes, size_t n)
{
    char *p = mr_run_take(x->run, n + MR_VALUE_ALIGN);
    p += mr_align_up((uintptr_t)p, MR_VALUE_ALIGN) - (uintptr_t)p;
    memcpy(p, bytes, n);
    return mr_str_of(p, n);
}

/* Reads an input of an operator with MR_OP_BY_REFERENCE: only the object's id and header. The
 * object is not pinned: all inputs together may be larger than memory, and spilled objects stay on
 * disk. Exception: the object is not in this node's memory, and no store's address is known. Then
 * the whole object is mapped. */
static int refer_object(struct mr_executor *x, const struct mr_strand_input *from,
    struct mr_op_input *in, struct mr_error *e)
{
    in->object = from->object;
    if (!x->env->store) return MR_OK;
    struct mr_store_view *view = &x->views[x->views_count];
    const struct mr_stop stop = mr_executor_stop_of(x);
    int here = mr_store_get_or_stop(x->env->store, from->object, NULL, 0, stop, view, e);
    if (here == MR_ECANCELED) return here;
    if (!here) {
        struct mr_value_header h;
        size_t n = 0;
        if (view->bytes >= sizeof h) {
            memcpy(&h, view->p, sizeof h);
            n = MR_MIN((size_t)h.header_bytes, (size_t)view->bytes);
        }
        if (n) in->extent = keep_header(x, view->p, n);
        mr_store_release(x->env->store, view);
        return MR_OK;
    }
    const struct mr_strand *s = x->run->strand;
    const char *address = from->node < s->nodes_count ? s->nodes[from->node].address.p : "";
    if (!*address) address = x->env->store_address;
    if (!*address) return map_object(x, from->object, in, e);
    mr_buf_clear(&x->text);
    int err = mr_remote_header(address, x->env->credential, from->object, stop, &x->text, e);
    if (!err) in->extent = keep_header(x, x->text.p, x->text.n);
    return err;
}

/* Finds an object that is no input itself, such as a part of a collection. Returns the address of
 * another node's store that has the object; NULL: no store of the strand's nodes has it. */
static const char *find_source(struct mr_executor *x, mr_object_id id)
{
    const struct mr_strand *s = x->run->strand;
    for (uint32_t i = 1; i < s->nodes_count; i++) {
        const char *address = s->nodes[i].address.p;
        if (!*address || !strcmp(address, x->env->store_address)) continue;
        mr_buf_clear(&x->text);
        if (!mr_remote_header(
                address, x->env->credential, id, mr_executor_stop_of(x), &x->text, NULL))
            return address;
    }
    return NULL;
}

/* Some errors look like the death of an object store: the store is away, or a new store does not
 * know the object, or no answer came in time. Then the scheduler decides whether the object can be
 * made again. */
int mr_executor_store_answered(struct mr_executor *x, int err)
{
    bool is_gone = err == MR_EAWAY || err == MR_ENOENT || err == MR_ELOST || err == MR_ETIMEOUT;
    x->lacks_store = x->lacks_store || is_gone;
    x->gave_up = x->gave_up || err == MR_ECANCELED;
    return err;
}

static int load(struct mr_executor *x, mr_object_id id, struct mr_str *extent, struct mr_error *e)
{
    if (!x->env->store) return mr_fail(e, MR_ELOST, "this worker has no object store (--store)");
    /* the new view comes behind those of the inputs, which the operator still reads */
    views_room(x, x->views_count + 1);
    struct mr_store_view *view = &x->views[x->views_count];
    const struct mr_stop stop = mr_executor_stop_of(x);
    int err = mr_store_get_or_stop(x->env->store, id, NULL, 0, stop, view, e);
    if (err == MR_EAGAIN)
        err =
            mr_store_get_or_stop(x->env->store, id, find_source(x, id), GET_TIMEOUT, stop, view, e);
    if (mr_executor_store_answered(x, err)) return err;
    x->views_count++;
    x->restore_ns += view->restored_ns;
    *extent = mr_str_of(view->p, view->bytes);
    return MR_OK;
}

int mr_executor_load(void *ctx, mr_object_id id, struct mr_str *extent, struct mr_error *e)
{
    struct mr_executor *x = ctx;
    mr_time from = mr_clock_now();
    int err = load(x, id, extent, e);
    x->input_ns += mr_clock_now() - from;
    return err;
}

/* True: the input is an object, so mr_executor_inputs measures the time of mapping it. */
static bool is_object(const struct mr_executor *x, const struct mr_strand_input *from)
{
    if (from->kind != MR_STRAND_ITEM) return from->kind == MR_STRAND_OBJECT;
    const struct mr_strand_result *r = &x->run->strand->items[from->item].result;
    return r->end == MR_STRAND_DONE && !r->pack.n && !x->local_values[from->item].p;
}

static int item_result(struct mr_executor *x, uint32_t i, const struct mr_strand_input *from,
    struct mr_op_input *in, bool by_reference)
{
    const struct mr_strand_result *r = &x->run->strand->items[from->item].result;
    struct mr_error e;
    if (r->end != MR_STRAND_DONE) {
        x->item->result.end = MR_STRAND_SKIPPED;
        return MR_EAGAIN;
    }
    in->pack = r->pack;
    if (r->pack.n) return MR_OK;
    const struct mr_local_value *l = &x->local_values[from->item];
    if (l->p) in->extent = mr_str_of(l->p, l->bytes);
    if (l->p) return MR_OK;
    struct mr_strand_input made = {.object = r->object};
    int err = by_reference ? refer_object(x, &made, in, &e) : map_object(x, r->object, in, &e);
    return err ? input_gone(x, i, err, &e) : MR_OK;
}

int mr_executor_inputs(struct mr_executor *x)
{
    const struct mr_strand_item *item = x->item;
    bool by_reference = x->env->ops[item->op]->flags & MR_OP_BY_REFERENCE;
    mr_time from_ns = 0; /* when the first object was asked for */
    inputs_room(x, item->inputs_count);
    x->views_count = 0;
    for (uint32_t i = 0; i < item->inputs_count; i++) {
        const struct mr_strand_input *from = &item->inputs[i];
        struct mr_op_input *in = &x->inputs[i];
        struct mr_error e;
        int err = MR_OK;
        *in = (struct mr_op_input){0};
        if (!from_ns && is_object(x, from)) from_ns = mr_clock_now();
        switch (from->kind) {
        case MR_STRAND_PACK: in->pack = from->pack; break;
        case MR_STRAND_OBJECT:
            err =
                by_reference ? refer_object(x, from, in, &e) : map_object(x, from->object, in, &e);
            if (err) return input_gone(x, i, err, &e);
            break;
        case MR_STRAND_ITEM:
            err = item_result(x, i, from, in, by_reference);
            if (err) return err;
            break;
        }
    }
    if (from_ns) x->input_ns += mr_clock_now() - from_ns;
    return MR_OK;
}

void mr_executor_inputs_release(struct mr_executor *x)
{
    while (x->views_count)
        mr_store_release(x->env->store, &x->views[--x->views_count]);
}

static void summary_item(struct mr_executor *x, const struct mr_pack_item *item, struct mr_buf *out)
{
    char words[MR_VALUE_SUMMARY_MAX];
    uint32_t slot = mr_pack_input_slot(item);
    struct mr_value v;
    if (slot != UINT32_MAX) {
        if (slot >= x->item->inputs_count) return;
        const struct mr_op_input *in = &x->inputs[slot];
        int err = in->extent.n ? mr_value_check(in->extent, &v, NULL)
                               : mr_value_from_pack(in->pack, NULL, &v, NULL);
        if (!err) mr_value_summary(&v, words);
        if (err) (void)snprintf(words, sizeof words, "input %u", slot);
        mr_buf_add_text(out, words);
        return;
    }
    switch (item->type) {
    case MR_PACK_NIL: mr_buf_add_text(out, "null"); break;
    case MR_PACK_BOOL: mr_buf_add_text(out, item->boolean ? "true" : "false"); break;
    case MR_PACK_INT: mr_buf_printf(out, "%lld", (long long)item->i); break;
    case MR_PACK_UINT: mr_buf_printf(out, "%llu", (unsigned long long)item->u); break;
    case MR_PACK_FLOAT: mr_buf_printf(out, "%.17g", item->f); break;
    case MR_PACK_TEXT:
        mr_buf_printf(out, "\"%.*s\"", (int)MR_MIN(item->bytes.n, (size_t)60),
            item->bytes.p ? item->bytes.p : "");
        break;
    case MR_PACK_BYTES: mr_buf_printf(out, "%zu bytes", item->bytes.n); break;
    case MR_PACK_LIST: mr_buf_printf(out, "list of %u", item->count); break;
    case MR_PACK_MAP: mr_buf_printf(out, "map of %u", item->count); break;
    case MR_PACK_EXT:
        mr_buf_add_text(out, item->ext == MR_PACK_EXT_OBJECT ? "object" : "value");
        break;
    }
}

static void summary_args(
    struct mr_executor *x, struct mr_pack_reader r, uint32_t n, bool named, struct mr_buf *out)
{
    for (uint32_t i = 0; i < n && out->n < SUMMARY_BYTES_MAX; i++) {
        struct mr_pack_item item;
        if (out->n) mr_buf_add_text(out, ", ");
        if (named) {
            if (mr_pack_next(&r, &item)) return;
            mr_buf_printf(out, "%.*s=", (int)MR_MIN(item.bytes.n, (size_t)60),
                item.bytes.p ? item.bytes.p : "");
        }
        struct mr_pack_reader at = r;
        if (mr_pack_next(&at, &item) || mr_pack_skip(&r, NULL)) return;
        summary_item(x, &item, out);
    }
}

void mr_executor_summary(struct mr_executor *x, struct mr_buf *out)
{
    struct mr_args args;
    if (mr_args_open(x->item->args, &args, NULL)) return;
    summary_args(x, args.positional, args.positional_count, false, out);
    summary_args(x, args.named, args.named_count, true, out);
}
