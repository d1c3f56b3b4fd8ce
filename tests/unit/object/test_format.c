/* store/object/format: names, media types, Accept headers, options, and each format through the
 * table of formats. An extent is a value's byte string with its header; a pack is a scalar or JSON
 * value in MessagePack. */
#include "base/alloc.h"
#include "store/object/format/format.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct mr_value tensor_of(
    enum mr_dtype t, unsigned ndim, const uint64_t *shape, const void *data)
{
    struct mr_value v = {.kind = MR_VALUE_TENSOR};
    mr_tensor_init(&v.tensor, t, ndim, shape, data);
    v.data = data;
    v.data_bytes = mr_tensor_data_bytes(&v.tensor);
    return v;
}

static struct mr_value pack_of(const char *pack)
{
    struct mr_value v;
    assert_int_equal(mr_value_from_pack(mr_str(pack), NULL, &v, NULL), MR_OK);
    return v;
}

static void formats_are_found_by_name_type_and_path(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum mr_format f;
    } names[] = {{"npy", MR_FORMAT_NPY}, {"application/x-npy", MR_FORMAT_NPY},
        {"Application/JSON; charset=utf-8", MR_FORMAT_JSON}, {" text/csv ", MR_FORMAT_CSV},
        {"application/octet-stream", MR_FORMAT_RAW}, {"raw", MR_FORMAT_RAW},
        {"image/png", MR_FORMAT_PNG}, {"application/vnd.millrace.value", MR_FORMAT_VALUE},
        {"idx", MR_FORMAT_IDX}, {"text/plain", MR_FORMAT_TEXT}};
    static const struct {
        const char *path;
        enum mr_format f;
    } paths[] = {{"a/b.npy", MR_FORMAT_NPY}, {"x.JSON", MR_FORMAT_JSON},
        {"train-images-idx3-ubyte.gz", MR_FORMAT_IDX}, {"labels-idx1-ubyte", MR_FORMAT_IDX},
        {"mean.png", MR_FORMAT_PNG}, {"t.tsv", MR_FORMAT_CSV}, {"t.csv", MR_FORMAT_CSV}};
    enum mr_format f;
    for (size_t i = 0; i < MR_ARRAY_LEN(names); i++) {
        assert_int_equal(mr_format_find(mr_str(names[i].name), &f, NULL), MR_OK);
        assert_int_equal(f, names[i].f);
    }
    for (size_t i = 0; i < MR_ARRAY_LEN(paths); i++) {
        assert_int_equal(mr_format_of_path(mr_str(paths[i].path), &f, NULL), MR_OK);
        assert_int_equal(f, paths[i].f);
    }
    struct mr_error e;
    assert_int_equal(mr_format_find(MR_STR("application/xml"), &f, &e), MR_EMEDIA);
    assert_non_null(strstr(e.text, "npy (application/x-npy), idx"));
    assert_int_equal(mr_format_find(MR_STR(""), &f, &e), MR_EMEDIA);
    assert_int_equal(mr_format_of_path(MR_STR("x.parquet"), &f, &e), MR_EMEDIA);
    assert_int_equal(mr_format_of_path(MR_STR(".npy"), &f, &e), MR_EMEDIA);
    assert_int_equal(mr_format_of_path(MR_STR(""), &f, &e), MR_EMEDIA);
}

