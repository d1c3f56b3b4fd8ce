/* The random numbers of NumPy's legacy generator `RandomState(seed)` and of scikit-learn's row
 * shuffle, bit for bit. So folds, row orders and the hyperparameters that a random search draws
 * equal those of scikit-learn with the same seed. The generator is MT19937 (Matsumoto and Nishimura
 * 1998), seeded by Knuth's recurrence. Bounded integers use masked rejection. */
#pragma once

#include "base/defs.h"

#define MR_MT_WORDS 624

struct mr_mt {
    uint32_t word[MR_MT_WORDS];
    unsigned at;
};

void mr_mt_init(struct mr_mt *m, uint32_t seed); /* the generator of RandomState(seed) */
uint32_t mr_mt_u32(struct mr_mt *m);
/* Returns 0 … max, both included, as randint(max + 1). */
uint64_t mr_mt_upto(struct mr_mt *m, uint64_t max);
double mr_mt_f64(struct mr_mt *m); /* returns a number in [0, 1) with 53 bits, as random_sample() */

/* Shuffle n items as RandomState.shuffle does. */
void mr_mt_shuffle_i64(struct mr_mt *m, int64_t *items, uint64_t n);
void mr_mt_shuffle_u32(struct mr_mt *m, uint32_t *items, uint64_t n);

/* Shuffles the rows for one epoch, in place: Fisher-Yates with xorshift32 (Marsaglia 2003; shifts
 * 13, 17, 5), each number modulo 2^31. Every call starts the generator from `seed`; 0 counts as
 * 1. */
void mr_rows_shuffle(uint32_t seed, uint32_t *rows, uint32_t n);
