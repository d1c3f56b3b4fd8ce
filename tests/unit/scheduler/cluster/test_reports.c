/* The scheduler's core: the reports of workers. A worker reports which attempts have ended, which
 * attempts run, the time of its clock, and that it leaves. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define AT_A ",\"workers\":[\"a\"]"
#define AT_B ",\"workers\":[\"b\"]"
#define AT_C ",\"workers\":[\"c\"]"
#define LARGE 900 /* bytes of a value that is too large for the scheduler's cache of 8 blocks */

static const mr_object_id no_object = {0, 0};

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots, .store = store};
    return rig_join(r, &spec);
}

static struct mr_sched_worker_info worker_of(struct rig *r, struct rig_worker w)
{
    struct mr_sched_worker_info info;
    assert_true(mr_sched_worker(r->s, w.slot, &info));
    return info;
}

static struct mr_sched_op_info op_of(struct rig *r, const char *name)
{
    struct mr_sched_op_info op = {0};
    for (uint32_t i = 1; i <= mr_sched_ops_count(r->s); i++)
        if (mr_str_eq(mr_sched_op_name(r->s, i), mr_str(name)))
            assert_true(mr_sched_op(r->s, i, &op));
    return op;
}

static uint32_t spans(struct rig *r, uint64_t job, const char *key, struct mr_sched_span *last)
{
    const struct mr_sched_span *s = (const void *)r->spans.p;
    uint32_t n = 0;
    for (size_t i = 0; i < r->spans.n / sizeof *s; i++) {
        if (s[i].job.v != job || s[i].index != rig_index(r, job, key)) continue;
        *last = s[i];
        n++;
    }
    return n;
}

/* ---- messages of several rows ---------------------------------------------------------------- */

struct rows {
    struct mr_ws_run run;
    uint32_t index[8], attempt[8];
};

static struct mr_ws_refs refs_of(const struct rows *x)
{
    return (struct mr_ws_refs){&x->run, 1, x->index, x->attempt, x->run.count};
}

static void add(struct rig *r, struct rows *x, uint64_t job, const char *key, uint32_t attempt)
{
    x->run.job.v = job;
    x->index[x->run.count] = rig_index(r, job, key);
    x->attempt[x->run.count++] = attempt;
}

struct ends { /* rows of one message Completed (session.proto) */
    struct rows rows;
    uint32_t outcome[8], bytes[8], failures;
    uint64_t started[8], took[8];
    struct mr_ws_failure failure[8];
    char text[2048];
    size_t text_bytes;
};

/* Adds a row. If the outcome is OK, `text` is the value; otherwise `text` is the reason. */
static void add_end(struct rig *r, struct ends *x, uint64_t job, const char *key,
    enum mr_outcome outcome, const char *text)
{
    uint32_t at = x->rows.run.count;
    add(r, &x->rows, job, key, 1);
    x->outcome[at] = outcome;
    x->took[at] = (at + 1) * MR_MS;
    x->started[at] = (at + 1) * MR_US;
    if (outcome == MR_OUTCOME_OK) {
        x->bytes[at] = (uint32_t)strlen(text);
        memcpy(x->text + x->text_bytes, text, x->bytes[at]);
        x->text_bytes += x->bytes[at];
    } else if (text) {
        x->failure[x->failures++] =
            (struct mr_ws_failure){.row = at, .code = 3, .message = mr_str(text)};
    }
}

static void tell_ends(struct rig *r, struct rig_worker w, struct ends *x)
{
    struct mr_ws_up m = {0};
    m.completed = (struct mr_ws_completed){.tasks = refs_of(&x->rows),
        .outcome = x->outcome,
        .inline_bytes = x->bytes,
        .inlined = mr_str_of(x->text, x->text_bytes),
        .base_ns = r->now,
        .started_ns = x->started,
        .duration_ns = x->took,
        .failures = x->failure,
        .failures_count = x->failures};
    rig_message(r, w, &m);
}

