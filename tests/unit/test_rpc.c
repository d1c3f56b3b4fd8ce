/* Server and client of lib/rpc on one loop, over a UNIX socket in a fresh directory. The loop is
 * run until the test's own condition holds, bounded by a deadline, so nothing sleeps. */
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

#define PATIENCE (20 * MR_SECOND)

/* What one side has seen of one call. */
struct seen {
    struct mr_rpc_call *call; /* NULL after on_done */
    mr_rpc_call_id id;
    int opened, messages, half_closed, writable, cancelled, done;
    size_t bytes;
    char last[64];
    int code;
    char text[256];
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
    struct seen at_server; /* of the last call of the test service */
    struct seen at_client;
    int auth_asked;
};

static struct world *world_of_server; /* handlers get it through the service's context */

static void keep_text(char *out, size_t out_bytes, struct mr_str s)
{
    size_t n = MR_MIN(s.n, out_bytes - 1);
    if (n) memcpy(out, s.p, n);
    out[n] = 0;
}

static void see_message(struct seen *s, struct mr_rpc_message *m)
{
    s->messages++;
    s->bytes += mr_rpc_message_bytes(m);
    keep_text(s->last, sizeof s->last, mr_rpc_message_str(m));
}

/* ---- the server's side ---------------------------------------------------------------------- */

static void on_open(struct mr_rpc_call *call)
{
    struct seen *s = &world_of_server->at_server;
    *s = (struct seen){.call = call, .id = mr_rpc_call_id_of(call), .opened = 1};
}

static void on_cancelled(struct mr_rpc_call *call)
{
    (void)call;
    world_of_server->at_server.cancelled++;
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct seen *s = &world_of_server->at_server;
    if (s->call != call) return;
    s->call = NULL;
    s->done++;
    s->code = status->code;
}

static void on_half_close(struct mr_rpc_call *call)
{
    (void)call;
    world_of_server->at_server.half_closed++;
}

static void on_writable(struct mr_rpc_call *call)
{
    (void)call;
    world_of_server->at_server.writable++;
}

static void echo_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    see_message(&world_of_server->at_server, m);
    assert_int_equal(mr_rpc_call_reply(call, mr_rpc_message_str(m)), MR_OK);
}

static void fail_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    see_message(&world_of_server->at_server, m);
    struct mr_error e;
    (void)mr_fail(&e, MR_ETOOBIG, "key \"a\": too large — 4096 bytes at most");
    assert_int_equal(mr_rpc_call_add_trailing(call, "x-why", MR_STR("size")), MR_OK);
    assert_int_equal(mr_rpc_call_fail(call, &e), MR_OK);
}

static void collect_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    (void)call;
    see_message(&world_of_server->at_server, m);
}

static void collect_half_close(struct mr_rpc_call *call)
{
    struct seen *s = &world_of_server->at_server;
    s->half_closed++;
    char text[32];
    (void)snprintf(text, sizeof text, "%d %zu", s->messages, s->bytes);
    assert_int_equal(mr_rpc_call_reply(call, mr_str(text)), MR_OK);
}

static void count_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
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

static void talk_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    see_message(&world_of_server->at_server, m);
    assert_int_equal(mr_rpc_call_send(call, mr_rpc_message_str(m)), MR_OK);
}

static void talk_half_close(struct mr_rpc_call *call)
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

static void client_open(struct mr_rpc_call *call)
{
    ((struct seen *)mr_rpc_call_context(call))->opened++;
}

static void client_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    see_message(mr_rpc_call_context(call), m);
}

static void client_writable(struct mr_rpc_call *call)
{
    ((struct seen *)mr_rpc_call_context(call))->writable++;
}

static void client_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
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

static struct mr_rpc_call *open_call(
    struct world *w, const char *method, const struct mr_rpc_call_options *o)
{
    w->at_client = (struct seen){0};
    w->at_client.call = mr_rpc_call_open(w->channel, method, &client_handler, &w->at_client, o);
    w->at_client.id = mr_rpc_call_id_of(w->at_client.call);
    return w->at_client.call;
}

#define RUN_UNTIL(w, condition)                                                                    \
    do {                                                                                           \
        mr_time until_ = mr_clock_now() + PATIENCE;                                                \
        while (!(condition)) {                                                                     \
            assert_true(mr_clock_now() < until_);                                                  \
            (void)mr_rpc_loop_run((w)->loop, mr_clock_now() + 100 * MR_MS);                        \
        }                                                                                          \
    } while (0)

