/* Tests the predictions of `millrace whatif` with hand-made traces. Jobs of a known run time are
 * replayed with more slots, faster operators, a faster network, or without some cost. Other tests
 * measure the costs of a trace. */
#include "base/alloc.h"
#include "base/defs.h"
#include "base/rng.h"
#include "virtual/whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TASKS_MAX 2000
#define INPUTS_MAX 20000
#define BEGIN MR_SECOND

static struct mr_whatif_task tasks[TASKS_MAX];
static uint32_t inputs[INPUTS_MAX];
static const struct mr_str ops[] = {MR_STR_INIT("work"), MR_STR_INIT("other")};
static struct mr_whatif_job job;
static const struct mr_whatif_costs no_costs = {.scale = 1, .share = 1};
static const struct mr_whatif_costs some_costs = {.begin_ns = 5 * MR_MS,
    .end_ns = MR_MS,
    .decide_ns = 2000,
    .send_ns = 100000,
    .report = {80000, 300},
    .handoff = {10000, 100},
    .local_ns = 5000,
    .gap_ns = 300,
    .transfer = {200000, 1},
    .scale = 1,
    .share = 1};

static void begin(uint32_t workers)
{
    memset(tasks, 0, sizeof tasks);
    job = (struct mr_whatif_job){.tasks = tasks,
        .inputs = inputs,
        .ops = ops,
        .ops_count = MR_ARRAY_LEN(ops),
        .workers_count = workers,
        .slots = workers,
        .submitted = BEGIN,
        .over = BEGIN};
}

/* Adds a task that ran after all tasks before it. The workers take turns. Returns its index. */
static uint32_t add(mr_duration took, uint64_t bytes)
{
    uint32_t i = job.tasks_count++;
    assert_true(i < TASKS_MAX);
    mr_time at = i ? tasks[i - 1].finished : BEGIN;
    tasks[i] = (struct mr_whatif_task){.worker = i % job.workers_count,
        .inputs_at = job.inputs_count,
        .ready = at,
        .sent = at,
        .received = at,
        .started = at,
        .finished = at + took,
        .accounted = at + took,
        .cpu_ns = took,
        .bytes = bytes};
    job.over = at + took;
    return i;
}

/* Makes task `from` an input of the last task. */
static void need(uint32_t from)
{
    assert_true(job.inputs_count < INPUTS_MAX);
    inputs[job.inputs_count++] = from;
    tasks[job.tasks_count - 1].inputs_count++;
}

static struct mr_whatif_result replay(
    const struct mr_whatif_costs *costs, const struct mr_whatif_change *change)
{
    struct mr_whatif_result r;
    struct mr_error e = {0};
    int err = mr_whatif_replay(&job, costs, change, &r, &e);
    if (err) print_message("%s\n", e.text);
    assert_int_equal(err, MR_OK);
    uint64_t sum = 0, ran = 0;
    for (uint32_t i = 0; i < MR_ACCOUNT_CLASSES; i++)
        sum += r.sums.ns[i];
    for (uint32_t i = 0; i < job.tasks_count; i++)
        ran += mr_whatif_ran(&job, i);
    assert_int_equal(sum, r.wall_ns * r.slots);
    assert_int_equal(r.tasks, ran);
    assert_true(r.wall_ns >= r.chain_ns);
    return r;
}

static uint64_t wall(const struct mr_whatif_costs *costs, uint32_t slots)
{
    const struct mr_whatif_change change = {.slots = slots};
    return replay(costs, &change).wall_ns;
}

static void chain_make(uint32_t n, mr_duration took, uint64_t bytes)
{
    begin(1);
    for (uint32_t i = 0; i < n; i++) {
        (void)add(took, bytes);
        if (i) need(i - 1);
    }
}

static void near(uint64_t is, uint64_t should, double share)
{
    double off = (double)is / (double)should - 1;
    if (off > share || off < -share)
        fail_msg("%.6f s, and should be %.6f s", (double)is / 1e9, (double)should / 1e9);
}

