/* The scheduler's core: jobs of one priority share the workers. Most tests submit small jobs beside
 * large ones, and limit how many tasks of the large jobs run before a task of a small job. */
#include "tests/support/scheduler_rig.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define WORKERS 2

/* Workers of one slot each, which run tasks in the order in which they were sent. */
struct play {
    struct rig *r;
    struct rig_worker w[WORKERS];
    uint32_t at[WORKERS]; /* by worker: index in r->rows of the next row to look at */
    uint64_t ran_job[4096];
    uint32_t ran;
};

static mr_duration took_of(uint32_t op_of_ms)
{
    return op_of_ms * MR_MS;
}

static uint64_t submit_many(struct rig *r, const char *op, int tasks, const char *more)
{
    size_t room = (size_t)tasks * 64 + 256;
    char *json = mr_alloc(room);
    size_t n = (size_t)snprintf(json, room,
        "{\"tasks\":{\"k-${i}\":{\"op\":\"%s\",\"args\":[\"${i}\"],\"for\":{\"i\":%d}%s}}}", op,
        tasks, more);
    assert_true(n < room);
    uint64_t job = rig_submit(r, json);
    mr_release(json);
    assert_int_not_equal(job, 0);
    return job;
}

/* Runs the first task that waits at the worker, for `took`. Returns false if no task waits. */
static bool run_one(struct play *p, uint32_t worker, mr_duration took)
{
    const struct rig_row *row = NULL;
    while (p->at[worker] < p->r->rows_count) {
        row = &p->r->rows[p->at[worker]++];
        if (row->said == SAID_TASK && row->slot == p->w[worker].slot) break;
        row = NULL;
    }
    if (!row) return false;
    char key[32];
    (void)snprintf(key, sizeof key, "k-%u", row->index);
    uint64_t job = row->job;
    uint32_t index = row->index, attempt = row->attempt;
    for (uint32_t i = 0; i < 4096 && rig_index(p->r, job, key) != index; i++)
        (void)snprintf(key, sizeof key, "k-%u", i);
    p->ran_job[p->ran++] = job;
    rig_done_as(
        p->r, p->w[worker], job, key, attempt, MR_OUTCOME_OK, (mr_object_id){0, 0}, 8, took);
    return true;
}

static struct play play_new(void)
{
    struct mr_sched_config c;
    rig_config(&c);
    c.jobs_max = 1024;
    struct play p = {.r = rig_new_with(&c)};
    char name[8];
    for (uint32_t i = 0; i < WORKERS; i++) {
        (void)snprintf(name, sizeof name, "w%u", i);
        p.w[i] = rig_join(p.r, &(struct rig_spec){.name = name, .node = name, .slots = 1});
    }
    return p;
}

/* Runs two tasks of the operator, so that the scheduler knows its run time. */
static void warm(struct play *p, const char *op, mr_duration took)
{
    (void)submit_many(p->r, op, 2, "");
    for (uint32_t i = 0; i < WORKERS; i++)
        (void)run_one(p, i, took);
    p->ran = 0;
}

/* Lets the workers run `each` tasks each, in turns. */
static void run(struct play *p, uint32_t each, mr_duration took)
{
    for (uint32_t i = 0; i < each; i++)
        for (uint32_t w = 0; w < WORKERS; w++)
            (void)run_one(p, w, took);
}

static uint32_t ran_of(const struct play *p, uint64_t job)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->ran; i++)
        n += p->ran_job[i] == job;
    return n;
}

/* Returns the number of other jobs' tasks that ran after `from` and before the first task of
 * `job`. */
static uint32_t ran_before(const struct play *p, uint32_t from, uint64_t job)
{
    uint32_t n = 0;
    while (from + n < p->ran && p->ran_job[from + n] != job)
        n++;
    return n;
}

