/* Tests lib/base/page: where a page of a list begins, and which page tokens are refused. */
#include "base/page.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void a_size_of_zero_is_the_default_and_too_many_are_refused(void **state)
{
    (void)state;
    struct mr_page p;
    struct mr_error e;
    assert_int_equal(mr_page_read(0, "", 100, &p, &e), MR_OK);
    assert_int_equal(p.rows_max, 100);
    assert_int_equal(mr_page_read(1000, "", 100, &p, &e), MR_OK);
    assert_int_equal(p.rows_max, 1000);
    assert_int_equal(mr_page_read(1001, "", 100, &p, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "page_size: 1001"));
}

static void a_token_names_the_row_after_which_the_page_begins(void **state)
{
    (void)state;
    struct mr_page p;
    struct mr_error e;
    char *token = mr_page_token("b/c");
    assert_int_equal(mr_page_read(1, token, 100, &p, &e), MR_OK);
    assert_false(mr_page_has(&p, "a"));
    assert_false(mr_page_has(&p, "b/c"));
    assert_true(mr_page_has(&p, "b/ca"));
    assert_true(mr_page_has(&p, "c"));
    mr_release(token);
    assert_int_equal(mr_page_read(1, "", 100, &p, &e), MR_OK);
    assert_true(mr_page_has(&p, "a"));
}

static void what_came_from_no_answer_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"b", "~", " ~b", "0~b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mr_page p;
        struct mr_error e;
        assert_int_equal(mr_page_read(1, bad[i], 100, &p, &e), MR_EINVAL);
        assert_non_null(strstr(e.text, "page_token"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_of_zero_is_the_default_and_too_many_are_refused),
        cmocka_unit_test(a_token_names_the_row_after_which_the_page_begins),
        cmocka_unit_test(what_came_from_no_answer_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