/* One unary call through, from text to text. */
static void ask(struct world *w, const char *method, struct mr_str request)
{
    struct mr_rpc_call *call =
        open_call(w, method, &(struct mr_rpc_call_options){.one_reply = true, .timeout = PATIENCE});
    assert_int_equal(mr_rpc_call_send(call, request), MR_OK);
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, w->at_client.done);
}

static int check_token(void *ctx, struct mr_rpc_call *call, struct mr_error *e)
{
    struct world *w = ctx;
    w->auth_asked++;
    struct mr_str token;
    if (!mr_rpc_call_metadata(call, "authorization", &token))
        return mr_fail(e, MR_EAUTH, "a bearer token is missing");
    if (!mr_str_eq(token, MR_STR("Bearer secret"))) return mr_fail(e, MR_EPERM, "wrong token");
    return MR_OK;
}

static struct world *make_world(bool with_auth, const char *bearer)
{
    struct world *w = mr_alloc(sizeof *w);
    world_of_server = w;
    (void)snprintf(w->directory, sizeof w->directory, "/tmp/mr-rpc-XXXXXX");
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

static int setup(void **state)
{
    *state = make_world(false, NULL);
    return 0;
}

static int setup_auth(void **state)
{
    *state = make_world(true, "secret");
    return 0;
}

static int setup_bad_auth(void **state)
{
    *state = make_world(true, "guess");
    return 0;
}

static int teardown(void **state)
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

/* ---- tests ---------------------------------------------------------------------------------- */

static void a_unary_call_gets_its_answer(void **state)
{
    struct world *w = *state;
    ask(w, "/test.Service/Echo", MR_STR("hello"));
    assert_int_equal(w->at_client.code, 0);
    assert_int_equal(w->at_client.messages, 1);
    assert_string_equal(w->at_client.last, "hello");
    RUN_UNTIL(w, w->at_server.done);
    assert_int_equal(w->at_server.code, 0);
    assert_int_equal(w->at_server.half_closed, 0); /* it had been answered by then */
}

static void empty_and_large_messages_arrive_whole(void **state)
{
    struct world *w = *state;
    ask(w, "/test.Service/Echo", MR_STR(""));
    assert_int_equal(w->at_client.messages, 1);
    assert_int_equal(w->at_client.bytes, 0);
    size_t n = MR_MESSAGE_BYTES_MAX;
    char *large = mr_alloc(n);
    memset(large, 'x', n);
    ask(w, "/test.Service/Echo", mr_str_of(large, n));
    assert_int_equal(w->at_client.code, 0);
    assert_int_equal(w->at_client.bytes, n);
    mr_release(large);
}

static void a_message_over_the_limit_is_not_queued(void **state)
{
    struct world *w = *state;
    size_t n = MR_MESSAGE_BYTES_MAX + 1;
    char *large = mr_alloc(n);
    struct mr_rpc_call *call = open_call(w, "/test.Service/Talk", NULL);
    assert_int_equal(mr_rpc_call_send(call, mr_str_of(large, n)), MR_ETOOBIG);
    mr_release(large);
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, w->at_client.done);
    assert_int_equal(w->at_client.code, 0);
}

static void a_failed_call_brings_code_sentence_details_and_trailers(void **state)
{
    struct world *w = *state;
    ask(w, "/test.Service/Fail", MR_STR("x"));
    assert_int_equal(w->at_client.code, 8);
    assert_string_equal(w->at_client.text, "key \"a\": too large — 4096 bytes at most");
    assert_string_equal(w->at_client.trailing, "size");
    struct mr_rpc_status s = {
        8, mr_str(w->at_client.text), mr_str_of(w->at_client.details, w->at_client.details_bytes)};
    struct mr_error e;
    assert_int_equal(mr_rpc_status_error(&s, &e), MR_ETOOBIG);
    assert_string_equal(e.text, w->at_client.text);
}

static void a_client_stream_is_collected(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call *call = open_call(w, "/test.Service/Collect", NULL);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(mr_rpc_call_send(call, MR_STR("0123456789")), MR_OK);
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("late")), MR_ESTATE);
    RUN_UNTIL(w, w->at_client.done);
    assert_int_equal(w->at_client.code, 0);
    assert_string_equal(w->at_client.last, "1000 10000");
}

static void a_server_stream_arrives_in_order_and_ends(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call *call = open_call(w, "/test.Service/Count", NULL);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("3000")), MR_OK);
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, w->at_client.done);
    assert_int_equal(w->at_client.opened, 1);
    assert_int_equal(w->at_client.messages, 3000);
    assert_string_equal(w->at_client.last, "2999");
}

