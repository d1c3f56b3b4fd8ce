/* The scheduler's core: which job computes a key of a namespace, which jobs take its value, and
 * which job is refused. */
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
#define SHARED(tasks, targets)                                                                     \
    "{\"namespace\":\"s\",\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define SOURCE SHARED(T("k", "f", "1", ""), "\"k\"")
#define READER SHARED(T("n", "h", R("k"), ""), "\"n\"")

static struct rig_worker join(struct rig *r, const char *name)
{
    const struct rig_spec spec = {.name = name, .node = "a", .slots = 8, .store = STORE};
    return rig_join(r, &spec);
}

static struct rig *begin(struct rig_worker *w)
{
    struct rig *r = rig_new();
    rig_store(r, STORE, "a");
    *w = join(r, "w");
    return r;
}

static struct mr_sched_job_info info_of(struct rig *r, uint64_t job)
{
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    return info;
}

static void value_is(struct rig *r, uint64_t job, const char *key, const char *expected)
{
    char out[64] = "";
    assert_int_equal(rig_value(r, job, key, out).kind, MR_SCHED_VALUE_INLINE);
    assert_string_equal(out, expected);
}

/* ---- what is shared -------------------------------------------------------------------------- */

static void a_literal_is_shared_as_a_result_is(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    static const char literal[] = SHARED("\"k\":{\"value\":\"v\"}", "\"k\"");
    uint64_t one = rig_submit(r, literal), two = rig_submit(r, READER),
             three = rig_submit(r, literal);
    assert_true(one && two && three);
    value_is(r, two, "k", "\xa1v");
    rig_done(r, w, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, one), MR_ESTATE);
    assert_string_equal(r->text, "another job of its namespace uses its keys; forget that first");
    assert_int_equal(rig_submit(r, SHARED("\"k\":{\"value\":\"u\"}", "\"k\"")), 0);
    assert_int_equal(r->code, MR_EEXIST);
}

/* A job that takes an object of another job knows the object's size and its store. */
static void an_object_is_shared_with_its_size(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t one = rig_submit(r, SOURCE);
    r->object_bytes = 123456;
    mr_object_id id = rig_done_object(r, w, one, "k");
    uint64_t jobs[] = {rig_submit(r, SOURCE), rig_submit(r, READER)};
    for (int i = 0; i < 2; i++) {
        struct mr_sched_value v = rig_value(r, jobs[i], "k", NULL);
        assert_int_equal(v.kind, MR_SCHED_VALUE_OBJECT);
        assert_true(mr_object_id_eq(v.object, id));
        assert_int_equal(v.bytes, 123456);
        assert_int_equal(v.store, 1);
        assert_int_equal(info_of(r, jobs[i]).joined, 1);
    }
    assert_int_equal(rig_job(r, jobs[0]), MR_JOB_DONE);
}

static void a_job_that_waits_for_a_key_has_joined_it(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t one = rig_submit(r, SOURCE), two = rig_submit(r, SOURCE),
             three = rig_submit(r, READER);
    assert_int_equal(info_of(r, one).joined, 0);
    assert_int_equal(info_of(r, two).joined, 1);
    assert_int_equal(info_of(r, three).joined, 1);
    assert_int_equal(rig_count(r, SAID_TASK, w, two, "k"), 0);
    rig_done(r, w, one, "k");
    value_is(r, two, "k", "k");
    rig_done(r, w, three, "n");
    assert_int_equal(rig_job(r, three), MR_JOB_DONE);
}

