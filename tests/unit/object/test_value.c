/* store/object/value: what is built passes the check and reads back. A change of any byte of the
 * header is noticed. An extent is a value's byte string with its header; a pack is a value in
 * MessagePack. */
#include "base/alloc.h"
#include "store/object/value.h"
#include "store/object/value_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <xxhash.h>

static struct mr_value_alloc heap(void **extent)
{
    return (struct mr_value_alloc){mr_value_heap_alloc, extent};
}

static void a_tensor_of_every_type_is_built_in_place(void **state)
{
    (void)state;
    for (unsigned i = 1; i < MR_DTYPES_COUNT; i++) {
        enum mr_dtype t = (enum mr_dtype)i;
        uint64_t shape[] = {2, 3};
        uint64_t bytes = mr_tensor_bytes(t, 2, shape);
        assert_int_equal(bytes, 128 + 6 * mr_dtype_bytes(t));
        void *extent = mr_alloc_aligned(bytes, 64);
        memset(extent, 0xee, bytes);
        unsigned char *data = mr_tensor_build(extent, t, 2, shape);
        assert_ptr_equal(data, (unsigned char *)extent + 128);
        memset(data, 1, 6 * mr_dtype_bytes(t));
        struct mr_value v;
        struct mr_error e;
        assert_int_equal(mr_value_check_deep(mr_str_of(extent, bytes), &v, &e), MR_OK);
        assert_int_equal(v.kind, MR_VALUE_TENSOR);
        assert_int_equal(v.nbytes, bytes);
        assert_int_equal(v.tensor.dtype, t);
        assert_int_equal(v.tensor.ndim, 2);
        assert_int_equal(v.tensor.shape[1], 3);
        assert_ptr_equal(v.tensor.data, data);
        assert_true(mr_tensor_is_contiguous(&v.tensor));
        mr_release(extent);
    }
}

static void scalars_and_empty_tensors_are_tensors(void **state)
{
    (void)state;
    static const struct {
        unsigned ndim;
        uint64_t shape[3];
        uint64_t bytes;
    } rows[] = {{0, {0}, 64 + 8}, {1, {0}, 128}, {3, {4, 0, 5}, 128}, {3, {1, 1, 1}, 128 + 8}};
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        void *extent = NULL;
        struct mr_value_alloc a = heap(&extent);
        void *data = NULL;
        assert_int_equal(
            mr_tensor_new(&a, MR_DTYPE_F64, rows[i].ndim, rows[i].shape, &data, NULL), MR_OK);
        struct mr_value v;
        assert_int_equal(mr_value_check(mr_str_of(extent, rows[i].bytes), &v, NULL), MR_OK);
        assert_int_equal(v.nbytes, rows[i].bytes);
        mr_release(extent);
    }
}

static void a_tensor_too_large_has_no_extent(void **state)
{
    (void)state;
    assert_int_equal(mr_tensor_bytes(MR_DTYPE_U8, 1, (uint64_t[]){MR_OBJECT_BYTES_MAX}), 0);
    assert_int_equal(mr_tensor_bytes(MR_DTYPE_U8, 1, (uint64_t[]){UINT64_MAX}), 0);
    assert_int_equal(mr_tensor_bytes(MR_DTYPE_U8, 1, (uint64_t[]){MR_OBJECT_BYTES_MAX - 128}),
        MR_OBJECT_BYTES_MAX);
    assert_int_equal(mr_value_bytes_size(UINT64_MAX), 0);
    void *extent = NULL;
    struct mr_value_alloc a = heap(&extent);
    void *data = NULL;
    struct mr_error e;
    assert_int_equal(
        mr_tensor_new(&a, MR_DTYPE_F32, 2, (uint64_t[]){1ull << 40, 4}, &data, &e), MR_ELIMIT);
    assert_null(extent);
}

static void *no_room(void *ctx, uint64_t bytes)
{
    (void)ctx;
    (void)bytes;
    return NULL;
}

static void a_full_store_is_an_error_with_words(void **state)
{
    (void)state;
    struct mr_value_alloc a = {no_room, NULL};
    struct mr_error e;
    assert_int_equal(mr_value_put_bytes(&a, MR_STR("abc"), &e), MR_ELIMIT);
    assert_string_equal(e.text, "no room for a result of 67 bytes");
}

/* Builds a tensor i32[2,8] in an extent of 192 bytes: the header has 96 bytes, and the elements
 * begin at byte 128. The caller owns the extent. */
static unsigned char *small_tensor(void)
{
    uint64_t shape[] = {2, 8};
    unsigned char *extent = mr_alloc_aligned(192, 64);
    int32_t *data = mr_tensor_build(extent, MR_DTYPE_I32, 2, shape);
    for (int32_t i = 0; i < 16; i++)
        data[i] = i;
    return extent;
}