static void each_row_of_a_message_has_its_own_times_and_bytes(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8, 0);
    uint64_t job =
        rig_submit(r, "{\"on_error\":\"continue\",\"tasks\":{" T("x", "f", "1", "") "," T(
                          "y", "f", "2", "") "," T("u", "g", "3", "") "," T("v", "g", "4",
                          "") "},\"targets\":[\"x\",\"y\",\"u\",\"v\"]}");
    struct ends m = {0};
    add_end(r, &m, job, "x", MR_OUTCOME_OK, "xx");
    add_end(r, &m, job, "u", MR_OUTCOME_ERROR, "u broke");
    add_end(r, &m, job, "y", MR_OUTCOME_OK, "yyy");
    add_end(r, &m, job, "v", MR_OUTCOME_ERROR, "v broke");
    tell_ends(r, w, &m);
    char bytes[64];
    (void)rig_value(r, job, "x", bytes);
    assert_string_equal(bytes, "xx");
    (void)rig_value(r, job, "y", bytes);
    assert_string_equal(bytes, "yyy");
    assert_true(mr_str_eq(rig_task(r, job, "u").error.message, MR_STR("u broke")));
    assert_true(mr_str_eq(rig_task(r, job, "v").error.message, MR_STR("v broke")));
    const char *const keys[] = {"x", "u", "y", "v"};
    for (uint32_t i = 0; i < 4; i++) {
        struct mr_sched_span s;
        assert_int_equal(spans(r, job, keys[i], &s), 1);
        assert_int_equal(s.started, r->now + (i + 1) * MR_US);
        assert_int_equal(s.finished, s.started + (i + 1) * MR_MS);
        assert_int_equal(s.outcome, i % 2 ? MR_OUTCOME_ERROR : MR_OUTCOME_OK);
    }
}

static void a_failure_without_a_reason_says_so(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    struct ends m = {0};
    add_end(r, &m, job, "x", MR_OUTCOME_ERROR, NULL);
    tell_ends(r, w, &m);
    struct mr_sched_error e = rig_task(r, job, "x").error;
    assert_int_equal(e.code, 2);
    assert_true(mr_str_eq(e.message, MR_STR("the worker gave no reason")));
    assert_true(e.arguments.n == 0 && e.log.n == 0);
}

static void a_value_that_ran_into_its_consumer_has_a_span_and_counts(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", R("x"), ""), "\"y\""));
    struct mr_sched_totals before, after;
    mr_sched_totals(r->s, &before);
    struct ends m = {0};
    add_end(r, &m, job, "x", MR_OUTCOME_USED_UP, NULL);
    add_end(r, &m, job, "y", MR_OUTCOME_OK, "y");
    tell_ends(r, w, &m);
    mr_sched_totals(r->s, &after);
    assert_int_equal(after.tasks_done - before.tasks_done, 2);
    struct mr_sched_span s;
    assert_int_equal(spans(r, job, "x", &s), 1);
    assert_int_equal(s.outcome, MR_OUTCOME_OK);
    assert_int_equal(s.finished - s.started, MR_MS);
    assert_int_equal(spans(r, job, "y", &s), 1);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* ---- attempts that do not count -------------------------------------------------------------- */

static void what_ended_after_it_was_stopped_has_a_span_and_no_value(void **state)
{
    (void)state;
    static const enum mr_outcome outcomes[][2] = {{MR_OUTCOME_OK, MR_OUTCOME_CANCELLED},
        {MR_OUTCOME_USED_UP, MR_OUTCOME_CANCELLED}, {MR_OUTCOME_ERROR, MR_OUTCOME_ERROR},
        {MR_OUTCOME_CANCELLED, MR_OUTCOME_CANCELLED}};
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8, 0);
    for (uint32_t i = 0; i < MR_ARRAY_LEN(outcomes); i++) {
        const enum mr_outcome told = outcomes[i][0];
        struct mr_sched_span s;
        uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
        rig_pass(r, MR_MS);
        assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
        uint32_t bytes = told == MR_OUTCOME_OK;
        /* Attempt 7 was never sent. */
        rig_done_as(r, w, job, "x", 7, told, no_object, bytes, MR_MS);
        rig_done_as(r, w, job, "x", 1, told, no_object, bytes, 0); /* the attempt did not run */
        assert_int_equal(spans(r, job, "x", &s), 0);
        rig_forget_rows(r);
        rig_done_as(r, w, job, "x", 1, told, no_object, bytes, MR_MS);
        assert_int_equal(spans(r, job, "x", &s), 1);
        assert_int_equal(s.outcome, outcomes[i][1]);
        assert_int_equal(s.bytes, 0);
        assert_int_equal(s.finished - s.started, MR_MS);
        assert_int_equal(rig_count(r, SAID_RELEASE, w, job, "x"), bytes);
        assert_int_equal(rig_state(r, job, "x"), MR_TASK_CANCELLED);
    }
    assert_int_equal(op_of(r, "f").tasks, 0);
}