/* A task that is not pure runs in each job that has it. */
static void what_is_no_pure_result_is_not_shared(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    static const char json[] = SHARED(T("k", "f", "1", ",\"pure\":false"), "\"k\"");
    uint64_t jobs[2];
    for (int i = 0; i < 2; i++) {
        jobs[i] = rig_submit(r, json);
        rig_done(r, w, jobs[i], "k");
        assert_int_equal(rig_job(r, jobs[i]), MR_JOB_DONE);
        assert_int_equal(info_of(r, jobs[i]).joined, 0);
    }
    assert_int_equal(rig_submit(r, READER), 0);
    assert_int_equal(r->code, MR_ENOENT);
    assert_string_equal(
        r->text, "key \"k\" is defined neither in this job nor by another of namespace \"s\"");
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, jobs[0]), MR_OK);
}

/* Jobs of one namespace may use one key for different stored objects. */
static void a_stored_object_is_of_its_job_alone(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    for (uint64_t i = 1; i < 3; i++) {
        const struct mr_sched_resolved there = {.index = 0, .object = {7, i}, .bytes = 9};
        const struct mr_sched_submit more = {.resolved = &there, .resolved_count = 1};
        uint64_t job = rig_submit_with(r,
            SHARED("\"o\":{\"name\":\"n\"}," T("x", "f", R("o") ",1", "") "," T(
                       "y", "rare", R("o"), ""),
                "\"x\",\"y\""),
            &more);
        assert_int_not_equal(job, 0);
        assert_int_equal(rig_index(r, job, "o"), 0);
        assert_int_equal(rig_value(r, job, "o", NULL).object.number, i);
        assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    }
}

static void keys_of_other_namespaces_are_other_keys(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t one = rig_submit(r, SOURCE);
    uint64_t two = rig_submit(
        r, "{\"namespace\":\"t\",\"tasks\":{" T("k", "f", "2", "") "},\"targets\":[\"k\"]}");
    assert_int_not_equal(two, 0);
    rig_done(r, w, one, "k");
    rig_done(r, w, two, "k");
    assert_int_equal(info_of(r, two).joined, 0);
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
}

/* ---- which job has a key --------------------------------------------------------------------- */

/* The first job has released the value of its key, so a second job computes it again. From then on
 * the second job owns the key. */
static void a_key_that_was_released_belongs_to_the_next_job_that_defines_it(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t one = rig_submit(r, SHARED(T("k", "f", "1", "") "," T("z", "g", R("k"), ""), "\"z\""));
    rig_done(r, w, one, "k");
    rig_done(r, w, one, "z");
    assert_int_equal(rig_state(r, one, "k"), MR_TASK_RELEASED);
    uint64_t two = rig_submit(r, SOURCE);
    assert_int_not_equal(two, 0);
    assert_int_equal(info_of(r, two).joined, 0);
    rig_done(r, w, two, "k");
    rig_forget_rows(r);
    uint64_t three = rig_submit(r, READER);
    rig_done(r, w, three, "n");
    assert_int_equal(rig_count(r, SAID_TASK, w, one, "k"), 0);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, one), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, two), MR_ESTATE);
}

/* The job that defines the key has released the value and then failed, so nothing can make the
 * value again. */
static void a_key_without_a_value_that_cannot_be_made_is_refused_to_readers(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t one = rig_submit(
        r, SHARED(T("k", "f", "1", "") "," T("z", "g", R("k"), "") "," T("u", "h", R("z"), ""),
               "\"u\""));
    rig_done(r, w, one, "k");
    rig_done(r, w, one, "z");
    rig_end(r, w, one, "u", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, one), MR_JOB_FAILED);
    assert_int_equal(rig_state(r, one, "k"), MR_TASK_RELEASED);
    assert_int_equal(rig_submit(r, READER), 0);
    assert_int_equal(r->code, MR_ENOENT);
    assert_string_equal(r->text, "key \"k\": its value in namespace \"s\" is not kept any more");
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.jobs_running, 0);
}

