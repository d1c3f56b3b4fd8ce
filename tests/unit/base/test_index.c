/* Compares lib/base/index with a plain array. */
#include "base/index.h"

#include "base/id.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ITEMS = 2000 };

struct table {
    uint64_t key[ITEMS];
};

static uint64_t hash_key(uint64_t key)
{
    return mr_hash_u64(key % 97) ^ key; /* makes the upper halves of many hashes equal */
}

static bool eq(const void *ctx, uint32_t item, const void *key)
{
    const struct table *t = ctx;
    return t->key[item] == *(const uint64_t *)key;
}

static uint64_t rehash(const void *ctx, uint32_t item)
{
    const struct table *t = ctx;
    return hash_key(t->key[item]);
}

static void it_agrees_with_an_array_under_random_adds_and_removes(void **state)
{
    (void)state;
    static struct table t;
    bool in[ITEMS] = {false};
    struct mr_rng rng;
    mr_rng_init(&rng, 1);
    for (uint32_t i = 0; i < ITEMS; i++)
        t.key[i] = i * 3 + 1;
    struct mr_index x;
    mr_index_init(&x, 4);
    uint32_t count = 0;
    for (int step = 0; step < 50000; step++) {
        uint32_t i = (uint32_t)mr_rng_below(&rng, ITEMS);
        if (in[i]) {
            assert_true(mr_index_remove(&x, hash_key(t.key[i]), i));
            assert_false(mr_index_remove(&x, hash_key(t.key[i]), i));
            count--;
        } else {
            mr_index_add(&x, hash_key(t.key[i]), i, rehash, &t);
            count++;
        }
        in[i] = !in[i];
        assert_int_equal(x.count, count);
        uint32_t look = (uint32_t)mr_rng_below(&rng, ITEMS);
        uint32_t found = mr_index_find(&x, hash_key(t.key[look]), eq, &t, &t.key[look]);
        assert_int_equal(found, in[look] ? look : MR_INDEX_NONE);
    }
    mr_index_fini(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_agrees_with_an_array_under_random_adds_and_removes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
