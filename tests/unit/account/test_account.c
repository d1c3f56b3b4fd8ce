/* The account divides the time of each slot into pieces, by what the slot did or waited for. Each
 * cause of idleness is planted once, for a known time. In random runs, the pieces of a slot must
 * cover the slot's time without gap and overlap. Times are in ms. */
#include "account/account.h"
#include "base/alloc.h"
#include "base/defs.h"
#include "base/rng.h"
#include "account/training_shares.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define INPUTS_MAX 8
#define TASKS_MAX 4096
#define PIECES_MAX (1u << 20)
#define MS(t) ((mr_time)(t)*MR_MS)

static struct {
    uint32_t count, index[INPUTS_MAX]; /* the inputs */
    mr_time finished;
} tasks[TASKS_MAX];

static struct {
    struct mr_account *a;
    struct mr_account_sums sums;
    struct mr_account_piece *pieces;
    uint32_t count;
    mr_time from, until;
} at;

static void take(void *ctx, const struct mr_account_piece *p)
{
    (void)ctx;
    assert_true(p->from < p->to);
    assert_true(p->from >= at.from && p->to <= at.until);
    assert_true(at.count < PIECES_MAX);
    at.pieces[at.count++] = *p;
    mr_account_sum(&at.sums, p);
}

static void begin(mr_time from, mr_time until)
{
    const struct mr_account_config config = {
        .from = from, .until = until, .recent_max = 4096, .sink = take};
    memset(tasks, 0, sizeof tasks);
    mr_release(at.pieces);
    memset(&at, 0, sizeof at);
    at.from = from;
    at.until = until;
    at.pieces = mr_alloc_array(PIECES_MAX, sizeof *at.pieces);
    at.a = mr_account_open(&config);
}

/* Begins an account of the first 1,000 ms with slots that exist from the beginning on. */
static void begin_slots(uint32_t slots)
{
    begin(MS(1), MS(1001));
    for (uint32_t i = 0; i < slots; i++)
        mr_account_lane(at.a, i, MS(1), MS(1));
}

static int by_lane_and_time(const void *a, const void *b)
{
    const struct mr_account_piece *x = a, *y = b;
    if (x->lane != y->lane) return x->lane < y->lane ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Ends the account. The pieces of each slot cover the whole time once. */
static void end(uint32_t slots)
{
    mr_account_close(&at.a);
    qsort(at.pieces, at.count, sizeof *at.pieces, by_lane_and_time);
    uint32_t i = 0;
    for (uint32_t lane = 0; lane < slots; lane++) {
        mr_time to = at.from;
        for (; i < at.count && at.pieces[i].lane == lane; i++) {
            assert_true(at.pieces[i].from == to);
            to = at.pieces[i].to;
        }
        assert_true(to == at.until);
    }
    assert_int_equal(i, at.count);
}

static mr_duration ms_of(enum mr_account_class class)
{
    return (at.sums.ns[class] + MR_MS / 2) / MR_MS;
}

/* Returns a task that ran without any delay: ready, sent, received and started at once. */
static struct mr_account_task ran(uint32_t index, uint32_t lane, mr_time from, mr_time to)
{
    return (struct mr_account_task){.index = index,
        .lane = lane,
        .ready = MS(from),
        .sent = MS(from),
        .received = MS(from),
        .started = MS(from),
        .finished = MS(to),
        .accounted = MS(to),
        .cpu_ns = MS(to) - MS(from)};
}

static void needs(uint32_t index, uint32_t input)
{
    tasks[index].index[tasks[index].count++] = input;
}

/* Reports the task with its last input: the one that finished last. */
static void give(struct mr_account_task t)
{
    mr_time last = 0;
    t.last_input = t.index;
    for (uint32_t i = 0; i < tasks[t.index].count; i++) {
        uint32_t input = tasks[t.index].index[i];
        if (tasks[input].finished <= last) continue;
        last = tasks[input].finished;
        t.last_input = input;
    }
    tasks[t.index].finished = t.finished;
    mr_account_task(at.a, &t);
}

static int teardown(void **state)
{
    (void)state;
    mr_release(at.pieces);
    at.pieces = NULL;
    return 0;
}

/* ---- one cause at a time -------------------------------------------------------------------- */

static void the_run_time_is_divided_by_what_the_worker_measured(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    struct mr_account_task t = ran(0, 0, 1, 1001);
    t.input_ns = MS(100);
    t.output_ns = MS(50);
    t.room_ns = MS(20);
    t.late_ns = MS(200);
    t.cpu_ns = MS(400);
    give(t);
    mr_account_job_over(at.a, 0, MS(1001), MS(1001));
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_INPUT), 100);
    assert_int_equal(ms_of(MR_ACCOUNT_OUTPUT), 30);
    assert_int_equal(ms_of(MR_ACCOUNT_MEMORY), 20);
    assert_int_equal(ms_of(MR_ACCOUNT_PREEMPTED), 200);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 400);
    assert_int_equal(ms_of(MR_ACCOUNT_BLOCKED), 250);
}