static void a_retried_job_takes_its_keys_again_but_not_those_of_others(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    static const char two_keys[] = SHARED(
        "\"v\":{\"value\":7}," T("k", "f", "1", "") "," T("l", "g", "2", ""), "\"v\",\"k\",\"l\"");
    uint64_t one = rig_submit(r, two_keys);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, one), MR_OK);
    uint64_t two = rig_submit(r, SHARED(T("k", "f", "5", ""), "\"k\""));
    assert_int_not_equal(two, 0);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, one), MR_OK);
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format((mr_job_id){two}, id);
    assert_int_equal(rig_submit(r, SHARED(T("k", "f", "6", ""), "\"k\"")), 0);
    assert_int_equal(r->code, MR_EEXIST);
    /* The error names the second job, which still owns the key. */
    assert_non_null(strstr(r->text, id));
    mr_job_id_format((mr_job_id){one}, id);
    assert_int_equal(rig_submit(r, SHARED(T("l", "g", "6", ""), "\"l\"")), 0);
    assert_non_null(strstr(r->text, id));
    uint64_t three = rig_submit(r, SHARED(T("n", "h", R("v") "," R("l"), ""), "\"n\""));
    assert_int_not_equal(three, 0);
    rig_done(r, w, one, "l");
    rig_done(r, w, three, "n");
    assert_int_equal(rig_job(r, three), MR_JOB_DONE);
}

/* Three jobs wait for a key. Whichever is cancelled, the two others get the value. */
static void a_job_that_leaves_a_key_takes_no_other_along(void **state)
{
    (void)state;
    for (int leaves = 0; leaves < 3; leaves++) {
        struct rig_worker w;
        struct rig *r = begin(&w);
        uint64_t one = rig_submit(r, SOURCE), jobs[3];
        for (int i = 0; i < 3; i++)
            jobs[i] = rig_submit(r, SOURCE);
        assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, jobs[leaves]), MR_OK);
        rig_done(r, w, one, "k");
        for (int i = 0; i < 3; i++)
            assert_int_equal(rig_job(r, jobs[i]), i == leaves ? MR_JOB_CANCELLED : MR_JOB_DONE);
        assert_int_equal(rig_count(r, SAID_TASK, w, jobs[(leaves + 1) % 3], "k"), 0);
        for (int i = 0; i < 3; i++)
            assert_int_equal(rig_ask(r, MR_SCHED_FORGET, jobs[i]), MR_OK);
        assert_int_equal(rig_ask(r, MR_SCHED_FORGET, one), MR_OK);
        assert_null(rig_leftover(r));
        (void)rig_teardown(NULL);
    }
}

/* ---- restarts -------------------------------------------------------------------------------- */

/* The journal has the value of a copied target. So the target stays when the job that computed the
 * value is forgotten. */
static void a_copied_target_is_there_after_a_restart(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t one = rig_submit(r, SHARED(T("k", "f", "1", "") "," T("z", "g", R("k"), ""), "\"z\""));
    rig_done(r, w, one, "k");
    uint64_t two = rig_submit(r, SOURCE);
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
    rig_done(r, w, one, "z");
    for (int life = 0; life < 3; life++) {
        value_is(r, two, "k", "k");
        if (life) rig_compact(r);
        rig_crash(r);
        rig_pass(r, r->c.lease + MR_SECOND); /* the worker does not return */
    }
}

/* The key of a running job is known after a restart: another definition is refused, and a reader
 * waits for the value. */
