/* A server and a client of lib/rpc on one loop, over a UNIX socket in a new directory. A test runs
 * the loop until its own condition is true, with a deadline, so no test sleeps. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "host/clock.h"
#include "rpc/client.h"
#include "rpc/loop.h"
#include "rpc/server.h"
#include "rpc/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMEOUT (20 * MR_SECOND)

/* How many times each callback of a call ran on one side, and the last message that this side
 * got. */
struct seen {
    struct mr_rpc_call *call; /* NULL after on_done */
    mr_rpc_call_id id;
    int opened, messages, half_closed, writable, cancelled, done;
    size_t bytes;
    char last[64];
    int code;
    char text[512];
    char details[256];
    size_t details_bytes;
    char trailing[64];
};

struct world {
    char directory[64];
    char address[96];
    struct mr_rpc_loop *loop;
    struct mr_rpc_server *server;
    struct mr_rpc_channel *channel;
    struct seen at_server; /* the last call of the test service, seen by the server */
    struct seen at_client;
    int auth_asked;
};

static struct world *world_of_server; /* for handlers, which get the service's context only */

static inline void keep_text(char *out, size_t out_bytes, struct mr_str s)
{
    size_t n = MR_MIN(s.n, out_bytes - 1);
    if (n) memcpy(out, s.p, n);
    out[n] = 0;
}

static inline void see_message(struct seen *s, struct mr_rpc_message *m)
{
    s->messages++;
    s->bytes += mr_rpc_message_bytes(m);
    keep_text(s->last, sizeof s->last, mr_rpc_message_str(m));
}

/* ---- the server's side ---------------------------------------------------------------------- */

static inline void on_open(struct mr_rpc_call *call)
{
    struct seen *s = &world_of_server->at_server;
    *s = (struct seen){.call = call, .id = mr_rpc_call_id_of(call), .opened = 1};
}

static inline void on_cancelled(struct mr_rpc_call *call)
{
    (void)call;
    world_of_server->at_server.cancelled++;
}

static inline void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct seen *s = &world_of_server->at_server;
    if (s->call != call) return;
    s->call = NULL;
    s->done++;
    s->code = status->code;
}

static inline void on_half_close(struct mr_rpc_call *call)
{
    (void)call;
    world_of_server->at_server.half_closed++;
}

static inline void on_writable(struct mr_rpc_call *call)
{
    (void)call;
    world_of_server->at_server.writable++;
}

static inline void echo_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    see_message(&world_of_server->at_server, m);
    assert_int_equal(mr_rpc_call_reply(call, mr_rpc_message_str(m)), MR_OK);
}

static inline void fail_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    see_message(&world_of_server->at_server, m);
    struct mr_error e;
    (void)mr_fail(&e, MR_ETOOBIG, "key \"a\": too large — 4096 bytes at most");
    assert_int_equal(mr_rpc_call_add_trailing(call, "x-why", MR_STR("size")), MR_OK);
    assert_int_equal(mr_rpc_call_fail(call, &e), MR_OK);
}

static inline void collect_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    (void)call;
    see_message(&world_of_server->at_server, m);
}

static inline void collect_half_close(struct mr_rpc_call *call)
{
    struct seen *s = &world_of_server->at_server;
    s->half_closed++;
    char text[32];
    (void)snprintf(text, sizeof text, "%d %zu", s->messages, s->bytes);
    assert_int_equal(mr_rpc_call_reply(call, mr_str(text)), MR_OK);
}

static inline void count_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    see_message(&world_of_server->at_server, m);
    int n = (int)strtol(world_of_server->at_server.last, NULL, 10);
    for (int i = 0; i < n; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%d", i);
        assert_int_equal(mr_rpc_call_send(call, mr_str(text)), MR_OK);
    }
    assert_int_equal(mr_rpc_call_finish_ok(call), MR_OK);
}

static inline void talk_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    see_message(&world_of_server->at_server, m);
    assert_int_equal(mr_rpc_call_send(call, mr_rpc_message_str(m)), MR_OK);
}

static inline void talk_half_close(struct mr_rpc_call *call)
{
    world_of_server->at_server.half_closed++;
    assert_int_equal(mr_rpc_call_finish_ok(call), MR_OK);
}

#define COMMON                                                                                     \
    .on_open = on_open, .on_cancelled = on_cancelled, .on_done = on_done, .on_writable = on_writable
static const struct mr_rpc_handler echo = {
    COMMON, .on_message = echo_message, .on_half_close = on_half_close};
static const struct mr_rpc_handler fails = {COMMON, .on_message = fail_message};
static const struct mr_rpc_handler collect = {
    COMMON, .on_message = collect_message, .on_half_close = collect_half_close};
static const struct mr_rpc_handler count = {COMMON, .on_message = count_message};
static const struct mr_rpc_handler talk = {
    COMMON, .on_message = talk_message, .on_half_close = talk_half_close};
static const struct mr_rpc_handler silent = {
    COMMON, .on_message = collect_message, .on_half_close = on_half_close};

