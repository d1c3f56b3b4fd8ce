/* The loop of a fit of a generalized linear model: glm.start, glm.part (a chunk of rows at the
 * point that the state asks about), glm.add (several of them in one), glm.step, glm.converged. What
 * they pass on is laid out in ops/glm/glm.h; what a fit has found is read by ops/glm/model.c. */
#include "ops/glm/glm.h"

#include "ops/family.h"
#include "ops/call.h"
#include "ops/glm/admm.h"
#include "ops/glm/args.h"
#include "ops/glm/solve.h"
#include "ops/ml/ml.h"

#include <math.h>

#define LINE 64u /* bytes that one processor writes at a time */
#define NUMBERS (LINE / sizeof(double))

/* ---- start ---- */

static int one_of(struct mr_op_call *call, unsigned at, const char *const *names, unsigned count,
    const char *all, double *out)
{
    struct mr_str text = call->args[at].bytes;
    for (unsigned i = 0; i < count; i++) {
        if (!mr_str_eq(text, mr_str(names[i]))) continue;
        *out = i;
        return MR_OK;
    }
    return call->does->fail(call, MR_EINVAL, "argument \"%s\": expected %s, got \"%.*s\"",
        call->op->params[at].name, all, (int)MR_MIN(text.n, 40u), text.p);
}

static int real(struct mr_op_call *call, unsigned at, double max, double *out)
{
    *out = mr_arg_f64(&call->args[at]);
    if (isfinite(*out) && *out >= 0 && *out <= max) return MR_OK;
    return call->does->fail(call, MR_EINVAL, "argument \"%s\": expected a number from 0%s",
        call->op->params[at].name, max <= 1 ? " to 1" : "");
}

static int read_penalty(struct mr_op_call *call, struct mr_glm_head *h)
{
    static const char *const penalties[] = {"none", "l1", "l2", "elasticnet"};
    double penalty = 0;
    double alpha = 0;
    double ratio = 0;
    int err =
        one_of(call, 2, penalties, MR_ARRAY_LEN(penalties), "none, l1, l2 or elasticnet", &penalty);
    if (!err) err = real(call, 3, 1e300, &alpha);
    if (!err) err = real(call, 4, 1, &ratio);
    if (err) return err;
    ratio = penalty == 1 ? 1 : penalty == 2 ? 0 : ratio;
    h->l1 = penalty == 0 ? 0 : alpha * ratio;
    h->l2 = penalty == 0 ? 0 : alpha * (1 - ratio);
    int solver = (int)h->solver;
    if (h->l1 == 0 || solver == MR_GLM_PROXIMAL || solver == MR_GLM_ADMM) return MR_OK;
    return call->does->fail(call, MR_EINVAL,
        "argument \"penalty\": the solver \"%s\" wants a smooth one (none, l2); proximal and admm "
        "take l1 and elasticnet",
        mr_glm_solvers[solver]);
}

/* Means and deviations of columns, from array.moments over axis 0. */
static int take_moments(struct mr_op_call *call, const struct mr_tensor *t, struct mr_glm *g)
{
    const double *numbers = t->data;
    uint32_t p = g->columns;
    bool centered = g->h->intercept != 0;
    for (uint32_t j = 0; j < p; j++) {
        double n = numbers[j];
        double mean = numbers[p + j];
        double square = numbers[2 * (size_t)p + j] / n + (centered ? 0 : mean * mean);
        if (!(n > 0) || !isfinite(mean) || !isfinite(square))
            return call->does->fail(call, MR_EINVAL,
                "argument \"moments\": those of column %u are not finite, or of no row", j);
        g->center[j] = centered ? mean : 0;
        g->scale[j] = square > 0 ? sqrt(square) : 1;
    }
    g->scale[p] = 1;
    return MR_OK;
}