static void keys_of_running_jobs_are_known_after_a_restart(void **state)
{
    (void)state;
    for (int compact = 0; compact < 2; compact++) {
        struct rig_worker w;
        struct rig *r = begin(&w);
        uint64_t one =
            rig_submit(r, SHARED(T("k", "f", "1", "") "," T("z", "rare", "2", ""), "\"k\",\"z\""));
        (void)rig_done_object(r, w, one, "k");
        uint64_t two = rig_submit(
            r, SHARED(T("k", "f", "1", "") "," T("m", "rare", R("k"), ""), "\"k\",\"m\""));
        if (compact) rig_compact(r);
        rig_crash(r);
        rig_pass(r, r->c.lease + MR_SECOND);
        /* The store may return later than a worker: its lease after a restart is longer. */
        rig_store(r, STORE, "a");
        assert_int_equal(rig_state(r, one, "k"), MR_TASK_DONE);
        assert_int_equal(rig_state(r, two, "k"), MR_TASK_DONE);
        assert_int_equal(rig_held(r), 1); /* the object is held once for both jobs */
        if (!compact) assert_int_equal(info_of(r, two).joined, 1);
        assert_int_equal(rig_submit(r, SHARED(T("k", "f", "2", ""), "\"k\"")), 0);
        assert_int_equal(r->code, MR_EEXIST);
        uint64_t three = rig_submit(r, READER);
        w = join(r, "v");
        rig_done(r, w, three, "n");
        assert_int_equal(rig_job(r, three), MR_JOB_DONE);
        (void)rig_teardown(NULL);
    }
}

/* After the first job was cancelled, a second job defined the key in another way. Then the first
 * job was retried. Both jobs were accepted, so both go on after a restart. */
static void two_definitions_of_a_key_outlive_a_restart(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t one = rig_submit(r, SOURCE);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, one), MR_OK);
    uint64_t two = rig_submit(r, SHARED(T("k", "f", "5", ""), "\"k\""));
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, one), MR_OK);
    for (int life = 0; life < 2; life++) {
        if (life) rig_compact(r);
        rig_crash(r);
        assert_int_equal(rig_job(r, one), MR_JOB_RUNNING);
        assert_int_equal(rig_job(r, two), MR_JOB_RUNNING);
    }
    rig_pass(r, r->c.lease + MR_SECOND);
    w = join(r, "v");
    rig_done(r, w, one, "k");
    assert_int_equal(rig_job(r, two), MR_JOB_RUNNING);
    rig_done(r, w, two, "k");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
}

/* The records of the job that defines a key are missing from the journal. */
static void a_reader_of_a_job_that_the_journal_lost_fails_and_says_so(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t one = rig_submit(r, SOURCE),
             two = rig_submit(
                 r, SHARED(T("a", "f", "9", "") "," T("n", "h", R("k"), ""), "\"a\",\"n\""));
    assert_int_equal(rig_index(r, two, "a"), 0);
    struct mr_buf kept;
    mr_buf_init(&kept, 1 << 20);
    for (size_t at = 0; at < r->journal.n;) {
        struct mr_sched_record_head h;
        uint64_t job;
        memcpy(&h, r->journal.p + at, sizeof h);
        memcpy(&job, r->journal.p + at + sizeof h, sizeof job);
        size_t n = sizeof h + (size_t)mr_align_up(h.bytes, 8);
        if (h.type != MR_RECORD_GRAPH || job != one) mr_buf_add(&kept, r->journal.p + at, n);
        at += n;
    }
    mr_buf_clear(&r->journal);
    mr_buf_add(&r->journal, kept.p, kept.n);
    mr_buf_fini(&kept);
    rig_crash(r);
    assert_int_equal(rig_job(r, one), MR_JOB_NONE);
    for (int life = 0; life < 2; life++) {
        assert_int_equal(rig_job(r, two), MR_JOB_FAILED);
        assert_int_equal(rig_state(r, two, "n"), MR_TASK_CANCELLED);
        struct mr_sched_error e = info_of(r, two).error;
        char text[128];
        (void)snprintf(text, sizeof text, "%.*s", MR_STR_ARG(e.message));
        assert_string_equal(
            text, "key \"k\" is defined neither in this job nor by another of namespace \"s\"");
        assert_int_equal(e.code, 9);
        assert_int_equal(e.index, MR_NODE_NONE);
        assert_int_equal(e.attempts, 0);
        assert_int_equal(e.op, 0);
        rig_crash(r);
    }
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, two), MR_OK);
    assert_null(rig_leftover(r));
}

/* ---- forgetting ------------------------------------------------------------------------------ */