static void both_sides_talk_at_once(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call *call = open_call(w, "/test.Service/Talk", NULL);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(mr_rpc_call_send(call, MR_STR("ping")), MR_OK);
        RUN_UNTIL(w, w->at_client.messages == i + 1);
    }
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, w->at_client.done);
    assert_int_equal(w->at_client.code, 0);
    assert_null(mr_rpc_call_find(w->loop, w->at_client.id));
}

static void an_unknown_method_is_answered_unimplemented(void **state)
{
    struct world *w = *state;
    ask(w, "/test.Service/Nothing", MR_STR("x"));
    assert_int_equal(w->at_client.code, 12);
    assert_string_equal(w->at_client.text, "unknown method \"/test.Service/Nothing\"");
    ask(w, "/no.Service/At", MR_STR("x"));
    assert_int_equal(w->at_client.code, 12);
}

static void a_deadline_ends_the_call_on_both_sides(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call_options o = {.timeout = 50 * MR_MS};
    struct mr_rpc_call *call = open_call(w, "/test.Service/Silent", &o);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("x")), MR_OK);
    RUN_UNTIL(w, w->at_client.done);
    assert_int_equal(w->at_client.code, 4);
    RUN_UNTIL(w, w->at_server.done);
    assert_int_equal(w->at_server.cancelled, 1);
    assert_int_equal(w->at_server.code, 1);
    assert_int_equal(w->at_server.half_closed, 0); /* broken off is not closed */
}

static void a_cancelled_call_is_over_on_both_sides(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call *call = open_call(w, "/test.Service/Silent", NULL);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("x")), MR_OK);
    RUN_UNTIL(w, w->at_server.messages == 1);
    mr_rpc_call_id id = w->at_server.id;
    assert_ptr_equal(mr_rpc_call_find(w->loop, id), w->at_server.call);
    mr_rpc_call_cancel(call);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("x")), MR_ECANCELED);
    RUN_UNTIL(w, w->at_client.done && w->at_server.done);
    assert_int_equal(w->at_client.code, 1);
    assert_int_equal(w->at_server.cancelled, 1);
    assert_null(mr_rpc_call_find(w->loop, id));
}

static void a_broken_connection_cancels_the_servers_call(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call *call = open_call(w, "/test.Service/Silent", NULL);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("x")), MR_OK);
    RUN_UNTIL(w, w->at_server.messages == 1);
    mr_rpc_channel_close(&w->channel);
    RUN_UNTIL(w, w->at_client.done && w->at_server.done);
    assert_int_equal(w->at_server.cancelled, 1);
}

static void a_full_queue_holds_the_sender_back(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call *call = open_call(w, "/test.Service/Manual", NULL);
    RUN_UNTIL(w, w->at_server.call);
    static char chunk[1 << 20];
    int sent = 0;
    while (mr_rpc_call_is_writable(call)) {
        assert_int_equal(mr_rpc_call_send(call, mr_str_of(chunk, sizeof chunk)), MR_OK);
        sent++;
    }
    assert_int_equal(sent, 4);
    for (; mr_rpc_call_send(call, mr_str_of(chunk, sizeof chunk)) == MR_OK; sent++)
        continue;
    assert_int_equal(sent, 64);
    assert_int_equal(w->at_server.messages, 0); /* nobody asked */
    assert_int_equal(w->at_client.writable, 0);
    mr_rpc_call_read(w->at_server.call);
    RUN_UNTIL(w, w->at_server.messages == 1);
    (void)mr_rpc_loop_run(w->loop, mr_clock_now() + 20 * MR_MS);
    assert_int_equal(w->at_server.messages, 1); /* one was asked for */
    mr_rpc_call_set_auto_read(w->at_server.call, true);
    RUN_UNTIL(w, w->at_client.writable == 1);
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, w->at_server.half_closed);
    assert_int_equal(w->at_server.messages, sent);
    assert_int_equal(w->at_server.bytes, (size_t)sent * sizeof chunk);
    mr_rpc_call_cancel(call);
}

static int released;

static void count_release(void *ctx)
{
    (void)ctx;
    __atomic_fetch_add(&released, 1, __ATOMIC_SEQ_CST);
}

