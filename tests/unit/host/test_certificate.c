/* host/tls/certificate: unusable certificates and keys are refused with a reason, and the
 * certificates that are made are valid for the requested time and names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/os/file.h"
#include "tests/support/tls_rig.h"

#include <string.h>
#include <sys/stat.h>

static void assert_bad(const char *cert, const char *key, const char *ca, const char *words)
{
    struct mr_error e = {0};
    const struct mr_certificate_files f = {.cert = cert ? pki_path(cert) : NULL,
        .key = key ? pki_path(key) : NULL,
        .ca = ca ? pki_path(ca) : NULL};
    assert_int_not_equal(mr_certificate_check(&f, &e), MR_OK);
    if (!strstr(e.text, words)) fail_msg("\"%s\" does not say \"%s\"", e.text, words);
}

static void what_was_made_is_good(void **state)
{
    (void)state;
    struct mr_error e = {0};
    const struct mr_certificate_files all = {
        .cert = pki_path("service"), .key = pki_key("service"), .ca = pki_path("ca")};
    if (mr_certificate_check(&all, &e)) fail_msg("%s", e.text);
    const struct mr_certificate_files none = {.cert = "", .key = ""};
    assert_int_equal(mr_certificate_check(&none, &e), MR_OK);
}

static void what_does_not_work_is_refused_by_its_flag(void **state)
{
    (void)state;
    assert_bad("service", NULL, "ca", "--tls-key is missing");
    assert_bad(NULL, "service-key", "ca", "--tls-cert is missing");
    assert_bad("service", "elsewhere-key", NULL, "is not the key of --tls-cert");
    assert_bad("service-key", "service-key", NULL, "holds no certificate in PEM");
    assert_bad("service", "service", NULL, "--tls-key: ");
    assert_bad("service", "service-key", "other-ca", "is not signed by a CA in --tls-ca");
    assert_bad("service", "service-key", "service-key", "--tls-ca: ");
    assert_bad("nowhere", "service-key", NULL, "--tls-cert: cannot open");
    pki_make("ca", "turn", "127.0.0.1", -DAY, DAY / 2);
    assert_bad("turn", "turn-key", NULL, "has expired");
    pki_make("ca", "turn", "127.0.0.1", DAY, DAY);
    assert_bad("turn", "turn-key", NULL, "is not valid yet");
}

static void a_key_that_others_may_read_is_refused(void **state)
{
    (void)state;
    struct stat st;
    pki_make("ca", "turn", "127.0.0.1", -60, DAY);
    assert_int_equal(stat(pki_key("turn"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(chmod(pki_key("turn"), 0644), 0);
    assert_bad("turn", "turn-key", NULL, "has mode 0644");
    assert_int_equal(chmod(pki_key("turn"), 0600), 0);
}

static bool lasts(const char *name, int64_t left_s)
{
    const struct mr_certificate_files f = {
        .cert = pki_path("turn"), .key = pki_key("turn"), .ca = pki_path("ca")};
    return mr_certificate_lasts(&f, &(struct mr_texts){&name, 1}, left_s);
}

static void it_lasts_for_its_time_and_its_names(void **state)
{
    (void)state;
    pki_make("ca", "turn", "host.example", -60, 2 * DAY);
    assert_true(lasts("host.example", DAY));
    assert_false(lasts("host.example", 3 * DAY));
    assert_false(lasts("other.example", DAY));
    pki_make("ca", "turn", "::1", -60, 2 * DAY);
    assert_true(lasts("0:0:0:0:0:0:0:1", DAY));
    assert_false(lasts("127.0.0.1", DAY));
}

static void a_new_certificate_keeps_the_key(void **state)
{
    (void)state;
    struct mr_buf keys[2];
    for (size_t i = 0; i < 2; i++) {
        pki_make("ca", "turn", "127.0.0.1", -60, DAY);
        mr_buf_init(&keys[i], 65536);
        assert_int_equal(mr_file_read(pki_key("turn"), &keys[i], NULL), MR_OK);
    }
    assert_true(mr_str_eq(mr_buf_str(&keys[0]), mr_buf_str(&keys[1])));
    mr_buf_fini(&keys[0]);
    mr_buf_fini(&keys[1]);
}

static void a_name_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a,DNS:evil.example", "a b", "host:8470"};
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
        struct mr_error e = {0};
        const char *name = bad[i];
        const struct mr_certificate_spec spec = {
            .common_name = "x", .names = {&name, 1}, .lasts_s = DAY};
        assert_int_equal(mr_certificate_make(pki_path("ca"), pki_key("ca"), pki_path("turn"),
                             pki_key("turn"), &spec, &e),
            MR_EINVAL);
        assert_non_null(strstr(e.text, "neither a host name nor an IP address"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_made_is_good),
        cmocka_unit_test(what_does_not_work_is_refused_by_its_flag),
        cmocka_unit_test(a_key_that_others_may_read_is_refused),
        cmocka_unit_test(it_lasts_for_its_time_and_its_names),
        cmocka_unit_test(a_new_certificate_keeps_the_key),
        cmocka_unit_test(a_name_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, make_pki, remove_pki);
}
