/* The scheduler's core: when the core wants the next tick, and what it does at a tick without
 * another event. It announces the progress of jobs and forgets old jobs. */
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
#define ONE JOB(T("x", "f", "1", ""), "\"x\"")
#define WALL ((uint64_t)1700000000 * MR_SECOND)

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots};
    return rig_join(r, &spec);
}

static struct rig *keeping(mr_duration time, uint32_t jobs)
{
    struct mr_sched_config c;
    rig_config(&c);
    c.keep_jobs = time;
    c.keep_jobs_max = jobs;
    return rig_new_with(&c);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

static void an_idle_core_wants_no_tick(void **state)
{
    (void)state;
    struct rig *r = rig_new_empty();
    rig_pass(r, 20 * MR_SECOND);
    assert_int_equal(mr_sched_deadline(r->s), MR_NEVER);
    uint64_t job = rig_submit(r, ONE);
    assert_int_equal(mr_sched_deadline(r->s), r->now + 100 * MR_MS);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    rig_pass(r, MR_SECOND);
    /* nothing runs; only ended jobs are looked at, every 5 s */
    assert_true(mr_sched_deadline(r->s) > r->now + 3 * MR_SECOND);
    assert_true(mr_sched_deadline(r->s) <= r->now + 5 * MR_SECOND);
    uint64_t done = rig_submit(r, "{\"dsk\":{\"x\":1},\"targets\":[\"x\"]}");
    assert_int_equal(rig_job(r, done), MR_JOB_DONE);
    rig_pass(r, 7 * MR_SECOND);
    assert_true(mr_sched_deadline(r->s) > r->now + MR_SECOND);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, done), MR_OK);
    rig_pass(r, 6 * MR_SECOND);
    assert_int_equal(mr_sched_deadline(r->s), MR_NEVER);
}

static void the_deadline_of_a_job_is_met_to_the_nanosecond(void **state)
{
    (void)state;
    struct rig *r = rig_new_empty();
    mr_time begin = r->now;
    uint64_t job = rig_submit(
        r, "{\"deadline_s\":0.05,\"tasks\":{" T("x", "f", "1", "") "},\"targets\":[\"x\"]}");
    uint64_t later = rig_submit(
        r, "{\"deadline_s\":0.07,\"tasks\":{" T("x", "f", "1", "") "},\"targets\":[\"x\"]}");
    assert_int_equal(mr_sched_deadline(r->s), begin + 50 * MR_MS);
    rig_pass(r, 50 * MR_MS - 1);
    assert_int_equal(rig_job(r, job), MR_JOB_PENDING);
    rig_pass(r, 1);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    assert_int_equal(rig_job(r, later), MR_JOB_PENDING);
    assert_int_equal(mr_sched_deadline(r->s), begin + 70 * MR_MS);
}

static bool is_said_to_pause(struct rig *r, uint64_t job)
{
    struct mr_buf lines;
    mr_buf_init(&lines, 1 << 16);
    assert_true(mr_sched_explain(r->s, (mr_job_id){job}, 0, &lines));
    bool is_said = memmem(lines.p, lines.n, "dispatch is paused until Redis", 30);
    mr_buf_fini(&lines);
    return is_said;
}

/* The time to look for tasks to steal has come, but the core sends nothing while the journal lags.
 */
static void a_core_that_pauses_does_not_spin_for_tasks_to_steal(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.unacked_bytes_max = 200;
    struct rig *r = rig_new_with(&c);
    struct rig_worker a = join(r, "a", 1);
    uint64_t warm = rig_submit(r, ONE);
    rig_done(r, a, warm, "x");
    uint64_t job = rig_submit(
        r, "{\"tasks\":{\"k${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":5}}}}");
    (void)join(r, "b", 1);
    assert_int_equal(mr_sched_deadline(r->s), r->now + 500 * MR_US);
    assert_true(rig_count(r, SAID_STEAL, a, job, NULL) > 0);
    r->acks = false;
    uint64_t late = rig_submit(r, JOB(T("x", "rare", "1", ""), "\"x\""));
    r->steps_work = 0;
    rig_pass(r, MR_SECOND);
    assert_true(r->steps_work < 20);
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_true(t.is_paused && is_said_to_pause(r, late));
    r->acks = true;
    rig_ack(r);
    mr_sched_totals(r->s, &t);
    assert_false(t.is_paused || is_said_to_pause(r, late));
}

