/* The scheduler's core: a job reads keys of another job, and the values of those keys are lost. The
 * job that defines a key makes the value again for all jobs that read it. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define STORE 0x51
#define FAILED_PRECONDITION 9
#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define SHARED(tasks, targets)                                                                     \
    "{\"namespace\":\"s\",\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define SOURCE SHARED(T("i", "f", "1", "") "," T("k", "g", R("i"), ""), "\"k\"")
#define READER SHARED(T("n", "h", R("k"), ""), "\"n\"")

static struct rig_worker join(struct rig *r, const char *name, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = 4, .store = store};
    return rig_join(r, &spec);
}

static void lose(struct rig *r, struct rig_worker w)
{
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = w.slot, .incarnation = w.incarnation};
    rig_step(r, &ev);
    rig_turn(r);
}

/* Makes job `one`, which has made "k" as an object, and job `two`, which reads "k". Returns the
 * rig. */
static struct rig *object_and_reader(
    struct rig_worker *a, uint64_t *one, uint64_t *two, mr_object_id *id)
{
    struct rig *r = rig_new();
    rig_store(r, STORE, "a");
    *a = join(r, "a", STORE);
    *one = rig_submit(r, SOURCE);
    rig_done(r, *a, *one, "i");
    *id = rig_done_object(r, *a, *one, "k");
    assert_int_equal(rig_job(r, *one), MR_JOB_DONE);
    *two = rig_submit(r, READER);
    assert_int_equal(rig_state(r, *two, "n"), MR_TASK_RUNNING);
    return r;
}

static void a_lost_key_is_made_again_by_its_job_for_who_reads_it(void **state)
{
    (void)state;
    struct rig_worker a;
    uint64_t one = 0, two = 0;
    mr_object_id id;
    struct rig *r = object_and_reader(&a, &one, &two, &id);
    rig_object_lost(r, STORE, id);
    assert_int_equal(rig_state(r, two, "k"), MR_TASK_WAITING);
    assert_int_equal(rig_state(r, two, "n"), MR_TASK_WAITING);
    rig_done(r, a, one, "i");
    (void)rig_done_object(r, a, one, "k");
    assert_int_equal(rig_state(r, two, "n"), MR_TASK_RUNNING);
    rig_done(r, a, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, two), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, one), MR_OK);
    assert_null(rig_leftover(r));
}

static void the_loss_of_a_store_is_no_failure_of_who_reads_a_key(void **state)
{
    (void)state;
    struct rig_worker a;
    uint64_t one = 0, two = 0;
    mr_object_id id;
    struct rig *r = object_and_reader(&a, &one, &two, &id);
    rig_store(r, STORE + 1, "a"); /* a new store registers on the node of the first one */
    rig_done(r, a, one, "i");
    rig_done(r, a, one, "k");
    rig_done(r, a, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
}

static void who_cannot_read_a_key_of_another_job_has_it_made_again(void **state)
{
    (void)state;
    struct rig_worker a;
    uint64_t one = 0, two = 0;
    mr_object_id id;
    struct rig *r = object_and_reader(&a, &one, &two, &id);
    struct mr_ws_missing m = {.job = {two},
        .index = rig_index(r, two, "n"),
        .input = rig_index(r, two, "k"),
        .attempt = rig_attempt(r, a, two, "n")};
    struct mr_ws_up msg = {.missing = &m, .missing_count = 1};
    rig_message(r, a, &msg);
    assert_int_equal(rig_state(r, two, "k"), MR_TASK_WAITING);
    rig_done(r, a, one, "i");
    rig_done(r, a, one, "k");
    rig_done(r, a, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
}

static void a_key_that_was_released_is_made_again_for_who_refers_to_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t one = rig_submit(r, SHARED(T("k", "f", "1", "") "," T("z", "g", R("k"), ""), "\"z\""));
    rig_done(r, a, one, "k");
    rig_done(r, a, one, "z");
    assert_int_equal(rig_state(r, one, "k"), MR_TASK_RELEASED);
    uint64_t two = rig_submit(r, READER);
    assert_int_not_equal(two, 0);
    rig_done(r, a, one, "k");
    rig_done(r, a, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, two), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, one), MR_OK);
    assert_null(rig_leftover(r));
}

