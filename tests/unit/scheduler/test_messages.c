/* The scheduler's core: messages of workers, and records of the journal. The tests check which
 * workers may register, and what the core notes of tasks that ended, were given back or were lost.
 * They check the journal's records of loops and jobs, and how a new core reads damaged records. The
 * last tests look at the core's messages to workers (batches). */
#include "base/alloc.h"
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

static struct mr_sched_job_info info_of(struct rig *r, uint64_t job)
{
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    return info;
}

/* ---- who may register ------------------------------------------------------------------------ */

static void refused(struct rig *r, struct mr_sched_event ev, int code, const char *words)
{
    r->last = (struct rig_worker){.slot = UINT32_MAX};
    r->code = MR_OK;
    ev.type = MR_SCHED_WORKER_REGISTER;
    ev.session = 99;
    rig_step(r, &ev);
    assert_true(r->last.was_refused);
    assert_int_equal(r->code, code);
    if (!strstr(r->text, words)) fail_msg("\"%s\" does not say \"%s\"", r->text, words);
    const struct mr_sched_note *n = (const void *)r->notes.p;
    assert_int_equal(n[r->notes_count - 1].session, 99);
}

static void a_worker_that_cannot_be_taken_is_refused_in_words(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    char name[129];
    memset(name, 'n', sizeof name);
    const struct mr_str longest = mr_str_of(name, 127), too_long = mr_str_of(name, 128);
    struct mr_sched_event ev = {.worker = {.name = MR_STR("w"), .node = MR_STR("n"), .slots = 1}};
    ev.worker.slots = 0;
    refused(r, ev, MR_EINVAL, "slots must be 1 to 1024");
    ev.worker.slots = 1025;
    refused(r, ev, MR_EINVAL, "slots must be 1 to 1024");
    ev.worker.slots = 1;
    ev.worker.name = MR_STR("");
    refused(r, ev, MR_EINVAL, "name and node must have");
    ev.worker.name = too_long;
    refused(r, ev, MR_EINVAL, "name and node must have");
    ev.worker.name = longest;
    ev.worker.node = too_long;
    refused(r, ev, MR_EINVAL, "name and node must have");
    ev.worker.incarnation = 12345;
    ev.worker.node = MR_STR("n");
    refused(r, ev, MR_ESTATE, "declared lost");
    ev.worker.incarnation = (uint64_t)0x80000001 << 32;
    refused(r, ev, MR_ESTATE, "a journal that Redis has lost");
    ev.worker.incarnation = 0;
    ev.worker.node = longest;
    ev.worker.slots = MR_SLOTS_MAX;
    ev.type = MR_SCHED_WORKER_REGISTER;
    rig_step(r, &ev);
    assert_false(r->last.was_refused && r->last.slot != UINT32_MAX);
    refused(r, ev, MR_EEXIST, "of this name is connected");
    for (uint32_t i = 1; i < RIG_WORKERS; i++)
        (void)join(r, (const char *[]){"", "1", "2", "3", "4", "5", "6", "7"}[i], 1, 0);
    ev.worker.name = MR_STR("more");
    refused(r, ev, MR_ELIMIT, "as many workers as it may");
}

static void a_worker_that_left_makes_room(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w[RIG_WORKERS];
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < RIG_WORKERS; i++) {
            w[i] = join(r, names[i], 1, 0);
            assert_int_equal(w[i].slot, i);
        }
        for (uint32_t i = 0; i < RIG_WORKERS; i++) {
            struct mr_sched_event ev = {
                .type = MR_SCHED_WORKER_RETIRE, .slot = w[i].slot, .incarnation = w[i].incarnation};
            rig_step(r, &ev);
            rig_turn(r);
            assert_true(r->last.was_drained);
            rig_close(r, w[i]);
        }
        struct mr_sched_worker_info info;
        for (uint32_t i = 0; i < RIG_WORKERS; i++)
            assert_false(mr_sched_worker(r->s, i, &info));
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* If a worker gives a task back, it has no room. The core sends it no task before its next
 * heartbeat. */
static void a_worker_that_returns_a_task_is_left_alone_until_it_is_heard(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    rig_end(r, w, job, "x", MR_OUTCOME_RETURNED);
    assert_int_equal(rig_attempt(r, w, job, "x"), 1);
    rig_pass(r, MR_SECOND);
    assert_int_equal(rig_attempt(r, w, job, "x"), 1);
    rig_heartbeat(r, w);
    assert_int_equal(rig_attempt(r, w, job, "x"), 2);
    assert_int_equal(info_of(r, job).retried, 0);
}