static void a_small_job_does_not_wait_for_a_large_one(void **state)
{
    (void)state;
    for (uint32_t ms = 1; ms <= 1000; ms *= 10) {
        struct play p = play_new();
        warm(&p, "f", took_of(ms));
        uint64_t large = submit_many(p.r, "f", 500, "");
        run(&p, 10, took_of(ms));
        uint32_t from = p.ran;
        uint64_t small = submit_many(p.r, "f", 1, "");
        run(&p, 30, took_of(ms));
        /* The small job's task waits for the tasks that run, and for those that wait at the
         * workers: for each slot as many as take 5 ms, but at least two. */
        uint32_t bound = WORKERS * (1 + MR_MAX(5 / ms, 2u));
        if (ran_before(&p, from, small) > bound)
            fail_msg("of %u ms each, %u ran before it", ms, ran_before(&p, from, small));
        assert_int_equal(rig_job(p.r, small), MR_JOB_DONE);
        assert_int_equal(rig_job(p.r, large), MR_JOB_RUNNING);
        (void)rig_teardown(NULL);
    }
}

/* All tasks need a resource of which a worker has only one. */
static void a_small_job_that_asks_for_a_resource_does_not_wait_for_a_large_one(void **state)
{
    (void)state;
    struct play p = play_new();
    p.w[0] = rig_join(p.r,
        &(struct rig_spec){.name = "g", .node = "g", .slots = 1, .resource = "gpu", .amount = 1});
    warm(&p, "f", took_of(10));
    (void)submit_many(p.r, "f", 500, ",\"resources\":{\"gpu\":1}");
    run(&p, 10, took_of(10));
    uint32_t from = p.ran;
    uint64_t small = submit_many(p.r, "f", 3, ",\"resources\":{\"gpu\":1}");
    run(&p, 20, took_of(10));
    assert_true(ran_before(&p, from, small) <= 3);
    assert_int_equal(rig_job(p.r, small), MR_JOB_DONE);
}

/* The small job is sent at once and waits only for tasks that run. */
static void a_small_job_waits_for_what_runs_and_not_for_what_waits(void **state)
{
    (void)state;
    struct play p = play_new();
    warm(&p, "f", took_of(1000));
    uint64_t large = submit_many(p.r, "f", 100, "");
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_int_equal(rig_count(p.r, SAID_TASK, p.w[i], large, NULL), 2);
    uint64_t small = submit_many(p.r, "f", 3, "");
    assert_int_equal(rig_count(p.r, SAID_TASK, p.w[0], small, NULL) +
                         rig_count(p.r, SAID_TASK, p.w[1], small, NULL),
        1);
}

static void many_large_jobs_delay_a_small_one_by_a_task_each(void **state)
{
    (void)state;
    enum { JOBS = 8 };
    struct play p = play_new();
    warm(&p, "f", took_of(10));
    for (int i = 0; i < JOBS; i++)
        (void)submit_many(p.r, "f", 100, "");
    run(&p, 20, took_of(10));
    uint32_t from = p.ran;
    uint64_t small = submit_many(p.r, "f", 1, "");
    run(&p, 20, took_of(10));
    assert_true(ran_before(&p, from, small) <= JOBS + 3 * WORKERS);
}

static void two_jobs_get_equal_time(void **state)
{
    (void)state;
    struct play p = play_new();
    warm(&p, "f", took_of(2));
    uint64_t a = submit_many(p.r, "f", 400, ""), b = submit_many(p.r, "f", 400, "");
    run(&p, 100, took_of(2));
    assert_int_equal(p.ran, 200);
    assert_in_range(ran_of(&p, a), 80, 120);
    assert_in_range(ran_of(&p, b), 80, 120);
}

/* Submits `coming` small jobs in each turn of the workers, which run WORKERS tasks a turn. Returns
 * how many tasks of the large job ran. */
static uint32_t ran_beside(uint32_t coming)
{
    struct play p = play_new();
    warm(&p, "f", took_of(2));
    uint64_t large = submit_many(p.r, "f", 200, "");
    for (uint32_t i = 0; i < 100; i++) {
        for (uint32_t k = 0; k < coming; k++)
            (void)submit_many(p.r, "f", 1, "");
        run(&p, 1, took_of(2));
    }
    uint32_t n = ran_of(&p, large);
    assert_int_equal(p.ran, 100 * WORKERS);
    (void)rig_teardown(NULL);
    return n;
}

/* A large job gets the time of the workers that small jobs leave free. If they leave nothing free,
 * the large job gets its share of the time: one n-th if there are n jobs. */