static void a_chain_takes_as_long_on_any_number_of_slots(void **state)
{
    (void)state;
    chain_make(50, 10 * MR_MS, 8);
    for (uint32_t slots = 1; slots <= 8; slots *= 2)
        near(wall(&no_costs, slots), 500 * MR_MS, 0.001);
    chain_make(50, 10 * MR_MS, 0); /* no value was reported, as in a fused chain */
    near(wall(&no_costs, 4), 500 * MR_MS, 0.001);
    job.is_unfused = true;
    near(wall(&no_costs, 4), 500 * MR_MS, 0.001);
}

static void independent_tasks_take_a_share_for_each_slot(void **state)
{
    (void)state;
    begin(1);
    for (uint32_t i = 0; i < 64; i++)
        (void)add(20 * MR_MS, 8);
    for (uint32_t slots = 1; slots <= 64; slots *= 2)
        near(wall(&no_costs, slots), 64 * 20 * MR_MS / slots, 0.02);
    near(wall(&some_costs, 2), 6 * MR_MS + 32 * 20 * MR_MS, 0.02);
}

static void a_prediction_from_two_slots_for_one_adds_the_run_times(void **state)
{
    (void)state;
    begin(2);
    for (uint32_t i = 0; i < 40; i++)
        (void)add(5 * MR_MS, 8);
    near(wall(&no_costs, 1), 200 * MR_MS, 0.01);
    near(wall(&no_costs, 2), 100 * MR_MS, 0.06);
}

static void threads_share_the_processors_of_their_node(void **state)
{
    (void)state;
    const struct mr_whatif_change same = {.slots = 8}, twice = {.slots = 8, .processors = 4},
                                  free = {.slots = 8, .free = MR_WHATIF_FREE_PREEMPTED};
    begin(1);
    for (uint32_t i = 0; i < 16; i++)
        (void)add(10 * MR_MS, 8);
    near(wall(&no_costs, 8), 20 * MR_MS, 0.01); /* the number of processors is not known */
    job.processors = 2;
    struct mr_whatif_result r = replay(&no_costs, &same);
    near(r.wall_ns, 80 * MR_MS, 0.01);
    near(r.sums.ns[MR_ACCOUNT_COMPUTE], 160 * MR_MS, 0.01);
    near(r.sums.ns[MR_ACCOUNT_PREEMPTED], 480 * MR_MS, 0.01);
    near(replay(&no_costs, &twice).wall_ns, 40 * MR_MS, 0.01);
    near(replay(&no_costs, &free).wall_ns, 20 * MR_MS, 0.01);
    near(wall(&no_costs, 2), 80 * MR_MS, 0.01);
    near(wall(&no_costs, 1), 160 * MR_MS, 0.01);
    for (uint32_t i = 0; i < 16; i++)
        tasks[i].cpu_ns = MR_MS; /* and 9 ms without a processor */
    near(wall(&no_costs, 8), 2 * 9 * MR_MS + 8 * MR_MS, 0.3);
    assert_true(wall(&no_costs, 8) >= 20 * MR_MS);
}

/* The scheduler's thread and the worker's thread need processors, too. */
static void work_of_the_scheduler_and_the_worker_takes_processors(void **state)
{
    (void)state;
    begin(1);
    for (uint32_t i = 0; i < 1000; i++)
        (void)add(10000, 8);
    struct mr_whatif_costs costs = no_costs;
    costs.decide_ns = 10000;
    costs.handoff.each_ns = 5000;
    costs.report.each_ns = 5000;
    /* 30 us for each task, of which no thread needs more than 10 us */
    uint64_t alone = wall(&costs, 1);
    job.processors = 2;
    for (uint32_t slots = 1; slots <= 2; slots++) {
        assert_true(wall(&costs, slots) >= 15 * MR_MS);
        assert_true(wall(&costs, slots) < 22 * MR_MS);
    }
    assert_true(wall(&costs, 1) > alone);
    costs.share = 0.5; /* other threads have one of the two processors */
    near(wall(&costs, 2), 30 * MR_MS, 0.05);
    costs.share = 1;
    job.processors = 1;
    near(wall(&costs, 2), 30 * MR_MS, 0.05);
}

/* A wait for a processor that the threads of the cluster have caused comes from the replay. Another
 * wait is part of the task's duration. */