/* The worker of slot 0 is paused for 300 ms while its task waits for a lock. Slot 1 waits for that
 * task. */
static void a_paused_worker_is_stopped_and_so_is_who_waits_for_it(void **state)
{
    (void)state;
    begin_slots(2);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    mr_account_pause(at.a, 0, MS(201), MS(501));
    struct mr_account_task t = ran(0, 0, 1, 701);
    t.cpu_ns = MS(250);
    give(t);
    needs(1, 0);
    give(ran(1, 1, 701, 1001));
    mr_account_job_over(at.a, 0, MS(1001), MS(1001));
    end(2);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 550);
    assert_int_equal(ms_of(MR_ACCOUNT_BLOCKED), 150);
    assert_int_equal(ms_of(MR_ACCOUNT_STOPPED), 600);
    assert_int_equal(ms_of(MR_ACCOUNT_DEPENDENCY), 400);
    assert_int_equal(ms_of(MR_ACCOUNT_IMBALANCE), 300); /* slot 0 waits for the second task */
}

/* The scheduler is paused from 301 to 801 ms. A completion waits that long, and the next task is
 * sent 100 ms later. */
static void a_paused_scheduler_decides_late(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    mr_account_pause(at.a, MR_ACCOUNT_NONE, MS(301), MS(801));
    struct mr_account_task t = ran(0, 0, 1, 301);
    t.accounted = MS(801);
    give(t);
    t = ran(1, 0, 901, 1001);
    t.ready = MS(1);
    give(t);
    mr_account_job_over(at.a, 0, MS(1001), MS(1001));
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 400);
    assert_int_equal(ms_of(MR_ACCOUNT_DECIDE), 600);
}

/* A paused worker reports its first task late and receives the second task late. */
static void messages_of_a_paused_worker_wait(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    mr_account_pause(at.a, 0, MS(101), MS(301));
    mr_account_pause(at.a, 0, MS(401), MS(601));
    struct mr_account_task t = ran(0, 0, 1, 101);
    t.accounted = MS(351);
    give(t);
    t = ran(1, 0, 351, 1001);
    t.ready = MS(1);
    t.received = t.started = MS(651);
    t.cpu_ns = MS(350);
    give(t);
    mr_account_job_over(at.a, 0, MS(1001), MS(1001));
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_STOPPED), 400);
    assert_int_equal(ms_of(MR_ACCOUNT_SEND), 100);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 450);
}

/* The worker received the task after 100 ms and started it after 500 ms. For 300 of the 400 ms
 * between, the kernel ran other threads. */
