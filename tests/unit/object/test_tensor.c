/* store/object/tensor: types, shapes, views and copies. */
#include "base/alloc.h"
#include "store/object/tensor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void every_type_has_a_name_that_reads_back(void **state)
{
    (void)state;
    for (unsigned i = 1; i < MR_DTYPES_COUNT; i++) {
        enum mr_dtype t = MR_DTYPE_NONE;
        assert_int_equal(mr_dtype_parse(mr_str(mr_dtype_name((enum mr_dtype)i)), &t), MR_OK);
        assert_int_equal(t, i);
        assert_true(mr_dtype_is_valid(i));
    }
    enum mr_dtype t = MR_DTYPE_I8;
    assert_int_equal(mr_dtype_parse(MR_STR("float32"), &t), MR_OK);
    assert_int_equal(t, MR_DTYPE_F32);
    assert_int_equal(mr_dtype_parse(MR_STR("none"), &t), MR_EINVAL);
    assert_int_equal(mr_dtype_parse(MR_STR("f128"), &t), MR_EINVAL);
    assert_false(mr_dtype_is_valid(0));
    assert_false(mr_dtype_is_valid(MR_DTYPES_COUNT));
}

static void shapes_that_overflow_are_refused(void **state)
{
    (void)state;
    uint64_t elements = 7;
    uint64_t bytes = 7;
    assert_int_equal(
        mr_tensor_shape_check(MR_DTYPE_F32, 2, (uint64_t[]){60000, 784}, &elements, &bytes, NULL),
        MR_OK);
    assert_int_equal(elements, 60000 * 784);
    assert_int_equal(bytes, 4 * 60000 * 784);
    assert_int_equal(mr_tensor_shape_check(MR_DTYPE_F32, 0, NULL, &elements, &bytes, NULL), MR_OK);
    assert_int_equal(elements, 1);
    assert_int_equal(
        mr_tensor_shape_check(MR_DTYPE_F64, 2, (uint64_t[]){0, 5}, &elements, &bytes, NULL), MR_OK);
    assert_int_equal(elements, 0);
    assert_int_equal(bytes, 0);

    static const uint64_t bad[][3] = {{UINT64_MAX, 2, 1}, {(uint64_t)1 << 32, (uint64_t)1 << 32, 1},
        {(uint64_t)1 << 63, 2, 0}, {0, UINT64_MAX, 1}, {1, 1, MR_OBJECT_BYTES_MAX}};
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
        assert_int_equal(
            mr_tensor_shape_check(MR_DTYPE_I16, 3, bad[i], NULL, NULL, NULL), MR_ELIMIT);
    uint64_t ones[17];
    for (size_t i = 0; i < 17; i++)
        ones[i] = 1;
    assert_int_equal(mr_tensor_shape_check(MR_DTYPE_U8, 16, ones, NULL, NULL, NULL), MR_OK);
    assert_int_equal(mr_tensor_shape_check(MR_DTYPE_U8, 17, ones, NULL, NULL, NULL), MR_EINVAL);
    assert_int_equal(
        mr_tensor_shape_check((enum mr_dtype)13, 1, ones, NULL, NULL, NULL), MR_EINVAL);
}

static void rows_and_elements_are_where_the_strides_say(void **state)
{
    (void)state;
    int32_t data[2][3] = {{1, 2, 3}, {4, 5, 6}};
    struct mr_tensor t;
    mr_tensor_init(&t, MR_DTYPE_I32, 2, (uint64_t[]){2, 3}, data);
    assert_int_equal(t.strides[0], 12);
    assert_int_equal(t.strides[1], 4);
    assert_true(mr_tensor_is_contiguous(&t));
    struct mr_tensor row = mr_tensor_row(&t, 1);
    assert_int_equal(row.ndim, 1);
    assert_int_equal(*(const int32_t *)row.data, 4);
    struct mr_tensor element = mr_tensor_row(&row, 2);
    assert_int_equal(element.ndim, 0);
    assert_int_equal(*(const int32_t *)element.data, 6);
    assert_true(mr_dtype_get_f64(t.dtype, mr_tensor_at(&t, (uint64_t[]){0, 1})) == 2);
}

/* Copies a tensor element by element. The test compares fast copies with this one. */
static void copy_slowly(const struct mr_tensor *t, unsigned char *out)
{
    size_t width = mr_dtype_bytes(t->dtype);
    uint64_t index[MR_TENSOR_DIMS_MAX] = {0};
    for (uint64_t i = 0; i < mr_tensor_elements(t); i++) {
        uint64_t rest = i;
        for (unsigned axis = t->ndim; axis-- > 0;) {
            index[axis] = rest % t->shape[axis];
            rest /= t->shape[axis];
        }
        memcpy(out + i * width, mr_tensor_at(t, index), width);
    }
}

