/* A role is cancelled while its trainer does not answer. Each wait of the role must end soon,
 * because a task that ignores its cancel makes the worker's process end. */
#include "train/feed/lease.h"
#include "train/member/agent.h"

#include "base/alloc.h"
#include "host/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define FOR_EVER (3600 * MR_SECOND)

struct silent { /* a server that accepts connections and calls, and never answers a call */
    char dir[64];
    char path[96];
    char address[104];
    int fd;
    int taken[16];
    size_t taken_count;
    pthread_t thread;
};

static void *take_all(void *ctx)
{
    /* Sends an empty HTTP/2 SETTINGS frame to each client, then nothing. */
    static const unsigned char settings[9] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    struct silent *s = ctx;
    while (s->taken_count < MR_ARRAY_LEN(s->taken)) {
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0) break;
        (void)!write(fd, settings, sizeof settings);
        s->taken[s->taken_count++] = fd;
    }
    return NULL;
}

static int setup(void **state)
{
    struct silent *s = mr_alloc(sizeof *s);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(s->dir, sizeof s->dir, "/tmp/mr-silent-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->path, sizeof s->path, "%s/trainer", s->dir);
    snprintf(s->address, sizeof s->address, "unix:%s", s->path);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", s->path);
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 16), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, take_all, s), 0);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct silent *s = *state;
    (void)shutdown(s->fd, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    while (s->taken_count)
        (void)close(s->taken[--s->taken_count]);
    (void)close(s->fd);
    (void)unlink(s->path);
    (void)rmdir(s->dir);
    mr_release(s);
    return 0;
}

struct cancelled {
    _Atomic bool is_set;
    _Atomic uint32_t looks;
};

/* Returns true after ten looks. By then the role has begun to wait. */
static bool is_cancelled(void *ctx)
{
    struct cancelled *c = ctx;
    if (atomic_fetch_add(&c->looks, 1) >= 10) atomic_store(&c->is_set, true);
    return atomic_load(&c->is_set);
}

static void who_tells_of_a_failure_is_cancelled(void **state)
{
    const struct silent *s = *state;
    struct cancelled cancelled = {0};
    struct mr_flag is_void = {0}, stop = {0};
    const struct mr_agent_config c = {.trainer = s->address,
        .session = "t1-1",
        .task = "j1-1/0/1",
        .cancelled = {is_cancelled, &cancelled},
        .is_void = &is_void,
        .stop = &stop};
    struct mr_agent *a = mr_agent_start(&c);
    mr_agent_report_failure(a, "it cannot go on", FOR_EVER);
    assert_true(atomic_load(&cancelled.is_set));
    mr_agent_stop(&a);
}

/* The role's acknowledgement of an item waits for the trainer, in a call of up to 5 s. The cancel
 * must end this wait. */
static void who_has_taken_an_item_is_cancelled(void **state)
{
    const struct silent *s = *state;
    struct cancelled cancelled = {.looks = 10};
    const struct mr_taken item = {.receipt = "1"};
    struct mr_taker *t = mr_taker_start(s->address, NULL, "q");
    mr_taker_answer(t, &item, MR_TAKEN_BACK, NULL);
    mr_time began = mr_clock_now();
    mr_taker_stop(&t, (struct mr_stop){is_cancelled, &cancelled});
    assert_true(mr_clock_now() - began < 4 * MR_SECOND);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who_tells_of_a_failure_is_cancelled),
        T(who_has_taken_an_item_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
