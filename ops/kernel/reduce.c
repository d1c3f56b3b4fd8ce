/* The kernels of reductions (reduce.h). */
#include "ops/kernel/reduce.h"

#include "ops/kernel/macros.h"

/* Adds up rows. Takes two rows at a time, so that each accumulator is loaded and stored half as
 * often. With four rows at a time, there would be more streams of memory than the hardware
 * prefetcher follows well. */
#define ADD_ROWS(name, T, A)                                                                       \
    MR_CLONES static void name##_sum(const void *px, size_t rows, size_t width, void *pa)          \
    {                                                                                              \
        const T *restrict x = px;                                                                  \
        A *restrict a = pa;                                                                        \
        for (; rows >= 2; rows -= 2, x += 2 * width) {                                             \
            const T *x1 = x + width;                                                               \
            for (size_t j = 0; j < width; j++)                                                     \
                a[j] += (A)x[j] + (A)x1[j];                                                        \
        }                                                                                          \
        for (; rows; rows--, x += width)                                                           \
            for (size_t j = 0; j < width; j++)                                                     \
                a[j] += (A)x[j];                                                                   \
    }                                                                                              \
    MR_CLONES static void name##_prod(const void *px, size_t rows, size_t width, void *pa)         \
    {                                                                                              \
        const T *restrict x = px;                                                                  \
        A *restrict a = pa;                                                                        \
        for (; rows; rows--, x += width)                                                           \
            for (size_t j = 0; j < width; j++)                                                     \
                a[j] *= (A)x[j];                                                                   \
    }

/* Integers are added as unsigned numbers, so an overflow wraps. */
ADD_ROWS(b1, unsigned char, uint64_t)
#define ADD_INTEGER(name, T, W) ADD_ROWS(name, T, uint64_t)
MR_INTEGERS(ADD_INTEGER)
ADD_ROWS(f32, float, double)
ADD_ROWS(f64, double, double)

