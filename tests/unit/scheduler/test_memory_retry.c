/* The scheduler's core: a task that found no room in memory fails only after it ran on a node where
 * no other task had anything in memory. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define JOB "{\"tasks\":{\"x\":{\"op\":\"f\"},\"t\":{\"op\":\"g\",\"args\":[{\"ref\":\"x\"}]}}}"
#define OTHER "{\"tasks\":{\"q\":{\"op\":\"f\",\"args\":[4]}}}"
#define LONG "{\"tasks\":{\"q\":{\"op\":\"f\",\"args\":[4],\"long_running\":true}}}"

static struct rig_worker join(struct rig *r, const char *name, const char *node, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = node, .slots = 2, .store = store};
    return rig_join(r, &spec);
}

static void no_room(struct rig *r, struct rig_worker w, uint64_t job)
{
    rig_end(r, w, job, "t", MR_OUTCOME_NO_ROOM);
}

static void stopped(struct rig *r, struct rig_worker w, uint64_t job)
{
    assert_int_equal(rig_count(r, SAID_CANCEL, w, job, "q"), 1);
    rig_done_as(r, w, job, "q", 1, MR_OUTCOME_CANCELLED, (mr_object_id){0, 0}, 0, MR_MS);
}

/* Lets `time` pass. Both workers send heartbeats. */
static void live(struct rig *r, struct rig_worker a, struct rig_worker b, mr_duration time)
{
    for (mr_time until = r->now + time; r->now < until;) {
        rig_pass(r, MR_SECOND);
        rig_heartbeat(r, a);
        rig_heartbeat(r, b);
    }
}

/* Submits a job whose task t finds no room in memory twice, so it has to run alone the next time.
 * `beside` is another job, whose task q runs meanwhile. Returns t's job, and in `other` q's job. */
static uint64_t out_of_memory(
    struct rig *r, struct rig_worker w, const char *beside, uint64_t *other)
{
    uint64_t job = rig_submit(r, JOB);
    (void)rig_done_object(r, w, job, "x");
    *other = rig_submit(r, beside);
    assert_int_equal(rig_attempt(r, w, *other, "q"), 1);
    no_room(r, w, job);
    no_room(r, w, job);
    return job;
}

/* The disk of the node's store is full. The error names the disk and not the memory as the
 * reason. */
static void a_full_disk_is_why_there_is_no_room(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t job = rig_submit(r, JOB);
    (void)rig_done_object(r, a, job, "x");
    struct mr_sched_event ev = {.type = MR_SCHED_STORE_HEARD};
    ev.store = (struct mr_sched_store){.store = 0x51, .disk_full = MR_STR("/var/spill")};
    rig_step(r, &ev);
    for (int i = 0; i < 4; i++)
        no_room(r, a, job);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    struct mr_sched_task_info t = rig_task(r, job, "t");
    assert_true(t.has_error);
    char text[1024];
    (void)snprintf(text, sizeof text, "%.*s", MR_STR_ARG(t.error.message));
    assert_non_null(strstr(text, "\"t\" found no space left on /var/spill of node \"n\""));
}

static void a_task_runs_alone_when_what_was_stopped_has_ended(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t other, job = out_of_memory(r, a, OTHER, &other);
    assert_int_equal(rig_attempt(r, a, job, "t"), 2);
    (void)rig_ask(r, MR_SCHED_CANCEL, other);
    rig_heartbeat(r, a);
    /* Task t is not sent: task q of the cancelled job has not stopped and still has its memory. */
    assert_int_equal(rig_attempt(r, a, job, "t"), 2);
    stopped(r, a, other);
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
}

static void who_does_not_say_that_it_has_stopped_is_waited_for_some_seconds(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t other, job = out_of_memory(r, a, OTHER, &other);
    (void)rig_ask(r, MR_SCHED_CANCEL, other);
    live(r, a, a, 2 * MR_SECOND);
    assert_int_equal(rig_attempt(r, a, job, "t"), 2);
    live(r, a, a, 2 * MR_SECOND);
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
}

