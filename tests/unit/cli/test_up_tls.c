/* Tests the certificates of `millrace up --tls`. They are made once, renewed before they expire,
 * and valid for the names by which clients reach the cluster. Options that do not fit together are
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/up/tls.h"
#include "host/os/file.h"
#include "tests/support/tls_rig.h"

#include <string.h>
#include <sys/stat.h>

static struct mr_buf bytes_of(const char *path)
{
    struct mr_buf b;
    mr_buf_init(&b, 65536);
    if (mr_file_read(path, &b, NULL)) fail_msg("%s cannot be read", path);
    return b;
}

static bool is_same(const char *path, struct mr_buf *before)
{
    struct mr_buf now = bytes_of(path);
    bool same = mr_str_eq(mr_buf_str(&now), mr_buf_str(before));
    mr_buf_fini(&now);
    mr_buf_fini(before);
    return same;
}

static struct mr_up_tls settle(const char *host)
{
    struct mr_up_tls t = {.own = true};
    struct mr_error e = {0};
    if (mr_up_tls_prepare(&t, pki, host, &e)) fail_msg("%s", e.text);
    return t;
}

static void it_is_made_once_and_good_for_the_names(void **state)
{
    (void)state;
    struct stat st;
    struct mr_up_tls t = settle("[::]");
    static const char *names[] = {"localhost", "127.0.0.1", "::1", "::"};
    assert_true(mr_up_tls_is_on(&t));
    assert_true(
        mr_certificate_lasts(&t.files, &(struct mr_texts){names, MR_ARRAY_LEN(names)}, 300 * DAY));
    assert_int_equal(stat(pki_path("tls"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(pki_path("tls/ca-key.pem"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    struct mr_buf cert = bytes_of(t.files.cert), ca = bytes_of(t.files.ca);
    mr_up_tls_fini(&t);
    t = settle("[::]");
    assert_true(is_same(t.files.cert, &cert));
    assert_true(is_same(t.files.ca, &ca));
    mr_up_tls_fini(&t);
}

static void it_is_renewed_before_it_ends_or_when_a_name_is_new(void **state)
{
    (void)state;
    struct mr_up_tls t = settle("127.0.0.1");
    struct mr_buf cert = bytes_of(t.files.cert), ca = bytes_of(t.files.ca);
    mr_up_tls_fini(&t);
    t = settle("new.example");
    assert_false(is_same(t.files.cert, &cert));
    assert_true(is_same(t.files.ca, &ca));

    const struct mr_certificate_spec soon = {
        .common_name = "millrace", .names = t.names, .begins_s = -60, .lasts_s = 10 * DAY};
    struct mr_error e = {0};
    if (mr_certificate_make(
            t.files.ca, pki_path("tls/ca-key.pem"), t.files.cert, t.files.key, &soon, &e))
        fail_msg("%s", e.text);
    assert_false(mr_certificate_lasts(&t.files, &t.names, 30 * DAY));
    assert_int_equal(mr_up_tls_renew(&t, &e), MR_OK);
    assert_true(mr_certificate_lasts(&t.files, &t.names, 300 * DAY));
    mr_up_tls_fini(&t);
}

static void assert_refused(struct mr_up_tls t, const char *words)
{
    struct mr_error e = {0};
    assert_int_not_equal(mr_up_tls_prepare(&t, pki, "127.0.0.1", &e), MR_OK);
    if (!strstr(e.text, words)) fail_msg("\"%s\" does not say \"%s\"", e.text, words);
    mr_up_tls_fini(&t);
}

static void what_does_not_go_together_is_refused(void **state)
{
    (void)state;
    const char *cert = pki_path("service"), *key = pki_key("service"), *ca = pki_path("ca");
    assert_refused((struct mr_up_tls){.own = true, .files = {.ca = ca}}, "--tls makes its own");
    assert_refused((struct mr_up_tls){.files = {.ca = ca}}, "needs --tls-cert");
    assert_refused((struct mr_up_tls){.files = {.cert = cert}}, "--tls-key is missing");
    assert_refused(
        (struct mr_up_tls){.files = {.cert = cert, .key = pki_key("enemy")}}, "is not the key of");
    assert_refused(
        (struct mr_up_tls){.files = {.cert = cert, .key = key, .ca = pki_path("other-ca")}},
        "is not signed by");
}

static void what_is_given_is_taken_and_leaves_the_environment(void **state)
{
    (void)state;
    struct mr_up_tls none = {0},
                     t = {.files = {.cert = pki_path("service"), .key = pki_key("service")}};
    assert_int_equal(setenv("MILLRACE_TLS_CERT", pki_path("service"), 1), 0);
    assert_int_equal(mr_up_tls_prepare(&t, pki, "127.0.0.1", NULL), MR_OK);
    assert_true(mr_up_tls_is_on(&t));
    assert_null(t.files.ca);
    assert_null(getenv("MILLRACE_TLS_CERT"));
    assert_int_equal(mr_up_tls_prepare(&none, pki, "127.0.0.1", NULL), MR_OK);
    assert_false(mr_up_tls_is_on(&none));
    mr_up_tls_fini(&t);
    mr_up_tls_fini(&none);
}

static int remove_all(void **state)
{
    static const char *const made[] = {
        "tls/ca.pem", "tls/ca-key.pem", "tls/cert.pem", "tls/key.pem"};
    for (size_t i = 0; i < MR_ARRAY_LEN(made); i++)
        (void)unlink(pki_path(made[i]));
    (void)rmdir(pki_path("tls"));
    return remove_pki(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_made_once_and_good_for_the_names),
        cmocka_unit_test(it_is_renewed_before_it_ends_or_when_a_name_is_new),
        cmocka_unit_test(what_does_not_go_together_is_refused),
        cmocka_unit_test(what_is_given_is_taken_and_leaves_the_environment),
    };
    return cmocka_run_group_tests(tests, make_pki, remove_all);
}
