/* graph/int_column: each number of a column has as many bytes as the largest number needs. Forms
 * that the writer never writes are refused. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/rng.h"
#include "graph/int_column.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void write_all(struct mr_int_column *c, struct mr_buf *out)
{
    static unsigned char some[MR_INT_COLUMN_SOME * 4 + 4];
    mr_int_column_choose(c);
    mr_buf_init(out, 1 << 20);
    for (uint32_t from = 0; from < c->count + c->more_count;) {
        size_t n = 0;
        from += mr_int_column_write(c, from, some, &n);
        mr_buf_add(out, some, n);
    }
    assert_int_equal(out->n, mr_int_column_bytes(c));
}

static void numbers_come_back_in_as_few_bytes_as_the_largest_needs(void **state)
{
    (void)state;
    static const uint32_t most[] = {
        1, 0xff, 0x100, 0xffff, 0x10000, 0xffffff, 0x1000000, UINT32_MAX};
    static const uint32_t width[] = {1, 1, 2, 2, 3, 3, 4, 4};
    for (size_t k = 0; k < MR_ARRAY_LEN(most); k++)
        for (uint32_t n = 2; n < 5000; n = n * 3 + 1) {
            struct mr_rng r;
            struct mr_buf bytes;
            uint32_t *in = mr_alloc_array(n, sizeof *in), *out = mr_alloc_array(n, sizeof *out);
            mr_rng_init(&r, k);
            for (uint32_t i = 1; i < n; i++)
                in[i] = (uint32_t)mr_rng_below(&r, most[k]);
            in[n - 1] = most[k];
            struct mr_int_column c = {.p = in, .count = n, .bytes = 4};
            write_all(&c, &bytes);
            assert_int_equal(bytes.n, (size_t)n * width[k]);
            assert_true(mr_int_column_read(mr_buf_str(&bytes), c.form, n, 4, (unsigned char *)out));
            assert_memory_equal(in, out, n * sizeof *in);
            assert_false(mr_int_column_read(
                mr_str_of(bytes.p, bytes.n - 1), c.form, n, 4, (unsigned char *)out));
            mr_buf_fini(&bytes);
            mr_release(in);
            mr_release(out);
        }
}

static void numbers_that_are_all_the_same_are_one(void **state)
{
    (void)state;
    uint32_t at[3001], more[11];
    for (uint32_t i = 0; i <= 3000; i++)
        at[i] = 12 * i;
    for (uint32_t i = 0; i <= 10; i++)
        more[i] = 7 + 12 * i;
    struct mr_int_column c = {
        .p = at, .count = 3000, .more = more, .more_count = 10, .bytes = 2, .is_offsets = true};
    struct mr_buf bytes;
    uint16_t out[3010];
    write_all(&c, &bytes);
    assert_int_equal(bytes.n, 2);
    assert_true(mr_int_column_read(mr_buf_str(&bytes), c.form, 3010, 2, (unsigned char *)out));
    for (uint32_t i = 0; i < 3010; i++)
        assert_int_equal(out[i], 12);
    mr_buf_fini(&bytes);
    /* The numbers of the column are the differences between neighbours in `at` and in `more`. The
     * last number becomes 13; all others are 12. */
    more[10]++;
    write_all(&c, &bytes);
    assert_int_equal(bytes.n, 3010);
    assert_true(mr_int_column_read(mr_buf_str(&bytes), c.form, 3010, 2, (unsigned char *)out));
    assert_int_equal(out[3008], 12);
    assert_int_equal(out[3009], 13);
    mr_buf_fini(&bytes);
}

static void forms_that_nobody_writes_are_refused(void **state)
{
    (void)state;
    unsigned char out[16];
    const struct mr_str four = mr_str_of("abcd", 4);
    assert_false(mr_int_column_read(four, 5, 4, 4, out));
    /* Form 4 stores a column of equal numbers as one number. The writer never uses form 4 for a
     * column that has only one number. */
    assert_false(mr_int_column_read(four, 4, 1, 4, out));
    /* Numbers that are one byte wide cannot be narrowed. */
    assert_false(mr_int_column_read(four, 1, 4, 1, out));
    assert_false(mr_int_column_read(four, 3, 2, 2, out));
    assert_false(mr_int_column_read(mr_str_of("", 0), 4, 4, 4, out));
    assert_true(mr_int_column_read(four, 1, 4, 2, out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_back_in_as_few_bytes_as_the_largest_needs),
        cmocka_unit_test(numbers_that_are_all_the_same_are_one),
        cmocka_unit_test(forms_that_nobody_writes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
