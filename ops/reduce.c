/* Brings any tensor into the shape that the kernels of reductions want, and moments. */
#include "ops/reduce.h"

#include "base/assert.h"

#include <math.h>

#define LANES 64       /* a row at least this wide vectorises */
#define BLOCK_ROWS 128 /* rows around one shift: error grows with this, not with n */
#define CANCEL_BYTES ((uint64_t)16 << 20)

/* Do the reduced axes stand together, those of length 1 aside? */
static bool is_block(const struct mr_tensor *x, uint32_t axes)
{
    int state = 0; /* 0: before, 1: within, 2: behind */
    for (unsigned i = 0; i < x->ndim; i++) {
        if (x->shape[i] == 1) continue;
        bool reduced = axes >> i & 1;
        if (state == 0 && reduced) state = 1;
        if (state == 1 && !reduced) state = 2;
        if (state == 2 && reduced) return false;
    }
    return true;
}

static void group_axes(const struct mr_tensor *x, uint32_t axes, struct mr_reduction *r)
{
    bool behind = false;
    for (unsigned i = 0; i < x->ndim; i++) {
        if (axes >> i & 1) {
            r->n *= x->shape[i];
            behind |= x->shape[i] != 1;
        } else if (behind) {
            r->inner *= x->shape[i];
        } else {
            r->outer *= x->shape[i];
        }
    }
}

/* `t` with the reduced axes last. */
static struct mr_tensor reduced_last(const struct mr_tensor *x, uint32_t axes)
{
    struct mr_tensor t = *x;
    unsigned at = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < x->ndim; i++) {
            if ((axes >> i & 1) != pass) continue;
            t.shape[at] = x->shape[i];
            t.strides[at++] = x->strides[i];
        }
    }
    return t;
}

int mr_reduction_prepare(struct mr_op_call *call, const struct mr_tensor *x, uint32_t axes,
    bool keepdims, struct mr_reduction *out)
{
    *out =
        (struct mr_reduction){.dtype = x->dtype, .data = x->data, .outer = 1, .n = 1, .inner = 1};
    for (unsigned i = 0; i < x->ndim; i++) {
        bool reduced = axes >> i & 1;
        if (reduced && !keepdims) continue;
        out->kept[out->kept_ndim++] = reduced ? 1 : x->shape[i];
    }
    bool in_place = is_block(x, axes);
    struct mr_tensor t = in_place ? *x : reduced_last(x, axes);
    if (in_place) {
        group_axes(x, axes, out);
    } else {
        for (unsigned i = 0; i < x->ndim; i++)
            *(axes >> i & 1 ? &out->n : &out->outer) *= x->shape[i];
    }
    bool half = x->dtype == MR_DTYPE_F16;
    if (half) out->dtype = MR_DTYPE_F32;
    if (!half && mr_tensor_is_contiguous(&t)) return MR_OK;
    uint64_t bytes = mr_tensor_elements(&t) * mr_dtype_bytes(out->dtype);
    void *copy = call->does->scratch(call, MR_MAX(bytes, 8u));
    if (!copy) return MR_ELIMIT;
    out->data = copy;
    struct mr_tensor to;
    mr_tensor_init(&to, out->dtype, t.ndim, t.shape, copy);
    return mr_array_cast(call, &t, &to);
}

int mr_reduction_result(struct mr_op_call *call, enum mr_dtype t, unsigned ndim,
    const uint64_t *shape, struct mr_tensor *out)
{
    void *data =
        ndim ? call->does->return_tensor(call, t, ndim, shape) : call->does->scratch(call, 16);
    if (!data) return MR_ELIMIT;
    mr_tensor_init(out, t, ndim, shape, data);
    return MR_OK;
}

int mr_reduction_return(struct mr_op_call *call, const struct mr_tensor *out)
{
    return out->ndim ? MR_OK : mr_array_return(call, out); /* tensors are written in place */
}

/* ---- moments ---- */

void mr_moments_merge(double count_a, double *mean_a, double *m2_a, double count_b,
    const double *mean_b, const double *m2_b, size_t n)
{
    double count = count_a + count_b;
    if (count == 0) return;
    double share = count_b / count;
    double weight = count_a * share;
    for (size_t j = 0; j < n; j++) {
        double delta = mean_b[j] - mean_a[j];
        if (mean_b[j] == mean_a[j]) delta = 0; /* also where both are infinite */
        mean_a[j] += delta * share;
        m2_a[j] += m2_b[j] + delta * delta * weight;
    }
}