/* Makes job `one`, which defines "k", and job `two`, which reads "k". The value of job `big` leaves
 * no room in the cache for the value of "k". Returns the rig. */
static struct rig *away_and_reader(
    struct rig_worker *a, uint64_t *one, uint64_t *two, uint64_t *big)
{
    struct mr_sched_config c;
    rig_config(&c);
    /* Values that are no targets may use three quarters of the blocks. The value of "big" takes
     * more than that, and the rest has no room for the value of "k". */
    c.inline_blocks = 64;
    struct rig *r = rig_new_with(&c);
    *a = join(r, "a", 0);
    *big = rig_submit(r, "{\"tasks\":{" T("big", "f", "2", "") "},\"targets\":[\"big\"]}");
    rig_done_bytes(r, *a, *big, "big", 1700); /* fills the cache of small values */
    *one = rig_submit(r, SHARED(T("k", "f", "1", "") "," T("z", "g", R("k"), ""), "\"z\""));
    rig_done_bytes(r, *a, *one, "k", 400);
    *two = rig_submit(r, READER);
    assert_int_not_equal(*two, 0);
    return r;
}

static void a_key_that_only_a_worker_has_is_fetched_for_another_job(void **state)
{
    (void)state;
    struct rig_worker a;
    uint64_t one = 0, two = 0, big = 0;
    struct rig *r = away_and_reader(&a, &one, &two, &big);
    assert_int_equal(rig_count(r, SAID_FETCH, a, one, "k"), 1);
    assert_int_equal(rig_state(r, two, "k"), MR_TASK_WAITING);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, big), MR_OK);
    rig_done_as(r, a, one, "k", 1, MR_OUTCOME_OK, (mr_object_id){0, 0}, 400, MR_MS);
    rig_done(r, a, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
}

static void a_key_that_only_a_lost_worker_had_is_made_again_for_another_job(void **state)
{
    (void)state;
    struct rig_worker a;
    uint64_t one = 0, two = 0, big = 0;
    struct rig *r = away_and_reader(&a, &one, &two, &big);
    lose(r, a);
    struct rig_worker b = join(r, "b", 0);
    rig_done(r, b, one, "k");
    rig_done(r, b, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
}

static void a_key_without_room_for_a_copy_fails_who_reads_it(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.inline_blocks = 64;
    struct rig *r = rig_new_with(&c);
    struct rig_worker a = join(r, "a", 0);
    uint64_t one = rig_submit(
        r, SHARED(T("k", "f", "1", "") "," T("big", "f", "2", "") "," T("z", "g", R("k"), ""),
               "\"z\",\"big\""));
    rig_done(r, a, one, "k");
    rig_done(r, a, one, "z");
    rig_done_bytes(r, a, one, "big", 1700); /* fills the cache of small values */
    uint64_t two = rig_submit(r, READER);
    /* Key k is made again for its reader only. */
    rig_done_bytes(r, a, one, "k", 400);
    assert_int_equal(rig_job(r, two), MR_JOB_FAILED);
    assert_int_equal(rig_state(r, one, "k"), MR_TASK_RELEASED);
}

static void a_lost_key_that_cannot_be_made_fails_who_reads_it_and_says_so(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "a");
    struct rig_worker a = join(r, "a", STORE);
    uint64_t one =
        rig_submit(r, SHARED(T("k", "f", "1", "") "," T("x", "f", "2", ""), "\"k\",\"x\""));
    mr_object_id id = rig_done_object(r, a, one, "k");
    uint64_t two = rig_submit(r, READER);
    rig_end(r, a, one, "x", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, one), MR_JOB_FAILED);
    rig_object_lost(r, STORE, id);
    assert_int_equal(rig_job(r, two), MR_JOB_FAILED);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){two}, &info));
    assert_non_null(strstr(info.error.message.p, "has no value for it"));
    assert_int_equal(info.error.code, FAILED_PRECONDITION);
}