static void lent_parts_are_released_once_sent_or_refused(void **state)
{
    struct world *w = *state;
    static char body[300000];
    memset(body, 'b', sizeof body);
    released = 0;
    struct mr_rpc_part parts[] = {{MR_STR("head:"), NULL, NULL},
        {mr_str_of(body, sizeof body), count_release, NULL}, {MR_STR(""), count_release, NULL}};
    struct mr_rpc_call *call = open_call(w, "/test.Service/Talk", NULL);
    assert_int_equal(mr_rpc_call_send_parts(call, parts, 3), MR_OK);
    RUN_UNTIL(w, w->at_client.messages == 1);
    assert_int_equal(w->at_client.bytes, sizeof body + 5);
    RUN_UNTIL(w, __atomic_load_n(&released, __ATOMIC_SEQ_CST) == 2);
    mr_rpc_call_cancel(call);
    assert_int_equal(mr_rpc_call_send_parts(call, parts, 3), MR_ECANCELED);
    assert_int_equal(released, 4);
}

static void a_token_is_asked_for_but_not_by_health(void **state)
{
    struct world *w = *state;
    ask(w, "/test.Service/Echo", MR_STR("x"));
    assert_int_equal(w->at_client.code, 0);
    assert_int_equal(w->auth_asked, 1);
    ask(w, "/grpc.health.v1.Health/Check", MR_STR(""));
    assert_int_equal(w->at_client.code, 0);
    assert_int_equal(w->auth_asked, 1);
}

static void a_wrong_token_is_refused_before_the_handler(void **state)
{
    struct world *w = *state;
    ask(w, "/test.Service/Echo", MR_STR("x"));
    assert_int_equal(w->at_client.code, 7);
    assert_string_equal(w->at_client.text, "wrong token");
    assert_int_equal(w->at_server.opened, 0);
    ask(w, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", MR_STR("\x3a\x00"));
    assert_int_equal(w->at_client.code, 7);
}

static void health_says_what_the_server_says(void **state)
{
    struct world *w = *state;
    ask(w, "/grpc.health.v1.Health/Check", MR_STR("\x0a\x0ctest.Service"));
    assert_string_equal(w->at_client.last, "\x08\x01");
    mr_rpc_server_set_serving(w->server, "test.Service", false);
    ask(w, "/grpc.health.v1.Health/Check", MR_STR("\x0a\x0ctest.Service"));
    assert_string_equal(w->at_client.last, "\x08\x02");
    ask(w, "/grpc.health.v1.Health/Check", MR_STR("\x0a\x01x"));
    assert_int_equal(w->at_client.code, 5);
    ask(w, "/grpc.health.v1.Health/Check", MR_STR("\x0a\x7fx"));
    assert_int_equal(w->at_client.code, 3);
}

static void a_health_watch_tells_changes_and_the_drain(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call *call = open_call(w, "/grpc.health.v1.Health/Watch", NULL);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("")), MR_OK);
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, w->at_client.messages == 1);
    assert_string_equal(w->at_client.last, "\x08\x01");
    mr_rpc_server_drain(w->server);
    RUN_UNTIL(w, w->at_client.done);
    assert_int_equal(w->at_client.messages, 2);
    assert_string_equal(w->at_client.last, "\x08\x02");
    assert_int_equal(w->at_client.code, 14);
}

static void a_drain_lets_open_calls_finish_and_takes_no_new_ones(void **state)
{
    struct world *w = *state;
    static struct seen first;
    struct mr_rpc_call *call =
        mr_rpc_call_open(w->channel, "/test.Service/Talk", &client_handler, &first, NULL);
    first = (struct seen){.call = call};
    assert_int_equal(mr_rpc_call_send(call, MR_STR("x")), MR_OK);
    RUN_UNTIL(w, first.messages == 1);
    assert_int_equal(mr_rpc_server_calls(w->server), 1);
    mr_rpc_server_drain(w->server);
    ask(w, "/test.Service/Echo", MR_STR("x"));
    assert_int_equal(w->at_client.code, 14);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("y")), MR_OK);
    RUN_UNTIL(w, first.messages == 2);
    assert_false(mr_rpc_server_is_drained(w->server));
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, first.done && mr_rpc_server_is_drained(w->server));
    assert_int_equal(first.code, 0);
}

static void closing_cancels_what_does_not_end_in_time(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call *call = open_call(w, "/test.Service/Silent", NULL);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("x")), MR_OK);
    RUN_UNTIL(w, w->at_server.messages == 1);
    mr_rpc_server_close(&w->server, 10 * MR_MS);
    assert_int_equal(w->at_server.done, 1);
    RUN_UNTIL(w, w->at_client.done);
    assert_int_not_equal(w->at_client.code, 0);
}

static void a_unary_request_without_a_message_is_refused(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call *call = open_call(w, "/test.Service/Echo", NULL);
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, w->at_client.done);
    assert_int_equal(w->at_client.code, 12);
}

