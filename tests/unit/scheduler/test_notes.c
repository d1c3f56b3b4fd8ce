/* The scheduler's core: its counters and its notes. A note tells the shell of an event, for clients
 * and for the log. */
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

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots};
    return rig_join(r, &spec);
}

/* Returns the last note of `type`, and sets `text` to the note's text. */
static const struct mr_sched_note *note(
    const struct rig *r, enum mr_sched_note_type type, const char **text)
{
    const struct mr_sched_note *n = (const void *)r->notes.p;
    for (uint32_t i = r->notes_count; i-- > 0;) {
        if (n[i].type != type) continue;
        *text = r->texts[i];
        return &n[i];
    }
    fail_msg("no note of type %d", (int)type);
    return NULL;
}

static void want(struct rig *r, uint64_t job, uint32_t index)
{
    struct mr_sched_event ev = {.type = MR_SCHED_WANT, .job = {job}, .index = index};
    rig_step(r, &ev);
    rig_turn(r);
}

static void assert_failed(
    struct rig *r, uint64_t job, uint32_t index, int code, const char *expected)
{
    const char *text;
    const struct mr_sched_note *n = note(r, MR_NOTE_TARGET_FAILED, &text);
    assert_int_equal(n->job.v, job);
    assert_int_equal(n->index, index);
    assert_int_equal(n->code, code);
    assert_string_equal(text, expected);
}

/* A note MR_NOTE_TARGETS_READY counts only targets that no earlier note has counted, however many
 * targets end together. */
static void each_target_is_told_ready_once(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 4);
    uint64_t job = rig_submit(
        r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), "") "," T("z", "h", R("x"), ""),
               "\"y\",\"z\""));
    rig_done(r, w, job, "x");
    rig_done(r, w, job, "y");
    rig_done(r, w, job, "z");
    const struct mr_sched_note *n = (const void *)r->notes.p;
    uint32_t ready = 0;
    for (uint32_t i = 0; i < r->notes_count; i++)
        if (n[i].type == MR_NOTE_TARGETS_READY && n[i].job.v == job) ready += n[i].count;
    assert_int_equal(ready, 2);
}

static void who_wants_a_value_that_there_is_not_is_told_why(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 4);
    want(r, 12345, 3);
    assert_failed(r, 12345, 3, MR_ENOENT, "there is no such job or key");
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), ""), "\"y\""));
    want(r, job, 2);
    assert_failed(r, job, 2, MR_ENOENT, "there is no such job or key");
    uint32_t x = rig_index(r, job, "x"), y = rig_index(r, job, "y");
    want(r, job, x);
    assert_failed(r, job, x, MR_ENOENT, "the key is not a target of its job");
    uint32_t before = rig_notes(r, MR_NOTE_TARGET_FAILED, job);
    want(r, job, y); /* y is being made */
    assert_int_equal(rig_notes(r, MR_NOTE_TARGET_FAILED, job), before);
    assert_int_equal(rig_notes(r, MR_NOTE_TARGETS_READY, job), 0);
    rig_done(r, w, job, "x");
    rig_done(r, w, job, "y");
    assert_int_equal(rig_notes(r, MR_NOTE_TARGETS_READY, job), 1);
    want(r, job, y);
    assert_int_equal(rig_notes(r, MR_NOTE_TARGETS_READY, job), 2);
    const char *text;
    assert_int_equal(note(r, MR_NOTE_TARGETS_READY, &text)->count, 1);
    uint64_t off = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, off), MR_OK);
    want(r, off, 0);
    assert_failed(r, off, 0, MR_ESTATE, "the job ended without a value for this key");
}

static void a_value_that_only_its_worker_has_is_told_when_it_was_fetched(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.inline_blocks = 8;
    struct rig *r = rig_new_with(&c);
    struct rig_worker w = join(r, "w", 4);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    rig_done_bytes(r, w, job, "x", 900);
    assert_int_equal(rig_value(r, job, "x", NULL).kind, MR_SCHED_VALUE_AWAY);
    want(r, job, 0);
    want(r, job, 0);
    assert_int_equal(rig_count(r, SAID_FETCH, w, job, "x"), 1);
    rig_done_bytes(r, w, job, "x", 900);
    const char *text;
    const struct mr_sched_note *n = note(r, MR_NOTE_TARGET_BYTES, &text);
    assert_int_equal(n->job.v, job);
    assert_int_equal(n->index, 0);
    assert_int_equal(n->text_bytes, 900);
    assert_string_equal(text, "x");
    want(r, job, 0);
    assert_int_equal(rig_count(r, SAID_FETCH, w, job, "x"), 2);
}

