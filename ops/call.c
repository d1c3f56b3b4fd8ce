/* Runs operators (call.h). A run is the memory in which one thread makes its calls. A pack is a
 * value as MessagePack; an extent is a value as one block of bytes with a header. */
#include "ops/call.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/pack.h"
#include "base/unconst.h"
#include "ops/arg.h"
#include "ops/call_arena.h"
#include "ops/describe.h"
#include "ops/resolve.h"
#include "store/object/value.h"

#include <stdarg.h>
#include <stdio.h>

/* A run keeps its memory for a result pack from one call to the next, unless that memory is larger
 * than this. */
#define PACK_KEPT_BYTES ((size_t)1 << 20)

struct mr_op_run {
    struct mr_op_call call; /* run_of finds the run by the address of this member */
    const struct mr_op_host *host;
    void *ctx;
    struct mr_call_arena scratch;
    struct mr_buf pack;          /* the bytes of a result that is a pack */
    struct mr_op_result *result; /* where the result is written; lent by the caller */
    struct mr_error *error;
    /* Threads that may share the call's work; 0: host->lanes was not called yet. */
    uint32_t lanes;
    bool is_drawn; /* true: the operator called mark_drawn */
    struct mr_arg params[MR_OP_PARAMS_MAX];
};

static struct mr_op_run *run_of(struct mr_op_call *call)
{
    return MR_CONTAINER_OF(call, struct mr_op_run, call);
}

/* ---- struct mr_op_services: functions that operators call ---- */

static int does_fail(struct mr_op_call *call, int code, const char *fmt, ...) MR_PRINTF(3, 4);

