/* Helpers for loops over many floats; private to lib/nn. */
#pragma once

#include "base/defs.h"

/* Compiles a function for AVX-512, for AVX2 and for the baseline; the loader chooses one of the
 * three (ifunc). Sanitizers do not support this. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MR_NN_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define MR_NN_CLONES
#endif

/* These two functions make the processor treat denormal numbers (below 1.2e-38) as 0 within a
 * scope. State that decays step by step, such as a momentum without gradients, becomes denormal in
 * the end, and processors take a hundred times as long for each such number. Usage:
 * `MR_AUTO(mr_nn_flush_end) MR_UNUSED unsigned was = mr_nn_flush_begin();`. */

#if defined(__SSE2__)
#include <xmmintrin.h>

/* Flags of MXCSR that make denormal results and denormal operands 0. */
#define MR_NN_FLUSH_BITS 0x8040u

static inline unsigned mr_nn_flush_begin(void)
{
    unsigned was = _mm_getcsr();
    _mm_setcsr(was | MR_NN_FLUSH_BITS);
    return was;
}

static inline void mr_nn_flush_end(const unsigned *was)
{
    _mm_setcsr(*was);
}
#else
static inline unsigned mr_nn_flush_begin(void)
{
    return 0;
}

static inline void mr_nn_flush_end(const unsigned *was)
{
    (void)was;
}
#endif
