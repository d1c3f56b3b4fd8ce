/* array.matmul: floats with BLAS on one thread, since the tasks of a graph run in parallel;
 * integers with a plain loop. */
#include "ops/array/array.h"

#include "base/unconst.h"

#include <cblas.h>

#define BAND_PRODUCTS 2e9 /* multiplications between two checks for cancellation */

/* A product of an m × k matrix and a k × n matrix, or a stack of such products. All operands are
 * contiguous. */
struct product {
    enum mr_dtype t; /* f32, f64, i64 */
    uint64_t m;
    uint64_t k;
    uint64_t n;
};

static void multiply_integers(
    const struct product *p, const uint64_t *a, const uint64_t *b, uint64_t *c)
{
    memset(c, 0, p->m * p->n * sizeof *c);
    for (uint64_t i = 0; i < p->m; i++) {
        for (uint64_t l = 0; l < p->k; l++) {
            uint64_t x = a[i * p->k + l];
            for (uint64_t j = 0; j < p->n; j++)
                c[i * p->n + j] += x * b[l * p->n + j]; /* an integer overflow wraps */
        }
    }
}

static void multiply(const struct product *p, const void *a, const void *b, void *c)
{
    blasint m = (blasint)p->m;
    blasint n = (blasint)p->n;
    blasint k = (blasint)p->k;
    if (p->t == MR_DTYPE_I64)
        multiply_integers(p, a, b, c);
    else if (!p->m || !p->n || !p->k)
        memset(c, 0, p->m * p->n * mr_dtype_bytes(p->t));
    else if (p->t == MR_DTYPE_F32)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
}

/* Makes `x` contiguous and of type `t`, with a copy if necessary. */
static int ready(struct mr_op_call *call, struct mr_tensor *x, enum mr_dtype t)
{
    if (x->dtype == t && mr_tensor_is_contiguous(x)) return MR_OK;
    uint64_t bytes = mr_tensor_elements(x) * mr_dtype_bytes(t);
    void *copy = call->does->scratch(call, MR_MAX(bytes, 8u));
    if (!copy) return MR_ELIMIT;
    struct mr_tensor to;
    mr_tensor_init(&to, t, x->ndim, x->shape, copy);
    int err = mr_array_cast(call, x, &to);
    *x = to;
    return err;
}

static int shapes_do_not_fit(
    struct mr_op_call *call, const struct mr_tensor *a, const struct mr_tensor *b)
{
    char x[MR_TENSOR_TEXT_MAX];
    char y[MR_TENSOR_TEXT_MAX];
    mr_tensor_text(a->dtype, a->ndim, a->shape, x);
    mr_tensor_text(b->dtype, b->ndim, b->shape, y);
    return call->does->fail(call, MR_EINVAL, "%s and %s cannot be multiplied", x, y);
}

/* Turns a vector into a matrix: one column if `column` is true, otherwise one row. The result of
 * matmul does not have the added axis. */
static void as_matrix(struct mr_tensor *x, bool column)
{
    int64_t stride = x->strides[0];
    uint64_t length = x->shape[0];
    x->ndim = 2;
    x->shape[column ? 0 : 1] = length;
    x->strides[column ? 0 : 1] = stride;
    x->shape[column ? 1 : 0] = 1;
    x->strides[column ? 1 : 0] = column ? stride : stride * (int64_t)length;
}

/* The axes of both operands before the last two, after broadcasting: the shape of the stack of
 * matrices. */
struct stack {
    unsigned ndim;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    uint64_t count;
};

static int stack_of(struct mr_op_call *call, struct mr_tensor *a, struct mr_tensor *b,
    struct mr_tensor *sa, struct mr_tensor *sb, struct stack *s)
{
    *sa = *a;
    *sb = *b;
    sa->ndim -= 2;
    sb->ndim -= 2;
    struct mr_tensor *both[2] = {sa, sb};
    int err = mr_array_broadcast(call, both, 2, &s->ndim, s->shape);
    s->count = 1;
    for (unsigned i = 0; i < s->ndim && !err; i++)
        s->count *= s->shape[i];
    return err;
}

static const char *matrix_at(const struct mr_tensor *t, const struct stack *s, uint64_t index)
{
    const char *p = t->data;
    for (unsigned i = s->ndim; i-- > 0; index /= s->shape[i])
        p += (int64_t)(index % s->shape[i]) * t->strides[i];
    return p;
}