static int moments_of(struct mr_op_call *call, struct mr_glm_head *h, struct mr_tensor *t)
{
    if (call->args[9].type == MR_ARG_NIL) return MR_OK;
    *t = *call->args[9].tensor;
    if (t->dtype != MR_DTYPE_F64 || t->ndim != 2 || t->shape[0] != 4 || !t->shape[1] ||
        t->shape[1] > MR_GLM_COLUMNS_MAX || !mr_tensor_is_contiguous(t))
        return call->does->fail(call, MR_EINVAL,
            "argument \"moments\": expected array.moments of X over axis 0: f64[4, columns]");
    h->standardized = 1;
    h->columns = (double)t->shape[1];
    return MR_OK;
}

/* Coefficients to begin at: those of another fit. */
static int take_from(struct mr_op_call *call, struct mr_glm_head *h, struct mr_glm *from)
{
    if (call->args[10].type == MR_ARG_NIL) return MR_OK;
    int err = mr_glm_state(call, &call->args[10], "from", from);
    if (err) return err;
    if (!from->columns || (h->columns != 0 && h->columns != from->columns))
        return call->does->fail(call, MR_EINVAL,
            "argument \"from\": that fit has %u columns, \"moments\" %g", from->columns,
            h->columns);
    h->columns = from->columns;
    return MR_OK;
}

static void begin_at(const struct mr_glm *from, struct mr_glm *g)
{
    double b = 0;
    mr_glm_raw(from, from->w, g->trial);
    for (uint32_t j = 0; j < g->columns && g->scale; j++) {
        b += g->trial[j] * g->center[j];
        g->trial[j] *= g->scale[j];
    }
    g->trial[g->columns] = g->h->intercept != 0 ? g->trial[g->columns] + b : 0;
    memcpy(g->w, g->trial, (g->columns + 1) * sizeof *g->w);
}

static int run_start(struct mr_op_call *call)
{
    struct mr_glm_head h = {0};
    struct mr_glm from = {0};
    struct mr_tensor moments;
    int64_t count = 0;
    int err =
        one_of(call, 0, mr_glm_families, MR_GLM_FAMILIES, "logistic, normal or poisson", &h.family);
    if (!err)
        err = one_of(call, 1, mr_glm_solvers, MR_GLM_SOLVERS, "gd, newton, lbfgs, proximal or admm",
            &h.solver);
    if (!err) err = read_penalty(call, &h);
    h.intercept = call->args[5].boolean;
    if (!err) err = real(call, 6, 1e300, &h.tol);
    if (!err && call->args[7].type != MR_ARG_NIL)
        err = mr_arg_int(call, &call->args[7], "iterations", 1, 1000000000, &count);
    h.iterations_max = (double)count;
    if (!err) err = mr_arg_int(call, &call->args[8], "memory", 1, MR_GLM_MEMORY_MAX, &count);
    h.memory = (double)count;
    if (!err) err = moments_of(call, &h, &moments);
    if (!err) err = take_from(call, &h, &from);
    if (!err) err = real(call, 11, 1e300, &h.step);
    h.metric = call->args[12].boolean && (int)h.solver != MR_GLM_NEWTON; /* who has its own */
    if (!err) err = mr_glm_columns_check(call, &h, (uint64_t)h.columns);
    if (err) return err;
    uint64_t numbers = mr_glm_numbers(&h);
    double *to = call->does->return_tensor(call, MR_DTYPE_F64, 1, &numbers);
    if (!to) return MR_ELIMIT;
    memset(to, 0, numbers * sizeof *to);
    struct mr_glm g;
    mr_glm_copy(NULL, &h, to, &g);
    if (h.standardized != 0) err = take_moments(call, &moments, &g);
    if (!err && from.h) begin_at(&from, &g);
    return err;
}

/* ---- sums of partials ---- */

struct parts { /* arguments; null ones are passed over */
    const struct mr_arg *items;
    uint32_t count;
};

