/* The scheduler's core: lost values that cannot be computed again, and the estimate of how much
 * work a worker has, also after tasks leave it. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define STORE 0x51
#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define GOES_ON(tasks, targets)                                                                    \
    "{\"on_error\":\"continue\",\"tasks\":{" tasks "},\"targets\":[" targets "]}"

static struct rig *begin(struct rig_worker *w)
{
    struct rig *r = rig_new();
    rig_store(r, STORE, "n");
    const struct rig_spec spec = {.name = "w", .slots = 8, .store = STORE};
    *w = rig_join(r, &spec);
    return r;
}

static struct mr_sched_job_info info_of(struct rig *r, uint64_t job)
{
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    return info;
}

static void failed_with(
    struct rig *r, uint64_t job, const char *key, int code, uint32_t attempts, const char *expected)
{
    struct mr_sched_task_info t = rig_task(r, job, key);
    char text[256];
    (void)snprintf(text, sizeof text, "%.*s", MR_STR_ARG(t.error.message));
    assert_int_equal(t.state, MR_TASK_ERRED);
    assert_string_equal(text, expected);
    assert_int_equal(t.error.code, code);
    assert_int_equal(t.error.attempts, attempts);
}

/* ---- what cannot be made again --------------------------------------------------------------- */

static void a_lost_value_whose_input_has_failed_fails_and_names_the_input(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t job = rig_submit(r, GOES_ON(T("e", "f", "1", "") "," T("y", "g", R("e"), "") "," T(
                                             "z", "h", R("e"), "") "," T("u", "rare", "2", ""),
                                     "\"y\",\"z\",\"u\""));
    rig_done(r, w, job, "e");
    mr_object_id y = rig_done_object(r, w, job, "y"), z = rig_done_object(r, w, job, "z");
    assert_int_equal(rig_state(r, job, "e"), MR_TASK_RELEASED);
    rig_object_lost(r, STORE, z);
    rig_end(r, w, job, "e", MR_OUTCOME_ERROR);
    assert_int_equal(rig_state(r, job, "z"), MR_TASK_ERRED);
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_DONE);
    rig_object_lost(r, STORE, y);
    failed_with(
        r, job, "y", 15, 1, "its value was lost, and of its inputs \"e\" cannot be made again");
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    /* "e" and "z" were made again, and "y" was to be made again. */
    assert_int_equal(info_of(r, job).recomputed, 3);
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.recomputed, 3);
}

/* No task can make a stored object again. Tasks that have used it and are done keep their values.
 */
static void a_stored_object_that_is_gone_fails_its_users_and_names_its_key(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    const struct mr_sched_resolved there = {
        .index = 0, .object = {7, 7}, .bytes = 9, .store = STORE};
    const struct mr_sched_submit more = {.resolved = &there, .resolved_count = 1};
    uint64_t job = rig_submit_with(r,
        GOES_ON("\"o\":{\"name\":\"n\"}," T("x", "f", R("o"), "") "," T("y", "g", R("o"), "") "," T(
                    "z", "h", R("o"), "") "," T("u", "rare", "2", ""),
            "\"x\",\"y\",\"z\",\"u\""),
        &more);
    assert_int_equal(rig_index(r, job, "o"), 0);
    rig_done(r, w, job, "x");
    rig_object_lost(r, STORE, there.object);
    failed_with(r, job, "y", 15, 0, "the stored object of key \"o\" is gone");
    failed_with(r, job, "z", 15, 0, "the stored object of key \"o\" is gone");
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    assert_int_equal(rig_count(r, SAID_CANCEL, w, job, "y"), 1);
    assert_int_equal(rig_count(r, SAID_CANCEL, w, job, "z"), 1);
}

