/* The scheduler's core: what clients are shown of tasks while they run and afterwards. The counts
 * of a job add up to the nodes of its graph. Running tasks and the spans of attempts are shown. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

static struct mr_sched_job_info info_of(struct rig *r, uint64_t job)
{
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    uint32_t sum = info.given;
    for (int i = MR_TASK_WAITING; i < MR_TASK_STATES; i++)
        sum += info.counts[i];
    assert_int_equal(sum, info.graph->nodes_count); /* invariant I11 of docs/invariants.md */
    return info;
}

static void explained(struct rig *r, uint64_t job, const char *key, char out[2048])
{
    struct mr_buf lines;
    mr_buf_init(&lines, 1 << 16);
    assert_true(mr_sched_explain(r->s, (mr_job_id){job}, rig_index(r, job, key), &lines));
    (void)snprintf(out, 2048, "%.*s", (int)lines.n, (char *)lines.p);
    mr_buf_fini(&lines);
}

/* Returns the span of this attempt. The attempt must have exactly one span. */
static struct mr_sched_span span_of(struct rig *r, uint64_t job, const char *key, uint32_t attempt)
{
    const struct mr_sched_span *s = (const void *)r->spans.p, *found = NULL;
    for (size_t i = 0; i < r->spans.n / sizeof *s; i++) {
        if (s[i].job.v != job || s[i].index != rig_index(r, job, key)) continue;
        if (s[i].attempt != attempt) continue;
        assert_null(found);
        found = &s[i];
    }
    assert_non_null(found);
    return *found;
}

static uint32_t spans_of(const struct rig *r, uint64_t job)
{
    const struct mr_sched_span *s = (const void *)r->spans.p;
    uint32_t n = 0;
    for (size_t i = 0; i < r->spans.n / sizeof *s; i++)
        n += s[i].job.v == job;
    return n;
}

static void what_only_a_failure_needed_is_not_done(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 1};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job =
        rig_submit(r, "{\"on_error\":\"continue\",\"tasks\":{\"bad\":{\"op\":\"f\",\"args\":[1]},"
                      "\"first\":{\"op\":\"rare\",\"args\":[2]},"
                      "\"before\":{\"op\":\"rare\",\"args\":[{\"ref\":\"first\"}]},"
                      "\"both\":{\"op\":\"f\",\"args\":[{\"ref\":\"bad\"},{\"ref\":\"before\"}]},"
                      "\"good\":{\"op\":\"f\",\"args\":[3]}},\"targets\":[\"both\",\"good\"]}");
    /* No worker has the operator "rare", so the tasks "first" and "before" never ran. */
    rig_end(r, w, job, "bad", MR_OUTCOME_ERROR);
    struct mr_sched_job_info info = info_of(r, job);
    assert_int_equal(info.counts[MR_TASK_ERRED], 2);
    assert_int_equal(info.abandoned, 2);
    assert_int_equal(info.counts[MR_TASK_RELEASED], 2);
    assert_true(rig_task(r, job, "first").is_abandoned && rig_task(r, job, "before").is_abandoned);
    char text[2048];
    explained(r, job, "before", text);
    assert_non_null(strstr(text, "\"before\" will not run: what needs it failed"));
    assert_non_null(strstr(text, "\"both\" needs it"));
    rig_done(r, w, job, "good");
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    assert_int_equal(info_of(r, job).abandoned, 2);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
    info = info_of(r, job); /* after the retry, the tasks "first" and "before" are to run */
    assert_int_equal(info.abandoned, 0);
    assert_false(rig_task(r, job, "first").is_abandoned);
}

static void literals_count_as_done(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 1};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job = rig_submit(r, "{\"dsk\":{\"x\":1,\"y\":[\"f\",\"x\"],\"z\":[\"f\",\"y\"]},"
                                 "\"targets\":[\"z\"]}");
    assert_int_equal(info_of(r, job).given, 1);
    rig_done(r, w, job, "y");
    rig_done(r, w, job, "z");
    struct mr_sched_job_info info = info_of(r, job);
    assert_int_equal(info.state, MR_JOB_DONE);
    assert_int_equal(info.given + info.counts[MR_TASK_DONE] + info.counts[MR_TASK_RELEASED], 3);
}

