/* Hosts, origins, content types, quota keys of clients, and counters of several services joined
 * into one page. */
#include "gateway/server/accept.h"
#include "gateway/http/origin.h"
#include "gateway/http/media.h"
#include "gateway/metrics/prometheus.h"

#include "base/alloc.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include <cmocka.h>

static void only_listed_hosts_and_our_own_pages_pass(void **state)
{
    (void)state;
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]", "Mill.example"};
    static const char *const good[] = {
        "localhost", "localhost:8470", "LOCALHOST:1", "127.0.0.1:80", "[::1]:8470", "mill.example"};
    static const char *const bad[] = {"evil.example", "localhost.evil.example", "127.0.0.1.nip.io",
        "", ":8470", "[::1", "localhosts"};
    for (size_t i = 0; i < MR_ARRAY_LEN(good); i++)
        assert_int_equal(
            mr_origin_check_host(mr_str(good[i]), names, MR_ARRAY_LEN(names), NULL), MR_OK);
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
        assert_int_equal(
            mr_origin_check_host(mr_str(bad[i]), names, MR_ARRAY_LEN(names), NULL), MR_EPERM);

    struct mr_str host = MR_STR("localhost:8470");
    assert_int_equal(mr_origin_check(mr_str_of(NULL, 0), host, NULL), MR_OK);
    assert_int_equal(mr_origin_check(MR_STR("http://localhost:8470"), host, NULL), MR_OK);
    assert_int_equal(mr_origin_check(MR_STR("https://localhost:8470"), host, NULL), MR_OK);
    static const char *const foreign[] = {"null", "", "http://localhost:3000", "http://localhost",
        "http://localhost:8470.evil.example", "ftp://localhost:8470", "http://evil.example"};
    for (size_t i = 0; i < MR_ARRAY_LEN(foreign); i++)
        assert_int_equal(mr_origin_check(mr_str(foreign[i]), host, NULL), MR_EPERM);
}

static void accept_picks_by_quality_and_most_specific_range(void **state)
{
    (void)state;
    static const char *const offers[] = {"application/json", "text/event-stream"};
    static const struct {
        const char *accept;
        int picked;
    } cases[] = {{"", 0}, {"*/*", 0}, {"application/json", 0}, {"text/event-stream", 1},
        {"text/*", 1}, {"application/json;q=0.1, text/event-stream", 1},
        {"text/event-stream;q=0, */*", 0}, {"*/*;q=0.5, text/event-stream", 1}, {"text/html", -1},
        {"application/json;q=0", -1}, {"APPLICATION/JSON", 0}, {",,;;=", -1}, {"a/b;q=", -1},
        {"application/json; charset=utf-8; q=0.9", 0}};
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        int got = mr_media_pick(mr_str(cases[i].accept), offers, MR_ARRAY_LEN(offers));
        if (got != cases[i].picked) fail_msg("\"%s\": %d", cases[i].accept, got);
    }
    assert_true(mr_media_is(MR_STR("Application/JSON ; charset=utf-8"), "application/json"));
    assert_false(mr_media_is(MR_STR("application/jsonx"), "application/json"));
    assert_false(mr_media_is(mr_str_of(NULL, 0), "application/json"));
}

static void labels_are_escaped(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    mr_buf_add_text(&b, "x{");
    mr_prometheus_label(&b, "a", "1");
    mr_prometheus_label(&b, "b", "q\"\\\n");
    mr_buf_add_byte(&b, 0);
    assert_string_equal(b.p, "x{a=\"1\",b=\"q\\\"\\\\\\n\"");
    mr_buf_fini(&b);
}

static void counters_of_two_services_are_joined_by_family(void **state)
{
    (void)state;
    struct mr_prometheus *p = mr_prometheus_new();
    struct mr_buf b;
    mr_prometheus_add(p,
        MR_STR("# HELP b B.\n# TYPE b histogram\nb_bucket{le=\"1\"} 2\nb_sum 3\nb_count 2\n"
               "# TYPE a counter\na 1\n\ngarbage\n7 8\n"),
        "instance=\"x\"");
    mr_prometheus_add(
        p, MR_STR("# HELP a Another.\n# TYPE a counter\na{l=\"}\"} 2"), "instance=\"y\"");
    mr_buf_init(&b, 10000);
    mr_prometheus_write(p, &b);
    mr_buf_add_byte(&b, 0);
    assert_string_equal(b.p,
        "# HELP a Another.\n# TYPE a counter\na{instance=\"x\"} 1\na{instance=\"y\",l=\"}\"} 2\n"
        "# HELP b B.\n# TYPE b histogram\nb_bucket{instance=\"x\",le=\"1\"} 2\n"
        "b_sum{instance=\"x\"} 3\nb_count{instance=\"x\"} 2\n");
    mr_buf_fini(&b);
    mr_prometheus_free(&p);
}

/* The key under which the connections of a client are counted is its IPv4 address or the first 64
 * bits of its IPv6 address. For an IPv4 address in IPv6 form (::ffff:192.0.2.7) the key is all 16
 * bytes. Clients on the gateway's own machine have an empty key and are not counted. */
static void clients_are_counted_by_address_and_neighbours_are_not(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        size_t key_n;
    } rows[] = {{"127.0.0.1", 0}, {"127.9.9.9", 0}, {"192.0.2.7", 4}, {"::1", 0},
        {"2001:db8::7", 8}, {"::ffff:127.0.0.1", 0}, {"::ffff:192.0.2.7", 16}};
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        struct sockaddr_in v4 = {.sin_family = AF_INET};
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
        bool is_v6 = strchr(rows[i].address, ':') != NULL;
        void *to = is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr;
        assert_int_equal(inet_pton(is_v6 ? AF_INET6 : AF_INET, rows[i].address, to), 1);
        const void *address = is_v6 ? (const void *)&v6 : (const void *)&v4;
        assert_int_equal(mr_accept_key(address).n, rows[i].key_n);
    }
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    assert_int_equal(mr_accept_key((const struct sockaddr *)&local).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_listed_hosts_and_our_own_pages_pass),
        cmocka_unit_test(accept_picks_by_quality_and_most_specific_range),
        cmocka_unit_test(clients_are_counted_by_address_and_neighbours_are_not),
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(counters_of_two_services_are_joined_by_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
