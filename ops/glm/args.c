#include "ops/glm/args.h"

#include "ops/ml/ml.h"

int mr_glm_numbers_of(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    double **numbers, uint64_t *count)
{
    const struct mr_tensor *t = arg->tensor;
    if (arg->type != MR_ARG_TENSOR || t->dtype != MR_DTYPE_F64 || t->ndim != 1)
        return call->does->fail(call, MR_EINVAL, "argument \"%s\": expected f64 of one axis", name);
    *count = t->shape[0];
    *numbers = call->does->scratch(call, (*count + 1) * sizeof **numbers);
    if (!*numbers) return MR_ELIMIT;
    mr_tensor_copy(t, *numbers);
    return MR_OK;
}

int mr_glm_state(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_glm *out)
{
    double *numbers = NULL;
    uint64_t count = 0;
    struct mr_error why = {0};
    int err = mr_glm_numbers_of(call, arg, name, &numbers, &count);
    if (!err && mr_glm_open(numbers, count, out, &why))
        return call->does->fail(call, MR_EINVAL, "argument \"%s\": %s", name, why.text);
    return err;
}

int mr_glm_rows(
    struct mr_op_call *call, const struct mr_arg *x, int64_t chunk, struct mr_glm_rows *out)
{
    uint64_t columns = 0;
    int err = mr_ml_matrix(call, x, "x", &out->x, &out->rows, &columns);
    if (err) return err;
    if (!columns || columns > MR_GLM_COLUMNS_MAX)
        return call->does->fail(call, MR_ELIMIT,
            "argument \"x\", chunk %lld: it has %llu columns; 1 to %u are possible",
            (long long)chunk, (unsigned long long)columns, MR_GLM_COLUMNS_MAX);
    out->columns = (uint32_t)columns;
    return MR_OK;
}

int mr_glm_vector(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    int64_t chunk, uint64_t rows, const double **out)
{
    uint64_t n = 0;
    uint64_t columns = 0;
    if (arg->type == MR_ARG_NIL) return MR_OK;
    int err = mr_ml_matrix(call, arg, name, out, &n, &columns);
    if (err) return err;
    if (columns == 1 && n == rows) return MR_OK;
    return call->does->fail(call, MR_EINVAL,
        "argument \"%s\", chunk %lld: it has %llu rows of %llu, \"x\" %llu rows", name,
        (long long)chunk, (unsigned long long)n, (unsigned long long)columns,
        (unsigned long long)rows);
}

int mr_glm_columns_check(struct mr_op_call *call, const struct mr_glm_head *h, uint64_t columns)
{
    if (!mr_glm_is_square(h) || columns <= MR_GLM_SQUARE_COLUMNS_MAX) return MR_OK;
    const char *solver = mr_glm_solvers[(int)h->solver];
    if (h->metric != 0)
        return call->does->fail(call, MR_ELIMIT,
            "the solver \"%s\" with \"precondition\" takes %u columns at most, not %llu", solver,
            MR_GLM_SQUARE_COLUMNS_MAX, (unsigned long long)columns);
    return call->does->fail(call, MR_ELIMIT,
        "the solver \"%s\" takes %u columns at most, not %llu: try lbfgs or proximal", solver,
        MR_GLM_SQUARE_COLUMNS_MAX, (unsigned long long)columns);
}