/* A worker reports a value of a job that the scheduler does not know any more. */
static void a_value_of_a_job_that_is_not_known_is_released(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    struct ends ok = {0}, broke = {0};
    add_end(r, &ok, job, "x", MR_OUTCOME_OK, "x");
    add_end(r, &broke, job, "x", MR_OUTCOME_ERROR, "it broke");
    ok.rows.run.job.v = broke.rows.run.job.v = job + 100;
    tell_ends(r, w, &broke);
    assert_int_equal(rig_count(r, SAID_RELEASE, w, job + 100, NULL), 0);
    tell_ends(r, w, &ok);
    assert_int_equal(rig_count(r, SAID_RELEASE, w, job + 100, NULL), 1);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_RUNNING);
}

static bool frees_objects;

static void look_at_release(struct rig *r, uint32_t slot, const struct mr_sched_batch *b)
{
    (void)r;
    (void)slot;
    if (b->release.count == 2) frees_objects = b->frees_objects;
}

/* A release of an object frees memory of a store. The flag of the batch tells the shell to send
 * such releases at once, without waiting for more. */
static void a_batch_says_whether_its_releases_free_objects(void **state)
{
    (void)state;
    for (int with_object = 0; with_object < 2; with_object++) {
        struct rig *r = rig_new();
        struct rig_worker w = join(r, "w", 8, 0);
        uint64_t job =
            rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\""));
        assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
        struct ends m = {0};
        add_end(r, &m, job, "x", MR_OUTCOME_OK, with_object ? "" : "x");
        add_end(r, &m, job, "y", MR_OUTCOME_OK, "y");
        const uint64_t maker = 7, number = 1, size = 1000;
        struct mr_ws_up up = {0};
        up.completed = (struct mr_ws_completed){.tasks = refs_of(&m.rows),
            .inline_bytes = m.bytes,
            .inlined = mr_str_of(m.text, m.text_bytes),
            .object_maker = &maker,
            .object_number = &number,
            .object_bytes = &size,
            .objects_count = (uint32_t)with_object};
        frees_objects = !with_object;
        r->on_batch = look_at_release;
        rig_message(r, w, &up);
        assert_int_equal(frees_objects, with_object);
        (void)rig_teardown(state);
    }
}

static void the_until_of_a_loop_that_is_no_truth_ends_its_attempt(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 4, 0);
    uint64_t job = rig_submit(r,
        "{\"tasks\":{\"x\":{\"value\":7}},\"repeat\":{\"fit\":{\"max\":3,\"carry\":{\"s\":"
        "{\"value\":0}},\"tasks\":{" T("next", "g", R("s"), "") "," T("done", "h", R("next"),
            "") "},\"next\":{\"s\":" R("next") "},\"until\":" R("done") "}}}");
    rig_done(r, w, job, "fit[0].next");
    /* The value is a text, which is neither true nor false. */
    rig_done_value(r, w, job, "fit[0].done", MR_STR("\xa1x"));
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    struct mr_sched_error e = rig_task(r, job, "fit[0].done").error;
    assert_int_equal(e.code, 9);
    assert_non_null(memmem(e.message.p, e.message.n, "\"fit[0].done\" is the \"until\"", 28));
    struct mr_sched_span s;
    assert_int_equal(spans(r, job, "fit[0].done", &s), 1);
    assert_int_equal(s.outcome, MR_OUTCOME_ERROR);
    assert_int_equal(rig_count(r, SAID_RELEASE, w, job, "fit[0].done"), 1);
    assert_int_equal(rig_count(r, SAID_CANCEL, w, job, "fit[0].done"), 0);
}

