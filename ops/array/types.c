/* Finds the common type and the common shape of several operands. A weak number (array.h) is a
 * plain number, which takes the type of a tensor beside it. */
#include "ops/array/array.h"

#include "base/assert.h"
#include "base/unconst.h"

#include <math.h>

/* Returns the bits of an integer type; a bool counts as one bit without sign. */
static unsigned bits_of(enum mr_dtype t)
{
    return t == MR_DTYPE_BOOL ? 1 : 8 * (unsigned)mr_dtype_bytes(t);
}

static bool is_signed_integer(enum mr_dtype t)
{
    return t >= MR_DTYPE_I8 && t <= MR_DTYPE_I64;
}

static enum mr_dtype signed_of(unsigned bits)
{
    if (bits <= 8) return MR_DTYPE_I8;
    if (bits <= 16) return MR_DTYPE_I16;
    if (bits <= 32) return MR_DTYPE_I32;
    return MR_DTYPE_I64;
}

/* Returns the smallest float type that holds every value of an integer type. For 64 bits it is f64,
 * which rounds. */
static enum mr_dtype float_for(enum mr_dtype t)
{
    if (bits_of(t) <= 8) return MR_DTYPE_F16;
    return bits_of(t) <= 16 ? MR_DTYPE_F32 : MR_DTYPE_F64;
}

enum mr_dtype mr_dtype_promote(enum mr_dtype a, enum mr_dtype b)
{
    if (a == b) return a;
    bool fa = mr_dtype_is_float(a);
    bool fb = mr_dtype_is_float(b);
    if (fa || fb) {
        enum mr_dtype x = fa ? a : float_for(a);
        enum mr_dtype y = fb ? b : float_for(b);
        return MR_MAX(x, y); /* the enum lists the float types in the order of their size */
    }
    if (is_signed_integer(a) == is_signed_integer(b)) return bits_of(a) > bits_of(b) ? a : b;
    enum mr_dtype s = is_signed_integer(a) ? a : b;
    enum mr_dtype u = is_signed_integer(a) ? b : a;
    if (bits_of(s) > bits_of(u)) return s;
    return bits_of(u) == 64 ? MR_DTYPE_F64 : signed_of(2 * bits_of(u));
}

enum mr_dtype mr_dtype_float_of(enum mr_dtype t)
{
    return mr_dtype_is_float(t) ? t : float_for(t);
}

/* ---- numbers beside tensors ---- */

static bool int_fits(enum mr_dtype t, int64_t v)
{
    switch (t) {
    case MR_DTYPE_I8: return v >= INT8_MIN && v <= INT8_MAX;
    case MR_DTYPE_I16: return v >= INT16_MIN && v <= INT16_MAX;
    case MR_DTYPE_I32: return v >= INT32_MIN && v <= INT32_MAX;
    case MR_DTYPE_U8: return v >= 0 && v <= UINT8_MAX;
    case MR_DTYPE_U16: return v >= 0 && v <= UINT16_MAX;
    case MR_DTYPE_U32: return v >= 0 && v <= UINT32_MAX;
    case MR_DTYPE_U64: return v >= 0;
    case MR_DTYPE_NONE:
    case MR_DTYPE_BOOL:
    case MR_DTYPE_I64:
    case MR_DTYPE_F16:
    case MR_DTYPE_F32:
    case MR_DTYPE_F64: return true;
    }
    return true;
}

/* Sets `*low` to the smallest value of an integer type, and `*end` to its largest value plus 1. */
static void bounds(enum mr_dtype t, double *low, double *end)
{
    double bits = 8.0 * (double)mr_dtype_bytes(t);
    bool is_signed = mr_dtype_is_signed(t);
    *end = exp2(is_signed ? bits - 1 : bits);
    *low = is_signed ? -*end : 0;
}

bool mr_array_number_fits(enum mr_dtype from, const void *p, enum mr_dtype t)
{
    if (!mr_dtype_is_integer(t) || from == MR_DTYPE_BOOL) return true;
    if (mr_dtype_is_float(from)) {
        double low, end, v = trunc(mr_dtype_get_f64(from, p));
        bounds(t, &low, &end);
        return v >= low && v < end; /* false for NaN */
    }
    uint64_t u = 0;
    char *cells[2] = {mr_unconst(p), (char *)&u};
    const ptrdiff_t step[2] = {0, 0};
    mr_cast_kernel(from, MR_DTYPE_U64)(cells, 1, step); /* the cast keeps the value modulo 2^64 */
    if (from == MR_DTYPE_U64 && u > INT64_MAX) return t == MR_DTYPE_U64;
    return int_fits(t, (int64_t)u);
}

