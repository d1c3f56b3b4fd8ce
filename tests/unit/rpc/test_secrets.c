/* lib/rpc secrets: each kind of service has a secret of its own and may call the methods that list
 * its kind. Files of secrets and tokens are read again when they change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "host/clock.h"
#include "host/tls/sha256.h"
#include "host/os/file.h"
#include "proto/methods.h"
#include "rpc/util/auth.h"
#include "rpc/util/token_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT (60 * MR_SECOND)
#define WORKER "a-worker-shows-this-1"
#define STORE "a-store-shows-this-22"
#define TRAINER "a-trainer-shows-this3"
#define GATEWAY "a-gateway-shows-this4"
#define NEXT "a-worker-shows-this-9"
#define PLAIN "0123456789abcdef-any"

static char path[] = "/tmp/mr-secrets-XXXXXX";
static char tokens[] = "/tmp/mr-users-XXXXXX";

static int make_files(void **state)
{
    (void)state;
    (void)close(mkstemp(path));
    (void)close(mkstemp(tokens));
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    return unlink(path) | unlink(tokens);
}

static void write_file(const char *to, const char *text)
{
    assert_int_equal(mr_file_write(to, mr_str(text), 0600, NULL), MR_OK);
}

static const char *accept(char line[160], const char *service, const char *secret)
{
    uint8_t hash[MR_SHA256_BYTES];
    mr_sha256(mr_str(secret), hash);
    int n = snprintf(line, 160, "accept %s sha256:", service);
    for (size_t i = 0; i < sizeof hash; i++)
        n += snprintf(line + n, 160 - (size_t)n, "%02x", hash[i]);
    (void)snprintf(line + n, 160 - (size_t)n, "\n");
    return line;
}

static void a_hash_is_that_of_other_programs(void **state)
{
    (void)state;
    char line[160];
    /* The hash was computed with `printf … | sha256sum`. */
    assert_string_equal(accept(line, "worker", "0123456789abcdef"),
        "accept worker "
        "sha256:9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f\n");
}

static struct mr_secrets *parse(const char *text)
{
    struct mr_secrets *s = NULL;
    struct mr_error e = {0};
    if (mr_secrets_parse(mr_str(text), &s, &e)) fail_msg("%s", e.text);
    return s;
}

static void lines_say_what_is_shown_and_what_is_accepted(void **state)
{
    (void)state;
    char line[2][160];
    MR_AUTO(mr_free_ptr)
    char *text = mr_format("# of the trainer\n\n show  scheduler " TRAINER "\r\n%s%s",
        accept(line[0], "worker", WORKER), accept(line[1], "gateway", GATEWAY));
    struct mr_secrets *s = parse(text);
    assert_string_equal(mr_secrets_shown(s, MR_SERVICE_SCHEDULER), TRAINER);
    assert_null(mr_secrets_shown(s, MR_SERVICE_OBJECTSTORE));
    assert_int_equal(mr_secrets_accepted(s, MR_STR(WORKER)), 1u << MR_SERVICE_WORKER);
    assert_int_equal(mr_secrets_accepted(s, MR_STR(GATEWAY)), 1u << MR_SERVICE_GATEWAY);
    /* The secret of a `show` line is sent to other services and is not accepted from them. */
    assert_int_equal(mr_secrets_accepted(s, MR_STR(TRAINER)), 0);
    assert_int_equal(mr_secrets_accepted(s, MR_STR("")), 0);
    /* A caller that presents the hash of a secret instead of the secret is not accepted. */
    assert_int_equal(mr_secrets_accepted(s, mr_str_of(line[0] + 14, 71)), 0);
    mr_secrets_free(&s);
}