/* ---- estimates and times --------------------------------------------------------------------- */

static void run_one(struct rig *r, struct rig_worker w, mr_duration took)
{
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    rig_done_as(r, w, job, "x", 1, MR_OUTCOME_OK, no_object, 1, took);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
}

static void the_estimate_of_an_op_follows_its_run_times_by_an_eighth(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    assert_int_equal(op_of(r, "f").estimate_ns, 0);
    run_one(r, w, 0); /* no time was measured: an operator that has run counts at least 1 ns */
    assert_int_equal(op_of(r, "f").estimate_ns, 1);
    run_one(r, w, 8 * MR_MS + 8);
    assert_int_equal(op_of(r, "f").estimate_ns, MR_MS + 2);
    for (int i = 0; i < 200; i++)
        run_one(r, w, 0);
    assert_in_range(op_of(r, "f").estimate_ns, 1, 8);
}

/* An operator's queue time is a sum over its tasks: the time from when a task is ready until the
 * task starts. The core computes the start from the worker's clock. If this start is before the
 * task is ready, the task adds 0. */
static void the_wait_of_a_task_is_added_to_its_op(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    mr_time ready = r->now;
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    rig_pass(r, 5 * MR_MS);
    rig_done(r, w, job, "x");
    struct mr_sched_span s;
    assert_int_equal(spans(r, job, "x", &s), 1);
    assert_true(s.ready == ready && s.sent == ready && s.started == r->now);
    assert_int_equal(op_of(r, "f").queue_ns, 5 * MR_MS);
    const struct mr_ws_heartbeat ahead = {.time_ns = r->now + 3 * MR_MS};
    struct mr_ws_up m = {.heartbeat = &ahead};
    rig_message(r, w, &m);
    job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    rig_done(r, w, job, "x");
    assert_int_equal(spans(r, job, "x", &s), 1);
    assert_int_equal(s.started, r->now - 3 * MR_MS);
    assert_int_equal(op_of(r, "f").queue_ns, 5 * MR_MS);
}

static void an_older_attempt_that_was_first_has_no_time_of_sending(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    rig_pass(r, MR_MS);
    rig_tell(r, a, TOLD_UNKNOWN, job, "x");
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
    rig_done_as(r, a, job, "x", 1, MR_OUTCOME_OK, no_object, 1, MR_MS);
    struct mr_sched_span s;
    assert_int_equal(spans(r, job, "x", &s), 1);
    assert_true(s.attempt == 1 && s.ready == 0 && s.sent == 0 && s.started > 0);
    assert_int_equal(op_of(r, "f").queue_ns, 0);
    assert_int_equal(op_of(r, "f").tasks, 1);
}

/* Of the time in microseconds at which a task was sent, the core keeps the low 32 bits. These bits
 * wrap after 71 minutes. */
static void a_task_that_ran_for_hours_was_sent_before_it_started(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    mr_time sent = r->now;
    for (int i = 0; i < 16 * 60; i++) {
        rig_pass(r, 5 * MR_SECOND);
        rig_heartbeat(r, w);
    }
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    uint32_t index = 0, one = 1;
    const uint64_t zero = 0, took = r->now - sent - MR_MS;
    struct mr_ws_up m = {0};
    m.completed = (struct mr_ws_completed){.tasks = {&run, 1, &index, &one, 1},
        .inline_bytes = &one,
        .inlined = MR_STR("x"),
        .base_ns = sent + MR_MS,
        .started_ns = &zero,
        .duration_ns = &took};
    rig_message(r, w, &m);
    struct mr_sched_span s;
    assert_int_equal(spans(r, job, "x", &s), 1);
    assert_int_equal(s.sent, sent);
    assert_int_equal(s.started, sent + MR_MS);
    assert_int_equal(s.finished, r->now);
    job = rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":1"), "\"x\""));
    m.completed.duration_ns = NULL; /* the attempt started, but its run time is not known */
    m.completed.inline_bytes = NULL;
    const uint32_t outcome = MR_OUTCOME_ERROR;
    m.completed.outcome = &outcome;
    const struct mr_ws_run other = {.job = {job}, .count = 1};
    m.completed.tasks.runs = &other;
    rig_message(r, w, &m);
    assert_int_equal(spans(r, job, "x", &s), 1);
    assert_int_equal(s.sent, r->now);
    assert_int_equal(s.started, 0);
}

