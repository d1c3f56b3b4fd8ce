/* The scheduler's core: what clients see of jobs is the same after a restart, whether the core has
 * read the journal's records or a snapshot. */
#include "tests/support/scheduler_rig.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define STORE 0x51
#define TEXT(s) (int)(s).n, (s).p ? (s).p : ""

/* ---- what a client sees ---------------------------------------------------------------------- */

static bool sees_events; /* true: also compares event_sequence, which a snapshot changes */

static void error_out(struct mr_buf *b, const struct mr_sched_error *e, struct rig *r)
{
    struct mr_str op = mr_sched_op_name(r->s, e->op);
    mr_buf_printf(b, " error %u %d %u %u %.*s \"%.*s\" \"%.*s\" \"%.*s\" \"%.*s\"", e->index,
        e->code, e->attempts, e->fallen, TEXT(op), TEXT(e->message), TEXT(e->arguments),
        TEXT(e->worker), TEXT(e->log));
}

static void value_out(struct mr_buf *b, struct rig *r, mr_job_id job, uint32_t index)
{
    struct mr_sched_value v;
    struct mr_buf bytes;
    mr_buf_init(&bytes, 1 << 20);
    assert_true(mr_sched_value(r->s, job, index, &bytes, &v));
    uint64_t store = 0;
    struct mr_str node, address;
    bool is_alive;
    if (v.store) (void)mr_sched_store(r->s, v.store, &store, &node, &address, &is_alive);
    mr_buf_printf(b, " value %d %llx:%llu of %llu bytes in %llx \"%.*s\"", (int)v.kind,
        (unsigned long long)v.object.maker, (unsigned long long)v.object.number,
        (unsigned long long)v.bytes, (unsigned long long)store, TEXT(mr_buf_str(&bytes)));
    mr_buf_fini(&bytes);
}

static void job_out(struct mr_buf *b, struct rig *r, mr_job_id job)
{
    struct mr_sched_job_info i;
    assert_true(mr_sched_job(r->s, job, &i));
    mr_buf_printf(b, "job %llx of %llx: state %d accepted %d joined %u given %u skipped %u vain %u",
        (unsigned long long)i.id.v, (unsigned long long)i.parent.v, (int)i.state, i.accepted,
        i.joined, i.given, i.skipped, i.abandoned);
    mr_buf_printf(b, " times %llu %llu %llu event %llu", (unsigned long long)i.created_wall_ns,
        (unsigned long long)i.started_wall_ns, (unsigned long long)i.finished_wall_ns,
        sees_events ? (unsigned long long)i.event_sequence : 0);
    for (uint32_t k = MR_TASK_WAITING; k < MR_TASK_STATES; k++)
        mr_buf_printf(b, " %u", i.counts[k]);
    if (i.has_error) error_out(b, &i.error, r);
    for (uint32_t k = 0; k < i.graph->nodes_count; k++) {
        struct mr_sched_task_info t;
        assert_true(mr_sched_task(r->s, job, k, &t));
        mr_buf_printf(b, "\n  task %u: state %d skipped %d vain %d op %u cause %u", k, (int)t.state,
            t.is_skipped, t.is_abandoned, t.op != 0, t.cause);
        if (t.has_error) error_out(b, &t.error, r);
        if (t.cause != MR_NODE_NONE) error_out(b, &t.cause_error, r);
        value_out(b, r, job, k);
    }
    uint32_t rounds;
    bool by_max;
    for (uint32_t k = 0; k < i.graph->loops_count; k++)
        if (mr_sched_loop(r->s, job, k, &rounds, &by_max))
            mr_buf_printf(b, "\n  loop %u: %u rounds, by max %d", k, rounds, by_max);
    mr_buf_printf(b, "\n");
}

/* Writes all that a client can see of all jobs to `b`, the newest job first. */
static void see(struct rig *r, struct mr_buf *b)
{
    mr_buf_init(b, 1 << 24);
    for (mr_job_id j = mr_sched_job_newest(r->s); j.v; j = mr_sched_job_older(r->s, j))
        job_out(b, r, j);
    mr_buf_add(b, "", 1);
}

static void assert_seen(struct rig *r, const struct mr_buf *before)
{
    struct mr_buf now;
    see(r, &now);
    assert_string_equal((const char *)now.p, (const char *)before->p);
    mr_buf_fini(&now);
}

/* ---- jobs that are over ---------------------------------------------------------------------- */

