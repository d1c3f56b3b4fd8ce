/* store/object/table and collection: what is built reads back. Forged layouts are refused or do no
 * harm. An extent is a value's byte string with its header. */
#include "base/alloc.h"
#include "store/object/collection.h"
#include "store/object/table.h"
#include "store/object/value_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Builds a table of three rows. Its columns: a is i64, with row 1 missing; b is utf8; c is bool;
 * däta is large_utf8, with all rows empty. The caller owns the extent. */
static unsigned char *small_table(uint64_t *bytes)
{
    static const struct mr_column_spec specs[] = {
        {MR_STR_INIT("a"), MR_COLUMN_I64, true, 0},
        {MR_STR_INIT("b"), MR_COLUMN_UTF8, false, 6},
        {MR_STR_INIT("c"), MR_COLUMN_BOOL, false, 0},
        {MR_STR_INIT("däta"), MR_COLUMN_LARGE_UTF8, true, 0},
    };
    struct mr_column_out outs[4];
    *bytes = mr_table_bytes(specs, 4, 3);
    unsigned char *extent = mr_alloc_aligned(*bytes, 64);
    memset(extent, 0xee, *bytes);
    mr_table_build(extent, specs, 4, 3, outs);
    static const int64_t a[] = {-5, 0, INT64_MAX};
    memcpy(outs[0].data, a, sizeof a);
    outs[0].validity[0] &= 0x5;
    static const int32_t offsets[] = {0, 1, 1, 6};
    memcpy(outs[1].offsets, offsets, sizeof offsets);
    memcpy(outs[1].data, "xhello", 6);
    *(uint8_t *)outs[2].data = 0x6;
    memset(outs[3].offsets, 0, 4 * sizeof(int64_t));
    outs[3].validity[0] = 0;
    mr_table_finish(extent);
    return extent;
}

static void a_table_reads_back(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    unsigned char *extent = small_table(&bytes);
    struct mr_value v;
    struct mr_error e = {0};
    int err = mr_value_check_deep(mr_str_of(extent, bytes), &v, &e);
    assert_string_equal(e.text, "");
    assert_int_equal(err, MR_OK);
    struct mr_table t;
    assert_int_equal(mr_table_open(&v, &t, NULL), MR_OK);
    assert_int_equal(t.rows, 3);
    assert_int_equal(t.columns_count, 4);
    struct mr_column c;
    assert_int_equal(mr_table_column(&t, 0, &c, NULL), MR_OK);
    assert_true(mr_str_eq(c.name, MR_STR("a")));
    assert_int_equal(c.null_count, 1);
    assert_true(mr_column_has(&c, 0) && !mr_column_has(&c, 1) && mr_column_has(&c, 2));
    assert_int_equal(mr_column_i64(&c, 0), -5);
    assert_true(mr_column_i64(&c, 2) == INT64_MAX);
    assert_int_equal((uintptr_t)c.data % 64, 0);
    assert_int_equal(mr_table_column(&t, 1, &c, NULL), MR_OK);
    assert_true(mr_str_eq(mr_column_text(&c, 0), MR_STR("x")));
    assert_true(mr_str_eq(mr_column_text(&c, 1), MR_STR("")));
    assert_true(mr_str_eq(mr_column_text(&c, 2), MR_STR("hello")));
    assert_int_equal(mr_table_column(&t, 2, &c, NULL), MR_OK);
    assert_int_equal(mr_column_i64(&c, 0), 0);
    assert_int_equal(mr_column_i64(&c, 2), 1);
    assert_true(mr_column_f64(&c, 1) == 1);
    assert_int_equal(mr_table_column(&t, 3, &c, NULL), MR_OK);
    assert_int_equal(c.null_count, 3);
    uint32_t i = 0;
    assert_int_equal(mr_table_find(&t, MR_STR("däta"), &i, NULL), MR_OK);
    assert_int_equal(i, 3);
    assert_int_equal(mr_table_find(&t, MR_STR("z"), &i, &e), MR_ENOENT);
    assert_string_equal(e.text, "no column \"z\"; the table has \"a\", \"b\", \"c\", \"däta\"");
    assert_int_equal(mr_table_column(&t, 4, &c, NULL), MR_ERANGE);
    char text[MR_VALUE_SUMMARY_MAX];
    mr_value_summary(&v, text);
    assert_string_equal(text, "table[3 rows, 4 columns] 840 B");
    mr_release(extent);
}