static void a_job_fails_when_the_key_that_it_reads_fails_the_second_time(void **state)
{
    (void)state;
    struct rig_worker a;
    uint64_t one = 0, two = 0;
    mr_object_id id;
    struct rig *r = object_and_reader(&a, &one, &two, &id);
    rig_object_lost(r, STORE, id);
    rig_done(r, a, one, "i");
    rig_end(r, a, one, "k", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, one), MR_JOB_DONE);
    assert_int_equal(rig_job(r, two), MR_JOB_FAILED);
    /* The job that defines k has ended and cannot make it again. */
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, two), MR_ESTATE);
    assert_string_equal(r->text, "a key of its namespace that it refers to is not there any more");
    assert_int_equal(rig_job(r, two), MR_JOB_FAILED);
}

static void a_value_of_an_ended_job_is_made_again_from_the_key_of_another(void **state)
{
    (void)state;
    struct rig_worker a;
    uint64_t one = 0, two = 0;
    mr_object_id id;
    struct rig *r = object_and_reader(&a, &one, &two, &id);
    mr_object_id n = rig_done_object(r, a, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
    rig_crash(r);
    rig_store(r, STORE, "a");
    rig_pass(r, r->c.lease + MR_MS);
    a = join(r, "b", STORE);
    rig_object_lost(r, STORE, n);
    rig_object_lost(r, STORE, id);
    rig_want(r, two, "n");
    rig_done(r, a, one, "i");
    (void)rig_done_object(r, a, one, "k");
    rig_done(r, a, two, "n");
    assert_int_equal(rig_value(r, two, "n", NULL).kind, MR_SCHED_VALUE_INLINE);
}

static void a_restart_makes_again_what_another_job_reads(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t one = rig_submit(r, SHARED(T("k", "f", "1", "") "," T("z", "g", R("k"), ""), "\"z\""));
    rig_done(r, a, one, "k");
    uint64_t two = rig_submit(r, READER);
    rig_done(r, a, one, "z");
    assert_int_equal(rig_job(r, one), MR_JOB_DONE);
    rig_crash(r);
    rig_pass(r, r->c.lease + MR_MS);
    a = join(r, "b", 0);
    rig_done(r, a, one, "k");
    rig_done(r, a, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
}

/* Job a reads a key of job b, and job b reads a key of job a. A request to forget only one of them
 * is refused. Both are forgotten together when a client has asked to forget each of them. */
static void jobs_that_hold_one_another_are_forgotten_together(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w", .slots = 2});
    uint64_t d = rig_submit(r, "{\"namespace\":\"ours\",\"tasks\":{\"b\":{\"op\":\"f\"}}}");
    uint64_t a =
        rig_submit(r, "{\"namespace\":\"ours\",\"tasks\":{\"a\":{\"op\":\"f\"},\"y\":{\"op\":"
                      "\"g\",\"args\":[{\"ref\":\"b\"}]}},\"targets\":[\"a\",\"y\"]}");
    rig_done(r, w, a, "a");
    rig_end(r, w, d, "b", MR_OUTCOME_BAD_ARGUMENT);
    assert_int_equal(rig_job(r, a), MR_JOB_FAILED);
    uint64_t b =
        rig_submit(r, "{\"namespace\":\"ours\",\"tasks\":{\"b\":{\"op\":\"f\"},\"z\":{\"op\":"
                      "\"g\",\"args\":[{\"ref\":\"a\"}]}},\"targets\":[\"b\",\"z\"]}");
    rig_done(r, w, b, "b");
    rig_done(r, w, b, "z");
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, a), MR_OK);
    rig_done(r, w, a, "y");
    assert_int_equal(rig_job(r, a), MR_JOB_DONE);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, a), MR_ESTATE);
    assert_int_equal(rig_job(r, a), MR_JOB_DONE);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, b), MR_OK);
    assert_int_equal(rig_job(r, a), MR_JOB_NONE);
    assert_int_equal(rig_job(r, b), MR_JOB_NONE);
}

