/* The scheduler's core: loops. The tests check which rounds run, and what becomes of rounds that
 * are not needed, also after a restart. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define GO MR_STR("\xc2")   /* false as MessagePack */
#define STOP MR_STR("\xc3") /* true as MessagePack */
#define LOOP_TASKS                                                                                 \
    "\"part-${i}\":{\"op\":\"f\",\"args\":[{\"ref\":\"x\"},{\"ref\":\"s\"}],\"for\":{\"i\":2}},"   \
    "\"next\":{\"op\":\"g\",\"args\":{\"each\":{\"ref\":\"part-${i}\"},\"for\":{\"i\":2}}}"
#define LOOP(max, more) "{" LOOP_BODY(max, more)
#define LOOP_BODY(max, more)                                                                       \
    "\"tasks\":{\"x\":{\"value\":7}" more "},\"repeat\":{\"fit\":{\"max\":" max                    \
    ",\"carry\":{\"s\":{\"value\":0}},\"tasks\":{" LOOP_TASKS                                      \
    ",\"done\":{\"op\":\"h\",\"args\":[{\"ref\":\"next\"}]}},"                                     \
    "\"next\":{\"s\":{\"ref\":\"next\"}},\"until\":{\"ref\":\"done\"}}}}"

static struct rig_worker join(struct rig *r, const char *name)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = 4};
    return rig_join(r, &spec);
}

static const char *in_round(uint32_t round, const char *key)
{
    static char text[4][64];
    static unsigned at;
    char *out = text[at++ % 4];
    (void)snprintf(out, sizeof text[0], "fit[%u].%s", round, key);
    return out;
}

static void play_parts(struct rig *r, struct rig_worker w, uint64_t job, uint32_t round)
{
    rig_done(r, w, job, in_round(round, "part-0"));
    rig_done(r, w, job, in_round(round, "part-1"));
    rig_done(r, w, job, in_round(round, "next"));
}

static void play(
    struct rig *r, struct rig_worker w, uint64_t job, uint32_t round, struct mr_str until)
{
    play_parts(r, w, job, round);
    rig_done_value(r, w, job, in_round(round, "done"), until);
}

static void value_is(struct rig *r, uint64_t job, const char *key, const char *expected)
{
    char out[64] = "";
    assert_int_equal(rig_value(r, job, key, out).kind, MR_SCHED_VALUE_INLINE);
    assert_string_equal(out, expected);
}

static void a_loop_ends_where_its_condition_says(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("50", ""));
    play(r, a, job, 0, GO);
    play(r, a, job, 1, GO);
    assert_int_equal(rig_state(r, job, in_round(0, "next")), MR_TASK_RELEASED);
    play(r, a, job, 2, STOP);
    assert_int_equal(rig_state(r, job, in_round(3, "part-0")), MR_TASK_RELEASED);
    assert_true(rig_task(r, job, in_round(49, "next")).is_skipped);
    assert_false(rig_task(r, job, in_round(2, "next")).is_skipped);
    rig_done(r, a, job, "fit.s");
    rig_done(r, a, job, "fit.count");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    value_is(r, job, "fit.s", "fit.s");
    assert_int_equal(rig_state(r, job, in_round(2, "next")), MR_TASK_RELEASED);
    assert_false(rig_task(r, job, in_round(2, "next")).is_skipped);
    assert_true(rig_task(r, job, in_round(3, "next")).is_skipped);
    assert_false(rig_task(r, job, "fit.s").is_skipped);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    /* Rounds 3 to 49 are skipped, with four tasks each. The last round has no condition. */
    assert_int_equal(info.skipped, 47 * 4 - 1);
    assert_int_equal(info.counts[MR_TASK_CANCELLED] + info.counts[MR_TASK_ERRED], 0);
    assert_int_equal(info.counts[MR_TASK_WAITING], 0);
}

