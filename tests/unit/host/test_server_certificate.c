/* host/tls/server_certificate: while the process has no free descriptor, the files of the
 * certificate cannot be read. The next check with a free descriptor must read the files, although
 * they have not changed since. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/clock.h"
#include "host/tls/server_certificate.h"
#include "tests/support/tls_rig.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TIMEOUT (60 * MR_SECOND)
#define LOOK (2 * MR_SECOND) /* least time between two checks of the files */

/* Returns the length of the serial number of the certificate that a new connection would get; `out`
 * gets the number. */
static unsigned serial_of_served(unsigned char out[64])
{
    gnutls_pcert_st *certs = NULL;
    gnutls_privkey_t key = NULL;
    unsigned count = 0;
    size_t n = 64;
    gnutls_x509_crt_t cert;
    assert_int_equal(mr_server_certificate_pick(NULL, NULL, 0, NULL, 0, &certs, &count, &key), 0);
    assert_true(count > 0);
    assert_int_equal(gnutls_x509_crt_init(&cert), 0);
    assert_int_equal(gnutls_x509_crt_import(cert, &certs[0].cert, GNUTLS_X509_FMT_DER), 0);
    assert_int_equal(gnutls_x509_crt_get_serial(cert, out, &n), 0);
    gnutls_x509_crt_deinit(cert);
    return (unsigned)n;
}

static bool is_served(const unsigned char *serial, unsigned n)
{
    unsigned char now[64];
    return serial_of_served(now) == n && !memcmp(now, serial, n);
}

static void a_want_of_descriptors_is_got_over(void **state)
{
    (void)state;
    struct mr_error e = {0};
    unsigned char first[64];
    struct rlimit limit;
    pki_make("ca", "turn", "127.0.0.1", -60, DAY);
    const struct mr_certificate_files files = {.cert = pki_path("turn"), .key = pki_key("turn")};
    if (mr_server_certificate_open(&files, &e)) fail_msg("%s", e.text);
    unsigned n = serial_of_served(first);

    pki_make("ca", "turn", "127.0.0.1", -60, 2 * DAY);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int next = dup(STDIN_FILENO);
    assert_true(next >= 0);
    assert_int_equal(close(next), 0);
    const struct rlimit none = {(rlim_t)next, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    mr_time until = mr_time_after(mr_clock_now(), LOOK + LOOK / 4);
    bool kept = true;
    /* One check of the files falls into this time, and cannot open them. */
    while (mr_clock_now() < until) {
        kept = kept && is_served(first, n);
        mr_clock_sleep(50 * MR_MS);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(kept);

    until = mr_time_after(mr_clock_now(), TIMEOUT);
    while (is_served(first, n)) {
        assert_true(mr_clock_now() < until);
        mr_clock_sleep(50 * MR_MS);
    }
    mr_server_certificate_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_want_of_descriptors_is_got_over),
    };
    return cmocka_run_group_tests(tests, make_pki, remove_pki);
}
