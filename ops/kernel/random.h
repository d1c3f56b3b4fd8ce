/* Random streams that give the same bits as NumPy's generators: `pcg64` is
 * numpy.random.PCG64(seed) (O'Neill 2014), `philox` is numpy.random.Philox(seed) (Salmon et al.
 * 2011). Both are seeded by SeedSequence. A stream number is SeedSequence's spawn_key, so the parts
 * of one array draw from independent streams of one seed. */
#pragma once

#include "base/str.h"

enum mr_generator { MR_GENERATOR_PCG64, MR_GENERATOR_PHILOX };

#define MR_STREAM_NONE UINT64_MAX /* as stream number: the seed has no spawn_key */

struct mr_stream {
    enum mr_generator generator;
    uint64_t state[4]; /* pcg64: state high, low, increment high, low; philox: the counter */
    uint64_t key[2];
    uint64_t buffer[4];
    unsigned buffered;
    bool has_half;
    uint32_t half;
};

void mr_stream_init(
    struct mr_stream *s, enum mr_generator generator, uint64_t seed, uint64_t stream);
/* Returns a number in [0, 1) with 53 bits, as Generator.random(). */
double mr_stream_f64(struct mr_stream *s);
/* Returns a number in [0, 1) with 24 bits, as random(dtype=float32). */
float mr_stream_f32(struct mr_stream *s);
/* Returns an integer from 0 to `range`, both included, as Generator.integers for i64 (Lemire
 * 2019). */
uint64_t mr_stream_upto(struct mr_stream *s, uint64_t range);
/* Returns a standard normal number by inversion: the quantile (AS 241, Wichura 1988) of ((u >> 11)
 * + 0.5) / 2^53, where u is the next 64 bits. NumPy uses the ziggurat method, so its normal
 * numbers differ. */
double mr_stream_normal(struct mr_stream *s);