static void nobody_listening_is_unavailable(void **state)
{
    struct world *w = *state;
    struct mr_rpc_channel *there = w->channel;
    w->channel = mr_rpc_channel_open(w->loop, "unix:/nonexistent/socket", NULL);
    ask(w, "/test.Service/Echo", MR_STR("x"));
    assert_int_equal(w->at_client.code, 14);
    mr_rpc_channel_close(&w->channel);
    w->channel = there;
}

static void a_second_server_does_not_take_a_living_socket(void **state)
{
    struct world *w = *state;
    struct mr_rpc_server *second = mr_rpc_server_new(w->loop, NULL);
    struct mr_error e;
    assert_int_equal(mr_rpc_server_listen(second, w->address, NULL, &e), MR_EEXIST);
    assert_int_equal(mr_rpc_server_listen(second, "nonsense", NULL, &e), MR_EINVAL);
    int port = 0;
    assert_int_equal(mr_rpc_server_listen(second, "127.0.0.1:0", &port, &e), MR_OK);
    assert_true(port > 0);
    mr_rpc_server_start(second);
    char address[32];
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", port);
    struct mr_rpc_channel *there = w->channel;
    w->channel = mr_rpc_channel_open(w->loop, address, NULL);
    ask(w, "/grpc.health.v1.Health/Check", MR_STR(""));
    assert_int_equal(w->at_client.code, 0);
    mr_rpc_channel_close(&w->channel);
    w->channel = there;
    mr_rpc_server_close(&second, MR_SECOND);
}

static void a_restarted_server_is_found_again(void **state)
{
    struct world *w = *state;
    ask(w, "/test.Service/Echo", MR_STR("x"));
    assert_int_equal(w->at_client.code, 0);
    mr_rpc_server_close(&w->server, MR_SECOND);
    ask(w, "/test.Service/Echo", MR_STR("x"));
    assert_int_equal(w->at_client.code, 14); /* at once: nobody is there */
    w->server = mr_rpc_server_new(w->loop, NULL);
    mr_rpc_server_add_service(w->server, &service, w);
    assert_int_equal(mr_rpc_server_listen(w->server, w->address, NULL, NULL), MR_OK);
    mr_rpc_server_start(w->server);
    struct mr_rpc_call_options o = {.one_reply = true, .timeout = PATIENCE, .wait_for_ready = true};
    struct mr_rpc_call *call = open_call(w, "/test.Service/Echo", &o);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("again")), MR_OK);
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, w->at_client.done);
    assert_string_equal(w->at_client.last, "again");
}

static void replied(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct seen *s = ctx;
    s->done++;
    s->code = status->code;
    if (reply) see_message(s, reply);
}

static void many_unary_calls_run_at_once(void **state)
{
    struct world *w = *state;
    struct seen all = {0};
    for (int i = 0; i < 500; i++)
        (void)mr_rpc_unary(w->channel, "/test.Service/Echo", MR_STR("abc"), NULL, replied, &all);
    RUN_UNTIL(w, all.done == 500);
    assert_int_equal(all.messages, 500);
    assert_int_equal(all.bytes, 1500);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_unary_call_gets_its_answer),
        T(empty_and_large_messages_arrive_whole),
        T(a_message_over_the_limit_is_not_queued),
        T(a_failed_call_brings_code_sentence_details_and_trailers),
        T(a_client_stream_is_collected),
        T(a_server_stream_arrives_in_order_and_ends),
        T(both_sides_talk_at_once),
        T(an_unknown_method_is_answered_unimplemented),
        T(a_deadline_ends_the_call_on_both_sides),
        T(a_cancelled_call_is_over_on_both_sides),
        T(a_broken_connection_cancels_the_servers_call),
        T(a_full_queue_holds_the_sender_back),
        T(lent_parts_are_released_once_sent_or_refused),
        cmocka_unit_test_setup_teardown(
            a_token_is_asked_for_but_not_by_health, setup_auth, teardown),
        cmocka_unit_test_setup_teardown(
            a_wrong_token_is_refused_before_the_handler, setup_bad_auth, teardown),
        T(health_says_what_the_server_says),
        T(a_health_watch_tells_changes_and_the_drain),
        T(a_drain_lets_open_calls_finish_and_takes_no_new_ones),
        T(closing_cancels_what_does_not_end_in_time),
        T(a_unary_request_without_a_message_is_refused),
        T(nobody_listening_is_unavailable),
        T(a_second_server_does_not_take_a_living_socket),
        T(a_restarted_server_is_found_again),
        T(many_unary_calls_run_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
