/* host/limit/allowance: the bytes of all requests and of one user's requests are bounded, and small
 * requests always pass. */
#include "base/defs.h"
#include "host/limit/allowance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ANN MR_STR("ann")
#define BEN MR_STR("ben")

static int add(
    struct mr_allowance *q, struct mr_allowance_hold *h, struct mr_str user, uint64_t bytes)
{
    struct mr_error e = {0};
    int err = mr_allowance_add(q, h, user, bytes, &e);
    if (err) assert_non_null(strstr(e.text, "try again later"));
    return err;
}

static void one_user_gets_half_and_all_get_no_more_than_there_is(void **state)
{
    (void)state;
    struct mr_allowance *q = mr_allowance_new(1000, 0);
    struct mr_allowance_hold a[3] = {{0}}, b = {0}, c = {0};
    assert_int_equal(add(q, &a[0], ANN, 300), MR_OK);
    assert_int_equal(add(q, &a[1], ANN, 200), MR_OK);
    assert_int_equal(add(q, &a[2], ANN, 1), MR_ELIMIT);
    assert_int_equal(add(q, &a[1], ANN, 1), MR_ELIMIT);
    assert_int_equal(add(q, &b, BEN, 400), MR_OK);
    assert_int_equal(add(q, &c, MR_STR("eve"), 101), MR_ELIMIT);
    assert_int_equal(add(q, &c, MR_STR("eve"), 100), MR_OK);
    assert_int_equal(mr_allowance_bytes(q), 1000);
    mr_allowance_drop(q, &a[0]);
    mr_allowance_drop(q, &a[0]);
    mr_allowance_drop(q, &a[2]);
    assert_int_equal(add(q, &a[1], ANN, 300), MR_OK);
    mr_allowance_drop(q, &a[1]);
    mr_allowance_drop(q, &b);
    mr_allowance_drop(q, &c);
    assert_int_equal(mr_allowance_bytes(q), 0);
    mr_allowance_free(&q);
}

static void one_request_alone_may_have_all(void **state)
{
    (void)state;
    struct mr_allowance *q = mr_allowance_new(1000, 0);
    struct mr_allowance_hold a = {0}, b = {0};
    assert_int_equal(add(q, &a, ANN, 500), MR_OK);
    assert_int_equal(add(q, &a, ANN, 500), MR_OK);
    assert_int_equal(add(q, &a, ANN, 1), MR_ELIMIT);
    assert_int_equal(add(q, &b, ANN, 1), MR_ELIMIT);
    mr_allowance_drop(q, &a);
    assert_int_equal(add(q, &b, ANN, UINT64_MAX), MR_ELIMIT);
    assert_int_equal(mr_allowance_bytes(q), 0);
    mr_allowance_free(&q);
}

static void small_requests_pass(void **state)
{
    (void)state;
    struct mr_allowance *q = mr_allowance_new(1000, 64);
    struct mr_allowance_hold a = {0}, b = {0};
    assert_int_equal(add(q, &a, ANN, 1064), MR_OK);
    assert_int_equal(add(q, &b, BEN, 64), MR_OK);
    assert_int_equal(add(q, &b, BEN, 1), MR_ELIMIT);
    mr_allowance_drop(q, &b);
    mr_allowance_drop(q, &a);
    mr_allowance_free(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_user_gets_half_and_all_get_no_more_than_there_is),
        cmocka_unit_test(one_request_alone_may_have_all),
        cmocka_unit_test(small_requests_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