static void an_accept_header_is_followed_as_far_as_the_value_allows(void **state)
{
    (void)state;
    struct mr_value matrix = tensor_of(MR_DTYPE_U8, 2, (uint64_t[]){1, 1}, "x");
    struct mr_value number = pack_of("\x2a");
    static const struct {
        const char *accept;
        bool is_matrix;
        int f; /* the format; -1: no format is acceptable */
    } rows[] = {
        {"", true, MR_FORMAT_NPY},
        {"*/*", true, MR_FORMAT_NPY},
        {"*/*", false, MR_FORMAT_JSON},
        {"application/json", true, MR_FORMAT_JSON},
        {"application/x-npy", false, -1},
        {"application/x-npy, application/json;q=0.5", false, MR_FORMAT_JSON},
        {"text/html, */*;q=0.1", false, MR_FORMAT_JSON},
        {"application/json;q=0.2, image/png;q=0.9", true, MR_FORMAT_PNG},
        {"text/*", true, MR_FORMAT_CSV},
        {"text/*", false, -1},
        {"image/*", true, MR_FORMAT_PNG},
        {"application/*", true, MR_FORMAT_NPY},
        {"application/json;q=0", true, -1},
        {"application/json;q=x", true, -1},
        {"json", true, MR_FORMAT_JSON},
        {",,;q=1,", true, -1},
        {"application/octet-stream", false, -1},
        {"application/json ; charset=utf-8 ; q=1.0", false, MR_FORMAT_JSON},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        enum mr_format f = MR_FORMAT_VALUE;
        struct mr_error e = {0};
        int err =
            mr_format_accept(mr_str(rows[i].accept), rows[i].is_matrix ? &matrix : &number, &f, &e);
        if (rows[i].f < 0) {
            assert_int_equal(err, MR_EACCEPT);
            continue;
        }
        assert_int_equal(err, MR_OK);
        assert_int_equal((int)f, rows[i].f);
    }
    struct mr_error e;
    enum mr_format f;
    assert_int_equal(mr_format_accept(MR_STR("image/png"), &number, &f, &e), MR_EACCEPT);
    assert_string_equal(e.text, "no format of \"image/png\" can hold this value; these can: value "
                                "(application/vnd.millrace.value), json (application/json)");
}

static void options_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *value;
        bool ok;
    } rows[] = {{"delimiter", "tab", true}, {"delimiter", "\"", false}, {"delimiter", "", false},
        {"delimiter", ";;", false}, {"header", "true", true}, {"header", "maybe", false},
        {"dtype", "f32", true}, {"dtype", "complex", false}, {"orient", "columns", true},
        {"orient", "up", false}, {"low", "-1.5", true}, {"high", "nan", false},
        {"high", "1x", false}, {"high", "1e5", true}, {"colour", "red", false},
        {"missing", "", true}};
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        struct mr_format_options o = {0};
        struct mr_error e;
        int err = mr_format_option(&o, mr_str(rows[i].name), mr_str(rows[i].value), &e);
        assert_int_equal(err, rows[i].ok ? MR_OK : MR_EINVAL);
    }
}

static void a_value_goes_through_its_own_format(void **state)
{
    (void)state;
    /* A value may be a pack that lies in no extent. The export makes an extent for the pack. */
    struct mr_value number = pack_of("\x2a");
    struct mr_buf b;
    mr_buf_init(&b, 10000);
    assert_int_equal(
        mr_format_export(&number, MR_FORMAT_VALUE, NULL, mr_sink_to_buf(&b), NULL), MR_OK);
    assert_int_equal(b.n, 65);
    void *extent = NULL;
    struct mr_value_alloc a = {mr_value_heap_alloc, &extent};
    assert_int_equal(mr_format_import(MR_FORMAT_VALUE, mr_buf_str(&b), NULL, &a, NULL), MR_OK);
    assert_memory_equal(extent, b.p, 65);
    struct mr_value v;
    assert_int_equal(mr_value_check_deep(mr_str_of(extent, 65), &v, NULL), MR_OK);
    struct mr_buf again;
    mr_buf_init(&again, 10000);
    assert_int_equal(
        mr_format_export(&v, MR_FORMAT_VALUE, NULL, mr_sink_to_buf(&again), NULL), MR_OK);
    assert_int_equal(again.n, 65);
    mr_release(extent);
    extent = NULL;
    for (size_t n = 0; n < 65; n++) {
        assert_int_not_equal(
            mr_format_import(MR_FORMAT_VALUE, mr_str_of(b.p, n), NULL, &a, NULL), MR_OK);
        assert_null(extent);
    }
    mr_buf_fini(&b);
    mr_buf_fini(&again);
}

