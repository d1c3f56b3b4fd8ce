/* The blocking client, with a server on another thread. The server's thread waits for gRPC events
 * and for messages in its inbox at the same time (host/waiter.h). A message from another thread
 * wakes the server's thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "host/clock.h"
#include "host/inbox.h"
#include "host/thread.h"
#include "rpc/loop.h"
#include "rpc/server.h"
#include "rpc/util/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMEOUT (20 * MR_SECOND)

enum what { STOP, TELL };

struct message {
    enum what what;
    mr_rpc_call_id call;
};

struct world {
    char directory[64];
    char address[96];
    struct mr_inbox *inbox;
    struct mr_inbox *ready; /* the server puts a message here when it listens */
    struct mr_thread *thread;
    struct mr_thread *helper;
    struct mr_rpc_client *client;
};

/* ---- the server: one method echoes, and a helper thread answers a second method -------------- */

static void echo_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    (void)mr_rpc_call_send(call, mr_rpc_message_str(m));
}

static void echo_end(struct mr_rpc_call *call)
{
    (void)mr_rpc_call_finish_ok(call);
}

static void tell_later(void *ctx)
{
    struct message *m = ctx;
    struct world *w = (struct world *)(uintptr_t)m[1].call.v;
    (void)mr_inbox_push(w->inbox, &m[0]);
    mr_release(m);
}

static void later_message(struct mr_rpc_call *call, struct mr_rpc_message *bytes)
{
    (void)bytes;
    struct world *w = mr_rpc_call_context(call);
    struct message *m = mr_alloc(2 * sizeof *m);
    m[0] = (struct message){TELL, mr_rpc_call_id_of(call)};
    m[1].call.v = (uint64_t)(uintptr_t)w;
    mr_thread_join(&w->helper);
    w->helper = mr_thread_start("helper", tell_later, m);
}

static const struct mr_rpc_handler echo = {.on_message = echo_message, .on_half_close = echo_end};
static const struct mr_rpc_handler later = {.on_message = later_message};
static const struct mr_rpc_method methods[] = {
    {.name = "Echo", .client_streaming = true, .server_streaming = true, .handler = &echo},
    {.name = "Later", .handler = &later},
};
static const struct mr_rpc_service service = {"test.Sync", methods, MR_ARRAY_LEN(methods)};

static void serve(void *ctx)
{
    struct world *w = ctx;
    struct mr_rpc_loop *loop = mr_rpc_loop_new();
    mr_inbox_set_waiter(w->inbox, mr_rpc_loop_waiter(loop));
    struct mr_rpc_server *server = mr_rpc_server_new(loop, NULL);
    mr_rpc_server_add_service(server, &service, w);
    int err = mr_rpc_server_listen(server, w->address, NULL, NULL);
    mr_rpc_server_start(server);
    (void)mr_inbox_push(w->ready, &err);
    for (bool stop = false; !stop;) {
        struct message batch[16];
        size_t n = mr_inbox_wait(w->inbox, MR_NEVER, batch, 16);
        for (size_t i = 0; i < n; i++) {
            if (batch[i].what == STOP) stop = true;
            struct mr_rpc_call *call = mr_rpc_call_find(loop, batch[i].call);
            if (batch[i].what == TELL && call) (void)mr_rpc_call_reply(call, MR_STR("told"));
        }
    }
    mr_rpc_server_close(&server, MR_SECOND);
    mr_inbox_clear_waiter(w->inbox);
    mr_rpc_loop_free(&loop);
}

static int setup(void **state)
{
    struct world *w = mr_alloc(sizeof *w);
    (void)snprintf(w->directory, sizeof w->directory, "/tmp/mr-sync-XXXXXX");
    assert_non_null(mkdtemp(w->directory));
    (void)snprintf(w->address, sizeof w->address, "unix:%s/s", w->directory);
    w->inbox = mr_inbox_new(64, sizeof(struct message));
    w->ready = mr_inbox_new(2, sizeof(int));
    w->thread = mr_thread_start("server", serve, w);
    int err = MR_EAWAY;
    (void)mr_inbox_wait(w->ready, mr_clock_now() + TIMEOUT, &err, 1);
    assert_int_equal(err, MR_OK);
    w->client = mr_rpc_client_open(w->address, NULL);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    mr_rpc_client_close(&w->client);
    struct message stop = {STOP, {0}};
    (void)mr_inbox_push(w->inbox, &stop);
    mr_thread_join(&w->thread);
    mr_thread_join(&w->helper);
    mr_inbox_free(&w->inbox);
    mr_inbox_free(&w->ready);
    (void)unlink(w->address + 5);
    (void)rmdir(w->directory);
    mr_release(w);
    return 0;
}