static void a_round_is_sent_ahead_and_taken_back_when_it_does_not_come(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t warm = rig_submit(r, LOOP("2", ""));
    play(r, a, warm, 0, STOP);
    uint64_t job = rig_submit(r, LOOP("50", ""));
    assert_true(rig_count(r, SAID_TASK, a, job, in_round(1, "part-0")) == 1);
    rig_done(r, a, job, in_round(0, "part-0"));
    rig_done(r, a, job, in_round(0, "part-1"));
    rig_done(r, a, job, in_round(0, "next"));
    rig_done_value(r, a, job, in_round(0, "done"), STOP);
    assert_int_equal(rig_count(r, SAID_CANCEL, a, job, in_round(1, "part-0")), 1);
    assert_int_equal(rig_state(r, job, in_round(1, "part-0")), MR_TASK_RELEASED);
    rig_done(r, a, job, "fit.s");
    rig_done(r, a, job, "fit.count");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void a_loop_without_an_end_runs_all_its_rounds(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("3", ""));
    play(r, a, job, 0, GO);
    play(r, a, job, 1, GO);
    play_parts(r, a, job, 2);
    rig_done(r, a, job, "fit.s");
    rig_done(r, a, job, "fit.count");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void ended(struct rig *r, uint64_t job, uint32_t expected, bool is_by_max)
{
    uint32_t rounds = 0;
    bool by_max = !is_by_max;
    assert_true(mr_sched_loop(r->s, (mr_job_id){job}, 0, &rounds, &by_max));
    assert_int_equal(rounds, expected);
    assert_int_equal(by_max, is_by_max);
    assert_false(mr_sched_loop(r->s, (mr_job_id){job}, 1, &rounds, &by_max));
}

/* The job's state says whether a loop ended by `until` or after its maximum of rounds. This
 * survives restarts, also for an instance of a template. */
static void how_a_loop_ended_is_told_in_every_life(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    const struct mr_sched_submit more = {.template = 5};
    uint64_t job[2] = {rig_submit_with(r, LOOP("3", ""), &more), rig_submit(r, LOOP("3", ""))};
    uint32_t rounds;
    bool by_max;
    for (int i = 0; i < 2; i++) {
        play(r, a, job[i], 0, GO);
        play(r, a, job[i], 1, i ? STOP : GO);
        if (!i) play_parts(r, a, job[i], 2);
        assert_false(mr_sched_loop(r->s, (mr_job_id){job[i]}, 0, &rounds, &by_max));
        rig_done(r, a, job[i], "fit.s");
        rig_done(r, a, job[i], "fit.count");
        assert_int_equal(rig_job(r, job[i]), MR_JOB_DONE);
    }
    for (int life = 0; life < 3; life++) {
        ended(r, job[0], 3, true);
        ended(r, job[1], 2, false);
        if (life) rig_compact(r);
        rig_crash(r);
    }
}

static void a_failure_in_a_round_fails_the_job_and_names_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("50", ""));
    play(r, a, job, 0, GO);
    rig_done(r, a, job, in_round(1, "part-0"));
    rig_end(r, a, job, in_round(1, "part-1"), MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_int_equal(info.error.index, rig_index(r, job, "fit[1].part-1"));
}

/* A condition may be a number: 0 lets the loop go on, any other number ends the loop. */
static void a_number_says_whether_a_loop_goes_on(void **state)
{
    const struct {
        struct mr_str value;
        bool ends;
    } cases[] = {{MR_STR("\x00"), false}, {MR_STR("\xcb\0\0\0\0\0\0\0\0"), false},
        {MR_STR("\xcb\x80\0\0\0\0\0\0\0"), false}, {MR_STR("\x02"), true}, {MR_STR("\xff"), true},
        {MR_STR("\xcf\xff\0\0\0\0\0\0\0"), true}, {MR_STR("\xcf\0\0\0\0\0\0\0\0"), false},
        {MR_STR("\xd3\xff\0\0\0\0\0\0\0"), true}, {MR_STR("\xcb\x3f\xe0\0\0\0\0\0\0"), true},
        {MR_STR("\xcb\xff\xf0\0\0\0\0\0\0"), true}};
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        uint64_t job = rig_submit(r, LOOP("2", ""));
        play(r, a, job, 0, cases[i].value);
        bool is_skipped = rig_task(r, job, in_round(1, "next")).is_skipped;
        assert_true(is_skipped == cases[i].ends);
        if (!is_skipped) play_parts(r, a, job, 1);
        rig_done(r, a, job, "fit.s");
        rig_done(r, a, job, "fit.count");
        ended(r, job, is_skipped ? 1 : 2, !is_skipped);
    }
}

