/* The kernels that cast every dtype to every other (ops/kernel/kernel.h). */
#include "ops/kernel/kernel.h"

#include "ops/kernel/macros.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#endif

/* Converts x, the element to cast, to the integer type T. A value outside the range of T is clamped
 * to this range. NaN becomes 0. */
#define HOLD(T, low, high)                                                                         \
    __extension__({                                                                                \
        double v_ = (double)x;                                                                     \
        v_ != v_ ? (T)0 : v_ <= (low) ? (T)(low) : v_ >= (high) ? hold_##T : (T)v_;                \
    })

#define hold_int8_t INT8_MAX
#define hold_int16_t INT16_MAX
#define hold_int32_t INT32_MAX
#define hold_int64_t INT64_MAX
#define hold_uint8_t UINT8_MAX
#define hold_uint16_t UINT16_MAX
#define hold_uint32_t UINT32_MAX
#define hold_uint64_t UINT64_MAX

/* Defines the kernels that cast T to every dtype. In each kernel, the variable x is the element to
 * cast. The macro INTEGER converts x to an integer type. */
#define FROM(name, T, INTEGER, AS_F32, AS_F64, AS_F16, IS_TRUE)                                    \
    MR_UNARY_KERNEL(name##_to_bool, T, unsigned char, IS_TRUE)                                     \
    MR_UNARY_KERNEL(name##_to_i8, T, int8_t, INTEGER(int8_t, -0x1p7, 0x1p7))                       \
    MR_UNARY_KERNEL(name##_to_i16, T, int16_t, INTEGER(int16_t, -0x1p15, 0x1p15))                  \
    MR_UNARY_KERNEL(name##_to_i32, T, int32_t, INTEGER(int32_t, -0x1p31, 0x1p31))                  \
    MR_UNARY_KERNEL(name##_to_i64, T, int64_t, INTEGER(int64_t, -0x1p63, 0x1p63))                  \
    MR_UNARY_KERNEL(name##_to_u8, T, uint8_t, INTEGER(uint8_t, 0.0, 0x1p8))                        \
    MR_UNARY_KERNEL(name##_to_u16, T, uint16_t, INTEGER(uint16_t, 0.0, 0x1p16))                    \
    MR_UNARY_KERNEL(name##_to_u32, T, uint32_t, INTEGER(uint32_t, 0.0, 0x1p32))                    \
    MR_UNARY_KERNEL(name##_to_u64, T, uint64_t, INTEGER(uint64_t, 0.0, 0x1p64))                    \
    MR_UNARY_KERNEL(name##_to_f16, T, uint16_t, AS_F16)                                            \
    MR_UNARY_KERNEL(name##_to_f32, T, float, AS_F32)                                               \
    MR_UNARY_KERNEL(name##_to_f64, T, double, AS_F64)

#define CUT(T, low, high) ((T)x) /* integers keep their low bits */
#define FROM_INTEGER(name, T, W)                                                                   \
    FROM(name, T, CUT, (float)x, (double)x, mr_f16_from_f32((float)x), x != 0)
MR_INTEGERS(FROM_INTEGER)
FROM_INTEGER(b1, unsigned char, uint32_t)
FROM(f32, float, HOLD, x, (double)x, mr_f16_from_f32(x), x != 0)
FROM(f64, double, HOLD, (float)x, x, mr_f16_from_f64(x), x != 0)

#define HOLD_F16(T, low, high)                                                                     \
    __extension__({                                                                                \
        float w_ = mr_f16_to_f32(x);                                                               \
        w_ != w_ ? (T)0 : w_ <= (low) ? (T)(low) : w_ >= (high) ? hold_##T : (T)w_;                \
    })
FROM(f16, uint16_t, HOLD_F16, mr_f16_to_f32(x), (double)mr_f16_to_f32(x), x, (x & 0x7fff) != 0)

/* Convert f16 to f32 and back, eight elements at a time where the processor has F16C. The bits are
 * the same on other processors. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

__attribute__((target("avx,f16c"))) static size_t widen_eight(
    const uint16_t *from, float *to, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(
            to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    return i;
}

__attribute__((target("avx,f16c"))) static size_t narrow_eight(
    const float *from, uint16_t *to, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i),
            _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

static bool has_f16c(void)
{
    return __builtin_cpu_supports("f16c") && __builtin_cpu_supports("avx");
}

#else

static size_t widen_eight(const uint16_t *from, float *to, size_t n)
{
    (void)from;
    (void)to;
    (void)n;
    return 0;
}

static size_t narrow_eight(const float *from, uint16_t *to, size_t n)
{
    (void)from;
    (void)to;
    (void)n;
    return 0;
}

static bool has_f16c(void)
{
    return false;
}

#endif

static void widen(char *const *p, size_t n, const ptrdiff_t *step)
{
    bool whole = step[0] == sizeof(uint16_t) && step[1] == sizeof(float);
    size_t done = whole && has_f16c()
                      ? widen_eight((const uint16_t *)(const void *)p[0], (float *)(void *)p[1], n)
                      : 0;
    char *rest[2] = {p[0] + (ptrdiff_t)done * step[0], p[1] + (ptrdiff_t)done * step[1]};
    f16_to_f32(rest, n - done, step);
}

static void narrow(char *const *p, size_t n, const ptrdiff_t *step)
{
    bool whole = step[0] == sizeof(float) && step[1] == sizeof(uint16_t);
    size_t done = whole && has_f16c()
                      ? narrow_eight((const float *)(const void *)p[0], (uint16_t *)(void *)p[1], n)
                      : 0;
    char *rest[2] = {p[0] + (ptrdiff_t)done * step[0], p[1] + (ptrdiff_t)done * step[1]};
    f32_to_f16(rest, n - done, step);
}

#define ROW(name)                                                                                  \
    {                                                                                              \
        [MR_DTYPE_BOOL] = name##_to_bool, [MR_DTYPE_I8] = name##_to_i8,                            \
        [MR_DTYPE_I16] = name##_to_i16, [MR_DTYPE_I32] = name##_to_i32,                            \
        [MR_DTYPE_I64] = name##_to_i64, [MR_DTYPE_U8] = name##_to_u8,                              \
        [MR_DTYPE_U16] = name##_to_u16, [MR_DTYPE_U32] = name##_to_u32,                            \
        [MR_DTYPE_U64] = name##_to_u64, [MR_DTYPE_F16] = name##_to_f16,                            \
        [MR_DTYPE_F32] = name##_to_f32, [MR_DTYPE_F64] = name##_to_f64                             \
    }

mr_kernel mr_cast_kernel(enum mr_dtype from, enum mr_dtype to)
{
    static const mr_kernel kernels[MR_DTYPES_COUNT][MR_DTYPES_COUNT] = {
        [MR_DTYPE_BOOL] = ROW(b1),
        [MR_DTYPE_I8] = ROW(i8),
        [MR_DTYPE_I16] = ROW(i16),
        [MR_DTYPE_I32] = ROW(i32),
        [MR_DTYPE_I64] = ROW(i64),
        [MR_DTYPE_U8] = ROW(u8),
        [MR_DTYPE_U16] = ROW(u16),
        [MR_DTYPE_U32] = ROW(u32),
        [MR_DTYPE_U64] = ROW(u64),
        [MR_DTYPE_F16] = ROW(f16),
        [MR_DTYPE_F32] = ROW(f32),
        [MR_DTYPE_F64] = ROW(f64),
    };
    if (from == MR_DTYPE_F16 && to == MR_DTYPE_F32) return widen;
    if (from == MR_DTYPE_F32 && to == MR_DTYPE_F16) return narrow;
    return kernels[from][to];
}