static struct mr_sched_span span_of(const struct rig *r, uint64_t job, uint32_t attempt)
{
    const struct mr_sched_span *s = (const void *)r->spans.p;
    for (size_t i = r->spans.n / sizeof *s; i-- > 0;)
        if (s[i].job.v == job && s[i].attempt == attempt) return s[i];
    fail_msg("no span");
    return (struct mr_sched_span){0};
}

/* If a row in a worker's message has no times, its task never started. The span of the task has the
 * time at which the task was sent. */
static void a_span_without_a_start_says_when_it_was_sent(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    mr_time ready = r->now;
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":1"), "\"x\""));
    mr_time sent = r->now;
    rig_pass(r, MR_SECOND);
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    uint32_t index = 0, attempt = 1, outcome = MR_OUTCOME_ERROR, slot = 3;
    struct mr_ws_up m = {0};
    m.completed = (struct mr_ws_completed){
        .tasks = {&run, 1, &index, &attempt, 1}, .outcome = &outcome, .slot = &slot};
    rig_message(r, w, &m);
    struct mr_sched_span s = span_of(r, job, 1);
    assert_int_equal(s.ready, ready);
    assert_int_equal(s.sent, sent);
    assert_true(s.started == 0 && s.finished == 0 && s.cpu_ns == 0 && s.bytes == 0);
    assert_int_equal(s.outcome, MR_OUTCOME_ERROR);
    assert_int_equal(s.accounted, r->now);
    assert_int_equal(s.slot, 3);
    assert_int_equal(s.worker, w.slot);
    const uint64_t began = 0, took = 5 * MR_MS, cpu = 4 * MR_MS;
    rig_pass(r, MR_SECOND);
    uint32_t bytes = 7;
    attempt = 2;
    outcome = MR_OUTCOME_OK;
    m.completed.inline_bytes = &bytes;
    m.completed.inlined = MR_STR("1234567");
    m.completed.base_ns = r->now - 10 * MR_MS;
    m.completed.started_ns = &began;
    m.completed.duration_ns = &took;
    m.completed.cpu_ns = &cpu;
    rig_message(r, w, &m);
    s = span_of(r, job, 2);
    assert_int_equal(s.started, r->now - 10 * MR_MS);
    assert_int_equal(s.finished, r->now - 5 * MR_MS);
    assert_int_equal(s.cpu_ns, 4 * MR_MS);
    assert_int_equal(s.bytes, 7);
    assert_int_equal(s.sent, sent + MR_SECOND);
    struct mr_sched_op_info op;
    assert_true(mr_sched_op(r->s, s.op, &op));
    assert_int_equal(op.cpu_ns, 4 * MR_MS);
    assert_int_equal(op.queue_ns, r->now - 10 * MR_MS - s.ready);
}

/* No heartbeat said when the attempt began, so the span of the attempt begins when the attempt was
 * sent. */
static void a_lost_attempt_that_was_not_heard_of_began_when_it_was_sent(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    mr_time sent = r->now;
    rig_pass(r, r->c.lease + MR_SECOND);
    struct mr_sched_span s = span_of(r, job, 1);
    assert_int_equal(s.outcome, MR_OUTCOME_LOST);
    assert_int_equal(s.sent, sent);
    assert_int_equal(s.started, sent);
    /* The core last heard of the worker when the worker registered. */
    assert_int_equal(s.finished, sent);
    assert_int_equal(s.slot, 0);
    assert_int_equal(s.worker, w.slot);
}

/* The worker was lost without a report of what ran. As many tasks as it has slots are suspected of
 * having caused the loss: those that were sent first. */
static void of_a_lost_worker_as_many_are_suspected_as_it_had_slots(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 2, 0);
    uint64_t warm = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    /* From now on the core knows the operator's run time and sends more than one task for each
     * slot. */
    rig_done(r, w, warm, "x");
    uint64_t job = rig_submit(r, JOB(T("a", "f", "1", "") "," T("b", "f", "2", "") "," T(
                                         "c", "f", "3", "") "," T("d", "f", "4", ""),
                                     "\"a\",\"b\",\"c\",\"d\""));
    assert_int_equal(info_of(r, job).counts[MR_TASK_RUNNING], 4);
    rig_pass(r, r->c.lease + MR_SECOND);
    assert_int_equal(info_of(r, job).retried, 2);
    assert_int_equal(info_of(r, job).counts[MR_TASK_READY], 4);
}

