/* Search for settings: ml.search.grid and ml.search.random list settings, ml.search.rank orders
 * their scores, ml.search.pick returns one of several values by its rank. The tasks of a graph are
 * fixed when the graph is submitted, but which value ranks third is known only at run time:
 * ml.search.pick is how a graph continues with the best half. */
#include "ops/ml/ml.h"

#include "ops/ml/random.h"
#include "store/object/value.h"

#include <math.h>
#include <stdlib.h>

#define SETTINGS_MAX 65536

/* ---- spaces ---- */

struct axis { /* one parameter of the space */
    struct mr_str name;
    const struct mr_arg *values; /* a list of values; NULL: a distribution */
    uint32_t count;
    bool whole;
    bool log;
    double low;
    double high;
};

static int by_name(const void *a, const void *b)
{
    const struct axis *x = a;
    const struct axis *y = b;
    return mr_str_cmp(x->name, y->name);
}

static int bad_axis(struct mr_op_call *call, const struct mr_arg *v)
{
    return call->does->fail(call, MR_EINVAL,
        "argument \"space\": \"%.*s\": expected a list of values, or {\"uniform\": [low, high]}, "
        "{\"log_uniform\": [low, high]}, {\"int\": [low, high]}",
        (int)MR_MIN(v->name.n, 60u), v->name.p);
}

/* Reads {"uniform": [low, high]}, or the same with "log_uniform" or "int". "int" draws from low to
 * high - 1. */
static int distribution(struct mr_op_call *call, const struct mr_arg *v, struct axis *a)
{
    const struct mr_arg *d = v->count == 1 ? &v->items[0] : NULL;
    if (!d || d->type != MR_ARG_LIST || d->count != 2) return bad_axis(call, v);
    a->whole = mr_str_eq(d->name, MR_STR("int"));
    a->log = mr_str_eq(d->name, MR_STR("log_uniform"));
    if (!a->whole && !a->log && !mr_str_eq(d->name, MR_STR("uniform"))) return bad_axis(call, v);
    for (unsigned i = 0; i < 2; i++) {
        bool real = d->items[i].type == MR_ARG_FLOAT && !a->whole;
        if (d->items[i].type != MR_ARG_INT && !real) return bad_axis(call, v);
    }
    a->low = mr_arg_f64(&d->items[0]);
    a->high = mr_arg_f64(&d->items[1]);
    if (!(a->low < a->high) || !isfinite(a->high - a->low) || (a->log && a->low <= 0) ||
        fabs(a->low) > 0x1p53 || fabs(a->high) > 0x1p53)
        return call->does->fail(call, MR_EINVAL,
            "argument \"space\": \"%.*s\": expected low < high%s", MR_STR_ARG(v->name),
            a->log ? ", both above 0" : "");
    return MR_OK;
}

static int read_space(struct mr_op_call *call, bool lists_only, struct axis **out, uint32_t *count)
{
    const struct mr_arg *space = &call->args[0];
    struct axis *axes = call->does->scratch(call, MR_MAX(space->count, 1u) * sizeof *axes);
    if (!axes) return MR_ELIMIT;
    for (uint32_t i = 0; i < space->count; i++) {
        const struct mr_arg *v = &space->items[i];
        axes[i].name = v->name;
        int err = MR_OK;
        if (v->type == MR_ARG_LIST && v->count) {
            axes[i].values = v->items;
            axes[i].count = v->count;
        } else if (v->type == MR_ARG_DICT && !lists_only) {
            err = distribution(call, v, &axes[i]);
        } else {
            err = bad_axis(call, v);
        }
        if (err) return err;
    }
    qsort(axes, space->count, sizeof *axes, by_name);
    *out = axes;
    *count = space->count;
    return MR_OK;
}

/* Returns the number of points of a grid. UINT64_MAX: more than `max`. */
static uint64_t grid_size(const struct axis *axes, uint32_t count, uint64_t max)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < count; i++) {
        if (n > max / axes[i].count) return UINT64_MAX;
        n *= axes[i].count;
    }
    return n;
}

/* Makes point `at` of the grid. Names are sorted; the last name varies fastest. */
static int grid_point(struct mr_op_call *call, const struct axis *axes, uint32_t count, uint64_t at,
    struct mr_arg *out)
{
    struct mr_arg *items = call->does->scratch(call, MR_MAX(count, 1u) * sizeof *items);
    if (!items) return MR_ELIMIT;
    for (uint32_t i = count; i-- > 0; at /= axes[i].count) {
        items[i] = axes[i].values[at % axes[i].count];
        items[i].name = axes[i].name;
    }
    *out = mr_ml_dict(items, count);
    return MR_OK;
}

static int too_many(struct mr_op_call *call)
{
    return call->does->fail(call, MR_ELIMIT, "more than %d settings", SETTINGS_MAX);
}

