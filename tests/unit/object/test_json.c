/* store/object/format/json: integers stay exact, 1 and 1.0 stay different, numbers are as short as
 * possible, and malformed JSON is refused with a reason. A pack is a value in MessagePack. */
#include "base/alloc.h"
#include "store/object/collection.h"
#include "store/object/format/json.h"
#include "store/object/table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Returns a value as JSON, or the text of the error. The caller frees the text with mr_release. */
static char *json_of(const struct mr_value *v, const struct mr_format_options *o)
{
    struct mr_buf b;
    mr_buf_init(&b, 1 << 24);
    struct mr_error e = {0};
    int err = mr_json_export(v, o, mr_sink_to_buf(&b), &e);
    if (err) {
        mr_buf_fini(&b);
        return mr_format("error: %s", e.text);
    }
    mr_buf_add_byte(&b, 0);
    char *text = mr_copy_text((const char *)b.p);
    mr_buf_fini(&b);
    return text;
}

#define ASSERT_JSON(v, o, want)                                                                    \
    do {                                                                                           \
        char *text_ = json_of((v), (o));                                                           \
        assert_string_equal(text_, (want));                                                        \
        mr_release(text_);                                                                         \
    } while (0)

static struct mr_value pack_value(struct mr_str pack)
{
    struct mr_value v;
    assert_int_equal(mr_value_from_pack(pack, NULL, &v, NULL), MR_OK);
    return v;
}

static void values_go_through_text_unchanged(void **state)
{
    (void)state;
    static const char *const texts[] = {"null", "true", "false", "0", "1", "-1", "1.0", "-0.0",
        "9223372036854775807", "-9223372036854775808", "18446744073709551615", "0.1", "1e300",
        "5e-324", "123456789.125", "\"\"", "\"a\\\"b\\\\c\\u0001\\n\\t\"", "\"gr\xc3\xbc\xc3\x9f\"",
        "[]", "{}", "[[],{},[1,2.5,\"x\",null]]", "{\"a\":1,\"b\":{\"c\":[true,false]},\"\":0}"};
    for (size_t i = 0; i < MR_ARRAY_LEN(texts); i++) {
        struct mr_buf b;
        mr_buf_init(&b, 1000);
        struct mr_error e = {0};
        int err = mr_json_to_pack(mr_str(texts[i]), &b, &e);
        assert_string_equal(e.text, "");
        assert_int_equal(err, MR_OK);
        assert_int_equal(mr_pack_check(mr_buf_str(&b), 0, NULL), MR_OK);
        struct mr_value v = pack_value(mr_buf_str(&b));
        ASSERT_JSON(&v, NULL, texts[i]);
        mr_buf_fini(&b);
    }
}

static void one_and_one_point_zero_stay_different(void **state)
{
    (void)state;
    struct mr_buf a;
    struct mr_buf b;
    mr_buf_init(&a, 100);
    mr_buf_init(&b, 100);
    assert_int_equal(mr_json_to_pack(MR_STR("1"), &a, NULL), MR_OK);
    assert_int_equal(mr_json_to_pack(MR_STR("1.0"), &b, NULL), MR_OK);
    assert_int_equal(a.n, 1);
    assert_int_equal(b.n, 9);
    mr_buf_fini(&a);
    mr_buf_fini(&b);
}