/* An event may have no time of day. Then the core computes it: the event's monotonic time plus the
 * difference of the two clocks in the last event that had both. */
static void dates_follow_the_last_wall_clock_that_was_told(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t first = rig_submit(r, ONE);
    r->now += MR_SECOND;
    struct mr_sched_event ev = {.type = MR_SCHED_CANCEL, .job = {first}, .ticket = ++r->ticket};
    mr_sched_step(r->s, r->now, &ev, &r->fx);
    rig_turn(r);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){first}, &info));
    assert_int_equal(info.created_wall_ns, WALL + r->now - MR_SECOND);
    assert_int_equal(info.finished_wall_ns, WALL + r->now);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* The core announces progress for the first time 100 ms after the job came. Later it does so only
 * for jobs whose counts have changed. */
static void progress_is_told_of_each_job_that_has_some(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8);
    uint64_t ended = rig_submit(r, ONE);
    rig_done(r, w, ended, "x");
    rig_pass(r, MR_SECOND);
    uint64_t one = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "rare", R("x"), ""), "\"y\""));
    uint64_t two = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "rare", R("x"), ""), "\"y\""));
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_PROGRESS, one), 0);
    rig_pass(r, 100 * MR_MS - 1);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_PROGRESS, one), 0);
    rig_pass(r, 1);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_PROGRESS, one), 1);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_PROGRESS, two), 1);
    rig_pass(r, MR_SECOND);
    uint32_t of_ended = rig_notes(r, MR_NOTE_JOB_PROGRESS, ended);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_PROGRESS, one), 1);
    rig_done(r, w, two, "x");
    rig_pass(r, 200 * MR_MS);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_PROGRESS, one), 1);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_PROGRESS, two), 2);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_PROGRESS, ended), of_ended);
}

/* A client must not hear of a job before the journal has it. */
static void progress_is_not_told_before_the_journal_has_the_job(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    r->acks = false;
    uint64_t job = rig_submit(r, ONE);
    (void)join(r, "w", 1);
    rig_pass(r, MR_SECOND);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_PROGRESS, job), 0);
    r->acks = true;
    rig_ack(r);
    rig_pass(r, 200 * MR_MS);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_PROGRESS, job), 1);
}

/* ---- ended jobs ------------------------------------------------------------------------------ */

static uint64_t end_one(struct rig *r)
{
    uint64_t job = rig_submit(r, ONE);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    return job;
}

static void ended_jobs_are_forgotten_after_their_time(void **state)
{
    (void)state;
    struct rig *r = keeping(7 * MR_SECOND, 100);
    uint64_t runs = rig_submit(r, ONE), job = end_one(r);
    rig_pass(r, 7 * MR_SECOND - 1);
    assert_int_equal(rig_job(r, job), MR_JOB_CANCELLED);
    rig_pass(r, 5 * MR_SECOND + 1); /* the core looks for ended jobs every 5 s */
    assert_int_equal(rig_job(r, job), MR_JOB_NONE);
    assert_int_equal(rig_job(r, runs), MR_JOB_PENDING);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_FORGOTTEN, job), 1);
}

static void of_too_many_ended_jobs_the_oldest_is_forgotten_at_once(void **state)
{
    (void)state;
    struct rig *r = keeping(3600 * MR_SECOND, 2);
    uint64_t job[3], runs = rig_submit(r, ONE);
    for (int i = 0; i < 3; i++)
        job[i] = end_one(r);
    assert_int_equal(rig_job(r, job[0]), MR_JOB_NONE);
    assert_int_equal(rig_job(r, job[1]), MR_JOB_CANCELLED);
    assert_int_equal(rig_job(r, job[2]), MR_JOB_CANCELLED);
    assert_int_equal(rig_job(r, runs), MR_JOB_PENDING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(an_idle_core_wants_no_tick),
        RIG_TEST(the_deadline_of_a_job_is_met_to_the_nanosecond),
        RIG_TEST(a_core_that_pauses_does_not_spin_for_tasks_to_steal),
        RIG_TEST(dates_follow_the_last_wall_clock_that_was_told),
        RIG_TEST(progress_is_told_of_each_job_that_has_some),
        RIG_TEST(progress_is_not_told_before_the_journal_has_the_job),
        RIG_TEST(ended_jobs_are_forgotten_after_their_time),
        RIG_TEST(of_too_many_ended_jobs_the_oldest_is_forgotten_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