static uint64_t wide(struct rig *r, int n)
{
    char text[4096];
    size_t at = (size_t)snprintf(text, sizeof text, "{\"tasks\":{");
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
            "%s\"t%d\":{\"op\":\"f\",\"args\":[%d]}", i ? "," : "", i, i);
    (void)snprintf(text + at, sizeof text - at, "}}");
    return rig_submit(r, text);
}

static void beat(struct rig *r, struct rig_worker w, uint64_t job, const char *key, uint64_t ran)
{
    uint32_t index = rig_index(r, job, key), attempt = rig_attempt(r, w, job, key);
    struct mr_ws_run run = {.job = {job}, .count = 1};
    const struct mr_ws_heartbeat h = {
        .time_ns = r->now, .running_tasks = {&run, 1, &index, &attempt, 1}, .running_ns = &ran};
    struct mr_ws_up m = {.heartbeat = &h};
    rig_message(r, w, &m);
}

/* If a job makes no progress, clients are told which of its tasks has run longest. */
static void the_longest_running_task_is_the_one_said_to_run_longest(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec a = {.name = "a", .slots = 2};
    struct rig_worker w = rig_join(r, &a);
    uint64_t job = wide(r, 2), other = wide(r, 1);
    mr_job_id id = info_of(r, job).id;
    uint32_t index = UINT32_MAX;
    mr_time since = 0;
    /* No heartbeat has named running tasks yet. */
    assert_false(mr_sched_longest(r->s, id, &index, &since));
    r->now += 10 * MR_SECOND;
    uint32_t rows[] = {rig_index(r, job, "t0"), rig_index(r, job, "t1")}, attempts[] = {1, 1};
    uint64_t ran[] = {3 * MR_SECOND, 4 * MR_SECOND};
    struct mr_ws_run run = {.job = {job}, .count = 2};
    const struct mr_ws_heartbeat h = {
        .time_ns = r->now, .running_tasks = {&run, 1, rows, attempts, 2}, .running_ns = ran};
    struct mr_ws_up m = {.heartbeat = &h};
    rig_message(r, w, &m);
    assert_true(mr_sched_longest(r->s, id, &index, &since));
    assert_int_equal(index, rows[1]);
    assert_int_equal(since, r->now - 4 * MR_SECOND);
    assert_false(mr_sched_longest(r->s, info_of(r, other).id, &index, &since));
    /* Task t1 has ended after the heartbeat that named it, so t0 has run longest. */
    rig_done(r, w, job, "t1");
    assert_true(mr_sched_longest(r->s, id, &index, &since));
    assert_int_equal(index, rows[0]);
    rig_done(r, w, job, "t0");
    assert_false(mr_sched_longest(r->s, id, &index, &since));
}

static void no_more_run_than_there_are_slots(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec a = {.name = "a", .slots = 2}, b = {.name = "b", .slots = 1};
    struct rig_worker w = rig_join(r, &a);
    uint64_t first = wide(r, 1);
    /* Now tasks of this operator are known to be short. */
    rig_done_as(r, w, first, "t0", 0, MR_OUTCOME_OK, (mr_object_id){0}, 3, 1000);
    uint64_t job = wide(r, 40);
    struct mr_sched_job_info info = info_of(r, job);
    assert_true(info.counts[MR_TASK_RUNNING] > 3); /* more tasks are sent than there are slots */
    assert_int_equal(mr_sched_running(r->s, info.id, NULL), 2);
    /* Task number `late` seemed to wait at the worker. When a heartbeat says that this task runs,
     * mr_sched_running counts it as one of the two running tasks. */
    uint32_t late = UINT32_MAX;
    char key[16] = "";
    for (uint32_t i = 0; i < 40 && late == UINT32_MAX; i++) {
        (void)snprintf(key, sizeof key, "%.*s", MR_STR_ARG(mr_graph_key(info.graph, i)));
        if (rig_task(r, job, key).is_sent && !mr_sched_is_running(r->s, info.id, i)) late = i;
    }
    assert_int_not_equal(late, UINT32_MAX);
    assert_int_equal(rig_task(r, job, key).state, MR_TASK_RUNNING);
    beat(r, w, job, key, 5 * MR_MS);
    assert_true(mr_sched_is_running(r->s, info.id, late));
    struct mr_buf running;
    mr_buf_init(&running, 4096);
    assert_int_equal(mr_sched_running(r->s, info.id, &running), 2);
    assert_int_equal(running.n, 2 * sizeof(uint32_t));
    mr_buf_fini(&running);
    (void)rig_join(r, &b);
    rig_pass(r, MR_SECOND);
    assert_true(mr_sched_running(r->s, info.id, NULL) <= 3);
    /* It is unknown what runs at a lost worker. */
    rig_close(r, w);
    assert_true(mr_sched_running(r->s, info.id, NULL) <= 1);
}

