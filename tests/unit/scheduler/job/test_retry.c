/* The scheduler's core: a failed or cancelled job is retried. The tests check which values it
 * keeps, what runs again, and which counts begin anew. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define GO MR_STR("\xc2")   /* false as MessagePack */
#define STOP MR_STR("\xc3") /* true as MessagePack */
#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define REPEAT(name, max)                                                                          \
    "\"" name "\":{\"max\":" max                                                                   \
    ",\"carry\":{\"s\":{\"value\":0}},\"tasks\":{" T("next", "g", R("s"), "") "," T(               \
        "done", "h", R("next"), "") "},\"next\":{\"s\":" R("next") "},\"until\":" R("done") "}"

static struct rig_worker join(struct rig *r, const char *name)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = 8};
    return rig_join(r, &spec);
}

static struct mr_sched_job_info info_of(struct rig *r, uint64_t job)
{
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    return info;
}

static const char *in_round(const char *loop, uint32_t round, const char *key)
{
    static char text[4][64];
    static unsigned at;
    char *out = text[at++ % 4];
    (void)snprintf(out, sizeof text[0], "%s[%u].%s", loop, round, key);
    return out;
}

static void play(struct rig *r, struct rig_worker w, uint64_t job, const char *loop, uint32_t round,
    struct mr_str until)
{
    rig_done(r, w, job, in_round(loop, round, "next"));
    rig_done_value(r, w, job, in_round(loop, round, "done"), until);
}

static void retry(struct rig *r, uint64_t job)
{
    rig_forget_rows(r);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
}

static void ended(struct rig *r, uint64_t job, uint32_t loop, uint32_t expected)
{
    uint32_t rounds = 0;
    bool by_max = true;
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_true(mr_sched_loop(r->s, (mr_job_id){job}, loop, &rounds, &by_max));
    assert_int_equal(rounds, expected);
    assert_false(by_max);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* An earlier job has persisted the condition of the first round as an object. Only a small value
 * can end a loop, so this loop goes on with its second round. */
static void a_loop_begins_behind_the_round_whose_condition_exists(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w");
    static const char json[] = "{\"repeat\":{" REPEAT("fit", "9") "}}";
    uint64_t first = rig_submit(r, json);
    const struct mr_sched_resolved there = {
        .index = rig_index(r, first, "fit[0].done"), .object = {7, 7}, .bytes = 1000};
    const struct mr_sched_submit more = {.resolved = &there, .resolved_count = 1};
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, first), MR_OK);
    uint64_t job = rig_submit_with(r, json, &more);
    rig_done(r, w, job, "fit[0].next");
    play(r, w, job, "fit", 1, STOP);
    rig_done(r, w, job, "fit.s");
    rig_done(r, w, job, "fit.count");
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "fit[0].done"), 0);
    ended(r, job, 0, 2);
}

/* The failed job kept the condition that ended its loop, but not the states of the rounds. So the
 * retry plans the loop with the same last round. */
static void a_retried_loop_ends_where_the_condition_that_it_kept_says(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w");
    uint64_t job = rig_submit(r, "{\"repeat\":{" REPEAT("fit", "9") "}}");
    play(r, w, job, "fit", 0, STOP);
    rig_end(r, w, job, "fit.s", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    assert_int_equal(rig_state(r, job, "fit[0].next"), MR_TASK_RELEASED);
    assert_int_equal(rig_state(r, job, "fit[0].done"), MR_TASK_DONE);
    retry(r, job);
    assert_int_equal(info_of(r, job).skipped, 8 * 2 - 1);
    rig_done(r, w, job, "fit.count");
    rig_done(r, w, job, "fit[0].next");
    rig_done(r, w, job, "fit.s");
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "fit[0].done"), 0);
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "fit[1].next"), 0);
    ended(r, job, 0, 1);
}

/* The failed job released the conditions of earlier rounds. The retry computes them again, and one
 * of them may now end the loop earlier. */
