/* lib/rpc TLS: TLS on TCP ports, mutual TLS between services, and the error texts for refused
 * peers. */
#include "tests/unit/rpc/rig.h"

#include "host/os/file.h"
#include "proto/methods.h"
#include "rpc/util/auth.h"
#include "rpc/tls.h"
#include "tests/support/tls_rig.h"

#define SECRET "0123456789abcdef-secret"
#define TOKEN "0123456789abcdef-token"

static struct mr_certificate_files files_of(const char *ca, const char *cert)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s-key", cert ? cert : "");
    return (struct mr_certificate_files){.ca = pki_path(ca),
        .cert = cert ? pki_path(cert) : NULL,
        .key = cert ? pki_path(name) : NULL};
}

static struct mr_rpc_tls *open_tls(const char *ca, const char *cert)
{
    struct mr_rpc_tls *t = NULL;
    struct mr_error e = {0};
    const struct mr_rpc_tls_options o = {.files = files_of(ca, cert), .refresh = MR_SECOND};
    if (mr_rpc_tls_open(&o, &t, &e)) fail_msg("%s", e.text);
    return t;
}

struct ends {
    struct world w;
    struct mr_rpc_tls *server, *client;
};

static void open_ends(struct ends *n, struct mr_rpc_tls *server, struct mr_rpc_tls *client,
    const struct mr_rpc_auth *auth, const char *bearer)
{
    struct world *w = &n->w;
    struct mr_error e = {0};
    int port = 0;
    *n = (struct ends){.server = server, .client = client};
    world_of_server = w;
    w->loop = mr_rpc_loop_new();
    const struct mr_rpc_server_options o = {.tls = server,
        .auth = auth ? mr_rpc_auth_callback(auth) : NULL,
        .auth_ctx = (void *)(uintptr_t)auth};
    w->server = mr_rpc_server_new(w->loop, &o);
    mr_rpc_server_add_service(w->server, &service, w);
    if (mr_rpc_server_listen(w->server, "127.0.0.1:0", &port, &e)) fail_msg("%s", e.text);
    mr_rpc_server_start(w->server);
    (void)snprintf(w->address, sizeof w->address, "127.0.0.1:%d", port);
    const struct mr_rpc_channel_options c = {.tls = client, .bearer = bearer};
    w->channel = mr_rpc_channel_open(w->loop, w->address, &c);
}

static void reconnect(struct ends *n, struct mr_rpc_tls *client)
{
    mr_rpc_channel_close(&n->w.channel);
    mr_rpc_tls_free(&n->client);
    n->client = client;
    const struct mr_rpc_channel_options c = {.tls = client};
    n->w.channel = mr_rpc_channel_open(n->w.loop, n->w.address, &c);
}

static void close_ends(struct ends *n)
{
    mr_rpc_channel_close(&n->w.channel);
    mr_rpc_server_close(&n->w.server, MR_SECOND);
    mr_rpc_loop_free(&n->w.loop);
    mr_rpc_tls_free(&n->server);
    mr_rpc_tls_free(&n->client);
}

/* Checks that a call fails with UNAVAILABLE and that the error text has `words`, the address and
 * the flag. */
static void assert_refused(struct ends *n, const char *words, const char *flag)
{
    n->w.at_server = (struct seen){0};
    ask(&n->w, "/test.Service/Echo", MR_STR("x"));
    assert_int_equal(n->w.at_client.code, 14);
    if (!strstr(n->w.at_client.text, words) || !strstr(n->w.at_client.text, flag) ||
        !strstr(n->w.at_client.text, n->w.address))
        fail_msg("\"%s\" does not say \"%s\", %s and %s", n->w.at_client.text, words, flag,
            n->w.address);
    assert_int_equal(n->w.at_server.opened, 0);
    close_ends(n);
}

static void services_that_one_ca_has_signed_understand_each_other(void **state)
{
    (void)state;
    struct ends n;
    open_ends(&n, open_tls("ca", "service"), open_tls("ca", "service"), NULL, NULL);
    ask(&n.w, "/test.Service/Echo", MR_STR("x"));
    assert_int_equal(n.w.at_client.code, 0);
    assert_string_equal(n.w.at_client.last, "x");
    close_ends(&n);
}

static void a_plain_client_at_a_port_with_tls_is_told_of_tls(void **state)
{
    (void)state;
    struct ends n;
    open_ends(&n, open_tls("ca", "service"), NULL, NULL, NULL);
    assert_refused(&n, "it requires TLS", "--tls-ca");
}

static void a_client_with_tls_at_a_plain_port_is_told_of_tls(void **state)
{
    (void)state;
    struct ends n;
    open_ends(&n, NULL, open_tls("ca", "service"), NULL, NULL);
    assert_refused(&n, "does not use TLS", "--tls-cert");
}

