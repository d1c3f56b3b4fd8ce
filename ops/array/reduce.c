/* Prepares tensors for the kernels of reductions, and computes moments. reduce.h says what outer,
 * inner, rows and groups are. */
#include "ops/array/reduce.h"

#include "base/assert.h"
#include "base/unconst.h"

#include <math.h>

/* Elements of a wide row (reduce.h). Kernels vectorise well over rows of this length. */
#define LANES 64
/* Number of rows that the kernel sums as one block. The kernel sums the differences between each
 * row and the block's first row. So the rounding error grows with the number of rows of a block,
 * not with the number of all rows. */
#define BLOCK_ROWS 128
#define CANCEL_BYTES ((uint64_t)16 << 20)

/* True: the reduced axes are adjacent. Axes of length 1 do not count. */
static bool is_block(const struct mr_tensor *x, uint32_t axes)
{
    /* Where the loop stands. 0: before the reduced axes. 1: among them. 2: after them. */
    int state = 0;
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

/* Returns a view of `x` with the reduced axes moved to the end. */
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
    /* A tensor is in its final place already. */
    return out->ndim ? MR_OK : mr_array_return(call, out);
}

/* ---- moments ---- */

/* TwoSum (Knuth): returns hi + t as a double, and sets `*low` to its rounding error, or to 0 if the
 * sum is not finite. */
static inline double two_sum(double hi, double t, double *low)
{
    double sum = hi + t;
    double part = sum - hi;
    double rest = (hi - (sum - part)) + (t - part);
    *low = isfinite(sum) ? rest : 0;
    return sum;
}

void mr_moments_merge(double count_a, const struct mr_moments *a, double count_b,
    const struct mr_moments *b, size_t n)
{
    double count = count_a + count_b;
    if (count_b == 0) return;
    /* If `a` is empty, `b` is copied, because the formula below would lose `low` by rounding. */
    if (count_a == 0) {
        memcpy(a->mean, b->mean, n * sizeof *a->mean);
        memcpy(a->low, b->low, n * sizeof *a->low);
        memcpy(a->m2, b->m2, n * sizeof *a->m2);
        return;
    }
    double share = count_b / count;
    double weight = count_a * share;
    for (size_t j = 0; j < n; j++) {
        double low = b->low[j] - a->low[j];
        double delta = b->mean[j] - a->mean[j] + low;
        /* If both means are the same infinity, their difference is NaN. */
        if (b->mean[j] == a->mean[j]) delta = low;
        a->mean[j] = two_sum(a->mean[j], a->low[j] + delta * share, &a->low[j]);
        a->m2[j] += b->m2[j] + delta * delta * weight;
    }
}

/* Working memory for the columns of one outer index. */
struct moments {
    double *shift;
    /* In add_block, `mean` first holds sums of x - shift, and `m2` holds sums of (x - shift)^2. */
    struct mr_moments block;
    struct mr_moments all;
};

static struct mr_moments moments_at(const struct mr_moments *m, size_t j)
{
    return (struct mr_moments){m->mean + j, m->low + j, m->m2 + j};
}

static const char *element(const struct mr_reduction *r, const char *row, size_t j)
{
    return row + j * mr_dtype_bytes(r->dtype);
}

/* Adds one block of rows to the running moments. */
static void add_block(const struct mr_reduction *r, const char *rows, size_t count, size_t width,
    double seen, const struct moments *m)
{
    char *io[2] = {mr_unconst(element(r, rows, 0)), (char *)m->shift};
    const ptrdiff_t step[2] = {(ptrdiff_t)mr_dtype_bytes(r->dtype), sizeof *m->shift};
    mr_cast_kernel(r->dtype, MR_DTYPE_F64)(io, width, step);
    double *sums = m->block.mean, *squares = m->block.m2;
    for (size_t j = 0; j < width; j++) {
        if (!isfinite(m->shift[j])) m->shift[j] = 0;
        sums[j] = 0;
        squares[j] = 0;
    }
    mr_moments_rows(r->dtype)(rows, count, width, m->shift, sums, squares);
    double n = (double)count;
    for (size_t j = 0; j < width; j++) {
        double s = sums[j];
        double q = squares[j] - s * s / n;
        squares[j] = q < 0 ? 0 : q;
        sums[j] = two_sum(m->shift[j], s / n, &m->block.low[j]);
    }
    mr_moments_merge(seen, &m->all, n, &m->block, width);
}

/* Computes the moments of n rows of `width` columns into m->all. */
static int moments_of_rows(struct mr_op_call *call, const struct mr_reduction *r, const char *rows,
    uint64_t n, size_t width, const struct moments *m)
{
    size_t row_bytes = width * mr_dtype_bytes(r->dtype);
    memset(m->all.mean, 0, width * sizeof(double));
    memset(m->all.low, 0, width * sizeof(double));
    memset(m->all.m2, 0, width * sizeof(double));
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

/* Does the work of moments_of_rows for few columns: `lanes` rows are taken as one wide row. The
 * moments of the lanes and of the remaining rows are merged at the end. */
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
    for (size_t k = 1; k < lanes; k++) {
        const struct mr_moments lane = moments_at(&m->all, k * inner);
        mr_moments_merge(seen * (double)k, &m->all, seen, &lane, inner);
    }
    const char *behind = rows + whole * lanes * inner * mr_dtype_bytes(r->dtype);
    if (rest) add_block(r, behind, rest, inner, seen * (double)lanes, m);
    return MR_OK;
}

int mr_reduce_moments(
    struct mr_op_call *call, const struct mr_reduction *r, const struct mr_moments *out)
{
    size_t width = (size_t)MR_MAX(r->inner, (uint64_t)LANES);
    double *memory = call->does->scratch(call, 7 * width * sizeof *memory);
    if (!memory) return MR_ELIMIT;
    struct moments m = {.shift = memory,
        .block = {memory + width, memory + 2 * width, memory + 3 * width},
        .all = {memory + 4 * width, memory + 5 * width, memory + 6 * width}};
    size_t inner = (size_t)r->inner;
    for (uint64_t o = 0; inner && o < r->outer; o++) {
        const char *rows = r->data + o * r->n * r->inner * mr_dtype_bytes(r->dtype);
        int err = inner <= LANES / 2 ? moments_narrow(call, r, rows, &m)
                                     : moments_of_rows(call, r, rows, r->n, inner, &m);
        if (err) return err;
        const struct mr_moments to = moments_at(out, o * inner);
        memcpy(to.mean, m.all.mean, inner * sizeof *to.mean);
        memcpy(to.low, m.all.low, inner * sizeof *to.low);
        memcpy(to.m2, m.all.m2, inner * sizeof *to.m2);
    }
    return MR_OK;
}
