/* The scheduler's core: what the slots do now, and how many tasks of a job ended, by operator. */
#include "services/scheduler/core/running.h"
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define OPS_MAX 64

static struct mr_sched_doing doing;
static uint32_t by_op[OPS_MAX];

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots};
    return rig_join(r, &spec);
}

static void look(const struct rig *r)
{
    assert_true(mr_sched_ops_count(r->s) < OPS_MAX);
    memset(by_op, 0, sizeof by_op);
    mr_sched_doing(r->s, by_op, &doing);
    uint32_t idle = 0, busy = 0;
    for (uint32_t i = 0; i < MR_SCHED_IDLES; i++)
        idle += doing.idle[i];
    for (uint32_t i = 0; i < OPS_MAX; i++)
        busy += by_op[i];
    assert_int_equal(busy, doing.busy);
    assert_int_equal(idle + busy, doing.slots);
}

static uint32_t busy_with(const struct rig *r, const char *op)
{
    for (uint32_t i = 1; i <= mr_sched_ops_count(r->s); i++)
        if (mr_str_eq(mr_sched_op_name(r->s, i), mr_str(op))) return by_op[i];
    return 0;
}

static struct mr_sched_op_tasks op_tasks(const struct rig *r, uint64_t job, const char *op)
{
    struct mr_sched_op_tasks t = {0};
    for (uint32_t i = 0; mr_sched_job_op(r->s, (mr_job_id){job}, i, &t); i++)
        if (mr_str_eq(t.op, mr_str(op))) return t;
    fail_msg("the job has no operator %s", op);
    return t;
}

static void slots_without_a_job_have_no_work(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    look(r);
    uint32_t before = doing.slots;
    (void)join(r, "w", 3);
    look(r);
    assert_int_equal(doing.slots, before + 3);
    assert_int_equal(doing.idle[MR_SCHED_IDLE_NO_WORK], doing.slots);
}

static void slots_are_busy_with_the_operators_of_sent_tasks(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 3);
    uint64_t job = rig_submit(
        r, JOB(T("a", "f", "1", "") "," T("b", "g", "2", "") "," T("c", "f", R("a") "," R("b"), ""),
               "\"c\""));
    rig_ack(r);
    look(r);
    assert_int_equal(busy_with(r, "f"), 1); /* "c" was sent, too, and waits for its inputs */
    assert_int_equal(busy_with(r, "g"), 1);
    assert_int_equal(doing.busy, 2);
    assert_int_equal(doing.idle[MR_SCHED_IDLE_DEPENDENCY], doing.slots - 2);
    rig_done(r, w, job, "a");
    look(r);
    assert_int_equal(busy_with(r, "g"), doing.busy);
    rig_done(r, w, job, "b");
    look(r);
    assert_int_equal(busy_with(r, "f"), doing.busy);
    rig_done(r, w, job, "c");
    rig_ack(r);
    look(r);
    assert_int_equal(doing.idle[MR_SCHED_IDLE_NO_WORK], doing.slots);
}

#define ONLY_A ",\"workers\":[\"a\"]"

static void tasks_in_the_queue_of_another_worker_are_imbalance(void **state)
{
    (void)state;
    struct rig *r = rig_new_empty();
    struct rig_worker a = join(r, "a", 1);
    rig_warm(r, a);
    (void)join(r, "b", 2);
    (void)rig_submit(r, JOB(T("a", "f", "1", ONLY_A) "," T("b", "f", "2", ONLY_A), "\"a\",\"b\""));
    rig_ack(r);
    look(r);
    assert_int_equal(doing.busy, 1);
    assert_int_equal(mr_sched_worker_busy(r->s, a.slot), 1);
    assert_int_equal(doing.idle[MR_SCHED_IDLE_IMBALANCE], 2);
}

static void a_worker_whose_stream_broke_is_stopped(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 3);
    rig_close(r, w);
    look(r);
    assert_int_equal(doing.idle[MR_SCHED_IDLE_STOPPED], 3);
}

static void tasks_that_nobody_can_run_leave_slots_restricted(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    (void)join(r, "w", 2);
    (void)rig_submit(r, JOB(T("a", "f", "1", ",\"resources\":{\"gpu\":1}"), "\"a\""));
    rig_ack(r);
    look(r);
    assert_int_equal(doing.busy, 0);
    assert_int_equal(doing.idle[MR_SCHED_IDLE_RESTRICTED], doing.slots);
}

static void tasks_that_ended_are_counted_by_operator(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 3);
    uint64_t job = rig_submit(
        r, JOB(T("a", "f", "1", "") "," T("b", "f", "2", "") "," T("c", "g", R("a") "," R("b"), ""),
               "\"c\""));
    assert_int_equal(op_tasks(r, job, "f").tasks, 2);
    assert_int_equal(op_tasks(r, job, "g").tasks, 1);
    assert_int_equal(op_tasks(r, job, "f").ended, 0);
    rig_done(r, w, job, "a");
    assert_int_equal(op_tasks(r, job, "f").ended, 1);
    rig_done(r, w, job, "b");
    rig_done(r, w, job, "c");
    assert_int_equal(op_tasks(r, job, "f").ended, 2);
    assert_int_equal(op_tasks(r, job, "g").ended, 1);
    struct mr_sched_op_tasks t;
    assert_false(mr_sched_job_op(r->s, (mr_job_id){job}, 2, &t));
    assert_false(mr_sched_job_op(r->s, (mr_job_id){job + 9}, 0, &t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(slots_without_a_job_have_no_work),
        RIG_TEST(slots_are_busy_with_the_operators_of_sent_tasks),
        RIG_TEST(tasks_in_the_queue_of_another_worker_are_imbalance),
        RIG_TEST(a_worker_whose_stream_broke_is_stopped),
        RIG_TEST(tasks_that_nobody_can_run_leave_slots_restricted),
        RIG_TEST(tasks_that_ended_are_counted_by_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