/* Memory of one group of columns. */
struct moments {
    double *shift;
    double *sums; /* then the means of the block */
    double *squares;
    double *means;
    double *m2;
};

static const char *element(const struct mr_reduction *r, const char *row, size_t j)
{
    return row + j * mr_dtype_bytes(r->dtype);
}

/* One block of rows into the running means. */
static void add_block(const struct mr_reduction *r, const char *rows, size_t count, size_t width,
    double seen, const struct moments *m)
{
    char *io[2] = {(char *)(uintptr_t)element(r, rows, 0), (char *)m->shift};
    const ptrdiff_t step[2] = {(ptrdiff_t)mr_dtype_bytes(r->dtype), sizeof *m->shift};
    mr_cast_kernel(r->dtype, MR_DTYPE_F64)(io, width, step);
    for (size_t j = 0; j < width; j++) {
        if (!isfinite(m->shift[j])) m->shift[j] = 0;
        m->sums[j] = 0;
        m->squares[j] = 0;
    }
    mr_moments_rows(r->dtype)(rows, count, width, m->shift, m->sums, m->squares);
    double n = (double)count;
    for (size_t j = 0; j < width; j++) {
        double s = m->sums[j];
        double q = m->squares[j] - s * s / n;
        m->squares[j] = q < 0 ? 0 : q;
        m->sums[j] = m->shift[j] + s / n;
    }
    mr_moments_merge(seen, m->means, m->m2, n, m->sums, m->squares, width);
}

/* n rows of `width` into m->means and m->m2. */
static int moments_of_rows(struct mr_op_call *call, const struct mr_reduction *r, const char *rows,
    uint64_t n, size_t width, const struct moments *m)
{
    size_t row_bytes = width * mr_dtype_bytes(r->dtype);
    memset(m->means, 0, width * sizeof(double));
    memset(m->m2, 0, width * sizeof(double));
    uint64_t since = 0;
    for (uint64_t i = 0; i < n; i += BLOCK_ROWS) {
        size_t count = (size_t)MR_MIN(n - i, (uint64_t)BLOCK_ROWS);
        add_block(r, rows + i * row_bytes, count, width, (double)i, m);
        since += count * row_bytes;
        if (since < CANCEL_BYTES) continue;
        since = 0;
        if (call->does->is_cancelled(call))
            return call->does->fail(call, MR_ECANCELED, "cancelled");
    }
    return MR_OK;
}

/* n rows of few columns: `lanes` rows side by side as one, then the lanes and the rest merged. */
static int moments_narrow(struct mr_op_call *call, const struct mr_reduction *r, const char *rows,
    const struct moments *m)
{
    size_t inner = (size_t)r->inner;
    size_t lanes = LANES / inner;
    uint64_t whole = r->n / lanes;
    size_t rest = (size_t)(r->n % lanes);
    int err = moments_of_rows(call, r, rows, whole, lanes * inner, m);
    if (err) return err;
    double seen = (double)whole;
    for (size_t k = 1; k < lanes; k++)
        mr_moments_merge(seen * (double)k, m->means, m->m2, seen, m->means + k * inner,
            m->m2 + k * inner, inner);
    const char *behind = rows + whole * lanes * inner * mr_dtype_bytes(r->dtype);
    if (rest) add_block(r, behind, rest, inner, seen * (double)lanes, m);
    return MR_OK;
}

int mr_reduce_moments(
    struct mr_op_call *call, const struct mr_reduction *r, double *means, double *m2)
{
    size_t width = (size_t)MR_MAX(r->inner, (uint64_t)LANES);
    double *memory = call->does->scratch(call, 5 * width * sizeof *memory);
    if (!memory) return MR_ELIMIT;
    struct moments m = {.shift = memory,
        .sums = memory + width,
        .squares = memory + 2 * width,
        .means = memory + 3 * width,
        .m2 = memory + 4 * width};
    size_t inner = (size_t)r->inner;
    for (uint64_t o = 0; inner && o < r->outer; o++) {
        const char *rows = r->data + o * r->n * r->inner * mr_dtype_bytes(r->dtype);
        int err = inner <= LANES / 2 ? moments_narrow(call, r, rows, &m)
                                     : moments_of_rows(call, r, rows, r->n, inner, &m);
        if (err) return err;
        memcpy(means + o * inner, m.means, inner * sizeof *means);
        memcpy(m2 + o * inner, m.m2, inner * sizeof *m2);
    }
    return MR_OK;
}
