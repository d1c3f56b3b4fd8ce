/* store/object/format/npy and idx: what is written reads back. C and Fortran order and both byte
 * orders are read. Malformed files are refused with a reason. */
#include "base/alloc.h"
#include "store/object/format/idx.h"
#include "store/object/format/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <zlib.h>

struct imported {
    void *extent;
    struct mr_value v;
    struct mr_error e;
    int err;
};

/* Returns the bytes of `extent`, a value with its header. The header says how many bytes there
 * are. */
static struct mr_str extent_of(const void *extent)
{
    struct mr_value_header h;
    memcpy(&h, extent, sizeof h);
    return mr_str_of(extent, h.nbytes);
}

static struct imported import(enum mr_format f, const void *p, size_t n)
{
    struct imported r = {0};
    struct mr_value_alloc a = {mr_value_heap_alloc, &r.extent};
    r.err = mr_format_import(f, mr_str_of(p, n), NULL, &a, &r.e);
    if (!r.err) assert_int_equal(mr_value_check_deep(extent_of(r.extent), &r.v, NULL), MR_OK);
    return r;
}

/* Writes an npy file of format `version` with the given dictionary to `out`. Returns its length. */
static size_t make_npy(char *out, int version, const char *dict, const void *data, size_t n)
{
    size_t length = strlen(dict);
    size_t at = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version;
    out[7] = 0;
    out[8] = (char)(length & 0xff);
    out[9] = (char)(length >> 8);
    out[10] = out[11] = 0;
    memcpy(out + at, dict, length);
    memcpy(out + at + length, data, n);
    return at + length + n;
}

static void a_tensor_of_every_type_and_shape_goes_through_npy(void **state)
{
    (void)state;
    static const uint64_t shapes[][4] = {{0}, {5}, {1}, {2, 3}, {4, 0, 2}, {1, 2, 1, 3}};
    static const unsigned ndims[] = {0, 1, 1, 2, 3, 4};
    for (unsigned t = 1; t < MR_DTYPES_COUNT; t++)
        for (size_t s = 0; s < MR_ARRAY_LEN(shapes); s++) {
            struct mr_tensor x;
            unsigned char data[64];
            for (size_t i = 0; i < sizeof data; i++)
                data[i] = t == MR_DTYPE_BOOL ? i % 3 == 0 : (unsigned char)(i * 7);
            mr_tensor_init(&x, (enum mr_dtype)t, ndims[s], shapes[s], data);
            struct mr_buf b;
            mr_buf_init(&b, 4096);
            assert_int_equal(mr_npy_export(&x, mr_sink_to_buf(&b), NULL), MR_OK);
            assert_int_equal((b.n - mr_tensor_data_bytes(&x)) % 64, 0);
            struct imported r = import(MR_FORMAT_NPY, b.p, b.n);
            assert_int_equal(r.err, MR_OK);
            assert_int_equal(r.v.tensor.dtype, t);
            assert_true(mr_tensor_same_shape(&r.v.tensor, &x));
            assert_int_equal(r.v.data_bytes, mr_tensor_data_bytes(&x));
            if (r.v.data_bytes) assert_memory_equal(r.v.data, data, r.v.data_bytes);
            mr_buf_fini(&b);
            mr_release(r.extent);
        }
}

static void the_header_is_what_numpy_writes(void **state)
{
    (void)state;
    double data[6] = {0};
    struct mr_tensor x;
    mr_tensor_init(&x, MR_DTYPE_F64, 2, (uint64_t[]){2, 3}, data);
    struct mr_buf b;
    mr_buf_init(&b, 4096);
    assert_int_equal(mr_npy_export(&x, mr_sink_to_buf(&b), NULL), MR_OK);
    static const char want[] =
        "\x93NUMPY\x01\0\x76\0{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    assert_memory_equal(b.p, want, sizeof want - 1);
    assert_int_equal(b.p[127], '\n');
    mr_buf_fini(&b);
}

