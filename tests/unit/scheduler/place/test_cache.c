/* The scheduler's core: the placement cache. The tasks of each instance of a template go to the
 * same workers as those of the first instance, as long as these workers can run them. */
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

/* Tasks x and y make values, and z reads both. */
#define MEET                                                                                       \
    JOB(T("x", "f", "1", "") "," T("y", "g", "2", "") "," T("z", "h", R("x") "," R("y"), ""),      \
        "\"z\"")

static const mr_object_id no_object = {0, 0};

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots};
    return rig_join(r, &spec);
}

static uint64_t instance(struct rig *r, const char *json, uint64_t template)
{
    const struct mr_sched_submit more = {.template = template};
    return rig_submit_with(r, json, &more);
}

static struct mr_sched_totals totals(struct rig *r)
{
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    return t;
}

/* Returns the row number (`rig_worker.slot`) of the worker that the task was sent to. */
static uint32_t at(struct rig *r, uint64_t job, const char *key)
{
    assert_true(rig_task(r, job, key).is_sent);
    return rig_task(r, job, key).worker;
}

static void done(struct rig *r, uint64_t job, const char *key)
{
    struct mr_sched_worker_info info;
    struct rig_worker w = {.slot = at(r, job, key)};
    assert_true(mr_sched_worker(r->s, w.slot, &info));
    w.incarnation = info.incarnation;
    rig_done_as(r, w, job, key, rig_task(r, job, key).attempt, MR_OUTCOME_OK, no_object, 1, MR_MS);
}