static int open_partial(
    struct mr_op_call *call, const struct parts *all, uint32_t i, struct mr_glm_partial *out)
{
    double *numbers = NULL;
    uint64_t count = 0;
    int err = mr_glm_numbers_of(call, &all->items[i], "parts", &numbers, &count);
    struct mr_error why = {0};
    if (!err && mr_glm_partial_open(numbers, count, out, &why))
        return call->does->fail(call, MR_EINVAL, "argument \"parts\", number %u: %s", i, why.text);
    return err;
}

/* Those that are there into `parts`, and the head of their sum: they must be alike. */
static int head_of_sum(struct mr_op_call *call, const struct parts *all,
    struct mr_glm_partial *parts, uint32_t *count, struct mr_glm_partial_head *h)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->items[i].type == MR_ARG_NIL) continue;
        int err = open_partial(call, all, i, &parts[n]);
        if (err) return err;
        const struct mr_glm_partial_head *one = parts[n++].h;
        if (n == 1)
            *h = (struct mr_glm_partial_head){
                .columns = one->columns, .hessian = one->hessian, .points = one->points};
        if (one->columns != h->columns)
            return call->does->fail(call, MR_EINVAL,
                "argument \"parts\": number %u is of %g columns, number 0 of %g", i, one->columns,
                h->columns);
        if (one->hessian != h->hessian || one->points != h->points)
            return call->does->fail(call, MR_EINVAL,
                "argument \"parts\": number %u and number 0 are of different fits", i);
        h->entries += one->entries;
        if (h->entries > MR_GLM_CHUNKS_MAX)
            return call->does->fail(call, MR_ELIMIT, "more than %u chunks", MR_GLM_CHUNKS_MAX);
    }
    *count = n;
    return MR_OK;
}

static void sum_up(const struct mr_glm_partial *parts, uint32_t count, double *numbers,
    const struct mr_glm_partial_head *h, struct mr_glm_partial *sum)
{
    uint32_t entry = 0;
    memcpy(numbers, h, sizeof *h);
    mr_glm_partial_lay_out(sum, numbers);
    for (uint32_t i = 0; i < count; i++)
        mr_glm_partial_add(sum, &parts[i], &entry);
}

static int check_sum(
    struct mr_op_call *call, const struct mr_glm *g, const struct mr_glm_partial_head *h)
{
    if (g->columns && h->columns != g->columns)
        return call->does->fail(call, MR_EINVAL,
            "argument \"parts\": they are of %g columns, the state of %u", h->columns, g->columns);
    if ((h->points != 0) != mr_glm_is_local(g) || (h->hessian != 0) != mr_glm_wants_hessian(g))
        return call->does->fail(
            call, MR_EINVAL, "argument \"parts\": they are no answers to this state");
    return MR_OK;
}

/* The state after `g`, in scratch, of *numbers doubles. Where nothing was answered, or the fit is
 * over, `g` stays as it is, and *numbers 0. */
static int step_on(
    struct mr_op_call *call, struct mr_glm *g, const struct parts *all, uint64_t *numbers)
{
    struct mr_glm_partial sum;
    struct mr_glm_partial_head h = {0};
    struct mr_error why = {0};
    uint32_t count = 0;
    *numbers = 0;
    struct mr_glm_partial *parts = call->does->scratch(call, (all->count + 1) * sizeof *parts);
    if (!parts) return MR_ELIMIT;
    if (g->h->status != MR_GLM_RUNNING) return MR_OK;
    int err = head_of_sum(call, all, parts, &count, &h);
    if (err || !count) return err;
    err = check_sum(call, g, &h);
    if (err) return err;
    double *added = call->does->scratch(call, mr_glm_partial_numbers(&h) * sizeof *added);
    if (!added) return MR_ELIMIT;
    sum_up(parts, count, added, &h, &sum);
    if (g->h->evaluations == 0 && !(sum.h->weight > 0))
        return call->does->fail(
            call, MR_EINVAL, "argument \"parts\": no row of any chunk has a weight");
    struct mr_glm_head head = *g->h;
    head.columns = h.columns;
    if (g->solver == MR_GLM_ADMM && head.evaluations == 0) head.chunks = h.entries;
    struct mr_glm next;
    double *to = call->does->scratch(call, mr_glm_numbers(&head) * sizeof *to);
    if (!to) return MR_ELIMIT;
    mr_glm_copy(g, &head, to, &next);
    double *room = call->does->scratch(call, mr_glm_step_numbers(&next) * sizeof *room);
    if (!room) return MR_ELIMIT;
    if (mr_glm_step(&next, &sum, room, &why))
        return call->does->fail(call, why.code, "%s", why.text);
    *g = next;
    *numbers = mr_glm_numbers(&head);
    return MR_OK;
}