static void both_orders_and_endiannesses_are_read(void **state)
{
    (void)state;
    char file[256];
    static const unsigned char big[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6};
    static const struct {
        int version;
        const char *dict;
        int16_t want[6];
    } rows[] = {
        {1, "{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }", {1, 2, 3, 4, 5, 6}},
        {2, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", {1, 3, 5, 2, 4, 6}},
        {3, "{\"shape\": (2,3,), \"fortran_order\":True, 'descr':'<i2'} \n",
            {256, 768, 1280, 512, 1024, 1536}},
        {1, "{'descr': 'i2', 'fortran_order': False, 'shape': (2L, 3L), }",
            {256, 512, 768, 1024, 1280, 1536}},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        size_t n = make_npy(file, rows[i].version, rows[i].dict, big, sizeof big);
        struct imported r = import(MR_FORMAT_NPY, file, n);
        assert_string_equal(r.e.text, "");
        assert_int_equal(r.v.tensor.ndim, 2);
        assert_memory_equal(r.v.data, rows[i].want, 12);
        mr_release(r.extent);
    }
}

static void a_fortran_cube_is_transposed(void **state)
{
    (void)state;
    char file[400];
    uint8_t data[24];
    for (uint8_t i = 0; i < 24; i++)
        data[i] = i;
    size_t n = make_npy(
        file, 1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }", data, 24);
    struct imported r = import(MR_FORMAT_NPY, file, n);
    assert_int_equal(r.err, MR_OK);
    for (uint64_t i = 0; i < 2; i++)
        for (uint64_t j = 0; j < 3; j++)
            for (uint64_t k = 0; k < 4; k++)
                assert_int_equal(*(const uint8_t *)mr_tensor_at(&r.v.tensor, (uint64_t[]){i, j, k}),
                    i + 2 * j + 6 * k);
    mr_release(r.extent);
}

static void bools_become_zero_or_one(void **state)
{
    (void)state;
    char file[256];
    size_t n = make_npy(
        file, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\0\7\xff", 3);
    struct imported r = import(MR_FORMAT_NPY, file, n);
    assert_int_equal(r.err, MR_OK);
    assert_memory_equal(r.v.data, "\0\1\1", 3);
    mr_release(r.extent);
}

static void what_is_no_npy_file_is_refused_with_words(void **state)
{
    (void)state;
    static const struct {
        const char *dict;
        const char *words;
    } rows[] = {
        {"", "npy header: no dictionary"},
        {"{'descr': '<f8', 'fortran_order': False, }",
            "npy header: descr, fortran_order or shape is missing"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), ",
            "npy header: malformed at byte 56"},
        {"{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }",
            "npy header: elements of type \"<c16\"; bool, integers and floats of up to 8 bytes can "
            "be read"},
        {"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
            "npy header: structured element types cannot be read"},
        {"{'descr': '<f8', 'fortran_order': 0, 'shape': (1,), }",
            "npy header: fortran_order is not True or False"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': 1, }",
            "npy header: shape is not a tuple"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
            "npy header: axis 0 of shape is no number"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
            "npy header: axis 0 of shape is no number"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1 2), }",
            "npy header: shape does not end"},
        {"{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,), }",
            "npy header: key \"descr\" is there twice"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'x': 1}",
            "npy header: key \"x\" is unknown"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x",
            "npy header: text after its end"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
            "npy file with 8 bytes of elements; its header says 16"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': ()} ", NULL},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}",
            "npy file with 8 bytes of elements; its header says 0"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
            "npy header: shape of more than 16 axes"},
    };
    char file[512];
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        size_t n = make_npy(file, 1, rows[i].dict, "12345678", 8);
        struct imported r = import(MR_FORMAT_NPY, file, n);
        assert_string_equal(r.e.text, rows[i].words ? rows[i].words : "");
        mr_release(r.extent);
    }
    size_t n = make_npy(file, 1,
        "{'descr': '<f8', 'fortran_order': False, "
        "'shape': (4294967296, 4294967296, 0)}",
        "", 0);
    struct imported r = import(MR_FORMAT_NPY, file, n);
    assert_int_equal(r.err, MR_ELIMIT);
    r = import(MR_FORMAT_NPY, "\x93NUMPX", 6);
    assert_int_equal(r.err, MR_EFORMAT);
    r = import(MR_FORMAT_NPY, "", 0);
    assert_int_equal(r.err, MR_EFORMAT);
    file[6] = 4;
    r = import(MR_FORMAT_NPY, file, n);
    assert_string_equal(r.e.text, "npy file of version 4.0; 1 to 3 can be read");
}