static void every_flipped_bit_of_a_header_is_noticed(void **state)
{
    (void)state;
    unsigned char *extent = small_tensor();
    struct mr_value v;
    assert_int_equal(mr_value_check(mr_str_of(extent, 192), &v, NULL), MR_OK);
    for (unsigned bit = 0; bit < 8 * 96; bit++) {
        extent[bit / 8] ^= (unsigned char)(1u << bit % 8);
        struct mr_error e = {0};
        int err = mr_value_check(mr_str_of(extent, 192), &v, &e);
        assert_true(err == MR_EFORMAT || err == MR_ESTATE);
        assert_true(e.text[0]);
        extent[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (size_t n = 0; n < 192; n++)
        assert_int_equal(mr_value_check(mr_str_of(extent, n), &v, NULL), MR_EFORMAT);
    assert_int_equal(mr_value_check(mr_str_of(extent + 8, 184), &v, NULL), MR_EINVAL);
    mr_release(extent);
}

/* Overwrites `n` bytes of a header and corrects its checksum, as a malicious writer would. Returns
 * what the check of the value says. */
static int check_forged(size_t offset, const void *bytes, size_t n)
{
    unsigned char *extent = small_tensor();
    memcpy(extent + offset, bytes, n);
    memset(extent + 56, 0, 8);
    uint64_t sum = XXH3_64bits(extent, 96);
    memcpy(extent + 56, &sum, sizeof sum);
    struct mr_value v;
    struct mr_error e = {0};
    int err = mr_value_check(mr_str_of(extent, 192), &v, &e);
    mr_release(extent);
    return err;
}

static void a_forged_header_leads_nowhere(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        uint64_t v;
        size_t n;
    } rows[] = {
        /* nbytes */
        {16, 193, 8},
        {16, 191, 8},
        {16, UINT64_MAX, 8},
        /* data_offset */
        {24, 129, 8},
        {24, 64, 8},
        {24, UINT64_MAX - 63, 8},
        {24, 192, 8},
        /* data_bytes */
        {32, 65, 8},
        {32, UINT64_MAX, 8},
        {32, 63, 8},
        /* meta_offset, meta_bytes */
        {40, 128, 8},
        {48, 1, 8},
        /* shape */
        {64, 3, 8},
        {64, UINT64_MAX, 8},
        {72, UINT64_MAX / 8, 8},
        /* strides */
        {80, 64, 8},
        {80, 30, 8},
        {80, UINT64_MAX - 3, 8},
        {80, (uint64_t)1 << 62, 8},
        {88, 8, 8},
        /* dtype, reserved */
        {7, 13, 1},
        {7, 0, 1},
        {9, 1, 1},
        /* flags */
        {12, 2, 4},
        {12, 3, 4},
        /* kind */
        {6, 0, 1},
        {6, 7, 1},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        int err = check_forged(rows[i].offset, &rows[i].v, rows[i].n);
        if (err != MR_EFORMAT && err != MR_ELIMIT) fail_msg("row %zu: %d", i, err);
    }
    assert_int_equal(check_forged(0, "MRV1", 4), MR_OK);
    uint32_t drawn = MR_VALUE_DRAWN;
    assert_int_equal(check_forged(12, &drawn, sizeof drawn), MR_OK);
    uint64_t transposed[] = {8, 2, 4, 32}; /* the same elements with the axes exchanged */
    assert_int_equal(check_forged(64, transposed, sizeof transposed), MR_OK);
    /* A stride of 0 gives two rows of the same bytes, which is allowed. */
    uint64_t overlapping[] = {2, 8, 0, 4};
    assert_int_equal(check_forged(64, overlapping, sizeof overlapping), MR_OK);
}

static void strides_that_are_never_taken_become_the_usual_ones(void **state)
{
    (void)state;
    unsigned char *extent = small_tensor();
    static const uint64_t dims[][4] = {{1, 16, (uint64_t)1 << 62, 4}, {0, 8, (uint64_t)1 << 62, 4}};
    for (size_t i = 0; i < MR_ARRAY_LEN(dims); i++) {
        memcpy(extent + 64, dims[i], sizeof dims[i]);
        memset(extent + 56, 0, 8);
        uint64_t sum = XXH3_64bits(extent, 96);
        memcpy(extent + 56, &sum, sizeof sum);
        struct mr_value v;
        assert_int_equal(mr_value_check(mr_str_of(extent, 192), &v, NULL), MR_OK);
        assert_int_equal(v.tensor.strides[0], i ? 32 : 64);
    }
    mr_release(extent);
}

static void another_layout_version_is_named(void **state)
{
    (void)state;
    unsigned char *extent = small_tensor();
    extent[4] = 9;
    struct mr_value v;
    struct mr_error e;
    assert_int_equal(mr_value_check(mr_str_of(extent, 192), &v, &e), MR_ESTATE);
    assert_string_equal(e.text, "a value of layout version 9; this program speaks 1");
    mr_release(extent);
}

static void a_bool_that_is_neither_is_found_by_the_deep_check(void **state)
{
    (void)state;
    void *extent = NULL;
    struct mr_value_alloc a = heap(&extent);
    void *data = NULL;
    assert_int_equal(mr_tensor_new(&a, MR_DTYPE_BOOL, 1, (uint64_t[]){3}, &data, NULL), MR_OK);
    memcpy(data, "\1\0\2", 3);
    struct mr_value v;
    assert_int_equal(mr_value_check(mr_str_of(extent, 131), &v, NULL), MR_OK);
    assert_int_equal(mr_value_check_deep(mr_str_of(extent, 131), &v, NULL), MR_EFORMAT);
    mr_release(extent);
}

static void bytes_and_packs_read_back(void **state)
{
    (void)state;
    void *extent = NULL;
    struct mr_value_alloc a = heap(&extent);
    assert_int_equal(mr_value_put_bytes(&a, MR_STR("hello"), NULL), MR_OK);
    struct mr_value v;
    assert_int_equal(mr_value_check_deep(mr_str_of(extent, 69), &v, NULL), MR_OK);
    assert_int_equal(v.kind, MR_VALUE_BYTES);
    assert_int_equal(v.data_bytes, 5);
    assert_memory_equal(v.data, "hello", 5);
    mr_release(extent);

    assert_int_equal(mr_value_put_bytes(&a, MR_STR(""), NULL), MR_OK);
    assert_int_equal(mr_value_check_deep(mr_str_of(extent, 64), &v, NULL), MR_OK);
    assert_int_equal(v.data_bytes, 0);
    mr_release(extent);

    assert_int_equal(mr_value_put_pack(&a, MR_STR("\x93\x01\x02\x03"), NULL), MR_OK);
    assert_int_equal(mr_value_check_deep(mr_str_of(extent, 68), &v, NULL), MR_OK);
    assert_int_equal(v.kind, MR_VALUE_PACK);
    ((unsigned char *)extent)[66] = 0xc1;
    assert_int_equal(mr_value_check(mr_str_of(extent, 68), &v, NULL), MR_OK);
    assert_int_equal(mr_value_check_deep(mr_str_of(extent, 68), &v, NULL), MR_EFORMAT);
    mr_release(extent);
}

static void a_small_value_travels_as_a_pack_and_comes_back(void **state)
{
    (void)state;
    unsigned char *extent = small_tensor();
    struct mr_value v;
    assert_int_equal(mr_value_check(mr_str_of(extent, 192), &v, NULL), MR_OK);
    struct mr_buf b;
    mr_buf_init(&b, 8192);
    mr_pack_nil(&b); /* makes the address of the extent in the pack unaligned */
    assert_int_equal(mr_value_to_pack(&v, &b), MR_OK);
    struct mr_str pack = mr_str_of(b.p + 1, b.n - 1);
    assert_int_equal(mr_pack_check(pack, 0, NULL), MR_OK);
    void *copy = NULL;
    struct mr_value_alloc a = heap(&copy);
    struct mr_value back;
    assert_int_equal(mr_value_from_pack(pack, &a, &back, NULL), MR_OK);
    assert_int_equal(back.nbytes, 192);
    assert_memory_equal(back.extent, extent, 192);
    assert_int_equal(mr_value_from_pack(pack, NULL, &back, NULL), MR_EINVAL);
    mr_release(copy);
    mr_buf_fini(&b);
    mr_release(extent);
}

static void a_pack_that_is_an_extent_is_put_as_that_value(void **state)
{
    (void)state;
    unsigned char *extent = small_tensor();
    struct mr_value v;
    assert_int_equal(mr_value_check(mr_str_of(extent, 192), &v, NULL), MR_OK);
    struct mr_buf b;
    mr_buf_init(&b, 8192);
    assert_int_equal(mr_value_to_pack(&v, &b), MR_OK);
    void *copy = NULL;
    struct mr_value_alloc a = heap(&copy);
    assert_int_equal(mr_value_put_pack(&a, mr_buf_str(&b), NULL), MR_OK);
    assert_memory_equal(copy, extent, 192);
    mr_release(copy);
    /* A value of kind MR_VALUE_PACK that has the same bytes as its data is refused. */
    unsigned char *json = mr_alloc_aligned(64 + b.n, 64);
    memcpy(mr_value_pack_build(json, b.n), b.p, b.n);
    assert_int_equal(mr_value_check(mr_str_of(json, 64 + b.n), &v, NULL), MR_EFORMAT);
    mr_release(json);
    mr_buf_fini(&b);
    mr_release(extent);
}

static void a_pack_is_a_value_without_an_extent(void **state)
{
    (void)state;
    struct mr_value v;
    assert_int_equal(mr_value_from_pack(MR_STR("\x2a"), NULL, &v, NULL), MR_OK);
    assert_int_equal(v.kind, MR_VALUE_PACK);
    assert_null(v.extent);
    assert_int_equal(v.nbytes, 65);
    struct mr_buf b;
    mr_buf_init(&b, 100);
    assert_int_equal(mr_value_to_pack(&v, &b), MR_OK);
    assert_int_equal(b.n, 1);
    mr_buf_fini(&b);
    assert_int_equal(mr_value_from_pack(MR_STR(""), NULL, &v, NULL), MR_EFORMAT);
}

static void a_value_over_the_limit_does_not_travel_inline(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 8192);
    static const struct {
        uint64_t n;
        int err;
    } rows[] = {{MR_INLINE_VALUE_BYTES_MAX - 64 - 4, MR_OK},
        {MR_INLINE_VALUE_BYTES_MAX - 64 - 3, MR_ETOOBIG}};
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        void *extent = mr_alloc_aligned(64 + rows[i].n, 64);
        (void)mr_value_bytes_build(extent, rows[i].n);
        struct mr_value v;
        assert_int_equal(mr_value_check(mr_str_of(extent, 64 + rows[i].n), &v, NULL), MR_OK);
        mr_buf_clear(&b);
        assert_int_equal(mr_value_to_pack(&v, &b), rows[i].err);
        assert_int_equal(b.n, rows[i].err ? 0 : MR_INLINE_VALUE_BYTES_MAX);
        mr_release(extent);
    }
    mr_buf_fini(&b);
}

