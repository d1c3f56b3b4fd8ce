/* The scheduler's core: queries between steps. The tests check each field of the answers about
 * tasks, values, workers, operators and totals, and rare sentences of an explanation. */
#include "base/limits.h"
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

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots, .store = store};
    return rig_join(r, &spec);
}

static struct mr_sched_totals totals(const struct rig *r)
{
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    return t;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void a_task_is_seen_from_its_plan_to_its_end(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":3") "," T("y", "g", R("x"), ""), "\"y\""));
    struct mr_sched_task_info x = rig_task(r, job, "x"), y = rig_task(r, job, "y");
    assert_true(x.state == MR_TASK_READY && y.state == MR_TASK_WAITING);
    assert_true(x.attempt == 0 && !x.is_sent && x.worker == UINT32_MAX && x.sent == 0);
    assert_int_equal(x.ready, r->now);
    assert_int_equal(y.ready, 0);
    assert_int_equal(x.retries_left, 3);
    assert_int_equal(y.waiting_inputs, 1);
    assert_true(mr_str_eq(mr_sched_op_name(r->s, x.op), MR_STR("f")));
    assert_true(mr_str_eq(mr_sched_op_name(r->s, y.op), MR_STR("g")));
    assert_false(x.has_error || x.is_skipped || x.is_abandoned);
    assert_int_equal(x.cause, MR_NODE_NONE);
    rig_pass(r, MR_SECOND);
    (void)join(r, "other", 1, 0);
    struct rig_worker w = join(r, "w", 1, 0);
    x = rig_task(r, job, "x");
    assert_true(x.state == MR_TASK_RUNNING && x.is_sent && x.attempt == 1);
    assert_int_equal(x.sent, r->now);
    assert_int_equal(x.ready, r->now - MR_SECOND);
    w.slot = x.worker;
    struct mr_sched_worker_info info;
    assert_true(mr_sched_worker(r->s, x.worker, &info));
    w.incarnation = info.incarnation;
    rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
    assert_int_equal(rig_task(r, job, "x").retries_left, 2);
    x = rig_task(r, job, "x");
    assert_true(mr_sched_worker(r->s, x.worker, &info));
    w = (struct rig_worker){.slot = x.worker, .incarnation = info.incarnation};
    rig_done(r, w, job, "x");
    x = rig_task(r, job, "x");
    assert_true(x.state == MR_TASK_DONE && !x.is_sent && x.attempt == 2 && x.sent == 0);
    assert_int_equal(x.worker, w.slot); /* the worker that made the value */
    y = rig_task(r, job, "y");
    assert_true(mr_sched_worker(r->s, y.worker, &info));
    w = (struct rig_worker){.slot = y.worker, .incarnation = info.incarnation};
    rig_done(r, w, job, "y");
    x = rig_task(r, job, "x");
    assert_true(x.state == MR_TASK_RELEASED && !x.is_skipped && !x.is_abandoned);
    assert_true(x.waiting_inputs == 0 && x.worker == UINT32_MAX);
    assert_false(mr_sched_task(r->s, (mr_job_id){job}, 2, &x));
    assert_false(mr_sched_task(r->s, (mr_job_id){job + 9}, 0, &x));
}

/* The task's input was sent, but the task itself was not. */
static void a_task_that_was_not_sent_has_no_worker(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "rare", R("x"), ""), "\"y\""));
    assert_int_equal(rig_task(r, job, "x").worker, w.slot);
    struct mr_sched_task_info y = rig_task(r, job, "y");
    assert_true(y.state == MR_TASK_WAITING && y.worker == UINT32_MAX && y.waiting_inputs == 1);
    rig_done(r, w, job, "x");
    y = rig_task(r, job, "y");
    assert_true(y.state == MR_TASK_READY && y.worker == UINT32_MAX && y.waiting_inputs == 0);
}

static void what_is_no_task_has_no_op(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(r, "{\"dsk\":{\"x\":1,\"y\":[\"f\",\"x\"]},\"targets\":[\"y\"]}");
    struct mr_sched_task_info x = rig_task(r, job, "x");
    assert_int_equal(x.op, 0);
    assert_int_equal(x.state, MR_TASK_DONE);
    assert_int_equal(x.worker, UINT32_MAX);
}