/* Loops are not shared by key, because another job may run another number of rounds. */
static void each_job_runs_the_rounds_of_its_own_loop(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    static const char json[] = "{\"namespace\":\"n\"," LOOP_BODY("50", "");
    uint64_t job[2] = {rig_submit(r, json), rig_submit(r, json)};
    for (int i = 0; i < 2; i++) {
        if (i) play(r, a, job[i], 0, GO);
        play(r, a, job[i], (uint32_t)i, STOP);
        rig_done(r, a, job[i], "fit.s");
        rig_done(r, a, job[i], "fit.count");
        ended(r, job[i], (uint32_t)i + 1, false);
    }
}

static void a_condition_that_is_no_number_fails_in_words(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("50", ""));
    play(r, a, job, 0, MR_STR("\xa1x"));
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    char text[512];
    (void)snprintf(text, sizeof text, "%.*s", MR_STR_ARG(info.error.message));
    assert_non_null(
        strstr(text, "\"fit[0].done\" is the \"until\" of its loop, and became a text"));
}

static void a_failed_loop_is_retried_from_its_beginning(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("50", ""));
    play(r, a, job, 0, GO);
    rig_done(r, a, job, in_round(1, "part-0"));
    rig_end(r, a, job, in_round(1, "part-1"), MR_OUTCOME_ERROR);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
    play(r, a, job, 0, GO);
    play(r, a, job, 1, STOP);
    rig_done(r, a, job, "fit.s");
    rig_done(r, a, job, "fit.count");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void a_cancelled_loop_leaves_nothing(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("50", ""));
    play(r, a, job, 0, GO);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    rig_turn(r);
    assert_null(rig_leftover(r));
}

static void a_done_loop_leaves_nothing_when_it_is_forgotten(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("50", ""));
    play(r, a, job, 0, STOP);
    rig_done(r, a, job, "fit.s");
    rig_done(r, a, job, "fit.count");
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    rig_turn(r);
    assert_null(rig_leftover(r));
}

static void where_it_ended_outlives_the_scheduler(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("50", ""));
    play(r, a, job, 0, GO);
    play(r, a, job, 1, STOP);
    rig_done(r, a, job, "fit.count");
    rig_crash(r);
    rig_pass(r, 60 * MR_SECOND); /* the workers from before the restart stay away */
    struct rig_worker b = join(r, "b");
    assert_int_equal(rig_state(r, job, in_round(2, "part-0")), MR_TASK_RELEASED);
    rig_done(r, b, job, in_round(0, "part-0"));
    rig_done(r, b, job, in_round(0, "part-1"));
    rig_done(r, b, job, in_round(0, "next"));
    /* The journal already has the first value of the condition. A second value, which differs,
     * changes nothing. */
    rig_done_value(r, b, job, in_round(0, "done"), STOP);
    play_parts(r, b, job, 1);
    rig_done(r, b, job, "fit.s");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    rig_compact(r);
    rig_crash(r);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* Lets a worker register again with the values `keys`, which it still has. Returns the worker. */
static struct rig_worker come_back(struct rig *r, struct rig_worker w, uint64_t job,
    const char *const *keys, uint32_t n, struct mr_str value)
{
    const struct mr_ws_run run = {.job = {job}, .count = n};
    uint32_t index[8], attempt[8], bytes[8];
    char data[64] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        index[i] = rig_index(r, job, keys[i]);
        attempt[i] = 1;
        bytes[i] = (uint32_t)value.n;
        memcpy(data + at, value.p, value.n);
        at += value.n;
    }
    struct mr_ws_register more = {.incarnation = w.incarnation};
    more.holding = (struct mr_ws_completed){.tasks = {&run, 1, index, attempt, n},
        .inline_bytes = bytes,
        .inlined = mr_str_of(data, at)};
    const struct rig_spec spec = {.name = "a", .node = "a", .slots = 4};
    return rig_join_as(r, &spec, &more);
}

