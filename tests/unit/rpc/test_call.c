/* lib/rpc: unary calls and streams, message sizes, deadlines, borrowed memory and back-pressure. */
#include "tests/unit/rpc/rig.h"

static void a_unary_call_gets_its_answer(void **state)
{
    struct world *w = *state;
    ask(w, "/test.Service/Echo", MR_STR("hello"));
    assert_int_equal(w->at_client.code, 0);
    assert_int_equal(w->at_client.messages, 1);
    assert_string_equal(w->at_client.last, "hello");
    RUN_UNTIL(w, w->at_server.done);
    assert_int_equal(w->at_server.code, 0);
    /* on_half_close is not called after the answer. */
    assert_int_equal(w->at_server.half_closed, 0);
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

/* If the deadline passes before the server has heard of the call, only the client sees the call. So
 * the test repeats the call with longer timeouts until both sides have seen one. */
static void a_deadline_ends_the_call_on_both_sides(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call_options o = {.timeout = 50 * MR_MS};
    for (;; o.timeout *= 2) {
        struct mr_rpc_call *call = open_call(w, "/test.Service/Silent", &o);
        assert_int_equal(mr_rpc_call_send(call, MR_STR("x")), MR_OK);
        RUN_UNTIL(w, w->at_client.done);
        assert_int_equal(w->at_client.code, 4);
        if (w->at_server.opened) break;
        assert_true(o.timeout < TIMEOUT);
    }
    RUN_UNTIL(w, w->at_server.done);
    /* Earlier calls of this test may be cancelled as well. */
    assert_true(w->at_server.cancelled >= 1);
    assert_int_equal(w->at_server.code, 1);
    /* on_half_close is not called for a cancelled call. */
    assert_int_equal(w->at_server.half_closed, 0);
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
    assert_int_equal(w->at_server.messages, 0); /* the server has not asked for a message yet */
    assert_int_equal(w->at_client.writable, 0);
    mr_rpc_call_read(w->at_server.call);
    RUN_UNTIL(w, w->at_server.messages == 1);
    (void)mr_rpc_loop_run(w->loop, mr_clock_now() + 20 * MR_MS);
    assert_int_equal(w->at_server.messages, 1); /* the server has asked for one message */
    mr_rpc_call_set_auto_read(w->at_server.call, true);
    RUN_UNTIL(w, w->at_client.writable == 1);
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, w->at_server.half_closed);
    assert_int_equal(w->at_server.messages, sent);
    assert_int_equal(w->at_server.bytes, (size_t)sent * sizeof chunk);
    mr_rpc_call_cancel(call);
}

/* The limit that the caller gives to mr_rpc_call_has_room may be below MR_RPC_QUEUE_BYTES_HIGH. If
 * more bytes than this limit are queued, mr_rpc_call_has_room returns false, and on_writable is
 * called later, although the call is still writable. */
static void a_sender_with_a_lower_mark_hears_when_there_is_room(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call *call = open_call(w, "/test.Service/Manual", NULL);
    RUN_UNTIL(w, w->at_server.call);
    static char chunk[64 << 10];
    int sent = 0;
    for (; mr_rpc_call_has_room(call, 4 * sizeof chunk); sent++)
        assert_int_equal(mr_rpc_call_send(call, mr_str_of(chunk, sizeof chunk)), MR_OK);
    assert_int_equal(sent, 5);
    assert_true(mr_rpc_call_is_writable(call));
    mr_rpc_call_set_auto_read(w->at_server.call, true);
    RUN_UNTIL(w, w->at_client.writable);
    RUN_UNTIL(w, w->at_server.messages == sent);
    assert_true(mr_rpc_call_has_room(call, 4 * sizeof chunk));
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
        T(a_sender_with_a_lower_mark_hears_when_there_is_room),
        T(lent_parts_are_released_once_sent_or_refused),
        T(many_unary_calls_run_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