static void summaries_are_for_people(void **state)
{
    (void)state;
    static const struct {
        struct mr_str pack;
        const char *words;
    } rows[] = {{MR_STR_INIT("\x2a"), "int 42"}, {MR_STR_INIT("\xc0"), "null"},
        {MR_STR_INIT("\xc3"), "bool true"},
        {MR_STR_INIT("\xa2"
                     "hi"),
            "text \"hi\" 3 B"},
        {MR_STR_INIT("\x92\x01\x02"), "list[2] 3 B"},
        {MR_STR_INIT("\xcb\x3f\xf8\0\0\0\0\0\0"), "float 1.5"},
        {MR_STR_INIT("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "int 18446744073709551615"},
        {MR_STR_INIT("\x80"), "map[0] 1 B"}};
    char text[MR_VALUE_SUMMARY_MAX];
    struct mr_value v;
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        assert_int_equal(mr_value_from_pack(rows[i].pack, NULL, &v, NULL), MR_OK);
        mr_value_summary(&v, text);
        assert_string_equal(text, rows[i].words);
    }
    void *extent = NULL;
    struct mr_value_alloc a = heap(&extent);
    void *data = NULL;
    assert_int_equal(mr_tensor_new(&a, MR_DTYPE_U8, 2, (uint64_t[]){512, 784}, &data, NULL), MR_OK);
    assert_int_equal(mr_value_check(mr_str_of(extent, 128 + 512 * 784), &v, NULL), MR_OK);
    mr_value_summary(&v, text);
    assert_string_equal(text, "u8[512,784] 392.1 KiB");
    mr_release(extent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_of_every_type_is_built_in_place),
        cmocka_unit_test(scalars_and_empty_tensors_are_tensors),
        cmocka_unit_test(a_tensor_too_large_has_no_extent),
        cmocka_unit_test(a_full_store_is_an_error_with_words),
        cmocka_unit_test(every_flipped_bit_of_a_header_is_noticed),
        cmocka_unit_test(a_forged_header_leads_nowhere),
        cmocka_unit_test(strides_that_are_never_taken_become_the_usual_ones),
        cmocka_unit_test(another_layout_version_is_named),
        cmocka_unit_test(a_bool_that_is_neither_is_found_by_the_deep_check),
        cmocka_unit_test(bytes_and_packs_read_back),
        cmocka_unit_test(a_small_value_travels_as_a_pack_and_comes_back),
        cmocka_unit_test(a_pack_that_is_an_extent_is_put_as_that_value),
        cmocka_unit_test(a_pack_is_a_value_without_an_extent),
        cmocka_unit_test(a_value_over_the_limit_does_not_travel_inline),
        cmocka_unit_test(summaries_are_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
