/* rpc/util/auth: which caller may call which method, and which addresses are public. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "host/os/file.h"
#include "proto/methods.h"
#include "rpc/util/auth.h"
#include "rpc/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ADA "0123456789abcdef-ada"
#define UWE "0123456789abcdef-uwe"
#define RITA "0123456789abcdef-rita"
#define SECRET "fedcba9876543210-new"
#define OLD_SECRET "fedcba9876543210-old"

#define GET "/millrace.v1.Jobs/Get"
#define SUBMIT "/millrace.v1.Jobs/Submit"
#define RETIRE "/millrace.v1.Cluster/Retire"
#define CONNECT "/millrace.v1.WorkerSession/Connect"
#define PULL "/millrace.v1.Objects/Pull"
#define REFLECT "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"

static char tokens[] = "/tmp/mr-tokens-XXXXXX";
static char secret[] = "/tmp/mr-secret-XXXXXX";

static void write_file(const char *path, const char *text, mode_t mode)
{
    assert_int_equal(mr_file_write(path, mr_str(text), mode, NULL), MR_OK);
}

static int make_files(void **state)
{
    (void)state;
    (void)close(mkstemp(tokens));
    (void)close(mkstemp(secret));
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    return unlink(tokens) | unlink(secret);
}

static struct mr_rpc_auth *open_auth(bool has_tokens, bool has_secret)
{
    struct mr_rpc_auth *g = NULL;
    struct mr_error e = {0};
    write_file(tokens, ADA " admin ada\n" UWE " user uwe\n" RITA " reader rita\n", 0600);
    write_file(secret, SECRET "\n\n" OLD_SECRET "\r\n", 0600);
    const struct mr_rpc_auth_options o = {.token_file = has_tokens ? tokens : NULL,
        .secret_file = has_secret ? secret : NULL,
        .role_of = mr_proto_role,
        .callers_of = mr_proto_callers};
    if (mr_rpc_auth_new(&o, &g, &e)) fail_msg("%s", e.text);
    return g;
}

static int ask(const struct mr_rpc_auth *g, const char *method, const char *token, const char *user,
    const char *role)
{
    MR_AUTO(mr_free_ptr) char *authorization = token ? mr_format("Bearer %s", token) : NULL;
    const struct mr_rpc_credentials credentials = {
        .authorization = mr_str(authorization), .user = mr_str(user), .role = mr_str(role)};
    struct mr_error e = {0};
    int err = mr_rpc_auth_check(g, mr_str(method), &credentials, &e);
    assert_int_equal(err, e.code);
    assert_true(!err == !e.text[0]);
    return err;
}

static void a_user_may_what_the_role_of_the_token_allows(void **state)
{
    (void)state;
    struct mr_rpc_auth *g = open_auth(true, true);
    assert_non_null(mr_rpc_auth_callback(g));
    static const struct {
        const char *method;
        int reader, user, admin;
    } cases[] = {
        {GET, MR_OK, MR_OK, MR_OK},
        {REFLECT, MR_OK, MR_OK, MR_OK},
        {"/millrace.v1.Metrics/Read", MR_OK, MR_OK, MR_OK},
        {"/millrace.v1.Objects/Get", MR_OK, MR_OK, MR_OK},
        {SUBMIT, MR_EPERM, MR_OK, MR_OK},
        {"/millrace.v1.Jobs/SubmitStream", MR_EPERM, MR_OK, MR_OK},
        {"/millrace.v1.Jobs/Cancel", MR_EPERM, MR_OK, MR_OK},
        {"/millrace.v1.Objects/Put", MR_EPERM, MR_OK, MR_OK},
        {"/millrace.v1.Objects/Delete", MR_EPERM, MR_OK, MR_OK},
        {RETIRE, MR_EPERM, MR_EPERM, MR_OK},
        {PULL, MR_EPERM, MR_EPERM, MR_EPERM},
        {CONNECT, MR_EPERM, MR_EPERM, MR_EPERM},
        {"/millrace.v1.StoreSession/Connect", MR_EPERM, MR_EPERM, MR_EPERM},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        assert_int_equal(ask(g, cases[i].method, RITA, NULL, NULL), cases[i].reader);
        assert_int_equal(ask(g, cases[i].method, UWE, NULL, NULL), cases[i].user);
        assert_int_equal(ask(g, cases[i].method, ADA, NULL, NULL), cases[i].admin);
        assert_int_equal(ask(g, cases[i].method, NULL, NULL, NULL), MR_EAUTH);
        assert_int_equal(ask(g, cases[i].method, "0123456789abcdef", NULL, NULL), MR_EAUTH);
    }
    mr_rpc_auth_free(&g);
}

static void assert_shown(const struct mr_rpc_auth *g, const char *text)
{
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    mr_credential_add(mr_rpc_auth_credential(g, MR_SERVICE_WORKER), &b);
    assert_true(mr_str_eq(mr_buf_str(&b), mr_str(text)));
    mr_buf_fini(&b);
}

static void who_shows_the_secret_is_the_cluster_or_the_user_it_passes_on(void **state)
{
    (void)state;
    for (int with_tokens = 0; with_tokens < 2; with_tokens++) {
        struct mr_rpc_auth *g = open_auth(with_tokens, true);
        assert_shown(g, "Bearer " SECRET);
        assert_int_equal(ask(g, CONNECT, SECRET, NULL, NULL), MR_OK);
        assert_int_equal(ask(g, PULL, OLD_SECRET, NULL, NULL), MR_OK);
        assert_int_equal(ask(g, RETIRE, SECRET, NULL, NULL), MR_OK);
        assert_int_equal(ask(g, GET, SECRET, "rita", "reader"), MR_OK);
        assert_int_equal(ask(g, SUBMIT, SECRET, "rita", "reader"), MR_EPERM);
        assert_int_equal(ask(g, SUBMIT, SECRET, "uwe", "user"), MR_OK);
        assert_int_equal(ask(g, RETIRE, SECRET, "uwe", "user"), MR_EPERM);
        assert_int_equal(ask(g, RETIRE, SECRET, "ada", "admin"), MR_OK);
        assert_int_equal(ask(g, CONNECT, SECRET, "ada", "admin"), MR_EPERM);
        assert_int_equal(ask(g, CONNECT, SECRET, "ada", "service"), MR_EINVAL);
        assert_int_equal(ask(g, GET, SECRET, "ada", NULL), MR_EINVAL);
        assert_int_equal(ask(g, GET, SECRET, NULL, "admin"), MR_EINVAL);
        mr_rpc_auth_free(&g);
    }
}

static void nobody_else_may_say_who_is_asking(void **state)
{
    (void)state;
    struct mr_rpc_auth *g = open_auth(true, true);
    assert_int_equal(ask(g, RETIRE, RITA, "ada", "admin"), MR_EPERM);
    assert_int_equal(ask(g, GET, RITA, "rita", "reader"), MR_EPERM);
    assert_int_equal(ask(g, GET, NULL, "ada", "admin"), MR_EAUTH);
    mr_rpc_auth_free(&g);
    g = open_auth(false, true);
    assert_int_equal(ask(g, GET, NULL, "rita", "reader"), MR_EPERM);
    assert_int_equal(ask(g, GET, NULL, NULL, "admin"), MR_EPERM);
    mr_rpc_auth_free(&g);
}

static void without_tokens_a_local_caller_is_an_admin_and_no_service(void **state)
{
    (void)state;
    struct mr_rpc_auth *g = open_auth(false, true);
    assert_int_equal(ask(g, RETIRE, NULL, NULL, NULL), MR_OK);
    assert_int_equal(ask(g, CONNECT, NULL, NULL, NULL), MR_EPERM);
    assert_int_equal(ask(g, GET, ADA, NULL, NULL), MR_EAUTH);
    mr_rpc_auth_free(&g);
    g = open_auth(false, false);
    assert_null(mr_rpc_auth_credential(g, MR_SERVICE_WORKER));
    assert_null(mr_rpc_auth_callback(g));
    mr_rpc_auth_free(&g);
}

static int try_secret(const char *text, mode_t mode, struct mr_error *e)
{
    struct mr_rpc_auth *g = NULL;
    write_file(secret, text, mode);
    const struct mr_rpc_auth_options o = {
        .secret_file = secret, .role_of = mr_proto_role, .callers_of = mr_proto_callers};
    int err = mr_rpc_auth_new(&o, &g, e);
    assert_null(g);
    assert_non_null(strstr(e->text, "--secret-file: "));
    return err;
}

static void a_bad_secret_file_is_refused_in_words(void **state)
{
    (void)state;
    struct mr_error e;
    assert_int_equal(try_secret("\nshort\n", 0600, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "line 2: a token has"));
    assert_int_equal(try_secret("0123456789abcdef 0123\n", 0600, &e), MR_EINVAL);
    assert_null(strstr(e.text, "0123456789"));
    assert_int_equal(try_secret("\n\n", 0600, &e), MR_EINVAL);
    assert_int_equal(try_secret(SECRET "\n", 0640, &e), MR_EPERM);
}

static void tokens_want_a_secret_beside_them(void **state)
{
    (void)state;
    struct mr_rpc_auth *g = NULL;
    struct mr_error e;
    const struct mr_rpc_auth_options o = {
        .token_file = tokens, .role_of = mr_proto_role, .callers_of = mr_proto_callers};
    assert_int_equal(mr_rpc_auth_new(&o, &g, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "--secret-file"));
}

/* If a token were also a secret, its user would be taken for a service. */
static void a_secret_is_no_users_token(void **state)
{
    (void)state;
    struct mr_rpc_auth *g = NULL;
    struct mr_error e;
    write_file(tokens, OLD_SECRET " reader rita\n", 0600);
    write_file(secret, SECRET "\n" OLD_SECRET "\n", 0600);
    const struct mr_rpc_auth_options o = {.token_file = tokens,
        .secret_file = secret,
        .role_of = mr_proto_role,
        .callers_of = mr_proto_callers};
    assert_int_equal(mr_rpc_auth_new(&o, &g, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "rita"));
    assert_null(strstr(e.text, OLD_SECRET));
    mr_rpc_auth_free(&g);
}