static void the_keys_of_a_retried_job_are_found_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t one = rig_submit(r, SOURCE);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, one), 0);
    assert_int_equal(rig_submit(r, READER), 0); /* the job that defined the key is cancelled */
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, one), 0);
    uint64_t two = rig_submit(r, READER);
    assert_int_not_equal(two, 0);
    struct rig_worker a = rig_join(r, &(struct rig_spec){.name = "a", .node = "a", .slots = 1});
    rig_done(r, a, one, "i");
    rig_done(r, a, one, "k");
    rig_done(r, a, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
}

static void a_key_whose_first_owner_is_cancelled_is_found_at_who_took_it_over(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t one = rig_submit(r, SOURCE);
    uint64_t two = rig_submit(r, SOURCE);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, one), 0);
    uint64_t three = rig_submit(r, READER);
    assert_true(two && three);
    struct rig_worker a = rig_join(r, &(struct rig_spec){.name = "a", .node = "a", .slots = 1});
    rig_done(r, a, two, "i");
    rig_done(r, a, two, "k");
    rig_done(r, a, three, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
    assert_int_equal(rig_job(r, three), MR_JOB_DONE);
}

/* An alias is a key whose value another job makes. After a restart the cache is too small for the
 * alias's value, so the alias waits like a task. */
static void an_alias_without_room_when_it_is_read_back_waits_like_a_task(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t one = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    rig_done_bytes(r, a, one, "k", 500);
    uint64_t two = rig_submit(r, SHARED(T("n", "h", R("k"), ""), "\"n\",\"k\""));
    rig_done(r, a, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
    r->c.inline_blocks = 16;
    rig_compact(r);
    rig_crash(r); /* the rig checks the counts of tasks after every step */
    rig_pass(r, 11 * MR_SECOND);
    a = join(r, "a", 0);
    rig_want(r, two, "k");
    /* The value is smaller than before, so the cache has room for it under both jobs' keys. */
    rig_done(r, a, one, "k");
    assert_int_equal(rig_state(r, two, "k"), MR_TASK_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_lost_key_is_made_again_by_its_job_for_who_reads_it),
        RIG_TEST(the_loss_of_a_store_is_no_failure_of_who_reads_a_key),
        RIG_TEST(who_cannot_read_a_key_of_another_job_has_it_made_again),
        RIG_TEST(a_key_that_was_released_is_made_again_for_who_refers_to_it),
        RIG_TEST(a_key_that_only_a_worker_has_is_fetched_for_another_job),
        RIG_TEST(a_key_that_only_a_lost_worker_had_is_made_again_for_another_job),
        RIG_TEST(a_key_without_room_for_a_copy_fails_who_reads_it),
        RIG_TEST(a_lost_key_that_cannot_be_made_fails_who_reads_it_and_says_so),
        RIG_TEST(a_job_fails_when_the_key_that_it_reads_fails_the_second_time),
        RIG_TEST(a_value_of_an_ended_job_is_made_again_from_the_key_of_another),
        RIG_TEST(a_restart_makes_again_what_another_job_reads),
        RIG_TEST(the_keys_of_a_retried_job_are_found_again),
        RIG_TEST(jobs_that_hold_one_another_are_forgotten_together),
        RIG_TEST(an_alias_without_room_when_it_is_read_back_waits_like_a_task),
        RIG_TEST(a_key_whose_first_owner_is_cancelled_is_found_at_who_took_it_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