static struct rig_worker join(struct rig *r, const char *name)
{
    const struct rig_spec spec = {.name = name, .slots = 8, .store = STORE};
    return rig_join(r, &spec);
}

static uint64_t collection(struct rig *r, struct rig_worker w, const struct mr_sched_submit *more)
{
    uint64_t job = rig_submit_with(r,
        "{\"request_id\":\"req-1\",\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},"
        "\"p1\":{\"op\":\"f\",\"args\":[1]},"
        "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]},"
        "\"dice\":{\"op\":\"dice\",\"args\":[]},"
        "\"s\":{\"op\":\"g\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"dice\"}]}},"
        "\"targets\":[\"c\",\"s\"]}",
        more);
    (void)rig_done_object(r, w, job, "p0");
    (void)rig_done_object(r, w, job, "p1");
    (void)rig_done_object(r, w, job, "c");
    rig_done(r, w, job, "dice");
    rig_done_value(r, w, job, "s", MR_STR("more bytes than stand in a record of a value"));
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    return job;
}

/* Two of three targets fail, because tasks a and b fail. Tasks a1 and b1 need them and fail too. */
static const char continued[] =
    "{\"on_error\":\"continue\",\"tasks\":{\"a\":{\"op\":\"f\",\"args\":[1],\"retries\":1},"
    "\"a1\":{\"op\":\"g\",\"args\":[{\"ref\":\"a\"}]},\"b\":{\"op\":\"h\",\"args\":[2]},"
    "\"b1\":{\"op\":\"g\",\"args\":[{\"ref\":\"b\"}]},\"c\":{\"op\":\"f\",\"args\":[3]}},"
    "\"targets\":[\"a1\",\"b1\",\"c\"]}";

static uint64_t failing(struct rig *r, struct rig_worker w)
{
    uint64_t job = rig_submit(r, continued);
    rig_end(r, w, job, "a", MR_OUTCOME_ERROR);
    rig_end(r, w, job, "a", MR_OUTCOME_ERROR);
    rig_end(r, w, job, "b", MR_OUTCOME_BAD_ARGUMENT);
    return job;
}

static void what_is_over_is_seen_the_same_in_every_life(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "n");
    struct rig_worker w = join(r, "w");
    uint64_t family = rig_submit(r,
        "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]},\"lit\":{\"value\":7}},\"targets\":[\"x\",\"lit\"]}");
    struct mr_sched_submit more = {.body_hash = {3, 4},
        .parent = {{family}, rig_index(r, family, "x"), rig_attempt(r, w, family, "x")}};
    rig_pass(r, 3 * MR_MS);
    uint64_t done = collection(r, w, &more);
    rig_done(r, w, family, "x");
    uint64_t failed = failing(r, w);
    rig_done(r, w, failed, "c");
    assert_int_equal(rig_job(r, failed), MR_JOB_FAILED);
    uint64_t again = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]},"
                                   "\"y\":{\"op\":\"f\",\"args\":[2]}},\"targets\":[\"x\",\"y\"]}");
    rig_end(r, w, again, "x", MR_OUTCOME_ERROR);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, again), MR_OK);
    rig_pass(r, 5 * MR_MS);
    rig_done(r, w, again, "x");
    rig_done(r, w, again, "y");
    uint64_t off = rig_submit(r, continued);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, off), MR_OK);
    uint64_t gone = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]}},"
                                  "\"targets\":[\"x\"]}");
    rig_done(r, w, gone, "x");
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, gone), MR_OK);
    uint64_t forgotten = mr_sched_forgotten(r->s, (mr_job_id){gone});
    assert_true(forgotten > 0);
    struct mr_buf before;
    sees_events = true;
    see(r, &before);
    for (int life = 0; life < 2; life++) {
        rig_pass(r, MR_SECOND);
        rig_crash(r);
        assert_seen(r, &before);
        assert_int_equal(mr_sched_forgotten(r->s, (mr_job_id){gone}), forgotten);
        assert_int_equal(mr_sched_forgotten(r->s, (mr_job_id){done}), 0);
    }
    rig_compact(r);
    rig_crash(r);
    assert_int_equal(mr_sched_forgotten(r->s, (mr_job_id){gone}), forgotten);
    struct mr_sched_submit same = {.body_hash = {3, 4}}, other = {.body_hash = {3, 5}};
    static const char request[] =
        "{\"request_id\":\"req-1\",\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]}},"
        "\"targets\":[\"x\"]}";
    assert_int_equal(rig_submit_with(r, request, &same), done);
    assert_int_equal(rig_submit_with(r, request, &other), 0);
    assert_int_equal(r->code, MR_EEXIST);
    mr_buf_fini(&before);
}