static void a_server_of_another_ca_is_refused(void **state)
{
    (void)state;
    struct ends n;
    open_ends(&n, open_tls("other-ca", "enemy"), open_tls("ca", "service"), NULL, NULL);
    assert_refused(&n, "no CA in --tls-ca has signed it", "--tls-ca");
}

static void a_server_of_another_name_is_refused(void **state)
{
    (void)state;
    struct ends n;
    open_ends(&n, open_tls("ca", "elsewhere"), open_tls("ca", "service"), NULL, NULL);
    assert_refused(&n, "it is for another host", "--tls-cert");
}

/* Opens a certificate that is valid now, then replaces its files by a certificate of `ca` that
 * begins `begins_s` seconds from now and lasts `lasts_s` seconds. */
static struct mr_rpc_tls *open_turned(const char *ca, int64_t begins_s, int64_t lasts_s)
{
    pki_make("ca", "turn", "127.0.0.1", -60, DAY);
    struct mr_rpc_tls *t = open_tls("ca", "turn");
    pki_make(ca, "turn", "127.0.0.1", begins_s, lasts_s);
    return t;
}

static void an_expired_server_is_refused(void **state)
{
    (void)state;
    struct ends n;
    open_ends(&n, open_turned("ca", -60, 30), open_tls("ca", "service"), NULL, NULL);
    assert_refused(&n, "it has expired", "--tls-ca");
}

static void a_client_of_another_ca_or_an_expired_one_is_refused(void **state)
{
    (void)state;
    struct ends n;
    open_ends(&n, open_tls("ca", "service"), open_turned("other-ca", -60, DAY), NULL, NULL);
    assert_refused(&n, "refuses this program's certificate", "--tls-cert");
    open_ends(&n, open_tls("ca", "service"), open_turned("ca", -60, 30), NULL, NULL);
    assert_refused(&n, "refuses this program's certificate", "--tls-cert");
}

/* While the server runs, its certificate is replaced by a certificate of another CA. From then on
 * the server must serve clients that trust the other CA. Each request uses a new connection. */
static void a_certificate_that_changes_on_disk_is_used_without_a_restart(void **state)
{
    (void)state;
    struct ends n;
    pki_make("ca", "turn", "127.0.0.1", -60, DAY);
    open_ends(&n, open_tls("ca", "turn"), open_tls("ca", NULL), NULL, NULL);
    ask(&n.w, "/test.Service/Echo", MR_STR("before"));
    assert_int_equal(n.w.at_client.code, 0);
    reconnect(&n, open_tls("other-ca", NULL));
    ask(&n.w, "/test.Service/Echo", MR_STR("too early"));
    assert_int_equal(n.w.at_client.code, 14);

    pki_make("other-ca", "turn", "127.0.0.1", -60, DAY);
    mr_time until = mr_clock_now() + TIMEOUT;
    do {
        assert_true(mr_clock_now() < until);
        (void)mr_rpc_loop_run(n.w.loop, mr_clock_now() + 100 * MR_MS);
        reconnect(&n, open_tls("other-ca", NULL));
        ask(&n.w, "/test.Service/Echo", MR_STR("after"));
    } while (n.w.at_client.code);
    assert_string_equal(n.w.at_client.last, "after");
    close_ends(&n);
}

/* While the client runs, another CA is added to its CA file. From then on its channel must trust
 * servers of that CA. */
static void a_ca_that_changes_on_disk_is_believed_without_a_restart(void **state)
{
    (void)state;
    struct ends n;
    struct mr_buf ca, other;
    mr_buf_init(&ca, 65536);
    mr_buf_init(&other, 65536);
    assert_int_equal(mr_file_read(pki_path("ca"), &ca, NULL), MR_OK);
    assert_int_equal(mr_file_read(pki_path("other-ca"), &other, NULL), MR_OK);
    assert_int_equal(mr_file_write(pki_path("turn"), mr_buf_str(&ca), 0644, NULL), MR_OK);
    open_ends(&n, open_tls("other-ca", "enemy"), open_tls("turn", NULL), NULL, NULL);
    ask(&n.w, "/test.Service/Echo", MR_STR("x"));
    assert_int_equal(n.w.at_client.code, 14);

    mr_buf_add_str(&ca, mr_buf_str(&other));
    assert_int_equal(mr_file_write(pki_path("turn"), mr_buf_str(&ca), 0644, NULL), MR_OK);
    mr_time until = mr_clock_now() + TIMEOUT;
    do {
        assert_true(mr_clock_now() < until);
        (void)mr_rpc_loop_run(n.w.loop, mr_clock_now() + 100 * MR_MS);
        ask(&n.w, "/test.Service/Echo", MR_STR("x"));
    } while (n.w.at_client.code);
    close_ends(&n);
    mr_buf_fini(&ca);
    mr_buf_fini(&other);
}

