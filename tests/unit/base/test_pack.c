/* Tests lib/base/pack: what is written reads back and has the shortest form, and malformed bytes
 * are refused. */
#include "base/limits.h"
#include "base/pack.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void integers_read_back_exactly_in_the_shortest_form(void **state)
{
    (void)state;
    static const struct {
        int64_t v;
        size_t bytes;
    } rows[] = {{0, 1}, {127, 1}, {128, 2}, {255, 2}, {256, 3}, {65535, 3}, {65536, 5},
        {UINT32_MAX, 5}, {(int64_t)UINT32_MAX + 1, 9}, {INT64_MAX, 9}, {-1, 1}, {-32, 1}, {-33, 2},
        {-128, 2}, {-129, 3}, {-32768, 3}, {-32769, 5}, {INT32_MIN, 5}, {(int64_t)INT32_MIN - 1, 9},
        {INT64_MIN, 9}};
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        struct mr_buf b;
        mr_buf_init(&b, 100);
        mr_pack_int(&b, rows[i].v);
        assert_int_equal(b.n, rows[i].bytes);
        struct mr_pack_reader r = mr_pack_read(mr_buf_str(&b));
        struct mr_pack_item item;
        assert_int_equal(mr_pack_next(&r, &item), MR_OK);
        assert_int_equal(item.type, MR_PACK_INT);
        assert_int_equal(item.i, rows[i].v);
        assert_true(mr_pack_at_end(&r));
        mr_buf_fini(&b);
    }
}

static void a_tree_with_every_type_passes_the_check_and_reads_back(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1 << 20);
    char big[70000];
    memset(big, 'x', sizeof big);
    mr_pack_list(&b, 9);
    mr_pack_nil(&b);
    mr_pack_bool(&b, true);
    mr_pack_uint(&b, UINT64_MAX);
    mr_pack_float(&b, 1.0);
    mr_pack_text(&b, mr_str_of(big, sizeof big));
    mr_pack_bytes(&b, mr_str_of("\xff\x00", 2));
    mr_pack_map(&b, 1);
    mr_pack_text(&b, MR_STR("key"));
    mr_pack_list(&b, 0);
    mr_pack_input(&b, 3);
    mr_pack_object(&b, (mr_object_id){1, 2});
    assert_int_equal(mr_pack_check(mr_buf_str(&b), 4, NULL), MR_OK);
    struct mr_error e;
    assert_int_equal(mr_pack_check(mr_buf_str(&b), 3, &e), MR_EFORMAT);
    assert_string_equal(e.text, "input slot 3, but there are 3 inputs");

    struct mr_pack_reader r = mr_pack_read(mr_buf_str(&b));
    struct mr_pack_item item;
    assert_int_equal(mr_pack_next(&r, &item), MR_OK);
    assert_int_equal(item.count, 9);
    static const enum mr_pack_type types[] = {MR_PACK_NIL, MR_PACK_BOOL, MR_PACK_UINT,
        MR_PACK_FLOAT, MR_PACK_TEXT, MR_PACK_BYTES, MR_PACK_MAP, MR_PACK_TEXT, MR_PACK_LIST,
        MR_PACK_EXT, MR_PACK_EXT};
    for (size_t i = 0; i < MR_ARRAY_LEN(types); i++) {
        assert_int_equal(mr_pack_next(&r, &item), MR_OK);
        assert_int_equal(item.type, types[i]);
        if (i == 2) assert_true(item.u == UINT64_MAX);
        if (i == 4) assert_int_equal(item.bytes.n, sizeof big);
        if (i == 9) assert_int_equal(mr_pack_input_slot(&item), 3);
    }
    assert_true(mr_pack_at_end(&r));
    struct mr_str whole;
    r.at = 0;
    assert_int_equal(mr_pack_skip(&r, &whole), MR_OK);
    assert_int_equal(whole.n, b.n);
    mr_buf_fini(&b);
}

static void malformed_bytes_are_refused(void **state)
{
    (void)state;
    static const struct mr_str bad[] = {MR_STR_INIT(""), MR_STR_INIT("\xc1"),
        MR_STR_INIT("\xa5"
                    "abc"),
        MR_STR_INIT("\xdd\xff\xff\xff\xff"), MR_STR_INIT("\x81\x01\x02"), MR_STR_INIT("\x91"),
        MR_STR_INIT("\x01\x02"), MR_STR_INIT("\xa1\xff"), MR_STR_INIT("\xd4\x07\x00"),
        MR_STR_INIT("\xd4\x01\x00"), MR_STR_INIT("\xcb\x00")};
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
        assert_int_equal(mr_pack_check(bad[i], 1, NULL), MR_EFORMAT);
}

static void nesting_has_a_bound(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    for (int i = 0; i < MR_DEPTH_MAX; i++)
        mr_pack_list(&b, 1);
    mr_pack_nil(&b);
    assert_int_equal(mr_pack_check(mr_buf_str(&b), 0, NULL), MR_OK);
    mr_buf_clear(&b);
    for (int i = 0; i < MR_DEPTH_MAX + 1; i++)
        mr_pack_list(&b, 1);
    mr_pack_nil(&b);
    assert_int_equal(mr_pack_check(mr_buf_str(&b), 0, NULL), MR_ELIMIT);
    mr_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_read_back_exactly_in_the_shortest_form),
        cmocka_unit_test(a_tree_with_every_type_passes_the_check_and_reads_back),
        cmocka_unit_test(malformed_bytes_are_refused),
        cmocka_unit_test(nesting_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
