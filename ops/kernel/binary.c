/* The kernels with two operands (ops/kernel/kernel.h). */
#include "ops/kernel/kernel.h"

#include "ops/kernel/floor_div.h"
#include "ops/kernel/macros.h"

#define WRAP(W, op) ((W)x op(W) y)
#define SMALLER ((x < y || x != x) ? x : y) /* NaN if x or y is NaN */
#define LARGER ((x > y || x != x) ? x : y)

/* Floor division of integers. Division by zero gives 0, as in NumPy. Division of the smallest
 * integer by -1 wraps. */
#define ROUNDS_UP ((x % y != 0) & ((x < 0) != (y < 0)))
#define SIGNED_FLOOR(T, W) (y == 0 ? (T)0 : y == -1 ? (T)((W)0 - (W)x) : (T)(x / y - ROUNDS_UP))
#define SIGNED_MOD(T) (y == 0 || y == -1 ? (T)0 : (T)(x % y + (ROUNDS_UP ? y : 0)))
#define UNSIGNED_FLOOR (y == 0 ? 0 : x / y)
#define UNSIGNED_MOD (y == 0 ? 0 : x % y)

static inline uint64_t power(uint64_t x, uint64_t y)
{
    uint64_t result = 1;
    for (; y; y >>= 1, x *= x)
        if (y & 1) result *= x;
    return result;
}

#define COMPARISONS(name, T)                                                                       \
    MR_BINARY_KERNEL(name##_eq, T, unsigned char, x == y)                                          \
    MR_BINARY_KERNEL(name##_ne, T, unsigned char, x != y)                                          \
    MR_BINARY_KERNEL(name##_lt, T, unsigned char, x < y)                                           \
    MR_BINARY_KERNEL(name##_le, T, unsigned char, x <= y)                                          \
    MR_BINARY_KERNEL(name##_gt, T, unsigned char, x > y)                                           \
    MR_BINARY_KERNEL(name##_ge, T, unsigned char, x >= y)

#define INTEGER(name, T, W)                                                                        \
    MR_BINARY_KERNEL(name##_add, T, T, WRAP(W, +))                                                 \
    MR_BINARY_KERNEL(name##_sub, T, T, WRAP(W, -))                                                 \
    MR_BINARY_KERNEL(name##_mul, T, T, WRAP(W, *))                                                 \
    MR_BINARY_KERNEL(name##_pow, T, T, power((uint64_t)x, (uint64_t)y))                            \
    MR_BINARY_KERNEL(name##_min, T, T, x < y ? x : y)                                              \
    MR_BINARY_KERNEL(name##_max, T, T, x > y ? x : y)                                              \
    COMPARISONS(name, T)
MR_INTEGERS(INTEGER)

#define SIGNED(name, T, W)                                                                         \
    MR_BINARY_KERNEL(name##_floor_div, T, T, SIGNED_FLOOR(T, W))                                   \
    MR_BINARY_KERNEL(name##_mod, T, T, SIGNED_MOD(T))
SIGNED(i8, int8_t, uint32_t)
SIGNED(i16, int16_t, uint32_t)
SIGNED(i32, int32_t, uint32_t)
SIGNED(i64, int64_t, uint64_t)

#define UNSIGNED(name, T)                                                                          \
    MR_BINARY_KERNEL(name##_floor_div, T, T, UNSIGNED_FLOOR)                                       \
    MR_BINARY_KERNEL(name##_mod, T, T, UNSIGNED_MOD)
UNSIGNED(u8, uint8_t)
UNSIGNED(u16, uint16_t)
UNSIGNED(u32, uint32_t)
UNSIGNED(u64, uint64_t)

#define FLOATING(name, T, POW)                                                                     \
    MR_BINARY_KERNEL(name##_add, T, T, x + y)                                                      \
    MR_BINARY_KERNEL(name##_sub, T, T, x - y)                                                      \
    MR_BINARY_KERNEL(name##_mul, T, T, x *y)                                                       \
    MR_BINARY_KERNEL(name##_div, T, T, x / y)                                                      \
    MR_BINARY_KERNEL(name##_floor_div, T, T, mr_floor_div_f64((double)x, (double)y))               \
    MR_BINARY_KERNEL(name##_mod, T, T, mr_mod_f64((double)x, (double)y))                           \
    MR_BINARY_KERNEL(name##_pow, T, T, POW(x, y))                                                  \
    MR_BINARY_KERNEL(name##_min, T, T, SMALLER)                                                    \
    MR_BINARY_KERNEL(name##_max, T, T, LARGER)                                                     \
    COMPARISONS(name, T)
FLOATING(f32, float, powf)
FLOATING(f64, double, pow)

/* A bool is one byte, 0 or 1. Addition is `or`, multiplication is `and`. */
MR_BINARY_KERNEL(bool_and, unsigned char, unsigned char, x &y)
MR_BINARY_KERNEL(bool_or, unsigned char, unsigned char, x | y)
MR_BINARY_KERNEL(bool_xor, unsigned char, unsigned char, x ^ y)
COMPARISONS(bool, unsigned char)

#define COMPARISON_ROWS(name)                                                                      \
    [MR_EQ] = name##_eq, [MR_NE] = name##_ne, [MR_LT] = name##_lt, [MR_LE] = name##_le,            \
    [MR_GT] = name##_gt, [MR_GE] = name##_ge
#define ROW(name)                                                                                  \
    {                                                                                              \
        [MR_ADD] = name##_add, [MR_SUB] = name##_sub, [MR_MUL] = name##_mul,                       \
        [MR_FLOOR_DIV] = name##_floor_div, [MR_MOD] = name##_mod, [MR_POW] = name##_pow,           \
        [MR_MIN] = name##_min, [MR_MAX] = name##_max, COMPARISON_ROWS(name)                        \
    }

mr_kernel mr_binary_kernel(enum mr_binary op, enum mr_dtype t)
{
    static const mr_kernel kernels[MR_DTYPES_COUNT][MR_BINARIES_COUNT] = {
        [MR_DTYPE_BOOL] = {[MR_ADD] = bool_or,
            [MR_MUL] = bool_and,
            [MR_MIN] = bool_and,
            [MR_MAX] = bool_or,
            [MR_AND] = bool_and,
            [MR_OR] = bool_or,
            [MR_XOR] = bool_xor,
            COMPARISON_ROWS(bool)},
        [MR_DTYPE_I8] = ROW(i8),
        [MR_DTYPE_I16] = ROW(i16),
        [MR_DTYPE_I32] = ROW(i32),
        [MR_DTYPE_I64] = ROW(i64),
        [MR_DTYPE_U8] = ROW(u8),
        [MR_DTYPE_U16] = ROW(u16),
        [MR_DTYPE_U32] = ROW(u32),
        [MR_DTYPE_U64] = ROW(u64),
        [MR_DTYPE_F32] = ROW(f32),
        [MR_DTYPE_F64] = ROW(f64),
    };
    /* The macro ROW fills the rows of integer types and of float types. Only floats have MR_DIV, so
     * MR_DIV is not in the table. */
    if (op == MR_DIV) return t == MR_DTYPE_F32 ? f32_div : t == MR_DTYPE_F64 ? f64_div : NULL;
    return kernels[t][op];
}