static void raw_and_text_hold_bytes_and_texts(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    void *extent = NULL;
    struct mr_value_alloc a = {mr_value_heap_alloc, &extent};
    assert_int_equal(mr_format_import(MR_FORMAT_RAW, MR_STR("\xff\0x"), NULL, &a, NULL), MR_OK);
    struct mr_value v;
    assert_int_equal(mr_value_check(mr_str_of(extent, 67), &v, NULL), MR_OK);
    assert_int_equal(mr_format_default(&v), MR_FORMAT_RAW);
    assert_int_equal(mr_format_export(&v, MR_FORMAT_RAW, NULL, mr_sink_to_buf(&b), NULL), MR_OK);
    assert_memory_equal(b.p, "\xff\0x", 3);
    assert_false(mr_format_can_export(MR_FORMAT_TEXT, &v));
    mr_release(extent);

    struct mr_error e;
    assert_int_equal(mr_format_import(MR_FORMAT_TEXT, MR_STR("\xff"), NULL, &a, &e), MR_EFORMAT);
    assert_int_equal(mr_format_import(MR_FORMAT_TEXT, MR_STR("hällo"), NULL, &a, NULL), MR_OK);
    assert_int_equal(mr_value_check_deep(mr_str_of(extent, 71), &v, NULL), MR_OK);
    mr_buf_clear(&b);
    assert_int_equal(mr_format_export(&v, MR_FORMAT_TEXT, NULL, mr_sink_to_buf(&b), NULL), MR_OK);
    assert_true(mr_str_eq(mr_buf_str(&b), MR_STR("hällo")));
    mr_release(extent);

    struct mr_value matrix = tensor_of(MR_DTYPE_U8, 2, (uint64_t[]){2, 1}, "ab");
    mr_buf_clear(&b);
    assert_int_equal(
        mr_format_export(&matrix, MR_FORMAT_RAW, NULL, mr_sink_to_buf(&b), NULL), MR_OK);
    assert_true(mr_str_eq(mr_buf_str(&b), MR_STR("ab")));
    mr_buf_fini(&b);
}

/* A value whose bytes are a PNG file is sent as image/png, unless the client asks for another
 * format. */
static void the_bytes_of_a_png_are_a_picture(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    void *extent = NULL;
    struct mr_value_alloc a = {mr_value_heap_alloc, &extent};
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    struct mr_str bytes = mr_str_of(png, sizeof png - 1);
    assert_int_equal(mr_format_import(MR_FORMAT_RAW, bytes, NULL, &a, NULL), MR_OK);
    struct mr_value v;
    assert_int_equal(mr_value_check(mr_str_of(extent, 64 + bytes.n), &v, NULL), MR_OK);
    static const struct {
        const char *accept;
        enum mr_format format;
    } cases[] = {{"", MR_FORMAT_PNG}, {"*/*", MR_FORMAT_PNG}, {"image/png", MR_FORMAT_PNG},
        {"image/avif,image/*,*/*;q=0.8", MR_FORMAT_PNG},
        {"application/octet-stream", MR_FORMAT_RAW},
        {"application/octet-stream, image/png;q=0.5", MR_FORMAT_RAW}};
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        enum mr_format f;
        assert_int_equal(mr_format_accept(mr_str(cases[i].accept), &v, &f, NULL), MR_OK);
        assert_int_equal(f, cases[i].format);
        mr_buf_clear(&b);
        assert_int_equal(mr_format_export(&v, f, NULL, mr_sink_to_buf(&b), NULL), MR_OK);
        assert_true(mr_str_eq(mr_buf_str(&b), bytes));
    }
    mr_release(extent);
    assert_int_equal(mr_format_import(MR_FORMAT_RAW, MR_STR("\x89PNG"), NULL, &a, NULL), MR_OK);
    assert_int_equal(mr_value_check(mr_str_of(extent, 68), &v, NULL), MR_OK);
    assert_int_equal(mr_format_default(&v), MR_FORMAT_RAW);
    assert_false(mr_format_can_export(MR_FORMAT_PNG, &v));
    mr_release(extent);
    mr_buf_fini(&b);
}

static void what_a_format_cannot_hold_is_said(void **state)
{
    (void)state;
    struct mr_value number = pack_of("\x2a");
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    struct mr_error e;
    assert_int_equal(
        mr_format_export(&number, MR_FORMAT_NPY, NULL, mr_sink_to_buf(&b), &e), MR_EACCEPT);
    assert_string_equal(e.text, "npy holds tensors, not int 42");
    void *extent = NULL;
    struct mr_value_alloc a = {mr_value_heap_alloc, &extent};
    assert_int_equal(mr_format_import(MR_FORMAT_PNG, MR_STR("x"), NULL, &a, &e), MR_EMEDIA);
    assert_string_equal(e.text, "png can be written, but not read");
    mr_buf_fini(&b);
}