static void assert_answer(
    struct rig *r, enum mr_sched_event_type what, uint64_t job, int code, const char *expected)
{
    assert_int_equal(rig_ask(r, what, job), code);
    const char *text;
    const struct mr_sched_note *n = note(r, MR_NOTE_REPLY, &text);
    assert_int_equal(n->job.v, job);
    assert_int_equal(n->ticket, r->ticket);
    assert_string_equal(text, expected);
}

static void what_cannot_be_done_to_a_job_is_said_in_words(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 4);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    assert_answer(r, MR_SCHED_CANCEL, 777, MR_ENOENT, "there is no such job");
    assert_answer(r, MR_SCHED_RETRY, 777, MR_ENOENT, "there is no such job");
    assert_answer(r, MR_SCHED_FORGET, 777, MR_ENOENT, "there is no such job");
    assert_answer(r, MR_SCHED_RETRY, job, MR_ESTATE, "the job has not ended; cancel it first");
    assert_answer(r, MR_SCHED_FORGET, job, MR_ESTATE, "the job has not ended; cancel it first");
    rig_done(r, w, job, "x");
    assert_answer(r, MR_SCHED_RETRY, job, MR_ESTATE, "the job is done; there is nothing to retry");
    assert_answer(r, MR_SCHED_CANCEL, job, MR_OK, "");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_answer(r, MR_SCHED_FORGET, job, MR_OK, "");
    const char *text;
    const struct mr_sched_note *n = note(r, MR_NOTE_JOB_FORGOTTEN, &text);
    assert_int_equal(n->job.v, job);
    assert_true(n->wall_ns > 0);
}

static void progress_is_told_ten_times_a_second_while_there_is_some(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1);
    uint64_t job = rig_submit(
        r, "{\"tasks\":{\"p-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":60}}}}");
    assert_int_not_equal(job, 0);
    rig_pass(r, MR_SECOND);
    uint32_t before = rig_notes(r, MR_NOTE_JOB_PROGRESS, job);
    rig_pass(r, MR_SECOND); /* no task runs or ends during this second */
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_PROGRESS, job), before);
    for (uint32_t i = 0; i < 50; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "p-%u", i);
        if (rig_attempt(r, w, job, key)) rig_done(r, w, job, key);
        rig_pass(r, 20 * MR_MS);
    }
    assert_int_equal(rig_state(r, job, "p-49"), MR_TASK_DONE);
    assert_in_range(rig_notes(r, MR_NOTE_JOB_PROGRESS, job) - before, 9, 11);
}

/* A client that wants a value is told of it by a note when the journal has the value, and not
 * before. */
static void a_value_is_told_of_when_the_journal_has_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 4);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "rare", "2", ""), "\"x\",\"y\""));
    r->acks = false;
    rig_done(r, w, job, "x");
    want(r, job, rig_index(r, job, "x"));
    assert_int_equal(rig_notes(r, MR_NOTE_TARGETS_READY, job), 0);
    rig_ack(r);
    assert_int_equal(rig_notes(r, MR_NOTE_TARGETS_READY, job), 1);
    want(r, job, rig_index(r, job, "x"));
    assert_int_equal(rig_notes(r, MR_NOTE_TARGETS_READY, job), 2);
}

