#include "base/rng.h"

#include "base/assert.h"
#include "base/id.h"

void mr_rng_init(struct mr_rng *r, uint64_t seed)
{
    for (size_t i = 0; i < MR_ARRAY_LEN(r->s); i++) {
        seed += 0x9e3779b97f4a7c15u;
        r->s[i] = mr_hash_u64(seed);
    }
}

static uint64_t rotl(uint64_t x, unsigned k)
{
    return x << k | x >> (64 - k);
}

uint64_t mr_rng_next(struct mr_rng *r)
{
    uint64_t *s = r->s;
    uint64_t out = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return out;
}

uint64_t mr_rng_below(struct mr_rng *r, uint64_t bound)
{
    mr_assert(bound);
    /* `floor` is 2^64 mod `bound`. Draws below `floor` are dropped, so that every result is equally
     * likely. */
    uint64_t floor = -bound % bound;
    uint64_t x = 0;
    do {
        x = mr_rng_next(r);
    } while (x < floor);
    return x % bound;
}