/* A client forgets a job that reads a key. The scheduler removes this job in a later turn. Before
 * that turn, a client can already forget the job that defines the key. */
static void a_reader_that_is_being_forgotten_does_not_hold_a_key(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = begin(&w);
    uint64_t one = rig_submit(r, SOURCE);
    rig_done(r, w, one, "k");
    uint64_t two = rig_submit(r, SOURCE), three = rig_submit(r, READER);
    rig_done(r, w, three, "n");
    struct mr_sched_event ev = {.type = MR_SCHED_FORGET, .job = {two}, .ticket = 1};
    rig_step(r, &ev);
    r->code = MR_OK;
    ev.job.v = one;
    rig_step(r, &ev);
    assert_int_equal(r->code, MR_ESTATE); /* the third job holds the key */
    r->code = MR_OK;
    ev.job.v = three;
    rig_step(r, &ev);
    ev.job.v = one;
    rig_step(r, &ev);
    assert_int_equal(r->code, MR_OK);
    rig_turn(r);
    assert_int_equal(rig_job(r, one), MR_JOB_NONE);
    assert_null(rig_leftover(r));
}

/* A job that is old enough to be forgotten is kept as long as another job uses its keys. */
static void an_old_job_is_kept_while_its_keys_are_used(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.keep_jobs = 20 * MR_SECOND;
    struct rig *r = rig_new_with(&c);
    const struct rig_spec spec = {.name = "w", .slots = 8};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t one = rig_submit(r, SOURCE),
             other = rig_submit(r, SHARED(T("l", "f", "2", ""), "\"l\""));
    rig_done(r, w, one, "k");
    rig_done(r, w, other, "l");
    uint64_t two = rig_submit(r, SHARED(T("n", "g", R("k"), ""), "\"n\""));
    for (uint32_t i = 0; i < 60; i++) {
        if (i < 19) assert_int_equal(rig_job(r, other), MR_JOB_DONE);
        if (i > 26) assert_int_equal(rig_job(r, other), MR_JOB_NONE);
        if (i < 48) assert_int_equal(rig_job(r, one), MR_JOB_DONE);
        if (i == 29) rig_done(r, w, two, "n");
        if (i < 48) assert_int_not_equal(rig_job(r, two), MR_JOB_NONE);
        rig_pass(r, MR_SECOND);
        rig_heartbeat(r, w);
    }
    assert_int_equal(rig_job(r, two), MR_JOB_NONE);
    assert_int_equal(rig_job(r, one), MR_JOB_NONE);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_FORGOTTEN, one), 1);
    assert_null(rig_leftover(r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_literal_is_shared_as_a_result_is),
        RIG_TEST(an_object_is_shared_with_its_size),
        RIG_TEST(a_job_that_waits_for_a_key_has_joined_it),
        RIG_TEST(what_is_no_pure_result_is_not_shared),
        RIG_TEST(a_stored_object_is_of_its_job_alone),
        RIG_TEST(keys_of_other_namespaces_are_other_keys),
        RIG_TEST(a_key_that_was_released_belongs_to_the_next_job_that_defines_it),
        RIG_TEST(a_key_without_a_value_that_cannot_be_made_is_refused_to_readers),
        RIG_TEST(a_retried_job_takes_its_keys_again_but_not_those_of_others),
        RIG_TEST(a_job_that_leaves_a_key_takes_no_other_along),
        RIG_TEST(a_copied_target_is_there_after_a_restart),
        RIG_TEST(keys_of_running_jobs_are_known_after_a_restart),
        RIG_TEST(two_definitions_of_a_key_outlive_a_restart),
        RIG_TEST(a_reader_of_a_job_that_the_journal_lost_fails_and_says_so),
        RIG_TEST(an_old_job_is_kept_while_its_keys_are_used),
        RIG_TEST(a_reader_that_is_being_forgotten_does_not_hold_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
