/* The cookie in which a browser sends a token. A cookie that was written is read back and has the
 * attributes that protect it. A malformed cookie is ignored. Failed logins from an address are
 * counted for a limited time. */
#include "gateway/http/login_cookie.h"
#include "host/limit/attempts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

static const struct mr_cookie_place plain = {false, 8470}, https = {true, 443};

static bool found(const struct mr_cookie_place *place, const char *header, const char *token)
{
    struct mr_buf b;
    mr_buf_init(&b, 256);
    bool is_there = mr_cookie_find(place, mr_str(header), &b);
    if (is_there && token) assert_true(mr_str_eq(mr_buf_str(&b), mr_str(token)));
    mr_buf_fini(&b);
    return is_there;
}

static void a_cookie_keeps_itself_from_others(void **state)
{
    (void)state;
    char text[MR_COOKIE_TEXT_MAX];
    mr_cookie_write(&plain, MR_STR("a;b=\"c\\,d"), 0, text);
    assert_string_equal(
        text, "millrace_8470=613b623d22635c2c64; Path=/; HttpOnly; SameSite=Strict");
    mr_cookie_write(&https, MR_STR("k"), 3600, text);
    assert_string_equal(
        text, "__Host-millrace_443=6b; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=3600");
    mr_cookie_write(&plain, mr_str_of(NULL, 0), 0, text);
    assert_string_equal(text, "millrace_8470=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    char longest[257];
    memset(longest, '~', 256);
    longest[256] = 0;
    mr_cookie_write(&https, mr_str(longest), MR_LOGIN_AGE_MAX, text);
    *strchr(text, ';') = 0;
    assert_true(found(&https, text, longest));
}

static void a_cookie_is_found_among_others(void **state)
{
    (void)state;
    assert_true(found(&plain, "millrace_8470=6b", "k"));
    assert_true(found(&plain, "a=b; millrace_8470=6b; c=d", "k"));
    assert_true(found(&plain, ";; ;millrace_8470=6b;millrace_8470=6c", "k"));
    static const char *const none[] = {"", ";", "millrace_8470",
        "millrace_8470=", "millrace_8470=6", "millrace_8470=6B", "millrace_8470=6b6g",
        "millrace_84700=6b", "millrace_847=6b", "xmillrace_8470=6b", "__Host-millrace_8470=6b",
        "millrace_8470=\"6b\"", "millrace_8471=6b"};
    for (size_t i = 0; i < MR_ARRAY_LEN(none); i++)
        assert_false(found(&plain, none[i], NULL));
    assert_false(found(&plain, NULL, NULL));
    char large[600] = "millrace_8470=";
    memset(large + 14, '6', 514);
    assert_false(found(&plain, large, NULL));
}

static int read_body(const char *body, const char *token, uint32_t age)
{
    struct mr_buf b;
    struct mr_error e = {0};
    uint32_t age_s = 0;
    mr_buf_init(&b, 4096);
    int err = mr_login_read(mr_str(body), &b, &age_s, &e);
    if (!err) {
        assert_true(mr_str_eq(mr_buf_str(&b), mr_str(token)));
        assert_int_equal(age_s, age);
    }
    mr_buf_fini(&b);
    return err;
}

static void a_body_is_read_or_refused(void **state)
{
    (void)state;
    assert_int_equal(read_body("", "", 0), MR_OK);
    assert_int_equal(read_body("{}", "", 0), MR_OK);
    assert_int_equal(read_body("{\"token\":\"ab\"}", "ab", 0), MR_OK);
    assert_int_equal(read_body("{\"max_age_s\":2592000,\"token\":\"ab\"}", "ab", 2592000), MR_OK);
    static const char *const wrong[] = {"[]", "1", "{", "{\"token\":1}", "{\"max_age_s\":-1}",
        "{\"max_age_s\":2592001}", "{\"max_age_s\":1.5}", "{\"name\":\"x\"}", "{\"token\":null}"};
    for (size_t i = 0; i < MR_ARRAY_LEN(wrong); i++)
        assert_int_equal(read_body(wrong[i], "", 0), MR_EINVAL);
}

static void failures_are_counted_for_a_while(void **state)
{
    (void)state;
    struct mr_attempts *a = mr_attempts_new(3, 10);
    struct mr_str one = MR_STR("one"), two = MR_STR("two");
    for (mr_time t = 100; t < 103; t++) {
        assert_true(mr_attempts_may(a, one, t));
        mr_attempts_fail(a, one, t);
    }
    assert_false(mr_attempts_may(a, one, 103));
    assert_false(mr_attempts_may(a, one, 109));
    assert_true(mr_attempts_may(a, two, 109));
    assert_true(mr_attempts_may(a, one, 110));
    for (int i = 0; i < 10; i++)
        /* An empty key stands for the gateway's own machine, whose failures are not counted. */
        mr_attempts_fail(a, mr_str_of(NULL, 0), 100);
    assert_true(mr_attempts_may(a, mr_str_of(NULL, 0), 100));
    mr_attempts_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cookie_keeps_itself_from_others),
        cmocka_unit_test(a_cookie_is_found_among_others),
        cmocka_unit_test(a_body_is_read_or_refused),
        cmocka_unit_test(failures_are_counted_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