static void hostile_json_is_refused_with_words(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int err;
        const char *words;
    } rows[] = {
        {"", MR_EFORMAT, NULL},
        {"[1,]", MR_EFORMAT, NULL},
        {"[1\n,\n}", MR_EFORMAT, NULL},
        {"nan", MR_EFORMAT, NULL},
        {"\"\xff\"", MR_EFORMAT, NULL},
        {"\"\\ud800\"", MR_EFORMAT, NULL},
        {"1 2", MR_EFORMAT, NULL},
        {"18446744073709551616", MR_EFORMAT,
            "JSON number 18446744073709551616 does not fit 64 bits"},
        {"-9223372036854775809", MR_EFORMAT,
            "JSON number -9223372036854775809 does not fit 64 bits"},
        {"1e999", MR_EFORMAT, "JSON number 1e999 does not fit 64 bits"},
        {"{\"a\":1,\"b\":2,\"a\":3}", MR_EFORMAT, "JSON object has the key \"a\" twice"},
        {"[{\"x\\u0041\":1,\"xA\":2}]", MR_EFORMAT, "JSON object has the key \"xA\" twice"},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        struct mr_buf b;
        mr_buf_init(&b, 1000);
        struct mr_error e;
        assert_int_equal(mr_json_to_pack(mr_str(rows[i].text), &b, &e), rows[i].err);
        if (rows[i].words) assert_string_equal(e.text, rows[i].words);
        mr_buf_fini(&b);
    }
}

static void nesting_has_a_bound(void **state)
{
    (void)state;
    char text[2 * MR_DEPTH_MAX + 10];
    for (size_t depth = MR_DEPTH_MAX; depth < MR_DEPTH_MAX + 2; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        struct mr_buf b;
        mr_buf_init(&b, 1000);
        int err = mr_json_to_pack(mr_str_of(text, 2 * depth), &b, NULL);
        assert_int_equal(err, depth > MR_DEPTH_MAX ? MR_ELIMIT : MR_OK);
        if (!err) {
            struct mr_buf out;
            mr_buf_init(&out, 1000);
            assert_int_equal(mr_json_from_pack(mr_buf_str(&b), &out, NULL), MR_OK);
            assert_int_equal(out.n, 2 * depth);
            mr_buf_fini(&out);
        }
        mr_buf_fini(&b);
    }
    /* A pack that was not checked may be nested deeper than allowed. */
    unsigned char deep[200];
    memset(deep, 0x91, sizeof deep);
    struct mr_buf out;
    mr_buf_init(&out, 1000);
    assert_int_equal(mr_json_from_pack(mr_str_of(deep, sizeof deep), &out, NULL), MR_ELIMIT);
    mr_buf_fini(&out);
}

static void what_json_has_no_word_for_is_text(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    mr_pack_list(&b, 7);
    mr_pack_float(&b, (double)NAN);
    mr_pack_float(&b, (double)INFINITY);
    mr_pack_float(&b, -(double)INFINITY);
    mr_pack_bytes(&b, MR_STR("a"));
    mr_pack_bytes(&b, MR_STR("\xff\xfe\xfd"));
    mr_pack_bytes(&b, MR_STR(""));
    mr_pack_object(&b, (mr_object_id){1, 2});
    struct mr_value v = pack_value(mr_buf_str(&b));
    ASSERT_JSON(&v, NULL,
        "[\"NaN\",\"Infinity\",\"-Infinity\",\"YQ==\",\"//79\",\"\","
        "{\"object\":\"00000000000000010000000000000002\"}]");
    mr_buf_clear(&b);
    mr_pack_input(&b, 0);
    v = pack_value(mr_buf_str(&b));
    ASSERT_JSON(&v, NULL, "error: extension 1 has no JSON form");
    mr_buf_fini(&b);
}

static void an_unchecked_pack_does_no_harm(void **state)
{
    (void)state;
    static const struct mr_str packs[] = {MR_STR_INIT("\xc1"), MR_STR_INIT("\x92\x01"),
        MR_STR_INIT("\x81\x01\x02"), MR_STR_INIT("\xa1\xff"), MR_STR_INIT("\x01\x02"),
        MR_STR_INIT("\xd4\x02\x00"), MR_STR_INIT("\xd4\x03\x00")};
    for (size_t i = 0; i < MR_ARRAY_LEN(packs); i++) {
        struct mr_buf out;
        mr_buf_init(&out, 1000);
        assert_int_not_equal(mr_json_from_pack(packs[i], &out, NULL), MR_OK);
        mr_buf_fini(&out);
    }
}

