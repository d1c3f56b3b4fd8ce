/* glm.part computes loss, gradient and Hessian of one chunk of rows at the trial point that the
 * state of the fit holds (state.h). For ADMM it computes the chunk's own solution instead. */
#include "ops/array/array.h"
#include "ops/glm/admm.h"
#include "ops/glm/args.h"
#include "ops/glm/glm.h"
#include "ops/glm/merge.h"
#include "ops/glm/solve.h"

#include <math.h>

#define LINE 64u /* bytes of a cache line */
#define NUMBERS (LINE / sizeof(double))

static bool cancelled(void *ctx)
{
    struct mr_op_call *call = ctx;
    return call->does->is_cancelled(call);
}

static int bad(struct mr_op_call *call, const char *name, uint64_t row, double v, const char *want)
{
    return call->does->fail(call, MR_EINVAL, "argument \"%s\", chunk %lld, row %llu: %g%s", name,
        (long long)call->args[3].i, (unsigned long long)row, v, want);
}

static int check_finite(
    struct mr_op_call *call, const char *name, const double *v, uint64_t rows, uint32_t columns)
{
    for (uint64_t i = 0; i < rows; i++) {
        double any = 0; /* becomes NaN if any number is not finite */
        for (uint32_t j = 0; j < columns; j++)
            any += v[i * columns + j] * 0;
        if (isnan(any))
            for (uint32_t j = 0; j < columns; j++)
                if (!isfinite(v[i * columns + j]))
                    return bad(call, name, i, v[i * columns + j], " is not a finite number");
    }
    return MR_OK;
}

/* Returns v log v, which is 0 at v = 0. */
static double v_log_v(double v)
{
    return v > 0 ? v * log(v) : 0;
}

/* Checks that y suits the family. Adds up the weights, and the loss of a model that predicts every
 * y exactly. */
static int check_y(struct mr_op_call *call, enum mr_glm_family family, const struct mr_glm_rows *r,
    struct mr_glm_partial_head *h)
{
    for (uint64_t i = 0; i < r->rows; i++) {
        double y = r->y[i];
        double weight = r->weights ? r->weights[i] : 1;
        double saturated = 0;
        if (!(weight >= 0)) return bad(call, "weights", i, weight, " is less than 0");
        if (family == MR_GLM_LOGISTIC) {
            if (!r->weights && y != 0 && y != 1)
                return bad(call, "y", i, y,
                    " is neither 0 nor 1, as logistic wants it (shares need \"weights\")");
            if (!(y >= 0 && y <= 1))
                return bad(call, "y", i, y, " is no share from 0 to 1, as logistic wants it");
            saturated = -v_log_v(y) - v_log_v(1 - y);
        } else if (family == MR_GLM_POISSON) {
            if (!(y >= 0)) return bad(call, "y", i, y, " is less than 0, which poisson never is");
            saturated = y - v_log_v(y);
        }
        h->weight += weight;
        h->saturated += weight * saturated;
        if (weight > 0 && !(h->least > 0 && h->least < weight)) h->least = weight;
    }
    h->rows = (double)r->rows;
    h->offset = r->offset != NULL;
    return MR_OK;
}

/* Checks a chunk. Only the first evaluation does this, because the chunks do not change. */
static int check_chunk(struct mr_op_call *call, enum mr_glm_family family,
    const struct mr_glm_rows *r, struct mr_glm_partial_head *h)
{
    int err = check_finite(call, "x", r->x, r->rows, r->columns);
    if (!err) err = check_finite(call, "y", r->y, r->rows, 1);
    if (!err && r->weights) err = check_finite(call, "weights", r->weights, r->rows, 1);
    if (!err && r->offset) err = check_finite(call, "offset", r->offset, r->rows, 1);
    return err ? err : check_y(call, family, r, h);
}

/* Restricts the chunk to the rows that the argument "rows" names, because several tasks may share
 * one chunk. */
static int take_range(struct mr_op_call *call, int64_t chunk, struct mr_glm_rows *r)
{
    const struct mr_arg *range = &call->args[7];
    if (range->type != MR_ARG_LIST) return MR_OK;
    bool is_pair = range->count == 2 && range->items[0].type == MR_ARG_INT &&
                   range->items[1].type == MR_ARG_INT;
    int64_t from = is_pair ? range->items[0].i : 0, to = is_pair ? range->items[1].i : 0;
    if (!is_pair || from < 0 || to < from || (uint64_t)to > r->rows)
        return call->does->fail(call, MR_EINVAL,
            "argument \"rows\", chunk %lld: expected [from, to) with 0 <= from <= to <= %llu",
            (long long)chunk, (unsigned long long)r->rows);
    r->x += (uint64_t)from * r->columns;
    if (r->y) r->y += from;
    if (r->weights) r->weights += from;
    if (r->offset) r->offset += from;
    r->rows = (uint64_t)(to - from);
    return MR_OK;
}