static void equal_tables_are_equal_bytes(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    unsigned char *x = small_table(&bytes);
    unsigned char *y = small_table(&bytes);
    for (uint64_t i = 0; i < bytes; i++)
        assert_int_not_equal(x[i], 0xee); /* every byte of the extent has been written */
    assert_memory_equal(x, y, bytes);
    mr_release(x);
    mr_release(y);
}

static void every_column_type_has_the_room_it_needs(void **state)
{
    (void)state;
    for (unsigned i = 1; i < MR_COLUMN_TYPES_COUNT; i++)
        for (uint64_t rows = 0; rows < 130; rows += 13) {
            enum mr_column_type type = (enum mr_column_type)i;
            struct mr_column_spec spec = {MR_STR("x"), type, true, 10};
            uint64_t bytes = mr_table_bytes(&spec, 1, rows);
            unsigned char *extent = mr_alloc_aligned(bytes, 64);
            struct mr_column_out out;
            mr_table_build(extent, &spec, 1, rows, &out);
            if (out.offsets) memset(out.offsets, 0, (rows + 1) * (type >= 15 ? 8 : 4));
            memset(out.data, 0, out.offsets ? 10 : rows * mr_column_type_bits(type) / 8);
            mr_table_finish(extent);
            struct mr_value v;
            assert_int_equal(mr_value_check_deep(mr_str_of(extent, bytes), &v, NULL), MR_OK);
            struct mr_table t;
            struct mr_column c;
            assert_int_equal(mr_table_open(&v, &t, NULL), MR_OK);
            assert_int_equal(mr_table_column(&t, 0, &c, NULL), MR_OK);
            assert_int_equal(c.null_count, 0);
            assert_true(c.data_bytes * 8 >= rows * mr_column_type_bits(type));
            mr_release(extent);
        }
}

static void tables_without_rows_or_columns_are_tables(void **state)
{
    (void)state;
    unsigned char *extent = mr_alloc_aligned(4096, 64);
    mr_table_build(extent, NULL, 0, 7, NULL);
    struct mr_value v;
    assert_int_equal(mr_value_check_deep(mr_str_of(extent, 4096), &v, NULL), MR_OK);
    assert_int_equal(v.tensor.shape[0], 7);
    mr_release(extent);
}

static void what_cannot_be_a_table_has_no_size(void **state)
{
    (void)state;
    struct mr_column_spec s = {MR_STR("x"), MR_COLUMN_I64, false, 0};
    assert_int_equal(mr_table_bytes(&s, 1, MR_OBJECT_BYTES_MAX), 0);
    assert_int_equal(mr_table_bytes(&s, 1, UINT64_MAX), 0);
    assert_int_equal(mr_table_bytes(&s, MR_TABLE_COLUMNS_MAX + 1, 1), 0);
    s = (struct mr_column_spec){MR_STR("x"), MR_COLUMN_UTF8, false, (uint64_t)1 << 31};
    assert_int_equal(mr_table_bytes(&s, 1, 1), 0);
    s.type = MR_COLUMN_LARGE_UTF8;
    assert_true(mr_table_bytes(&s, 1, 1) > (uint64_t)1 << 31);
    s.data_bytes = UINT64_MAX;
    assert_int_equal(mr_table_bytes(&s, 1, 1), 0);
    s = (struct mr_column_spec){MR_STR("\xff"), MR_COLUMN_I64, false, 0};
    assert_int_equal(mr_table_bytes(&s, 1, 1), 0);
    s = (struct mr_column_spec){MR_STR("x"), (enum mr_column_type)99, false, 0};
    assert_int_equal(mr_table_bytes(&s, 1, 1), 0);
}

/* The header's checksum does not cover the layouts of columns. So the test overwrites each word of
 * the layouts. */