/* The output of a failed task is longer than the core keeps. The end of it says most, so the end is
 * kept. */
static void of_a_long_output_the_end_is_kept(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    size_t n = MR_TASK_LOG_BYTES_MAX + 1000;
    char *log = mr_alloc(n);
    memset(log, 'l', n);
    memcpy(log, "begin", 5);
    memcpy(log + n - 3, "end", 3);
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    uint32_t index = 0, attempt = 1, outcome = MR_OUTCOME_ERROR;
    const struct mr_ws_failure why = {.code = 3,
        .message = MR_STR("it went\0wrong"),
        .arguments = MR_STR("[1]"),
        .log = mr_str_of(log, n)};
    struct mr_ws_up m = {0};
    m.completed = (struct mr_ws_completed){.tasks = {&run, 1, &index, &attempt, 1},
        .outcome = &outcome,
        .failures = &why,
        .failures_count = 1};
    rig_message(r, w, &m);
    struct mr_sched_error e = rig_task(r, job, "x").error;
    assert_int_equal(e.code, 3);
    assert_int_equal(e.attempts, 1);
    assert_true(mr_str_eq(e.message, MR_STR("it went?wrong")));
    assert_true(mr_str_eq(e.arguments, MR_STR("[1]")));
    assert_true(mr_str_eq(e.worker, MR_STR("w")));
    assert_int_equal(e.log.n, MR_TASK_LOG_BYTES_MAX);
    assert_memory_equal(e.log.p + e.log.n - 3, "end", 3);
    e = info_of(r, job).error;
    assert_int_equal(e.index, 0);
    assert_int_equal(e.log.n, MR_TASK_LOG_BYTES_MAX);
    assert_true(mr_str_eq(mr_sched_op_name(r->s, e.op), MR_STR("f")));
    mr_release(log);
}

/* ---- records --------------------------------------------------------------------------------- */

struct world { /* a scheduler whose journal has records of all kinds */
    struct rig *r;
    uint64_t failed, done, loop, forgotten;
};

#define LOOP                                                                                       \
    "{\"tasks\":{\"x\":{\"value\":7}},\"repeat\":{\"fit\":{\"max\":3,\"carry\":{\"s\":"            \
    "{\"value\":0}},\"tasks\":{" T("next", "g", R("s"), "") "," T(                                 \
        "done", "h", R("next"), "") "},\"next\":{\"s\":" R("next") "},\"until\":" R("done") "}}}"

static void live(struct world *o)
{
    struct rig *r = o->r = rig_new();
    rig_store(r, 77, "w");
    struct rig_worker w = join(r, "w", 8, 77);
    o->failed = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", R("x"), ""), "\"y\""));
    rig_end(r, w, o->failed, "x", MR_OUTCOME_ERROR);
    o->done = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\""));
    rig_done(r, w, o->done, "x");
    (void)rig_done_object(r, w, o->done, "y");
    o->loop = rig_submit(r, LOOP);
    rig_done(r, w, o->loop, "fit[0].next");
    rig_done_value(r, w, o->loop, "fit[0].done", MR_STR("\xc3"));
    o->forgotten = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, o->forgotten), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, o->forgotten), MR_OK);
}

/* Finds the head of the n-th record. Returns false if the journal has fewer records. */
static bool head_of(const struct rig *r, uint32_t n, struct mr_sched_record_head *h)
{
    for (size_t at = 0; at < r->journal.n; n--) {
        memcpy(h, r->journal.p + at, sizeof *h);
        if (!n) return true;
        at += sizeof *h + (size_t)mr_align_up(h->bytes, 8);
    }
    return false;
}

/* A new core reads the journal, in which only `keep` bytes of record number `cut` are left. Sets
 * `unread` to the number of accepted jobs that could not be read. */