/* A repeated request is answered with the same job. The job is announced only once. */
static void a_repeated_request_announces_no_job(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    static const char json[] =
        "{\"request_id\":\"r\",\"tasks\":{" T("x", "f", "1", "") "},"
                                                                 "\"targets\":[\"x\"]}";
    uint64_t job = rig_submit(r, json);
    const char *text;
    const struct mr_sched_note *n = note(r, MR_NOTE_REPLY, &text);
    assert_int_equal(n->index, MR_JOB_PENDING);
    assert_false(n->existed);
    assert_int_equal(rig_submit(r, json), job);
    n = note(r, MR_NOTE_REPLY, &text);
    assert_int_equal(n->job.v, job);
    assert_int_equal(n->index, 0);
    assert_true(n->existed);
    const struct mr_sched_submit other = {.body_hash = {1, 2}};
    assert_int_equal(rig_submit_with(r, json, &other), 0);
    n = note(r, MR_NOTE_REPLY, &text);
    assert_int_equal(n->code, MR_EEXIST);
    assert_int_equal(n->job.v, job);
    char id[MR_JOB_ID_TEXT_MAX], expected[128];
    mr_job_id_format((mr_job_id){job}, id);
    (void)snprintf(
        expected, sizeof expected, "request_id \"r\" was used for another body, by job %s", id);
    assert_string_equal(text, expected);
    r->acks = false;
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), 1);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), 1);
    /* The request id of the forgotten job is free again. */
    assert_int_not_equal(rig_submit(r, json), job);
}

/* The note of a job's change of state has the number of the journal record. A query returns the
 * same number. */
static void a_change_of_state_has_the_number_of_its_record(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 4);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\"")), last = 0;
    for (int i = 0; i < 2; i++) {
        struct mr_sched_job_info info;
        const char *text;
        const struct mr_sched_note *n = note(r, MR_NOTE_JOB_STATE, &text);
        assert_int_equal(n->job.v, job);
        assert_int_equal(n->index, i ? MR_JOB_DONE : MR_JOB_RUNNING);
        assert_true(n->sequence > last && n->sequence <= r->sequence);
        assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
        assert_int_equal(info.event_sequence, n->sequence);
        last = n->sequence;
        if (!i) rig_done(r, w, job, "x");
    }
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_STATE, job), 2);
}

static void each_target_that_failed_is_named(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 4);
    uint64_t job =
        rig_submit(r, "{\"on_error\":\"continue\",\"tasks\":{" T("a", "f", "1", "") "," T("b", "g",
                          R("a"), "") "," T("c", "h", "2", "") "},\"targets\":[\"b\",\"c\"]}");
    const char *text;
    rig_end(r, w, job, "a", MR_OUTCOME_ERROR);
    assert_int_equal(note(r, MR_NOTE_TARGET_FAILED, &text)->index, rig_index(r, job, "b"));
    rig_end(r, w, job, "c", MR_OUTCOME_ERROR);
    assert_int_equal(note(r, MR_NOTE_TARGET_FAILED, &text)->index, rig_index(r, job, "c"));
    assert_int_equal(rig_notes(r, MR_NOTE_TARGET_FAILED, job), 2);
}

/* One step announces that a worker is lost, and that two values are lost with it. Each note has its
 * own text. */
static void the_words_of_one_step_stay_apart(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 4);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", "2", "") "," T("z", "h", "3", ""),
                          "\"x\",\"y\",\"z\""));
    /* the scheduler knows no store of the object, only the worker has it */
    (void)rig_done_object(r, w, job, "x");
    (void)rig_done_object(r, w, job, "y");
    rig_end(r, w, job, "z", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    uint32_t before = rig_notes(r, MR_NOTE_TARGET_FAILED, job);
    rig_pass(r, r->c.lease + MR_SECOND);
    assert_int_equal(rig_notes(r, MR_NOTE_TARGET_FAILED, job) - before, 2);
    const char *text;
    const struct mr_sched_note *n = note(r, MR_NOTE_TARGET_FAILED, &text);
    assert_int_equal(n->code, MR_ESTATE);
    assert_string_equal(text, "its value was lost when its worker was, and its job has ended");
    (void)note(r, MR_NOTE_WORKER_CLOSE, &text);
    assert_string_equal(text, "its lease has run out");
    want(r, job, rig_index(r, job, "y"));
    assert_failed(
        r, job, rig_index(r, job, "y"), MR_ESTATE, "the job ended without a value for this key");
}