static void floats_are_shortest_and_read_back(void **state)
{
    (void)state;
    static const struct {
        float f;
        const char *text;
    } rows[] = {{0.1F, "0.1"}, {1, "1.0"}, {-2.5F, "-2.5"}, {100000, "100000.0"},
        {16777216, "16777216.0"}, {3.1415927F, "3.1415927"}, {1e-5F, "0.00001"}, {0, "0.0"},
        {-0.0F, "-0.0"}, {1e14F, "100000000000000.0"}, {0.33333334F, "0.33333334"}};
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        struct mr_value v = {.kind = MR_VALUE_TENSOR};
        mr_tensor_init(&v.tensor, MR_DTYPE_F32, 0, NULL, &rows[i].f);
        ASSERT_JSON(&v, NULL, rows[i].text);
    }
    uint32_t bits = 1;
    for (unsigned i = 0; i < 50000; i++) { /* numbers of all sizes, including denormal ones */
        bits = bits * 1664525u + 1013904223u;
        float f = 0;
        memcpy(&f, &bits, sizeof f);
        if (!isfinite(f)) continue;
        struct mr_value v = {.kind = MR_VALUE_TENSOR};
        mr_tensor_init(&v.tensor, MR_DTYPE_F32, 0, NULL, &f);
        char *text = json_of(&v, NULL);
        float back = strtof(text, NULL);
        float through = (float)strtod(text, NULL);
        assert_memory_equal(&back, &f, sizeof f);
        assert_memory_equal(&through, &f, sizeof f);
        assert_non_null(strpbrk(text, ".e"));
        mr_release(text);
    }
}

static void tensors_are_nested_lists(void **state)
{
    (void)state;
    static const int16_t i16[] = {1, -2, 3, 4, 5, 6};
    struct mr_value v = {.kind = MR_VALUE_TENSOR};
    mr_tensor_init(&v.tensor, MR_DTYPE_I16, 2, (uint64_t[]){2, 3}, i16);
    ASSERT_JSON(&v, NULL, "[[1,-2,3],[4,5,6]]");
    mr_tensor_init(&v.tensor, MR_DTYPE_I16, 3, (uint64_t[]){3, 1, 2}, i16);
    ASSERT_JSON(&v, NULL, "[[[1,-2]],[[3,4]],[[5,6]]]");
    v.tensor = (struct mr_tensor){
        .dtype = MR_DTYPE_I16, .ndim = 2, .shape = {3, 2}, .strides = {2, 6}, .data = i16};
    ASSERT_JSON(&v, NULL, "[[1,4],[-2,5],[3,6]]");
    mr_tensor_init(&v.tensor, MR_DTYPE_I16, 2, (uint64_t[]){2, 0}, i16);
    ASSERT_JSON(&v, NULL, "[[],[]]");
    mr_tensor_init(&v.tensor, MR_DTYPE_I16, 2, (uint64_t[]){0, 2}, i16);
    ASSERT_JSON(&v, NULL, "[]");
    mr_tensor_init(&v.tensor, MR_DTYPE_I16, 2, (uint64_t[]){(uint64_t)1 << 38, 0}, i16);
    char *text = json_of(&v, NULL);
    assert_memory_equal(text, "error:", 6);
    mr_release(text);
    static const double f64[] = {0.1, NAN, -INFINITY, 1e22};
    mr_tensor_init(&v.tensor, MR_DTYPE_F64, 1, (uint64_t[]){4}, f64);
    ASSERT_JSON(&v, NULL, "[0.1,\"NaN\",\"-Infinity\",1e22]");
    static const uint16_t f16[] = {0x2e66, 0x7c00, 0x3c00};
    mr_tensor_init(&v.tensor, MR_DTYPE_F16, 1, (uint64_t[]){3}, f16);
    ASSERT_JSON(&v, NULL, "[0.099975586,\"Infinity\",1.0]");
    mr_tensor_init(&v.tensor, MR_DTYPE_BOOL, 1, (uint64_t[]){2}, "\1\0");
    ASSERT_JSON(&v, NULL, "[true,false]");
    static const uint64_t u64[] = {UINT64_MAX};
    mr_tensor_init(&v.tensor, MR_DTYPE_U64, 0, NULL, u64);
    ASSERT_JSON(&v, NULL, "18446744073709551615");
}