/* ---- part ---- */

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
        double any = 0; /* NaN as soon as one is not finite */
        for (uint32_t j = 0; j < columns; j++)
            any += v[i * columns + j] * 0;
        if (isnan(any))
            for (uint32_t j = 0; j < columns; j++)
                if (!isfinite(v[i * columns + j]))
                    return bad(call, name, i, v[i * columns + j], " is not a finite number");
    }
    return MR_OK;
}

/* v log v, which is 0 at 0. */
static double v_log_v(double v)
{
    return v > 0 ? v * log(v) : 0;
}

/* y as the family wants it; and what a model that hits every y has of loss and weight. */
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

/* What only the first look checks: the chunks are the same ones ever after. */
static int check_chunk(struct mr_op_call *call, enum mr_glm_family family,
    const struct mr_glm_rows *r, struct mr_glm_partial_head *h)
{
    int err = check_finite(call, "x", r->x, r->rows, r->columns);
    if (!err) err = check_finite(call, "y", r->y, r->rows, 1);
    if (!err && r->weights) err = check_finite(call, "weights", r->weights, r->rows, 1);
    if (!err && r->offset) err = check_finite(call, "offset", r->offset, r->rows, 1);
    return err ? err : check_y(call, family, r, h);
}

/* Of the chunk, rows [from, to) only: several parts may share one chunk. */
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

/* The chunk's own point of ADMM. */
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

struct pass { /* over a chunk, in blocks */
    const struct mr_glm_rows *rows;
    enum mr_glm_family family;
    const double *raw;
    uint32_t blocks;
    unsigned char *work; /* by lane */
    size_t work_bytes;
    double *sums;                     /* by block: loss, wrong, gradient, Hessian */
    size_t gradient, hessian, stride; /* numbers; the Hessian's may be none */
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
    const struct parts all = {.items = list->items, .count = list->count};
    int err = mr_glm_state(call, &call->args[2], "state", &g);
    if (!err && list->type == MR_ARG_LIST) err = step_on(call, &g, &all, &ignored);
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
    if (over) return MR_OK; /* nobody will look */
    return local ? local_part(call, &g, &r, &p) : whole_part(call, &g, &r, &p);
}

/* ---- add, step ---- */

static int run_add(struct mr_op_call *call)
{
    struct mr_glm_partial_head h = {0};
    struct mr_glm_partial sum;
    uint32_t count = 0;
    const struct parts all = {.items = call->rest, .count = call->rest_count};
    struct mr_glm_partial *parts = call->does->scratch(call, all.count * sizeof *parts);
    if (!parts) return MR_ELIMIT;
    int err = head_of_sum(call, &all, parts, &count, &h);
    if (err) return err;
    uint64_t numbers = mr_glm_partial_numbers(&h);
    double *to = call->does->return_tensor(call, MR_DTYPE_F64, 1, &numbers);
    if (!to) return MR_ELIMIT;
    memset(to, 0, numbers * sizeof *to);
    sum_up(parts, count, to, &h, &sum);
    return MR_OK;
}

static int run_step(struct mr_op_call *call)
{
    struct mr_glm g;
    uint64_t numbers = 0;
    const struct parts all = {.items = call->rest, .count = call->rest_count};
    int err = mr_glm_state(call, &call->args[0], "state", &g);
    if (!err) err = step_on(call, &g, &all, &numbers);
    if (err) return err;
    if (!numbers) return call->does->return_arg(call, &call->args[0]); /* as it is */
    double *to = call->does->return_tensor(call, MR_DTYPE_F64, 1, &numbers);
    if (!to) return MR_ELIMIT;
    memcpy(to, g.h, numbers * sizeof *to);
    return MR_OK;
}