/* A cancelled job has a failed task x. Task y was cancelled and not failed, so y has no failed task
 * as its cause. */
static void a_task_of_a_cancelled_job_has_no_cause(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    uint64_t job = rig_submit(r, "{\"on_error\":\"continue\",\"tasks\":{" T(
                                     "x", "f", "1", "") "," T("y", "g", "2", "") "}}");
    rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    struct mr_sched_task_info y = rig_task(r, job, "y");
    assert_true(y.state == MR_TASK_CANCELLED && y.cause == MR_NODE_NONE && !y.has_error);
    assert_int_equal(y.cause_error.message.n, 0);
    struct mr_sched_task_info x = rig_task(r, job, "x");
    assert_true(x.state == MR_TASK_ERRED && x.cause == MR_NODE_NONE && x.has_error);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void value_is(struct rig *r, uint64_t job, const char *key, enum mr_sched_value_kind kind,
    uint64_t bytes, uint32_t worker)
{
    struct mr_sched_value v = rig_value(r, job, key, NULL);
    assert_int_equal(v.kind, kind);
    assert_int_equal(v.bytes, bytes);
    assert_int_equal(v.worker, worker);
}

static void a_value_that_is_given_or_not_there_says_so(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job =
        rig_submit(r, JOB("\"l\":{\"value\":7}," T("s", "f", R("l"), ""), "\"l\",\"s\""));
    struct mr_sched_value v;
    value_is(r, job, "l", MR_SCHED_VALUE_INLINE, 1, UINT32_MAX);
    value_is(r, job, "s", MR_SCHED_VALUE_NONE, 0, UINT32_MAX);
    assert_false(mr_sched_value(r->s, (mr_job_id){job}, 2, NULL, &v));
    assert_int_equal(v.kind, MR_SCHED_VALUE_NONE);
    assert_true(mr_sched_value(r->s, (mr_job_id){job}, rig_index(r, job, "l"), NULL, &v));
    assert_int_equal(v.bytes, 1); /* the size is known without reading the bytes */
    char bytes[64];
    (void)rig_value(r, job, "l", bytes);
    assert_string_equal(bytes, "\x07"); /* the number 7 in MessagePack */
}

/* A query returns all bytes of a small value, however many blocks of the cache they take. */
static void small_values_come_back_as_they_were(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    static const uint32_t lengths[] = {1, 15, 16, 17, 27, 28, 29, 55, 56, 57, 84, 300};
    char bytes[300], text[2048];
    size_t at = (size_t)snprintf(text, sizeof text, "{\"tasks\":{");
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)('!' + i % 90);
    for (uint32_t i = 0; i < 12; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
            "%s\"v%u\":{\"op\":\"f\",\"args\":[%u]}", i ? "," : "", i, i);
    (void)snprintf(text + at, sizeof text - at, "}}");
    uint64_t job = rig_submit(r, text);
    struct rig_worker w = join(r, "w", 64, 0);
    for (uint32_t life = 0; life < 2; life++) {
        for (uint32_t i = 0; i < 12; i++) {
            char key[16];
            (void)snprintf(key, sizeof key, "v%u", i);
            if (!life) rig_done_value(r, w, job, key, mr_str_of(bytes, lengths[i]));
            struct mr_buf out;
            struct mr_sched_value v;
            mr_buf_init(&out, 1 << 16);
            assert_true(mr_sched_value(r->s, (mr_job_id){job}, rig_index(r, job, key), &out, &v));
            assert_int_equal(v.kind, MR_SCHED_VALUE_INLINE);
            assert_int_equal(v.bytes, lengths[i]);
            assert_int_equal(out.n, lengths[i]);
            assert_memory_equal(out.p, bytes, lengths[i]);
            assert_int_equal(v.worker, life ? UINT32_MAX : w.slot);
            mr_buf_fini(&out);
        }
        rig_crash(r);
    }
}