static int import(
    const char *text, enum mr_dtype t, void **extent, struct mr_value *v, struct mr_error *e)
{
    struct mr_format_options o = {.dtype = t};
    struct mr_value_alloc a = {mr_value_heap_alloc, extent};
    *extent = NULL;
    int err = mr_json_import(mr_str(text), &o, &a, e);
    if (err) return err;
    struct mr_value_header h;
    memcpy(&h, *extent, sizeof h);
    return mr_value_check_deep(mr_str_of(*extent, h.nbytes), v, e);
}

static void nested_lists_become_tensors_of_any_type(void **state)
{
    (void)state;
    for (unsigned t = 1; t < MR_DTYPES_COUNT; t++) {
        static const char *const texts[] = {
            "[[1,0],[0,1]]", "[[1.0,0.5],[0.0,1.0]]", "[[true,false],[false,true]]"};
        const char *text = t == MR_DTYPE_BOOL                    ? texts[2]
                           : mr_dtype_is_float((enum mr_dtype)t) ? texts[1]
                                                                 : texts[0];
        void *extent = NULL;
        struct mr_value v;
        struct mr_error e = {0};
        int err = import(text, (enum mr_dtype)t, &extent, &v, &e);
        assert_string_equal(e.text, "");
        assert_int_equal(err, MR_OK);
        assert_int_equal(v.tensor.dtype, t);
        ASSERT_JSON(&v, NULL, text);
        mr_release(extent);
    }
}

static void elements_that_do_not_fit_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum mr_dtype t;
        bool ok;
    } rows[] = {
        {"127", MR_DTYPE_I8, true},
        {"128", MR_DTYPE_I8, false},
        {"-128", MR_DTYPE_I8, true},
        {"-129", MR_DTYPE_I8, false},
        {"255", MR_DTYPE_U8, true},
        {"256", MR_DTYPE_U8, false},
        {"-1", MR_DTYPE_U8, false},
        {"-1", MR_DTYPE_U64, false},
        {"1.5", MR_DTYPE_I32, false},
        {"1.0", MR_DTYPE_I32, false},
        {"9223372036854775808", MR_DTYPE_I64, false},
        {"9223372036854775807", MR_DTYPE_I64, true},
        {"-9223372036854775808", MR_DTYPE_I64, true},
        {"18446744073709551615", MR_DTYPE_U64, true},
        {"1", MR_DTYPE_F32, true},
        {"\"NaN\"", MR_DTYPE_F32, true},
        {"\"Infinity\"", MR_DTYPE_F16, true},
        {"\"x\"", MR_DTYPE_F32, false},
        {"null", MR_DTYPE_F32, false},
        {"true", MR_DTYPE_U8, false},
        {"1", MR_DTYPE_BOOL, false},
        {"[[1],[2,3]]", MR_DTYPE_U8, false},
        {"[[1],2]", MR_DTYPE_U8, false},
        {"[1,[2]]", MR_DTYPE_U8, false},
        {"[]", MR_DTYPE_U8, true},
        {"[[],[]]", MR_DTYPE_U8, true},
        {"[[],[1]]", MR_DTYPE_U8, false},
        {"{\"a\":1}", MR_DTYPE_U8, false},
        {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", MR_DTYPE_U8, false},
        {"[[1,2,3,4,5,6,7,8,9],1,1,1,1]", MR_DTYPE_U8, false},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        void *extent = NULL;
        struct mr_value v;
        struct mr_error e;
        int err = import(rows[i].text, rows[i].t, &extent, &v, &e);
        if ((err == MR_OK) != rows[i].ok) fail_msg("%s: %d", rows[i].text, err);
        mr_release(extent);
    }
    void *extent = NULL;
    struct mr_value v;
    struct mr_error e;
    assert_int_equal(import("[1,300]", MR_DTYPE_U8, &extent, &v, &e), MR_EFORMAT);
    assert_string_equal(e.text, "element 1 is uint that does not fit u8");
    mr_release(extent);
}