static void a_restart_goes_on_in_the_round_it_was_in(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("50", ""));
    for (uint32_t i = 0; i < 9; i++)
        play(r, a, job, i, GO);
    rig_done(r, a, job, in_round(9, "part-0"));
    rig_crash(r);
    const char *has[] = {"fit[8].next", "fit[8].done", "fit[9].part-0"};
    a = come_back(r, a, job, has, 3, GO);
    assert_int_equal(rig_state(r, job, in_round(8, "part-0")), MR_TASK_RELEASED);
    assert_int_equal(rig_state(r, job, in_round(9, "part-0")), MR_TASK_DONE);
    assert_int_equal(rig_state(r, job, in_round(3, "next")), MR_TASK_RELEASED);
    rig_done(r, a, job, in_round(9, "part-1"));
    rig_done(r, a, job, in_round(9, "next"));
    rig_done_value(r, a, job, in_round(9, "done"), STOP);
    rig_done(r, a, job, "fit.s");
    rig_done(r, a, job, "fit.count");
    ended(r, job, 10, false);
}

static void a_round_begun_ahead_does_not_prove_that_it_comes(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("50", ""));
    for (uint32_t i = 0; i < 4; i++)
        play(r, a, job, i, GO);
    rig_crash(r);
    const char *has[] = {"fit[4].next", "fit[4].done", "fit[5].part-0"};
    a = come_back(r, a, job, has, 3, STOP);
    assert_true(rig_task(r, job, in_round(5, "part-0")).is_skipped);
    assert_int_equal(rig_state(r, job, in_round(4, "next")), MR_TASK_DONE);
    assert_int_equal(rig_state(r, job, in_round(3, "next")), MR_TASK_RELEASED);
}

static void a_lost_worker_does_not_undo_what_was_decided(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("50", ""));
    play(r, a, job, 0, GO);
    play(r, a, job, 1, STOP);
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = a.slot, .incarnation = a.incarnation};
    rig_step(r, &ev);
    rig_turn(r);
    rig_forget_rows(r);
    struct rig_worker b = join(r, "b");
    rig_done(r, b, job, "fit.s");
    rig_done(r, b, job, "fit.count");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(rig_count(r, SAID_TASK, b, job, in_round(2, "part-0")), 0);
}

static void what_must_not_run_for_nothing_waits_for_its_round(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    static const char json[] =
        "{\"repeat\":{\"fit\":{\"max\":9,\"carry\":{\"s\":{\"value\":0}},\"tasks\":{"
        "\"put\":{\"op\":\"f\",\"args\":[{\"ref\":\"s\"}],\"pure\":false},"
        "\"done\":{\"op\":\"h\",\"args\":[{\"ref\":\"put\"}]}},"
        "\"next\":{\"s\":{\"ref\":\"put\"}},\"until\":{\"ref\":\"done\"}}}}";
    uint64_t job = rig_submit(r, json);
    rig_done(r, a, job, in_round(0, "put"));
    assert_int_equal(rig_count(r, SAID_TASK, a, job, in_round(1, "put")), 0);
    rig_done_value(r, a, job, in_round(0, "done"), GO);
    assert_int_equal(rig_count(r, SAID_TASK, a, job, in_round(1, "put")), 1);
}

/* Each round has two parts. Each of two workers with one slot gets the same part in every round. */
static void a_round_goes_where_the_one_before_was(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec one = {.name = "a", .node = "a"}, two = {.name = "b", .node = "b"};
    struct rig_worker w[2] = {rig_join(r, &one), rig_join(r, &two)};
    uint64_t job = rig_submit(r, LOOP("50", ""));
    int first = rig_count(r, SAID_TASK, w[0], job, in_round(0, "part-0")) ? 0 : 1;
    for (uint32_t i = 0; i < 4; i++) {
        rig_done(r, w[first], job, in_round(i, "part-0"));
        rig_done(r, w[!first], job, in_round(i, "part-1"));
        int by = rig_count(r, SAID_TASK, w[0], job, in_round(i, "next")) ? 0 : 1;
        rig_done(r, w[by], job, in_round(i, "next"));
        rig_done_value(r, w[by], job, in_round(i, "done"), GO);
    }
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_true(t.placed_cached >= 3 * 3);
    assert_int_equal(t.placed_repaired, 0);
}