static void read_cut(const struct rig *r, uint32_t cut, uint32_t keep, uint64_t *unread)
{
    struct mr_arena arena;
    struct mr_sched_effects fx;
    struct mr_sched_config c = r->c;
    uint32_t n = 0;
    c.incarnation += (uint64_t)1 << 32;
    mr_arena_init(&arena, mr_sched_arena_bytes(&c));
    mr_sched_effects_init(&fx, c.workers_max, c.stores_max);
    struct mr_sched *s = mr_sched_new(&c, &arena);
    for (size_t at = 0; at < r->journal.n; n++) {
        struct mr_sched_record_head h;
        memcpy(&h, r->journal.p + at, sizeof h);
        struct mr_sched_event ev = {.type = MR_SCHED_RECORD, .sequence = n + 1};
        ev.record.type = h.type;
        ev.record.bytes = mr_str_of(r->journal.p + at + sizeof h, n == cut ? keep : h.bytes);
        mr_sched_step(s, r->now, &ev, &fx);
        at += sizeof h + (size_t)mr_align_up(h.bytes, 8);
    }
    struct mr_sched_event ev = {.type = MR_SCHED_RECOVERED, .sequence = n};
    mr_sched_step(s, r->now, &ev, &fx);
    mr_sched_check(s);
    mr_job_id job;
    struct mr_error why;
    *unread = mr_sched_unread(s, &job, &why);
    if (*unread) assert_true(why.text[0]);
    mr_sched_free(&s);
    mr_sched_effects_fini(&fx);
    mr_arena_fini(&arena);
}

/* Each record is cut at many places. The core always reads the rest of the journal, and counts an
 * accepted job that it cannot read. */
static void a_damaged_record_costs_what_it_says_and_no_more(void **state)
{
    (void)state;
    struct world o;
    live(&o);
    struct mr_sched_record_head h;
    bool is_seen[32] = {0};
    for (uint32_t n = 0; head_of(o.r, n, &h); n++) {
        for (uint32_t keep = 0; keep < h.bytes; keep += 3) {
            uint64_t unread = 0;
            read_cut(o.r, n, keep, &unread);
            bool is_job = h.type == MR_RECORD_ACCEPTED || h.type == MR_RECORD_GRAPH;
            if (h.type == MR_RECORD_ACCEPTED && keep >= 8) assert_int_equal(unread, 1);
            if (!is_job) assert_int_equal(unread, 0);
        }
        is_seen[h.type] = true;
    }
    assert_true(is_seen[MR_RECORD_VALUES] && is_seen[MR_RECORD_ERRED] && is_seen[MR_RECORD_LOOP]);
    assert_true(is_seen[MR_RECORD_JOB_STATE] && is_seen[MR_RECORD_FORGOTTEN]);
    assert_true(is_seen[MR_RECORD_WORKER] && is_seen[MR_RECORD_STORE]);
}

static uint32_t records(const struct rig *r, uint32_t type)
{
    uint32_t n = 0;
    for (size_t at = 0; at < r->journal.n;) {
        struct mr_sched_record_head h;
        memcpy(&h, r->journal.p + at, sizeof h);
        n += h.type == type;
        at += sizeof h + (size_t)mr_align_up(h.bytes, 8);
    }
    return n;
}

/* Once a second the journal gets a record of the loop's current round. A restarted scheduler goes
 * on from there. */
static void the_journal_learns_how_far_a_loop_is(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8, 0);
    uint64_t job = rig_submit(r,
        "{\"tasks\":{\"x\":{\"value\":7}},\"repeat\":{\"fit\":{\"max\":40,\"carry\":{\"s\":"
        "{\"value\":0}},\"tasks\":{" T("next", "g", R("s"), "") "," T("done", "h", R("next"),
            "") "},\"next\":{\"s\":" R("next") "},\"until\":" R("done") "}}}");
    for (uint32_t i = 0; i < 30; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "fit[%u].next", i);
        rig_done(r, w, job, key);
        (void)snprintf(key, sizeof key, "fit[%u].done", i);
        rig_done_value(r, w, job, key, MR_STR("\xc2"));
        rig_pass(r, 200 * MR_MS);
        rig_heartbeat(r, w);
    }
    assert_in_range(records(r, MR_RECORD_LOOP), 4, 6);
}

/* The job went on after a failure and was then cancelled. Its failed tasks stay failed after each
 * restart. */
