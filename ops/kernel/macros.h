/* Macros that define kernels: a loop over strided operands, with separate loops for contiguous
 * operands so that the compiler vectorises them. On x86-64 each kernel is compiled for several
 * vector widths. */
#pragma once

#include "base/defs.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compiles a function for AVX-512, for AVX2 and for the baseline; the loader chooses one of the
 * three (ifunc). Sanitizers do not support this. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MR_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define MR_CLONES
#endif

/* Calls X(name, type, unsigned type in which arithmetic wraps) for each integer type. */
#define MR_INTEGERS(X)                                                                             \
    X(i8, int8_t, uint32_t)                                                                        \
    X(i16, int16_t, uint32_t)                                                                      \
    X(i32, int32_t, uint32_t)                                                                      \
    X(i64, int64_t, uint64_t)                                                                      \
    X(u8, uint8_t, uint32_t)                                                                       \
    X(u16, uint16_t, uint32_t)                                                                     \
    X(u32, uint32_t, uint32_t)                                                                     \
    X(u64, uint64_t, uint64_t)
#define MR_FLOATS(X)                                                                               \
    X(f32, float, float)                                                                           \
    X(f64, double, double)

/* Defines a kernel with one operand of type T and a result of type R. EXPR computes the result from
 * x. */
#define MR_UNARY_KERNEL(name, T, R, EXPR)                                                          \
    MR_CLONES static void name(char *const *p, size_t n, const ptrdiff_t *step)                    \
    {                                                                                              \
        if (step[0] == sizeof(T) && step[1] == sizeof(R)) {                                        \
            const T *a = (const T *)(const void *)p[0];                                            \
            R *c = (R *)(void *)p[1];                                                              \
            for (size_t i = 0; i < n; i++) {                                                       \
                T x = a[i];                                                                        \
                c[i] = (R)(EXPR);                                                                  \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        const char *a = p[0];                                                                      \
        char *c = p[1];                                                                            \
        for (size_t i = 0; i < n; i++, a += step[0], c += step[1]) {                               \
            T x = *(const T *)(const void *)a;                                                     \
            *(R *)(void *)c = (R)(EXPR);                                                           \
        }                                                                                          \
    }

/* Defines a kernel with two operands of type T and a result of type R. EXPR computes the result
 * from x and y. The result may overwrite the first operand. */
#define MR_BINARY_KERNEL(name, T, R, EXPR)                                                         \
    MR_CLONES static void name(char *const *p, size_t n, const ptrdiff_t *step)                    \
    {                                                                                              \
        bool whole_a = step[0] == sizeof(T);                                                       \
        bool whole_b = step[1] == sizeof(T);                                                       \
        if (step[2] == sizeof(R) && (whole_a || !step[0]) && (whole_b || !step[1]) && n > 1) {     \
            const T *a = (const T *)(const void *)p[0];                                            \
            const T *b = (const T *)(const void *)p[1];                                            \
            R *c = (R *)(void *)p[2];                                                              \
            if (whole_a && whole_b && (const void *)a == (const void *)c) {                        \
                T *t = (T *)(void *)c;                                                             \
                for (size_t i = 0; i < n; i++) {                                                   \
                    T x = t[i], y = b[i];                                                          \
                    c[i] = (R)(EXPR);                                                              \
                }                                                                                  \
            } else if (whole_a && whole_b) {                                                       \
                for (size_t i = 0; i < n; i++) {                                                   \
                    T x = a[i], y = b[i];                                                          \
                    c[i] = (R)(EXPR);                                                              \
                }                                                                                  \
            } else if (whole_a) {                                                                  \
                const T y = *b;                                                                    \
                for (size_t i = 0; i < n; i++) {                                                   \
                    T x = a[i];                                                                    \
                    c[i] = (R)(EXPR);                                                              \
                }                                                                                  \
            } else {                                                                               \
                const T x = *a;                                                                    \
                for (size_t i = 0; i < n; i++) {                                                   \
                    T y = whole_b ? b[i] : *b;                                                     \
                    c[i] = (R)(EXPR);                                                              \
                }                                                                                  \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        const char *a = p[0];                                                                      \
        const char *b = p[1];                                                                      \
        char *c = p[2];                                                                            \
        for (size_t i = 0; i < n; i++, a += step[0], b += step[1], c += step[2]) {                 \
            T x = *(const T *)(const void *)a, y = *(const T *)(const void *)b;                    \
            *(R *)(void *)c = (R)(EXPR);                                                           \
        }                                                                                          \
    }