static void tables_are_lists_of_objects_or_objects_of_lists(void **state)
{
    (void)state;
    static const struct mr_column_spec specs[] = {{MR_STR_INIT("i"), MR_COLUMN_I64, true, 0},
        {MR_STR_INIT("f"), MR_COLUMN_F64, false, 0}, {MR_STR_INIT("t"), MR_COLUMN_UTF8, false, 3},
        {MR_STR_INIT("b"), MR_COLUMN_BOOL, false, 0},
        {MR_STR_INIT("x"), MR_COLUMN_BINARY, false, 1},
        {MR_STR_INIT("d"), MR_COLUMN_DATE32, false, 0},
        {MR_STR_INIT("s"), MR_COLUMN_TIMESTAMP_MS, false, 0}};
    struct mr_column_out outs[7];
    unsigned char *extent = mr_alloc_aligned(mr_table_bytes(specs, 7, 2), 64);
    mr_table_build(extent, specs, 7, 2, outs);
    memcpy(outs[0].data, (int64_t[]){1, 0}, 16);
    outs[0].validity[0] = 1;
    memcpy(outs[1].data, (double[]){0.5, (double)NAN}, 16);
    memcpy(outs[2].offsets, (int32_t[]){0, 2, 3}, 12);
    memcpy(outs[2].data, "a\"b", 3);
    *(uint8_t *)outs[3].data = 2;
    memcpy(outs[4].offsets, (int32_t[]){0, 1, 1}, 12);
    *(uint8_t *)outs[4].data = 0xff;
    memcpy(outs[5].data, (int32_t[]){19782, -1}, 8);
    memcpy(outs[6].data, (int64_t[]){1709208000123, -1}, 16);
    mr_table_finish(extent);
    struct mr_value v;
    assert_int_equal(
        mr_value_check_deep(mr_str_of(extent, mr_table_bytes(specs, 7, 2)), &v, NULL), MR_OK);
    ASSERT_JSON(&v, NULL,
        "[{\"i\":1,\"f\":0.5,\"t\":\"a\\\"\",\"b\":false,\"x\":\"/w==\",\"d\":\"2024-02-29\","
        "\"s\":\"2024-02-29T12:00:00.123\"},"
        "{\"i\":null,\"f\":\"NaN\",\"t\":\"b\",\"b\":true,\"x\":\"\",\"d\":\"1969-12-31\","
        "\"s\":\"1969-12-31T23:59:59.999\"}]");
    ASSERT_JSON(&v, (&(struct mr_format_options){.json_columns = true}),
        "{\"i\":[1,null],\"f\":[0.5,\"NaN\"],\"t\":[\"a\\\"\",\"b\"],\"b\":[false,true],"
        "\"x\":[\"/w==\",\"\"],\"d\":[\"2024-02-29\",\"1969-12-31\"],"
        "\"s\":[\"2024-02-29T12:00:00.123\",\"1969-12-31T23:59:59.999\"]}");
    mr_release(extent);
}