/* Of the tasks sent to a worker, the first ones run, as many as it has slots. Long-running tasks
 * run in addition to these. */
static void what_waits_at_a_worker_does_not_run(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec a = {.name = "a", .slots = 2};
    struct rig_worker w = rig_join(r, &a);
    uint64_t first = wide(r, 1);
    rig_done_as(r, w, first, "t0", 1, MR_OUTCOME_OK, (mr_object_id){0, 0}, 3, 1000);
    uint64_t job =
        rig_submit(r, "{\"tasks\":{\"l\":{\"op\":\"long\"},\"x\":{\"op\":\"f\",\"args\":[1]},"
                      "\"y\":{\"op\":\"g\",\"args\":[{\"ref\":\"x\"}]}}}");
    mr_job_id id = {job};
    assert_true(mr_sched_is_running(r->s, id, rig_index(r, job, "l")));
    assert_true(mr_sched_is_running(r->s, id, rig_index(r, job, "x")));
    assert_false(mr_sched_is_running(r->s, id, rig_index(r, job, "y")));
    assert_false(mr_sched_is_running(r->s, id, 99));
    assert_false(mr_sched_is_running(r->s, (mr_job_id){first}, 0)); /* this task is done */
    assert_int_equal(mr_sched_running(r->s, id, NULL), 2);
    uint64_t many = rig_submit(
        r, "{\"tasks\":{\"k-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":300}}}}");
    id.v = many;
    assert_true(mr_sched_is_running(r->s, id, rig_index(r, many, "k-0")));
    assert_false(mr_sched_is_running(r->s, id, rig_index(r, many, "k-1")));
    assert_int_equal(mr_sched_running(r->s, id, NULL), 1);
    /* the query looks at the first 264 tasks of a worker with two slots */
    char key[16];
    for (uint32_t i = 260; i < 264; i++) {
        (void)snprintf(key, sizeof key, "k-%u", i);
        uint32_t index = rig_index(r, many, key);
        rig_tell(r, w, TOLD_STARTED, many, key);
        assert_int_equal(mr_sched_is_running(r->s, id, index), i < 261);
    }
}

static void an_attempt_that_died_with_its_worker_is_counted_and_has_a_span(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec a = {.name = "a", .slots = 1}, b = {.name = "b", .slots = 1};
    struct rig_worker w = rig_join(r, &a);
    uint64_t job = rig_submit(r, "{\"tasks\":{\"made\":{\"op\":\"f\",\"args\":[1]},"
                                 "\"x\":{\"op\":\"f\",\"args\":[{\"ref\":\"made\"},2]}},"
                                 "\"targets\":[\"x\"]}");
    mr_object_id none = {0};
    rig_done_as(r, w, job, "made", 0, MR_OUTCOME_OK, none, 3, 1000);
    mr_time sent = r->now;
    rig_pass(r, MR_SECOND);
    beat(r, w, job, "x", 700 * MR_MS);
    mr_time heard = r->now, began = r->now - 700 * MR_MS;
    rig_pass(r, 100 * MR_MS);
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = w.slot, .incarnation = w.incarnation};
    uint32_t index = rig_index(r, job, "x"), attempt = rig_sent(r, w, job, index);
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    ev.refs = (struct mr_ws_refs){&run, 1, &index, &attempt, 1};
    rig_step(r, &ev);
    struct mr_sched_span s = span_of(r, job, "x", attempt);
    assert_int_equal(s.outcome, MR_OUTCOME_LOST);
    assert_int_equal(s.started, began);
    assert_int_equal(s.finished, heard);
    assert_int_equal(s.ready, sent);
    assert_int_equal(info_of(r, job).retried, 1);
    struct rig_worker v = rig_join(r, &b);
    rig_pass(r, 100 * MR_MS);
    rig_done(r, v, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(info_of(r, job).retried, 1);
    assert_int_equal(spans_of(r, job), 3);
}