static void a_retried_loop_may_end_in_an_earlier_round(void **state)
{
    (void)state;
    for (uint32_t end = 0; end < 2; end++) {
        struct rig *r = rig_new();
        struct rig_worker w = join(r, "w");
        uint64_t job = rig_submit(r, "{\"repeat\":{" REPEAT("fit", "9") "}}");
        play(r, w, job, "fit", 0, GO);
        play(r, w, job, "fit", 1, STOP);
        assert_int_equal(info_of(r, job).skipped, 7 * 2 - 1);
        rig_end(r, w, job, "fit.s", MR_OUTCOME_ERROR);
        assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
        retry(r, job);
        assert_int_equal(info_of(r, job).skipped, 0);
        play(r, w, job, "fit", 0, end ? GO : STOP);
        if (end) rig_done(r, w, job, "fit[1].next");
        rig_done(r, w, job, "fit.s");
        rig_done(r, w, job, "fit.count");
        for (int life = 0; life < 3; life++) {
            ended(r, job, 0, end + 1);
            assert_int_equal(info_of(r, job).skipped, (8 - end) * 2 - 1);
            if (life) rig_compact(r);
            rig_crash(r);
        }
        (void)rig_teardown(NULL);
    }
}

static const char two_loops[] = "{\"repeat\":{" REPEAT("one", "5") "," REPEAT("two", "7") "}}";

/* One of two loops has its results. The retry keeps them and runs only the other loop again. */
static void a_loop_with_its_results_does_not_run_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w");
    uint64_t job = rig_submit(r, two_loops);
    play(r, w, job, "one", 0, GO);
    play(r, w, job, "one", 1, STOP);
    rig_done(r, w, job, "one.s");
    rig_done(r, w, job, "one.count");
    play(r, w, job, "two", 0, GO);
    rig_end(r, w, job, "two[1].next", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    retry(r, job);
    assert_int_equal(info_of(r, job).skipped, 3 * 2 - 1);
    play(r, w, job, "two", 0, STOP);
    rig_done(r, w, job, "two.s");
    rig_done(r, w, job, "two.count");
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(rig_count(r, SAID_TASK, w, job, in_round("one", i, "next")), 0);
        assert_int_equal(rig_count(r, SAID_TASK, w, job, in_round("one", i, "done")), 0);
    }
    for (int life = 0; life < 3; life++) {
        ended(r, job, 0, 2);
        ended(r, job, 1, 1);
        assert_int_equal(info_of(r, job).skipped, 3 * 2 - 1 + 6 * 2 - 1);
        if (life) rig_compact(r);
        rig_crash(r);
    }
}

/* The retry is in the journal. So a restart knows that one loop has ended, and that the other one
 * begins anew. */
static void a_retry_of_loops_outlives_a_restart(void **state)
{
    (void)state;
    for (int compact = 0; compact < 2; compact++) {
        struct rig *r = rig_new();
        struct rig_worker w = join(r, "w");
        uint64_t job = rig_submit(r, two_loops);
        play(r, w, job, "one", 0, STOP);
        rig_done(r, w, job, "one.s");
        rig_done(r, w, job, "one.count");
        play(r, w, job, "two", 0, GO);
        play(r, w, job, "two", 1, STOP);
        rig_end(r, w, job, "two.s", MR_OUTCOME_ERROR);
        assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
        retry(r, job);
        if (compact) rig_compact(r);
        rig_crash(r);
        rig_pass(r, 60 * MR_SECOND); /* long enough that the workers in the journal are lost */
        w = join(r, "v");
        assert_int_equal(info_of(r, job).skipped, 4 * 2 - 1);
        play(r, w, job, "two", 0, GO);
        play(r, w, job, "two", 1, GO);
        play(r, w, job, "two", 2, STOP);
        rig_done(r, w, job, "two.s");
        rig_done(r, w, job, "two.count");
        ended(r, job, 0, 1);
        ended(r, job, 1, 3);
        assert_int_equal(rig_count(r, SAID_TASK, w, job, "one[0].next"), 0);
        (void)rig_teardown(NULL);
    }
}

