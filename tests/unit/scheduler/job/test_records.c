/* The scheduler's core: which records it writes to the journal, and what it reads from the journal
 * at a restart. In some tests, records are missing or repeated, have texts that are too long, or
 * name what does not exist. */
#include "tests/support/scheduler_rig.h"

#include "base/limits.h"

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
#define ONE_TASK JOB(T("x", "f", "1", ""), "\"x\"")

static struct rig_worker join(struct rig *r, const char *name, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = "a", .slots = 8, .store = store};
    return rig_join(r, &spec);
}

static struct mr_sched_job_info info_of(struct rig *r, uint64_t job)
{
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    return info;
}

static bool is_recovering(struct rig *r)
{
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    return t.is_recovering;
}

static void ack_to(struct rig *r, uint64_t sequence)
{
    struct mr_sched_event ev = {.type = MR_SCHED_JOURNAL_ACKED, .sequence = sequence};
    r->acked = sequence;
    rig_step(r, &ev);
    rig_turn(r);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Copies the journal, and writes each record of `type` `times` times. */
static void repeat_records(struct rig *r, uint32_t type, uint32_t times)
{
    struct mr_buf out;
    mr_buf_init(&out, 1 << 24);
    for (size_t at = 0; at < r->journal.n;) {
        struct mr_sched_record_head h;
        memcpy(&h, r->journal.p + at, sizeof h);
        size_t n = sizeof h + (size_t)mr_align_up(h.bytes, 8);
        for (uint32_t i = 0; i < (h.type == type ? times : 1); i++)
            mr_buf_add(&out, r->journal.p + at, n);
        at += n;
    }
    mr_buf_clear(&r->journal);
    mr_buf_add(&r->journal, out.p, out.n);
    mr_buf_fini(&out);
}

static struct rig_worker come_back(struct rig *r, struct rig_worker w)
{
    const struct mr_ws_register more = {.incarnation = w.incarnation, .epoch = 1};
    const struct rig_spec spec = {.name = "w", .node = "a", .slots = 8};
    return rig_join_as(r, &spec, &more);
}

/* A snapshot repeats the record of each worker that registered before the snapshot. */
static void a_worker_that_the_journal_names_twice_is_waited_for_once(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 0);
    repeat_records(r, MR_RECORD_WORKER, 2);
    rig_crash(r);
    assert_true(is_recovering(r));
    w = come_back(r, w);
    assert_false(w.was_refused || is_recovering(r));
}