static void an_instance_of_a_template_runs_where_the_last_one_did(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec one = {.name = "a", .node = "a"}, two = {.name = "b", .node = "b"};
    struct rig_worker w[2] = {rig_join(r, &one), rig_join(r, &two)};
    const struct mr_sched_submit more = {.template = 5};
    int where[3][2];
    for (int i = 0; i < 3; i++) {
        uint64_t job = rig_submit_with(r,
            "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]},\"y\":{\"op\":\"g\",\"args\":[2]}}}",
            &more);
        where[i][0] = rig_count(r, SAID_TASK, w[0], job, "x") ? 0 : 1;
        where[i][1] = rig_count(r, SAID_TASK, w[0], job, "y") ? 0 : 1;
        rig_done(r, w[where[i][0]], job, "x");
        rig_done(r, w[where[i][1]], job, "y");
        assert_int_equal(where[i][0], where[0][0]);
        assert_int_equal(where[i][1], where[0][1]);
    }
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.placed_cached, 4);
}

static void only_what_ran_on_a_lost_worker_is_placed_anew(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec one = {.name = "a", .node = "a"}, two = {.name = "b", .node = "b"};
    struct rig_worker w[2] = {rig_join(r, &one), rig_join(r, &two)};
    uint64_t job = rig_submit(r, LOOP("50", ""));
    int first = rig_count(r, SAID_TASK, w[0], job, in_round(0, "part-0")) ? 0 : 1;
    rig_done(r, w[first], job, in_round(0, "part-0"));
    rig_done(r, w[!first], job, in_round(0, "part-1"));
    int by = rig_count(r, SAID_TASK, w[0], job, in_round(0, "next")) ? 0 : 1;
    rig_done(r, w[by], job, in_round(0, "next"));
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = w[!by].slot, .incarnation = w[!by].incarnation};
    rig_step(r, &ev);
    rig_turn(r);
    rig_done_value(r, w[by], job, in_round(0, "done"), GO);
    rig_done(r, w[by], job, in_round(1, "part-0"));
    rig_done(r, w[by], job, in_round(1, "part-1"));
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_true(t.placed_repaired >= 1);
    assert_true(t.placed_cached >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_loop_ends_where_its_condition_says),
        RIG_TEST(a_round_is_sent_ahead_and_taken_back_when_it_does_not_come),
        RIG_TEST(a_loop_without_an_end_runs_all_its_rounds),
        RIG_TEST(how_a_loop_ended_is_told_in_every_life),
        RIG_TEST(a_failure_in_a_round_fails_the_job_and_names_it),
        RIG_TEST(a_number_says_whether_a_loop_goes_on),
        RIG_TEST(each_job_runs_the_rounds_of_its_own_loop),
        RIG_TEST(a_condition_that_is_no_number_fails_in_words),
        RIG_TEST(a_failed_loop_is_retried_from_its_beginning),
        RIG_TEST(a_cancelled_loop_leaves_nothing),
        RIG_TEST(a_done_loop_leaves_nothing_when_it_is_forgotten),
        RIG_TEST(where_it_ended_outlives_the_scheduler),
        RIG_TEST(a_restart_goes_on_in_the_round_it_was_in),
        RIG_TEST(a_round_begun_ahead_does_not_prove_that_it_comes),
        RIG_TEST(a_lost_worker_does_not_undo_what_was_decided),
        RIG_TEST(what_must_not_run_for_nothing_waits_for_its_round),
        RIG_TEST(a_round_goes_where_the_one_before_was),
        RIG_TEST(an_instance_of_a_template_runs_where_the_last_one_did),
        RIG_TEST(only_what_ran_on_a_lost_worker_is_placed_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
