/* The scheduler's core: jobs are found by id and by request id, and listed by age, also after any
 * other jobs were forgotten. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define REQUESTS 20

static uint64_t request(struct rig *r, uint32_t number, uint64_t body)
{
    char json[128];
    (void)snprintf(json, sizeof json,
        "{\"request_id\":\"r-%u\",\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[%u]}}}", number, number);
    const struct mr_sched_submit more = {.body_hash = {body, number}};
    return rig_submit_with(r, json, &more);
}

static void forget(struct rig *r, uint64_t job)
{
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    assert_int_equal(rig_job(r, job), MR_JOB_NONE);
}

static void a_request_makes_one_job_until_that_is_forgotten(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job[REQUESTS];
    for (uint32_t i = 0; i < REQUESTS; i++)
        job[i] = request(r, i, 1);
    (void)rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"}}}"); /* this job has no request id */
    for (uint32_t i = 0; i < REQUESTS; i++)
        assert_int_equal(request(r, i, 1), job[i]);
    assert_int_equal(request(r, 3, 2), 0);
    assert_int_equal(r->code, MR_EEXIST);
    assert_non_null(strstr(r->text, "request_id \"r-3\" was used for another body, by job j"));
    for (uint32_t i = 0; i < REQUESTS; i += 2)
        forget(r, job[i]);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        uint64_t again = request(r, i, 1);
        assert_int_equal(again == job[i], i % 2);
        assert_int_equal(rig_job(r, again), MR_JOB_PENDING);
        assert_int_equal(request(r, i, 1), again);
    }
}

static void list_is(struct rig *r, const uint64_t *jobs, uint32_t count)
{
    uint64_t at = mr_sched_job_newest(r->s).v;
    for (uint32_t i = count; i-- > 0;) {
        assert_int_equal(at, jobs[i]);
        at = mr_sched_job_older(r->s, (mr_job_id){at}).v;
    }
    assert_int_equal(at, 0);
}

/* Forgets jobs at the begin, at the end and in the middle of the list. Then a new job comes. */
static void the_list_of_jobs_has_no_gaps(void **state)
{
    (void)state;
    /* Each number is a place in the list of the jobs that are left. */
    static const uint32_t order[] = {0, 3, 0, 1, 1, 0};
    struct rig *r = rig_new_empty();
    uint64_t jobs[8];
    uint32_t count = 0;
    for (; count < 4; count++)
        jobs[count] = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"}}}");
    list_is(r, jobs, count);
    for (uint32_t i = 0; i < 6; i++) {
        if (i == 1 || i == 3) jobs[count++] = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"g\"}}}");
        uint64_t gone = jobs[order[i]];
        forget(r, gone);
        for (uint32_t k = order[i]; k + 1 < count; k++)
            jobs[k] = jobs[k + 1];
        count--;
        list_is(r, jobs, count);
        assert_true(mr_sched_forgotten(r->s, (mr_job_id){gone}) > 0);
        for (uint32_t k = 0; k < count; k++) {
            assert_int_equal(rig_job(r, jobs[k]), MR_JOB_PENDING);
            assert_int_equal(mr_sched_forgotten(r->s, (mr_job_id){jobs[k]}), 0);
        }
    }
    assert_int_equal(count, 0);
    assert_int_equal(mr_sched_job_newest(r->s).v, 0);
    assert_null(rig_leftover(r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_request_makes_one_job_until_that_is_forgotten),
        RIG_TEST(the_list_of_jobs_has_no_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
