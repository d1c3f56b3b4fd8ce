/* The generator xoshiro256** 1.0 (Blackman and Vigna 2018), seeded by splitmix64. It serves
 * simulators, jitter and tests. Random operators have generators of their own. */
#pragma once

#include <stdint.h>

struct mr_rng {
    uint64_t s[4];
};

void mr_rng_init(struct mr_rng *r, uint64_t seed);
uint64_t mr_rng_next(struct mr_rng *r);
/* Returns a uniformly distributed number from 0 to bound - 1; `bound` is at least 1. */
uint64_t mr_rng_below(struct mr_rng *r, uint64_t bound);