static void what_is_being_stopped_beside_it_makes_a_failure_no_verdict(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t other, job = out_of_memory(r, a, LONG, &other);
    /* The attempt does not wait for long-running tasks to end. */
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
    no_room(r, a, job);
    assert_int_equal(rig_attempt(r, a, job, "t"), 4);
    (void)rig_ask(r, MR_SCHED_CANCEL, other);
    no_room(r, a, job);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    assert_int_equal(rig_attempt(r, a, job, "t"), 4);
    stopped(r, a, other);
    assert_int_equal(rig_attempt(r, a, job, "t"), 5);
    no_room(r, a, job);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
}

static void what_runs_long_is_told_that_it_does_not_fit_when_the_others_have_ended(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t other = rig_submit(r, OTHER);
    uint64_t job = rig_submit(r, "{\"tasks\":{\"t\":{\"op\":\"g\",\"long_running\":true}}}");
    for (int i = 0; i < 8; i++)
        no_room(r, a, job);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    rig_done(r, a, other, "q");
    /* This attempt of t may have failed before q ended, so t gets another attempt. */
    no_room(r, a, job);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    other = rig_submit(r, OTHER);
    no_room(r, a, job);
    rig_done(r, a, other, "q");
    no_room(r, a, job);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    no_room(r, a, job);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
}

static void what_a_worker_is_not_to_keep_is_being_stopped_there(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t other, job = out_of_memory(r, a, OTHER, &other);
    rig_close(r, a);
    (void)rig_ask(r, MR_SCHED_CANCEL, other);
    uint32_t index = rig_index(r, other, "q"), attempt = 1;
    const struct mr_ws_run run = {.job = {other}, .count = 1};
    const struct rig_spec spec = {.name = "a", .node = "n", .slots = 2, .store = 0x51};
    a = rig_join_as(r, &spec,
        &(struct mr_ws_register){
            .incarnation = a.incarnation, .queued = {&run, 1, &index, &attempt, 1}});
    live(r, a, a, 2 * MR_SECOND);
    assert_int_equal(rig_attempt(r, a, job, "t"), 2);
    live(r, a, a, 2 * MR_SECOND);
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
}

/* Another worker of the node falls silent, and is then lost. Returns that worker. */
static struct rig_worker lose_beside(struct rig *r, struct rig_worker a)
{
    struct rig_worker b = join(r, "b", "n", 0x51);
    live(r, a, a, 11 * MR_SECOND);
    assert_int_equal(rig_notes(r, MR_NOTE_WORKER_CLOSE, 0), 1);
    return b;
}

static void a_worker_that_was_lost_may_have_memory_until_its_name_comes_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    (void)lose_beside(r, a);
    uint64_t other, job = out_of_memory(r, a, OTHER, &other);
    rig_done(r, a, other, "q");
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
    no_room(r, a, job);
    live(r, a, a, 5 * MR_SECOND);
    /* Task t is not sent for its last attempt while the lost worker may still have memory. */
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
    other = rig_submit(r, OTHER);
    rig_done(r, a, other, "q"); /* other tasks may run while t waits */
    struct rig_worker b = join(r, "b", "n", 0x51);
    /* The new worker b may be the old process, which first has to stop its tasks. */
    live(r, a, b, 2 * MR_SECOND);
    assert_int_equal(rig_attempt(r, a, job, "t") + rig_attempt(r, b, job, "t"), 3);
    live(r, a, b, 2 * MR_SECOND);
    assert_int_equal(MR_MAX(rig_attempt(r, a, job, "t"), rig_attempt(r, b, job, "t")), 4);
}

static void a_worker_that_was_lost_is_waited_for_some_leases(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    (void)lose_beside(r, a);
    uint64_t other, job = out_of_memory(r, a, OTHER, &other);
    rig_done(r, a, other, "q");
    no_room(r, a, job);
    live(r, a, a, 25 * MR_SECOND);
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
    live(r, a, a, 10 * MR_SECOND);
    assert_int_equal(rig_attempt(r, a, job, "t"), 4);
    no_room(r, a, job);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    assert_non_null(strstr(rig_task(r, job, "t").error.message.p, "unless a worker that was lost"));
}