static void run(struct rig *r, uint64_t job)
{
    done(r, job, "x");
    done(r, job, "y");
    done(r, job, "z");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

struct places {
    uint32_t x, y, z;
};

/* Runs an instance and returns the workers of its tasks. */
static struct places places(struct rig *r, uint64_t job)
{
    struct places p = {at(r, job, "x"), at(r, job, "y"), 0};
    done(r, job, "x");
    done(r, job, "y");
    p.z = at(r, job, "z");
    done(r, job, "z");
    return p;
}

static void an_instance_goes_where_the_first_one_went(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    for (int i = 0; i < 3; i++)
        (void)join(r, (const char *[]){"a", "b", "c"}[i], 1);
    struct places first = places(r, instance(r, MEET, 7));
    assert_true(first.x != first.y);
    assert_int_equal(totals(r).placed_scored, 3);
    for (uint32_t i = 1; i <= 3; i++) {
        struct places next = places(r, instance(r, MEET, 7));
        assert_memory_equal(&next, &first, sizeof next);
        assert_int_equal(totals(r).placed_cached, 3 * i);
        assert_int_equal(totals(r).placed_scored, 3);
    }
    (void)places(r, instance(r, MEET, 8)); /* this is an instance of another template */
    assert_int_equal(totals(r).placed_cached, 9);
    assert_int_equal(totals(r).placed_scored, 6);
    (void)places(r, rig_submit(r, MEET)); /* a job without a template */
    (void)places(r, rig_submit(r, MEET));
    assert_int_equal(totals(r).placed_cached, 9);
    assert_int_equal(totals(r).placed_scored, 12);
    assert_int_equal(totals(r).placed_repaired, 0);
    (void)places(r, instance(r, MEET, 7)); /* template 7 is still in the cache */
    assert_int_equal(totals(r).placed_cached, 12);
}

/* The worker of z is known from the first instance. So z is sent before x and y are made. */
static void an_instance_is_sent_ahead_of_its_inputs(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    (void)join(r, "a", 1);
    (void)join(r, "b", 1);
    uint64_t first = instance(r, MEET, 7);
    /* X and y are made at two workers, so z waits for them. */
    assert_false(rig_task(r, first, "z").is_sent);
    struct places p = places(r, first);
    uint64_t job = instance(r, MEET, 7);
    assert_int_equal(at(r, job, "z"), p.z);
    assert_int_equal(rig_state(r, job, "z"), MR_TASK_WAITING);
    run(r, job);
}

/* One input of z may run only at a worker that retires. This input waits, and so z waits too. */
static void an_instance_is_not_sent_ahead_of_inputs_that_wait(void **state)
{
    (void)state;
    static const char *const json[] = {
        JOB(T("x", "f", "1", ",\"workers\":[\"a\"]") "," T("y", "g", "2",
                ",\"workers\":[\"b\"]") "," T("z", "h", R("x") "," R("y"), ",\"workers\":[\"b\"]"),
            "\"z\""),
        JOB(T("x", "f", "1", ",\"workers\":[\"b\"]") "," T("y", "g", "2",
                ",\"workers\":[\"a\"]") "," T("z", "h", R("x") "," R("y"), ",\"workers\":[\"b\"]"),
            "\"z\"")};
    for (int i = 0; i < 2; i++) {
        struct rig *r = rig_new();
        struct rig_worker a = join(r, "a", 4);
        (void)join(r, "b", 4);
        (void)places(r, instance(r, json[i], 7));
        struct mr_sched_event ev = {
            .type = MR_SCHED_WORKER_RETIRE, .slot = a.slot, .incarnation = a.incarnation};
        rig_step(r, &ev);
        rig_turn(r);
        uint64_t job = instance(r, json[i], 7);
        assert_int_equal(rig_task(r, job, "x").is_sent, i);
        assert_int_equal(rig_task(r, job, "y").is_sent, !i);
        assert_false(rig_task(r, job, "z").is_sent);
        (void)rig_teardown(state);
    }
}

/* The options of the second instance name another worker than the cached one. */
static void an_instance_goes_only_where_it_may_run(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    for (int i = 0; i < 3; i++)
        (void)join(r, (const char *[]){"a", "b", "c"}[i], 1);
    uint64_t job = instance(r, JOB(T("x", "f", "1", ",\"workers\":[\"a\"]"), "\"x\""), 7);
    done(r, job, "x");
    job = instance(r, JOB(T("x", "f", "1", ",\"workers\":[\"c\"]"), "\"x\""), 7);
    assert_int_equal(at(r, job, "x"), 2);
    assert_int_equal(totals(r).placed_cached, 0);
}

static void a_place_that_is_gone_is_replaced_once(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct rig *r = rig_new();
        struct rig_worker w[2] = {join(r, "a", 4), join(r, "b", 4)};
        struct places p = places(r, instance(r, MEET, 7));
        struct rig_worker gone = w[p.x == w[1].slot];
        struct mr_sched_event ev = {
            .type = how == 2 ? MR_SCHED_WORKER_RETIRE : MR_SCHED_WORKER_CRASHED,
            .slot = gone.slot,
            .incarnation = gone.incarnation};
        rig_step(r, &ev);
        rig_turn(r);
        if (how == 1) (void)join(r, "again", 4); /* the new worker gets the slot of the lost one */
        uint32_t were = 0u + (p.x == gone.slot) + (p.y == gone.slot) + (p.z == gone.slot);
        struct places next = places(r, instance(r, MEET, 7));
        assert_int_equal(totals(r).placed_repaired, were);
        assert_int_equal(totals(r).placed_cached, 3 - were);
        struct places third = places(r, instance(r, MEET, 7));
        assert_memory_equal(&next, &third, sizeof next);
        assert_int_equal(totals(r).placed_repaired, were);
        assert_int_equal(totals(r).placed_cached, 6 - were);
        (void)rig_teardown(state);
    }
}

/* The cached worker of a task is busy, and the other worker is idle. The task stays with its cached
 * worker, because the cache names the idle worker for another task of the template. */
static void an_instance_stays_at_a_busy_worker(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    (void)join(r, "b", 1);
    struct places p = places(r, instance(r, MEET, 7));
    assert_true(p.x != p.y);
    static const char at_a[] = JOB(T("x", "f", "3", ",\"workers\":[\"a\"]"), "\"x\"");
    static const char at_b[] = JOB(T("x", "f", "3", ",\"workers\":[\"b\"]"), "\"x\"");
    (void)rig_submit(r, p.x == a.slot ? at_a : at_b);
    uint64_t job = instance(r, MEET, 7);
    assert_int_equal(at(r, job, "x"), p.x);
    assert_int_equal(at(r, job, "y"), p.y);
}

/* A task would have to wait at its cached worker. So an idle worker takes the task, if the cache
 * names this idle worker for no task of the template. */