static int open_chunk(struct mr_op_call *call, const struct mr_glm *g, struct mr_glm_rows *r)
{
    int64_t chunk = 0;
    int err = mr_arg_int(call, &call->args[3], "chunk", 0, MR_GLM_CHUNKS_MAX - 1, &chunk);
    if (!err) err = mr_glm_rows(call, &call->args[0], chunk, r);
    if (!err) err = mr_glm_vector(call, &call->args[1], "y", chunk, r->rows, &r->y);
    if (!err) err = mr_glm_vector(call, &call->args[4], "weights", chunk, r->rows, &r->weights);
    if (!err) err = mr_glm_vector(call, &call->args[5], "offset", chunk, r->rows, &r->offset);
    if (!err) err = take_range(call, chunk, r);
    if (!err) err = mr_glm_columns_check(call, g->h, r->columns);
    if (err || !g->columns || r->columns == g->columns) return err;
    return call->does->fail(call, MR_EINVAL,
        "argument \"x\", chunk %lld: it has %u columns, the fit %u", (long long)chunk, r->columns,
        g->columns);
}

/* Computes the chunk's own solution for ADMM. */
static int local_part(struct mr_op_call *call, const struct mr_glm *g, const struct mr_glm_rows *r,
    struct mr_glm_partial *p)
{
    int64_t chunk = call->args[3].i;
    if (chunk >= g->chunks)
        return call->does->fail(call, MR_EINVAL,
            "argument \"chunk\": %lld, and %u chunks began the fit: number them from 0",
            (long long)chunk, g->chunks);
    void *work = call->does->scratch(call, mr_glm_work_bytes(r->columns, true));
    if (!work) return MR_ELIMIT;
    double *room = call->does->scratch(call, mr_glm_local_numbers(g->columns) * sizeof *room);
    if (!room) return MR_ELIMIT;
    p->points[0] = (double)chunk;
    const double *u = g->u + (size_t)chunk * (g->columns + 1);
    struct mr_glm_found found = {.point = p->points + 1};
    if (!mr_glm_local(g, r, u, work, room, &found, cancelled, call))
        return call->does->fail(call, MR_ECANCELED, "cancelled");
    p->h->loss = found.loss;
    p->h->wrong = mr_glm_wrong(g, r, found.loss, found.wrong);
    p->h->stuck = found.stuck;
    return MR_OK;
}

struct pass { /* a pass over a chunk, in blocks */
    const struct mr_glm_rows *rows;
    enum mr_glm_family family;
    const double *raw;
    uint32_t blocks;
    unsigned char *work; /* working memory of each thread (lane) that computes blocks */
    size_t work_bytes;
    double *sums; /* for each block the members of struct mr_glm_sums, one after another */
    /* Sizes in doubles: of a gradient; of a Hessian, or 0 if none is wanted; and of the sums of one
     * block, rounded up to whole cache lines. */
    size_t gradient, hessian, stride;
};

static struct mr_glm_sums sums_of(const struct pass *p, uint32_t block)
{
    double *at = p->sums + block * p->stride;
    return (struct mr_glm_sums){
        .gradient = at + 2, .hessian = p->hessian ? at + 2 + p->gradient : NULL};
}

static int pass_block(void *ctx, uint32_t block, uint32_t lane)
{
    const struct pass *p = ctx;
    struct mr_glm_sums s = sums_of(p, block);
    mr_glm_pass_block(
        p->family, p->rows, p->blocks, block, p->raw, p->work + lane * p->work_bytes, &s);
    p->sums[block * p->stride] = s.loss;
    p->sums[block * p->stride + 1] = s.wrong;
    return MR_OK;
}