static void a_plain_line_is_one_secret_for_all(void **state)
{
    (void)state;
    struct mr_secrets *s = parse(PLAIN "\n" NEXT "\nshow worker " WORKER "\n");
    assert_string_equal(mr_secrets_shown(s, MR_SERVICE_SCHEDULER), PLAIN);
    assert_string_equal(mr_secrets_shown(s, MR_SERVICE_WORKER), WORKER);
    assert_int_equal(mr_secrets_accepted(s, MR_STR(PLAIN)), MR_SERVICES_ALL);
    assert_int_equal(mr_secrets_accepted(s, MR_STR(NEXT)), MR_SERVICES_ALL);
    assert_int_equal(mr_secrets_accepted(s, MR_STR(WORKER)), 0);
    mr_secrets_free(&s);
}

static void a_bad_line_is_named_by_its_number(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "there is no secret in the file"},
        {"# nothing\n", "there is no secret in the file"},
        {"\nshow boss " WORKER, "line 2: service \"boss\" is none of scheduler, objectstore"},
        {"show worker", "line 1: it is none of SECRET, show SERVICE SECRET, accept"},
        {"show worker short", "line 1: a token has 16 to 256 bytes"},
        {"hide worker " WORKER, "line 1: it is none of"},
        {"show worker " WORKER " " WORKER, "line 1: it is none of"},
        {"show worker " WORKER "\nshow worker " NEXT,
            "line 2: an earlier line already has the secret for a worker"},
        {"accept worker " WORKER, "line 1: it is not accept SERVICE sha256:HEX"},
        {"accept worker sha256:0123456789abcdef", "line 1: it is not accept SERVICE"},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        struct mr_secrets *s = NULL;
        struct mr_error e;
        assert_int_equal(mr_secrets_parse(mr_str(cases[i][0]), &s, &e), MR_EINVAL);
        if (!strstr(e.text, cases[i][1])) fail_msg("case %zu: %s", i, e.text);
        assert_null(strstr(e.text, "shows-this"));
    }
}

/* ---- what a service may call ----------------------------------------------------------------- */

static struct mr_rpc_auth *open_auth(const char *token_file)
{
    struct mr_rpc_auth *g = NULL;
    struct mr_error e = {0};
    char line[4][160];
    MR_AUTO(mr_free_ptr)
    char *text = mr_format("%s%s%s%s", accept(line[0], "worker", WORKER),
        accept(line[1], "objectstore", STORE), accept(line[2], "trainer", TRAINER),
        accept(line[3], "gateway", GATEWAY));
    write_file(path, text);
    const struct mr_rpc_auth_options o = {.token_file = token_file,
        .secret_file = path,
        .role_of = mr_proto_role,
        .callers_of = mr_proto_callers};
    if (mr_rpc_auth_new(&o, &g, &e)) fail_msg("%s", e.text);
    return g;
}

static int ask(const struct mr_rpc_auth *g, const char *method, const char *secret,
    const char *user, const char *role, char text[256])
{
    MR_AUTO(mr_free_ptr) char *authorization = mr_format("Bearer %s", secret);
    const struct mr_rpc_credentials credentials = {
        .authorization = mr_str(authorization), .user = mr_str(user), .role = mr_str(role)};
    struct mr_error e = {0};
    int err = mr_rpc_auth_check(g, mr_str(method), &credentials, &e);
    (void)snprintf(text, 256, "%.255s", e.text);
    return err;
}