static int return_list(struct mr_op_call *call, const struct mr_arg *items, uint64_t count)
{
    struct mr_arg list = mr_ml_list(items, (uint32_t)count);
    return call->does->return_arg(call, &list);
}

static int run_grid(struct mr_op_call *call)
{
    struct axis *axes = NULL;
    uint32_t count = 0;
    int err = read_space(call, true, &axes, &count);
    if (err) return err;
    uint64_t n = grid_size(axes, count, SETTINGS_MAX);
    if (n > SETTINGS_MAX) return too_many(call);
    struct mr_arg *points = call->does->scratch(call, n * sizeof *points);
    if (!points) return MR_ELIMIT;
    for (uint64_t i = 0; i < n && !err; i++)
        err = grid_point(call, axes, count, i, &points[i]);
    return err ? err : return_list(call, points, n);
}

/* ---- random ---- */

/* Draws from a space that has only lists: points of the grid without repetition, as scikit-learn's
 * ParameterSampler draws them. */
static int draw_points(struct mr_op_call *call, struct mr_mt *mt, const struct axis *axes,
    uint32_t count, struct mr_arg *points, uint64_t n)
{
    uint64_t all = grid_size(axes, count, 64 * (uint64_t)SETTINGS_MAX);
    if (all > 64 * (uint64_t)SETTINGS_MAX)
        return call->does->fail(call, MR_ELIMIT,
            "a grid of more than %d points; draw from a distribution instead", 64 * SETTINGS_MAX);
    if (n > all)
        return call->does->fail(call, MR_EINVAL, "%llu settings wanted, the lists have %llu",
            (unsigned long long)n, (unsigned long long)all);
    uint32_t *order = call->does->scratch(call, all * sizeof *order);
    if (!order) return MR_ELIMIT;
    for (uint64_t i = 0; i < all; i++)
        order[i] = (uint32_t)i;
    mr_mt_shuffle_u32(mt, order, all);
    int err = MR_OK;
    for (uint64_t i = 0; i < n && !err; i++)
        err = grid_point(call, axes, count, order[i], &points[i]);
    return err;
}

static struct mr_arg draw(struct mr_mt *mt, const struct axis *a)
{
    if (a->values) return a->values[mr_mt_upto(mt, a->count - 1)];
    if (a->whole) {
        uint64_t range = (uint64_t)(a->high - a->low) - 1;
        return mr_ml_int((int64_t)a->low + (int64_t)mr_mt_upto(mt, range));
    }
    double u = mr_mt_f64(mt);
    if (a->log) return mr_ml_float(exp(log(a->low) + u * (log(a->high) - log(a->low))));
    return mr_ml_float(a->low + (a->high - a->low) * u);
}

static int draw_settings(struct mr_op_call *call, struct mr_mt *mt, const struct axis *axes,
    uint32_t count, struct mr_arg *points, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct mr_arg *items = call->does->scratch(call, count * sizeof *items);
        if (!items) return MR_ELIMIT;
        for (uint32_t k = 0; k < count; k++) {
            items[k] = draw(mt, &axes[k]);
            items[k].name = axes[k].name;
        }
        points[i] = mr_ml_dict(items, count);
    }
    return MR_OK;
}

static int run_random(struct mr_op_call *call)
{
    struct axis *axes = NULL;
    uint32_t count = 0;
    int64_t n = 0;
    int64_t seed = 0;
    int err = read_space(call, false, &axes, &count);
    if (!err) err = mr_arg_int(call, &call->args[1], "count", 0, SETTINGS_MAX, &n);
    if (!err) err = mr_arg_int(call, &call->args[2], "seed", 0, UINT32_MAX, &seed);
    if (err) return err;
    struct mr_arg *points = call->does->scratch(call, (uint64_t)MR_MAX(n, 1) * sizeof *points);
    if (!points) return MR_ELIMIT;
    struct mr_mt mt;
    mr_mt_init(&mt, (uint32_t)seed);
    bool lists = true;
    for (uint32_t i = 0; i < count; i++)
        lists &= axes[i].values != NULL;
    err = (lists ? draw_points : draw_settings)(call, &mt, axes, count, points, (uint64_t)n);
    return err ? err : return_list(call, points, (uint64_t)n);
}

/* ---- rank, pick ---- */

struct place {
    double score;
    int64_t i;
};

/* Compares scores, which are negated if the largest score is the best. The smallest comes first and
 * NaN last; equal scores keep their order. */