static void a_copy_of_any_strides_is_row_major(void **state)
{
    (void)state;
    static const uint64_t shapes[][4] = {
        {5, 7, 3, 2}, {33, 1, 65, 4}, {1, 1, 1, 1}, {40, 50, 1, 2}, {2, 3, 4, 0}};
    static const unsigned orders[][4] = {
        {0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 3, 0, 1}, {0, 3, 1, 2}, {1, 2, 3, 0}};
    static const enum mr_dtype dtypes[] = {MR_DTYPE_U8, MR_DTYPE_I16, MR_DTYPE_F32, MR_DTYPE_F64};
    for (size_t s = 0; s < MR_ARRAY_LEN(shapes); s++)
        for (size_t o = 0; o < MR_ARRAY_LEN(orders); o++)
            for (size_t d = 0; d < MR_ARRAY_LEN(dtypes); d++) {
                struct mr_tensor base;
                mr_tensor_init(&base, dtypes[d], 4, shapes[s], NULL);
                size_t bytes = mr_tensor_data_bytes(&base);
                unsigned char *data = mr_alloc(bytes);
                for (size_t i = 0; i < bytes; i++)
                    data[i] = (unsigned char)(i * 31 + i / 251);
                struct mr_tensor t = base;
                t.data = data;
                for (unsigned axis = 0; axis < 4; axis++) {
                    t.shape[axis] = base.shape[orders[o][axis]];
                    t.strides[axis] = base.strides[orders[o][axis]];
                }
                unsigned char *fast = mr_alloc(bytes);
                unsigned char *slow = mr_alloc(bytes);
                mr_tensor_copy(&t, fast);
                copy_slowly(&t, slow);
                assert_memory_equal(fast, slow, bytes ? bytes : 1);
                mr_release(data);
                mr_release(fast);
                mr_release(slow);
            }
}

static void negative_and_zero_strides_copy(void **state)
{
    (void)state;
    int16_t data[] = {1, 2, 3};
    struct mr_tensor t = {
        .dtype = MR_DTYPE_I16, .ndim = 2, .shape = {2, 3}, .strides = {0, -2}, .data = data + 2};
    assert_false(mr_tensor_is_contiguous(&t));
    int16_t out[6];
    mr_tensor_copy(&t, out);
    static const int16_t want[] = {3, 2, 1, 3, 2, 1};
    assert_memory_equal(out, want, sizeof want);
    t = (struct mr_tensor){
        .dtype = MR_DTYPE_I16, .ndim = 1, .shape = {3}, .strides = {-2}, .data = data + 2};
    mr_tensor_copy(&t, out);
    assert_memory_equal(out, want, 6);
}

static void axes_of_length_one_or_zero_do_not_break_contiguity(void **state)
{
    (void)state;
    struct mr_tensor t = {
        .dtype = MR_DTYPE_U8, .ndim = 3, .shape = {4, 1, 3}, .strides = {3, 99, 1}};
    assert_true(mr_tensor_is_contiguous(&t));
    t.shape[0] = 0;
    t.strides[0] = 77;
    assert_true(mr_tensor_is_contiguous(&t));
    t.shape[0] = 4;
    assert_false(mr_tensor_is_contiguous(&t));
}

/* Returns the value of the binary16 number `h`, by the definition of the format. */
static double f16_value(uint16_t h)
{
    int exponent = h >> 10 & 31;
    double fraction = h & 1023;
    double v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return h & 0x8000 ? -v : v;
}

static void every_f16_converts_to_f32_and_back(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = mr_f16_to_f32((uint16_t)h);
        if ((h >> 10 & 31) == 31) {
            if (h & 1023)
                assert_true(isnan(f) && mr_f16_from_f32(f) >> 10 == (h >> 10));
            else
                assert_true(isinf(f) && mr_f16_from_f32(f) == h);
            continue;
        }
        assert_true((double)f == f16_value((uint16_t)h));
        assert_int_equal(mr_f16_from_f32(f), h);
        assert_int_equal(mr_f16_from_f64((double)f), h);
    }
}

static void f16_rounds_to_nearest_even(void **state)
{
    (void)state;
    /* Rounds numbers between two neighbours: at, below and above the middle. */
    for (uint32_t h = 0; h < 0x7bff; h++) {
        double low = f16_value((uint16_t)h);
        double high = f16_value((uint16_t)(h + 1));
        double middle = (low + high) / 2;
        uint32_t even = h % 2 ? h + 1 : h;
        assert_int_equal(mr_f16_from_f64(middle), even);
        assert_int_equal(mr_f16_from_f32((float)middle), even);
        assert_int_equal(mr_f16_from_f64(nextafter(middle, 0)), h);
        assert_int_equal(mr_f16_from_f64(nextafter(middle, 1e9)), h + 1);
        assert_int_equal(mr_f16_from_f32(nextafterf((float)middle, 0)), h);
        assert_int_equal(mr_f16_from_f32(nextafterf((float)middle, 1e9F)), h + 1);
    }
    assert_int_equal(mr_f16_from_f32(65519.99F), 0x7bff);
    assert_int_equal(mr_f16_from_f32(65520), 0x7c00);
    assert_int_equal(mr_f16_from_f64(-1e300), 0xfc00);
    assert_int_equal(mr_f16_from_f64(1e-300), 0);
    assert_int_equal(mr_f16_from_f32(-0.0F), 0x8000);
    assert_int_equal(mr_f16_from_f32(1e-45F), 0);
}

static void the_text_of_a_shape_is_short(void **state)
{
    (void)state;
    char text[MR_TENSOR_TEXT_MAX];
    mr_tensor_text(MR_DTYPE_F32, 2, (uint64_t[]){60000, 784}, text);
    assert_string_equal(text, "f32[60000,784]");
    mr_tensor_text(MR_DTYPE_BOOL, 0, NULL, text);
    assert_string_equal(text, "bool[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_a_name_that_reads_back),
        cmocka_unit_test(shapes_that_overflow_are_refused),
        cmocka_unit_test(rows_and_elements_are_where_the_strides_say),
        cmocka_unit_test(a_copy_of_any_strides_is_row_major),
        cmocka_unit_test(negative_and_zero_strides_copy),
        cmocka_unit_test(axes_of_length_one_or_zero_do_not_break_contiguity),
        cmocka_unit_test(every_f16_converts_to_f32_and_back),
        cmocka_unit_test(f16_rounds_to_nearest_even),
        cmocka_unit_test(the_text_of_a_shape_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