/* ---- who may what ---------------------------------------------------------------------------- */

static enum mr_role role_of(struct mr_str method)
{
    return mr_str_eq(method, MR_STR("/test.Service/Count")) ? MR_ROLE_SERVICE : MR_ROLE_READER;
}

static struct mr_rpc_auth *open_auth(void)
{
    struct mr_rpc_auth *g = NULL;
    struct mr_error e = {0};
    const char *tokens = pki_path("turn"), *secret = pki_path("turn-key");
    assert_int_equal(mr_file_write(tokens, MR_STR(TOKEN " user uwe\n"), 0600, NULL), MR_OK);
    assert_int_equal(mr_file_write(secret, MR_STR(SECRET "\n"), 0600, NULL), MR_OK);
    const struct mr_rpc_auth_options o = {.token_file = tokens,
        .secret_file = secret,
        .role_of = role_of,
        .callers_of = mr_proto_callers};
    if (mr_rpc_auth_new(&o, &g, &e)) fail_msg("%s", e.text);
    return g;
}

static int code_of(const char *cert, const char *bearer, const char *method, char text[512])
{
    struct ends n;
    struct mr_rpc_auth *g = open_auth();
    open_ends(&n, open_tls("ca", "service"), open_tls("ca", cert), g, bearer);
    ask(&n.w, method, MR_STR("1"));
    (void)snprintf(text, 512, "%s", n.w.at_client.text);
    int code = n.w.at_client.code;
    close_ends(&n);
    mr_rpc_auth_free(&g);
    return code;
}

static void a_user_shows_a_token_and_a_service_a_certificate_too(void **state)
{
    (void)state;
    char text[512];
    assert_int_equal(code_of(NULL, TOKEN, "/test.Service/Echo", text), 0);
    assert_int_equal(code_of("service", SECRET, "/test.Service/Count", text), 0);
    assert_int_equal(code_of(NULL, SECRET, "/test.Service/Count", text), 16);
    assert_non_null(strstr(text, "--tls-cert"));
    assert_int_equal(code_of(NULL, SECRET, "/test.Service/Echo", text), 16);
    assert_int_equal(code_of("service", TOKEN, "/test.Service/Count", text), 7);
    assert_int_equal(code_of("service", NULL, "/test.Service/Count", text), 16);
}

/* This test runs last, because it changes the TLS of the whole process. */
static void a_process_wide_choice_holds_for_tcp_and_not_for_unix(void **state)
{
    (void)state;
    struct ends n;
    struct mr_error e = {0};
    struct mr_certificate_files files = files_of("ca", NULL);
    assert_int_equal(mr_rpc_tls_use(&(struct mr_certificate_files){0}, &e), MR_OK);
    assert_false(mr_rpc_tls_is_used());
    /* the CA alone is not enough: a service also needs a certificate and its key */
    assert_int_equal(mr_rpc_tls_use(&files, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "--tls-cert"));
    files = files_of("ca", "service");
    files.ca = NULL;
    assert_int_equal(mr_rpc_tls_use(&files, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "--tls-ca"));

    files = files_of("ca", "service");
    assert_int_equal(mr_rpc_tls_use(&files, &e), MR_OK);
    open_ends(&n, NULL, NULL, NULL, NULL);
    ask(&n.w, "/test.Service/Echo", MR_STR("x"));
    assert_int_equal(n.w.at_client.code, 0);
    reconnect(&n, open_tls("other-ca", NULL));
    assert_refused(&n, "no CA in --tls-ca has signed it", "--tls-ca");
    struct world *w = make_world(false, NULL);
    ask(w, "/test.Service/Echo", MR_STR("x"));
    assert_int_equal(w->at_client.code, 0);
    (void)teardown((void **)&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(services_that_one_ca_has_signed_understand_each_other),
        cmocka_unit_test(a_plain_client_at_a_port_with_tls_is_told_of_tls),
        cmocka_unit_test(a_client_with_tls_at_a_plain_port_is_told_of_tls),
        cmocka_unit_test(a_server_of_another_ca_is_refused),
        cmocka_unit_test(a_server_of_another_name_is_refused),
        cmocka_unit_test(an_expired_server_is_refused),
        cmocka_unit_test(a_client_of_another_ca_or_an_expired_one_is_refused),
        cmocka_unit_test(a_certificate_that_changes_on_disk_is_used_without_a_restart),
        cmocka_unit_test(a_ca_that_changes_on_disk_is_believed_without_a_restart),
        cmocka_unit_test(a_user_shows_a_token_and_a_service_a_certificate_too),
        cmocka_unit_test(a_process_wide_choice_holds_for_tcp_and_not_for_unix),
    };
    return cmocka_run_group_tests(tests, make_pki, remove_pki);
}