/* The retried job's progress is announced again, although no other job runs. */
static void progress_of_a_retried_job_is_told(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", R("x"), ""), "\"y\""));
    rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
    rig_pass(r, MR_SECOND);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
    rig_pass(r, MR_SECOND);
    uint32_t before = rig_notes(r, MR_NOTE_JOB_PROGRESS, job);
    rig_done(r, w, job, "x");
    rig_pass(r, 200 * MR_MS);
    assert_true(rig_notes(r, MR_NOTE_JOB_PROGRESS, job) > before);
}

static void what_ran_is_counted(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {
        .name = "w", .node = "n", .slots = 3, .memory = 12345, .store = 5};
    rig_store(r, 5, "n");
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":1") "," T("y", "f", R("x"), ""), "\"y\""));
    rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
    struct mr_sched_totals t;
    struct mr_sched_worker_info i;
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.jobs_running, 1);
    assert_int_equal(t.tasks_done, 0);
    assert_true(mr_sched_has_idle_slots(r->s));
    rig_done_object(r, w, job, "x");
    rig_done_bytes(r, w, job, "y", 7);
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.workers, 1);
    assert_int_equal(t.slots, 3);
    assert_int_equal(t.stores, 1);
    assert_int_equal(t.jobs_running, 0);
    assert_int_equal(t.tasks_done, 2);
    assert_true(t.tasks_sent >= 3);
    assert_int_equal(t.journal_acked, t.journal_sequence);
    assert_false(t.journal_is_away || t.is_recovering || t.is_paused);
    const struct mr_ws_heartbeat h = {.time_ns = r->now,
        .memory_used_bytes = 11,
        .tasks_started = 12,
        .tasks_done = 13,
        .running = 2};
    struct mr_ws_up m = {.heartbeat = &h};
    rig_message(r, w, &m);
    assert_true(mr_sched_worker(r->s, w.slot, &i));
    assert_int_equal(i.incarnation, w.incarnation);
    assert_true(mr_str_eq(i.name, MR_STR("w")) && mr_str_eq(i.node, MR_STR("n")));
    assert_true(i.is_connected && !i.is_retiring);
    assert_int_equal(i.slots, 3);
    assert_int_equal(i.memory_bytes, 12345);
    assert_int_equal(i.memory_used_bytes, 11);
    assert_int_equal(i.tasks_started, 12);
    assert_int_equal(i.tasks_done, 13);
    assert_int_equal(i.running, 2);
    assert_int_equal(i.held_bytes, 7);
    assert_int_equal(i.store, 5);
    assert_int_equal(i.last_heard, r->now);
    assert_false(mr_sched_worker(r->s, w.slot + 1, &i));
    struct mr_sched_op_info op = {0};
    for (uint32_t k = 1; k <= mr_sched_ops_count(r->s); k++)
        if (mr_str_eq(mr_sched_op_name(r->s, k), MR_STR("f")))
            assert_true(mr_sched_op(r->s, k, &op));
    assert_int_equal(op.tasks, 2);
    assert_int_equal(op.wall_ns, 2 * MR_MS);
    assert_int_equal(op.bytes, 100007);
    assert_int_equal(op.workers, 1);
    assert_int_equal(op.estimate_ns, MR_MS);
    assert_true(op.deterministic && !op.by_reference && !op.long_running);
    assert_false(mr_sched_op(r->s, 0, &op));
    assert_false(mr_sched_op(r->s, mr_sched_ops_count(r->s) + 1, &op));
}

/* The retry waits for the workers that the journal names, because one of them may return with
 * values that the job needs. */
static void a_retry_after_a_restart_waits_for_the_workers_of_the_life_before(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 4);
    (void)join(r, "other", 4);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\""));
    struct rig_worker of_x = rig_attempt(r, w, job, "x") ? w : r->last;
    rig_end(r, of_x, job, "x", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    rig_crash(r);
    struct rig_worker n = join(r, "new", 4);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
    assert_int_equal(rig_count(r, SAID_TASK, n, job, NULL), 0);
    for (uint32_t i = 0; i < 40; i++) {
        rig_pass(r, MR_SECOND);
        rig_heartbeat(r, n);
    }
    assert_int_equal(rig_count(r, SAID_TASK, n, job, NULL), 2);
}