static void a_target_is_not_read_before_the_journal_has_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 77, "w");
    struct rig_worker w = join(r, "w", 2, 77);
    uint64_t job = rig_submit(r, JOB(T("s", "f", "1", "") "," T("o", "f", "2", ""), "\"s\",\"o\""));
    r->acks = false;
    rig_done(r, w, job, "s");
    mr_object_id id = rig_done_object(r, w, job, "o");
    value_is(r, job, "s", MR_SCHED_VALUE_UNACKED, 1, w.slot);
    /* The end of the job is not announced before the journal has it. */
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_true(info.event_sequence == 0 && info.finished_wall_ns == 0);
    r->acks = true;
    rig_ack(r);
    rig_turn(r);
    value_is(r, job, "s", MR_SCHED_VALUE_INLINE, 1, w.slot);
    struct mr_sched_value v = rig_value(r, job, "o", NULL);
    assert_int_equal(v.kind, MR_SCHED_VALUE_OBJECT);
    assert_true(mr_object_id_eq(v.object, id));
    assert_int_equal(v.bytes, 100000);
    assert_int_equal(v.worker, w.slot);
    uint64_t incarnation;
    struct mr_str node, address;
    bool is_alive;
    assert_true(mr_sched_store(r->s, v.store, &incarnation, &node, &address, &is_alive));
    assert_true(incarnation == 77 && is_alive);
    assert_true(mr_str_eq(node, MR_STR("w")) && mr_str_eq(address, MR_STR("a")));
    rig_store_close(r, 77);
    assert_true(mr_sched_store(r->s, v.store, &incarnation, &node, &address, &is_alive));
    assert_false(is_alive);
    assert_false(mr_sched_store(r->s, 0, &incarnation, &node, &address, &is_alive));
    assert_false(mr_sched_store(
        r->s, mr_sched_stores_count(r->s) + 1, &incarnation, &node, &address, &is_alive));
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void slots_are_idle_while_fewer_tasks_are_sent(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    assert_false(mr_sched_has_idle_slots(r->s));
    (void)join(r, "a", 1, 0);
    struct rig_worker b = join(r, "b", 1, 0);
    assert_true(mr_sched_has_idle_slots(r->s));
    uint64_t one = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    assert_true(mr_sched_has_idle_slots(r->s));
    (void)rig_submit(r, JOB(T("x", "g", "1", ""), "\"x\""));
    assert_false(mr_sched_has_idle_slots(r->s));
    assert_int_equal(totals(r).workers, 2);
    assert_int_equal(totals(r).slots, 2);
    rig_close(r, b);
    assert_false(mr_sched_has_idle_slots(r->s));
    assert_int_equal(totals(r).workers, 1);
    assert_int_equal(totals(r).slots, 1);
    assert_int_equal(totals(r).jobs_running, 2);
    assert_int_equal(totals(r).tasks_sent, 2);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, one), MR_OK);
    assert_int_equal(totals(r).jobs_running, 1);
}

static void a_journal_that_is_away_or_behind_is_seen(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct mr_sched_event ev = {.type = MR_SCHED_JOURNAL_AWAY};
    assert_int_equal(totals(r).epoch, mr_sched_epoch(r->s));
    rig_step(r, &ev);
    assert_true(totals(r).journal_is_away);
    ev.type = MR_SCHED_JOURNAL_BACK;
    rig_step(r, &ev);
    assert_false(totals(r).journal_is_away);
    r->acks = false;
    uint64_t before = totals(r).journal_sequence;
    (void)rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    assert_true(totals(r).journal_sequence > before);
    assert_int_equal(totals(r).journal_acked, before);
    rig_ack(r);
    assert_int_equal(totals(r).journal_acked, totals(r).journal_sequence);
}

static void jobs_are_listed_from_the_newest_on(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job[4];
    for (int i = 0; i < 4; i++)
        job[i] = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job[i]), MR_OK);
        assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job[i]), MR_OK);
        assert_int_equal(mr_sched_forgotten(r->s, (mr_job_id){job[i]}),
            (uint64_t)1700000000 * MR_SECOND + r->now);
    }
    assert_int_equal(mr_sched_forgotten(r->s, (mr_job_id){job[0]}), 0);
    assert_int_equal(mr_sched_job_newest(r->s).v, job[3]);
    assert_int_equal(mr_sched_job_older(r->s, (mr_job_id){job[3]}).v, job[0]);
    assert_int_equal(mr_sched_job_older(r->s, (mr_job_id){job[0]}).v, r->first);
    assert_int_equal(mr_sched_job_older(r->s, (mr_job_id){r->first}).v, 0);
    assert_int_equal(mr_sched_job_older(r->s, (mr_job_id){job[1]}).v, 0);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job[3]}, &info));
    assert_true(info.accepted && info.id.v == job[3] && info.parent.v == 0);
    assert_int_equal(info.created_wall_ns, (uint64_t)1700000000 * MR_SECOND + r->now);
    assert_true(info.started_wall_ns == 0 && info.finished_wall_ns == 0);
    assert_false(mr_sched_job(r->s, (mr_job_id){job[1]}, &info));
}