/* The journal says that a worker was lost, but the record of its registration was trimmed. */
static void a_worker_that_the_journal_only_loses_is_passed_over(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 0);
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = w.slot, .incarnation = w.incarnation};
    rig_step(r, &ev);
    rig_turn(r);
    rig_crash(r);
    assert_false(is_recovering(r));
    repeat_records(r, MR_RECORD_WORKER, 0);
    uint64_t job = rig_submit(r, ONE_TASK);
    rig_crash(r);
    assert_false(is_recovering(r));
    w = join(r, "w", 0);
    rig_done(r, w, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void put_text(struct mr_buf *b, const char *text)
{
    uint32_t n = (uint32_t)strlen(text);
    mr_buf_add(b, &n, sizeof n);
    mr_buf_add(b, text, n);
}

/* Texts of a record that are longer than the scheduler keeps are cut. */
static void an_error_with_a_worker_s_name_that_is_too_long_is_read(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(r, ONE_TASK);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    char name[400], message[1500];
    memset(name, 'n', sizeof name - 1);
    memset(message, 'm', sizeof message - 1);
    name[sizeof name - 1] = message[sizeof message - 1] = 0;
    struct mr_buf b;
    mr_buf_init(&b, 1 << 16);
    const uint32_t numbers[] = {0, 2, 1}; /* index, code, attempts */
    mr_buf_add(&b, &job, sizeof job);
    mr_buf_add(&b, numbers, sizeof numbers);
    put_text(&b, "f");
    put_text(&b, message);
    put_text(&b, "");
    put_text(&b, name);
    put_text(&b, "");
    struct mr_sched_record_head h = {.type = MR_RECORD_ERRED, .bytes = (uint32_t)b.n};
    mr_buf_add(&b, name, (size_t)(mr_align_up(b.n, 8) - b.n));
    mr_buf_add(&r->journal, &h, sizeof h);
    mr_buf_add(&r->journal, b.p, b.n);
    mr_buf_fini(&b);
    rig_crash(r);
    struct mr_sched_task_info t = rig_task(r, job, "x");
    assert_int_equal(t.state, MR_TASK_ERRED);
    assert_int_equal(t.error.code, 2);
    assert_int_equal(t.error.attempts, 1);
    assert_int_equal(t.error.message.n, 1000);
    assert_int_equal(t.error.worker.n, 127);
    assert_memory_equal(t.error.worker.p, name, 127);
}

/* The value of a target was lost, and then computed again as another object. The journal has both.
 */
static void of_two_values_of_a_target_the_last_one_is_read(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "a");
    struct rig_worker w = join(r, "w", STORE);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "rare", "2", ""), "\"x\",\"y\""));
    mr_object_id lost = rig_done_object(r, w, job, "x");
    rig_object_lost(r, STORE, lost);
    mr_object_id id = rig_done_object(r, w, job, "x");
    assert_false(mr_object_id_eq(id, lost));
    rig_crash(r);
    assert_true(mr_object_id_eq(rig_value(r, job, "x", NULL).object, id));
    rig_store(r, STORE, "a");
    assert_true(rig_is_held(r, id));
    assert_int_equal(rig_held(r), 1);
}

/* One message of a worker ends tasks of two jobs. */
static void values_of_two_jobs_in_one_turn_stay_apart(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 0);
    uint64_t job[2] = {
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("v", "rare", "2", ""), "\"x\",\"v\"")),
        rig_submit(r, JOB(T("y", "g", "1", "") "," T("z", "g", "2", ""), "\"y\",\"z\""))};
    const struct mr_ws_run runs[] = {{.job = {job[0]}, .count = 1}, {.job = {job[1]}, .count = 2}};
    const uint32_t index[] = {rig_index(r, job[0], "x"), rig_index(r, job[1], "y"),
        rig_index(r, job[1], "z")},
                   attempt[] = {1, 1, 1}, outcome[] = {MR_OUTCOME_OK, MR_OUTCOME_OK, MR_OUTCOME_OK},
                   bytes[] = {1, 2, 20};
    const uint64_t zeros[3] = {0};
    struct mr_ws_up m = {.completed = {.tasks = {runs, 2, index, attempt, 3},
                             .outcome = outcome,
                             .inline_bytes = bytes,
                             .inlined = MR_STR("xyytwenty bytes of zzzz"),
                             .base_ns = r->now,
                             .started_ns = zeros,
                             .duration_ns = zeros}};
    uint64_t before = r->sequence;
    rig_message(r, w, &m);
    /* Three records: the values of the first job, the values of the second job, and the end of the
     * second job. */
    assert_int_equal(r->sequence - before, 3);
    for (int life = 0; life < 2; life++) {
        char out[64];
        (void)rig_value(r, job[0], "x", out);
        assert_string_equal(out, "x");
        (void)rig_value(r, job[1], "y", out);
        assert_string_equal(out, "yy");
        (void)rig_value(r, job[1], "z", out);
        assert_string_equal(out, "twenty bytes of zzzz");
        assert_int_equal(rig_job(r, job[0]), MR_JOB_RUNNING);
        assert_int_equal(rig_job(r, job[1]), MR_JOB_DONE);
        rig_crash(r);
    }
}

