/* The headers Range, If-None-Match and Accept-Encoding in the forms that clients send. */
#include "gateway/http/gzip.h"
#include "gateway/http/media.h"
#include "gateway/http/range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_range_means_what_there_is_of_it(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t total, from, n;
        bool is_there;
    } cases[] = {
        {"bytes=0-0", 10, 0, 1, true},
        {"bytes=0-9", 10, 0, 10, true},
        {"bytes=4-", 10, 4, 6, true},
        {"bytes=4-99", 10, 4, 6, true},
        {"Bytes= 4-5 ", 10, 4, 2, true},
        {"bytes=-3", 10, 7, 3, true},
        {"bytes=-30", 10, 0, 10, true},
        {"bytes=9-18446744073709551616", 10, 9, 1, true},
        {"bytes=10-", 10, 0, 0, false},
        {"bytes=-0", 10, 0, 0, false},
        {"bytes=0-", 0, 0, 0, false},
        {"bytes=-1", 0, 0, 0, false},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        struct mr_range r;
        uint64_t from, n;
        assert_true(mr_range_parse(mr_str(cases[i].text), &r));
        bool is_there = mr_range_within(&r, cases[i].total, &from, &n);
        if (is_there != cases[i].is_there) fail_msg("%s", cases[i].text);
        if (!is_there) continue;
        assert_int_equal(from, cases[i].from);
        assert_int_equal(n, cases[i].n);
    }
}

static void what_is_no_single_range_of_bytes_is_ignored(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-4",
        "bytes=0-1,3-4", "lines=0-1", "bytes=1", "bytes=+1-2", "bytes=1--2"};
    for (size_t i = 0; i < MR_ARRAY_LEN(texts); i++) {
        struct mr_range r;
        if (mr_range_parse(mr_str(texts[i]), &r)) fail_msg("%s", texts[i]);
    }
}

static void a_tag_is_known_among_others_and_when_weak(void **state)
{
    (void)state;
    static const char *const known[] = {
        "\"a\"", "W/\"a\"", "\"b\", \"a\"", "*", " \"b\" ,W/\"a\" "};
    static const char *const others[] = {"", "a", "\"ab\"", "\"b\"", "\"A\"", "W/", ","};
    for (size_t i = 0; i < MR_ARRAY_LEN(known); i++)
        assert_true(mr_etag_is_known(mr_str(known[i]), "\"a\""));
    for (size_t i = 0; i < MR_ARRAY_LEN(others); i++)
        assert_false(mr_etag_is_known(mr_str(others[i]), "\"a\""));
}

static void gzip_is_taken_where_it_is_named(void **state)
{
    (void)state;
    static const char *const takes[] = {"gzip", "br, gzip", "GZIP;q=0.1", "*", "identity;q=0, *"};
    static const char *const refuses[] = {"", "br", "gzip;q=0", "*, gzip;q=0", "x-gzip", "*;q=0"};
    for (size_t i = 0; i < MR_ARRAY_LEN(takes); i++)
        assert_true(mr_media_takes(mr_str(takes[i]), "gzip"));
    for (size_t i = 0; i < MR_ARRAY_LEN(refuses); i++)
        assert_false(mr_media_takes(mr_str(refuses[i]), "gzip"));
}

static void what_would_not_become_smaller_stays(void **state)
{
    (void)state;
    static char text[4096];
    struct mr_buf out;
    mr_buf_init(&out, sizeof text);
    assert_true(mr_gzip(mr_str_of(text, sizeof text), &out));
    assert_true(out.n < sizeof text);
    assert_memory_equal(out.p, "\x1f\x8b", 2);
    size_t before = out.n;
    uint32_t dice = 1;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)((dice = dice * 1664525 + 1013904223) >> 24);
    assert_false(mr_gzip(mr_str_of(text, sizeof text), &out));
    assert_false(mr_gzip(mr_str_of(text, MR_GZIP_BYTES_MIN - 1), &out));
    assert_int_equal(out.n, before);
    mr_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_means_what_there_is_of_it),
        cmocka_unit_test(what_is_no_single_range_of_bytes_is_ignored),
        cmocka_unit_test(a_tag_is_known_among_others_and_when_weak),
        cmocka_unit_test(gzip_is_taken_where_it_is_named),
        cmocka_unit_test(what_would_not_become_smaller_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
