/* The kernels with one operand, and the kernel of "where" (ops/kernel/kernel.h). */
#include "ops/kernel/kernel.h"

#include "ops/kernel/macros.h"

/* Computes exp only of a number that is not positive, so no branch overflows. */
static inline double sigmoid(double x)
{
    double e = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static inline float sigmoidf(float x)
{
    float e = expf(-fabsf(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

/* Kernels of an integer type. An integer is its own floor, ceil, trunc and round, is finite, and is
 * not NaN. */
#define INTEGER(name, T, W)                                                                        \
    MR_UNARY_KERNEL(name##_neg, T, T, (W)0 - (W)x)                                                 \
    MR_UNARY_KERNEL(name##_square, T, T, (W)x *(W)x)                                               \
    MR_UNARY_KERNEL(name##_same, T, T, x)                                                          \
    MR_UNARY_KERNEL(name##_never, T, unsigned char, ((void)x, 0))                                  \
    MR_UNARY_KERNEL(name##_always, T, unsigned char, ((void)x, 1))
MR_INTEGERS(INTEGER)

#define SIGNED(name, T, W)                                                                         \
    MR_UNARY_KERNEL(name##_abs, T, T, x < 0 ? (W)0 - (W)x : (W)x)                                  \
    MR_UNARY_KERNEL(name##_sign, T, T, (x > 0) - (x < 0))
SIGNED(i8, int8_t, uint32_t)
SIGNED(i16, int16_t, uint32_t)
SIGNED(i32, int32_t, uint32_t)
SIGNED(i64, int64_t, uint64_t)

#define UNSIGNED(name, T)                                                                          \
    MR_UNARY_KERNEL(name##_abs, T, T, x)                                                           \
    MR_UNARY_KERNEL(name##_sign, T, T, x > 0)
UNSIGNED(u8, uint8_t)
UNSIGNED(u16, uint16_t)
UNSIGNED(u32, uint32_t)
UNSIGNED(u64, uint64_t)

MR_UNARY_KERNEL(bool_same, unsigned char, unsigned char, x)
MR_UNARY_KERNEL(bool_not, unsigned char, unsigned char, !x)
MR_UNARY_KERNEL(bool_never, unsigned char, unsigned char, ((void)x, 0))
MR_UNARY_KERNEL(bool_always, unsigned char, unsigned char, ((void)x, 1))

#define FLOATING(name, T, f)                                                                       \
    MR_UNARY_KERNEL(name##_abs, T, T, fabs##f(x))                                                  \
    MR_UNARY_KERNEL(name##_neg, T, T, -x)                                                          \
    MR_UNARY_KERNEL(name##_sign, T, T, x > 0 ? 1 : x < 0 ? -1 : x != x ? x : 0)                    \
    MR_UNARY_KERNEL(name##_square, T, T, x *x)                                                     \
    MR_UNARY_KERNEL(name##_sqrt, T, T, sqrt##f(x))                                                 \
    MR_UNARY_KERNEL(name##_reciprocal, T, T, 1 / x)                                                \
    MR_UNARY_KERNEL(name##_exp, T, T, exp##f(x))                                                   \
    MR_UNARY_KERNEL(name##_expm1, T, T, expm1##f(x))                                               \
    MR_UNARY_KERNEL(name##_log, T, T, log##f(x))                                                   \
    MR_UNARY_KERNEL(name##_log1p, T, T, log1p##f(x))                                               \
    MR_UNARY_KERNEL(name##_log2, T, T, log2##f(x))                                                 \
    MR_UNARY_KERNEL(name##_log10, T, T, log10##f(x))                                               \
    MR_UNARY_KERNEL(name##_sin, T, T, sin##f(x))                                                   \
    MR_UNARY_KERNEL(name##_cos, T, T, cos##f(x))                                                   \
    MR_UNARY_KERNEL(name##_tan, T, T, tan##f(x))                                                   \
    MR_UNARY_KERNEL(name##_tanh, T, T, tanh##f(x))                                                 \
    MR_UNARY_KERNEL(name##_sigmoid, T, T, sigmoid##f(x))                                           \
    MR_UNARY_KERNEL(name##_floor, T, T, floor##f(x))                                               \
    MR_UNARY_KERNEL(name##_ceil, T, T, ceil##f(x))                                                 \
    MR_UNARY_KERNEL(name##_trunc, T, T, trunc##f(x))                                               \
    MR_UNARY_KERNEL(name##_round, T, T, nearbyint##f(x))                                           \
    MR_UNARY_KERNEL(name##_isnan, T, unsigned char, x != x)                                        \
    MR_UNARY_KERNEL(name##_isinf, T, unsigned char, fabs##f(x) == (T)INFINITY)                     \
    MR_UNARY_KERNEL(name##_isfinite, T, unsigned char, fabs##f(x) < (T)INFINITY)
FLOATING(f32, float, f)
FLOATING(f64, double, )

#define INTEGER_ROW(name)                                                                          \
    {                                                                                              \
        [MR_ABS] = name##_abs, [MR_NEG] = name##_neg, [MR_SIGN] = name##_sign,                     \
        [MR_SQUARE] = name##_square, [MR_FLOOR] = name##_same, [MR_CEIL] = name##_same,            \
        [MR_TRUNC] = name##_same, [MR_ROUND] = name##_same, [MR_ISNAN] = name##_never,             \
        [MR_ISINF] = name##_never, [MR_ISFINITE] = name##_always                                   \
    }
#define FLOAT_ROW(name)                                                                            \
    {                                                                                              \
        [MR_ABS] = name##_abs, [MR_NEG] = name##_neg, [MR_SIGN] = name##_sign,                     \
        [MR_SQUARE] = name##_square, [MR_SQRT] = name##_sqrt, [MR_RECIPROCAL] = name##_reciprocal, \
        [MR_EXP] = name##_exp, [MR_EXPM1] = name##_expm1, [MR_LOG] = name##_log,                   \
        [MR_LOG1P] = name##_log1p, [MR_LOG2] = name##_log2, [MR_LOG10] = name##_log10,             \
        [MR_SIN] = name##_sin, [MR_COS] = name##_cos, [MR_TAN] = name##_tan,                       \
        [MR_TANH] = name##_tanh, [MR_SIGMOID] = name##_sigmoid, [MR_FLOOR] = name##_floor,         \
        [MR_CEIL] = name##_ceil, [MR_TRUNC] = name##_trunc, [MR_ROUND] = name##_round,             \
        [MR_ISNAN] = name##_isnan, [MR_ISINF] = name##_isinf, [MR_ISFINITE] = name##_isfinite      \
    }

mr_kernel mr_unary_kernel(enum mr_unary op, enum mr_dtype t)
{
    static const mr_kernel kernels[MR_DTYPES_COUNT][MR_UNARIES_COUNT] = {
        [MR_DTYPE_BOOL] = {[MR_ABS] = bool_same,
            [MR_FLOOR] = bool_same,
            [MR_CEIL] = bool_same,
            [MR_TRUNC] = bool_same,
            [MR_ROUND] = bool_same,
            [MR_ISNAN] = bool_never,
            [MR_ISINF] = bool_never,
            [MR_ISFINITE] = bool_always,
            [MR_NOT] = bool_not},
        [MR_DTYPE_I8] = INTEGER_ROW(i8),
        [MR_DTYPE_I16] = INTEGER_ROW(i16),
        [MR_DTYPE_I32] = INTEGER_ROW(i32),
        [MR_DTYPE_I64] = INTEGER_ROW(i64),
        [MR_DTYPE_U8] = INTEGER_ROW(u8),
        [MR_DTYPE_U16] = INTEGER_ROW(u16),
        [MR_DTYPE_U32] = INTEGER_ROW(u32),
        [MR_DTYPE_U64] = INTEGER_ROW(u64),
        [MR_DTYPE_F32] = FLOAT_ROW(f32),
        [MR_DTYPE_F64] = FLOAT_ROW(f64),
    };
    return kernels[t][op];
}

/* The operation "where" only copies elements, so one kernel for each width serves all dtypes of
 * that width. */
#define WHERE(name, T)                                                                             \
    MR_CLONES static void name(char *const *p, size_t n, const ptrdiff_t *step)                    \
    {                                                                                              \
        const char *q = p[0];                                                                      \
        const char *a = p[1];                                                                      \
        const char *b = p[2];                                                                      \
        char *c = p[3];                                                                            \
        for (size_t i = 0; i < n; i++) {                                                           \
            T x = *(const T *)(const void *)a;                                                     \
            T y = *(const T *)(const void *)b;                                                     \
            *(T *)(void *)c = *(const unsigned char *)q ? x : y;                                   \
            q += step[0];                                                                          \
            a += step[1];                                                                          \
            b += step[2];                                                                          \
            c += step[3];                                                                          \
        }                                                                                          \
    }
WHERE(where_1, uint8_t)
WHERE(where_2, uint16_t)
WHERE(where_4, uint32_t)
WHERE(where_8, uint64_t)

mr_kernel mr_where_kernel(enum mr_dtype t)
{
    size_t bytes = mr_dtype_bytes(t);
    if (bytes == 1) return where_1;
    if (bytes == 2) return where_2;
    return bytes == 4 ? where_4 : where_8;
}