/* The values of one turn are written in records of about 1 MiB. */
static void many_values_of_one_turn_are_written_in_several_records(void **state)
{
    (void)state;
    enum { COUNT = 700, EACH = 4096 };
    struct rig *r = rig_new();
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w", .slots = 1000});
    r->c.inline_blocks = COUNT * 200;
    uint64_t job = rig_submit(
        r, "{\"tasks\":{\"x-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":700}}}}");
    static uint32_t index[COUNT], attempt[COUNT], outcome[COUNT], bytes[COUNT];
    static uint64_t zeros[COUNT];
    static char values[COUNT * EACH];
    const struct mr_ws_run run = {.job = {job}, .count = COUNT};
    for (uint32_t i = 0; i < COUNT; i++) {
        index[i] = i;
        attempt[i] = 1;
        bytes[i] = EACH;
        memset(values + i * EACH, 'a' + (int)(i % 26), EACH);
    }
    struct mr_ws_up m = {.completed = {.tasks = {&run, 1, index, attempt, COUNT},
                             .outcome = outcome,
                             .inline_bytes = bytes,
                             .inlined = mr_str_of(values, sizeof values),
                             .base_ns = r->now,
                             .started_ns = zeros,
                             .duration_ns = zeros}};
    rig_message(r, w, &m);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    for (int compact = 0; compact < 2; compact++) {
        uint32_t records = 0;
        for (size_t at = 0; at < r->journal.n;) {
            struct mr_sched_record_head h;
            memcpy(&h, r->journal.p + at, sizeof h);
            at += sizeof h + (size_t)mr_align_up(h.bytes, 8);
            if (h.type != MR_RECORD_VALUES) continue;
            records++;
            assert_in_range(h.bytes, 1, MR_CHUNK_BYTES + 2 * EACH);
        }
        assert_int_equal(records, 3);
        rig_crash(r);
        for (uint32_t i = 0; i < COUNT; i++) {
            struct mr_sched_value v = {0};
            struct mr_buf out;
            mr_buf_init(&out, 1 << 20);
            assert_true(mr_sched_value(r->s, (mr_job_id){job}, i, &out, &v));
            assert_int_equal(v.kind, MR_SCHED_VALUE_INLINE);
            assert_int_equal(out.n, EACH);
            assert_memory_equal(out.p, values + i * EACH, EACH);
            mr_buf_fini(&out);
        }
        rig_compact(r);
    }
}

/* The bytes of a job's target are in the journal, even if the scheduler's cache of small values has
 * no room for them. */
static void a_target_without_room_in_the_cache_is_in_the_journal(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.inline_blocks = 8;
    struct rig *r = rig_new_with(&c);
    struct rig_worker w = join(r, "w", 0);
    uint64_t job = rig_submit(r, ONE_TASK);
    rig_done_bytes(r, w, job, "x", 300);
    assert_int_equal(rig_value(r, job, "x", NULL).kind, MR_SCHED_VALUE_AWAY);
    r->c.inline_blocks = 64;
    rig_crash(r);
    char out[64];
    assert_int_equal(rig_value(r, job, "x", out).kind, MR_SCHED_VALUE_INLINE);
    assert_int_equal(rig_value(r, job, "x", NULL).bytes, 300);
    assert_string_equal(out, "x");
}

static void put_record(struct rig *r, uint32_t type, const void *payload, uint32_t bytes)
{
    struct mr_sched_record_head h = {.type = type, .bytes = bytes};
    const uint64_t pad = 0;
    mr_buf_add(&r->journal, &h, sizeof h);
    mr_buf_add(&r->journal, payload, bytes);
    mr_buf_add(&r->journal, &pad, (size_t)(mr_align_up(bytes, 8) - bytes));
}

