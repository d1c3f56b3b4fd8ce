/* store/object/format/csv: quoting, inference of types, missing values, and export. */
#include "base/alloc.h"
#include "store/object/format/csv.h"
#include "store/object/format/csv_write.h"
#include "store/object/format/csv_field.h"
#include "store/object/format/json.h"
#include "store/object/table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct imported {
    void *extent;
    struct mr_value v;
    struct mr_error e;
    int err;
};

static struct imported import(struct mr_str text, const struct mr_format_options *o)
{
    struct imported r = {0};
    struct mr_value_alloc a = {mr_value_heap_alloc, &r.extent};
    r.err = mr_csv_import(text, o, &a, &r.e);
    if (r.err) return r;
    struct mr_value_header h;
    memcpy(&h, r.extent, sizeof h);
    assert_int_equal(mr_value_check_deep(mr_str_of(r.extent, h.nbytes), &r.v, NULL), MR_OK);
    return r;
}

/* Reads `text` as CSV. Returns the types of the columns, followed by the table as JSON columns, or
 * the error text. The caller frees the text. */
static char *show(const char *text, const struct mr_format_options *o)
{
    struct imported r = import(mr_str(text), o);
    if (r.err) return mr_format("%s", r.e.text);
    struct mr_buf b;
    mr_buf_init(&b, 100000);
    struct mr_table t;
    assert_int_equal(mr_table_open(&r.v, &t, NULL), MR_OK);
    for (uint32_t i = 0; i < t.columns_count; i++) {
        struct mr_column c;
        assert_int_equal(mr_table_column(&t, i, &c, NULL), MR_OK);
        mr_buf_printf(&b, "%s%s ", mr_column_type_name(c.type), c.nullable ? "?" : "");
    }
    struct mr_format_options columns = {.json_columns = true};
    assert_int_equal(mr_json_export(&r.v, &columns, mr_sink_to_buf(&b), NULL), MR_OK);
    mr_buf_add_byte(&b, 0);
    char *out = mr_copy_text((const char *)b.p);
    mr_buf_fini(&b);
    mr_release(r.extent);
    return out;
}

struct row {
    const char *text;
    const char *want;
};

static void check_rows(const struct row *rows, size_t n, const struct mr_format_options *o)
{
    for (size_t i = 0; i < n; i++) {
        char *got = show(rows[i].text, o);
        assert_string_equal(got, rows[i].want);
        mr_release(got);
    }
}

static void types_are_inferred_from_all_rows(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a\n1\n-2\n+3\n", "i64 {\"a\":[1,-2,3]}"},
        {"a\n1\n2.5\n", "f64 {\"a\":[1.0,2.5]}"},
        {"a\n1\nx\n", "utf8 {\"a\":[\"1\",\"x\"]}"},
        {"a\ntrue\nFalse\n", "bool {\"a\":[true,false]}"},
        {"a\ntrue\n1\n", "utf8 {\"a\":[\"true\",\"1\"]}"},
        {"a,b\n1,\n,2\n", "i64? i64? {\"a\":[1,null],\"b\":[null,2]}"},
        {"a\n1e3\nnan\n-inf\n", "f64 {\"a\":[1000.0,\"NaN\",\"-Infinity\"]}"},
        {"a\n.5\n5.\n1E-2\n", "f64 {\"a\":[0.5,5.0,0.01]}"},
        {"a\n.\n", "utf8 {\"a\":[\".\"]}"},
        {"a\n1e\n", "utf8 {\"a\":[\"1e\"]}"},
        {"a\n0x10\n", "utf8 {\"a\":[\"0x10\"]}"},
        {"a\n9223372036854775807\n-9223372036854775808\n",
            "i64 {\"a\":[9223372036854775807,-9223372036854775808]}"},
        /* Integers that do not fit into i64, and integers that do not fit into u64. */
        {"a\n9223372036854775808\n", "u64 {\"a\":[9223372036854775808]}"},
        {"a\n18446744073709551615\n+9223372036854775808\n 7\n\"0\"\n",
            "u64 {\"a\":[18446744073709551615,9223372036854775808,7,0]}"},
        {"a,b\n18446744073709551615,1\n,2\n",
            "u64? i64 {\"a\":[18446744073709551615,null],\"b\":[1,2]}"},
        {"a\n9223372036854775808\n-1\n", "utf8 {\"a\":[\"9223372036854775808\",\"-1\"]}"},
        {"a\n18446744073709551616\n1\n", "utf8 {\"a\":[\"18446744073709551616\",\"1\"]}"},
        {"a\n100000000000000000000\n", "utf8 {\"a\":[\"100000000000000000000\"]}"},
        {"a\n-9223372036854775809\n", "utf8 {\"a\":[\"-9223372036854775809\"]}"},
        {"a\n000018446744073709551615\n", "u64 {\"a\":[18446744073709551615]}"},
        {"a\n18446744073709551615\n0.5\n", "f64 {\"a\":[18446744073709552000.0,0.5]}"},
        {"a\n9223372036854775808\n0.5\n", "f64 {\"a\":[9223372036854776000.0,0.5]}"},
        {"a\n00000000000000000000000001\n", "i64 {\"a\":[1]}"},
        {"a\n1 \n 2\n", "i64 {\"a\":[1,2]}"},
        {"a,b\n,\n", "utf8? utf8? {\"a\":[null],\"b\":[null]}"},
    };
    check_rows(rows, MR_ARRAY_LEN(rows), NULL);
}