/* ---- jobs that ended in different ways ------------------------------------------------------- */

#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define LOOP                                                                                       \
    "{\"repeat\":{\"fit\":{\"max\":5,\"carry\":{\"s\":{\"value\":0}},\"tasks\":{" T(               \
        "next", "g", R("s"), "") "," T("done", "h", R("next"),                                     \
        "") "},\"next\":{\"s\":" R("next") "},\"until\":" R("done") "}}}"

/* One job's loop fails in its second round; the other job's loop ends in its second round. */
static void loops(struct rig *r, struct rig_worker w)
{
    for (int fails = 0; fails < 2; fails++) {
        uint64_t job = rig_submit(r, LOOP);
        rig_done(r, w, job, "fit[0].next");
        rig_done_value(r, w, job, "fit[0].done", MR_STR("\xc2"));
        if (fails) {
            rig_end(r, w, job, "fit[1].next", MR_OUTCOME_ERROR);
            continue;
        }
        rig_done(r, w, job, "fit[1].next");
        rig_done_value(r, w, job, "fit[1].done", MR_STR("\xc3"));
        rig_done(r, w, job, "fit.s");
        rig_done(r, w, job, "fit.count");
    }
}

/* Two jobs of one namespace: the second takes the value of one key from the first job, and reads
 * another key of the first job. */
static void sharing(struct rig *r, struct rig_worker w)
{
    uint64_t one = rig_submit(r, "{\"namespace\":\"s\",\"tasks\":{" T("k", "f", "1", "") "," T(
                                     "o", "f", "2", "") "},\"targets\":[\"k\",\"o\"]}");
    rig_done(r, w, one, "k");
    (void)rig_done_object(r, w, one, "o");
    uint64_t two = rig_submit(r, "{\"namespace\":\"s\",\"tasks\":{" T("k", "f", "1", "") "," T(
                                     "n", "g", R("o"), "") "},\"targets\":[\"k\",\"n\"]}");
    rig_done(r, w, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
}

/* A job with a stored object, and with a task whose result exists already. */
static void resolved(struct rig *r, struct rig_worker w)
{
    const struct mr_sched_resolved there[] = {{.index = 0, .object = {10, 11}, .bytes = 12},
        {.index = 1, .object = {7, 8}, .bytes = 9, .store = STORE}};
    const struct mr_sched_submit more = {.resolved = there, .resolved_count = 2};
    uint64_t job = rig_submit_with(r,
        "{\"tasks\":{\"o\":{\"name\":\"n\"}," T("p", "f", "1", ",\"persist\":\"p\"") "," T(
            "y", "f", R("o") "," R("p"), "") "},\"targets\":[\"p\",\"y\"]}",
        &more);
    assert_int_equal(rig_index(r, job, "p"), 0);
    assert_int_equal(rig_index(r, job, "o"), 1);
    rig_done(r, w, job, "y");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* A restarted core does not know which values were released before. Some jobs of this test release
 * values (loops, shared keys), so the core is restarted once after they ended. From then on all
 * jobs must look the same after each further restart. */
static void every_end_of_a_job_is_seen_the_same_in_every_life(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "n");
    struct rig_worker w = join(r, "w");
    resolved(r, w);
    uint64_t job = rig_submit(r, "{\"tasks\":{" T("a", "f", "1", "") "," T("a1", "g", R("a"),
                                     "") "," T("b", "f", "2", "") "},\"targets\":[\"a1\",\"b\"]}");
    rig_end(r, w, job, "a", MR_OUTCOME_ERROR);
    job = rig_submit(r, "{\"tasks\":{" T("a", "f", "1", ",\"pure\":false") "," T(
                            "b", "g", R("a"), "") "},"
                                                  "\"targets\":[\"b\"]}");
    rig_done(r, w, job, "a");
    rig_done(r, w, job, "b");
    job = rig_submit(
        r, "{\"deadline_s\":1,\"tasks\":{" T("a", "rare", "1", "") "},\"targets\":[\"a\"]}");
    rig_pass(r, MR_SECOND);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    struct mr_buf before;
    sees_events = false;
    see(r, &before);
    rig_crash(r);
    assert_seen(r, &before);
    mr_buf_fini(&before);
    w = join(r, "w");
    loops(r, w);
    sharing(r, w);
    job = rig_submit(r, continued);
    rig_end(r, w, job, "b", MR_OUTCOME_ERROR);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    rig_crash(r);
    assert_int_equal(rig_state(r, job, "b"), MR_TASK_ERRED);
    assert_int_equal(rig_task(r, job, "b").cause, MR_NODE_NONE);
    see(r, &before);
    for (int life = 0; life < 4; life++) {
        rig_pass(r, MR_SECOND);
        /* In life 1 the journal has a snapshot after the records that the snapshot replaces. In
         * life 2 the journal has only a snapshot. */
        if (life == 1) mr_sched_snapshot(r->s, &r->journal);
        if (life == 2) rig_compact(r);
        rig_crash(r);
        assert_seen(r, &before);
    }
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.jobs_running, 0);
    mr_buf_fini(&before);
}