static void a_service_may_what_its_kind_is_listed_for(void **state)
{
    (void)state;
    char text[256];
    struct mr_rpc_auth *g = open_auth(NULL);
    static const struct {
        const char *method;
        int worker, store, trainer, gateway;
    } cases[] = {
        {"/millrace.v1.WorkerSession/Connect", MR_OK, MR_EPERM, MR_EPERM, MR_EPERM},
        {"/millrace.v1.StoreSession/Connect", MR_EPERM, MR_OK, MR_EPERM, MR_EPERM},
        {"/millrace.v1.Objects/Pull", MR_OK, MR_OK, MR_EPERM, MR_EPERM},
        {"/millrace.v1.Objects/Put", MR_EPERM, MR_EPERM, MR_EPERM, MR_EPERM},
        {"/millrace.v1.Jobs/Submit", MR_EPERM, MR_EPERM, MR_OK, MR_EPERM},
        {"/millrace.v1.Jobs/Cancel", MR_EPERM, MR_EPERM, MR_OK, MR_EPERM},
        {"/millrace.v1.Cluster/Retire", MR_EPERM, MR_EPERM, MR_EPERM, MR_EPERM},
        {"/millrace.v1.Cluster/Info", MR_EPERM, MR_OK, MR_EPERM, MR_OK},
        {"/millrace.v1.Trainings/Join", MR_OK, MR_EPERM, MR_EPERM, MR_EPERM},
        {"/millrace.v1.Trainings/Start", MR_EPERM, MR_EPERM, MR_EPERM, MR_EPERM},
        {"/millrace.v1.Channels/Append", MR_OK, MR_EPERM, MR_EPERM, MR_EPERM},
        {"/millrace.v1.Parameters/Push", MR_OK, MR_EPERM, MR_EPERM, MR_EPERM},
        {"/millrace.v1.Metrics/Read", MR_EPERM, MR_EPERM, MR_EPERM, MR_OK},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        const char *m = cases[i].method;
        assert_int_equal(ask(g, m, WORKER, NULL, NULL, text), cases[i].worker);
        assert_int_equal(ask(g, m, STORE, NULL, NULL, text), cases[i].store);
        assert_int_equal(ask(g, m, TRAINER, NULL, NULL, text), cases[i].trainer);
        assert_int_equal(ask(g, m, GATEWAY, NULL, NULL, text), cases[i].gateway);
        assert_int_equal(ask(g, m, PLAIN, NULL, NULL, text), MR_EAUTH);
    }
    (void)ask(g, "/millrace.v1.Jobs/Cancel", WORKER, NULL, NULL, text);
    assert_string_equal(text, "worker may not call millrace.v1.Jobs/Cancel");
    mr_rpc_auth_free(&g);
}

static void a_gateway_alone_passes_users_on(void **state)
{
    (void)state;
    char text[256];
    struct mr_rpc_auth *g = open_auth(NULL);
    assert_int_equal(ask(g, "/millrace.v1.Jobs/Cancel", GATEWAY, "uwe", "user", text), MR_OK);
    assert_int_equal(ask(g, "/millrace.v1.Jobs/Cancel", GATEWAY, "rita", "reader", text), MR_EPERM);
    assert_int_equal(ask(g, "/millrace.v1.Objects/Pull", GATEWAY, "ada", "admin", text), MR_EPERM);
    static const char *const others[] = {WORKER, STORE, TRAINER};
    for (size_t i = 0; i < MR_ARRAY_LEN(others); i++) {
        assert_int_equal(
            ask(g, "/millrace.v1.Jobs/Get", others[i], "ada", "admin", text), MR_EPERM);
        assert_non_null(strstr(text, " may not name a user (millrace-user, millrace-role)"));
    }
    mr_rpc_auth_free(&g);
}

/* CALLERS in proto/gen/api.py lists, for each method, the services that may call it. A method for
 * services only must list at least one service, because nobody else may call the method. */
static void every_method_for_services_has_a_caller(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MR_METHOD_COUNT; i++) {
        const struct mr_proto_method *m = mr_proto_method((enum mr_method_id)i);
        if (m->role == MR_ROLE_SERVICE && !m->callers) fail_msg("%s: nobody calls it", m->path);
        if (m->role == MR_ROLE_ADMIN && m->callers) fail_msg("%s: it is for admins", m->path);
        assert_int_equal(m->callers & ~MR_SERVICES_ALL, 0);
    }
}

/* ---- read again ------------------------------------------------------------------------------ */