/* Computes one product in bands of rows, with checks for cancellation between bands. */
static int multiply_bands(
    struct mr_op_call *call, const struct product *p, const char *a, const void *b, char *c)
{
    size_t bytes = mr_dtype_bytes(p->t);
    double row = (double)p->k * (double)p->n + 1;
    uint64_t rows = row > BAND_PRODUCTS ? 1 : (uint64_t)(BAND_PRODUCTS / row);
    struct product band = *p;
    for (uint64_t i = 0; i < p->m; i += rows) {
        band.m = MR_MIN(rows, p->m - i);
        multiply(&band, a + i * p->k * bytes, b, c + i * p->n * bytes);
        if (call->does->is_cancelled(call))
            return call->does->fail(call, MR_ECANCELED, "cancelled");
    }
    return MR_OK;
}

static int run_stack(struct mr_op_call *call, const struct product *p, const struct stack *s,
    const struct mr_tensor *a, const struct mr_tensor *b, char *out)
{
    for (uint64_t i = 0; i < s->count; i++) {
        int err = multiply_bands(call, p, matrix_at(a, s, i), matrix_at(b, s, i),
            out + i * p->m * p->n * mr_dtype_bytes(p->t));
        if (err) return err;
    }
    return MR_OK;
}

/* Returns the type in which a product of type `t` is computed. */
static enum mr_dtype product_type(enum mr_dtype t)
{
    if (t == MR_DTYPE_F16) return MR_DTYPE_F32;
    return mr_dtype_is_float(t) ? t : MR_DTYPE_I64;
}

static int run_matmul(struct mr_op_call *call)
{
    struct mr_tensor a;
    struct mr_tensor b;
    int err = mr_array_tensor(call, &call->args[0], "x", &a);
    if (!err) err = mr_array_tensor(call, &call->args[1], "y", &b);
    if (err) return err;
    if (!a.ndim || !b.ndim) return shapes_do_not_fit(call, &a, &b);
    enum mr_dtype t = mr_dtype_promote(a.dtype, b.dtype);
    struct mr_tensor given_a = a;
    struct mr_tensor given_b = b;
    struct product p = {.t = product_type(t)};
    err = ready(call, &a, p.t);
    if (!err) err = ready(call, &b, p.t);
    if (err) return err;
    bool row = a.ndim == 1;
    bool column = b.ndim == 1;
    if (row) as_matrix(&a, false);
    if (column) as_matrix(&b, true);
    p.m = a.shape[a.ndim - 2];
    p.k = a.shape[a.ndim - 1];
    p.n = b.shape[b.ndim - 1];
    if (p.k != b.shape[b.ndim - 2]) return shapes_do_not_fit(call, &given_a, &given_b);
    if (p.m > INT32_MAX || p.n > INT32_MAX || p.k > INT32_MAX)
        return call->does->fail(call, MR_ELIMIT, "a matrix has at most 2^31 - 1 rows and columns");
    struct stack s;
    struct mr_tensor sa;
    struct mr_tensor sb;
    err = stack_of(call, &a, &b, &sa, &sb, &s);
    if (err) return err;
    uint64_t shape[MR_TENSOR_DIMS_MAX + 2];
    unsigned ndim = s.ndim;
    memcpy(shape, s.shape, ndim * sizeof *shape);
    if (!row) shape[ndim++] = p.m;
    if (!column) shape[ndim++] = p.n;
    struct mr_tensor out;
    void *data = ndim ? call->does->return_tensor(call, t, ndim, shape)
                      : call->does->scratch(call, sizeof(double));
    if (!data) return MR_ELIMIT;
    mr_tensor_init(&out, t, ndim, shape, data);
    struct mr_tensor made = out;
    /* If p.t is not the result's type `t`, the product is computed in p.t and then cast to `t`. A
     * cast to a smaller integer type keeps the low bits. */
    if (t != p.t) {
        made.data = call->does->scratch(call, mr_tensor_elements(&out) * mr_dtype_bytes(p.t) + 8);
        if (!made.data) return MR_ELIMIT;
        mr_tensor_init(&made, p.t, ndim, shape, made.data);
    }
    err = run_stack(call, &p, &s, &sa, &sb, mr_unconst(made.data));
    if (!err && t != p.t) err = mr_array_cast(call, &made, &out);
    if (err || ndim) return err;
    return mr_array_return(call, &out);
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param factors[] = {
    {"x", MR_TAKES_ARRAY, NULL, "A vector, a matrix or a stack of matrices."},
    {"y", MR_TAKES_ARRAY, NULL, "A vector, a matrix or a stack of matrices; stacks are broadcast."},
};

const struct mr_op_desc *mr_array_linalg_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("array.matmul", D, factors, 20000, run_matmul, "tensor or number",
            "Computes the matrix product as numpy.matmul defines it."),
    };
    openblas_set_num_threads(1);
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