static void what_failed_and_fell_is_counted_once_in_every_life(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w");
    uint64_t job = failing(r, w);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    for (int life = 0; life < 3; life++) {
        /* The snapshot has a record of each task that failed by itself, and the number of tasks
         * that failed because an input failed. No task may count twice. */
        rig_compact(r);
        rig_crash(r);
        rig_pass(r, 60 * MR_SECOND);
    }
    w = join(r, "w");
    rig_done(r, w, job, "c");
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_int_equal(info.error.fallen, 2);
    assert_int_equal(info.counts[MR_TASK_ERRED], 4);
}

/* The store keeps an object that it was told to hold before the restart, although the store has not
 * registered again yet. */
static void an_object_does_not_go_with_a_worker_that_returned_before_its_store(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "n");
    struct rig_worker w = join(r, "w");
    uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]}},"
                                 "\"targets\":[\"x\"]}");
    mr_object_id object = rig_done_object(r, w, job, "x");
    rig_crash(r);
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    uint32_t index = rig_index(r, job, "x"), attempt = 1, none = 0;
    uint64_t bytes = 100000;
    struct mr_ws_register more = {.incarnation = w.incarnation, .epoch = 1};
    more.holding = (struct mr_ws_completed){.tasks = {&run, 1, &index, &attempt, 1},
        .inline_bytes = &none,
        .object_maker = &object.maker,
        .object_number = &object.number,
        .object_bytes = &bytes,
        .objects_count = 1};
    const struct rig_spec spec = {.name = "w", .slots = 8, .store = STORE};
    w = rig_join_as(r, &spec, &more);
    assert_int_equal(rig_count(r, SAID_ADOPT, w, job, "x"), 1);
    rig_close(r, w);
    /* This time is shorter than the lease of a store that only the journal names. */
    rig_pass(r, r->c.lease + MR_SECOND);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    rig_store(r, STORE, "n");
    assert_true(rig_is_held(r, object));
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    assert_false(rig_is_held(r, object));
}

static void stop_at_recovered(struct rig *r, struct mr_sched_totals *t)
{
    rig_crash(r);
    mr_sched_totals(r->s, t);
}

static void a_restart_without_workers_recovers_at_once(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]}},"
                                 "\"targets\":[\"x\"]}");
    struct mr_sched_totals t;
    stop_at_recovered(r, &t);
    assert_false(t.is_recovering);
    struct rig_worker w = join(r, "w");
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "x"), 1);
    stop_at_recovered(r, &t);
    /* The core recovers until the worker that the journal names is back, or its lease has ended. */
    assert_true(t.is_recovering);
}

/* The time for which an ended job is kept begins again with a restart. */
static void an_ended_job_is_kept_for_its_time_after_a_restart(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.keep_jobs = 100 * MR_SECOND;
    struct rig *r = rig_new_with(&c);
    struct rig_worker w = join(r, "w");
    uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]}},"
                                 "\"targets\":[\"x\"]}");
    rig_done(r, w, job, "x");
    rig_pass(r, 70 * MR_SECOND);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    rig_crash(r);
    rig_pass(r, 90 * MR_SECOND);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    rig_pass(r, 90 * MR_SECOND);
    assert_int_equal(rig_job(r, job), MR_JOB_NONE);
}

/* ---- records --------------------------------------------------------------------------------- */