static void a_lost_store_is_named(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    const char *text;
    const struct mr_sched_note *n = note(r, MR_NOTE_STORE_JOINED, &text);
    assert_int_equal(n->incarnation, 0x51);
    assert_int_equal(n->slot, 1);
    rig_pass(r, r->c.lease + MR_SECOND);
    n = note(r, MR_NOTE_STORE_LOST, &text);
    assert_int_equal(n->incarnation, 0x51);
    assert_int_equal(n->slot, 1);
    assert_int_equal(n->code, MR_EAWAY);
    assert_string_equal(text, "the store was silent for longer than its lease");
    rig_store(r, 0x52, "n");
    rig_store(r, 0x53, "n");
    n = note(r, MR_NOTE_STORE_LOST, &text);
    assert_int_equal(n->incarnation, 0x52);
    assert_int_equal(n->code, MR_EEXIST);
    assert_string_equal(text, "its node has a new store");
}

static void a_lost_worker_is_named(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1);
    rig_pass(r, r->c.lease + MR_SECOND);
    const char *text;
    const struct mr_sched_note *n = note(r, MR_NOTE_WORKER_CLOSE, &text);
    assert_int_equal(n->incarnation, w.incarnation);
    assert_int_equal(n->session, w.session);
    assert_int_equal(n->slot, w.slot);
    assert_int_equal(n->code, MR_ESTATE);
    assert_string_equal(text, "its lease has run out");
    struct mr_sched_worker_info info;
    assert_false(mr_sched_worker(r->s, w.slot, &info));
    const struct rig_spec spec = {.name = "again", .slots = 2};
    w = rig_join(r, &spec);
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_RETIRE, .slot = w.slot, .incarnation = w.incarnation};
    rig_step(r, &ev);
    assert_true(r->last.was_drained);
    assert_true(mr_sched_worker(r->s, w.slot, &info) && info.is_retiring);
    rig_close(r, w);
    /* A worker that has retired is not waited for. */
    assert_false(mr_sched_worker(r->s, w.slot, &info));
}

/* The note of a refused job has no id and says why the job was refused. */
static void a_refused_job_says_why(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    static const char one[] =
        "{\"namespace\":\"s\",\"tasks\":{" T("k", "f", "1", "") "},"
                                                                "\"targets\":[\"k\"]}",
                      other[] = "{\"namespace\":\"s\",\"tasks\":{" T(
                          "k", "f", "2", "") "},"
                                             "\"targets\":[\"k\"]}";
    uint64_t job = rig_submit(r, one), again = rig_submit(r, one);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){again}, &info));
    assert_int_equal(info.joined, 1);
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_int_equal(info.joined, 0);
    assert_int_equal(rig_submit(r, other), 0);
    const char *text;
    const struct mr_sched_note *n = note(r, MR_NOTE_REPLY, &text);
    assert_int_equal(n->job.v, 0);
    assert_int_equal(n->ticket, r->ticket);
    assert_true(n->code < 0);
    assert_non_null(strstr(text, "\"k\""));
    mr_time since;
    uint32_t index;
    assert_false(mr_sched_longest(r->s, (mr_job_id){job}, &index, &since));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(each_target_is_told_ready_once),
        RIG_TEST(who_wants_a_value_that_there_is_not_is_told_why),
        RIG_TEST(a_value_that_only_its_worker_has_is_told_when_it_was_fetched),
        RIG_TEST(what_cannot_be_done_to_a_job_is_said_in_words),
        RIG_TEST(progress_is_told_ten_times_a_second_while_there_is_some),
        RIG_TEST(a_value_is_told_of_when_the_journal_has_it),
        RIG_TEST(a_repeated_request_announces_no_job),
        RIG_TEST(a_change_of_state_has_the_number_of_its_record),
        RIG_TEST(each_target_that_failed_is_named),
        RIG_TEST(the_words_of_one_step_stay_apart),
        RIG_TEST(progress_of_a_retried_job_is_told),
        RIG_TEST(what_ran_is_counted),
        RIG_TEST(a_retry_after_a_restart_waits_for_the_workers_of_the_life_before),
        RIG_TEST(a_lost_store_is_named),
        RIG_TEST(a_lost_worker_is_named),
        RIG_TEST(a_refused_job_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