static void values_nest_in_packs_and_collections(void **state)
{
    (void)state;
    unsigned char *extent = mr_alloc_aligned(256, 64);
    int32_t *data = mr_tensor_build(extent, MR_DTYPE_I32, 1, (uint64_t[]){2});
    data[0] = 1;
    data[1] = 2;
    struct mr_value t;
    assert_int_equal(mr_value_check(mr_str_of(extent, 256), &t, NULL), MR_OK);
    struct mr_buf b;
    mr_buf_init(&b, 4096);
    mr_pack_map(&b, 2);
    mr_pack_text(&b, MR_STR("t"));
    assert_int_equal(mr_value_to_pack(&t, &b), MR_OK);
    mr_pack_text(&b, MR_STR("n"));
    mr_pack_int(&b, 3);
    struct mr_value v = pack_value(mr_buf_str(&b));
    ASSERT_JSON(&v, NULL, "{\"t\":[1,2],\"n\":3}");

    struct mr_collection_part parts[] = {
        {.id = {0, 5}, .nbytes = 9, .kind = MR_VALUE_TENSOR, .start = {0}, .shape = {2}},
        {.inline_pack = mr_buf_str(&b), .kind = MR_VALUE_PACK, .start = {2}, .shape = {1}}};
    struct mr_collection_spec spec = {
        .kind = MR_VALUE_PACK, .ndim = 1, .shape = (uint64_t[]){3}, .parts = parts, .count = 2};
    uint64_t bytes = mr_collection_bytes(&spec);
    unsigned char *collection = mr_alloc_aligned(bytes, 64);
    mr_collection_build(collection, &spec);
    assert_int_equal(mr_value_check_deep(mr_str_of(collection, bytes), &v, NULL), MR_OK);
    ASSERT_JSON(&v, NULL,
        "{\"collection\":\"json\",\"shape\":[3],\"axis\":0,\"parts\":["
        "{\"start\":[0],\"shape\":[2],\"object\":\"00000000000000000000000000000005\",\"nbytes\":9},"
        "{\"start\":[2],\"shape\":[1],\"value\":{\"t\":[1,2],\"n\":3}}]}");

    struct mr_buf outer; /* the pack contains the collection's bytes */
    mr_buf_init(&outer, 8192);
    mr_pack_list(&outer, 2);
    assert_int_equal(mr_value_to_pack(&v, &outer), MR_OK);
    mr_pack_bool(&outer, true);
    v = pack_value(mr_buf_str(&outer));
    char *text = json_of(&v, NULL);
    assert_memory_equal(text, "[{\"collection\"", 14);
    assert_string_equal(text + strlen(text) - 11, "3}}]},true]");
    mr_release(text);
    mr_buf_fini(&outer);
    mr_release(collection);
    mr_buf_fini(&b);
    mr_release(extent);
}

static int refuse(void *ctx, const void *p, size_t n)
{
    (void)p;
    (void)n;
    ++*(int *)ctx;
    return MR_ECANCELED;
}

static void a_sink_that_refuses_ends_the_export(void **state)
{
    (void)state;
    int calls = 0;
    struct mr_value v = {.kind = MR_VALUE_TENSOR};
    unsigned char *data = mr_alloc(1 << 20);
    mr_tensor_init(&v.tensor, MR_DTYPE_U8, 2, (uint64_t[]){1024, 1024}, data);
    struct mr_error e;
    assert_int_equal(mr_json_export(&v, NULL, (struct mr_sink){refuse, &calls}, &e), MR_ECANCELED);
    assert_int_equal(calls, 1);
    mr_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_through_text_unchanged),
        cmocka_unit_test(one_and_one_point_zero_stay_different),
        cmocka_unit_test(hostile_json_is_refused_with_words),
        cmocka_unit_test(nesting_has_a_bound),
        cmocka_unit_test(what_json_has_no_word_for_is_text),
        cmocka_unit_test(an_unchecked_pack_does_no_harm),
        cmocka_unit_test(floats_are_shortest_and_read_back),
        cmocka_unit_test(tensors_are_nested_lists),
        cmocka_unit_test(nested_lists_become_tensors_of_any_type),
        cmocka_unit_test(elements_that_do_not_fit_are_named),
        cmocka_unit_test(tables_are_lists_of_objects_or_objects_of_lists),
        cmocka_unit_test(values_nest_in_packs_and_collections),
        cmocka_unit_test(a_sink_that_refuses_ends_the_export),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