/* The value of the condition that ended a loop is kept until the job ends. So the loop ends in the
 * same round after a restart of the scheduler, when the worker that has this value returns. */
static void the_condition_that_ended_a_loop_is_kept(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w");
    uint64_t job = rig_submit(r, "{\"repeat\":{" REPEAT("fit", "9") "}}");
    play(r, w, job, "fit", 0, GO);
    play(r, w, job, "fit", 1, STOP);
    rig_done(r, w, job, "fit.count");
    assert_int_equal(rig_state(r, job, "fit[0].done"), MR_TASK_RELEASED);
    assert_int_equal(rig_state(r, job, "fit[1].done"), MR_TASK_DONE);
    assert_int_equal(rig_count(r, SAID_RELEASE, w, job, "fit[1].done"), 0);
}

/* ---- deadlines, counts and errors ------------------------------------------------------------ */

static void a_retried_job_has_its_whole_time_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(
        r, "{\"deadline_s\":10,\"tasks\":{" T("x", "f", "1", "") "},\"targets\":[\"x\"]}");
    for (int life = 0; life < 2; life++) {
        rig_pass(r, 9 * MR_SECOND);
        assert_int_equal(rig_job(r, job), life ? MR_JOB_RUNNING : MR_JOB_PENDING);
        rig_pass(r, MR_SECOND);
        assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
        struct mr_sched_job_info info = info_of(r, job);
        assert_int_equal(info.error.code, 4);
        assert_int_equal(info.error.index, MR_NODE_NONE);
        assert_int_equal(info.error.attempts, 0);
        assert_int_equal(info.error.op, 0);
        assert_memory_equal(info.error.message.p, "the job's deadline (deadline_s) has passed", 43);
        if (!life) retry(r, job);
        assert_int_equal(info_of(r, job).has_error, life);
        assert_int_equal(info_of(r, job).finished_wall_ns != 0, life);
    }
}

/* If a task has failed before the deadline, its error stays the job's error. Jobs with later
 * deadlines go on. */
static void each_job_has_its_own_deadline(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w");
    uint64_t job[3];
    for (int i = 0; i < 3; i++) {
        char json[256];
        (void)snprintf(json, sizeof json,
            "{\"deadline_s\":%d,\"on_error\":\"continue\",\"tasks\":{" T("x", "f", "1", "") "," T(
                "y", "rare", "2", "") "},\"targets\":[\"x\",\"y\"]}",
            30 - 10 * i);
        job[i] = rig_submit(r, json);
    }
    rig_end(r, w, job[2], "x", MR_OUTCOME_ERROR);
    for (int i = 2; i >= 0; i--) {
        rig_pass(r, 9 * MR_SECOND);
        rig_heartbeat(r, w);
        assert_int_equal(rig_job(r, job[i]), MR_JOB_RUNNING);
        rig_pass(r, MR_SECOND);
        rig_heartbeat(r, w);
        assert_int_equal(rig_job(r, job[i]), MR_JOB_FAILED);
        assert_int_equal(info_of(r, job[i]).error.code, i == 2 ? 2 : 4);
    }
}

/* The reason of a cancel becomes the job's error, which names no task. A job that is done gets no
 * error. */
static void a_cancelled_job_says_why(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w");
    for (int i = 0; i < 2; i++) {
        uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
        struct mr_sched_event ev = {.type = MR_SCHED_CANCEL, .job = {job}, .ticket = ++r->ticket};
        if (i) ev.text = MR_STR("it is late");
        rig_step(r, &ev);
        rig_turn(r);
        struct mr_sched_error e = info_of(r, job).error;
        char text[64];
        (void)snprintf(text, sizeof text, "%.*s", MR_STR_ARG(e.message));
        assert_string_equal(text, i ? "it is late" : "cancelled on request");
        assert_int_equal(e.code, 1);
        assert_int_equal(e.index, MR_NODE_NONE);
        assert_int_equal(e.attempts, 0);
        assert_int_equal(e.op, 0);
    }
    uint64_t done = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    rig_done(r, w, done, "x");
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, done), MR_OK);
    assert_int_equal(rig_job(r, done), MR_JOB_DONE);
    assert_false(info_of(r, done).has_error);
}