static void a_header_alone_says_how_much_is_needed(void **state)
{
    (void)state;
    char file[256];
    size_t n =
        make_npy(file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "", 0);
    struct mr_npy_header h;
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(mr_npy_header_read(mr_str_of(file, i), &h, NULL), MR_ERANGE);
        assert_int_equal(h.data_offset, 12);
    }
    assert_int_equal(mr_npy_header_read(mr_str_of(file, 12), &h, NULL), MR_ERANGE);
    assert_int_equal(h.data_offset, n);
    assert_int_equal(mr_npy_header_read(mr_str_of(file, n), &h, NULL), MR_OK);
    assert_int_equal(h.data_bytes, 12);
}

/* ---- IDX ------------------------------------------------------------------------------------- */

static const enum mr_dtype idx_types[] = {
    MR_DTYPE_U8, MR_DTYPE_I8, MR_DTYPE_I16, MR_DTYPE_I32, MR_DTYPE_F32, MR_DTYPE_F64};

static size_t gzip(const void *p, size_t n, unsigned char *out, size_t room)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (z_const Bytef *)(uintptr_t)p;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t made = room - z.avail_out;
    (void)deflateEnd(&z);
    return made;
}

static void a_tensor_of_every_idx_type_goes_through_idx(void **state)
{
    (void)state;
    for (size_t t = 0; t < MR_ARRAY_LEN(idx_types); t++)
        for (unsigned packed = 0; packed < 2; packed++) {
            unsigned char data[48];
            for (size_t i = 0; i < sizeof data; i++)
                data[i] = (unsigned char)(i * 5);
            struct mr_tensor x;
            mr_tensor_init(&x, idx_types[t], 2, (uint64_t[]){2, 3}, data);
            struct mr_buf b;
            mr_buf_init(&b, 4096);
            assert_int_equal(mr_idx_export(&x, mr_sink_to_buf(&b), NULL), MR_OK);
            assert_int_equal(b.n, 12 + mr_tensor_data_bytes(&x));
            unsigned char zipped[1000];
            size_t n = packed ? gzip(b.p, b.n, zipped, sizeof zipped) : b.n;
            struct imported r = import(MR_FORMAT_IDX, packed ? zipped : b.p, n);
            assert_string_equal(r.e.text, "");
            assert_int_equal(r.v.tensor.dtype, idx_types[t]);
            assert_true(mr_tensor_same_shape(&r.v.tensor, &x));
            assert_memory_equal(r.v.data, data, r.v.data_bytes);
            mr_buf_fini(&b);
            mr_release(r.extent);
        }
}

static void big_endian_elements_are_turned(void **state)
{
    (void)state;
    struct imported r = import(MR_FORMAT_IDX, "\0\0\x0c\1\0\0\0\2\0\0\0\1\xff\xff\xff\xfe", 16);
    assert_int_equal(r.err, MR_OK);
    static const int32_t want[] = {1, -2};
    assert_memory_equal(r.v.data, want, sizeof want);
    mr_release(r.extent);
}

static void what_is_no_idx_file_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *p;
        size_t n;
        const char *words;
    } rows[] = {
        {"", 0, "IDX file cut off in its header"},
        {"\0\0\x08", 3, "IDX file cut off in its header"},
        {"\0\0\x08\2\0\0\0\1", 8, "IDX file cut off in its header"},
        {"\1\0\x08\1", 4, "not an IDX file: it does not start with two zero bytes"},
        {"\0\0\x0a\1\0\0\0\0", 8, "IDX file of unknown element type 0x0a"},
        {"\0\0\x08\x11", 4, "IDX file of 17 axes; at most 16"},
        {"\0\0\x08\1\0\0\0\2x", 9, "IDX file with 1 bytes of elements; its header says 2"},
        {"\0\0\x08\1\0\0\0\1xx", 10, "IDX file with 2 bytes of elements; its header says 1"},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        struct imported r = import(MR_FORMAT_IDX, rows[i].p, rows[i].n);
        assert_int_equal(r.err, MR_EFORMAT);
        assert_string_equal(r.e.text, rows[i].words);
        unsigned char zipped[200];
        size_t n = gzip(rows[i].p, rows[i].n, zipped, sizeof zipped);
        r = import(MR_FORMAT_IDX, zipped, n);
        assert_int_equal(r.err, MR_EFORMAT);
        mr_release(r.extent);
    }
}

