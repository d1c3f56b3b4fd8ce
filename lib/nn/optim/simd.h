/* What loops over many floats need of the processor. Private to lib/nn. */
#pragma once

#include "base/defs.h"

/* A function once more for each width of vectors, chosen when the program is loaded, which the
 * sanitizers cannot stand. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MR_NN_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define MR_NN_CLONES
#endif

/* Numbers below 1.2e-38 taken for 0 while a scope lasts: what decays step by step (a momentum that
 * gets no more gradients) ends there, and processors take a hundred times as long for each such
 * number: `MR_AUTO(mr_nn_flush_end) MR_UNUSED unsigned was = mr_nn_flush_begin();`. */

#if defined(__SSE2__)
#include <xmmintrin.h>

#define MR_NN_FLUSH_BITS 0x8040u /* results that are too small, and operands */

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