/* The value of "b" is there at first, so the first run does not need "a". The failed job releases
 * the value of "b", so each retry runs "a" and "b". */
static void a_retry_makes_what_the_failed_job_has_released(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w");
    const struct mr_sched_resolved there = {.index = 1, .object = {7, 7}, .bytes = 1000};
    const struct mr_sched_submit more = {.resolved = &there, .resolved_count = 1};
    uint64_t job = rig_submit_with(r,
        JOB(T("a", "f", "1", "") "," T("b", "g", R("a"), ",\"persist\":\"b\"") "," T(
                "x", "h", R("b"), ""),
            "\"x\""),
        &more);
    assert_int_equal(rig_index(r, job, "b"), 1);
    assert_int_equal(rig_state(r, job, "a"), MR_TASK_RELEASED);
    assert_int_equal(info_of(r, job).joined, 1);
    for (int life = 0; life < 2; life++) {
        assert_int_equal(rig_count(r, SAID_TASK, w, job, "a"), life);
        rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
        assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
        retry(r, job);
        rig_done(r, w, job, "a");
        rig_done(r, w, job, "b");
        assert_int_equal(rig_state(r, job, "a"), MR_TASK_RELEASED);
    }
    rig_done(r, w, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* Attempts before the retry do not count as tries of the retried job. */
static void a_retried_task_has_all_its_tries_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w");
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":2"), "\"x\""));
    for (uint32_t life = 0; life < 3; life++) {
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
            assert_int_equal(rig_task(r, job, "x").retries_left, 2 - i);
            rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
        }
        assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
        assert_int_equal(info_of(r, job).error.attempts, 3 * (life + 1));
        retry(r, job);
        assert_false(info_of(r, job).has_error || rig_task(r, job, "x").has_error);
    }
}

/* A persisted result that is lost is computed again. The task that computes the result may use all
 * its retries. */
static void a_lost_result_that_was_persisted_is_made_with_its_tries(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 5, "n");
    const struct rig_spec spec = {.name = "w", .slots = 4, .store = 5};
    struct rig_worker w = rig_join(r, &spec);
    const struct mr_sched_resolved there = {
        .index = 0, .object = {7, 7}, .bytes = 1000, .store = 5};
    const struct mr_sched_submit more = {.resolved = &there, .resolved_count = 1};
    uint64_t job = rig_submit_with(r,
        JOB(T("b", "f", "1", ",\"persist\":\"b\",\"retries\":1") "," T("x", "g", R("b"), ""),
            "\"x\""),
        &more);
    rig_object_lost(r, 5, there.object);
    rig_end(r, w, job, "b", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    rig_done(r, w, job, "b");
    rig_done(r, w, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(info_of(r, job).recomputed, 1);
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.recomputed, 1);
}

/* "c" is no target, and its value refers to the value of "p". Both are released when the job fails.
 */
static void a_failed_job_lets_its_collections_go(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 5, "n");
    const struct rig_spec spec = {.name = "w", .slots = 8, .store = 5};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job = rig_submit(r, JOB(T("p", "f", "1", "") "," T("c", "ref", R("p"), "") "," T(
                                         "s", "rare", R("c"), "") "," T("x", "g", "2", ""),
                                     "\"s\",\"x\""));
    for (int life = 0; life < 2; life++) {
        mr_object_id part = rig_done_object(r, w, job, "p");
        (void)rig_done_object(r, w, job, "c");
        assert_true(rig_is_held(r, part));
        rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
        assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
        assert_int_equal(rig_state(r, job, "c"), MR_TASK_RELEASED);
        assert_int_equal(rig_state(r, job, "p"), MR_TASK_RELEASED);
        assert_int_equal(rig_held(r), 0);
        retry(r, job);
    }
}

/* Task "b" waits for a worker with a gpu, and fails because its input fails. It must not run when
 * such a worker comes. */