static void a_damaged_or_lying_gzip_is_refused(void **state)
{
    (void)state;
    char file[508] = "\0\0\x08\1\0\0\1\xf4";
    for (size_t i = 8; i < sizeof file; i++)
        file[i] = (char)(i * i / 7);
    unsigned char zipped[2000];
    size_t n = gzip(file, sizeof file, zipped, sizeof zipped);
    struct imported r = import(MR_FORMAT_IDX, zipped, n);
    assert_int_equal(r.err, MR_OK);
    mr_release(r.extent);
    for (size_t cut = 2; cut < n; cut++) {
        r = import(MR_FORMAT_IDX, zipped, cut);
        assert_int_equal(r.err, MR_EFORMAT);
        mr_release(r.extent);
    }
    /* Damages the checksum and the length at the end of the file. */
    for (size_t at = n - 8; at < n; at++) {
        zipped[at] ^= 1;
        r = import(MR_FORMAT_IDX, zipped, n);
        assert_int_equal(r.err, MR_EFORMAT);
        mr_release(r.extent);
        zipped[at] ^= 1;
    }
    /* The header of the IDX file claims 4 GiB, and the file has a few bytes. No memory may be
     * allocated for the 4 GiB. */
    n = gzip("\0\0\x08\1\xff\xff\xff\xff", 8, zipped, sizeof zipped);
    r = import(MR_FORMAT_IDX, zipped, n);
    assert_int_equal(r.err, MR_EFORMAT);
    assert_null(r.extent);
}

static void members_of_gzip_follow_each_other(void **state)
{
    (void)state;
    unsigned char zipped[200];
    size_t n = gzip("\0\0\x08\1\0\0\0\3a", 9, zipped, 100);
    n += gzip("bc", 2, zipped + n, 100);
    struct imported r = import(MR_FORMAT_IDX, zipped, n);
    assert_string_equal(r.e.text, "");
    assert_memory_equal(r.v.data, "abc", 3);
    mr_release(r.extent);
}

/* A compressed file is unpacked into its place in the value. The header of the IDX file then
 * overlies the end of the value's header, which is saved and restored. */
static void images_are_read_as_rows_plain_and_packed(void **state)
{
    (void)state;
    static const char file[] = "\0\0\x08\3\0\0\0\2\0\0\0\3\0\0\0\2abcdefghijkl";
    unsigned char zipped[200];
    size_t n = gzip(file, sizeof file - 1, zipped, sizeof zipped);
    for (int packed = 0; packed < 2; packed++) {
        struct imported r = {0};
        struct mr_value_alloc a = {mr_value_heap_alloc, &r.extent};
        struct mr_str bytes = packed ? mr_str_of(zipped, n) : mr_str_of(file, sizeof file - 1);
        assert_int_equal(mr_idx_import_rows(bytes, &a, &r.e), MR_OK);
        assert_int_equal(mr_value_check_deep(extent_of(r.extent), &r.v, NULL), MR_OK);
        assert_int_equal(r.v.tensor.ndim, 2);
        assert_int_equal(r.v.tensor.shape[0], 2);
        assert_int_equal(r.v.tensor.shape[1], 6);
        assert_memory_equal(r.v.data, "abcdefghijkl", 12);
        mr_release(r.extent);
    }
}