static void a_job_has_its_times_and_its_counts(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const uint64_t wall = (uint64_t)1700000000 * MR_SECOND;
    uint64_t job = rig_submit(
        r, JOB(T("x", "f", "1", ",\"retries\":2") "," T("y", "g", R("x"), ""), "\"x\",\"y\""));
    mr_time created = r->now;
    rig_pass(r, MR_SECOND);
    struct rig_worker w = join(r, "w", 1, 0);
    mr_time started = r->now;
    rig_pass(r, MR_SECOND);
    rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
    rig_done(r, w, job, "x");
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_int_equal(info.finished_wall_ns, 0);
    rig_pass(r, MR_SECOND);
    rig_done(r, w, job, "y");
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_int_equal(info.state, MR_JOB_DONE);
    assert_int_equal(info.created_wall_ns, wall + created);
    assert_int_equal(info.started_wall_ns, wall + started);
    assert_int_equal(info.finished_wall_ns, wall + r->now);
    assert_int_equal(info.retried, 1);
    assert_int_equal(info.recomputed, 0);
    assert_int_equal(info.counts[MR_TASK_DONE], 2);
    assert_true(info.given == 0 && info.joined == 0 && info.skipped == 0 && info.abandoned == 0);
    assert_true(info.event_sequence > 0 && !info.has_error);
}

/* The mean number of slots is taken over the time for which the job has run so far. */
static void a_running_job_has_had_the_slots_so_far(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "a", 2, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 4; k++) {
            rig_pass(r, MR_SECOND);
            rig_heartbeat(r, w);
        }
        assert_in_range(
            mr_sched_job_slots(r->s, (mr_job_id){job}), i ? 2990 : 2000, i ? 3010 : 2000);
        (void)join(r, "b", 2, 0);
    }
    assert_int_equal(mr_sched_job_slots(r->s, (mr_job_id){job + 9}), 0);
}

/* The task that has run longest is found among the tasks of the given job only. */
static void what_runs_longest_is_of_the_job_that_is_asked_for(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "a", 4, 0);
    uint64_t job[2];
    uint32_t index = 99;
    mr_time since = 0;
    for (int i = 0; i < 2; i++)
        job[i] = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", "1", ""), "\"x\",\"y\""));
    assert_false(mr_sched_longest(r->s, (mr_job_id){job[0]}, &index, &since));
    struct mr_ws_run runs[] = {{.job = {job[1]}, .count = 2}, {.job = {job[0]}, .count = 1}};
    const uint32_t indexes[] = {0, 1, 1}, attempts[] = {1, 1, 1};
    const uint64_t ran[] = {300 * MR_MS, 100 * MR_MS, 200 * MR_MS};
    rig_pass(r, MR_SECOND);
    const struct mr_ws_heartbeat beat = {
        .time_ns = r->now, .running_tasks = {runs, 2, indexes, attempts, 3}, .running_ns = ran};
    struct mr_ws_up m = {.heartbeat = &beat};
    rig_message(r, w, &m);
    assert_true(mr_sched_longest(r->s, (mr_job_id){job[0]}, &index, &since));
    assert_int_equal(index, 1);
    assert_int_equal(since, r->now - 200 * MR_MS);
    assert_true(mr_sched_longest(r->s, (mr_job_id){job[1]}, &index, &since));
    assert_int_equal(index, 0);
    assert_int_equal(since, r->now - 300 * MR_MS);
    struct mr_buf out;
    mr_buf_init(&out, 1 << 16);
    assert_int_equal(mr_sched_running(r->s, (mr_job_id){job[0]}, &out), 2);
    assert_int_equal(out.n, 2 * sizeof(uint32_t));
    uint32_t running[2];
    memcpy(running, out.p, sizeof running);
    assert_true(running[0] < 2 && running[1] == 1 - running[0]);
    assert_int_equal(mr_sched_running(r->s, (mr_job_id){job[0] + 9}, NULL), 0);
    mr_buf_fini(&out);
}