static void a_task_of_a_long_chain_is_not_said_to_be_the_target(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    char text[4096], said[2048];
    size_t at =
        (size_t)snprintf(text, sizeof text, "{\"tasks\":{\"t0\":{\"op\":\"f\",\"args\":[1]}");
    for (int i = 1; i < 20; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
            ",\"t%d\":{\"op\":\"f\",\"args\":[{\"ref\":\"t%d\"}]}", i, i - 1);
    (void)snprintf(text + at, sizeof text - at, "},\"targets\":[\"t19\"]}");
    const struct rig_spec spec = {.name = "w", .slots = 1};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job = rig_submit(r, text);
    rig_done(r, w, job, "t0");
    explained(r, job, "t0", said);
    assert_null(strstr(said, "the target"));
    assert_non_null(strstr(said, "a target needs it, through \"t1\" and more than 6 others\n"));
    for (int i = 1; i < 19; i++) {
        (void)snprintf(text, sizeof text, "t%d", i);
        rig_done(r, w, job, text);
    }
    explained(r, job, "t17", said);
    assert_non_null(strstr(said, "the target \"t19\" needs it, through \"t18\""));
}

static void a_task_that_is_cancelled_while_it_runs_has_a_span(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 2};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job = wide(r, 2);
    uint32_t one = rig_attempt(r, w, job, "t0"), other = rig_attempt(r, w, job, "t1");
    mr_object_id none = {0};
    rig_pass(r, MR_SECOND);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    rig_pass(r, MR_SECOND);
    rig_done_as(r, w, job, "t0", one, MR_OUTCOME_CANCELLED, none, 0, 700 * MR_MS);
    /* t1 had not begun when it was cancelled. */
    rig_done_as(r, w, job, "t1", other, MR_OUTCOME_CANCELLED, none, 0, 0);
    struct mr_sched_span s = span_of(r, job, "t0", one);
    assert_int_equal(s.outcome, MR_OUTCOME_CANCELLED);
    assert_int_equal(s.finished - s.started, 700 * MR_MS);
    assert_true(s.ready && s.sent && s.sent <= s.started);
    assert_int_equal(spans_of(r, job), 1);
}

static void a_span_has_the_bytes_of_its_value(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 1};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job = wide(r, 1);
    rig_done_bytes(r, w, job, "t0", 2);
    assert_int_equal(span_of(r, job, "t0", 1).bytes, 2);
}

/* Reports the task with the parts of its time: it started 2 s ago and ran for 1 s, and its last
 * input had come 0.5 s before. */
static void done_with_parts(struct rig *r, struct rig_worker w, uint64_t job, const char *key)
{
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    uint32_t index = rig_index(r, job, key), attempt = rig_attempt(r, w, job, key), bytes = 1;
    uint64_t started = 0, duration = MR_SECOND, input = 1, output = 20, late = 300, delayed = 4000,
             room = 7, restore = 1, training = 65535;
    uint64_t waited = MR_SECOND / 2;
    struct mr_ws_up m = {0};
    m.completed = (struct mr_ws_completed){.tasks = {&run, 1, &index, &attempt, 1},
        .inline_bytes = &bytes,
        .inlined = MR_STR("\x01"),
        .base_ns = r->now - 2 * MR_SECOND,
        .started_ns = &started,
        .duration_ns = &duration,
        .input_ns = &input,
        .output_ns = &output,
        .late_ns = &late,
        .delayed_ns = &delayed,
        .room_ns = &room,
        .restore_ns = &restore,
        .training = &training,
        .waited_ns = &waited};
    rig_message(r, w, &m);
}

