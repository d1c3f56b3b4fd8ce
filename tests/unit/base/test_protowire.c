/* Tests Protobuf's wire format: what is written reads back, and malformed bytes are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/protowire.h"

static void a_field_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 4096);
    mr_protowire_add_varint(&b, 1, UINT64_MAX);
    mr_protowire_add_varint(&b, 536870911, 0);
    mr_protowire_add_bytes(&b, 3, MR_STR("abc"));
    struct mr_protowire_reader r = mr_protowire_read(mr_buf_str(&b));
    struct mr_protowire_field f;
    assert_int_equal(mr_protowire_next(&r, &f), MR_OK);
    assert_true(f.number == 1 && f.value == UINT64_MAX);
    assert_int_equal(mr_protowire_next(&r, &f), MR_OK);
    assert_true(f.number == 536870911 && f.value == 0);
    assert_int_equal(mr_protowire_next(&r, &f), MR_OK);
    assert_true(f.type == MR_PROTOWIRE_BYTES && mr_str_eq(f.bytes, MR_STR("abc")));
    assert_int_equal(mr_protowire_next(&r, &f), MR_ENOENT);
    mr_buf_fini(&b);
}

static void malformed_wire_bytes_are_refused(void **state)
{
    (void)state;
    static const struct mr_str bad[] = {
        MR_STR_INIT("\x80"), /* a varint that is incomplete */
        /* A varint of more than 64 bits. */
        MR_STR_INIT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        MR_STR_INIT("\x0a\x05"
                    "abc"),              /* a field shorter than its length says */
        MR_STR_INIT("\x00\x01"),         /* field number 0 is not allowed */
        MR_STR_INIT("\x0b\x0c"),         /* a group, which is not supported */
        MR_STR_INIT("\x0d\x01\x02\x03"), /* a fixed32 with three of its four bytes */
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
        struct mr_protowire_reader r = mr_protowire_read(bad[i]);
        struct mr_protowire_field f;
        assert_int_equal(mr_protowire_next(&r, &f), MR_EFORMAT);
    }
}

static void numbers_of_fixed_size_are_little_endian(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 64);
    mr_protowire_tag(&b, 1, MR_PROTOWIRE_FIXED32);
    mr_protowire_fixed32(&b, 0x01020304);
    mr_protowire_tag(&b, 2, MR_PROTOWIRE_FIXED64);
    mr_protowire_fixed64(&b, UINT64_C(0x0102030405060708));
    assert_true(mr_str_eq(
        mr_buf_str(&b), MR_STR("\x0d\x04\x03\x02\x01\x11\x08\x07\x06\x05\x04\x03\x02\x01")));
    struct mr_protowire_reader r = mr_protowire_read(mr_buf_str(&b));
    struct mr_protowire_field f;
    assert_int_equal(mr_protowire_next(&r, &f), MR_OK);
    assert_true(f.type == MR_PROTOWIRE_FIXED32 && f.value == 0x01020304);
    assert_int_equal(mr_protowire_next(&r, &f), MR_OK);
    assert_true(f.type == MR_PROTOWIRE_FIXED64 && f.value == UINT64_C(0x0102030405060708));
    assert_int_equal(mr_protowire_next(&r, &f), MR_ENOENT);
    mr_buf_fini(&b);
}

static void a_nested_message_is_the_same_as_its_bytes(void **state)
{
    (void)state;
    char text[300]; /* a length of 300 takes two bytes */
    memset(text, 'x', sizeof text);
    for (size_t n = 0; n <= sizeof text; n += 100) {
        struct mr_buf inner, whole, nested;
        mr_buf_init(&inner, 1024);
        mr_buf_init(&whole, 1024);
        mr_buf_init(&nested, 1024);
        mr_protowire_add_bytes(&inner, 7, mr_str_of(text, n));
        mr_protowire_add_bytes(&whole, 3, mr_buf_str(&inner));
        size_t began = mr_protowire_begin(&nested, 3);
        mr_protowire_add_bytes(&nested, 7, mr_str_of(text, n));
        mr_protowire_end(&nested, began);
        assert_true(mr_str_eq(mr_buf_str(&whole), mr_buf_str(&nested)));
        mr_buf_fini(&inner);
        mr_buf_fini(&whole);
        mr_buf_fini(&nested);
    }
}

static void a_nested_message_past_the_ceiling_is_an_error(void **state)
{
    (void)state;
    for (size_t room = 0; room < 8; room++) { /* the whole message has eight bytes */
        struct mr_buf b;
        mr_buf_init(&b, room);
        size_t began = mr_protowire_begin(&b, 3);
        mr_protowire_add_bytes(&b, 7, MR_STR("abcd"));
        mr_protowire_end(&b, began);
        assert_int_equal(mr_buf_status(&b), MR_ELIMIT);
        assert_true(b.n <= room);
        mr_buf_fini(&b);
    }
}

static void a_varint_has_from_one_to_ten_bytes(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        size_t bytes;
    } expect[] = {{0, 1}, {127, 1}, {128, 2}, {16383, 2}, {16384, 3}, {UINT64_MAX >> 1, 9},
        {UINT64_MAX, MR_PROTOWIRE_VARINT_MAX}};
    for (size_t i = 0; i < MR_ARRAY_LEN(expect); i++) {
        unsigned char bytes[MR_PROTOWIRE_VARINT_MAX];
        size_t n = mr_protowire_put_varint(bytes, expect[i].value);
        assert_int_equal(n, expect[i].bytes);
        struct mr_buf b;
        mr_buf_init(&b, 16);
        mr_protowire_varint(&b, expect[i].value);
        assert_true(mr_str_eq(mr_buf_str(&b), mr_str_of(bytes, n)));
        mr_buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_is_read_as_it_was_written),
        cmocka_unit_test(malformed_wire_bytes_are_refused),
        cmocka_unit_test(numbers_of_fixed_size_are_little_endian),
        cmocka_unit_test(a_nested_message_is_the_same_as_its_bytes),
        cmocka_unit_test(a_nested_message_past_the_ceiling_is_an_error),
        cmocka_unit_test(a_varint_has_from_one_to_ten_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
