/* The account divides the time of each slot into pieces, by what the slot did or waited for. Each
 * cause of idleness is planted once, for a known time. */
#include "tests/unit/account/rig.h"

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
    give(t);
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_MEMORY), 100);
    assert_int_equal(ms_of(MR_ACCOUNT_RESTRICTED), 200);
    assert_int_equal(ms_of(MR_ACCOUNT_TRANSFER), 100);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 600);
}

/* The store reads an input from disk for 300 of the 400 ms that the inputs take. The second task
 * claims to have waited for the disk for longer than its inputs took. */
static void the_wait_for_an_input_from_disk_is_a_restore(void **state)
{
    (void)state;
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    struct mr_account_task t = ran(0, 0, 1, 501);
    t.input_ns = MS(400);
    t.restore_ns = MS(300);
    t.cpu_ns = MS(100);
    give(t);
    t = ran(1, 0, 501, 1001);
    t.input_ns = MS(100);
    t.restore_ns = MS(200);
    give(t);
    end(1);
    assert_int_equal(ms_of(MR_ACCOUNT_RESTORE), 400);
    assert_int_equal(ms_of(MR_ACCOUNT_INPUT), 100);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 500);
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
        cmocka_unit_test(each_step_of_a_task_has_its_class),
        cmocka_unit_test(a_task_that_was_held_back_names_the_reason),
        cmocka_unit_test(the_wait_for_an_input_from_disk_is_a_restore),
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
        cmocka_unit_test(every_class_has_a_name),
    };
    return cmocka_run_group_tests_name("account", tests, NULL, teardown);
}