/* The journal has records of tasks, loops, rounds and states that do not exist. */
static void records_of_what_there_is_not_are_passed_over(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(r,
        "{\"repeat\":{\"fit\":{\"max\":3,\"carry\":{\"s\":{\"value\":0}},\"tasks\":{" T(
            "next", "g", R("s"), "") "," T("done", "h", R("next"),
            "") "},\"next\":{\"s\":" R("next") "},"
                                               "\"until\":" R("done") "}}}");
    uint32_t nodes = info_of(r, job).graph->nodes_count;
    uint32_t value[] = {(uint32_t)job, (uint32_t)(job >> 32), nodes, 1, 1, 'v'};
    put_record(r, MR_RECORD_VALUES, value, 21);
    uint32_t erred[] = {(uint32_t)job, (uint32_t)(job >> 32), nodes, 2, 1, 0, 0, 0, 0, 0};
    put_record(r, MR_RECORD_ERRED, erred, sizeof erred);
    static const uint32_t loops[][3] = {
        {1, 0, UINT32_MAX}, {0, 3, UINT32_MAX}, {0, 0, 3}, {UINT32_MAX, 0, 0}};
    for (size_t i = 0; i < MR_ARRAY_LEN(loops); i++) {
        uint32_t loop[5] = {
            (uint32_t)job, (uint32_t)(job >> 32), loops[i][0], loops[i][1], loops[i][2]};
        put_record(r, MR_RECORD_LOOP, loop, sizeof loop);
    }
    static const uint32_t states[] = {0, MR_JOB_CANCELLED + 1};
    for (size_t i = 0; i < 2; i++) {
        uint32_t ended[12] = {(uint32_t)job, (uint32_t)(job >> 32), states[i]};
        put_record(r, MR_RECORD_JOB_STATE, ended, 44);
    }
    rig_crash(r);
    assert_int_equal(rig_job(r, job), MR_JOB_PENDING);
    assert_int_equal(info_of(r, job).skipped, 0);
    struct rig_worker w = join(r, "w", 0);
    for (uint32_t i = 0; i < 3; i++) {
        static const char *const keys[][2] = {
            {"fit[0].next", "fit[0].done"}, {"fit[1].next", "fit[1].done"}, {"fit[2].next", NULL}};
        rig_done(r, w, job, keys[i][0]);
        if (keys[i][1]) rig_done_value(r, w, job, keys[i][1], MR_STR("\xc2"));
    }
    rig_done(r, w, job, "fit.s");
    rig_done(r, w, job, "fit.count");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void a_snapshot_names_all_forgotten_jobs(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job[4], at[4];
    for (uint32_t i = 0; i < 4; i++) {
        job[i] = rig_submit(r, ONE_TASK);
        rig_pass(r, MR_SECOND);
        assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job[i]), MR_OK);
        assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job[i]), MR_OK);
        at[i] = mr_sched_forgotten(r->s, (mr_job_id){job[i]});
        assert_true(at[i] > 0 && (!i || at[i] > at[i - 1]));
    }
    for (int life = 0; life < 3; life++) {
        if (life) rig_compact(r);
        rig_crash(r);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(mr_sched_forgotten(r->s, (mr_job_id){job[i]}), at[i]);
    }
}

/* Returns the epoch in the last EPOCH record; 0: the journal has no such record. */
static uint32_t epoch_of(struct rig *r)
{
    uint32_t epoch = 0;
    for (size_t at = 0; at < r->journal.n;) {
        struct mr_sched_record_head h;
        memcpy(&h, r->journal.p + at, sizeof h);
        if (h.type == MR_RECORD_EPOCH)
            memcpy(&epoch, r->journal.p + at + sizeof h + sizeof(uint64_t), sizeof epoch);
        at += sizeof h + (size_t)mr_align_up(h.bytes, 8);
    }
    return epoch;
}