static const struct mr_rpc_method methods[] = {
    {.name = "Echo", .handler = &echo},
    {.name = "Fail", .handler = &fails},
    {.name = "Collect", .client_streaming = true, .handler = &collect},
    {.name = "Count", .server_streaming = true, .handler = &count},
    {.name = "Talk", .client_streaming = true, .server_streaming = true, .handler = &talk},
    {.name = "Silent", .client_streaming = true, .server_streaming = true, .handler = &silent},
    {.name = "Manual",
        .client_streaming = true,
        .server_streaming = true,
        .manual_read = true,
        .handler = &silent},
};
static const struct mr_rpc_service service = {"test.Service", methods, MR_ARRAY_LEN(methods)};

/* ---- the client's side ---------------------------------------------------------------------- */

static inline void client_open(struct mr_rpc_call *call)
{
    ((struct seen *)mr_rpc_call_context(call))->opened++;
}

static inline void client_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    see_message(mr_rpc_call_context(call), m);
}

static inline void client_writable(struct mr_rpc_call *call)
{
    ((struct seen *)mr_rpc_call_context(call))->writable++;
}

static inline void client_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct seen *s = mr_rpc_call_context(call);
    s->call = NULL;
    s->done++;
    s->code = status->code;
    keep_text(s->text, sizeof s->text, status->message);
    keep_text(s->details, sizeof s->details, status->details);
    s->details_bytes = status->details.n;
    struct mr_str why;
    if (mr_rpc_call_metadata(call, "x-why", &why)) keep_text(s->trailing, sizeof s->trailing, why);
}

static const struct mr_rpc_handler client_handler = {.on_open = client_open,
    .on_message = client_message,
    .on_writable = client_writable,
    .on_done = client_done};

static inline struct mr_rpc_call *open_call(
    struct world *w, const char *method, const struct mr_rpc_call_options *o)
{
    w->at_client = (struct seen){0};
    w->at_client.call = mr_rpc_call_open(w->channel, method, &client_handler, &w->at_client, o);
    w->at_client.id = mr_rpc_call_id_of(w->at_client.call);
    return w->at_client.call;
}

#define RUN_UNTIL(w, condition)                                                                    \
    do {                                                                                           \
        mr_time until_ = mr_clock_now() + TIMEOUT;                                                 \
        while (!(condition)) {                                                                     \
            assert_true(mr_clock_now() < until_);                                                  \
            (void)mr_rpc_loop_run((w)->loop, mr_clock_now() + 100 * MR_MS);                        \
        }                                                                                          \
    } while (0)

/* Sends a text as a unary call, and runs the loop until the call is done. */
static inline void ask(struct world *w, const char *method, struct mr_str request)
{
    struct mr_rpc_call *call =
        open_call(w, method, &(struct mr_rpc_call_options){.one_reply = true, .timeout = TIMEOUT});
    assert_int_equal(mr_rpc_call_send(call, request), MR_OK);
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, w->at_client.done);
}

static inline int check_token(void *ctx, struct mr_rpc_call *call, struct mr_error *e)
{
    struct world *w = ctx;
    w->auth_asked++;
    struct mr_str token;
    if (!mr_rpc_call_metadata(call, "authorization", &token))
        return mr_fail(e, MR_EAUTH, "a bearer token is missing");
    if (!mr_str_eq(token, MR_STR("Bearer secret"))) return mr_fail(e, MR_EPERM, "wrong token");
    return MR_OK;
}

static inline struct world *make_world(bool with_auth, const char *bearer)
{
    struct world *w = mr_alloc(sizeof *w);
    world_of_server = w;
    (void)snprintf(w->directory, sizeof w->directory, "/tmp/mr-rpc #%%41?-XXXXXX");
    assert_non_null(mkdtemp(w->directory));
    (void)snprintf(w->address, sizeof w->address, "unix:%s/s", w->directory);
    w->loop = mr_rpc_loop_new();
    struct mr_rpc_server_options o = {.auth = with_auth ? check_token : NULL, .auth_ctx = w};
    w->server = mr_rpc_server_new(w->loop, &o);
    mr_rpc_server_add_service(w->server, &service, w);
    struct mr_error e;
    assert_int_equal(mr_rpc_server_listen(w->server, w->address, NULL, &e), MR_OK);
    mr_rpc_server_start(w->server);
    struct mr_rpc_channel_options c = {.bearer = bearer};
    w->channel = mr_rpc_channel_open(w->loop, w->address, &c);
    return w;
}

static inline int setup(void **state)
{
    *state = make_world(false, NULL);
    return 0;
}

static inline int setup_auth(void **state)
{
    *state = make_world(true, "secret");
    return 0;
}

static inline int setup_bad_auth(void **state)
{
    *state = make_world(true, "guess");
    return 0;
}

static inline int teardown(void **state)
{
    struct world *w = *state;
    mr_rpc_channel_close(&w->channel);
    mr_rpc_server_close(&w->server, MR_SECOND);
    mr_rpc_loop_free(&w->loop);
    (void)unlink(w->address + 5);
    (void)rmdir(w->directory);
    mr_release(w);
    return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