static void sixteen_axes_come_out_of_gzip_as_they_went_in(void **state)
{
    (void)state;
    char file[4 + 16 * 4 + 2] = "\0\0\x08\x10";
    for (size_t axis = 0; axis < 16; axis++)
        file[7 + 4 * axis] = axis == 9 ? 2 : 1;
    memcpy(file + 68, "xy", 2);
    unsigned char zipped[200];
    size_t n = gzip(file, sizeof file, zipped, sizeof zipped);
    struct imported r = import(MR_FORMAT_IDX, zipped, n);
    assert_string_equal(r.e.text, "");
    assert_int_equal(r.v.tensor.ndim, 16);
    assert_int_equal(r.v.tensor.shape[9], 2);
    assert_memory_equal(r.v.data, "xy", 2);
    mr_release(r.extent);
}

static void types_that_idx_does_not_know_are_refused(void **state)
{
    (void)state;
    struct mr_tensor x;
    mr_tensor_init(&x, MR_DTYPE_I64, 0, NULL, "12345678");
    struct mr_buf b;
    mr_buf_init(&b, 100);
    struct mr_error e;
    assert_int_equal(mr_idx_export(&x, mr_sink_to_buf(&b), &e), MR_EACCEPT);
    mr_buf_fini(&b);
}

/* ---- export of strided tensors --------------------------------------------------------------- */

static void a_large_strided_tensor_is_written_in_pieces(void **state)
{
    (void)state;
    static const uint64_t shapes[][3] = {
        {3, 400, 500}, {600000, 1, 1}, {2, 3, 100000}, {1, 700, 300}};
    for (size_t s = 0; s < MR_ARRAY_LEN(shapes); s++) {
        struct mr_tensor base;
        mr_tensor_init(&base, MR_DTYPE_I16, 3, shapes[s], NULL);
        size_t bytes = mr_tensor_data_bytes(&base);
        unsigned char *data = mr_alloc(2 * bytes);
        for (size_t i = 0; i < 2 * bytes; i++)
            data[i] = (unsigned char)(i * 13 + i / 255);
        struct mr_tensor t = base; /* the axes are reversed, and every other element is skipped */
        t.data = data;
        for (unsigned axis = 0; axis < 3; axis++) {
            t.shape[axis] = base.shape[2 - axis];
            t.strides[axis] = 2 * base.strides[2 - axis];
        }
        unsigned char *want = mr_alloc(bytes);
        mr_tensor_copy(&t, want);
        struct mr_buf b;
        mr_buf_init(&b, bytes + 1000);
        assert_int_equal(mr_npy_export(&t, mr_sink_to_buf(&b), NULL), MR_OK);
        assert_memory_equal(b.p + b.n - bytes, want, bytes);
        mr_buf_clear(&b);
        assert_int_equal(mr_idx_export(&t, mr_sink_to_buf(&b), NULL), MR_OK);
        struct imported r = {0};
        struct mr_value_alloc a = {mr_value_heap_alloc, &r.extent};
        assert_int_equal(mr_idx_import(mr_buf_str(&b), &a, NULL), MR_OK);
        assert_memory_equal((unsigned char *)r.extent + 128, want, bytes);
        mr_release(r.extent);
        mr_buf_fini(&b);
        mr_release(want);
        mr_release(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_of_every_type_and_shape_goes_through_npy),
        cmocka_unit_test(the_header_is_what_numpy_writes),
        cmocka_unit_test(both_orders_and_endiannesses_are_read),
        cmocka_unit_test(a_fortran_cube_is_transposed),
        cmocka_unit_test(bools_become_zero_or_one),
        cmocka_unit_test(what_is_no_npy_file_is_refused_with_words),
        cmocka_unit_test(a_header_alone_says_how_much_is_needed),
        cmocka_unit_test(a_tensor_of_every_idx_type_goes_through_idx),
        cmocka_unit_test(big_endian_elements_are_turned),
        cmocka_unit_test(what_is_no_idx_file_is_refused),
        cmocka_unit_test(a_damaged_or_lying_gzip_is_refused),
        cmocka_unit_test(members_of_gzip_follow_each_other),
        cmocka_unit_test(images_are_read_as_rows_plain_and_packed),
        cmocka_unit_test(sixteen_axes_come_out_of_gzip_as_they_went_in),
        cmocka_unit_test(types_that_idx_does_not_know_are_refused),
        cmocka_unit_test(a_large_strided_tensor_is_written_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