static void a_raised_epoch_is_in_the_journal(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    assert_int_equal(epoch_of(r), r->c.epoch);
    const struct mr_ws_register more = {.epoch = 40, .scheduler = 77};
    (void)rig_join_as(r, &(struct rig_spec){.name = "w"}, &more);
    assert_int_equal(mr_sched_epoch(r->s), 41);
    assert_int_equal(epoch_of(r), 41);
    rig_compact(r);
    assert_int_equal(epoch_of(r), 41);
    /* an epoch that is too high for any scheduler to have reached is ignored */
    const struct mr_ws_register wrong = {.epoch = UINT32_MAX / 2, .scheduler = 77};
    (void)rig_join_as(r, &(struct rig_spec){.name = "v"}, &wrong);
    assert_int_equal(mr_sched_epoch(r->s), 41);
    const struct mr_ws_register highest = {.epoch = UINT32_MAX / 2 - 1, .scheduler = 77};
    (void)rig_join_as(r, &(struct rig_spec){.name = "u"}, &highest);
    assert_int_equal(mr_sched_epoch(r->s), UINT32_MAX / 2);
}

/* ---- stores and jobs ------------------------------------------------------------------------- */

/* A snapshot names every store. After a restart the core waits for each of them, and keeps their
 * objects. */
static void every_store_of_a_snapshot_is_waited_for(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    static const char *const nodes[] = {"a", "b", "c"};
    uint64_t job[3];
    for (uint32_t i = 0; i < 3; i++) {
        rig_store(r, STORE + i, nodes[i]);
        const struct rig_spec spec = {
            .name = nodes[i], .node = nodes[i], .slots = 8, .store = STORE + i};
        struct rig_worker w = rig_join(r, &spec);
        char json[128];
        (void)snprintf(json, sizeof json,
            "{\"tasks\":{" T("x", "f", "1", ",\"workers\":[\"%s\"]") "},\"targets\":[\"x\"]}",
            nodes[i]);
        job[i] = rig_submit(r, json);
        (void)rig_done_object(r, w, job[i], "x");
    }
    rig_compact(r);
    rig_crash(r);
    assert_int_equal(mr_sched_stores_count(r->s), 3);
    /* The workers' leases end, so the workers are lost. The core still waits for the stores. */
    rig_pass(r, r->c.lease + MR_SECOND);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(rig_value(r, job[i], "x", NULL).kind, MR_SCHED_VALUE_OBJECT);
        uint64_t incarnation;
        struct mr_str node, address;
        bool is_alive;
        assert_true(mr_sched_store(r->s, i + 1, &incarnation, &node, &address, &is_alive));
        assert_int_equal(incarnation, STORE + i);
        assert_true(mr_str_eq(node, mr_str(nodes[i])));
        assert_false(is_alive);
        rig_store(r, STORE + i, nodes[i]);
    }
    assert_int_equal(rig_held(r), 3);
}

static void a_done_job_has_nothing_to_retry_in_any_life(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 0);
    uint64_t done = rig_submit(r, ONE_TASK), retried = rig_submit(r, ONE_TASK);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, retried), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, retried), MR_OK);
    rig_done(r, w, done, "x");
    rig_done(r, w, retried, "x");
    for (int life = 0; life < 3; life++) {
        assert_int_equal(rig_ask(r, MR_SCHED_RETRY, done), MR_ESTATE);
        assert_string_equal(r->text, "the job is done; there is nothing to retry");
        assert_int_equal(rig_ask(r, MR_SCHED_RETRY, retried), MR_OK);
        if (life) rig_compact(r);
        rig_crash(r);
    }
}

/* The journal has the job, but not yet that the job runs. After a restart the worker returns with
 * the job's task. */