static void what_failed_in_a_cancelled_job_is_failed_in_every_life(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 2, 0);
    uint64_t job = rig_submit(r, "{\"on_error\":\"continue\",\"tasks\":{" T("x", "f", "1",
                                     "") "," T("y", "g", "2", "") "},\"targets\":[\"x\",\"y\"]}");
    rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    for (uint32_t life = 0; life < 3; life++) {
        assert_int_equal(rig_job(r, job), MR_JOB_CANCELLED);
        assert_int_equal(rig_state(r, job, "x"), MR_TASK_ERRED);
        assert_int_equal(rig_state(r, job, "y"), MR_TASK_CANCELLED);
        assert_true(rig_task(r, job, "x").has_error && !rig_task(r, job, "y").has_error);
        if (life) rig_compact(r);
        rig_crash(r);
    }
}

/* A job is forgotten while requests about it wait for the journal. All of them are answered. */
static void what_was_promised_of_a_forgotten_job_is_answered(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    r->acks = false;
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    uint64_t submitted = r->ticket;
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), 1);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), 1);
    r->acks = true;
    rig_ack(r);
    rig_turn(r);
    const struct mr_sched_note *n = (const void *)r->notes.p;
    uint32_t answers = 0;
    for (uint32_t i = 0; i < r->notes_count; i++) {
        if (n[i].type != MR_NOTE_REPLY || n[i].ticket < submitted) continue;
        assert_int_equal(n[i].code, MR_OK);
        assert_int_equal(n[i].job.v, job);
        answers++;
    }
    assert_int_equal(answers, 3);
    assert_int_equal(rig_job(r, job), MR_JOB_NONE);
}

/* ---- batches --------------------------------------------------------------------------------- */

static struct seen {
    uint32_t uses, rows, amounts[4], extras;
    bool is_unfused;
    char bytes[256];
    size_t bytes_count;
} seen;

static void look(struct rig *r, uint32_t slot, const struct mr_sched_batch *b)
{
    (void)slot;
    const struct mr_sched_extra *x = (const void *)b->extra.p;
    const struct mr_sched_amount *a = (const void *)b->resources.p;
    for (uint32_t i = 0; i < b->tasks.count; i++)
        seen.uses += mr_sched_cell(&b->tasks, MR_COLUMN_USES, i);
    seen.rows += b->tasks.count;
    if (b->tasks.runs.count) seen.is_unfused = b->tasks.runs.p[0].unfused;
    for (size_t i = 0; i < b->extra.n / sizeof *x && seen.extras < 4; i++) {
        assert_int_equal(x[i].resources_count, 1);
        seen.amounts[seen.extras++] = (uint32_t)(a[x[i].resources_at].micro / 1000000);
    }
    if (b->value_inline.n)
        memcpy(seen.bytes, b->value_inline.p, seen.bytes_count = MR_MIN(b->value_inline.n, 256u));
    (void)r;
}

static void an_unfused_job_is_sent_without_uses(void **state)
{
    (void)state;
    for (int is_unfused = 0; is_unfused < 2; is_unfused++) {
        struct rig *r = rig_new();
        (void)join(r, "w", 2, 0);
        seen = (struct seen){0};
        r->on_batch = look;
        (void)rig_submit(r, is_unfused
                                ? "{\"fuse\":false,\"tasks\":{" T("x", "f", "1", "") "," T(
                                      "y", "f", R("x"), "") "},\"targets\":[\"y\"]}"
                                : JOB(T("x", "f", "1", "") "," T("y", "f", R("x"), ""), "\"y\""));
        assert_int_equal(seen.rows, 2);
        assert_int_equal(seen.is_unfused, is_unfused);
        assert_int_equal(seen.uses, !is_unfused);
        (void)rig_teardown(NULL);
    }
}

static void each_task_of_a_batch_has_its_own_resources(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    seen = (struct seen){0};
    r->on_batch = look;
    (void)rig_submit(
        r, JOB(T("a", "f", "1", ",\"resources\":{\"gpu\":1}") "," T("b", "f", "2",
                   ",\"resources\":{\"gpu\":3}") "," T("c", "f", "3", ",\"resources\":{\"gpu\":2}"),
               "\"a\",\"b\",\"c\""));
    const struct rig_spec gpu = {.name = "g", .slots = 8, .resource = "gpu", .amount = 10};
    (void)rig_join(r, &gpu);
    assert_int_equal(seen.extras, 3);
    assert_int_equal(seen.amounts[0] + 10 * seen.amounts[1] + 100 * seen.amounts[2], 231);
}

