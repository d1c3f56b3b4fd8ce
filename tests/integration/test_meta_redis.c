/* Tests store/meta/redis with a server that the test plays itself, so that the server can close a
 * connection at an exact moment. SIGPIPE has its default action, because programs that link the
 * module need not ignore it. */
#include "host/clock.h"
#include "store/meta/redis.h"
#include "tests/integration/redis_rig.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

struct fixture {
    char dir[64];
    char address[128];
    int listens;
    struct mr_redis *redis;
};

static int setup(void **state)
{
    struct fixture *f = mr_alloc(sizeof *f);
    struct sigaction normal = {.sa_handler = SIG_DFL};
    assert_int_equal(sigaction(SIGPIPE, &normal, NULL), 0);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/mr-redis-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->address, sizeof f->address, "unix:%s/redis.sock", f->dir);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", f->address + 5);
    f->listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->listens, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(f->listens, 8), 0);
    const struct mr_redis_config config = {.address = f->address, .password = "secret"};
    assert_int_equal(mr_redis_open(&config, &f->redis, NULL), MR_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    mr_redis_close(&f->redis);
    (void)close(f->listens);
    run("rm", "-rf", "--", f->dir);
    mr_release(f);
    return 0;
}

static int take_link(const struct fixture *f)
{
    struct pollfd fd = {.fd = f->listens, .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 10000), 1);
    int link = accept(f->listens, NULL, NULL);
    assert_true(link >= 0);
    const struct timeval timeout = {.tv_sec = 10};
    assert_int_equal(setsockopt(link, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout), 0);
    return link;
}

/* Reads what the client sends, and asserts that it begins with `expected`. */
static void hear(int link, const char *expected)
{
    char got[128] = "";
    size_t n = strlen(expected);
    assert_true(n < sizeof got);
    assert_int_equal(recv(link, got, n, MSG_WAITALL), (ssize_t)n);
    assert_string_equal(got, expected);
}

static void say(int link, const char *text)
{
    assert_int_equal(send(link, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

#define AUTH "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"
#define PING "*1\r\n$4\r\nPING\r\n"

static void a_redis_that_goes_while_it_is_greeted_ends_nobody(void **state)
{
    struct fixture *f = *state;
    int link = take_link(f);
    hear(link, AUTH);
    assert_int_equal(shutdown(link, SHUT_RD), 0); /* the client's next write fails */
    say(link, "+OK\r\n");
    /* The client has noticed the end of its connection, and connects a second time. */
    int next = take_link(f);
    (void)close(link);
    hear(next, AUTH);
    say(next, "+OK\r\n");
    hear(next, PING);
    assert_false(mr_redis_is_here(f->redis));
    say(next, "+PONG\r\n");
    assert_int_equal(mr_redis_wait(f->redis, 10 * MR_SECOND), MR_OK);
    (void)close(next);
}

static void a_redis_that_goes_while_it_is_sent_to_ends_nobody(void **state)
{
    struct fixture *f = *state;
    int link = take_link(f);
    hear(link, AUTH);
    say(link, "+OK\r\n");
    hear(link, PING);
    say(link, "+PONG\r\n");
    assert_int_equal(mr_redis_wait(f->redis, 10 * MR_SECOND), MR_OK);
    (void)shutdown(link, SHUT_RD);
    const struct mr_str argv[] = {MR_STR("PING")};
    assert_int_equal(mr_redis_send(f->redis, MR_ARRAY_LEN(argv), argv, NULL, NULL), MR_OK);
    (void)close(link);
    link = take_link(f);
    hear(link, AUTH);
    (void)close(link);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(a_redis_that_goes_while_it_is_greeted_ends_nobody),
        T(a_redis_that_goes_while_it_is_sent_to_ends_nobody)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