static void a_span_has_the_parts_of_its_time(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 1};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job = wide(r, 2);
    rig_pass(r, 5 * MR_SECOND);
    done_with_parts(r, w, job, "t0");
    struct mr_sched_span s = span_of(r, job, "t0", 1);
    assert_int_equal(s.started, r->now - 2 * MR_SECOND);
    assert_int_equal(s.inputs, s.started - MR_SECOND / 2);
    assert_int_equal(s.input_ns, 1);
    assert_int_equal(s.output_ns, 20);
    assert_int_equal(s.late_ns, 300);
    assert_int_equal(s.delayed_ns, 4000);
    assert_int_equal(s.training, 65535);
    assert_int_equal(s.room_ns, 7);
    assert_int_equal(s.restore_ns, 1);
    assert_int_equal(s.held, MR_SCHED_HELD_NOT);
    rig_done(r, w, job, "t1");
    s = span_of(r, job, "t1", 1);
    assert_int_equal(s.inputs + s.input_ns + s.output_ns + s.late_ns, 0);
}

/* Both tasks ask for the only gpu. */
static void a_task_that_asks_for_a_resource_was_held(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "a", .slots = 4, .resource = "gpu", .amount = 1};
    struct rig_worker w = rig_join(r, &spec);
    rig_warm(r, w);
    uint64_t job = rig_submit(r,
        "{\"tasks\":{\"a\":{\"op\":\"f\",\"args\":[1],\"resources\":{\"gpu\":1}},"
        "\"b\":{\"op\":\"f\",\"args\":[2],\"resources\":{\"gpu\":1}}},\"targets\":[\"a\",\"b\"]}");
    rig_done(r, w, job, "a");
    rig_turn(r);
    rig_done(r, w, job, "b");
    uint64_t plain = wide(r, 1);
    rig_done(r, w, plain, "t0");
    assert_int_equal(span_of(r, plain, "t0", 1).held, MR_SCHED_HELD_NOT);
    assert_int_equal(span_of(r, job, "b", 1).held, MR_SCHED_HELD_RESTRICTED);
}

/* Worker "a" lacks the operator, and the only worker that has it is full. */
static void a_task_whose_operator_few_workers_have_was_held(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec a = {.name = "a", .slots = 4, .ops = "g"};
    const struct rig_spec one = {.name = "one", .slots = 1, .ops = "f g"};
    (void)rig_join(r, &a);
    struct rig_worker w = rig_join(r, &one);
    rig_done(r, w, wide(r, 1), "t0"); /* now the core knows the operator's run time */
    uint64_t job = wide(r, 90);
    for (int i = 0; i < 90; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "t%d", i);
        rig_turn(r);
        rig_done(r, w, job, key);
    }
    assert_int_equal(span_of(r, job, "t0", 1).held, MR_SCHED_HELD_NOT);
    assert_int_equal(span_of(r, job, "t89", 1).held, MR_SCHED_HELD_RESTRICTED);
}

static uint32_t last_of(struct rig *r, uint64_t job, const char *key)
{
    return span_of(r, job, key, 1).last_input;
}

/* Task "c" needs "a" and "b"; task "d" needs "c". */
static void a_span_names_the_input_that_came_last(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 4};
    struct rig_worker w = rig_join(r, &spec);
    static const char text[] = "{\"tasks\":{\"a\":{\"op\":\"f\",\"args\":[1]},"
                               "\"b\":{\"op\":\"f\",\"args\":[2]},"
                               "\"c\":{\"op\":\"f\",\"args\":[{\"ref\":\"a\"},{\"ref\":\"b\"}]},"
                               "\"d\":{\"op\":\"f\",\"args\":[{\"ref\":\"c\"}]}}}";
    static const char *const orders[][2] = {{"a", "b"}, {"b", "a"}};
    for (int i = 0; i < 2; i++) {
        uint64_t job = rig_submit(r, text);
        rig_turn(r);
        rig_done(r, w, job, orders[i][0]);
        rig_done(r, w, job, orders[i][1]);
        rig_turn(r);
        rig_done(r, w, job, "c");
        rig_turn(r);
        rig_done(r, w, job, "d");
        assert_int_equal(last_of(r, job, "a"), rig_index(r, job, "a"));
        assert_int_equal(last_of(r, job, "b"), rig_index(r, job, "b"));
        assert_int_equal(last_of(r, job, "c"), rig_index(r, job, orders[i][1]));
        assert_int_equal(last_of(r, job, "d"), rig_index(r, job, "c"));
    }
}

