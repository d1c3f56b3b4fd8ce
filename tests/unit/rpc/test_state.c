/* lib/rpc/call_state: the moves of a call from its begin to its end. Any other move panics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/defs.h"
#include "rpc/call_state.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_new_call_is_live_and_reads_nothing_yet(void **state)
{
    (void)state;
    const struct mr_rpc_state s = {0};
    assert_int_equal(s.life, MR_RPC_LIVE);
    assert_int_equal(s.sending, MR_RPC_SENDING);
    assert_int_equal(s.receiving, MR_RPC_OPENING);
    assert_false(mr_rpc_state_is_over(&s));
    assert_true(mr_rpc_state_may_tell(&s));
}

static void a_client_hears_messages_until_it_is_muted(void **state)
{
    (void)state;
    struct mr_rpc_state s = {0};
    mr_rpc_sending_move(&s, MR_RPC_HALF_CLOSING);
    mr_rpc_sending_move(&s, MR_RPC_HALF_CLOSED);
    assert_true(mr_rpc_state_may_tell(&s));
    struct mr_rpc_state cancelled = s;
    mr_rpc_life_move(&s, MR_RPC_OVER); /* the final status has arrived */
    assert_true(mr_rpc_state_is_over(&s));
    assert_true(mr_rpc_state_may_tell(&s));
    mr_rpc_life_move(&cancelled, MR_RPC_MUTED);
    assert_true(mr_rpc_state_is_over(&cancelled));
    assert_false(mr_rpc_state_may_tell(&cancelled));
}

static void a_server_hears_no_messages_after_its_status(void **state)
{
    (void)state;
    struct mr_rpc_state s = {0};
    mr_rpc_receiving_move(&s, MR_RPC_READING);
    mr_rpc_receiving_move(&s, MR_RPC_DELIVERING);
    mr_rpc_sending_move(&s, MR_RPC_FINISHING);
    assert_false(mr_rpc_state_may_tell(&s));
    mr_rpc_receiving_move(&s, MR_RPC_READING);
    mr_rpc_sending_move(&s, MR_RPC_FINISHED);
    mr_rpc_life_move(&s, MR_RPC_MUTED);
    /* The batch that sends the status completes after the call was muted. */
    mr_rpc_sending_move(&s, MR_RPC_ANSWERED);
    mr_rpc_receiving_move(&s, MR_RPC_PEER_DONE);
}

static void a_call_with_one_reply_never_reads(void **state)
{
    (void)state;
    struct mr_rpc_state s = {0};
    mr_rpc_receiving_move(&s, MR_RPC_DELIVERING);
    mr_rpc_receiving_move(&s, MR_RPC_PEER_DONE);
}

/* ---- moves that call_state.c does not allow -------------------------------------------------- */

enum machine { LIFE, SENDING, RECEIVING };

static void move(enum machine m, struct mr_rpc_state *s, int to)
{
    if (m == LIFE) mr_rpc_life_move(s, (enum mr_rpc_life)to);
    if (m == SENDING) mr_rpc_sending_move(s, (enum mr_rpc_sending)to);
    if (m == RECEIVING) mr_rpc_receiving_move(s, (enum mr_rpc_receiving)to);
}

static bool panics(enum machine m, struct mr_rpc_state s, int to)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        move(m, &s, to);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return !WIFEXITED(status) || WEXITSTATUS(status);
}

static void a_move_that_no_table_has_is_a_panic(void **state)
{
    (void)state;
    static const struct {
        enum machine machine;
        struct mr_rpc_state from;
        int to;
    } moves[] = {
        {LIFE, {.life = MR_RPC_OVER}, MR_RPC_MUTED},
        {LIFE, {.life = MR_RPC_MUTED}, MR_RPC_OVER},
        {LIFE, {.life = MR_RPC_OVER}, MR_RPC_LIVE},
        {SENDING, {.sending = MR_RPC_SENDING}, MR_RPC_HALF_CLOSED},
        {SENDING, {.sending = MR_RPC_HALF_CLOSING}, MR_RPC_FINISHING},
        {SENDING, {.sending = MR_RPC_FINISHING}, MR_RPC_ANSWERED},
        {SENDING, {.sending = MR_RPC_FINISHED}, MR_RPC_FINISHED},
        {RECEIVING, {.receiving = MR_RPC_OPENING}, MR_RPC_PEER_DONE},
        {RECEIVING, {.receiving = MR_RPC_DELIVERING}, MR_RPC_DELIVERING},
        {RECEIVING, {.receiving = MR_RPC_PEER_DONE}, MR_RPC_READING},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(moves); i++)
        assert_true(panics(moves[i].machine, moves[i].from, moves[i].to));
    assert_false(panics(LIFE, (struct mr_rpc_state){0}, MR_RPC_OVER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_call_is_live_and_reads_nothing_yet),
        cmocka_unit_test(a_client_hears_messages_until_it_is_muted),
        cmocka_unit_test(a_server_hears_no_messages_after_its_status),
        cmocka_unit_test(a_call_with_one_reply_never_reads),
        cmocka_unit_test(a_move_that_no_table_has_is_a_panic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