static void of_two_nodes_the_one_without_a_lost_worker_is_taken(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    rig_store(r, 0x52, "m");
    struct rig_worker a = join(r, "a", "n", 0x51);
    (void)lose_beside(r, a);
    uint64_t other, job = out_of_memory(r, a, OTHER, &other);
    struct rig_worker c = join(r, "c", "m", 0x52);
    assert_int_equal(rig_attempt(r, c, job, "t"), 3);
    no_room(r, c, job);
    assert_int_equal(rig_attempt(r, c, job, "t"), 4);
    rig_done(r, c, job, "t");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void what_finds_no_room_runs_alone_on_its_node_and_fails_if_that_is_not_enough(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec one = {.name = "a", .node = "n", .slots = 2, .store = 0x51};
    const struct rig_spec two = {.name = "b", .node = "n", .slots = 2, .store = 0x51};
    rig_store(r, 0x51, "n");
    struct rig_worker a = rig_join(r, &one);
    uint64_t job = rig_submit(r,
        "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]},\"t\":{\"op\":\"g\",\"args\":[{\"ref\":\"x\"}]},"
        "\"o\":{\"op\":\"f\",\"args\":[2]},\"p\":{\"op\":\"f\",\"args\":[3]}},"
        "\"targets\":[\"t\",\"o\",\"p\"]}");
    (void)rig_done_object(r, a, job, "x");
    no_room(r, a, job);
    no_room(r, a, job); /* the second attempt is sent at once */
    /* The third attempt does not run beside "o". */
    assert_int_equal(rig_attempt(r, a, job, "t"), 2);
    struct rig_worker b = rig_join(r, &two);
    /* No task starts on a node that waits to be empty. */
    assert_int_equal(rig_count(r, SAID_TASK, b, job, NULL), 0);
    rig_done(r, a, job, "o");
    if (rig_attempt(r, a, job, "p")) rig_done(r, a, job, "p");
    for (int i = 0; i < 2; i++) {
        struct rig_worker w = rig_attempt(r, a, job, "t") == (uint32_t)(3 + i) ? a : b;
        uint64_t other =
            rig_submit(r, "{\"tasks\":{\"q\":{\"op\":\"f\",\"args\":[4]}},\"targets\":[\"q\"]}");
        assert_int_equal(rig_attempt(r, a, other, "q") + rig_attempt(r, b, other, "q"), 0);
        (void)rig_ask(r, MR_SCHED_CANCEL, other);
        no_room(r, w, job);
    }
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    struct mr_sched_task_info info = rig_task(r, job, "t");
    assert_int_equal(info.state, MR_TASK_ERRED);
    uint64_t next =
        rig_submit(r, "{\"tasks\":{\"q\":{\"op\":\"f\",\"args\":[4]}},\"targets\":[\"q\"]}");
    assert_true(rig_attempt(r, a, next, "q") || rig_attempt(r, b, next, "q"));
}

/* A task waits to run alone on a node and loses its input. The node must be open again for the task
 * that makes the input again. */
static void what_runs_alone_and_loses_an_input_gives_up_its_node(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "a", .node = "n", .slots = 1, .store = 0x51};
    rig_store(r, 0x51, "n");
    struct rig_worker a = rig_join(r, &spec);
    uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"},\"t\":{\"op\":\"g\",\"args\":"
                                 "[{\"ref\":\"x\"}]}},\"targets\":[\"t\"]}");
    mr_object_id id = rig_done_object(r, a, job, "x");
    no_room(r, a, job);
    no_room(r, a, job);
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
    rig_object_lost(r, 0x51, id);
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_full_disk_is_why_there_is_no_room),
        RIG_TEST(a_task_runs_alone_when_what_was_stopped_has_ended),
        RIG_TEST(who_does_not_say_that_it_has_stopped_is_waited_for_some_seconds),
        RIG_TEST(what_is_being_stopped_beside_it_makes_a_failure_no_verdict),
        RIG_TEST(what_runs_long_is_told_that_it_does_not_fit_when_the_others_have_ended),
        RIG_TEST(what_a_worker_is_not_to_keep_is_being_stopped_there),
        RIG_TEST(a_worker_that_was_lost_may_have_memory_until_its_name_comes_again),
        RIG_TEST(a_worker_that_was_lost_is_waited_for_some_leases),
        RIG_TEST(of_two_nodes_the_one_without_a_lost_worker_is_taken),
        RIG_TEST(what_finds_no_room_runs_alone_on_its_node_and_fails_if_that_is_not_enough),
        RIG_TEST(what_runs_alone_and_loses_an_input_gives_up_its_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