static void quotes_lines_and_ends_are_as_rfc_4180_has_them(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a,b\r\n\"x,y\",\"he said \"\"hi\"\"\"\r\n",
            "utf8 utf8 {\"a\":[\"x,y\"],\"b\":[\"he said \\\"hi\\\"\"]}"},
        {"a,b\n\"two\nlines\",2", "utf8 i64 {\"a\":[\"two\\nlines\"],\"b\":[2]}"},
        {"a\n\"\"\nx\n", "utf8 {\"a\":[\"\",\"x\"]}"},
        {"a,b\n\"\",\n", "utf8 utf8? {\"a\":[\"\"],\"b\":[null]}"},
        {"a\n\"1\"\n\"2\"\n", "i64 {\"a\":[1,2]}"},
        {"a\r1\r2\r", "i64 {\"a\":[1,2]}"},
        {"\n\na,b\n\n1,2\n\n\n3,4\n\n", "i64 i64 {\"a\":[1,3],\"b\":[2,4]}"},
        {"a\n1\n\n2\n", "i64? {\"a\":[1,null,2]}"},
        {"\xef\xbb\xbf"
         "a\n1\n",
            "i64 {\"a\":[1]}"},
        {"a,b\n", "utf8 utf8 {\"a\":[],\"b\":[]}"},
        {"a,,b", "utf8 utf8 utf8 {\"a\":[],\"\":[],\"b\":[]}"},
        {"\"q\"\"uote\",x\n1,2\n", "i64 i64 {\"q\\\"uote\":[1],\"x\":[2]}"},
        {"a\n x\n", "utf8 {\"a\":[\" x\"]}"},
        {"a\nx\"y\n", "utf8 {\"a\":[\"x\\\"y\"]}"},
    };
    check_rows(rows, MR_ARRAY_LEN(rows), NULL);
}

static void options_choose_delimiter_header_and_missing(void **state)
{
    (void)state;
    struct mr_format_options o = {0};
    assert_int_equal(mr_format_option(&o, MR_STR("delimiter"), MR_STR(";"), NULL), MR_OK);
    assert_int_equal(mr_format_option(&o, MR_STR("header"), MR_STR("false"), NULL), MR_OK);
    assert_int_equal(mr_format_option(&o, MR_STR("missing"), MR_STR("NA"), NULL), MR_OK);
    static const struct row rows[] = {
        {"1;NA\n2;3,5\n", "i64 utf8? {\"column0\":[1,2],\"column1\":[null,\"3,5\"]}"},
        {"\"NA\"\n", "utf8 {\"column0\":[\"NA\"]}"},
    };
    check_rows(rows, MR_ARRAY_LEN(rows), &o);
}

static void what_is_no_table_is_refused_with_words(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "CSV without a line: a table has at least column names"},
        {"\n\n", "CSV without a line: a table has at least column names"},
        {"a,b\n1,2\n3\n", "CSV line 3 has 1 fields; the first line has 2"},
        {"a,b\n1,2,3\n", "CSV line 2 has 3 fields; the first line has 2"},
        {"a\n\"x\n", "CSV line 2: a quoted field does not end"},
        {"a\n\"x\"y\n", "CSV line 2: text after a closing quote; a quote inside is written twice"},
        {"a\n\xff\n", "CSV is not UTF-8"},
        {"a,b\n\"1\n2\",3\n4\n", "CSV line 4 has 1 fields; the first line has 2"},
    };
    check_rows(rows, MR_ARRAY_LEN(rows), NULL);
    struct mr_buf b;
    mr_buf_init(&b, 1 << 20);
    for (int i = 0; i < MR_TABLE_COLUMNS_MAX; i++)
        mr_buf_add_byte(&b, ',');
    struct imported r = import(mr_buf_str(&b), NULL);
    assert_int_equal(r.err, MR_ELIMIT);
    mr_buf_clear(&b);
    for (int i = 0; i < 5000; i++)
        mr_buf_add_byte(&b, 'x');
    r = import(mr_buf_str(&b), NULL);
    assert_int_equal(r.err, MR_ELIMIT);
    mr_buf_fini(&b);
}