static void the_clock_of_a_worker_is_read_from_its_quickest_message(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    static const int64_t ahead[] = {0, -10, 50, 20}, most[] = {0, 0, 50, 50}; /* in ms */
    for (uint32_t i = 0; i < 4; i++) {
        rig_pass(r, MR_SECOND);
        struct mr_ws_heartbeat beat = {.time_ns = r->now + (uint64_t)(ahead[i] * (int64_t)MR_MS)};
        struct mr_ws_up m = {.heartbeat = &beat};
        rig_message(r, w, &m);
        uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":1"), "\"x\""));
        rig_pass(r, 100 * MR_MS);
        rig_done(r, w, job, "x");
        struct mr_sched_span s;
        assert_int_equal(spans(r, job, "x", &s), 1);
        assert_int_equal(s.started, r->now - (uint64_t)most[i] * MR_MS);
    }
}

/* ---- what runs ------------------------------------------------------------------------------- */

static void beat(struct rig *r, struct rig_worker w, const struct rows *x, const uint64_t *ran)
{
    const struct mr_ws_heartbeat h = {
        .time_ns = r->now, .running_tasks = refs_of(x), .running_ns = ran};
    struct mr_ws_up m = {.heartbeat = &h};
    rig_message(r, w, &m);
}

static void a_task_that_runs_for_longer_than_usual_is_expected_to_run_for_as_long_again(
    void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    run_one(r, w, MR_MS);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("l", "long", "2", ""), "\"x\",\"l\""));
    assert_int_equal(worker_of(r, w).queue_ns, MR_MS);
    static const uint64_t ran[] = {5 * MR_MS, 2 * MR_MS, 7 * MR_MS};
    static const uint64_t expected[] = {5 * MR_MS, 5 * MR_MS, 7 * MR_MS};
    for (int i = 0; i < 3; i++) {
        struct rows x = {0};
        const uint64_t both[] = {60 * MR_SECOND, ran[i]};
        add(r, &x, job, "l", 1); /* a long-running task adds no load */
        add(r, &x, job, "x", 1);
        beat(r, w, &x, both);
        assert_int_equal(worker_of(r, w).queue_ns, expected[i]);
    }
    rig_tell(r, w, TOLD_LEFT_SLOT, job, "x");
    assert_int_equal(worker_of(r, w).queue_ns, 0);
}

static void only_the_last_heartbeat_says_what_runs_and_since_when(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 4, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\""));
    rig_pass(r, MR_SECOND);
    uint32_t index = 9;
    mr_time since = 0;
    struct rows x = {0}, late = {0};
    add(r, &x, job, "y", 1);
    add(r, &late, job, "x", 5); /* attempt 5 was never sent */
    const uint64_t ran = 300 * MR_MS;
    beat(r, w, &x, NULL); /* this heartbeat does not say since when y runs */
    assert_false(mr_sched_longest(r->s, (mr_job_id){job}, &index, &since));
    beat(r, w, &x, &ran);
    assert_true(mr_sched_longest(r->s, (mr_job_id){job}, &index, &since));
    assert_int_equal(index, rig_index(r, job, "y"));
    assert_int_equal(since, r->now - ran);
    beat(r, w, &late, &ran);
    assert_false(mr_sched_longest(r->s, (mr_job_id){job}, &index, &since));
    beat(r, w, &x, &ran);
    const struct mr_ws_heartbeat h = {.time_ns = r->now};
    struct mr_ws_up m = {.heartbeat = &h};
    rig_message(r, w, &m);
    assert_false(mr_sched_longest(r->s, (mr_job_id){job}, &index, &since));
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Performs one event. True: the core wants a tick in the same turn. */
static bool wants_tick(struct rig *r, struct mr_sched_event ev)
{
    rig_turn(r);
    assert_true(mr_sched_deadline(r->s) > r->now);
    rig_step(r, &ev);
    return mr_sched_deadline(r->s) == r->now;
}