static int by_score(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    if (isnan(x->score) != isnan(y->score)) return isnan(x->score) ? 1 : -1;
    if (x->score < y->score) return -1;
    if (x->score > y->score) return 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static int run_rank(struct mr_op_call *call)
{
    const double *scores = NULL;
    uint64_t n = 0;
    uint64_t columns = 0;
    int err = mr_ml_matrix(call, &call->args[0], "scores", &scores, &n, &columns);
    if (err) return err;
    if (columns != 1)
        return call->does->fail(call, MR_EINVAL, "argument \"scores\": expected one number each");
    bool max = mr_str_eq(call->args[1].bytes, MR_STR("max"));
    if (!max && !mr_str_eq(call->args[1].bytes, MR_STR("min")))
        return call->does->fail(call, MR_EINVAL, "argument \"mode\": expected max or min");
    struct place *places = call->does->scratch(call, MR_MAX(n, 1u) * sizeof *places);
    int64_t *out = call->does->return_tensor(call, MR_DTYPE_I64, 1, &n);
    if (!places || !out) return MR_ELIMIT;
    for (uint64_t i = 0; i < n; i++)
        places[i] = (struct place){max ? -scores[i] : scores[i], (int64_t)i};
    qsort(places, n, sizeof *places, by_score);
    for (uint64_t i = 0; i < n; i++)
        out[i] = places[i].i;
    return MR_OK;
}

/* Reads the argument "ranking". The operator takes inputs by reference, so a stored ranking is
 * loaded here. */
static int open_ranking(struct mr_op_call *call, struct mr_tensor *t)
{
    const struct mr_arg *a = &call->args[0];
    if (a->type != MR_ARG_OBJECT) return mr_array_tensor(call, a, "ranking", t);
    struct mr_str extent;
    struct mr_value v;
    struct mr_error why = {0};
    int err = call->does->load(call, a->object, &extent);
    if (err) return err;
    err = mr_value_check(extent, &v, &why);
    if (err) return call->does->fail(call, err, "argument \"ranking\": %s", why.text);
    if (v.kind != MR_VALUE_TENSOR)
        return call->does->fail(call, MR_EINVAL, "argument \"ranking\": expected a tensor");
    *t = v.tensor;
    return MR_OK;
}

static int run_pick(struct mr_op_call *call)
{
    struct mr_tensor ranking;
    const struct mr_arg *from = &call->args[2];
    int64_t place = 0;
    int err = open_ranking(call, &ranking);
    if (err) return err;
    if (ranking.ndim != 1 || ranking.dtype != MR_DTYPE_I64 || !mr_tensor_is_contiguous(&ranking))
        return call->does->fail(
            call, MR_EINVAL, "argument \"ranking\": expected what ml.search.rank gave");
    err = mr_arg_int(call, &call->args[1], "place", 0, (int64_t)ranking.shape[0] - 1, &place);
    if (err) return err;
    int64_t at = ((const int64_t *)ranking.data)[place];
    if (at < 0 || at >= from->count)
        return call->does->fail(call, MR_ERANGE,
            "argument \"values\": the ranking names number %lld of %u", (long long)at, from->count);
    return call->does->return_arg(call, &from->items[at]);
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param grids[] = {
    {"space", MR_TAKES_DICT, NULL, "A list of values for each name."},
};
static const struct mr_op_param drawn[] = {
    {"space", MR_TAKES_DICT, NULL,
        "For each name a list of values, or {\"uniform\": [low, high]}, {\"log_uniform\": …}, "
        "{\"int\": …}; `high` is not included."},
    {"count", MR_TAKES_INT, NULL,
        "Number of settings. If the space has only lists, no setting occurs twice."},
    {"seed", MR_TAKES_INT, "0", "The same seed draws the same settings."},
};
static const struct mr_op_param ranked[] = {
    {"scores", MR_TAKES_ARRAY, NULL, "One number for each setting."},
    {"mode", MR_TAKES_TEXT, "\"max\"",
        "The best score is the largest (max) or the smallest (min)."},
};
static const struct mr_op_param picked[] = {
    {"ranking", MR_TAKES_TENSOR | MR_TAKES_LIST | MR_TAKES_OBJECT, NULL,
        "The result of ml.search.rank."},
    {"place", MR_TAKES_INT, NULL, "Place in the ranking; 0: the best."},
    {"values", MR_TAKES_LIST, NULL, "One value for each score."},
};

const struct mr_op_desc *mr_ml_search_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("ml.search.grid", D, grids, 20000, run_grid, "list of dicts",
            "Makes every combination of values; names are sorted, the last name varies fastest."),
        MR_OP_ROW("ml.search.random", D, drawn, 20000, run_random, "list of dicts",
            "Draws settings at random, the same as scikit-learn's ParameterSampler."),
        MR_OP_ROW("ml.search.rank", D, ranked, 10000, run_rank, "i64 tensor [scores]",
            "Returns the indices of the scores, best first, NaN last."),
        MR_OP_ROW("ml.search.pick", D | MR_OP_BY_REFERENCE, picked, 5000, run_pick, "value",
            "Returns the value at a place of a ranking, without a copy."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