static void a_worker_that_the_kernel_delays_hands_over_late(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    struct mr_account_task t = ran(0, 0, 1, 1001);
    t.received = MS(101);
    t.started = MS(501);
    t.cpu_ns = MS(500);
    t.delayed_ns = MS(300);
    give(t);
    mr_account_job_over(at.a, 0, MS(1001), MS(1001));
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_SEND), 100);
    assert_int_equal(ms_of(MR_ACCOUNT_HANDOFF), 100);
    assert_int_equal(ms_of(MR_ACCOUNT_PREEMPTED), 300);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 500);
}

/* A task of 1,000 ms stored its result for 900 ms. The kernel ran other threads for 800 ms. */
static void a_delay_while_the_result_is_stored_is_no_output(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    struct mr_account_task t = ran(0, 0, 1, 1001);
    t.output_ns = t.room_ns = MS(900);
    t.late_ns = MS(800);
    t.cpu_ns = MS(100);
    give(t);
    mr_account_job_over(at.a, 0, MS(1001), MS(1001));
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_PREEMPTED), 800);
    assert_int_equal(ms_of(MR_ACCOUNT_MEMORY) + ms_of(MR_ACCOUNT_OUTPUT), 200);
}

/* Clients learn of the end of a job when Redis has the record of it. */
static void the_end_of_a_job_waits_for_the_journal(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    give(ran(0, 0, 1, 301));
    mr_account_job_over(at.a, 0, MS(301), MS(801));
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 300);
    assert_int_equal(ms_of(MR_ACCOUNT_JOURNAL), 500);
    assert_int_equal(ms_of(MR_ACCOUNT_NO_WORK), 200);
}

/* The processor time of a task adds up over threads, so it may exceed the task's run. The parts of
 * a run are cut so that together they are as long as the run. Delays by the kernel are cut last. */
static void measured_times_longer_than_the_run_are_cut(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    struct mr_account_task t = ran(0, 0, 1, 1001);
    t.input_ns = MS(600);
    t.output_ns = MS(600);
    t.late_ns = MS(600);
    t.cpu_ns = MS(5000);
    give(t);
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_INPUT), 400);
    assert_int_equal(ms_of(MR_ACCOUNT_OUTPUT), 0);
    assert_int_equal(ms_of(MR_ACCOUNT_PREEMPTED), 600);
}

static mr_duration share_ns(const mr_duration ns[MR_TRAINING_PARTS], enum mr_training_part part)
{
    return mr_training_part_ns(mr_training_shares(ns, MS(1000)), part, MS(1000));
}

static void shares_are_rounded_to_a_part_in_65535(void **state)
{
    (void)state;
    const mr_duration ns[MR_TRAINING_PARTS] = {0, 1, MS(333), MS(5000)};
    assert_int_equal(share_ns(ns, MR_TRAINING_FEED), 0);
    assert_int_equal(share_ns(ns, MR_TRAINING_PULL), 0);
    assert_in_range(share_ns(ns, MR_TRAINING_PUSH), MS(333) - MS(1000) / 65535, MS(334));
    assert_int_equal(share_ns(ns, MR_TRAINING_WAIT), MS(1000)); /* not more than the whole */
    assert_int_equal(mr_training_shares(ns, 0), 0);
}

/* A training role runs beside slot 0, as lane 1, from 201 to 801. It was ready at 101. Lane 1
 * exists only for the role, so its time before 101 and after 801 is in no class. */
