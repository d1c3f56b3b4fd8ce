/* Joins axes that follow each other in memory, so that the kernel gets long inner loops. Operands
 * of another dtype than the kernel's are converted in chunks, through a buffer that stays in the
 * cache. */
#include "ops/kernel/strided_loop.h"

#include "base/assert.h"
#include "base/unconst.h"

#define CHUNK 2048              /* elements in a conversion buffer */
#define CANCEL_EVERY (1u << 20) /* elements between two checks for cancellation */

void mr_loop_operand_set(struct mr_loop *l, unsigned i, const struct mr_tensor *t, enum mr_dtype as)
{
    struct mr_loop_operand *o = &l->operand[i];
    o->p = mr_unconst(t->data);
    o->stored = t->dtype;
    o->as = as;
    memcpy(o->strides, t->strides, t->ndim * sizeof o->strides[0]);
}

/* True: the axes i and i + 1 can be joined into one. */
static bool is_joinable(const struct mr_loop *l, unsigned i)
{
    for (unsigned k = 0; k < l->count; k++) {
        const int64_t *s = l->operand[k].strides;
        if (s[i] != s[i + 1] * (int64_t)l->shape[i + 1]) return false;
    }
    return true;
}

/* Drops axes of length 1 and joins neighbours. At least one axis remains. */
static void join_axes(struct mr_loop *l)
{
    unsigned n = 0;
    for (unsigned i = 0; i < l->ndim; i++) {
        if (l->shape[i] == 1) continue;
        l->shape[n] = l->shape[i];
        for (unsigned k = 0; k < l->count; k++)
            l->operand[k].strides[n] = l->operand[k].strides[i];
        n++;
    }
    if (!n) {
        l->shape[n] = 1;
        for (unsigned k = 0; k < l->count; k++)
            l->operand[k].strides[0] = 0;
        n = 1;
    }
    l->ndim = n;
    for (unsigned i = n - 1; i-- > 0;) { /* goes from the innermost axis outwards */
        if (!is_joinable(l, i)) continue;
        l->shape[i] *= l->shape[i + 1];
        for (unsigned k = 0; k < l->count; k++)
            l->operand[k].strides[i] = l->operand[k].strides[i + 1];
        for (unsigned j = i + 1; j + 1 < l->ndim; j++) {
            l->shape[j] = l->shape[j + 1];
            for (unsigned k = 0; k < l->count; k++)
                l->operand[k].strides[j] = l->operand[k].strides[j + 1];
        }
        l->ndim--;
    }
}

struct buffers {
    bool cast[MR_LOOP_OPERANDS_MAX];
    bool any;
    mr_kernel kernel[MR_LOOP_OPERANDS_MAX];
    _Alignas(64) char bytes[MR_LOOP_OPERANDS_MAX][CHUNK * 8];
};

static void plan_casts(const struct mr_loop *l, struct buffers *b)
{
    b->any = false;
    for (unsigned k = 0; k < l->count; k++) {
        const struct mr_loop_operand *o = &l->operand[k];
        b->cast[k] = o->as != o->stored;
        b->any |= b->cast[k];
        if (!b->cast[k]) continue;
        bool result = k + 1 == l->count;
        b->kernel[k] = result ? mr_cast_kernel(o->as, o->stored) : mr_cast_kernel(o->stored, o->as);
    }
}

/* Runs the kernel on n elements of the inner axis, and converts operands and result. */
static void run_cast(
    const struct mr_loop *l, struct buffers *b, char *const *at, uint64_t n, const ptrdiff_t *step)
{
    unsigned last = l->count - 1;
    for (uint64_t done = 0; done < n; done += CHUNK) {
        size_t m = (size_t)MR_MIN(n - done, (uint64_t)CHUNK);
        char *p[MR_LOOP_OPERANDS_MAX];
        ptrdiff_t s[MR_LOOP_OPERANDS_MAX];
        for (unsigned k = 0; k < l->count; k++) {
            p[k] = at[k] + (ptrdiff_t)done * step[k];
            s[k] = step[k];
            if (!b->cast[k]) continue;
            ptrdiff_t width = (ptrdiff_t)mr_dtype_bytes(l->operand[k].as);
            bool constant = step[k] == 0 && k != last;
            if (k != last) {
                char *io[2] = {p[k], b->bytes[k]};
                const ptrdiff_t steps[2] = {step[k], width};
                b->kernel[k](io, constant ? 1 : m, steps);
            }
            p[k] = b->bytes[k];
            s[k] = constant ? 0 : width;
        }
        l->kernel(p, m, s);
        if (b->cast[last]) {
            char *io[2] = {b->bytes[last], at[last] + (ptrdiff_t)done * step[last]};
            const ptrdiff_t steps[2] = {s[last], step[last]};
            b->kernel[last](io, m, steps);
        }
    }
}

int mr_loop_run(struct mr_op_call *call, struct mr_loop *l)
{
    mr_assert(l->count >= 1 && l->count <= MR_LOOP_OPERANDS_MAX);
    for (unsigned i = 0; i < l->ndim; i++)
        if (!l->shape[i]) return MR_OK;
    join_axes(l);
    struct buffers b;
    plan_casts(l, &b);
    unsigned inner = l->ndim - 1;
    char *at[MR_LOOP_OPERANDS_MAX];
    ptrdiff_t step[MR_LOOP_OPERANDS_MAX];
    uint64_t index[MR_TENSOR_DIMS_MAX] = {0};
    for (unsigned k = 0; k < l->count; k++) {
        at[k] = l->operand[k].p;
        step[k] = (ptrdiff_t)l->operand[k].strides[inner];
    }
    uint64_t since = 0;
    for (;;) {
        for (uint64_t done = 0; done < l->shape[inner]; done += CANCEL_EVERY) {
            uint64_t n = MR_MIN(l->shape[inner] - done, (uint64_t)CANCEL_EVERY);
            char *p[MR_LOOP_OPERANDS_MAX];
            for (unsigned k = 0; k < l->count; k++)
                p[k] = at[k] + (ptrdiff_t)done * step[k];
            if (b.any)
                run_cast(l, &b, p, n, step);
            else
                l->kernel(p, (size_t)n, step);
            since += n;
            if (since < CANCEL_EVERY) continue;
            since = 0;
            if (call->does->is_cancelled(call))
                return call->does->fail(call, MR_ECANCELED, "cancelled");
        }
        unsigned i = inner;
        for (; i > 0; i--) { /* advances the indices of the outer axes */
            for (unsigned k = 0; k < l->count; k++)
                at[k] += l->operand[k].strides[i - 1];
            if (++index[i - 1] < l->shape[i - 1]) break;
            index[i - 1] = 0;
            for (unsigned k = 0; k < l->count; k++)
                at[k] -= l->operand[k].strides[i - 1] * (int64_t)l->shape[i - 1];
        }
        if (!i) return MR_OK;
    }
}