static void only_loopback_and_unix_are_ours_alone(void **state)
{
    (void)state;
    static const char *const ours[] = {"unix:/x", "127.0.0.1:80", "127.3.2.1:0", "ipv4:127.0.0.1:1",
        "localhost:5", "[::1]:5", "ipv6:[::1]:5"};
    static const char *const others[] = {"0.0.0.0:80", "[::]:80", "10.0.0.1:1", "127.evil.test:1",
        "localhost.evil.test:1", "host:1", "ipv4:1.2.3.4:5", ":80", "1270.0.0.1:1", "*:80",
        "127.0.0.1.evil.test:1", "unix-abstract:x", "127.1:80"};
    for (size_t i = 0; i < MR_ARRAY_LEN(ours); i++)
        assert_false(mr_rpc_address_is_public(ours[i]));
    for (size_t i = 0; i < MR_ARRAY_LEN(others); i++)
        assert_true(mr_rpc_address_is_public(others[i]));
}

static void a_public_address_without_tokens_is_refused(void **state)
{
    (void)state;
    struct mr_error e;
    /* A secret file alone does not allow public addresses. */
    struct mr_rpc_auth *g = open_auth(false, true);
    struct mr_rpc_loop *loop = mr_rpc_loop_new();
    struct mr_rpc_server *server = mr_rpc_server_new(loop, NULL);
    int port = 0;
    assert_int_equal(mr_rpc_auth_listen(g, server, "0.0.0.0:0", &port, &e), MR_EPERM);
    assert_non_null(strstr(e.text, "--token-file"));
    assert_int_equal(mr_rpc_auth_listen(g, server, "127.0.0.1:0", &port, &e), MR_OK);
    assert_true(port > 0);
    mr_rpc_server_start(server);
    mr_rpc_server_close(&server, 0);
    mr_rpc_loop_free(&loop);
    mr_rpc_auth_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_may_what_the_role_of_the_token_allows),
        cmocka_unit_test(who_shows_the_secret_is_the_cluster_or_the_user_it_passes_on),
        cmocka_unit_test(nobody_else_may_say_who_is_asking),
        cmocka_unit_test(without_tokens_a_local_caller_is_an_admin_and_no_service),
        cmocka_unit_test(a_bad_secret_file_is_refused_in_words),
        cmocka_unit_test(tokens_want_a_secret_beside_them),
        cmocka_unit_test(only_loopback_and_unix_are_ours_alone),
        cmocka_unit_test(a_public_address_without_tokens_is_refused),
        cmocka_unit_test(a_secret_is_no_users_token),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