/* Exports `v` as PNG, decodes the PNG with libpng, and compares its pixels with `want`. */
static void check_png(const struct mr_value *v, const struct mr_format_options *o,
    png_uint_32 format, const unsigned char *want, size_t n)
{
    struct mr_buf b;
    mr_buf_init(&b, 100000);
    struct mr_error e = {0};
    int err = mr_format_export(v, MR_FORMAT_PNG, o, mr_sink_to_buf(&b), &e);
    assert_string_equal(e.text, "");
    assert_int_equal(err, MR_OK);
    png_image image = {.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_memory(&image, b.p, b.n));
    assert_int_equal(image.height, v->tensor.shape[0]);
    assert_int_equal(image.width, v->tensor.shape[1]);
    assert_int_equal(image.format, format);
    unsigned char pixels[64] = {0};
    assert_true(PNG_IMAGE_SIZE(image) == n);
    assert_true(png_image_finish_read(&image, NULL, pixels, 0, NULL));
    assert_memory_equal(pixels, want, n);
    mr_buf_fini(&b);
}

static void tensors_become_pictures(void **state)
{
    (void)state;
    static const unsigned char grey[] = {0, 10, 255, 7, 8, 9};
    struct mr_value v = tensor_of(MR_DTYPE_U8, 2, (uint64_t[]){2, 3}, grey);
    check_png(&v, NULL, PNG_FORMAT_GRAY, grey, 6);
    v = tensor_of(MR_DTYPE_U8, 3, (uint64_t[]){1, 2, 3}, grey);
    check_png(&v, NULL, PNG_FORMAT_RGB, grey, 6);
    v = tensor_of(MR_DTYPE_BOOL, 2, (uint64_t[]){1, 3}, "\1\0\1");
    check_png(&v, NULL, PNG_FORMAT_GRAY, (const unsigned char *)"\xff\0\xff", 3);
    static const float f[] = {-1, 0, 1, NAN, INFINITY, -INFINITY};
    v = tensor_of(MR_DTYPE_F32, 2, (uint64_t[]){2, 3}, f);
    check_png(&v, NULL, PNG_FORMAT_GRAY, (const unsigned char *)"\0\x80\xff\0\xff\0", 6);
    struct mr_format_options o = {.has_range = true, .low = 0, .high = 2};
    check_png(&v, &o, PNG_FORMAT_GRAY, (const unsigned char *)"\0\0\x80\0\xff\0", 6);
    static const int64_t same[] = {5, 5};
    v = tensor_of(MR_DTYPE_I64, 2, (uint64_t[]){1, 2}, same);
    check_png(&v, NULL, PNG_FORMAT_GRAY, (const unsigned char *)"\0\0", 2);
    /* The tensor `grey` with its axes exchanged is a picture of three rows and two columns. */
    v = tensor_of(MR_DTYPE_U8, 2, (uint64_t[]){2, 3}, grey);
    v.tensor.shape[0] = 3;
    v.tensor.shape[1] = 2;
    v.tensor.strides[0] = 1;
    v.tensor.strides[1] = 3;
    check_png(&v, NULL, PNG_FORMAT_GRAY, (const unsigned char *)"\0\7\x0a\x08\xff\x09", 6);
}

static void what_is_no_picture_is_refused(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    struct mr_error e;
    struct mr_value v = tensor_of(MR_DTYPE_U8, 1, (uint64_t[]){2}, "ab");
    assert_int_equal(mr_format_export(&v, MR_FORMAT_PNG, NULL, mr_sink_to_buf(&b), &e), MR_EACCEPT);
    v = tensor_of(MR_DTYPE_U8, 2, (uint64_t[]){0, 2}, "");
    assert_int_equal(mr_format_export(&v, MR_FORMAT_PNG, NULL, mr_sink_to_buf(&b), &e), MR_EACCEPT);
    assert_string_equal(e.text, "a picture with a side of 0; 1 to 65535");
    v = tensor_of(MR_DTYPE_U8, 3, (uint64_t[]){1, 1, 2}, "ab");
    assert_int_equal(mr_format_export(&v, MR_FORMAT_PNG, NULL, mr_sink_to_buf(&b), &e), MR_EACCEPT);
    mr_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_found_by_name_type_and_path),
        cmocka_unit_test(an_accept_header_is_followed_as_far_as_the_value_allows),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_value_goes_through_its_own_format),
        cmocka_unit_test(raw_and_text_hold_bytes_and_texts),
        cmocka_unit_test(the_bytes_of_a_png_are_a_picture),
        cmocka_unit_test(what_a_format_cannot_hold_is_said),
        cmocka_unit_test(tensors_become_pictures),
        cmocka_unit_test(what_is_no_picture_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