static void the_run_of_a_training_role_has_a_lane_of_its_own(void **state)
{
    (void)state;
    const mr_duration ns[MR_TRAINING_PARTS] = {MS(60), MS(30), MS(90), MS(120)};
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    struct mr_account_task t = ran(0, 1, 201, 801);
    t.ready = MS(101);
    t.sent = MS(121);
    t.training = mr_training_shares(ns, MS(600));
    t.cpu_ns = MS(200);
    t.is_beside = true;
    give(t);
    mr_account_job_over(at.a, 0, MS(1001), MS(1001));
    mr_account_close(&at.a);
    mr_duration sum = 0, slots = 0;
    for (uint32_t i = 0; i < at.count; i++) {
        const struct mr_account_piece *p = &at.pieces[i];
        sum += p->to - p->from;
        slots += p->lane ? 0 : p->to - p->from;
        if (p->lane) assert_true(p->from >= MS(101) && p->to <= MS(801));
    }
    assert_true(slots == MS(1000) && sum == MS(1700));
    assert_int_equal(ms_of(MR_ACCOUNT_FEED), 60);
    assert_int_equal(ms_of(MR_ACCOUNT_PULL), 30);
    assert_int_equal(ms_of(MR_ACCOUNT_PUSH), 90);
    assert_int_equal(ms_of(MR_ACCOUNT_WAIT), 120);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 200);
    assert_int_equal(ms_of(MR_ACCOUNT_BLOCKED), 100);
    /* slot 0 also waits until the role starts */
    assert_int_equal(ms_of(MR_ACCOUNT_SEND), 2 * 80);
}

/* Each step of the task until its start takes a different time. The task is submitted at 2,
 * accepted at 12, ready at 42, sent at 82 and received at 132. It has its inputs at 192 and starts
 * at 262. */
static void each_step_of_a_task_has_its_class(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(2), MS(12));
    give((struct mr_account_task){.ready = MS(42),
        .sent = MS(82),
        .received = MS(132),
        .inputs = MS(192),
        .started = MS(262),
        .finished = MS(300),
        .accounted = MS(350),
        .cpu_ns = MS(38)});
    mr_account_job_over(at.a, 0, MS(400), MS(400));
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_JOURNAL), 10);
    assert_int_equal(ms_of(MR_ACCOUNT_SEND), 50);
    assert_int_equal(ms_of(MR_ACCOUNT_TRANSFER), 60);
    assert_int_equal(ms_of(MR_ACCOUNT_HANDOFF), 70);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 38);
    assert_int_equal(ms_of(MR_ACCOUNT_REPORT), 50);
    /* 30 and 40 before the task, and 50 from the last completion to the end of the job */
    assert_int_equal(ms_of(MR_ACCOUNT_DECIDE), 120);
    assert_int_equal(ms_of(MR_ACCOUNT_NO_WORK), 1 + 601);
}

static void a_task_that_was_held_back_names_the_reason(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    struct mr_account_task t = ran(0, 0, 101, 201);
    t.ready = MS(1);
    t.hold = MR_ACCOUNT_MEMORY;
    give(t);
    t = ran(1, 0, 401, 501);
    t.ready = MS(1);
    t.hold = MR_ACCOUNT_RESTRICTED;
    give(t);
    t = ran(2, 0, 601, 1001);
    t.ready = MS(1);
    t.received = t.sent = MS(501);
    t.inputs = MS(601);
    t.is_restored = true;
    give(t);
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_MEMORY), 100);
    assert_int_equal(ms_of(MR_ACCOUNT_RESTRICTED), 200);
    assert_int_equal(ms_of(MR_ACCOUNT_RESTORE), 100);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 600);
}

/* The next task was ready long ago, but the scheduler learned only at 301 that the slot was free.
 */
static void a_late_completion_of_the_slot_is_a_report(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    struct mr_account_task t = ran(0, 0, 1, 101);
    t.accounted = MS(301);
    give(t);
    t = ran(1, 0, 351, 1001);
    t.ready = MS(1);
    give(t);
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_REPORT), 200);
    assert_int_equal(ms_of(MR_ACCOUNT_DECIDE), 50);
}