static void numbers_read_as_the_c_library_reads_them(void **state)
{
    (void)state;
    static const char *const fixed[] = {"0", "-0.0", "1e22", "1e23",
        "123456789012345678901234567890", "0.000000000000000000000000000001", "1e-400", "1e400",
        "4.9406564584124654e-324", "2.2250738585072011e-308", "9007199254740993",
        "9007199254740992.5", "1e0000000000000000005", "1.7976931348623157e308", "0.1", "00.1",
        "99999999999999999999.5", "1e-22", "5e-23"};
    for (size_t i = 0; i < MR_ARRAY_LEN(fixed); i++) {
        double want = strtod(fixed[i], NULL);
        double got = mr_csv_f64(mr_str(fixed[i]));
        assert_memory_equal(&got, &want, sizeof got);
    }
    uint64_t bits = 88172645463325252u;
    for (unsigned i = 0; i < 50000; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double d = 0;
        memcpy(&d, &bits, sizeof d);
        if (!isfinite(d)) continue;
        char text[64];
        (void)snprintf(text, sizeof text, i % 2 ? "%.17g" : "%.5e", d);
        double want = strtod(text, NULL);
        double got = mr_csv_f64(mr_str(text));
        assert_memory_equal(&got, &want, sizeof got);
        (void)snprintf(text, sizeof text, "%.*f", (int)(i % 12), (double)(bits % 100000007) / 1000);
        want = strtod(text, NULL);
        got = mr_csv_f64(mr_str(text));
        assert_memory_equal(&got, &want, sizeof got);
    }
}

static void a_table_goes_through_text_unchanged(void **state)
{
    (void)state;
    static const char text[] = "i,f,b,t,\"na,me\"\r\n"
                               "1,0.5,true,plain,\" sp \"\r\n"
                               ",,,,\"\"\r\n"
                               "-9,1e300,false,\"a,\"\"b\"\"\r\nc\",x\r\n";
    struct imported r = import(mr_str(text), NULL);
    assert_string_equal(r.e.text, "");
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    assert_int_equal(mr_csv_export(&r.v, NULL, mr_sink_to_buf(&b), NULL), MR_OK);
    assert_int_equal(b.n, sizeof text - 1);
    assert_memory_equal(b.p, text, b.n);
    mr_buf_fini(&b);
    mr_release(r.extent);
}

static void small_tensors_are_lines_of_numbers(void **state)
{
    (void)state;
    static const float f[] = {1, 0.5F, -3, NAN};
    struct mr_value v = {.kind = MR_VALUE_TENSOR};
    mr_tensor_init(&v.tensor, MR_DTYPE_F32, 2, (uint64_t[]){2, 2}, f);
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    struct mr_format_options o = {.csv_delimiter = '\t'};
    assert_int_equal(mr_csv_export(&v, &o, mr_sink_to_buf(&b), NULL), MR_OK);
    assert_int_equal(b.n, 19);
    assert_memory_equal(b.p, "1.0\t0.5\r\n-3.0\tNaN\r\n", 19);
    mr_tensor_init(&v.tensor, MR_DTYPE_F32, 0, NULL, f);
    assert_int_equal(mr_csv_export(&v, &o, mr_sink_to_buf(&b), NULL), MR_EACCEPT);
    mr_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_inferred_from_all_rows),
        cmocka_unit_test(quotes_lines_and_ends_are_as_rfc_4180_has_them),
        cmocka_unit_test(options_choose_delimiter_header_and_missing),
        cmocka_unit_test(what_is_no_table_is_refused_with_words),
        cmocka_unit_test(numbers_read_as_the_c_library_reads_them),
        cmocka_unit_test(a_table_goes_through_text_unchanged),
        cmocka_unit_test(small_tensors_are_lines_of_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