static void what_may_let_a_task_go_is_looked_at_in_the_same_turn(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    struct rows x = {0};
    add(r, &x, job, "x", 1);
    const struct mr_ws_heartbeat h = {.time_ns = r->now};
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_MESSAGE, .slot = w.slot, .incarnation = w.incarnation};
    assert_false(wants_tick(r, ev)); /* an empty message changes nothing */
    ev.message.heartbeat = &h;
    assert_true(wants_tick(r, ev));
    ev.message = (struct mr_ws_up){.left_slot = refs_of(&x)};
    assert_true(wants_tick(r, ev));
    ev.type = MR_SCHED_WORKER_CRASHED;
    assert_true(wants_tick(r, ev));
    ev = (struct mr_sched_event){.type = MR_SCHED_WORKER_REGISTER, .session = 5};
    ev.worker = (struct mr_ws_register){.name = MR_STR("n"), .node = MR_STR("n"), .slots = 1};
    assert_true(wants_tick(r, ev));
}

/* Events name a slot that no worker has ever used, or an old incarnation of a slot. They are
 * ignored. */
static void who_is_not_a_worker_is_not_listened_to(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    static const enum mr_sched_event_type types[] = {MR_SCHED_WORKER_MESSAGE,
        MR_SCHED_WORKER_CLOSED, MR_SCHED_WORKER_CRASHED, MR_SCHED_WORKER_RETIRE};
    const struct rig_worker others[] = {{.slot = w.slot, .incarnation = w.incarnation + 1},
        {.slot = w.slot + 1, .incarnation = 0}, {.slot = UINT32_MAX / 2}};
    struct rows x = {0};
    add(r, &x, job, "x", 1);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 3; k++) {
            struct mr_sched_event ev = {
                .type = types[i], .slot = others[k].slot, .incarnation = others[k].incarnation};
            if (!i) ev.message = (struct mr_ws_up){.given = refs_of(&x), .leaving = true};
            rig_step(r, &ev);
            rig_turn(r);
            assert_true(worker_of(r, w).is_connected && !worker_of(r, w).is_retiring);
            assert_int_equal(rig_task(r, job, "x").attempt, 1);
            assert_int_equal(rig_state(r, job, "x"), MR_TASK_RUNNING);
        }
    struct mr_ws_up m = {.leaving = true};
    rig_message(r, w, &m);
    assert_true(worker_of(r, w).is_retiring);
}

static void a_worker_that_returned_a_task_has_room_when_another_is_done(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 2, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\""));
    rig_end(r, w, job, "x", MR_OUTCOME_RETURNED);
    assert_int_equal(rig_attempt(r, w, job, "x"), 1);
    rig_done(r, w, job, "y");
    assert_int_equal(rig_attempt(r, w, job, "x"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(each_row_of_a_message_has_its_own_times_and_bytes),
        RIG_TEST(a_failure_without_a_reason_says_so),
        RIG_TEST(a_value_that_ran_into_its_consumer_has_a_span_and_counts),
        RIG_TEST(what_ended_after_it_was_stopped_has_a_span_and_no_value),
        RIG_TEST(a_value_of_a_job_that_is_not_known_is_released),
        RIG_TEST(a_batch_says_whether_its_releases_free_objects),
        RIG_TEST(the_until_of_a_loop_that_is_no_truth_ends_its_attempt),
        RIG_TEST(the_estimate_of_an_op_follows_its_run_times_by_an_eighth),
        RIG_TEST(the_wait_of_a_task_is_added_to_its_op),
        RIG_TEST(an_older_attempt_that_was_first_has_no_time_of_sending),
        RIG_TEST(a_task_that_ran_for_hours_was_sent_before_it_started),
        RIG_TEST(the_clock_of_a_worker_is_read_from_its_quickest_message),
        RIG_TEST(a_task_that_runs_for_longer_than_usual_is_expected_to_run_for_as_long_again),
        RIG_TEST(only_the_last_heartbeat_says_what_runs_and_since_when),
        RIG_TEST(what_may_let_a_task_go_is_looked_at_in_the_same_turn),
        RIG_TEST(who_is_not_a_worker_is_not_listened_to),
        RIG_TEST(a_worker_that_returned_a_task_has_room_when_another_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