/* ---- in words -------------------------------------------------------------------------------- */

static void says(struct rig *r, uint64_t job, const char *key, const char *expected)
{
    struct mr_buf lines;
    mr_buf_init(&lines, 1 << 16);
    assert_true(mr_sched_explain(r->s, (mr_job_id){job}, rig_index(r, job, key), &lines));
    mr_buf_add(&lines, "", 1);
    assert_string_equal((const char *)lines.p, expected);
    mr_buf_fini(&lines);
}

static void the_most_of_a_resource_is_named_whoever_has_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec other = {.name = "o", .resource = "disk", .amount = 9};
    (void)rig_join(r, &other);
    const struct rig_spec some = {.name = "s", .resource = "gpu", .amount = 2};
    (void)rig_join(r, &some);
    const struct rig_spec less = {.name = "l", .resource = "gpu", .amount = 1};
    (void)rig_join(r, &less);
    uint64_t job = rig_submit(r, JOB(T("g", "f", "2", ",\"resources\":{\"gpu\":2.5}"), "\"g\""));
    says(r, job, "g",
        "\"g\" is ready and waits for a worker\n"
        "it asks for 2.5 of the resource \"gpu\", and no worker has more than 2\n"
        "no worker that may run it has room now\n");
}

#define LOOP                                                                                       \
    "{\"tasks\":{\"x\":{\"value\":7}},\"repeat\":{\"fit\":{\"max\":3,\"carry\":{\"s\":"            \
    "{\"value\":0}},\"tasks\":{" T("next", "g", R("s"), "") "," T(                                 \
        "done", "h", R("next"), "") "},\"next\":{\"s\":" R("next") "},\"until\":" R("done") "}}}"

static void a_loop_is_explained_in_its_rounds_and_at_its_end(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 4, 0);
    uint64_t job = rig_submit(r, LOOP);
    says(r, job, "fit.s",
        "\"fit.s\" waits for the end of its loop\nloop \"fit\" is in round 1, of at most 3\n");
    rig_done(r, w, job, "fit[0].next");
    rig_done_value(r, w, job, "fit[0].done", MR_STR("\xc2"));
    rig_done(r, w, job, "fit[1].next");
    says(r, job, "fit.s",
        "\"fit.s\" waits for the end of its loop\nloop \"fit\" is in round 2, of at most 3\n");
    rig_done_value(r, w, job, "fit[1].done", MR_STR("\xc3"));
    says(r, job, "fit[2].next",
        "\"fit[2].next\" did not run: the loop ended before its round\n"
        "loop \"fit\" ended after 2 rounds, of at most 3\n");
    rig_done(r, w, job, "fit.s");
    says(r, job, "fit.s",
        "\"fit.s\" ran\nloop \"fit\" ended after 2 rounds, of at most 3\n"
        "it is a target of the job\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_task_is_seen_from_its_plan_to_its_end),
        RIG_TEST(a_task_that_was_not_sent_has_no_worker),
        RIG_TEST(what_is_no_task_has_no_op),
        RIG_TEST(a_task_of_a_cancelled_job_has_no_cause),
        RIG_TEST(a_value_that_is_given_or_not_there_says_so),
        RIG_TEST(small_values_come_back_as_they_were),
        RIG_TEST(a_target_is_not_read_before_the_journal_has_it),
        RIG_TEST(slots_are_idle_while_fewer_tasks_are_sent),
        RIG_TEST(a_journal_that_is_away_or_behind_is_seen),
        RIG_TEST(jobs_are_listed_from_the_newest_on),
        RIG_TEST(a_job_has_its_times_and_its_counts),
        RIG_TEST(a_running_job_has_had_the_slots_so_far),
        RIG_TEST(what_runs_longest_is_of_the_job_that_is_asked_for),
        RIG_TEST(the_most_of_a_resource_is_named_whoever_has_it),
        RIG_TEST(a_loop_is_explained_in_its_rounds_and_at_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