static uint32_t records(struct rig *r, uint32_t type, uint64_t *bytes, uint64_t *most)
{
    uint32_t count = 0;
    *bytes = *most = 0;
    for (size_t at = 0; at < r->journal.n;) {
        struct mr_sched_record_head h;
        memcpy(&h, r->journal.p + at, sizeof h);
        at += sizeof h + (size_t)mr_align_up(h.bytes, 8);
        if (h.type != type) continue;
        count++;
        *bytes += h.bytes;
        *most = MR_MAX(*most, (uint64_t)h.bytes);
    }
    return count;
}

/* The submitter does not pass the graph in the journal's format, so the core encodes the graph. The
 * journal gets the encoded bytes in pieces. After a restart the core reads the graph from the
 * pieces. */
static void a_large_graph_is_journaled_in_pieces(void **state)
{
    (void)state;
    struct rig *r = rig_new_empty();
    struct mr_buf text;
    mr_buf_init(&text, 1 << 24);
    mr_buf_printf(&text, "{\"tasks\":{");
    for (uint32_t i = 0; i < 5; i++) { /* two arguments fill one piece of the record */
        mr_buf_printf(&text, "\"x%u\":{\"op\":\"f\",\"args\":[\"", i);
        for (size_t k = 0; k < MR_CHUNK_BYTES / 2; k++)
            mr_buf_add(&text, &"vwxyz"[i], 1);
        mr_buf_printf(&text, "\"]},");
    }
    mr_buf_printf(&text,
        "\"y\":{\"op\":\"g\",\"args\":[]}},\"targets\":[\"x0\",\"x1\",\"x2\",\"x3\",\"x4\"]}");
    mr_buf_add(&text, "", 1);
    uint64_t job = rig_submit(r, (const char *)text.p), bytes, most;
    mr_buf_fini(&text);
    assert_int_not_equal(job, 0);
    const uint64_t head = 2 * sizeof(uint64_t);
    for (int compact = 0; compact < 2; compact++) {
        assert_int_equal(records(r, MR_RECORD_GRAPH, &bytes, &most), 3);
        assert_int_equal(most, MR_CHUNK_BYTES + head);
        assert_in_range(bytes, 5 * MR_CHUNK_BYTES / 2 + 3 * head, 3 * (MR_CHUNK_BYTES + head));
        rig_crash(r);
        assert_int_equal(rig_job(r, job), MR_JOB_PENDING);
        assert_int_equal(rig_state(r, job, "x4"), MR_TASK_READY);
        rig_compact(r);
    }
}

/* The submitter has the bytes of the graph, in pieces. For each piece the journal gets a record
 * that has only the number and the length of the piece. */
static void the_journal_names_the_pieces_of_a_graph_that_its_owner_has(void **state)
{
    (void)state;
    struct rig *r = rig_new_empty();
    const struct mr_sched_submit more = {.piece_bytes = 2 * MR_CHUNK_BYTES + 100};
    assert_int_not_equal(rig_submit_with(r,
                             "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]}},"
                             "\"targets\":[\"x\"]}",
                             &more),
        0);
    uint32_t pieces = 0;
    for (size_t at = 0; at < r->journal.n;) {
        struct mr_sched_record_head h;
        uint64_t where[2];
        memcpy(&h, r->journal.p + at, sizeof h);
        if (h.type == MR_RECORD_GRAPH) {
            memcpy(where, r->journal.p + at + sizeof h, sizeof where);
            assert_int_equal(h.bytes, sizeof where);
            assert_int_equal(where[1], pieces * MR_CHUNK_BYTES);
            assert_int_equal(h.piece, ++pieces);
            assert_int_equal(h.piece_bytes, pieces < 3 ? MR_CHUNK_BYTES : 100);
        }
        at += sizeof h + (size_t)mr_align_up(h.bytes, 8);
    }
    assert_int_equal(pieces, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(what_is_over_is_seen_the_same_in_every_life),
        RIG_TEST(every_end_of_a_job_is_seen_the_same_in_every_life),
        RIG_TEST(what_failed_and_fell_is_counted_once_in_every_life),
        RIG_TEST(an_object_does_not_go_with_a_worker_that_returned_before_its_store),
        RIG_TEST(a_large_graph_is_journaled_in_pieces),
        RIG_TEST(the_journal_names_the_pieces_of_a_graph_that_its_owner_has),
        RIG_TEST(a_restart_without_workers_recovers_at_once),
        RIG_TEST(an_ended_job_is_kept_for_its_time_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