static void a_job_whose_task_comes_back_runs(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 0);
    r->acks = false;
    uint64_t before = r->sequence;
    uint64_t job = rig_submit(r, ONE_TASK);
    assert_int_equal(rig_attempt(r, w, job, "x"), 1);
    assert_int_equal(r->sequence, before + 3); /* three records: the graph, the job and its state */
    ack_to(r, before + 2);
    r->acks = true;
    r->now += MR_SECOND;
    rig_crash(r);
    assert_int_equal(rig_job(r, job), MR_JOB_PENDING);
    assert_int_equal(info_of(r, job).started_wall_ns, 0);
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    const uint32_t index = 0, attempt = 1;
    const struct mr_ws_register more = {
        .incarnation = w.incarnation, .epoch = 1, .queued = {&run, 1, &index, &attempt, 1}};
    const struct rig_spec spec = {.name = "w", .node = "a", .slots = 8};
    w = rig_join_as(r, &spec, &more);
    assert_int_equal(rig_count(r, SAID_KEEP, w, job, "x"), 1);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    assert_int_not_equal(info_of(r, job).started_wall_ns, 0);
    assert_int_equal(rig_task(r, job, "x").sent, r->now);
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "x"), 0);
    rig_done_as(r, w, job, "x", 1, MR_OUTCOME_OK, (mr_object_id){0, 0}, 1, MR_MS);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* The journal has the last value of the job, but not yet that the job is done. */
static void a_job_whose_targets_are_all_in_the_journal_is_done(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 0);
    uint64_t job = rig_submit(r, ONE_TASK);
    r->acks = false;
    uint64_t before = r->sequence;
    rig_done(r, w, job, "x");
    assert_int_equal(r->sequence, before + 2);
    ack_to(r, before + 1);
    r->acks = true;
    rig_crash(r);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
}

/* After a restart, a lost target of a job that was cancelled before is not computed again. */
static void a_lost_target_of_a_cancelled_job_is_not_made_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "a");
    struct rig_worker w = join(r, "w", STORE);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "rare", "2", ""), "\"x\",\"y\""));
    mr_object_id id = rig_done_object(r, w, job, "x");
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    rig_crash(r);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    rig_store(r, STORE, "a");
    rig_pass(r, r->c.lease / 2);
    rig_object_lost(r, STORE, id);
    rig_want(r, job, "x");
    rig_pass(r, r->c.lease + MR_SECOND);
    w = join(r, "v", STORE);
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "x"), 0);
    assert_true(rig_notes(r, MR_NOTE_TARGET_FAILED, job) > 0);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_RELEASED);
}

/* Between two starts of the scheduler, the operator lowered the limit of workers. The journal names
 * more workers than the new limit allows. */
static void more_workers_in_the_journal_than_may_be_are_passed_over(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker one = join(r, "w", 0);
    (void)join(r, "v", 0);
    r->c.workers_max = 1;
    rig_crash(r);
    assert_true(is_recovering(r));
    one = come_back(r, one);
    assert_false(one.was_refused || is_recovering(r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_worker_that_the_journal_names_twice_is_waited_for_once),
        RIG_TEST(a_worker_that_the_journal_only_loses_is_passed_over),
        RIG_TEST(an_error_with_a_worker_s_name_that_is_too_long_is_read),
        RIG_TEST(of_two_values_of_a_target_the_last_one_is_read),
        RIG_TEST(values_of_two_jobs_in_one_turn_stay_apart),
        RIG_TEST(many_values_of_one_turn_are_written_in_several_records),
        RIG_TEST(a_target_without_room_in_the_cache_is_in_the_journal),
        RIG_TEST(records_of_what_there_is_not_are_passed_over),
        RIG_TEST(a_snapshot_names_all_forgotten_jobs),
        RIG_TEST(a_raised_epoch_is_in_the_journal),
        RIG_TEST(every_store_of_a_snapshot_is_waited_for),
        RIG_TEST(a_done_job_has_nothing_to_retry_in_any_life),
        RIG_TEST(a_job_whose_task_comes_back_runs),
        RIG_TEST(a_job_whose_targets_are_all_in_the_journal_is_done),
        RIG_TEST(a_lost_target_of_a_cancelled_job_is_not_made_again),
        RIG_TEST(more_workers_in_the_journal_than_may_be_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