static void a_forged_layout_leads_nowhere(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, 63, 64, 128, 1 << 20, UINT64_MAX, UINT64_MAX - 63,
        (uint64_t)1 << 63, 0xffff, 0x100000000};
    uint64_t bytes = 0;
    unsigned char *extent = small_table(&bytes);
    struct mr_value_header h;
    memcpy(&h, extent, sizeof h);
    unsigned refused = 0;
    for (uint64_t at = h.meta_offset; at < h.nbytes; at += 4)
        for (size_t i = 0; i < MR_ARRAY_LEN(values); i++) {
            unsigned char *copy = mr_alloc_aligned(bytes, 64);
            memcpy(copy, extent, bytes);
            memcpy(copy + at, &values[i], MR_MIN((uint64_t)8, h.nbytes - at));
            struct mr_value v;
            int err = mr_value_check_deep(mr_str_of(copy, h.nbytes), &v, NULL);
            refused += err != MR_OK;
            /* If a layout passes the check, the test reads the whole table, so that the sanitizer
             * finds bad reads. */
            struct mr_table t;
            uint64_t sum = 0;
            if (!mr_value_check(mr_str_of(copy, h.nbytes), &v, NULL) &&
                !mr_table_open(&v, &t, NULL))
                for (uint32_t k = 0; k < t.columns_count; k++) {
                    struct mr_column c;
                    assert_int_equal(mr_table_column(&t, k, &c, NULL), MR_OK);
                    for (uint64_t row = 0; row < t.rows; row++) {
                        sum += mr_column_has(&c, row);
                        if (!mr_column_type_is_varied(c.type)) {
                            sum += mr_column_f64(&c, row) > 0;
                            continue;
                        }
                        struct mr_str s = mr_column_text(&c, row);
                        for (size_t b = 0; b < s.n; b++)
                            sum += (unsigned char)s.p[b];
                    }
                }
            assert_true(sum < 100000);
            mr_release(copy);
        }
    assert_true(refused > 300);
    mr_release(extent);
}

static void wrong_rows_are_found_by_the_deep_check(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    unsigned char *extent = small_table(&bytes);
    struct mr_value v;
    struct mr_table t;
    struct mr_column b;
    assert_int_equal(mr_value_check(mr_str_of(extent, bytes), &v, NULL), MR_OK);
    assert_int_equal(mr_table_open(&v, &t, NULL), MR_OK);
    assert_int_equal(mr_table_column(&t, 1, &b, NULL), MR_OK);
    int32_t *offsets = (int32_t *)(void *)(extent + ((const unsigned char *)b.offsets - extent));
    struct mr_error e;
    static const int32_t wrong[] = {-1, 7, 0, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < MR_ARRAY_LEN(wrong); i++) {
        offsets[2] = wrong[i];
        assert_int_equal(mr_value_check(mr_str_of(extent, bytes), &v, NULL), MR_OK);
        assert_int_equal(mr_value_check_deep(mr_str_of(extent, bytes), &v, &e), MR_EFORMAT);
        assert_true(mr_column_text(&b, 1).n <= 6 && mr_column_text(&b, 2).n <= 6);
    }
    offsets[2] = 1;
    extent[(const unsigned char *)b.data - extent] = 0xff;
    assert_int_equal(mr_value_check_deep(mr_str_of(extent, bytes), &v, &e), MR_EFORMAT);
    assert_string_equal(e.text, "column \"b\": row 0 is not UTF-8");
    mr_release(extent);
}

/* ---- collections ----------------------------------------------------------------------------- */

static unsigned char *small_collection(uint64_t *bytes)
{
    struct mr_collection_part parts[] = {
        {.id = {7, 1},
            .nbytes = 1000,
            .kind = MR_VALUE_TENSOR,
            .dtype = MR_DTYPE_F32,
            .start = {0, 0},
            .shape = {6, 4}},
        {.inline_pack = MR_STR("\x92\x01\x02"),
            .nbytes = 67,
            .kind = MR_VALUE_PACK,
            .start = {6, 0},
            .shape = {4, 4}},
    };
    struct mr_collection_spec spec = {.kind = MR_VALUE_TENSOR,
        .dtype = MR_DTYPE_F32,
        .axis = 0,
        .ndim = 2,
        .shape = (uint64_t[]){10, 4},
        .parts = parts,
        .count = 2,
        .divisions = MR_STR("\x93\x00\x06\x0a")};
    *bytes = mr_collection_bytes(&spec);
    unsigned char *extent = mr_alloc_aligned(*bytes, 64);
    memset(extent, 0xee, *bytes);
    mr_collection_build(extent, &spec);
    return extent;
}