/* The graph names an object by its id, so no store is known. The worker has to find the object. */
static void an_object_of_the_graph_is_sent_without_its_store(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    mr_object_id id = {0x11, 0x22};
    char text[MR_OBJECT_ID_TEXT_MAX], json[256];
    mr_object_id_format(id, text);
    (void)snprintf(json, sizeof json,
        "{\"tasks\":{\"o\":{\"object\":\"%s\"}," T("x", "f", R("o"), "") "},\"targets\":[\"x\"]}",
        text);
    uint64_t job = rig_submit(r, json);
    assert_int_not_equal(job, 0);
    struct mr_sched_value v = rig_value(r, job, "o", NULL);
    assert_int_equal(v.kind, MR_SCHED_VALUE_OBJECT);
    assert_true(mr_object_id_eq(v.object, id));
    assert_int_equal(v.bytes, 0);
    assert_int_equal(v.store, 0);
    assert_int_equal(rig_count(r, SAID_VALUE, w, job, "o"), 1);
    rig_done(r, w, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(rig_submit(r, "{\"tasks\":{\"o\":{\"name\":\"a name\"}," T(
                                       "x", "f", R("o"), "") "},\"targets\":[\"x\"]}"),
        0);
    assert_int_equal(r->code, MR_ENOENT);
    assert_string_equal(r->text, "key \"o\": there is no stored object of the name \"a name\"");
}

/* ---- the work at a worker -------------------------------------------------------------------- */

static uint64_t work(struct rig *r, struct rig_worker w, uint32_t sent)
{
    struct mr_sched_worker_info info;
    assert_true(mr_sched_worker(r->s, w.slot, &info));
    assert_int_equal(info.sent, sent);
    return info.queue_ns;
}

/* A task of an operator that has never run counts as 100 us. Later it counts as the operator's run
 * time, and at least as 200 ns. A long-running task counts as nothing. A task keeps the estimate
 * with which it was sent. */
static void the_work_at_a_worker_is_estimated_from_its_tasks(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t job = rig_submit(r, JOB(T("a", "f", "1", "") "," T("b", "f", "2", "") "," T(
                                         "c", "g", "3", "") "," T("l", "long", "4", ""),
                                     "\"a\",\"b\",\"c\",\"l\""));
    assert_int_equal(work(r, w, 4), 300 * MR_US);
    rig_done(r, w, job, "a"); /* the task ran for 1 ms */
    assert_int_equal(work(r, w, 3), 200 * MR_US);
    rig_end(r, w, job, "l", MR_OUTCOME_RETURNED);
    assert_int_equal(work(r, w, 2), 200 * MR_US);
    rig_end(r, w, job, "b", MR_OUTCOME_RETURNED);
    assert_int_equal(work(r, w, 1), 100 * MR_US);
    rig_heartbeat(r, w); /* the worker takes tasks again */
    assert_int_equal(work(r, w, 3), 100 * MR_US + MR_MS);
    rig_done_as(r, w, job, "c", 1, MR_OUTCOME_OK, (mr_object_id){0, 0}, 1, 50);
    uint64_t other = rig_submit(r, JOB(T("d", "g", "5", ""), "\"d\""));
    assert_int_equal(work(r, w, 3), MR_MS + 200);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, other), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(work(r, w, 0), 0);
}

/* Task "b" was sent before its input "a" was there. Cancelling the job removes both tasks from the
 * worker's load, and the worker is told to stop them. */
static void cancelled_tasks_leave_the_work_of_their_workers(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t warm = rig_submit(r, JOB(T("a", "f", "1", ""), "\"a\""));
    rig_done(r, w, warm, "a");
    uint64_t job = rig_submit(r, JOB(T("a", "f", "1", "") "," T("b", "f", R("a"), ""), "\"b\""));
    assert_int_equal(work(r, w, 2), 2 * MR_MS);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(work(r, w, 0), 0);
    assert_int_equal(rig_count(r, SAID_CANCEL, w, job, "a"), 1);
    assert_int_equal(rig_count(r, SAID_CANCEL, w, job, "b"), 1);
}

static uint64_t held(struct rig *r, struct rig_worker w)
{
    struct mr_sched_worker_info info;
    assert_true(mr_sched_worker(r->s, w.slot, &info));
    return info.held_bytes;
}

/* The scheduler counts the bytes of the values that a worker keeps. A value counts until the
 * scheduler tells the worker to release the value. */
static void the_values_that_a_worker_keeps_are_counted(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", "") "," T(
                                         "z", "g", R("x") "," R("y"), "") "," T("u", "f", "3", ""),
                                     "\"z\",\"u\""));
    assert_int_equal(held(r, w), 0);
    rig_done_bytes(r, w, job, "x", 7);
    assert_int_equal(held(r, w), 7);
    r->object_bytes = 1000;
    (void)rig_done_object(r, w, job, "y");
    assert_int_equal(held(r, w), 1007);
    rig_done_bytes(r, w, job, "u", 20);
    assert_int_equal(held(r, w), 1027);
    rig_done_bytes(r, w, job, "z", 3);
    assert_int_equal(held(r, w), 23);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    assert_int_equal(held(r, w), 0);
}

/* A worker without a stream is sent no releases. When it registers again, the core compares the
 * worker's tasks and values with its own. */
static void a_worker_whose_stream_has_ended_is_told_nothing(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\""));
    rig_done(r, w, job, "y");
    rig_close(r, w);
    rig_forget_rows(r);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    assert_int_equal(r->rows_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_lost_value_whose_input_has_failed_fails_and_names_the_input),
        RIG_TEST(a_stored_object_that_is_gone_fails_its_users_and_names_its_key),
        RIG_TEST(an_object_of_the_graph_is_sent_without_its_store),
        RIG_TEST(the_work_at_a_worker_is_estimated_from_its_tasks),
        RIG_TEST(cancelled_tasks_leave_the_work_of_their_workers),
        RIG_TEST(the_values_that_a_worker_keeps_are_counted),
        RIG_TEST(a_worker_whose_stream_has_ended_is_told_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
