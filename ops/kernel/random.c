/* Random streams that give the same bits as NumPy's generators (random.h). */
#include "ops/kernel/random.h"

#include <math.h>

__extension__ typedef unsigned __int128 wide;

/* ---- SeedSequence ---- */

#define POOL 4

static uint32_t hash_mix(uint32_t value, uint32_t *constant)
{
    value ^= *constant;
    *constant *= 0x931e8875u;
    value *= *constant;
    return value ^ value >> 16;
}

static uint32_t mix(uint32_t x, uint32_t y)
{
    uint32_t r = 0xca01f9ddu * x - 0x4973f715u * y;
    return r ^ r >> 16;
}

/* Splits a number into 32-bit words, the low word first. Returns the number of words, at least
 * one. */
static unsigned words_of(uint64_t v, uint32_t *out)
{
    out[0] = (uint32_t)v;
    out[1] = (uint32_t)(v >> 32);
    return out[1] ? 2 : 1;
}

static void seed_sequence(uint64_t seed, uint64_t stream, uint64_t *out, unsigned count)
{
    uint32_t entropy[POOL + 2] = {0};
    unsigned n = words_of(seed, entropy);
    if (stream != MR_STREAM_NONE) n = POOL + words_of(stream, entropy + POOL);
    uint32_t pool[POOL];
    uint32_t constant = 0x43b0d7e5u;
    for (unsigned i = 0; i < POOL; i++)
        pool[i] = hash_mix(entropy[i], &constant);
    for (unsigned from = 0; from < POOL; from++)
        for (unsigned to = 0; to < POOL; to++)
            if (from != to) pool[to] = mix(pool[to], hash_mix(pool[from], &constant));
    for (unsigned from = POOL; from < n; from++)
        for (unsigned to = 0; to < POOL; to++)
            pool[to] = mix(pool[to], hash_mix(entropy[from], &constant));
    constant = 0x8b51f9ddu;
    for (unsigned i = 0; i < 2 * count; i++) {
        uint32_t v = pool[i % POOL] ^ constant;
        constant *= 0x58f38dedu;
        v *= constant;
        v ^= v >> 16;
        out[i / 2] = i % 2 ? out[i / 2] | (uint64_t)v << 32 : v;
    }
}

/* ---- PCG64: XSL RR 128/64 ---- */

static wide join(uint64_t high, uint64_t low)
{
    return (wide)high << 64 | low;
}

static void pcg_step(struct mr_stream *s)
{
    const wide multiplier = join(0x2360ed051fc65da4u, 0x4385df649fccf645u);
    wide state = join(s->state[0], s->state[1]) * multiplier + join(s->state[2], s->state[3]);
    s->state[0] = (uint64_t)(state >> 64);
    s->state[1] = (uint64_t)state;
}

static uint64_t pcg_next(struct mr_stream *s)
{
    pcg_step(s);
    uint64_t x = s->state[0] ^ s->state[1];
    unsigned turn = (unsigned)(s->state[0] >> 58);
    return x >> turn | x << (-turn & 63);
}

static void pcg_init(struct mr_stream *s, const uint64_t *seeds)
{
    s->state[0] = s->state[1] = 0;
    s->state[2] = seeds[2] << 1 | seeds[3] >> 63;
    s->state[3] = seeds[3] << 1 | 1;
    pcg_step(s);
    wide state = join(s->state[0], s->state[1]) + join(seeds[0], seeds[1]);
    s->state[0] = (uint64_t)(state >> 64);
    s->state[1] = (uint64_t)state;
    pcg_step(s);
}

/* ---- Philox 4×64, 10 rounds ---- */

static void philox_block(struct mr_stream *s)
{
    for (unsigned i = 0; i < 4 && ++s->state[i] == 0; i++) {
    }
    uint64_t x[4] = {s->state[0], s->state[1], s->state[2], s->state[3]};
    uint64_t k0 = s->key[0];
    uint64_t k1 = s->key[1];
    for (unsigned round = 0; round < 10; round++) {
        wide a = (wide)0xd2e7470ee14c6c93u * x[0];
        wide b = (wide)0xca5a826395121157u * x[2];
        uint64_t y0 = (uint64_t)(b >> 64) ^ x[1] ^ k0;
        uint64_t y2 = (uint64_t)(a >> 64) ^ x[3] ^ k1;
        x[0] = y0;
        x[1] = (uint64_t)b;
        x[2] = y2;
        x[3] = (uint64_t)a;
        k0 += 0x9e3779b97f4a7c15u;
        k1 += 0xbb67ae8584caa73bu;
    }
    memcpy(s->buffer, x, sizeof x);
    s->buffered = 4;
}

/* ---- streams ---- */