#define EACH_ROW(name, T, A, EXPR)                                                                 \
    MR_CLONES static void name(const void *px, size_t rows, size_t width, void *pa)                \
    {                                                                                              \
        const T *restrict p = px;                                                                  \
        A *restrict a = pa;                                                                        \
        for (; rows; rows--, p += width) {                                                         \
            for (size_t j = 0; j < width; j++) {                                                   \
                T x = p[j];                                                                        \
                A y = a[j];                                                                        \
                a[j] = (A)(EXPR);                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define CHOOSE_ROWS(name, T, W)                                                                    \
    EACH_ROW(name##_min, T, T, x < y ? x : y)                                                      \
    EACH_ROW(name##_max, T, T, x > y ? x : y)                                                      \
    EACH_ROW(name##_any, T, unsigned char, y | (x != 0))                                           \
    EACH_ROW(name##_all, T, unsigned char, y &(x != 0))
MR_INTEGERS(CHOOSE_ROWS)
CHOOSE_ROWS(b1, unsigned char, uint32_t)

/* NaN in x replaces the accumulator; NaN in the accumulator stays. */
#define CHOOSE_FLOATS(name, T, W)                                                                  \
    EACH_ROW(name##_min, T, T, ((x < y) | (x != x)) ? x : y)                                       \
    EACH_ROW(name##_max, T, T, ((x > y) | (x != x)) ? x : y)                                       \
    EACH_ROW(name##_any, T, unsigned char, y | (x != 0))                                           \
    EACH_ROW(name##_all, T, unsigned char, y &(x != 0))
MR_FLOATS(CHOOSE_FLOATS)

#define ROW(name)                                                                                  \
    {                                                                                              \
        [MR_REDUCE_SUM] = name##_sum, [MR_REDUCE_PROD] = name##_prod,                              \
        [MR_REDUCE_MIN] = name##_min, [MR_REDUCE_MAX] = name##_max, [MR_REDUCE_ANY] = name##_any,  \
        [MR_REDUCE_ALL] = name##_all                                                               \
    }

mr_rows_kernel mr_reduce_kernel(enum mr_reduce op, enum mr_dtype t)
{
    static const mr_rows_kernel kernels[MR_DTYPES_COUNT][MR_REDUCE_KERNELS] = {
        [MR_DTYPE_BOOL] = ROW(b1),
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
    return kernels[t][op];
}

enum mr_dtype mr_reduce_accumulator(enum mr_reduce op, enum mr_dtype t)
{
    if (op == MR_REDUCE_ANY || op == MR_REDUCE_ALL) return MR_DTYPE_BOOL;
    if (op == MR_REDUCE_MIN || op == MR_REDUCE_MAX) return t;
    if (mr_dtype_is_float(t)) return MR_DTYPE_F64;
    return t == MR_DTYPE_BOOL || mr_dtype_is_signed(t) ? MR_DTYPE_I64 : MR_DTYPE_U64;
}

/* ---- argmin, argmax ---- */

#define ARG_ROWS(name, T, BETTER)                                                                  \
    static void name(const void *px, size_t n, size_t inner, void *pbest, int64_t *index)          \
    {                                                                                              \
        const T *restrict x = px;                                                                  \
        T *restrict best = pbest;                                                                  \
        for (size_t j = 0; j < inner; j++) {                                                       \
            best[j] = x[j];                                                                        \
            index[j] = 0;                                                                          \
        }                                                                                          \
        for (size_t i = 1; i < n; i++) {                                                           \
            x += inner;                                                                            \
            for (size_t j = 0; j < inner; j++) {                                                   \
                if (!(BETTER)) continue;                                                           \
                best[j] = x[j];                                                                    \
                index[j] = (int64_t)i;                                                             \
            }                                                                                      \
        }                                                                                          \
    }
#define ARG_INTEGER(name, T, W)                                                                    \
    ARG_ROWS(name##_argmin, T, x[j] < best[j])                                                     \
    ARG_ROWS(name##_argmax, T, x[j] > best[j])
MR_INTEGERS(ARG_INTEGER)
ARG_INTEGER(b1, unsigned char, uint32_t)
#define ARG_FLOAT(name, T, W)                                                                      \
    ARG_ROWS(name##_argmin, T, x[j] < best[j] || (x[j] != x[j] && best[j] == best[j]))             \
    ARG_ROWS(name##_argmax, T, x[j] > best[j] || (x[j] != x[j] && best[j] == best[j]))
MR_FLOATS(ARG_FLOAT)

#define ARG_PAIR(name)                                                                             \
    {                                                                                              \
        name##_argmin, name##_argmax                                                               \
    }

mr_arg_kernel mr_argmin_kernel(enum mr_dtype t, bool max)
{
    static const mr_arg_kernel kernels[MR_DTYPES_COUNT][2] = {
        [MR_DTYPE_BOOL] = ARG_PAIR(b1),
        [MR_DTYPE_I8] = ARG_PAIR(i8),
        [MR_DTYPE_I16] = ARG_PAIR(i16),
        [MR_DTYPE_I32] = ARG_PAIR(i32),
        [MR_DTYPE_I64] = ARG_PAIR(i64),
        [MR_DTYPE_U8] = ARG_PAIR(u8),
        [MR_DTYPE_U16] = ARG_PAIR(u16),
        [MR_DTYPE_U32] = ARG_PAIR(u32),
        [MR_DTYPE_U64] = ARG_PAIR(u64),
        [MR_DTYPE_F32] = ARG_PAIR(f32),
        [MR_DTYPE_F64] = ARG_PAIR(f64),
    };
    return kernels[t][max];
}

/* ---- moments ---- */

/* Adds shifted numbers and their squares. Takes two rows at a time and prefetches the next two
 * rows. The hardware prefetcher does not look far enough ahead for wide rows; without prefetching,
 * a third of the time is spent waiting for memory. */
#define STRETCH ((size_t)128)
#define ASK_AHEAD(T, x, from, to, bytes)                                                           \
    for (size_t j_ = from; j_ < to; j_ += 64 / sizeof(T))                                          \
        __builtin_prefetch((const void *)((uintptr_t)((x) + j_) + (bytes)));

#define MOMENTS(name, T, W)                                                                        \
    MR_CLONES static void name##_moments(const void *px, size_t rows, size_t width,                \
        const double *restrict shift, double *restrict sums, double *restrict squares)             \
    {                                                                                              \
        const T *restrict x = px;                                                                  \
        for (; rows >= 2; rows -= 2, x += 2 * width) {                                             \
            const T *x1 = x + width;                                                               \
            for (size_t from = 0; from < width; from += STRETCH) {                                 \
                size_t to = MR_MIN(from + STRETCH, width);                                         \
                ASK_AHEAD(T, x, from, to, 2 * width * sizeof(T))                                   \
                ASK_AHEAD(T, x1, from, to, 2 * width * sizeof(T))                                  \
                for (size_t j = from; j < to; j++) {                                               \
                    double a = (double)x[j] - shift[j], b = (double)x1[j] - shift[j];              \
                    sums[j] += a + b;                                                              \
                    squares[j] += a * a + b * b;                                                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (; rows; rows--, x += width) {                                                         \
            for (size_t j = 0; j < width; j++) {                                                   \
                double a = (double)x[j] - shift[j];                                                \
                sums[j] += a;                                                                      \
                squares[j] += a * a;                                                               \
            }                                                                                      \
        }                                                                                          \
    }
MR_INTEGERS(MOMENTS)
MOMENTS(b1, unsigned char, uint32_t)
MR_FLOATS(MOMENTS)

mr_moments_kernel mr_moments_rows(enum mr_dtype t)
{
    static const mr_moments_kernel kernels[MR_DTYPES_COUNT] = {
        [MR_DTYPE_BOOL] = b1_moments,
        [MR_DTYPE_I8] = i8_moments,
        [MR_DTYPE_I16] = i16_moments,
        [MR_DTYPE_I32] = i32_moments,
        [MR_DTYPE_I64] = i64_moments,
        [MR_DTYPE_U8] = u8_moments,
        [MR_DTYPE_U16] = u16_moments,
        [MR_DTYPE_U32] = u32_moments,
        [MR_DTYPE_U64] = u64_moments,
        [MR_DTYPE_F32] = f32_moments,
        [MR_DTYPE_F64] = f64_moments,
    };
    return kernels[t];
}