/* Converts a weak number to the common type. Refuses a number that does not fit. */
static int settle(struct mr_op_call *call, struct mr_operand *o, enum mr_dtype t)
{
    enum mr_dtype from = o->t.dtype;
    mr_assert(o->cell);
    if (from == MR_DTYPE_I64 && !int_fits(t, *(const int64_t *)o->cell))
        return call->does->fail(call, MR_ERANGE, "argument \"%s\": %lld does not fit %s", o->name,
            (long long)*(const int64_t *)o->cell, mr_dtype_name(t));
    if (from == MR_DTYPE_U64 && mr_dtype_is_integer(t) && t != MR_DTYPE_U64)
        return call->does->fail(call, MR_ERANGE, "argument \"%s\": %llu does not fit %s", o->name,
            (unsigned long long)*(const uint64_t *)o->cell, mr_dtype_name(t));
    uint64_t settled = 0;
    char *p[2] = {o->cell, (char *)&settled};
    const ptrdiff_t step[2] = {0, 0};
    mr_cast_kernel(from, t)(p, 1, step);
    memcpy(o->cell, &settled, sizeof settled);
    o->t.dtype = t;
    o->weak = MR_WEAK_NO;
    return MR_OK;
}

/* Returns the type of the weak number `o` beside operands whose common type is `t`. If `t` is NONE,
 * all operands are weak numbers. */
static enum mr_dtype weak_type(enum mr_dtype t, const struct mr_operand *o)
{
    if (o->weak == MR_WEAK_FLOAT) return mr_dtype_is_float(t) ? t : MR_DTYPE_F64;
    if (t == MR_DTYPE_NONE || t == MR_DTYPE_BOOL) return o->t.dtype;
    return t;
}

int mr_array_common(
    struct mr_op_call *call, struct mr_operand *operands, unsigned count, enum mr_dtype *out)
{
    enum mr_dtype t = MR_DTYPE_NONE;
    for (unsigned i = 0; i < count; i++) {
        if (operands[i].weak != MR_WEAK_NO) continue;
        t = t == MR_DTYPE_NONE ? operands[i].t.dtype : mr_dtype_promote(t, operands[i].t.dtype);
    }
    bool tensors = t != MR_DTYPE_NONE && t != MR_DTYPE_BOOL;
    for (unsigned i = 0; i < count; i++) {
        if (operands[i].weak == MR_WEAK_NO) continue;
        enum mr_dtype wanted = weak_type(t, &operands[i]);
        t = tensors || t == MR_DTYPE_NONE || t == MR_DTYPE_BOOL ? wanted
                                                                : mr_dtype_promote(t, wanted);
    }
    for (unsigned i = 0; i < count; i++) {
        if (operands[i].weak == MR_WEAK_NO) continue;
        int err = settle(call, &operands[i], t);
        if (err) return err;
    }
    *out = t;
    return MR_OK;
}

/* ---- shapes ---- */

static int shapes_differ(
    struct mr_op_call *call, const struct mr_tensor *a, const struct mr_tensor *b)
{
    char x[MR_TENSOR_TEXT_MAX];
    char y[MR_TENSOR_TEXT_MAX];
    mr_tensor_text(a->dtype, a->ndim, a->shape, x);
    mr_tensor_text(b->dtype, b->ndim, b->shape, y);
    return call->does->fail(call, MR_EINVAL, "shapes of %s and %s cannot be broadcast", x, y);
}

static void spread(struct mr_tensor *t, unsigned ndim, const uint64_t *shape)
{
    unsigned missing = ndim - t->ndim;
    for (unsigned i = ndim; i-- > 0;) {
        bool own = i >= missing;
        uint64_t length = own ? t->shape[i - missing] : 1;
        t->strides[i] = own && (length != 1 || shape[i] == 1) ? t->strides[i - missing] : 0;
        t->shape[i] = shape[i];
    }
    t->ndim = ndim;
}

int mr_array_broadcast(struct mr_op_call *call, struct mr_tensor *const *tensors, unsigned count,
    unsigned *ndim, uint64_t shape[MR_TENSOR_DIMS_MAX])
{
    unsigned dims = 0;
    for (unsigned k = 0; k < count; k++)
        dims = MR_MAX(dims, tensors[k]->ndim);
    for (unsigned i = 0; i < dims; i++)
        shape[i] = 1;
    for (unsigned k = 0; k < count; k++) {
        const struct mr_tensor *t = tensors[k];
        for (unsigned i = 0; i < t->ndim; i++) {
            uint64_t *length = &shape[dims - t->ndim + i];
            if (*length == 1) *length = t->shape[i];
            if (t->shape[i] != 1 && t->shape[i] != *length)
                return shapes_differ(call, tensors[0], k ? t : tensors[1]);
        }
    }
    for (unsigned k = 0; k < count; k++)
        spread(tensors[k], dims, shape);
    *ndim = dims;
    return MR_OK;
}