static void waits_for_a_processor_are_counted_once(void **state)
{
    (void)state;
    begin(2);
    for (uint32_t i = 0; i < 20; i++) {
        (void)add(10 * MR_MS, 8);
        tasks[i].cpu_ns = tasks[i].late_ns = 5 * MR_MS;
    }
    near(wall(&no_costs, 1), 200 * MR_MS, 0.01);
    job.processors = 64;
    near(wall(&no_costs, 1), 200 * MR_MS, 0.01);
    job.processors = 2;
    near(wall(&no_costs, 1), 100 * MR_MS, 0.01);
}

static void a_faster_operator_shortens_its_tasks_alone(void **state)
{
    (void)state;
    const double speed[] = {2, 1};
    const struct mr_whatif_change change = {.op_speed = speed};
    chain_make(20, 10 * MR_MS, 8);
    for (uint32_t i = 0; i < 20; i += 2)
        tasks[i].op = 1;
    near(replay(&no_costs, &change).wall_ns, 150 * MR_MS, 0.001);
    tasks[1].input_ns = 4 * MR_MS; /* not the operator's time */
    near(replay(&no_costs, &change).wall_ns, 152 * MR_MS, 0.001);
}

static void what_is_free_takes_no_time(void **state)
{
    (void)state;
    chain_make(20, 10 * MR_MS, 8);
    for (uint32_t i = 0; i < 20; i++) {
        tasks[i].input_ns = 2 * MR_MS;
        tasks[i].output_ns = MR_MS;
        tasks[i].late_ns = MR_MS;
    }
    const struct mr_whatif_change input = {.free = MR_WHATIF_FREE_INPUT};
    const struct mr_whatif_change all = {
        .free = MR_WHATIF_FREE_INPUT | MR_WHATIF_FREE_OUTPUT | MR_WHATIF_FREE_PREEMPTED};
    const struct mr_whatif_change scheduler = {
        .free = MR_WHATIF_FREE_SCHEDULER | MR_WHATIF_FREE_HANDOFF | MR_WHATIF_FREE_JOURNAL};
    near(replay(&no_costs, &input).wall_ns, 160 * MR_MS, 0.001);
    near(replay(&no_costs, &all).wall_ns, 120 * MR_MS, 0.001);
    near(replay(&some_costs, &scheduler).wall_ns, 200 * MR_MS, 0.001);
    assert_true(wall(&some_costs, 1) > 206 * MR_MS);
}

/* Makes n tasks, and n more tasks that each need the large values of all of the first n. There are
 * two workers, each of which makes half of the values. */
static void all_to_all_make(uint32_t n, uint64_t bytes)
{
    begin(2);
    for (uint32_t i = 0; i < n; i++)
        (void)add(MR_MS, bytes);
    for (uint32_t i = 0; i < n; i++) {
        (void)add(MR_MS, 8);
        for (uint32_t k = 0; k < n; k++)
            need(k);
    }
}

static void a_faster_network_shortens_transfers(void **state)
{
    (void)state;
    static const uint32_t apart[] = {0, 1};
    const struct mr_whatif_change twice = {.bandwidth = 2}, none = {0},
                                  free = {.free = MR_WHATIF_FREE_TRANSFER};
    all_to_all_make(16, 10 << 20);
    near(replay(&some_costs, &none).wall_ns, replay(&some_costs, &free).wall_ns, 0.01);
    job.node = apart;
    uint64_t slow = replay(&some_costs, &none).wall_ns, fast = replay(&some_costs, &twice).wall_ns;
    uint64_t at_once = replay(&some_costs, &free).wall_ns;
    /* at least the eight values of one node cross the link, in 10 ms each */
    assert_true(slow > 80 * MR_MS + at_once);
    near(2 * (fast - at_once), slow - at_once, 0.1);
    assert_true(replay(&some_costs, &none).sums.ns[MR_ACCOUNT_TRANSFER] > 80 * MR_MS);
}