static const struct mr_rpc_call_options with_timeout = {.timeout = TIMEOUT};

static void another_threads_answer_wakes_the_loop(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 200; i++) {
        struct mr_buf reply;
        struct mr_error e;
        mr_buf_init(&reply, 100);
        assert_int_equal(
            mr_rpc_call_sync(w->client, "/test.Sync/Later", MR_STR("x"), &with_timeout, &reply, &e),
            MR_OK);
        assert_true(mr_str_eq(mr_buf_str(&reply), MR_STR("told")));
        mr_buf_fini(&reply);
    }
}

static void a_stream_is_read_message_by_message(void **state)
{
    struct world *w = *state;
    struct mr_rpc_stream *s = mr_rpc_stream_open(w->client, "/test.Sync/Echo", &with_timeout);
    struct mr_rpc_message *m = NULL;
    struct mr_error e;
    assert_int_equal(mr_rpc_stream_read(s, mr_clock_now(), &m, &e), MR_ETIMEOUT);
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(mr_rpc_stream_send(s, mr_str_of(&i, sizeof i)), MR_OK);
    assert_int_equal(mr_rpc_stream_half_close(s), MR_OK);
    for (uint32_t i = 0; i < 5000; i++) {
        assert_int_equal(mr_rpc_stream_read(s, MR_NEVER, &m, &e), MR_OK);
        assert_true(mr_str_eq(mr_rpc_message_str(m), mr_str_of(&i, sizeof i)));
        mr_rpc_message_free(&m);
    }
    assert_int_equal(mr_rpc_stream_read(s, MR_NEVER, &m, &e), MR_ENOENT);
    assert_int_equal(mr_rpc_stream_status(s)->code, 0);
    mr_rpc_stream_close(&s);
}

static void a_stream_closed_early_leaves_nothing_behind(void **state)
{
    struct world *w = *state;
    struct mr_rpc_stream *s = mr_rpc_stream_open(w->client, "/test.Sync/Echo", &with_timeout);
    for (int i = 0; i < 100; i++)
        assert_int_equal(mr_rpc_stream_send(s, MR_STR("x")), MR_OK);
    struct mr_rpc_message *m = NULL;
    assert_int_equal(mr_rpc_stream_read(s, MR_NEVER, &m, NULL), MR_OK);
    mr_rpc_message_free(&m);
    mr_rpc_stream_close(&s);
}

static void errors_are_told_in_words(void **state)
{
    struct world *w = *state;
    struct mr_error e;
    assert_int_equal(
        mr_rpc_call_sync(w->client, "/test.Sync/None", MR_STR(""), &with_timeout, NULL, &e),
        MR_EUNIMPL);
    assert_string_equal(e.text, "unknown method \"/test.Sync/None\"");
    struct mr_rpc_client *lost = mr_rpc_client_open("unix:/nonexistent/s", NULL);
    assert_int_equal(mr_rpc_call_sync(lost, "/a/b", MR_STR(""), NULL, NULL, &e), MR_EAWAY);
    assert_true(e.text[0] != 0);
    mr_rpc_client_close(&lost);
    struct mr_buf small;
    mr_buf_init(&small, 2);
    assert_int_equal(
        mr_rpc_call_sync(w->client, "/test.Sync/Later", MR_STR(""), &with_timeout, &small, &e),
        MR_ETOOBIG);
    mr_buf_fini(&small);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(another_threads_answer_wakes_the_loop),
        T(a_stream_is_read_message_by_message),
        T(a_stream_closed_early_leaves_nothing_behind),
        T(errors_are_told_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