void mr_stream_init(
    struct mr_stream *s, enum mr_generator generator, uint64_t seed, uint64_t stream)
{
    uint64_t seeds[4];
    *s = (struct mr_stream){.generator = generator};
    seed_sequence(seed, stream, seeds, generator == MR_GENERATOR_PCG64 ? 4 : 2);
    if (generator == MR_GENERATOR_PCG64)
        pcg_init(s, seeds);
    else
        memcpy(s->key, seeds, sizeof s->key);
}

static uint64_t next_u64(struct mr_stream *s)
{
    if (s->generator == MR_GENERATOR_PCG64) return pcg_next(s);
    if (!s->buffered) philox_block(s);
    return s->buffer[4 - s->buffered--];
}

/* Returns one half of a u64: first the low half, and at the next call the high half. */
static uint32_t next_u32(struct mr_stream *s)
{
    if (s->has_half) {
        s->has_half = false;
        return s->half;
    }
    uint64_t both = next_u64(s);
    s->has_half = true;
    s->half = (uint32_t)(both >> 32);
    return (uint32_t)both;
}

double mr_stream_f64(struct mr_stream *s)
{
    return (double)(next_u64(s) >> 11) * 0x1p-53;
}

float mr_stream_f32(struct mr_stream *s)
{
    return (float)(next_u32(s) >> 8) * 0x1p-24f;
}

static uint64_t upto_32(struct mr_stream *s, uint32_t range)
{
    uint64_t count = (uint64_t)range + 1;
    uint64_t m = (uint64_t)next_u32(s) * count;
    if ((uint32_t)m < count) {
        uint64_t threshold = (UINT32_MAX - range) % count;
        while ((uint32_t)m < threshold)
            m = (uint64_t)next_u32(s) * count;
    }
    return m >> 32;
}

uint64_t mr_stream_upto(struct mr_stream *s, uint64_t range)
{
    if (range == 0) return 0;
    if (range == UINT32_MAX) return next_u32(s);
    if (range < UINT32_MAX) return upto_32(s, (uint32_t)range);
    if (range == UINT64_MAX) return next_u64(s);
    uint64_t count = range + 1;
    wide m = (wide)next_u64(s) * count;
    if ((uint64_t)m < count) {
        uint64_t threshold = (UINT64_MAX - range) % count;
        while ((uint64_t)m < threshold)
            m = (wide)next_u64(s) * count;
    }
    return (uint64_t)(m >> 64);
}

/* ---- the normal distribution ---- */

static double ratio(const double *a, const double *b, double r)
{
    double top = a[7];
    double bottom = b[7];
    for (int i = 6; i >= 0; i--) {
        top = top * r + a[i];
        bottom = bottom * r + b[i];
    }
    return top / bottom;
}

/* Returns the quantile of the standard normal distribution for p in (0, 1): PPND16 of AS 241
 * (Wichura 1988). */
static double quantile(double p)
{
    static const double a[] = {3.3871328727963666080e0, 1.3314166789178437745e+2,
        1.9715909503065514427e+3, 1.3731693765509461125e+4, 4.5921953931549871457e+4,
        6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double b[] = {1, 4.2313330701600911252e+1, 6.8718700749205790830e+2,
        5.3941960214247511077e+3, 2.1213794301586595867e+4, 3.9307895800092710610e+4,
        2.8729085735721942674e+4, 5.2264952788528545610e+3};
    static const double c[] = {1.42343711074968357734e0, 4.63033784615654529590e0,
        5.76949722146069140550e0, 3.64784832476320460504e0, 1.27045825245236838258e0,
        2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[] = {1, 2.05319162663775882187e0, 1.67638483018380384940e0,
        6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2,
        5.47593808499534494600e-4, 1.05075007164441684324e-9};
    static const double e[] = {6.65790464350110377720e0, 5.46378491116411436990e0,
        1.78482653991729133580e0, 2.96560571828504891230e-1, 2.65321895265761230930e-2,
        1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double f[] = {1, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
        1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
        1.42151175831644588870e-7, 2.04426310338993978564e-15};
    double q = p - 0.5;
    if (fabs(q) <= 0.425) return q * ratio(a, b, 0.180625 - q * q);
    double r = sqrt(-log(q < 0 ? p : 1 - p));
    double x = r <= 5 ? ratio(c, d, r - 1.6) : ratio(e, f, r - 5);
    return q < 0 ? -x : x;
}

double mr_stream_normal(struct mr_stream *s)
{
    /* The largest draw rounds to 1, whose quantile is infinite. */
    double p = ((double)(next_u64(s) >> 11) + 0.5) * 0x1p-53;
    return quantile(fmin(p, 1 - 0x1p-53));
}