static void a_new_worker_takes_what_would_wait(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    const char two[] = JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\"");
    uint64_t job = instance(r, two, 7);
    done(r, job, "x"); /* now the scheduler knows how long `f` takes */
    done(r, job, "y");
    job = instance(r, two, 7);
    assert_int_equal(at(r, job, "x"), a.slot);
    assert_int_equal(at(r, job, "y"), a.slot);
    assert_int_equal(totals(r).placed_cached, 2);
    done(r, job, "x");
    done(r, job, "y");
    struct rig_worker b = join(r, "b", 1);
    job = instance(r, two, 7);
    assert_int_equal(at(r, job, "x"), a.slot);
    assert_int_equal(at(r, job, "y"), b.slot);
    done(r, job, "x");
    done(r, job, "y");
    job = instance(r, two, 7); /* the cache keeps both workers */
    assert_int_equal(at(r, job, "x"), a.slot);
    assert_int_equal(at(r, job, "y"), b.slot);
}

static void a_task_that_is_tried_again_is_placed_anew(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w[2] = {join(r, "a", 1), join(r, "b", 1)};
    static const char one[] = JOB(T("x", "f", "1", ",\"retries\":1"), "\"x\"");
    uint64_t job = instance(r, one, 7);
    uint32_t place = at(r, job, "x");
    done(r, job, "x");
    job = instance(r, one, 7);
    assert_int_equal(at(r, job, "x"), place);
    assert_int_equal(totals(r).placed_cached, 1);
    rig_end(r, w[place == w[1].slot], job, "x", MR_OUTCOME_ERROR);
    assert_int_equal(totals(r).placed_cached, 1);
    assert_int_equal(totals(r).placed_scored, 2);
    done(r, job, "x");
}

/* A root task (without inputs) is not sent to a worker whose memory is full, even if the cache
 * names that worker. */
static void a_root_does_not_go_to_a_worker_whose_memory_is_full(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "a", .node = "a", .slots = 4, .memory = 4000};
    struct rig_worker a = rig_join(r, &spec);
    static const char one[] = JOB(T("x", "f", "1", ""), "\"x\"");
    uint64_t job = instance(r, one, 7);
    done(r, job, "x");
    const struct mr_ws_heartbeat h = {.time_ns = r->now, .memory_used_bytes = 3001};
    struct mr_ws_up m = {.heartbeat = &h};
    rig_message(r, a, &m);
    uint64_t first = instance(r, one, 7), second = instance(r, one, 7);
    assert_true(rig_task(r, first, "x").is_sent);
    assert_false(rig_task(r, second, "x").is_sent);
    done(r, first, "x");
    assert_true(rig_task(r, second, "x").is_sent);
}

/* A long-running task goes to the worker that has the fewest long-running tasks, also in later
 * instances of a template. */
static void long_running_tasks_are_not_placed_by_the_cache(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1), b = join(r, "b", 1);
    static const char one[] = JOB(T("x", "long", "1", ""), "\"x\"");
    uint64_t job[2] = {instance(r, one, 7), instance(r, one, 7)};
    assert_int_equal(at(r, job[0], "x") + at(r, job[1], "x"), a.slot + b.slot);
    assert_int_equal(totals(r).placed_cached, 0);
}

/* More templates are used than the cache has room for. The template that was used longest ago is
 * dropped. */
static void of_many_templates_the_last_ones_are_known(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    (void)join(r, "a", 1);
    static const char one[] = JOB(T("x", "f", "1", ""), "\"x\"");
    uint64_t before = 0;
    for (uint64_t round = 0; round < 2; round++)
        /* The second round uses template 65 in the place of template 1, which the cache has
         * dropped. */
        for (uint64_t i = 1; i <= 65; i++) {
            uint64_t job = instance(r, one, round && i == 1 ? 65 : i);
            done(r, job, "x");
            assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
            assert_int_equal(totals(r).placed_cached - before, round);
            before = totals(r).placed_cached;
        }
    uint64_t job = instance(r, one, 1);
    done(r, job, "x");
    assert_int_equal(totals(r).placed_cached, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(an_instance_goes_where_the_first_one_went),
        RIG_TEST(an_instance_is_sent_ahead_of_its_inputs),
        RIG_TEST(an_instance_is_not_sent_ahead_of_inputs_that_wait),
        RIG_TEST(an_instance_goes_only_where_it_may_run),
        RIG_TEST(a_place_that_is_gone_is_replaced_once),
        RIG_TEST(an_instance_stays_at_a_busy_worker),
        RIG_TEST(a_new_worker_takes_what_would_wait),
        RIG_TEST(a_task_that_is_tried_again_is_placed_anew),
        RIG_TEST(a_root_does_not_go_to_a_worker_whose_memory_is_full),
        RIG_TEST(long_running_tasks_are_not_placed_by_the_cache),
        RIG_TEST(of_many_templates_the_last_ones_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