/* Slot 1 waits for slot 0, on which a chain of tasks runs. What delays the chain delays slot 1. */
static void a_slot_waits_for_what_the_chain_waits_for(void **state)
{
    (void)state;
    begin_slots(2);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    needs(1, 0);
    needs(2, 1);
    struct mr_account_task t = ran(0, 0, 1, 201);
    t.accounted = MS(251); /* 50 of report */
    give(t);
    t = ran(1, 0, 351, 501); /* 100 of sending */
    t.ready = t.sent = MS(251);
    give(t);
    t = ran(2, 1, 501, 1001);
    t.op = 1;
    give(t);
    end(2);
    assert_int_equal(ms_of(MR_ACCOUNT_REPORT), 2 * 50);
    assert_int_equal(ms_of(MR_ACCOUNT_SEND), 2 * 100);
    /* Slot 1 is idle from 1 to 501; report and sending are 150 of this time. Slot 0 is idle from
     * 501 to 1001. */
    assert_int_equal(ms_of(MR_ACCOUNT_DEPENDENCY), 350 + 500);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 350 + 500);
}

/* Task 1 was sent before its input, the value of task 0, was made. Both tasks run on one worker. */
static void a_task_that_was_sent_early_waits_for_its_input_only(void **state)
{
    (void)state;
    begin_slots(2);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    needs(1, 0);
    give(ran(0, 0, 1, 501));
    struct mr_account_task t = ran(1, 1, 511, 1001);
    t.ready = 0;
    t.sent = t.received = MS(1);
    t.op = 1;
    give(t);
    end(2);
    assert_int_equal(ms_of(MR_ACCOUNT_HANDOFF), 10 * 2); /* slot 0 waits for the same task */
    assert_int_equal(ms_of(MR_ACCOUNT_DEPENDENCY), 500 + 490);
    assert_int_equal(ms_of(MR_ACCOUNT_UNKNOWN), 0);
}

/* As in the test before, but task 0 ran on another node. The scheduler learns 20 later that task 0
 * has ended, and the bytes of the input take 80 more. */
static void an_input_from_elsewhere_is_a_report_and_a_transfer(void **state)
{
    (void)state;
    begin_slots(2);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    needs(1, 0);
    struct mr_account_task t = ran(0, 0, 1, 501);
    t.accounted = MS(521);
    give(t);
    t = ran(1, 1, 611, 1001);
    t.ready = 0;
    t.sent = t.received = MS(1);
    t.inputs = MS(601);
    t.op = 1;
    give(t);
    end(2);
    /* both slots wait for the task with index 1: slot 0 has no other task */
    assert_int_equal(ms_of(MR_ACCOUNT_REPORT), 20 * 2);
    assert_int_equal(ms_of(MR_ACCOUNT_TRANSFER), 80 * 2);
    assert_int_equal(ms_of(MR_ACCOUNT_HANDOFF), 10 * 2);
}

/* Four equal tasks; the last takes much longer than the others. */
static void a_straggler_among_equals_is_an_imbalance(void **state)
{
    (void)state;
    begin_slots(4);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    for (uint32_t i = 0; i < 3; i++)
        give(ran(i, i, 1, 101));
    give(ran(3, 3, 1, 1001));
    mr_account_job_over(at.a, 0, MS(1001), MS(1001));
    end(4);
    assert_int_equal(ms_of(MR_ACCOUNT_IMBALANCE), 3 * 900);
    assert_int_equal(ms_of(MR_ACCOUNT_DEPENDENCY), 0);
}

/* Slot 0 has two tasks in its queue, and slot 1 has none. */
static void a_task_in_the_queue_of_another_slot_is_an_imbalance(void **state)
{
    (void)state;
    begin_slots(2);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    needs(2, 1);
    give(ran(0, 0, 1, 401));
    struct mr_account_task t = ran(1, 0, 401, 501);
    t.ready = t.sent = t.received = MS(1);
    give(t);
    t = ran(2, 1, 501, 1001);
    t.op = 1;
    give(t);
    end(2);
    assert_int_equal(ms_of(MR_ACCOUNT_IMBALANCE), 400);
    assert_int_equal(ms_of(MR_ACCOUNT_DEPENDENCY), 100 + 500);
}

