/* Tokens and public addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "host/file.h"
#include "rpc/guard.h"
#include "rpc/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ONE "0123456789abcdef-one"
#define TWO "0123456789abcdef-two"

static char file[] = "/tmp/mr-guard-XXXXXX";

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    (void)close(fd);
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file);
}

static int open_guard(const char *text, mode_t mode, struct mr_rpc_guard **out, struct mr_error *e)
{
    assert_int_equal(mr_file_write(file, mr_str(text), mode, e), MR_OK);
    return mr_rpc_guard_new(file, out, e);
}

static void every_token_of_the_file_is_known_and_nothing_else(void **state)
{
    (void)state;
    struct mr_rpc_guard *g = NULL;
    struct mr_error e;
    assert_int_equal(open_guard(ONE "\n\n" TWO "\r\n", 0600, &g, &e), MR_OK);
    assert_string_equal(mr_rpc_guard_token(g), ONE);
    assert_non_null(mr_rpc_guard_auth(g));
    assert_true(mr_rpc_guard_knows(g, MR_STR("Bearer " ONE)));
    assert_true(mr_rpc_guard_knows(g, MR_STR("Bearer " TWO)));
    static const char *const wrong[] = {"", "Bearer ", ONE, "Bearer " ONE "x", "bearer " ONE,
        "Bearer 0123456789abcdef-on", "Basic " ONE, "Bearer \n"};
    for (size_t i = 0; i < MR_ARRAY_LEN(wrong); i++)
        assert_false(mr_rpc_guard_knows(g, mr_str(wrong[i])));
    mr_rpc_guard_free(&g);
}

static void a_bad_token_file_is_refused_in_words(void **state)
{
    (void)state;
    struct mr_rpc_guard *g = NULL;
    struct mr_error e;
    assert_int_equal(open_guard("short\n", 0600, &g, &e), MR_EINVAL);
    assert_int_equal(open_guard("0123456789abcdef 0123\n", 0600, &g, &e), MR_EINVAL);
    assert_int_equal(open_guard("\n\n", 0600, &g, &e), MR_EINVAL);
    assert_int_equal(open_guard(ONE "\n", 0640, &g, &e), MR_EPERM);
    assert_int_equal(mr_rpc_guard_new("/nonexistent/token", &g, &e), MR_ENOENT);
    assert_null(g);
}

static void only_loopback_and_unix_are_ours_alone(void **state)
{
    (void)state;
    static const char *const ours[] = {"unix:/x", "127.0.0.1:80", "127.3.2.1:0", "ipv4:127.0.0.1:1",
        "localhost:5", "[::1]:5", "ipv6:[::1]:5"};
    static const char *const others[] = {"0.0.0.0:80", "[::]:80", "10.0.0.1:1", "127.evil.test:1",
        "localhost.evil.test:1", "host:1", "ipv4:1.2.3.4:5", ":80", "1270.0.0.1:1", "*:80"};
    for (size_t i = 0; i < MR_ARRAY_LEN(ours); i++)
        assert_false(mr_rpc_address_is_public(ours[i]));
    for (size_t i = 0; i < MR_ARRAY_LEN(others); i++)
        assert_true(mr_rpc_address_is_public(others[i]));
}

static void a_public_address_without_tokens_is_refused(void **state)
{
    (void)state;
    struct mr_rpc_guard *g = NULL;
    struct mr_error e;
    assert_int_equal(mr_rpc_guard_new(NULL, &g, &e), MR_OK);
    assert_null(mr_rpc_guard_token(g));
    assert_null(mr_rpc_guard_auth(g));
    struct mr_rpc_loop *loop = mr_rpc_loop_new();
    struct mr_rpc_server *server = mr_rpc_server_new(loop, NULL);
    int port = 0;
    assert_int_equal(mr_rpc_guard_listen(g, server, "0.0.0.0:0", &port, &e), MR_EPERM);
    assert_non_null(strstr(e.text, "--token-file"));
    assert_int_equal(mr_rpc_guard_listen(g, server, "127.0.0.1:0", &port, &e), MR_OK);
    assert_true(port > 0);
    mr_rpc_server_start(server);
    mr_rpc_server_close(&server, 0);
    mr_rpc_loop_free(&loop);
    mr_rpc_guard_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_of_the_file_is_known_and_nothing_else),
        cmocka_unit_test(a_bad_token_file_is_refused_in_words),
        cmocka_unit_test(only_loopback_and_unix_are_ours_alone),
        cmocka_unit_test(a_public_address_without_tokens_is_refused),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