static int run_converged(struct mr_op_call *call)
{
    struct mr_glm g;
    int err = mr_glm_state(call, &call->args[0], "state", &g);
    return err ? err : call->does->return_bool(call, g.h->status != MR_GLM_RUNNING);
}

#define D MR_OP_DETERMINISTIC
#define DV (MR_OP_DETERMINISTIC | MR_OP_VARIADIC)

static const struct mr_op_param start[] = {
    {"family", MR_TAKES_TEXT, NULL, "logistic, normal or poisson, with its canonical link."},
    {"solver", MR_TAKES_TEXT, "\"lbfgs\"",
        "gd, newton or lbfgs (penalties none and l2); proximal or admm (any penalty)."},
    {"penalty", MR_TAKES_TEXT, "\"none\"",
        "none, l1, l2 or elasticnet; the intercept has no penalty."},
    {"alpha", MR_TAKES_REAL, "0.0001", "Weight of the penalty relative to the mean loss."},
    {"l1_ratio", MR_TAKES_REAL, "0.5", "Share of l1 in elasticnet, 0 to 1."},
    {"intercept", MR_TAKES_BOOL, "true", "Fit an intercept."},
    {"tol", MR_TAKES_REAL, "1e-8",
        "Tolerance that ends the fit: of the largest gradient component; for newton, of the "
        "decrement relative to the loss; for admm, of both residuals."},
    {"iterations", MR_TAKES_INT | MR_TAKES_NIL, "null",
        "Largest number of accepted steps; null: no limit."},
    {"memory", MR_TAKES_INT, "8", "Number of pairs that lbfgs stores, 1 to 64."},
    {"moments", MR_TAKES_TENSOR | MR_TAKES_NIL, "null",
        "array.moments of X over axis 0, to standardise the columns."},
    {"from", MR_TAKES_TENSOR | MR_TAKES_NIL, "null", "State of an earlier fit to start from."},
    {"rho", MR_TAKES_REAL, "0", "Initial rho of admm; 0: chosen from the number of chunks."},
    {"precondition", MR_TAKES_BOOL, "false",
        "Precondition steps with the Hessian at the start of the fit: for correlated columns, at "
        "most 1,024 (newton always does so)."},
};
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
static const struct mr_op_param add[] = {
    {"parts", MR_TAKES_TENSOR, NULL, "Results of glm.part or glm.add."},
};
static const struct mr_op_param step[] = {
    {"state", MR_TAKES_TENSOR, NULL, "The state that the parts belong to."},
    {"parts", MR_TAKES_TENSOR | MR_TAKES_NIL, "null",
        "Results of glm.part or glm.add for all chunks; without parts the state does not change."},
};
static const struct mr_op_param converged[] = {
    {"state", MR_TAKES_TENSOR, NULL, "The result of glm.step."},
};

const struct mr_op_desc *mr_glm_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("glm.start", D, start, 5000, run_start, "state: f64 tensor",
            "Starts the fit of a generalized linear model."),
        MR_OP_ROW("glm.part", D, part, 1000000, run_part, "partial: f64 tensor",
            "Computes loss, gradient and other terms of the solver for one chunk of rows, in one "
            "pass."),
        MR_OP_ROW("glm.add", DV, add, 5000, run_add, "partial: f64 tensor",
            "Adds several partials, for trees over many chunks."),
        MR_OP_ROW("glm.step", DV, step, 10000, run_step, "state: f64 tensor",
            "Accepts or rejects the evaluated point and chooses the next one."),
        MR_OP_ROW("glm.converged", D, converged, 2000, run_converged, "bool",
            "Tests whether the fit is over: it converged, cannot make progress, or made all its "
            "iterations."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