static void a_collection_reads_back(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    unsigned char *extent = small_collection(&bytes);
    struct mr_value v;
    struct mr_error e = {0};
    assert_int_equal(mr_value_check_deep(mr_str_of(extent, bytes), &v, &e), MR_OK);
    assert_int_equal(v.nbytes, bytes);
    struct mr_collection c;
    assert_int_equal(mr_collection_open(&v, &c, NULL), MR_OK);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.shape[0], 10);
    assert_int_equal(c.divisions.n, 4);
    struct mr_collection_part p;
    assert_int_equal(mr_collection_part(&c, 0, &p, NULL), MR_OK);
    assert_true(mr_object_id_eq(p.id, (mr_object_id){7, 1}));
    assert_int_equal(p.nbytes, 1000);
    assert_int_equal(p.shape[0], 6);
    assert_int_equal(mr_collection_part(&c, 1, &p, NULL), MR_OK);
    assert_int_equal(p.inline_pack.n, 3);
    assert_int_equal(p.start[0], 6);
    assert_int_equal(mr_collection_part(&c, 2, &p, NULL), MR_ERANGE);
    char text[MR_VALUE_SUMMARY_MAX];
    mr_value_summary(&v, text);
    /* The summary counts the bytes of the parts, not of the collection's extent. */
    assert_string_equal(text, "collection of f32[10,4] in 2 parts 1.0 KiB");
    mr_release(extent);
}

static void what_cannot_be_a_collection_has_no_size(void **state)
{
    (void)state;
    struct mr_collection_part part = {
        .id = {1, 1}, .kind = MR_VALUE_TABLE, .start = {0, 0}, .shape = {5, 2}};
    struct mr_collection_spec s = {
        .kind = MR_VALUE_TABLE, .ndim = 2, .shape = (uint64_t[]){5, 2}, .parts = &part, .count = 1};
    assert_int_not_equal(mr_collection_bytes(&s), 0);
    s.axis = 2;
    assert_int_equal(mr_collection_bytes(&s), 0);
    s.axis = MR_COLLECTION_GRID;
    part.start[0] = 1;
    assert_int_equal(mr_collection_bytes(&s), 0);
    part.start[0] = 0;
    part.id = (mr_object_id){0, 0};
    assert_int_equal(mr_collection_bytes(&s), 0);
    part.id = (mr_object_id){1, 1};
    s.kind = MR_VALUE_TENSOR; /* `s` gives the tensors no element type */
    assert_int_equal(mr_collection_bytes(&s), 0);
    s.kind = MR_VALUE_COLLECTION;
    assert_int_equal(mr_collection_bytes(&s), 0);
}

static void forged_entries_lead_nowhere(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, 64, 1 << 20, UINT64_MAX, (uint64_t)1 << 63};
    uint64_t bytes = 0;
    unsigned char *extent = small_collection(&bytes);
    struct mr_value_header h;
    memcpy(&h, extent, sizeof h);
    unsigned refused = 0;
    for (uint64_t at = h.meta_offset; at < h.nbytes; at += 4)
        for (size_t i = 0; i < MR_ARRAY_LEN(values); i++) {
            unsigned char *copy = mr_alloc_aligned(bytes, 64);
            memcpy(copy, extent, bytes);
            memcpy(copy + at, &values[i], MR_MIN((uint64_t)8, h.nbytes - at));
            struct mr_value v;
            refused += mr_value_check_deep(mr_str_of(copy, bytes), &v, NULL) != MR_OK;
            mr_release(copy);
        }
    assert_true(refused > 50);
    mr_release(extent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_reads_back),
        cmocka_unit_test(equal_tables_are_equal_bytes),
        cmocka_unit_test(every_column_type_has_the_room_it_needs),
        cmocka_unit_test(tables_without_rows_or_columns_are_tables),
        cmocka_unit_test(what_cannot_be_a_table_has_no_size),
        cmocka_unit_test(a_forged_layout_leads_nowhere),
        cmocka_unit_test(wrong_rows_are_found_by_the_deep_check),
        cmocka_unit_test(a_collection_reads_back),
        cmocka_unit_test(what_cannot_be_a_collection_has_no_size),
        cmocka_unit_test(forged_entries_lead_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