static void a_changed_secret_counts_at_once_and_a_broken_file_is_not_taken(void **state)
{
    (void)state;
    char text[256], line[160];
    const char *connect = "/millrace.v1.WorkerSession/Connect";
    struct mr_rpc_auth *g = open_auth(NULL);
    assert_int_equal(ask(g, connect, NEXT, NULL, NULL, text), MR_EAUTH);
    write_file(path, accept(line, "worker", NEXT));
    /* The server does not know the secret, so it reads the file again at once. */
    assert_int_equal(ask(g, connect, NEXT, NULL, NULL, text), MR_OK);
    assert_int_equal(ask(g, connect, WORKER, NULL, NULL, text), MR_EAUTH);
    write_file(path, "accept worker nonsense\n");
    mr_time until = mr_time_after(mr_clock_now(), 3 * MR_SECOND);
    while (mr_clock_now() < until) { /* the server reads the broken file in this time, and keeps the
                                      * old secrets */
        assert_int_equal(ask(g, connect, NEXT, NULL, NULL, text), MR_OK);
        mr_clock_sleep(100 * MR_MS);
    }
    mr_rpc_auth_free(&g);
}

static void what_is_shown_changes_with_the_file(void **state)
{
    (void)state;
    struct mr_secret_file *f = NULL;
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    write_file(path, "show worker " WORKER "\n");
    assert_int_equal(mr_secret_file_open(path, &f, NULL), MR_OK);
    const struct mr_credential *c = mr_secret_file_credential(f, MR_SERVICE_WORKER);
    mr_credential_add(c, &b);
    assert_true(mr_str_eq(mr_buf_str(&b), MR_STR("Bearer " WORKER)));
    write_file(path, "show worker " NEXT "\n");
    mr_time until = mr_time_after(mr_clock_now(), TIMEOUT);
    while (!mr_str_eq(mr_buf_str(&b), MR_STR("Bearer " NEXT))) {
        assert_true(mr_clock_now() < until);
        mr_buf_clear(&b);
        mr_credential_add(c, &b);
        mr_clock_sleep(20 * MR_MS);
    }
    mr_buf_clear(&b);
    mr_credential_add(mr_secret_file_credential(f, MR_SERVICE_TRAINER), &b);
    assert_int_equal(b.n, 0);
    mr_buf_fini(&b);
    mr_secret_file_free(&f);
}

static void a_token_that_becomes_a_secret_is_not_taken(void **state)
{
    (void)state;
    char text[256];
    write_file(tokens, PLAIN " user uwe\n");
    struct mr_rpc_auth *g = open_auth(tokens);
    assert_int_equal(ask(g, "/millrace.v1.Jobs/Cancel", PLAIN, NULL, NULL, text), MR_OK);
    /* The user's token becomes a secret, too. With this token the user would be taken for a
     * service, so the token is refused. */
    write_file(path, PLAIN "\n");
    mr_time until = mr_time_after(mr_clock_now(), TIMEOUT);
    while (ask(g, "/millrace.v1.Jobs/Cancel", PLAIN, NULL, NULL, text) == MR_OK) {
        assert_true(mr_clock_now() < until);
        mr_clock_sleep(20 * MR_MS);
    }
    assert_int_equal(ask(g, "/millrace.v1.Objects/Pull", PLAIN, NULL, NULL, text), MR_EAUTH);
    /* The new token file is refused, because one of its tokens is a secret. */
    write_file(tokens, PLAIN " user uwe\n" NEXT " user new\n");
    assert_int_equal(ask(g, "/millrace.v1.Jobs/Cancel", NEXT, NULL, NULL, text), MR_EAUTH);
    write_file(tokens, NEXT " user new\n");
    assert_int_equal(ask(g, "/millrace.v1.Jobs/Cancel", NEXT, NULL, NULL, text), MR_OK);
    mr_rpc_auth_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hash_is_that_of_other_programs),
        cmocka_unit_test(lines_say_what_is_shown_and_what_is_accepted),
        cmocka_unit_test(a_plain_line_is_one_secret_for_all),
        cmocka_unit_test(a_bad_line_is_named_by_its_number),
        cmocka_unit_test(a_service_may_what_its_kind_is_listed_for),
        cmocka_unit_test(a_gateway_alone_passes_users_on),
        cmocka_unit_test(every_method_for_services_has_a_caller),
        cmocka_unit_test(a_changed_secret_counts_at_once_and_a_broken_file_is_not_taken),
        cmocka_unit_test(what_is_shown_changes_with_the_file),
        cmocka_unit_test(a_token_that_becomes_a_secret_is_not_taken),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
