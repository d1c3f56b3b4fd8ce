/* lib/rpc server: tokens, health, drain and addresses. */
#include "tests/unit/rpc/rig.h"

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

/* A client whose call is ended by the server's shutdown gets UNAVAILABLE and may try again. */
static void closing_ends_what_does_not_end_in_time_as_unavailable(void **state)
{
    struct world *w = *state;
    struct mr_rpc_call *call = open_call(w, "/test.Service/Silent", NULL);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("x")), MR_OK);
    RUN_UNTIL(w, w->at_server.messages == 1);
    mr_rpc_server_close(&w->server, 10 * MR_MS);
    assert_int_equal(w->at_server.done, 1);
    RUN_UNTIL(w, w->at_client.done);
    assert_int_equal(w->at_client.code, 14);
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
    assert_int_equal(w->at_client.code, 14); /* UNAVAILABLE at once: no server listens */
    w->server = mr_rpc_server_new(w->loop, NULL);
    mr_rpc_server_add_service(w->server, &service, w);
    assert_int_equal(mr_rpc_server_listen(w->server, w->address, NULL, NULL), MR_OK);
    mr_rpc_server_start(w->server);
    struct mr_rpc_call_options o = {.one_reply = true, .timeout = TIMEOUT, .wait_for_ready = true};
    struct mr_rpc_call *call = open_call(w, "/test.Service/Echo", &o);
    assert_int_equal(mr_rpc_call_send(call, MR_STR("again")), MR_OK);
    assert_int_equal(mr_rpc_call_half_close(call), MR_OK);
    RUN_UNTIL(w, w->at_client.done);
    assert_string_equal(w->at_client.last, "again");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_token_is_asked_for_but_not_by_health, setup_auth, teardown),
        cmocka_unit_test_setup_teardown(
            a_wrong_token_is_refused_before_the_handler, setup_bad_auth, teardown),
        T(health_says_what_the_server_says),
        T(a_health_watch_tells_changes_and_the_drain),
        T(a_drain_lets_open_calls_finish_and_takes_no_new_ones),
        T(closing_ends_what_does_not_end_in_time_as_unavailable),
        T(a_unary_request_without_a_message_is_refused),
        T(nobody_listening_is_unavailable),
        T(a_second_server_does_not_take_a_living_socket),
        T(a_restarted_server_is_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