/* The kernel ran another thread for half of the run that slot 1 waits for. */
static void a_preempted_task_delays_those_that_wait_for_it(void **state)
{
    (void)state;
    begin_slots(2);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    needs(1, 0);
    struct mr_account_task t = ran(0, 0, 1, 501);
    t.late_ns = MS(250);
    t.cpu_ns = MS(250);
    give(t);
    t = ran(1, 1, 501, 1001);
    t.op = 1;
    give(t);
    end(2);
    assert_in_range(ms_of(MR_ACCOUNT_PREEMPTED), 499, 500);
    assert_in_range(ms_of(MR_ACCOUNT_DEPENDENCY), 750, 751);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void the_time_between_jobs_of_a_client_is_the_clients(void **state)
{
    (void)state;
    begin_slots(2);
    mr_account_job(at.a, 0, 7, MS(101), MS(101));
    give(ran(0, 0, 101, 201));
    mr_account_job_over(at.a, 0, MS(201), MS(201));
    mr_account_job(at.a, 1, 7, MS(301), MS(301));
    struct mr_account_task t = ran(0, 0, 301, 401);
    t.job = 1;
    give(t);
    mr_account_job_over(at.a, 1, MS(401), MS(401));
    mr_account_job(at.a, 2, 8, MS(601), MS(601)); /* of another client */
    t = ran(0, 1, 601, 1001);
    t.job = 2;
    give(t);
    mr_account_job_over(at.a, 2, MS(1001), MS(1001));
    end(2);
    assert_int_equal(ms_of(MR_ACCOUNT_CLIENT), 2 * 100);
    assert_int_equal(ms_of(MR_ACCOUNT_NO_WORK), 2 * 100 + 2 * 200);
    assert_int_equal(ms_of(MR_ACCOUNT_DEPENDENCY), 100 + 100 + 400);
}

/* While the second job was not submitted, slot 1 waited for the first, which still ran. */
static void before_its_job_a_slot_waited_for_the_job_that_ran(void **state)
{
    (void)state;
    begin_slots(2);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    mr_account_job(at.a, 1, 1, MS(501), MS(521));
    struct mr_account_task t = ran(0, 1, 521, 701);
    t.job = 1;
    give(t);
    mr_account_job_over(at.a, 1, MS(701), MS(701));
    give(ran(0, 0, 1, 1001));
    mr_account_job_over(at.a, 0, MS(1001), MS(1001));
    end(2);
    assert_int_equal(ms_of(MR_ACCOUNT_JOURNAL), 20);
    assert_int_equal(ms_of(MR_ACCOUNT_DEPENDENCY), 500 + 300);
    for (uint32_t i = 0; i < at.count; i++)
        if (at.pieces[i].class == MR_ACCOUNT_DEPENDENCY) assert_int_equal(at.pieces[i].job, 0);
}

/* The account ends while a job runs whose tasks have not been accounted. */
static void a_job_that_still_runs_is_a_dependency(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(101), MS(101));
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_NO_WORK), 100);
    assert_int_equal(ms_of(MR_ACCOUNT_DECIDE), 900);
}

static void a_slot_before_its_worker_joined_and_after_it_left(void **state)
{
    (void)state;
    begin(MS(1), MS(1001));
    mr_account_lane(at.a, 0, MS(1), MS(101));
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    give(ran(0, 0, 101, 301));
    mr_account_lane_gone(at.a, 0, MS(301));
    mr_account_lane(at.a, 0, MS(501), MS(551));
    give(ran(1, 0, 551, 601));
    mr_account_lane_gone(at.a, 0, MS(601));
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_START_UP), 100 + 50);
    assert_int_equal(ms_of(MR_ACCOUNT_STOPPED), 200 + 400);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 250);
}

/* The trace of an old version has no time of receipt. */
static void times_that_are_not_recorded_are_unknown(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), 0);
    struct mr_account_task t = ran(0, 0, 501, 1001);
    t.ready = MS(1);
    t.sent = MS(401);
    t.received = 0;
    give(t);
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_UNKNOWN), 100);
    assert_int_equal(ms_of(MR_ACCOUNT_DECIDE), 400);
}

