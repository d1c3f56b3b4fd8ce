/* NumPy's legacy generator and scikit-learn's row shuffle (random.h). */
#include "ops/ml/random.h"

#define MIDDLE 397

void mr_mt_init(struct mr_mt *m, uint32_t seed)
{
    m->word[0] = seed;
    for (uint32_t i = 1; i < MR_MT_WORDS; i++)
        m->word[i] = 1812433253u * (m->word[i - 1] ^ m->word[i - 1] >> 30) + i;
    m->at = MR_MT_WORDS;
}

static void renew(struct mr_mt *m)
{
    for (unsigned i = 0; i < MR_MT_WORDS; i++) {
        uint32_t next = m->word[(i + 1) % MR_MT_WORDS];
        uint32_t y = (m->word[i] & 0x80000000u) | (next & 0x7fffffffu);
        m->word[i] = m->word[(i + MIDDLE) % MR_MT_WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    m->at = 0;
}

uint32_t mr_mt_u32(struct mr_mt *m)
{
    if (m->at == MR_MT_WORDS) renew(m);
    uint32_t y = m->word[m->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

uint64_t mr_mt_upto(struct mr_mt *m, uint64_t max)
{
    uint64_t mask = max;
    for (unsigned shift = 1; shift < 64; shift *= 2)
        mask |= mask >> shift;
    if (!max) return 0; /* NumPy draws no number in this case */
    for (;;) {
        uint64_t v = mr_mt_u32(m);
        if (max > UINT32_MAX) v = v << 32 | mr_mt_u32(m);
        if ((v & mask) <= max) return v & mask;
    }
}

double mr_mt_f64(struct mr_mt *m)
{
    uint32_t high = mr_mt_u32(m) >> 5;
    uint32_t low = mr_mt_u32(m) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

void mr_mt_shuffle_i64(struct mr_mt *m, int64_t *items, uint64_t n)
{
    for (uint64_t i = n; i-- > 1;) {
        uint64_t j = mr_mt_upto(m, i);
        int64_t kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
}

void mr_mt_shuffle_u32(struct mr_mt *m, uint32_t *items, uint64_t n)
{
    for (uint64_t i = n; i-- > 1;) {
        uint64_t j = mr_mt_upto(m, i);
        uint32_t kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
}

void mr_rows_shuffle(uint32_t seed, uint32_t *rows, uint32_t n)
{
    if (!seed) seed = 1;
    for (uint32_t i = 0; i + 1 < n; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        uint32_t j = i + (seed & 0x7fffffffu) % (n - i);
        uint32_t kept = rows[i];
        rows[i] = rows[j];
        rows[j] = kept;
    }
}
