/* lib/base: errors, ids, buffers, UTF-8, lists, arena, random numbers. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void an_error_carries_its_code_and_a_printable_sentence(void **state)
{
    (void)state;
    struct mr_error e = {0};
    assert_int_equal(mr_fail(&e, MR_EINVAL, "key \"%s\" is bad", "a\x01\xff"), MR_EINVAL);
    assert_int_equal(e.code, MR_EINVAL);
    assert_string_equal(e.text, "key \"a\\x01\\xff\" is bad");
    assert_int_equal(mr_fail(NULL, MR_ELIMIT, "x"), MR_ELIMIT);
}

static void every_grpc_status_maps_to_an_error_that_maps_back(void **state)
{
    (void)state;
    for (int status = 1; status <= 16; status++)
        assert_int_equal(mr_err_grpc(mr_err_from_grpc(status)), status);
    assert_int_equal(mr_err_from_grpc(99), MR_EUNKNOWN);
    assert_int_equal(mr_err_http(MR_ENOENT), 404);
}

static void an_object_id_reads_back_from_text_and_bytes(void **state)
{
    (void)state;
    mr_object_id id = {0x0123456789abcdef, 0xfedcba9876543210};
    char text[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(id, text);
    assert_string_equal(text, "0123456789abcdeffedcba9876543210");
    mr_object_id back = {0};
    assert_int_equal(mr_object_id_parse(mr_str(text), &back), MR_OK);
    assert_true(mr_object_id_eq(id, back));
    unsigned char bytes[16];
    mr_object_id_to_bytes(id, bytes);
    assert_int_equal(bytes[0], 0x01);
    assert_int_equal(mr_object_id_from_bytes(mr_str_of(bytes, 16), &back), MR_OK);
    assert_true(mr_object_id_eq(id, back));
    assert_int_equal(
        mr_object_id_parse(MR_STR("0123456789ABCDEFfedcba9876543210"), &back), MR_EINVAL);
    assert_int_equal(mr_object_id_parse(MR_STR("01"), &back), MR_EINVAL);
}

static void a_job_id_has_one_text_form_only(void **state)
{
    (void)state;
    mr_job_id id = {0};
    char text[MR_JOB_ID_TEXT_MAX];
    assert_int_equal(mr_job_id_parse(MR_STR("j3-17"), &id), MR_OK);
    assert_int_equal(id.v, (uint64_t)3 << 32 | 17);
    mr_job_id_format(id, text);
    assert_string_equal(text, "j3-17");
    /* The tag, the upper half of a job id, is written in decimal below MR_TAG_DRAWN_MIN, and in
     * base 32 from there on. */
    id = mr_job_id_make(MR_TAG_DRAWN_MIN - 1, 1);
    mr_job_id_format(id, text);
    assert_string_equal(text, "j999999-1");
    static const uint32_t tags[] = {MR_TAG_DRAWN_MIN, 34359738, UINT32_MAX, 0x80000000u};
    for (size_t i = 0; i < MR_ARRAY_LEN(tags); i++) {
        mr_job_id back = {0};
        mr_job_id_format(mr_job_id_make(tags[i], 7), text);
        assert_int_equal(strlen(text), 10);
        assert_int_equal(mr_job_id_parse(mr_str(text), &back), MR_OK);
        assert_int_equal(back.v, mr_job_id_make(tags[i], 7).v);
    }
    mr_job_id_format(mr_job_id_make(UINT32_MAX, UINT32_MAX), text);
    assert_string_equal(text, "j3zzzzzz-4294967295");
    static const char *const bad[] = {"j00ygj0-1", "j4000000-1", "j000000z-1", "j1KQ07AB-1",
        "j1kq07ai-1", "j1kq07ab1-1", "j1kq07ab", "", "j", "j3", "j3-", "j-3", "3-17", "j03-1",
        "j3-017", "j3-17 ", "j4294967296-1"};
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
        assert_int_equal(mr_job_id_parse(mr_str(bad[i]), &id), MR_EINVAL);
}

static void a_buffer_past_its_ceiling_drops_the_rest_and_says_so(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 10);
    mr_buf_printf(&b, "%d", 12345);
    assert_int_equal(b.n, 5);
    assert_int_equal(mr_buf_status(&b), MR_OK);
    mr_buf_add_text(&b, "678901");
    assert_int_equal(b.n, 5);
    assert_int_equal(mr_buf_status(&b), MR_ELIMIT);
    mr_buf_clear(&b);
    mr_buf_add_text(&b, "0123456789");
    assert_int_equal(mr_buf_status(&b), MR_OK);
    assert_memory_equal(b.p, "0123456789", 10);
    mr_buf_fini(&b);
}

