/* A worker's shell with its executors, without a scheduler. The tasks form rounds, and each round
 * ends in a barrier task. All tasks are known from the start. So executors can run the core while
 * the network thread sleeps. Runs under TSan as well. */
#include "tests/unit/worker/rig.h"

#include "base/limits.h"
#include "host/clock.h"
#include "host/thread.h"
#include "services/worker/shell/delegate.h"
#include "services/worker/shell/effects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#define SLOTS 3u
#define PARTS_MAX 7u
#define TASKS 800u

static uint32_t parts_count; /* number of parts in a round; a barrier follows them */

/* each task whose number is divisible by this returns `true`, which has to be reported at once; 0:
 * no task does */
static uint32_t true_every;

static int part_run(struct mr_op_call *call)
{
    mr_clock_sleep(20 * MR_US);
    if (true_every && call->task.index % true_every == 0)
        return call->does->return_bool(call, true);
    return call->does->return_nil(call);
}

static const struct mr_op_desc part = {
    .abi = MR_OP_ABI, .name = "test.part", .summary = "", .result = "", .run = part_run};

static void ops_open(struct mr_worker_shell *sh)
{
    uint32_t n = MR_ARRAY_LEN(rig_ops);
    sh->ops = mr_alloc_array(n, sizeof *sh->ops);
    for (uint32_t i = 0; i < n; i++)
        sh->ops[i] = &part;
}

static struct mr_worker_shell *shell_new(struct mr_registry *registry)
{
    struct mr_worker_shell *sh = mr_alloc(sizeof *sh);
    sh->connect_at = sh->end_at = MR_NEVER;
    sh->scheduler = "";
    sh->identity.name = sh->identity.node = "here";
    sh->identity.slots = SLOTS;
    sh->identity.ops = registry;
    sh->loop = mr_rpc_loop_new();
    mr_loan_lock_init(&sh->loan_lock);
    sh->inbox = mr_inbox_new(64, sizeof(struct mr_item));
    mr_inbox_set_waiter(sh->inbox, mr_rpc_loop_waiter(sh->loop));
    sh->stats = mr_stats_new();
    sh->tasks_done = mr_stats_counter(sh->stats, "done", "", NULL);
    sh->tasks_failed = mr_stats_counter(sh->stats, "failed", "", NULL);
    sh->strands = mr_stats_counter(sh->stats, "strands", "", NULL);
    sh->memory = mr_stats_gauge(sh->stats, "memory", "", NULL);
    ops_open(sh);
    const struct mr_worker_config c = {.slots = SLOTS,
        .tasks_max = 4096,
        .values_max = 8192,
        .outbox_max = 8192,
        .bytes_max = (uint64_t)1 << 30,
        .ops = rig_ops,
        .ops_count = MR_ARRAY_LEN(rig_ops)};
    sh->core = mr_worker_new(&c);
    sh->env = (struct mr_executor_env){.ops = sh->ops,
        .ops_count = c.ops_count,
        .wake_counter = &sh->wake_counter,
        .slots = SLOTS,
        .store_address = "",
        .scratch_bytes_max = 1 << 20,
        .report = mr_worker_shell_on_report,
        .ctx = sh};
    sh->executors_count = SLOTS + MR_LONG_TASKS_MAX;
    sh->executors = mr_alloc_array(sh->executors_count, sizeof *sh->executors);
    for (uint32_t i = 0; i < SLOTS; i++)
        sh->executors[i] = mr_executor_start(&sh->env, i);
    return sh;
}

static void step(struct mr_worker_shell *sh, struct mr_worker_event ev)
{
    mr_worker_shell_step(sh, &ev);
    sh->fx.count = 0; /* drops effects for the scheduler, which the test does not have */
}

static void session_open(struct mr_worker_shell *sh, struct rig *r)
{
    static const struct mr_str names[] = {MR_STR_INIT("inc")};
    step(sh, (struct mr_worker_event){.kind = MR_WORKER_TURN});
    step(sh, (struct mr_worker_event){.kind = MR_WORKER_CONNECTED});
    step(sh, (struct mr_worker_event){.kind = MR_WORKER_TURN, .turn.may_send = true});
    r->m.registered = (struct mr_ws_registered){.incarnation = 9,
        .epoch = 1,
        .scheduler = 1,
        .heartbeat_ns = 500 * MR_MS,
        .lease_ns = 5 * MR_SECOND};
    r->m.down.registered = &r->m.registered;
    r->m.down.ops = names;
    r->m.down.ops_count = 1;
}

/* Adds all tasks. The parts of a round need the barrier of the round before, and the barrier of a
 * round needs its parts. */
static void rounds_add(struct rig *r)
{
    for (uint32_t first = 0; first < TASKS; first += parts_count + 1) {
        uint32_t end = first + parts_count;
        int before[] = {(int)first - 1, -1}, parts[PARTS_MAX + 1];
        for (uint32_t i = 0; i < parts_count; i++) {
            rig_task(r, RIG_JOB, first + i, 1, OP_INC, before);
            rig_uses(r, 1);
            parts[i] = (int)(first + i);
        }
        parts[parts_count] = -1;
        rig_task(r, RIG_JOB, end, 1, OP_INC, parts);
        rig_uses(r, end + 1 < TASKS ? parts_count : 0);
    }
}

static void run(void *ctx)
{
    (void)mr_worker_shell_run(ctx);
}

static void all_rounds_come_to_their_end(uint32_t parts, uint32_t every)
{
    parts_count = parts;
    true_every = every;
    struct mr_registry *registry = mr_registry_new();
    struct mr_worker_shell *sh = shell_new(registry);
    struct rig *r = mr_alloc(sizeof *r);
    rig_clear(r);
    session_open(sh, r);
    rounds_add(r);
    step(sh, (struct mr_worker_event){.kind = MR_WORKER_MESSAGE, .message = &r->m.down});
    struct mr_thread *t = mr_thread_start("network", run, sh);
    mr_time until = mr_time_after(mr_clock_now(), 50 * MR_SECOND);
    while (atomic_load(&sh->tasks_done->v) < TASKS && mr_clock_now() < until)
        mr_clock_sleep(MR_MS);
    mr_worker_shell_signal(sh);
    mr_worker_shell_signal(sh); /* the second signal ends the shell without a drain */
    mr_thread_join(&t);
    assert_int_equal(atomic_load(&sh->tasks_done->v), TASKS);
    assert_int_equal(atomic_load(&sh->tasks_failed->v), 0);
    assert_true(mr_worker_shell_is_idle(sh));
    mr_worker_check(sh->core);
    mr_worker_shell_close(&sh);
    mr_registry_free(&registry);
    mr_release(r);
}

static void rounds_of_plain_ends_go_on_while_the_network_thread_sleeps(void **state)
{
    (void)state;
    all_rounds_come_to_their_end(3, 0);
}

static void some_ends_that_wake_it_are_in_nobodys_way(void **state)
{
    (void)state;
    all_rounds_come_to_their_end(3, 7);
}

static void strands_are_cut_for_idle_slots_meanwhile(void **state)
{
    (void)state;
    all_rounds_come_to_their_end(7, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_of_plain_ends_go_on_while_the_network_thread_sleeps),
        cmocka_unit_test(some_ends_that_wake_it_are_in_nobodys_way),
        cmocka_unit_test(strands_are_cut_for_idle_slots_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