static void small_jobs_that_keep_coming_do_not_starve_a_large_one(void **state)
{
    (void)state;
    assert_true(ran_beside(WORKERS / 2) >= 100 * WORKERS / 2 - 10);
    assert_true(ran_beside(2 * WORKERS) >= 3);
}

static void a_higher_priority_goes_first_all_the_same(void **state)
{
    (void)state;
    struct play p = play_new();
    warm(&p, "f", took_of(10));
    (void)submit_many(p.r, "f", 100, "");
    uint64_t urgent = rig_submit(p.r,
        "{\"tasks\":{\"k-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":20}"
        "}},\"priority\":5}");
    uint32_t from = p.ran;
    run(&p, 14, took_of(10));
    uint32_t others = p.ran - from - ran_of(&p, urgent);
    assert_int_equal(rig_job(p.r, urgent), MR_JOB_DONE);
    assert_true(others <= 4 * WORKERS);
}

/* Small jobs that arrive together keep their order, and none waits for long. */
static void small_jobs_run_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    enum { JOBS = 300 };
    static uint64_t job[JOBS];
    struct play p = play_new();
    warm(&p, "f", took_of(2));
    for (uint32_t i = 0; i < JOBS; i++)
        job[i] = submit_many(p.r, "f", 1, "");
    run(&p, JOBS, took_of(2));
    assert_int_equal(p.ran, JOBS);
    for (uint32_t i = 0; i < JOBS; i++)
        assert_in_range(ran_before(&p, 0, job[i]), i < 16 ? 0 : i - 16, i + 16);
}

/* The job with the least virtual time goes first. A new job's virtual time starts 10 ms below the
 * scheduler's virtual clock (index/ready_queue.c). So the second job first runs 20 tasks of 0.5 ms.
 * Meanwhile the clock gains 5 ms on both jobs. So the third job starts only 5 ms below the first
 * two jobs, and first runs 10 tasks. After that the jobs take turns of 1 ms. */
static void jobs_that_come_go_ahead_and_then_all_take_turns(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    struct play p = {.r = rig_new_with(&c)};
    p.w[0] = rig_join(p.r, &(struct rig_spec){.name = "w", .slots = 1});
    uint64_t job[3] = {submit_many(p.r, "f", 1, ""), 0, 0};
    (void)run_one(&p, 0, 500 * MR_US);
    char order[256];
    uint32_t n = 0, first = p.r->rows_count;
    job[0] = submit_many(p.r, "f", 100, "");
    for (int i = 0; i < 120; i++) {
        if (i == 30) job[1] = submit_many(p.r, "f", 60, "");
        if (i == 80) job[2] = submit_many(p.r, "f", 20, "");
        (void)run_one(&p, 0, 500 * MR_US);
    }
    for (uint32_t i = first; i < p.r->rows_count && n < 130; i++)
        for (int k = 0; k < 3 && p.r->rows[i].said == SAID_TASK; k++)
            if (p.r->rows[i].job == job[k]) order[n++] = (char)('A' + k);
    order[n] = 0;
    assert_string_equal(order,
        /* Ten of these tasks waited at the worker when job B came. */
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "BBBBBBBBBBBBBBBBBBBB"
        "AABBAABBAABBAABBAABBAABBAABBAA"
        "CCCCCCCCCC"
        "BBCCAABBCCAABBCCAABBCCAABBCCAA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_small_job_does_not_wait_for_a_large_one),
        RIG_TEST(a_small_job_that_asks_for_a_resource_does_not_wait_for_a_large_one),
        RIG_TEST(a_small_job_waits_for_what_runs_and_not_for_what_waits),
        RIG_TEST(many_large_jobs_delay_a_small_one_by_a_task_each),
        RIG_TEST(two_jobs_get_equal_time),
        RIG_TEST(small_jobs_that_keep_coming_do_not_starve_a_large_one),
        RIG_TEST(a_higher_priority_goes_first_all_the_same),
        RIG_TEST(small_jobs_run_in_the_order_in_which_they_came),
        RIG_TEST(jobs_that_come_go_ahead_and_then_all_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