static void what_comes_into_a_reserved_buffer_needs_no_other_memory(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    mr_buf_reserve(&b, 600);
    assert_int_equal(b.n, 0);
    assert_int_equal(b.room, 600);
    const unsigned char *at = b.p;
    for (int i = 0; i < 60; i++)
        mr_buf_add_text(&b, "0123456789");
    assert_ptr_equal(b.p, at);
    assert_int_equal(b.room, 600);
    mr_buf_reserve(&b, 600); /* 600 more bytes exceed the ceiling of 1000 */
    assert_int_equal(b.room, 1000);
    assert_int_equal(b.n, 600);
    assert_int_equal(mr_buf_status(&b), MR_OK);
    mr_buf_fini(&b);
}

static void utf8_is_what_rfc_3629_says(void **state)
{
    (void)state;
    assert_true(mr_utf8_is_valid(MR_STR("plain, h\xc3\xa9llo, \xe2\x82\xac, \xf0\x9f\x98\x80")));
    static const char *const bad[] = {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80",
        "\xe2\x82", "\xf8\x88\x80\x80\x80", "12345678\xff", "\xc1\xbf"};
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
        assert_false(mr_utf8_is_valid(mr_str(bad[i])));
    assert_true(mr_utf8_is_key(MR_STR("svm/cv/fit-00"), 1024));
    assert_false(mr_utf8_is_key(MR_STR("a\nb"), 1024));
    assert_false(mr_utf8_is_key(MR_STR("a\xc2\x85"), 1024)); /* U+0085, a C1 control character */
    assert_false(mr_utf8_is_key(MR_STR(""), 1024));
    assert_false(mr_utf8_is_key(MR_STR("abc"), 2));
}

static void printable_text_is_cut_at_a_whole_character(void **state)
{
    (void)state;
    char out[6];
    mr_utf8_printable("abc\xe2\x82\xac", 6, out, sizeof out);
    assert_string_equal(out, "abc");
    mr_utf8_printable("a\x02", 2, out, sizeof out);
    assert_string_equal(out, "a\\x02");
}

struct item {
    int v;
    struct mr_list node;
};

static void a_list_keeps_order_and_lets_the_current_item_go(void **state)
{
    (void)state;
    struct mr_list head;
    mr_list_init(&head);
    struct item items[5] = {0};
    for (int i = 0; i < 5; i++) {
        items[i].v = i;
        mr_list_add_tail(&head, &items[i].node);
    }
    MR_LIST_EACH(node, &head)
    {
        struct item *it = MR_LIST_ITEM(node, struct item, node);
        if (it->v % 2) mr_list_remove(node);
    }
    int seen = 0;
    MR_LIST_EACH(node, &head)
    {
        assert_int_equal(MR_LIST_ITEM(node, struct item, node)->v, seen);
        seen += 2;
    }
    assert_int_equal(seen, 6);
    assert_false(mr_list_is_linked(&items[1].node));
}

static void an_arena_gives_aligned_zeroed_memory(void **state)
{
    (void)state;
    struct mr_arena a;
    /* The arena reserves a terabyte of address space. The test touches two pages of it. */
    mr_arena_init(&a, (size_t)1 << 40);
    char *c = MR_ARENA_ARRAY(&a, char, 3);
    uint64_t *u = MR_ARENA_ARRAY(&a, uint64_t, 1000);
    assert_int_equal((uintptr_t)u % 8, 0);
    assert_int_equal(c[2], 0);
    assert_int_equal(u[999], 0);
    mr_arena_fini(&a);
}

static void the_generator_gives_its_published_numbers(void **state)
{
    (void)state;
    /* The generator is xoshiro256**. The state {1, 2, 3, 4} is that of its authors' test
     * vectors. */
    struct mr_rng r = {{1, 2, 3, 4}};
    static const uint64_t expect[] = {11520, 0, 1509978240, 1215971899390074240};
    for (size_t i = 0; i < MR_ARRAY_LEN(expect); i++)
        assert_int_equal(mr_rng_next(&r), expect[i]);
    mr_rng_init(&r, 7);
    for (int i = 0; i < 1000; i++)
        assert_true(mr_rng_below(&r, 6) < 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_carries_its_code_and_a_printable_sentence),
        cmocka_unit_test(every_grpc_status_maps_to_an_error_that_maps_back),
        cmocka_unit_test(an_object_id_reads_back_from_text_and_bytes),
        cmocka_unit_test(a_job_id_has_one_text_form_only),
        cmocka_unit_test(a_buffer_past_its_ceiling_drops_the_rest_and_says_so),
        cmocka_unit_test(what_comes_into_a_reserved_buffer_needs_no_other_memory),
        cmocka_unit_test(utf8_is_what_rfc_3629_says),
        cmocka_unit_test(printable_text_is_cut_at_a_whole_character),
        cmocka_unit_test(a_list_keeps_order_and_lets_the_current_item_go),
        cmocka_unit_test(an_arena_gives_aligned_zeroed_memory),
        cmocka_unit_test(the_generator_gives_its_published_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