/* Replays random graphs. Fused tasks and large values take other paths through the cores. */
static void a_free_scheduler_is_never_faster_than_the_longest_chain(void **state)
{
    (void)state;
    const struct mr_whatif_change free = {.slots = 5, .free = MR_WHATIF_FREE_SCHEDULER};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct mr_rng rng;
        mr_rng_init(&rng, seed);
        begin(1 + (uint32_t)(seed % 3));
        job.processors = (uint32_t)(seed % 4); /* 0: not known */
        for (uint32_t i = 0; i < 300; i++) {
            (void)add(1 + mr_rng_below(&rng, MR_MS), mr_rng_below(&rng, 3) * 4000);
            for (uint64_t n = i ? mr_rng_below(&rng, 4) : 0, from = i; n && from; n--) {
                from -= 1 + mr_rng_below(&rng, MR_MIN(from, 20u));
                need((uint32_t)from);
            }
        }
        struct mr_whatif_result r = replay(&some_costs, &free);
        assert_true(r.wall_ns >= r.chain_ns);
        (void)wall(&some_costs, 1);
        (void)wall(&no_costs, 16);
    }
}

static void a_task_that_did_not_run_is_no_input(void **state)
{
    (void)state;
    struct mr_whatif_result r;
    struct mr_error e = {0};
    const struct mr_whatif_change none = {0};
    chain_make(4, 10 * MR_MS, 8);
    tasks[1].op = MR_WHATIF_NONE;
    near(wall(&no_costs, 2), 20 * MR_MS, 0.001);
    for (uint32_t i = 0; i < 4; i++)
        tasks[i].op = MR_WHATIF_NONE;
    assert_int_equal(mr_whatif_replay(&job, &no_costs, &none, &r, &e), MR_EINVAL);
}

static void costs_are_those_of_the_trace(void **state)
{
    (void)state;
    struct mr_whatif_costs k;
    begin(1);
    for (uint32_t i = 0; i < 200; i++) { /* ten tasks in each message */
        (void)add(MR_MS, 8);
        struct mr_whatif_task *t = &tasks[i];
        uint32_t batch = i / 10;
        t->ready = t->sent = BEGIN + 3 * MR_MS + batch * 20 * MR_MS;
        t->received = t->sent + 70000;
        t->started = t->received + 9000 + i % 10 * (MR_MS + 400);
        t->finished = t->started + MR_MS;
        t->accounted = BEGIN + 3 * MR_MS + 79000 + batch * 20 * MR_MS + 10 * MR_MS + 3600 + 50000;
    }
    job.over = tasks[199].accounted + 2 * MR_MS;
    mr_whatif_costs_measure(&job, &k);
    assert_int_equal(k.begin_ns, 3 * MR_MS);
    assert_int_equal(k.end_ns, 2 * MR_MS);
    assert_int_equal((int)k.gap_ns, 400);
    assert_int_equal((int)k.handoff.first_ns, 9000);
    assert_int_equal((int)k.send_ns, 70000);
    assert_int_equal((int)(k.report.first_ns + 10 * k.report.each_ns), 50000);
    assert_int_equal(k.send_samples, 20);
    assert_int_equal(k.transfer_samples, 0);
}

static void nodes_follow_from_waits_for_large_values(void **state)
{
    (void)state;
    uint32_t node[4];
    begin(4);
    for (uint32_t i = 0; i < 4; i++)
        (void)add(MR_MS, 1 << 20);
    mr_whatif_nodes_find(&job, node);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(node[i], 0);
    for (uint32_t i = 0; i < 4; i++) { /* workers 0 and 1 share a node, and so do 2 and 3 */
        (void)add(MR_MS, 8);
        need(i ^ 1);
        (void)add(MR_MS, 8);
        tasks[job.tasks_count - 1].worker = i;
        tasks[job.tasks_count - 2].worker = i;
        need(i ^ 2);
        tasks[job.tasks_count - 1].inputs = tasks[job.tasks_count - 1].started;
    }
    mr_whatif_nodes_find(&job, node);
    assert_int_equal(node[0], 0);
    assert_int_equal(node[1], 0);
    assert_int_equal(node[2], 2);
    assert_int_equal(node[3], 2);
}