static void what_failed_with_its_input_is_not_sent_any_more(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w");
    uint64_t job =
        rig_submit(r, "{\"on_error\":\"continue\",\"tasks\":{" T("a", "f", "1", "") "," T(
                          "b", "g", R("a"), ",\"resources\":{\"gpu\":1}") "," T("c", "g", "2",
                          ",\"resources\":{\"gpu\":1}") "},"
                                                        "\"targets\":[\"b\",\"c\"]}");
    rig_end(r, w, job, "a", MR_OUTCOME_ERROR);
    assert_int_equal(rig_state(r, job, "b"), MR_TASK_ERRED);
    const struct rig_spec spec = {.name = "v", .slots = 8, .resource = "gpu", .amount = 4};
    struct rig_worker v = rig_join(r, &spec);
    assert_int_equal(rig_count(r, SAID_TASK, v, job, "b"), 0);
    rig_done(r, v, job, "c");
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    assert_null(rig_leftover(r));
}

/* Three tasks ran at one worker at the same time and end in any order. */
static void a_forgotten_job_of_tasks_side_by_side_leaves_nothing(void **state)
{
    (void)state;
    static const char *const orders[] = {"abc", "acb", "bac", "bca", "cab", "cba"};
    for (size_t i = 0; i < MR_ARRAY_LEN(orders); i++) {
        struct rig *r = rig_new();
        const struct rig_spec spec = {.name = "w", .slots = 8, .resource = "gpu", .amount = 4};
        struct rig_worker w = rig_join(r, &spec);
        uint64_t job = rig_submit(r, JOB(T("a", "f", "1", ",\"resources\":{\"gpu\":1}") "," T(
                                             "b", "f", "2", ",\"resources\":{\"gpu\":1}") "," T("c",
                                             "f", "3", ",\"resources\":{\"gpu\":1}"),
                                         "\"a\",\"b\",\"c\""));
        for (const char *key = orders[i]; *key; key++)
            rig_done(r, w, job, (const char[]){*key, 0});
        assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
        assert_null(rig_leftover(r));
        (void)rig_teardown(NULL);
    }
}

/* One turn releases some thousand tasks only, so that the core stays responsive. */
static void a_large_job_is_released_in_several_turns(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    static const char json[] =
        "{\"tasks\":{\"x-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":20000}}}}";
    uint64_t job = rig_submit(r, json), other = rig_submit(r, json);
    struct mr_sched_event ev = {.type = MR_SCHED_CANCEL, .ticket = 1};
    ev.job.v = job;
    rig_step(r, &ev);
    ev.job.v = other;
    rig_step(r, &ev);
    rig_turn(r);
    assert_int_equal(info_of(r, job).counts[MR_TASK_CANCELLED], 20000);
    assert_int_equal(info_of(r, other).counts[MR_TASK_CANCELLED], 20000);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, other), MR_OK);
    assert_null(rig_leftover(r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_loop_begins_behind_the_round_whose_condition_exists),
        RIG_TEST(a_retried_loop_ends_where_the_condition_that_it_kept_says),
        RIG_TEST(a_retried_loop_may_end_in_an_earlier_round),
        RIG_TEST(a_loop_with_its_results_does_not_run_again),
        RIG_TEST(a_retry_of_loops_outlives_a_restart),
        RIG_TEST(the_condition_that_ended_a_loop_is_kept),
        RIG_TEST(a_retried_job_has_its_whole_time_again),
        RIG_TEST(each_job_has_its_own_deadline),
        RIG_TEST(a_cancelled_job_says_why),
        RIG_TEST(a_retry_makes_what_the_failed_job_has_released),
        RIG_TEST(a_retried_task_has_all_its_tries_again),
        RIG_TEST(a_lost_result_that_was_persisted_is_made_with_its_tries),
        RIG_TEST(a_failed_job_lets_its_collections_go),
        RIG_TEST(what_failed_with_its_input_is_not_sent_any_more),
        RIG_TEST(a_forgotten_job_of_tasks_side_by_side_leaves_nothing),
        RIG_TEST(a_large_job_is_released_in_several_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