/* A worker that lacks a small value gets all its bytes. The scheduler has the bytes in the value's
 * record, or in one or more blocks of its cache of small values. */
static void small_values_are_sent_whole(void **state)
{
    static const uint32_t lengths[] = {1, 16, 17, 28, 29, 100};
    (void)state;
    char bytes[128];
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)('!' + i % 90);
    for (uint32_t i = 0; i < 6; i++) {
        struct rig *r = rig_new();
        const struct rig_spec f = {.name = "f", .ops = "f"}, g = {.name = "g", .ops = "g"};
        struct rig_worker a = rig_join(r, &f);
        (void)rig_join(r, &g);
        uint64_t job =
            rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), ""), "\"y\""));
        seen = (struct seen){0};
        r->on_batch = look;
        rig_done_value(r, a, job, "x", mr_str_of(bytes, lengths[i]));
        assert_int_equal(seen.bytes_count, lengths[i]);
        assert_memory_equal(seen.bytes, bytes, lengths[i]);
        (void)rig_teardown(NULL);
    }
}

/* A quarter of the cache of small values is reserved for the values of targets, the tasks whose
 * results the client wants. */
static void targets_have_room_in_the_cache_when_others_have_none(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.inline_blocks = 40;
    struct rig *r = rig_new_with(&c);
    struct rig_worker w = join(r, "w", 64, 0);
    char text[2048];
    size_t at = (size_t)snprintf(text, sizeof text, "{\"tasks\":{");
    for (uint32_t i = 0; i < 20; i++)
        at += (size_t)snprintf(
            text + at, sizeof text - at, "\"v%u\":{\"op\":\"f\",\"args\":[%u]},", i, i);
    (void)snprintf(text + at, sizeof text - at,
        "\"all\":{\"op\":\"rare\",\"args\":[{\"list\":[%s]}]}},\"targets\":[\"all\",\"v19\"]}",
        "{\"ref\":\"v0\"},{\"ref\":\"v1\"},{\"ref\":\"v2\"},{\"ref\":\"v3\"},{\"ref\":\"v4\"},"
        "{\"ref\":\"v5\"},{\"ref\":\"v6\"},{\"ref\":\"v7\"},{\"ref\":\"v8\"},{\"ref\":\"v9\"},"
        "{\"ref\":\"v10\"},{\"ref\":\"v11\"},{\"ref\":\"v12\"},{\"ref\":\"v13\"},{\"ref\":\"v14\"},"
        "{\"ref\":\"v15\"},{\"ref\":\"v16\"},{\"ref\":\"v17\"},{\"ref\":\"v18\"}");
    uint64_t job = rig_submit(r, text);
    if (!job) fail_msg("%s", r->text);
    for (uint32_t i = 0; i < 20; i++) { /* each value takes two blocks */
        char key[16];
        (void)snprintf(key, sizeof key, "v%u", i);
        rig_done_bytes(r, w, job, key, 50);
        bool is_cached = i < 15 || i == 19;
        assert_int_equal(rig_value(r, job, key, NULL).kind,
            is_cached ? MR_SCHED_VALUE_INLINE : MR_SCHED_VALUE_AWAY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_worker_that_cannot_be_taken_is_refused_in_words),
        RIG_TEST(a_worker_that_left_makes_room),
        RIG_TEST(a_worker_that_returns_a_task_is_left_alone_until_it_is_heard),
        RIG_TEST(a_span_without_a_start_says_when_it_was_sent),
        RIG_TEST(a_lost_attempt_that_was_not_heard_of_began_when_it_was_sent),
        RIG_TEST(of_a_lost_worker_as_many_are_suspected_as_it_had_slots),
        RIG_TEST(of_a_long_output_the_end_is_kept),
        RIG_TEST(a_damaged_record_costs_what_it_says_and_no_more),
        RIG_TEST(the_journal_learns_how_far_a_loop_is),
        RIG_TEST(what_failed_in_a_cancelled_job_is_failed_in_every_life),
        RIG_TEST(what_was_promised_of_a_forgotten_job_is_answered),
        RIG_TEST(an_unfused_job_is_sent_without_uses),
        RIG_TEST(each_task_of_a_batch_has_its_own_resources),
        RIG_TEST(small_values_are_sent_whole),
        RIG_TEST(targets_have_room_in_the_cache_when_others_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