/* A worker on the scheduler's machine has the same clock as the scheduler. The clock of another
 * machine began at the boot of that machine. */
static void the_clock_of_the_same_machine_needs_no_conversion(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_pass(r, 10 * MR_SECOND);
    const struct rig_spec spec = {.name = "w", .slots = 1};
    const struct mr_ws_register near = {.time_ns = r->now - MR_MS};
    const struct mr_ws_register far = {.time_ns = r->now - MR_SECOND};
    struct rig_worker w = rig_join_as(r, &spec, &near);
    assert_int_equal(mr_sched_clock_offset(r->s, w.slot), 0);
    const struct rig_spec other = {.name = "other", .slots = 1};
    w = rig_join_as(r, &other, &far);
    assert_int_equal(mr_sched_clock_offset(r->s, w.slot), MR_SECOND);
}

static void the_slots_of_an_ended_job_are_those_that_it_had(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec a = {.name = "a", .slots = 1}, b = {.name = "b", .slots = 4};
    struct rig_worker w = rig_join(r, &a);
    uint64_t job = wide(r, 1);
    mr_job_id id = {job};
    assert_int_equal(mr_sched_job_slots(r->s, id), 1000);
    /* the job runs for 6 s with one slot, then for 2 s with five slots */
    for (int i = 0; i < 6; i++) {
        rig_pass(r, MR_SECOND);
        rig_heartbeat(r, w);
    }
    struct rig_worker v = rig_join(r, &b);
    for (int i = 0; i < 2; i++) {
        rig_pass(r, MR_SECOND);
        rig_heartbeat(r, w);
        rig_heartbeat(r, v);
    }
    rig_done(r, w, job, "t0");
    uint64_t slots = mr_sched_job_slots(r->s, id);
    assert_true(slots >= 1950 && slots <= 2050);
    const struct rig_spec c = {.name = "c", .slots = 16};
    (void)rig_join(r, &c);
    rig_pass(r, MR_SECOND);
    assert_int_equal(mr_sched_job_slots(r->s, id), slots);
    /* A restart does not change the mean number of slots. The scheduler reads records after the
     * first restart, and a snapshot after the second one. */
    rig_crash(r);
    assert_int_equal(mr_sched_job_slots(r->s, id), slots);
    rig_compact(r);
    rig_crash(r);
    assert_int_equal(mr_sched_job_slots(r->s, id), slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(what_only_a_failure_needed_is_not_done),
        RIG_TEST(literals_count_as_done),
        RIG_TEST(the_longest_running_task_is_the_one_said_to_run_longest),
        RIG_TEST(no_more_run_than_there_are_slots),
        RIG_TEST(what_waits_at_a_worker_does_not_run),
        RIG_TEST(an_attempt_that_died_with_its_worker_is_counted_and_has_a_span),
        RIG_TEST(a_task_of_a_long_chain_is_not_said_to_be_the_target),
        RIG_TEST(a_task_that_is_cancelled_while_it_runs_has_a_span),
        RIG_TEST(a_span_has_the_bytes_of_its_value),
        RIG_TEST(a_span_has_the_parts_of_its_time),
        RIG_TEST(a_task_that_asks_for_a_resource_was_held),
        RIG_TEST(a_task_whose_operator_few_workers_have_was_held),
        RIG_TEST(a_span_names_the_input_that_came_last),
        RIG_TEST(the_clock_of_the_same_machine_needs_no_conversion),
        RIG_TEST(the_slots_of_an_ended_job_are_those_that_it_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