static void tasks_outside_of_the_account_do_not_count(void **state)
{
    (void)state;
    begin(MS(500), MS(1000));
    mr_account_lane(at.a, 0, MS(1), MS(1));
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    give(ran(0, 0, 1, 100));
    give(ran(1, 0, 400, 600));
    give(ran(2, 0, 900, 1200));
    mr_account_job_over(at.a, 0, MS(1200), MS(1200));
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 200);
}

/* ---- random runs ----------------------------------------------------------------------------- */

#define LANES 5

struct made {
    mr_time finished, accounted;
    uint32_t lane;
};

/* Adds a job with a random graph to the account. The tasks run in order of their index. Each task
 * gets the slot that is free first. Each step of a task has a random delay. */
static void random_job(
    struct mr_rng *r, uint32_t job, uint32_t first, mr_time *lane_free, mr_time *now)
{
    static struct made made[TASKS_MAX];
    mr_time submitted = *now + mr_rng_below(r, MR_MS), over = submitted;
    mr_account_job(
        at.a, job, (uint32_t)mr_rng_below(r, 2), submitted, submitted + mr_rng_below(r, MR_MS));
    uint32_t count = 1 + (uint32_t)mr_rng_below(r, 60);
    for (uint32_t i = first; i < first + count; i++) {
        tasks[i].count = 0;
        mr_time ready = submitted + mr_rng_below(r, MR_MS);
        for (uint64_t k = mr_rng_below(r, 3); k && i > first; k--) {
            uint32_t input = i - 1 - (uint32_t)mr_rng_below(r, MR_MIN(i - first, 6u));
            needs(i, input);
            ready = MR_MAX(ready, made[input].accounted);
        }
        uint32_t lane = 0;
        for (uint32_t k = 1; k < LANES; k++)
            if (lane_free[k] < lane_free[lane]) lane = k;
        struct mr_account_task t = {
            .job = job, .index = i, .op = i % 3, .lane = lane, .ready = ready};
        t.sent = ready + mr_rng_below(r, MR_MS);
        t.received = t.sent + mr_rng_below(r, MR_MS);
        t.started = MR_MAX(lane_free[lane], t.received + mr_rng_below(r, MR_MS));
        t.finished = t.started + mr_rng_below(r, 4 * MR_MS);
        t.accounted = t.finished + mr_rng_below(r, MR_MS);
        t.cpu_ns = mr_rng_below(r, 4 * MR_MS);
        t.hold = mr_rng_below(r, 8) ? 0 : MR_ACCOUNT_MEMORY;
        if (!mr_rng_below(r, 4))
            t.inputs = t.received + mr_rng_below(r, t.started - t.received + 1);
        if (!mr_rng_below(r, 16)) t.received = 0;
        made[i] = (struct made){t.finished, t.accounted, lane};
        lane_free[lane] = t.finished;
        over = MR_MAX(over, t.accounted);
        give(t);
    }
    mr_account_job_over(at.a, job, over + mr_rng_below(r, MR_MS), over + mr_rng_below(r, MR_MS));
    /* the next job begins after this one, or at about the same time */
    *now = mr_rng_below(r, 2) ? over : submitted;
}

static void random_runs_are_covered_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct mr_rng r;
        mr_time lane_free[LANES], now = MS(1);
        mr_rng_init(&r, seed);
        begin(MS(1), MS(1) + mr_rng_below(&r, MS(400)) + 1);
        for (uint32_t i = 0; i < LANES; i++) {
            lane_free[i] = MS(1) + mr_rng_below(&r, MR_MS);
            mr_account_lane(at.a, i, MS(1), lane_free[i]);
        }
        for (uint32_t job = 0; job < 30; job++)
            random_job(&r, job, job * 64, lane_free, &now);
        end(LANES);
    }
}