static int does_fail(struct mr_op_call *call, int code, const char *fmt, ...)
{
    char text[MR_ERROR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return mr_fail(run_of(call)->error, code, "%s: %s", call->op->name, text);
}

static void *does_return_extent(struct mr_op_call *call, uint64_t bytes)
{
    struct mr_op_run *r = run_of(call);
    if (!bytes || bytes > MR_OBJECT_BYTES_MAX) {
        (void)does_fail(call, MR_ELIMIT, "the result is larger than a value may be");
        return NULL;
    }
    struct mr_error why = {0};
    void *p = r->host->alloc_result(r->ctx, bytes, &why);
    if (!p) {
        (void)does_fail(call, why.code ? why.code : MR_ELIMIT,
            "no room for a result of %llu bytes: %s", (unsigned long long)bytes, why.text);
        return NULL;
    }
    mr_assert((uintptr_t)p % MR_VALUE_ALIGN == 0);
    *r->result =
        (struct mr_op_result){.kind = MR_OP_RESULT_EXTENT, .extent = mr_str_of(p, (size_t)bytes)};
    return p;
}

static void *does_return_tensor(
    struct mr_op_call *call, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape)
{
    struct mr_error why = {0};
    if (mr_tensor_shape_check(dtype, ndim, shape, NULL, NULL, &why)) {
        (void)does_fail(call, why.code, "%s", why.text);
        return NULL;
    }
    void *extent = does_return_extent(call, mr_tensor_bytes(dtype, ndim, shape));
    return extent ? mr_tensor_build(extent, dtype, ndim, shape) : NULL;
}

static void *does_return_bytes(struct mr_op_call *call, uint64_t bytes)
{
    void *extent = does_return_extent(call, mr_value_bytes_size(bytes));
    return extent ? mr_value_bytes_build(extent, bytes) : NULL;
}

/* Makes the pack in r->pack the result. */
static int return_written(struct mr_op_run *r)
{
    if (mr_buf_status(&r->pack))
        return does_fail(&r->call, MR_ELIMIT, "the result is a pack of more than %llu bytes",
            (unsigned long long)r->pack.bytes_max);
    *r->result = (struct mr_op_result){.kind = MR_OP_RESULT_PACK, .pack = mr_buf_str(&r->pack)};
    return MR_OK;
}

static struct mr_buf *begin_pack(struct mr_op_call *call)
{
    struct mr_buf *b = &run_of(call)->pack;
    mr_buf_clear(b);
    return b;
}

static int does_return_arg(struct mr_op_call *call, const struct mr_arg *arg)
{
    struct mr_op_run *r = run_of(call);
    if (arg->input != MR_ARG_NO_INPUT) {
        *r->result = (struct mr_op_result){.kind = MR_OP_RESULT_INPUT, .input = arg->input};
        return MR_OK;
    }
    if (arg->extent.n && arg->type != MR_ARG_OBJECT) {
        void *p = does_return_extent(call, arg->extent.n);
        if (!p) return r->error->code;
        memcpy(p, arg->extent.p, arg->extent.n);
        return MR_OK;
    }
    struct mr_error why = {0};
    if (mr_arg_pack(arg, begin_pack(call), &why)) return does_fail(call, why.code, "%s", why.text);
    return return_written(r);
}

static int does_return_pack(struct mr_op_call *call, struct mr_str pack)
{
    mr_buf_add_str(begin_pack(call), pack);
    return return_written(run_of(call));
}

static int does_return_nil(struct mr_op_call *call)
{
    mr_pack_nil(begin_pack(call));
    return return_written(run_of(call));
}

static int does_return_bool(struct mr_op_call *call, bool v)
{
    mr_pack_bool(begin_pack(call), v);
    return return_written(run_of(call));
}

static int does_return_int(struct mr_op_call *call, int64_t v)
{
    mr_pack_int(begin_pack(call), v);
    return return_written(run_of(call));
}

static int does_return_float(struct mr_op_call *call, double v)
{
    mr_pack_float(begin_pack(call), v);
    return return_written(run_of(call));
}

static int does_return_text(struct mr_op_call *call, struct mr_str text)
{
    mr_pack_text(begin_pack(call), text);
    return return_written(run_of(call));
}

static bool does_is_cancelled(struct mr_op_call *call)
{
    struct mr_op_run *r = run_of(call);
    return r->host->is_cancelled(r->ctx);
}

static int does_wait(struct mr_op_call *call, uint64_t ns)
{
    struct mr_op_run *r = run_of(call);
    r->host->wait(r->ctx, ns);
    return does_is_cancelled(call) ? does_fail(call, MR_ECANCELED, "cancelled") : MR_OK;
}

static void does_log(struct mr_op_call *call, const char *fmt, ...) MR_PRINTF(2, 3);

static void does_log(struct mr_op_call *call, const char *fmt, ...)
{
    char text[MR_ERROR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    run_of(call)->host->log(run_of(call)->ctx, mr_str(text));
}

static int does_open(struct mr_op_call *call, struct mr_str path, int *fd)
{
    struct mr_op_run *r = run_of(call);
    struct mr_error why = {0};
    int err = r->host->open(r->ctx, path, fd, &why);
    return err ? does_fail(call, err, "%s", why.text) : MR_OK;
}

static int does_load(struct mr_op_call *call, mr_object_id id, struct mr_str *extent)
{
    struct mr_op_run *r = run_of(call);
    struct mr_error why = {0};
    int err = r->host->load ? r->host->load(r->ctx, id, extent, &why)
                            : mr_fail(&why, MR_EUNIMPL, "objects cannot be loaded here");
    return err ? does_fail(call, err, "%s", why.text) : MR_OK;
}

static void *does_scratch(struct mr_op_call *call, uint64_t bytes)
{
    struct mr_op_run *r = run_of(call);
    void *p = mr_call_arena_take(&r->scratch, bytes, MR_VALUE_ALIGN);
    if (!p)
        (void)does_fail(call, MR_ELIMIT, "needs more than the %llu bytes that one call may take",
            (unsigned long long)r->scratch.bytes_max);
    return p;
}

static uint32_t does_lanes(struct mr_op_call *call)
{
    struct mr_op_run *r = run_of(call);
    if (!r->lanes) r->lanes = r->host->lanes ? r->host->lanes(r->ctx) : 1;
    return r->lanes;
}

static void does_mark_drawn(struct mr_op_call *call)
{
    run_of(call)->is_drawn = true;
}

static void does_note_training(struct mr_op_call *call, const struct mr_op_training_times *times)
{
    struct mr_op_run *r = run_of(call);
    if (r->host->note_training) r->host->note_training(r->ctx, times);
}

struct pieces { /* the arguments of one call of `parallel` */
    struct mr_op_run *run;
    int (*block)(void *ctx, uint32_t block, uint32_t lane);
    void *ctx;
};

static int piece_run(void *ctx, uint32_t block, uint32_t lane)
{
    const struct pieces *p = ctx;
    return p->block(p->ctx, block, lane);
}

static bool piece_is_stopped(void *ctx)
{
    const struct pieces *p = ctx;
    return p->run->host->is_cancelled(p->run->ctx);
}

static int does_parallel(struct mr_op_call *call, uint32_t blocks,
    int (*block)(void *ctx, uint32_t block, uint32_t lane), void *ctx)
{
    struct mr_op_run *r = run_of(call);
    struct pieces pieces = {r, block, ctx};
    const struct mr_blocks work = {.count = blocks,
        .lanes = does_lanes(call),
        .run = piece_run,
        .is_stopped = piece_is_stopped,
        .ctx = &pieces};
    struct mr_blocks_end end =
        r->host->work ? r->host->work(r->ctx, &work) : mr_blocks_alone(&work);
    if (end.err) return does_fail(call, end.err, "part %u of the work failed", end.failed);
    return end.stopped ? does_fail(call, MR_ECANCELED, "cancelled") : MR_OK;
}

static const struct mr_op_services services = {
    .return_extent = does_return_extent,
    .return_tensor = does_return_tensor,
    .return_bytes = does_return_bytes,
    .return_arg = does_return_arg,
    .return_pack = does_return_pack,
    .return_nil = does_return_nil,
    .return_bool = does_return_bool,
    .return_int = does_return_int,
    .return_float = does_return_float,
    .return_text = does_return_text,
    .fail = does_fail,
    .is_cancelled = does_is_cancelled,
    .wait = does_wait,
    .log = does_log,
    .open = does_open,
    .load = does_load,
    .scratch = does_scratch,
    .lanes = does_lanes,
    .parallel = does_parallel,
    .mark_drawn = does_mark_drawn,
    .note_training = does_note_training,
};

/* ---- arguments become parameters ---- */

static uint32_t takes_bit(enum mr_arg_type type)
{
    static const uint32_t bits[] = {
        [MR_ARG_NIL] = MR_TAKES_NIL,
        [MR_ARG_BOOL] = MR_TAKES_BOOL,
        [MR_ARG_INT] = MR_TAKES_INT,
        [MR_ARG_UINT] = MR_TAKES_INT,
        [MR_ARG_FLOAT] = MR_TAKES_FLOAT,
        [MR_ARG_TEXT] = MR_TAKES_TEXT,
        [MR_ARG_BYTES] = MR_TAKES_BYTES,
        [MR_ARG_LIST] = MR_TAKES_LIST,
        [MR_ARG_DICT] = MR_TAKES_DICT,
        [MR_ARG_TENSOR] = MR_TAKES_TENSOR,
        [MR_ARG_VALUE] = MR_TAKES_VALUE,
        [MR_ARG_OBJECT] = MR_TAKES_OBJECT,
    };
    return bits[type];
}

/* Turns a tensor without axes into a number. */
static void unwrap_number(struct mr_arg *arg)
{
    const struct mr_tensor *t = arg->tensor;
    if (t->dtype == MR_DTYPE_BOOL) {
        arg->type = MR_ARG_BOOL;
        arg->boolean = *(const unsigned char *)t->data != 0;
    } else if (t->dtype == MR_DTYPE_U64) {
        uint64_t u = *(const uint64_t *)t->data;
        arg->type = u > INT64_MAX ? MR_ARG_UINT : MR_ARG_INT;
        arg->u = u;
    } else if (t->dtype == MR_DTYPE_I64) {
        arg->type = MR_ARG_INT;
        arg->i = *(const int64_t *)t->data;
    } else {
        double f = mr_dtype_get_f64(t->dtype, t->data);
        arg->type = mr_dtype_is_float(t->dtype) ? MR_ARG_FLOAT : MR_ARG_INT;
        if (arg->type == MR_ARG_FLOAT)
            arg->f = f;
        else
            arg->i = (int64_t)f;
    }
}

static int check_type(const struct mr_op_desc *op, const struct mr_op_param *p, struct mr_arg *arg,
    struct mr_error *e)
{
    if (p->takes & takes_bit(arg->type)) return MR_OK;
    if (arg->type == MR_ARG_TENSOR && arg->tensor->ndim == 0 && (p->takes & MR_TAKES_NUMBER)) {
        unwrap_number(arg);
        if (p->takes & takes_bit(arg->type)) return MR_OK;
    }
    struct mr_buf words;
    mr_buf_init(&words, 200);
    mr_op_takes_words(p->takes, &words);
    mr_buf_add_byte(&words, 0);
    char what[MR_TENSOR_TEXT_MAX] = "";
    if (arg->type == MR_ARG_TENSOR)
        mr_tensor_text(arg->tensor->dtype, arg->tensor->ndim, arg->tensor->shape, what);
    int err = mr_fail(e, MR_EINVAL, "%s: argument \"%s\": expected %s, got %s%s%s", op->name,
        p->name, words.failed ? "another type" : (const char *)words.p, mr_arg_type_name(arg->type),
        what[0] ? " " : "", what);
    mr_buf_fini(&words);
    return err;
}

/* Stores the named arguments in `bound` and sets a bit in `*given` for each of them. */
static int bind_named(struct mr_op_run *r, const struct mr_op_desc *op, struct mr_arg *bound,
    const struct mr_arg *named, uint32_t named_count, uint32_t *given)
{
    uint32_t fixed = op->params_count - (op->flags & MR_OP_VARIADIC ? 1 : 0);
    for (uint32_t i = 0; i < named_count; i++) {
        uint32_t p = 0;
        while (p < op->params_count && !mr_str_eq(mr_str(op->params[p].name), named[i].name))
            p++;
        mr_assert(p < op->params_count); /* mr_op_check_call has refused unknown names already */
        if (p < fixed) {
            bound[p] = named[i];
            *given |= 1u << p;
            continue;
        }
        if (named[i].type != MR_ARG_LIST)
            return mr_fail(r->error, MR_EINVAL, "%s: argument \"%s\": by name it is a list, got %s",
                op->name, op->params[p].name, mr_arg_type_name(named[i].type));
        r->call.rest = named[i].items;
        r->call.rest_count = named[i].count;
    }
    return MR_OK;
}

/* Fills call->args and call->rest from the arguments and the defaults. If every parameter has a
 * positional argument, the arguments are not copied. */
static int bind(struct mr_op_run *r, const struct mr_op_desc *op, struct mr_arg *positional,
    uint32_t positional_count, const struct mr_arg *named, uint32_t named_count)
{
    uint32_t fixed = op->params_count - (op->flags & MR_OP_VARIADIC ? 1 : 0);
    uint32_t first = MR_MIN(positional_count, fixed);
    bool in_place = positional_count >= op->params_count;
    struct mr_arg *bound = in_place ? positional : r->params;
    uint32_t given = (1u << first) - 1;
    for (uint32_t i = 0; !in_place && i < first; i++)
        bound[i] = positional[i];
    r->call.args = bound;
    r->call.rest = positional + first;
    r->call.rest_count = positional_count - first;
    int err = bind_named(r, op, bound, named, named_count, &given);
    if (err) return err;
    for (uint32_t i = 0; i < fixed; i++) {
        const char *fallback = op->params[i].fallback;
        if (given >> i & 1 && !(bound[i].type == MR_ARG_NIL && fallback)) {
            err = check_type(op, &op->params[i], &bound[i], r->error);
            if (err) return err;
            continue;
        }
        bound[i] = mr_arg_of_fallback(fallback ? fallback : "null");
    }
    if (!in_place && fixed < op->params_count) bound[fixed] = mr_arg_of_fallback("null");
    /* `rest` points into this call's own arguments */
    struct mr_arg *rest = mr_unconst(r->call.rest);
    for (uint32_t i = 0; i < r->call.rest_count; i++) {
        err = check_type(op, &op->params[fixed], &rest[i], r->error);
        if (err) return err;
    }
    return MR_OK;
}

/* Splits the decoded arguments (graph/args.h) into positional and named arguments, and binds
 * them. */
static int take_args(struct mr_op_run *r, const struct mr_op_desc *op, struct mr_arg *all)
{
    struct mr_arg *items = mr_unconst(all->items);
    struct mr_arg *positional = all;
    struct mr_arg *named = NULL;
    uint32_t named_count = 0;
    if (all->type == MR_ARG_DICT) {
        if (!all->count || items[0].name.n || items[0].type != MR_ARG_LIST)
            return mr_fail(r->error, MR_EFORMAT, "%s: named arguments without \"\"", op->name);
        positional = items;
        named = items + 1;
        named_count = all->count - 1;
    } else if (all->type != MR_ARG_LIST) {
        return mr_fail(r->error, MR_EFORMAT, "%s: the arguments are not a list", op->name);
    }
    if (named_count > MR_OP_PARAMS_MAX)
        return mr_fail(r->error, MR_EINVAL, "%s: %u named arguments", op->name, named_count);
    struct mr_str names[MR_OP_PARAMS_MAX];
    for (uint32_t i = 0; i < named_count; i++)
        names[i] = named[i].name;
    int err = mr_op_check_call(op, positional->count, names, named_count, r->error);
    if (err) return err;
    return bind(r, op, mr_unconst(positional->items), positional->count, named, named_count);
}

/* True: the data of the result is synthetic (drawn by an operator), because the operator marked it
 * or because the data of an input is synthetic. */
static bool is_of_drawn(
    const struct mr_op_run *r, const struct mr_op_input *inputs, uint32_t inputs_count)
{
    bool is_drawn = r->is_drawn;
    for (uint32_t i = 0; i < inputs_count && !is_drawn; i++)
        is_drawn = inputs[i].pack.n ? mr_value_pack_is_drawn(inputs[i].pack)
                                    : mr_value_is_drawn(inputs[i].extent);
    return is_drawn;
}

static void mark_result(
    struct mr_op_run *r, const struct mr_op_input *inputs, uint32_t inputs_count)
{
    struct mr_op_result *result = r->result;
    result->is_drawn = result->kind != MR_OP_RESULT_INPUT && is_of_drawn(r, inputs, inputs_count);
    if (result->is_drawn && result->kind == MR_OP_RESULT_EXTENT)
        /* The extent may be changed, because it is this result's own memory. */
        mr_value_mark_drawn(mr_unconst(result->extent.p));
}

struct mr_op_run *mr_op_run_new(const struct mr_op_host *host, uint64_t scratch_bytes_max)
{
    struct mr_op_run *r = mr_alloc(sizeof *r);
    r->host = host;
    mr_call_arena_init(&r->scratch, scratch_bytes_max);
    mr_buf_init(&r->pack, (size_t)MR_MIN(scratch_bytes_max, (uint64_t)UINT32_MAX));
    return r;
}

void mr_op_run_free(struct mr_op_run **r)
{
    if (!*r) return;
    mr_call_arena_fini(&(*r)->scratch);
    mr_buf_fini(&(*r)->pack);
    mr_release(*r);
    *r = NULL;
}

int mr_op_run(struct mr_op_run *r, const struct mr_op_desc *op, const struct mr_op_task *task,
    struct mr_str args, const struct mr_op_input *inputs, uint32_t inputs_count, void *ctx,
    struct mr_op_result *result, struct mr_error *e)
{
    mr_assert(e);
    e->code = MR_OK;
    mr_call_arena_reset(&r->scratch);
    /* Frees the memory of the previous call's result, if that result was large. */
    if (r->pack.room > PACK_KEPT_BYTES) {
        size_t bytes_max = r->pack.bytes_max;
        mr_buf_fini(&r->pack);
        mr_buf_init(&r->pack, bytes_max);
    }
    r->error = e;
    r->ctx = ctx;
    r->lanes = 0;
    r->is_drawn = false;
    r->result = result;
    r->result->kind = MR_OP_RESULT_NONE;
    r->call.op = op;
    r->call.does = &services;
    r->call.task = *task;
    r->call.args_count = op->params_count;
    struct mr_resolve x = {.scratch = &r->scratch,
        .inputs = inputs,
        .inputs_count = inputs_count,
        .by_reference = op->flags & MR_OP_BY_REFERENCE};
    struct mr_arg all;
    /* `why` is not zeroed, because its text has a thousand bytes and zeroing them takes time. */
    struct mr_error why;
    why.text[0] = 0;
    int err = mr_resolve(&x, args, &all, &why);
    if (err) return mr_fail(e, err, "%s: %s", op->name, why.text);
    err = take_args(r, op, &all);
    if (err) return err;
    err = op->run(&r->call);
    if (err) return e->code ? err : mr_fail(e, err, "%s: failed without a reason", op->name);
    if (r->result->kind == MR_OP_RESULT_NONE)
        return mr_fail(e, MR_EINTERNAL, "%s: returned no result", op->name);
    e->code = MR_OK; /* discards errors from which the operator recovered */
    e->text[0] = 0;
    mark_result(r, inputs, inputs_count);
    return MR_OK;
}