static void fused_chains_are_told_from_unfused_ones(void **state)
{
    (void)state;
    chain_make(5, MR_MS, 8);
    assert_true(mr_whatif_is_unfused(&job));
    tasks[2].bytes = 0;
    assert_false(mr_whatif_is_unfused(&job));
    begin(1);
    for (uint32_t i = 0; i < 5; i++)
        (void)add(MR_MS, 8);
    assert_false(mr_whatif_is_unfused(&job)); /* no chain */
}

static void names_of_what_can_be_free(void **state)
{
    (void)state;
    assert_int_equal(mr_whatif_free_of(MR_STR("scheduler")), MR_WHATIF_FREE_SCHEDULER);
    assert_int_equal(mr_whatif_free_of(MR_STR("transfer")), MR_WHATIF_FREE_TRANSFER);
    assert_int_equal(mr_whatif_free_of(MR_STR("compute")), 0);
}

static void a_calibrated_replay_takes_the_recorded_time(void **state)
{
    (void)state;
    struct mr_whatif_costs k;
    struct mr_whatif_result same;
    struct mr_error e = {0};
    begin(1);
    for (uint32_t i = 0; i < 500; i++) {
        (void)add(5000, 8);
        struct mr_whatif_task *t = &tasks[i];
        t->ready = t->sent = BEGIN + MR_MS;
        t->received = t->sent + 90000;
        t->started = t->received + 10000 + (mr_time)i * 25000; /* gaps of 20 us */
        t->finished = t->started + 5000;
        t->accounted = t->finished + 60000;
    }
    job.over = tasks[499].accounted + MR_MS;
    assert_int_equal(mr_whatif_calibrate(&job, &k, &same, &e), MR_OK);
    near(same.wall_ns, job.over - job.submitted, 0.01);
    assert_true(wall(&k, 2) < (job.over - job.submitted) * 2 / 3);
}

/* The messages with the tasks are held back for 200 ms, and then those with the completions. What
 * all slots lose, against the same run without it, is in the class of these messages. */
static void a_message_that_is_held_back_has_a_class(void **state)
{
    (void)state;
    begin(2);
    for (uint32_t i = 0; i < 20; i++)
        (void)add(10 * MR_MS, 8);
    const struct mr_whatif_change same = {.slots = 2};
    struct mr_whatif_costs held = no_costs;
    held.send_ns = 200.0 * MR_MS;
    struct mr_whatif_result without = replay(&no_costs, &same), with = replay(&held, &same);
    uint64_t lost = 2 * (with.wall_ns - without.wall_ns);
    assert_true(lost >= 400 * MR_MS);
    assert_true(with.sums.ns[MR_ACCOUNT_SEND] >= lost / 10 * 9);
    held = no_costs;
    held.report.first_ns = 200.0 * MR_MS;
    with = replay(&held, &same);
    lost = 2 * (with.wall_ns - without.wall_ns);
    assert_true(lost >= 400 * MR_MS);
    assert_true(with.sums.ns[MR_ACCOUNT_REPORT] >= lost / 10 * 9);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(a_chain_takes_as_long_on_any_number_of_slots),
        cmocka_unit_test(independent_tasks_take_a_share_for_each_slot),
        cmocka_unit_test(a_prediction_from_two_slots_for_one_adds_the_run_times),
        cmocka_unit_test(threads_share_the_processors_of_their_node),
        cmocka_unit_test(work_of_the_scheduler_and_the_worker_takes_processors),
        cmocka_unit_test(waits_for_a_processor_are_counted_once),
        cmocka_unit_test(a_faster_operator_shortens_its_tasks_alone),
        cmocka_unit_test(what_is_free_takes_no_time),
        cmocka_unit_test(a_faster_network_shortens_transfers),
        cmocka_unit_test(a_free_scheduler_is_never_faster_than_the_longest_chain),
        cmocka_unit_test(a_task_that_did_not_run_is_no_input),
        cmocka_unit_test(costs_are_those_of_the_trace),
        cmocka_unit_test(nodes_follow_from_waits_for_large_values),
        cmocka_unit_test(fused_chains_are_told_from_unfused_ones),
        cmocka_unit_test(names_of_what_can_be_free),
        cmocka_unit_test(a_message_that_is_held_back_has_a_class),
        cmocka_unit_test(a_calibrated_replay_takes_the_recorded_time),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}