/* Slot 0 runs many small jobs, and slot 1 never gets a task. At the end, the idle time of slot 1 is
 * divided by what these jobs waited for. */
static void an_idle_slot_beside_many_jobs(void **state)
{
    (void)state;
    begin(MS(1), MS(3001));
    mr_account_lane(at.a, 0, MS(1), MS(1));
    mr_account_lane(at.a, 1, MS(1), MS(1));
    for (uint32_t job = 0; job < 3000; job++) {
        mr_time t0 = MS(1 + job);
        mr_account_job(at.a, job, 0, t0, t0);
        give((struct mr_account_task){.job = job,
            .ready = t0,
            .sent = t0,
            .received = t0 + MR_MS / 10,
            .started = t0 + MR_MS / 5,
            .finished = t0 + MR_MS / 2,
            .accounted = t0 + MR_MS / 2,
            .cpu_ns = MR_MS});
        mr_account_job_over(at.a, job, t0 + MR_MS / 2, t0 + MR_MS / 2);
    }
    end(2);
    assert_int_equal(ms_of(MR_ACCOUNT_SEND), 600);
    assert_int_equal(ms_of(MR_ACCOUNT_HANDOFF), 600);
    assert_int_equal(ms_of(MR_ACCOUNT_DEPENDENCY), 900);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 900);
    assert_in_range(ms_of(MR_ACCOUNT_CLIENT), 2998, 3000);
}

static void every_class_has_a_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MR_ACCOUNT_CLASSES; i++)
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(mr_account_class_name((enum mr_account_class)i),
                mr_account_class_name((enum mr_account_class)k));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_run_time_is_divided_by_what_the_worker_measured),
        cmocka_unit_test(the_end_of_a_job_waits_for_the_journal),
        cmocka_unit_test(a_paused_worker_is_stopped_and_so_is_who_waits_for_it),
        cmocka_unit_test(a_paused_scheduler_decides_late),
        cmocka_unit_test(a_delay_while_the_result_is_stored_is_no_output),
        cmocka_unit_test(a_worker_that_the_kernel_delays_hands_over_late),
        cmocka_unit_test(messages_of_a_paused_worker_wait),
        cmocka_unit_test(measured_times_longer_than_the_run_are_cut),
        cmocka_unit_test(shares_are_rounded_to_a_part_in_65535),
        cmocka_unit_test(the_run_of_a_training_role_has_a_lane_of_its_own),
        cmocka_unit_test(each_step_of_a_task_has_its_class),
        cmocka_unit_test(a_task_that_was_held_back_names_the_reason),
        cmocka_unit_test(a_late_completion_of_the_slot_is_a_report),
        cmocka_unit_test(a_slot_waits_for_what_the_chain_waits_for),
        cmocka_unit_test(a_task_that_was_sent_early_waits_for_its_input_only),
        cmocka_unit_test(an_input_from_elsewhere_is_a_report_and_a_transfer),
        cmocka_unit_test(a_straggler_among_equals_is_an_imbalance),
        cmocka_unit_test(a_task_in_the_queue_of_another_slot_is_an_imbalance),
        cmocka_unit_test(a_preempted_task_delays_those_that_wait_for_it),
        cmocka_unit_test(the_time_between_jobs_of_a_client_is_the_clients),
        cmocka_unit_test(before_its_job_a_slot_waited_for_the_job_that_ran),
        cmocka_unit_test(a_job_that_still_runs_is_a_dependency),
        cmocka_unit_test(a_slot_before_its_worker_joined_and_after_it_left),
        cmocka_unit_test(times_that_are_not_recorded_are_unknown),
        cmocka_unit_test(tasks_outside_of_the_account_do_not_count),
        cmocka_unit_test(random_runs_are_covered_once),
        cmocka_unit_test(an_idle_slot_beside_many_jobs),
        cmocka_unit_test(every_class_has_a_name),
    };
    return cmocka_run_group_tests_name("account", tests, NULL, teardown);
}
