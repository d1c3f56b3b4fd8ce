/* The pool of blobs (reference-counted bytes). Each blob has bytes of its own, memory of a freed
 * blob is used again, and the pool has a limit. */
#include "services/worker/core/blob_pool.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define COUNT 300u
#define BYTES_MAX ((uint64_t)1 << 20)

static void fill(struct mr_blob *b, uint32_t i)
{
    memset(mr_worker__blob_at(b), (int)(i & 0x7f) + 1, b->bytes);
}

static void is_as_filled(struct mr_blob *b, uint32_t i)
{
    const unsigned char *p = mr_worker__blob_at(b);
    for (uint32_t k = 0; k < b->bytes; k++)
        assert_int_equal(p[k], (i & 0x7f) + 1);
}

static void blobs_of_any_size_have_bytes_of_their_own(void **state)
{
    struct mr_worker__blob_pool p;
    struct mr_blob *blobs[COUNT] = {0};
    struct mr_rng rng;
    (void)state;
    mr_rng_init(&rng, 1);
    mr_worker__blob_pool_init(&p, BYTES_MAX);
    for (uint32_t n = 0; n < 20000; n++) {
        uint32_t i = (uint32_t)mr_rng_below(&rng, COUNT);
        if (blobs[i]) {
            is_as_filled(blobs[i], i);
            mr_worker__blob_put(&p, &blobs[i]);
            assert_null(blobs[i]);
            continue;
        }
        uint32_t bytes = (uint32_t)mr_rng_below(&rng, n % 2 ? 400 : 4000);
        uint64_t before = p.bytes;
        blobs[i] = mr_worker__blob_new(&p, bytes);
        assert_non_null(blobs[i]);
        assert_int_equal(blobs[i]->bytes, bytes);
        uint64_t took = p.bytes - before, wanted = bytes + sizeof *blobs[i];
        assert_true(took >= wanted);
        /* A blob takes 64 bytes, or at most one and a half times its header and its bytes. */
        assert_true(took == 64 || 2 * took <= 3 * wanted + 1);
        fill(blobs[i], i);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        mr_worker__blob_put(&p, &blobs[i]);
    assert_int_equal(p.bytes, 0);
    mr_worker__blob_pool_fini(&p);
}

static void what_is_put_back_is_used_again(void **state)
{
    struct mr_worker__blob_pool p;
    (void)state;
    mr_worker__blob_pool_init(&p, BYTES_MAX);
    for (uint32_t i = 0; i < 100000; i++) {
        struct mr_blob *b = mr_worker__blob_copy(&p, MR_STR("bytes that are copied"));
        assert_memory_equal(mr_worker__blob_at(b), "bytes that are copied", b->bytes);
        assert_int_equal(p.arena.bytes, p.bytes);
        mr_worker__blob_put(&p, &b);
    }
    mr_worker__blob_pool_fini(&p);
}

static void a_blob_lives_until_its_last_reference_goes(void **state)
{
    struct mr_worker__blob_pool p;
    (void)state;
    mr_worker__blob_pool_init(&p, BYTES_MAX);
    struct mr_blob *b = mr_worker__blob_copy(&p, MR_STR("x")), *again = mr_worker__blob_ref(b);
    mr_worker__blob_put(&p, &b);
    assert_int_equal(p.bytes, 64);
    struct mr_blob *other = mr_worker__blob_copy(&p, MR_STR("y"));
    assert_true(other != again);
    mr_worker__blob_put(&p, &again);
    mr_worker__blob_put(&p, &other);
    mr_worker__blob_put(&p, &other); /* the reference is NULL already */
    assert_int_equal(p.bytes, 0);
    mr_worker__blob_pool_fini(&p);
}

static void a_full_pool_refuses_and_has_room_again(void **state)
{
    struct mr_worker__blob_pool p;
    struct mr_blob *blobs[BYTES_MAX / 128 + 1] = {0};
    (void)state;
    mr_worker__blob_pool_init(&p, BYTES_MAX);
    assert_null(mr_worker__blob_new(&p, BYTES_MAX));
    assert_null(mr_worker__blob_new(&p, (size_t)1 << 33));
    assert_null(mr_worker__blob_new(&p, SIZE_MAX));
    uint32_t n = 0;
    /* With its header, a blob of this size is in the class of 128 bytes. */
    size_t bytes = 128 - sizeof(struct mr_blob);
    while ((blobs[n] = mr_worker__blob_new(&p, bytes)))
        n++;
    assert_int_equal(n, BYTES_MAX / 128);
    assert_int_equal(p.bytes, BYTES_MAX);
    assert_null(mr_worker__blob_new(&p, 0));
    mr_worker__blob_put(&p, &blobs[0]);
    blobs[0] = mr_worker__blob_new(&p, 0); /* this blob is of another size class */
    assert_non_null(blobs[0]);
    for (uint32_t i = 0; i < n; i++)
        mr_worker__blob_put(&p, &blobs[i]);
    assert_int_equal(p.bytes, 0);
    mr_worker__blob_pool_fini(&p);
}

/* Size classes are 64, 96, 128, 192, … bytes, header included. */
static void a_blob_takes_the_smallest_class_that_it_fits_into(void **state)
{
    struct mr_worker__blob_pool p;
    (void)state;
    mr_worker__blob_pool_init(&p, BYTES_MAX);
    for (size_t power = 64; power <= 65536; power *= 2) {
        const size_t classes[] = {power, power / 2 * 3, power * 2};
        for (uint32_t i = 0; i < 2; i++) {
            size_t fits = classes[i] - sizeof(struct mr_blob);
            struct mr_blob *b = mr_worker__blob_new(&p, fits);
            assert_int_equal(p.bytes, classes[i]);
            mr_worker__blob_put(&p, &b);
            b = mr_worker__blob_new(&p, fits + 1);
            assert_int_equal(p.bytes, classes[i + 1]);
            mr_worker__blob_put(&p, &b);
        }
    }
    mr_worker__blob_pool_fini(&p);
}

/* Freed memory is used again only for blobs of its size class. All classes together have room for
 * four times the limit. */
static void memory_is_used_again_within_its_class_only(void **state)
{
    static struct mr_blob *blobs[BYTES_MAX / 64];
    struct mr_worker__blob_pool p;
    (void)state;
    mr_worker__blob_pool_init(&p, BYTES_MAX);
    for (size_t size = 64; size <= 512; size *= 2) {
        uint32_t n = 0;
        while ((blobs[n] = mr_worker__blob_new(&p, size - sizeof(struct mr_blob))))
            if (++n == BYTES_MAX / 64) break;
        assert_int_equal(n, BYTES_MAX / size);
        for (uint32_t i = 0; i < n; i++)
            mr_worker__blob_put(&p, &blobs[i]);
    }
    assert_non_null(mr_worker__blob_copy(&p, MR_STR(""))); /* takes 64 bytes with its header */
    assert_null(mr_worker__blob_new(&p, 1000));
    static const char bytes[1000];
    assert_null(mr_worker__blob_copy(&p, mr_str_of(bytes, sizeof bytes)));
    mr_worker__blob_pool_fini(&p);
}

/* A blob has at most 768 MiB with its header, whatever the limit of the pool is. */
static void a_blob_has_a_limit_of_its_own(void **state)
{
    struct mr_worker__blob_pool p;
    const uint64_t most = (uint64_t)3 << 28;
    (void)state;
    mr_worker__blob_pool_init(&p, (uint64_t)4 << 30);
    assert_null(mr_worker__blob_new(&p, most + 1 - sizeof(struct mr_blob)));
    struct mr_blob *b = mr_worker__blob_new(&p, most - sizeof(struct mr_blob));
    assert_non_null(b);
    assert_int_equal(p.bytes, most);
    mr_worker__blob_put(&p, &b);
    mr_worker__blob_pool_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blobs_of_any_size_have_bytes_of_their_own),
        cmocka_unit_test(what_is_put_back_is_used_again),
        cmocka_unit_test(a_blob_lives_until_its_last_reference_goes),
        cmocka_unit_test(a_full_pool_refuses_and_has_room_again),
        cmocka_unit_test(a_blob_takes_the_smallest_class_that_it_fits_into),
        cmocka_unit_test(memory_is_used_again_within_its_class_only),
        cmocka_unit_test(a_blob_has_a_limit_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