static int whole_part(struct mr_op_call *call, const struct mr_glm *g, const struct mr_glm_rows *r,
    struct mr_glm_partial *to)
{
    struct pass p = {.rows = r,
        .family = g->family,
        .blocks = mr_glm_blocks(r, to->hessian),
        .work_bytes = (mr_glm_work_bytes(r->columns, to->hessian) + LINE - 1) / LINE * LINE,
        .gradient = r->columns + 1,
        .hessian = to->hessian ? mr_glm_packed(r->columns + 1) : 0};
    p.stride = (2 + p.gradient + p.hessian + NUMBERS - 1) / NUMBERS * NUMBERS;
    double *raw = call->does->scratch(call, p.gradient * sizeof *raw);
    if (raw) p.work = call->does->scratch(call, call->does->lanes(call) * p.work_bytes);
    if (p.work) p.sums = call->does->scratch(call, p.blocks * p.stride * sizeof *p.sums);
    if (!p.sums) return MR_ELIMIT;
    if (g->columns) mr_glm_raw(g, g->trial, raw);
    p.raw = raw;
    double wrong = 0;
    int err = call->does->parallel(call, p.blocks, pass_block, &p);
    for (uint32_t b = 0; !err && b < p.blocks; b++) {
        struct mr_glm_sums s = sums_of(&p, b);
        to->h->loss += p.sums[b * p.stride];
        wrong += p.sums[b * p.stride + 1];
        for (size_t i = 0; i < p.gradient; i++)
            to->gradient[i] += s.gradient[i];
        for (size_t i = 0; i < p.hessian; i++)
            to->hessian[i] += s.hessian[i];
    }
    to->h->wrong = mr_glm_wrong(g, r, to->h->loss, wrong);
    return err;
}

static int run_part(struct mr_op_call *call)
{
    struct mr_glm g;
    struct mr_glm_rows r = {0};
    uint64_t ignored = 0;
    const struct mr_arg *list = &call->args[6];
    const struct mr_glm_parts all = {.items = list->items, .count = list->count};
    int err = mr_glm_state(call, &call->args[2], "state", &g);
    if (!err && list->type == MR_ARG_LIST) err = mr_glm_merge_step(call, &g, &all, &ignored);
    if (!err) err = open_chunk(call, &g, &r);
    if (err) return err;
    bool local = mr_glm_is_local(&g);
    bool over = g.h->status != MR_GLM_RUNNING;
    bool hessian = mr_glm_wants_hessian(&g);
    struct mr_glm_partial_head h = {
        .columns = r.columns, .hessian = hessian, .entries = 1, .points = local};
    if (!over && g.h->evaluations == 0) err = check_chunk(call, g.family, &r, &h);
    if (err) return err;
    uint64_t numbers = mr_glm_partial_numbers(&h);
    double *to = call->does->return_tensor(call, MR_DTYPE_F64, 1, &numbers);
    if (!to) return MR_ELIMIT;
    memset(to, 0, numbers * sizeof *to);
    memcpy(to, &h, sizeof h);
    struct mr_glm_partial p;
    mr_glm_partial_lay_out(&p, to);
    if (over) return MR_OK; /* the fit is over, and its loop ignores this partial */
    return local ? local_part(call, &g, &r, &p) : whole_part(call, &g, &r, &p);
}

static const struct mr_op_param part[] = {
    {"x", MR_TAKES_ARRAY, NULL, "Rows of this chunk; f64 is read without a copy."},
    {"y", MR_TAKES_ARRAY, NULL,
        "One number for each row: 0 or 1 (logistic), any (normal), 0 or more (poisson)."},
    {"state", MR_TAKES_TENSOR, NULL, "The result of glm.start or glm.step."},
    {"chunk", MR_TAKES_INT, "0", "Number of this chunk, for error messages and for admm."},
    {"weights", MR_TAKES_ARRAY | MR_TAKES_NIL, "null",
        "Weights of rows; with weights, logistic y may be shares."},
    {"offset", MR_TAKES_ARRAY | MR_TAKES_NIL, "null",
        "Known part of the linear predictor, one number for each row."},
    {"parts", MR_TAKES_LIST | MR_TAKES_NIL, "null",
        "Partials of the state: the operator makes the step first. Null partials are skipped."},
    {"rows", MR_TAKES_LIST | MR_TAKES_NIL, "null",
        "[from, to): only these rows of the chunk, so that several tasks share the chunk. Error "
        "messages count rows from the first of these."},
};

const struct mr_op_desc *mr_glm_part_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("glm.part", MR_OP_DETERMINISTIC, part, 1000000, run_part, "partial: f64 tensor",
            "Computes loss, gradient and other terms of the solver for one chunk of rows, in one "
            "pass."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
