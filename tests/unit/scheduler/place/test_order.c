/* The scheduler's core: the order of workers by load, the order of tasks that wait for special
 * workers, and how much one turn does at most. */
#include "base/limits.h"
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define AT_A ",\"workers\":[\"a\"]"
#define AT_B ",\"workers\":[\"b\"]"
#define LIKES_B ",\"workers\":[\"b\"],\"allow_other_workers\":true"
#define GPU ",\"resources\":{\"gpu\":1}"

static const mr_object_id no_object = {0, 0};

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots, const char *ops)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots, .ops = ops};
    return rig_join(r, &spec);
}

static uint64_t submit_many(struct rig *r, const char *op, uint32_t tasks, const char *more)
{
    char json[256];
    (void)snprintf(json, sizeof json,
        "{\"tasks\":{\"k-${i}\":{\"op\":\"%s\",\"args\":[\"${i}\"],\"for\":{\"i\":%u}%s}}}", op,
        tasks, more);
    return rig_submit(r, json);
}

static void known(struct rig *r, struct rig_worker w, const char *op, mr_duration took)
{
    uint64_t job = submit_many(r, op, 1, "");
    rig_done_as(r, w, job, "k-0", 1, MR_OUTCOME_OK, no_object, 1, took);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    rig_forget_rows(r);
}

static uint32_t sent(struct rig *r, struct rig_worker w, uint64_t job)
{
    return rig_count(r, SAID_TASK, w, job, NULL);
}

/* ---- workers --------------------------------------------------------------------------------- */

/* The core sorts workers into buckets by load, with eight buckets for each doubling of the load.
 * The two loads of each case are in different buckets. */
static void the_least_loaded_worker_is_found_among_small_and_large_loads(void **state)
{
    (void)state;
    static const mr_duration loads[][2] = {{0, 300}, {1100, 2100}, {7000, 8300}, {8300, 9300},
        {9300, 10400}, {16500, 18600}, {31000, 33500}, {100 * MR_US, 115 * MR_US},
        {MR_MS, 1150 * MR_US}, {2 * MR_MS, 2300 * MR_US}, {MR_SECOND, 1150 * MR_MS},
        {3 * MR_SECOND, 3500 * MR_MS}};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        for (int swap = 0; swap < 2; swap++) {
            struct rig *r = rig_new();
            struct rig_worker w[2] = {join(r, "a", 1, "f long"), join(r, "b", 1, "g long")};
            for (int k = 0; k < 2; k++) {
                mr_duration load = loads[i][k ^ swap];
                if (!load) continue;
                known(r, w[k], k ? "g" : "f", load);
                assert_int_equal(sent(r, w[k], submit_many(r, k ? "g" : "f", 1, "")), 1);
            }
            /* The idle worker gets a task last and ends it. So it is chosen for its load, not as
             * the worker that got work longest ago. */
            if (!loads[i][0]) known(r, w[swap], swap ? "g" : "f", MR_MS);
            uint64_t job = submit_many(r, "long", 1, "");
            if (!sent(r, w[swap], job)) fail_msg("case %u, %d", (unsigned)i, swap);
            (void)rig_teardown(state);
        }
}

static void the_most_loaded_worker_with_spare_tasks_is_asked_for_some(void **state)
{
    (void)state;
    for (int is_alone = 0; is_alone < 2; is_alone++) {
        struct rig *r = rig_new();
        struct rig_worker a = join(r, "a", 1, "f"), b = join(r, "b", 1, "g");
        known(r, a, "f", MR_MS);
        known(r, b, "g", is_alone ? 50 * MR_MS : 2 * MR_MS);
        uint64_t at_a = submit_many(r, "f", 5, "");
        uint64_t at_b = submit_many(r, "g", is_alone ? 1 : 3, "");
        assert_int_equal(sent(r, a, at_a), 5);
        /* Worker a has 5 ms of work; b has 6 ms in three tasks, or 50 ms in one task. */
        assert_int_equal(sent(r, b, at_b), is_alone ? 1 : 3);
        (void)join(r, "c", 1, "f g");
        uint32_t of_a = rig_count(r, SAID_STEAL, a, at_a, NULL);
        uint32_t of_b = rig_count(r, SAID_STEAL, b, at_b, NULL);
        assert_true(is_alone ? of_a > 0 && !of_b : of_b > 0 && !of_a);
        (void)rig_teardown(state);
    }
}

/* Among workers with the same load, the one that got work longest ago gets the next task. */
static void idle_workers_take_turns(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w[3] = {join(r, "a", 1, NULL), join(r, "b", 1, NULL), join(r, "c", 1, NULL)};
    known(r, w[0], "f", 10 * MR_MS);
    uint32_t last = 0;
    for (int i = 0; i < 6; i++) {
        uint64_t job = submit_many(r, "f", 1, "");
        uint32_t at = 0;
        while (at < 2 && !sent(r, w[at], job))
            at++;
        assert_int_equal(at, (last + 1) % 3);
        rig_done_as(r, w[at], job, "k-0", 1, MR_OUTCOME_OK, no_object, 1, 10 * MR_MS);
        last = at;
    }
}

/* ---- one turn -------------------------------------------------------------------------------- */

static uint32_t rows_most, batches;

static void look_at_size(struct rig *r, uint32_t slot, const struct mr_sched_batch *b)
{
    (void)r;
    (void)slot;
    batches += b->tasks.count > 0;
    rows_most = MR_MAX(rows_most, b->tasks.count);
}

static void a_turn_sends_8192_tasks_at_most(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 4, NULL);
    known(r, a, "f", 1);
    rows_most = batches = 0;
    r->on_batch = look_at_size;
    uint64_t job = submit_many(r, "f", 10000, "");
    assert_int_equal(sent(r, a, job), 10000);
    assert_int_equal(rows_most, 8192);
    assert_int_equal(batches, 2);
}

static void at_most_256_tasks_are_asked_back_at_once(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 2, NULL);
    known(r, a, "f", 10 * MR_US);
    uint64_t job = submit_many(r, "f", 1000, "");
    assert_int_equal(sent(r, a, job), 1000);
    (void)join(r, "b", 2, NULL);
    assert_int_equal(rig_count(r, SAID_STEAL, a, job, NULL), 256);
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.steals, 256);
}

/* ---- tasks that wait for a special worker ---------------------------------------------------- */

/* Writes to `out` in which order tasks were sent: for each task one digit, the place of its job in
 * `jobs`. */
static void order_of(struct rig *r, const uint64_t *jobs, uint32_t count, char *out)
{
    for (uint32_t i = 0; i < r->rows_count; i++)
        for (uint32_t k = 0; k < count && r->rows[i].said == SAID_TASK; k++)
            if (r->rows[i].job == jobs[k]) *out++ = (char)('0' + k);
    *out = 0;
}

#define TEN "0000000000"

static void the_more_urgent_of_those_that_wait_for_a_resource_goes_first(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    (void)join(r, "a", 1, NULL);
    uint64_t jobs[4];
    jobs[0] = submit_many(r, "f", 40, GPU);
    jobs[1] = rig_submit(r, "{\"priority\":5,\"tasks\":{" T("x", "f", "1", GPU) "}}");
    jobs[2] = rig_submit(r, "{\"priority\":-5,\"tasks\":{" T("x", "f", "1", GPU) "}}");
    jobs[3] = rig_submit(
        r, "{\"priority\":6,\"tasks\":{" T("x", "f", "1", GPU) "," T("y", "f", "2", GPU) "}}");
    rig_forget_rows(r);
    const struct rig_spec spec = {.name = "g", .slots = 1, .resource = "gpu", .amount = 1};
    struct rig_worker g = rig_join(r, &spec);
    char order[64];
    /* Tasks are sent one at a time, because the run time is not known. */
    rig_done(r, g, jobs[3], "x");
    rig_done(r, g, jobs[3], "y");
    rig_done(r, g, jobs[1], "x");
    for (int i = 0; i < 40; i++) {
        char key[16];
        /* the tasks are sent in the order of the graph */
        (void)snprintf(key, sizeof key, "k-%d", i);
        assert_int_equal(rig_attempt(r, g, jobs[0], key), 1);
        rig_done(r, g, jobs[0], key);
    }
    rig_done(r, g, jobs[2], "x");
    order_of(r, jobs, 4, order);
    assert_string_equal(order, "331" TEN TEN TEN TEN "2");
}

/* Task t is the first in the graph, and becomes ready after the tasks u-0 to u-4, which wait
 * already. */
static void of_one_job_the_first_in_the_graph_goes_first(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, NULL);
    uint64_t job =
        rig_submit(r, "{\"tasks\":{" T("p", "f", "0", "") "," T("t", "g", "{\"ref\":\"p\"}",
                          GPU) ",\"u-${i}\":{\"op\":"
                               "\"g\",\"args\":[\"${i}\"],\"for\":{\"i\":5}" GPU
                               "}},\"targets\":[\"t\",\"u-0\",\"u-1\","
                               "\"u-2\",\"u-3\",\"u-4\"]}");
    rig_done(r, a, job, "p");
    const struct rig_spec spec = {.name = "g", .slots = 1, .resource = "gpu", .amount = 1};
    struct rig_worker g = rig_join(r, &spec);
    assert_int_equal(sent(r, g, job), 1);
    assert_int_equal(rig_attempt(r, g, job, "t"), 1);
    rig_done(r, g, job, "t");
    assert_int_equal(rig_attempt(r, g, job, "u-0"), 1);
}

/* The test lets the workers come in several orders. */
static void each_of_several_demands_is_served_when_its_worker_comes(void **state)
{
    (void)state;
    static const char *const kinds[] = {"r0", "r1", "r2", "r3"};
    for (uint32_t first = 0; first < 4; first++)
        for (uint32_t step = 1; step < 4; step += 2) {
            struct rig *r = rig_new();
            uint64_t job[4];
            char more[64];
            for (uint32_t i = 0; i < 4; i++) {
                (void)snprintf(more, sizeof more, ",\"resources\":{\"%s\":1}", kinds[i]);
                job[i] = submit_many(r, "f", 2, more);
            }
            for (uint32_t i = 0; i < 4; i++) {
                uint32_t k = (first + i * step) % 4;
                const struct rig_spec spec = {
                    .name = kinds[k], .slots = 4, .resource = kinds[k], .amount = 2};
                assert_int_equal(sent(r, rig_join(r, &spec), job[k]), 2);
            }
            (void)rig_teardown(state);
        }
}

/* Jobs are cancelled in any order. The rig checks the heap of waiting tasks after each step. */
static void the_most_urgent_job_goes_first_whichever_are_cancelled(void **state)
{
    (void)state;
    enum { JOBS = 48 };
    struct rig *r = rig_new();
    uint64_t job[JOBS];
    int priority[JOBS];
    uint32_t dice = 7;
    for (uint32_t i = 0; i < JOBS; i++) {
        char json[96];
        dice = dice * 1103515245 + 12345;
        priority[i] = (int)(dice >> 16) % 90;
        (void)snprintf(json, sizeof json,
            "{\"priority\":%d,\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]}}}", priority[i]);
        job[i] = rig_submit(r, json);
    }
    for (uint32_t left = JOBS; left > JOBS / 3; left--) {
        dice = dice * 1103515245 + 12345;
        uint32_t i = (dice >> 16) % left;
        assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job[i]), MR_OK);
        job[i] = job[left - 1];
        priority[i] = priority[left - 1];
    }
    rig_forget_rows(r);
    struct rig_worker a = join(r, "a", 1, NULL);
    int last = 100;
    for (uint32_t n = 0; n < JOBS / 3; n++) {
        uint32_t i = 0;
        while (i < JOBS / 3 && job[i] != r->rows[n].job)
            i++;
        assert_true(i < JOBS / 3 && priority[i] <= last);
        last = priority[i];
        rig_done(r, a, job[i], "x");
    }
}

static void tasks_of_different_demands_are_told_apart(void **state)
{
    (void)state;
    for (int swap = 0; swap < 2; swap++) {
        struct rig *r = rig_new();
        struct rig_worker a = join(r, "a", 8, NULL);
        uint64_t job[2];
        for (int i = 0; i < 2; i++)
            job[i ^ swap] = submit_many(r, "f", 1, i ^ swap ? LIKES_B : AT_B);
        assert_int_equal(sent(r, a, job[0]), 0);
        assert_int_equal(sent(r, a, job[1]), 1);
        uint64_t other = submit_many(r, "f", 1, AT_A), op = submit_many(r, "g", 1, AT_B);
        assert_int_equal(sent(r, a, other), 1);
        assert_int_equal(sent(r, a, op), 0);
        uint64_t two = submit_many(r, "f", 1, ",\"workers\":[\"b\",\"a\"]");
        assert_int_equal(sent(r, a, two), 1);
        const struct rig_spec spec = {.name = "b", .slots = 8, .resource = "gpu", .amount = 1};
        struct rig_worker b = rig_join(r, &spec);
        assert_int_equal(sent(r, b, job[0]) + sent(r, b, op), 2);
        uint64_t one = submit_many(r, "f", 1, GPU);
        uint64_t half = submit_many(r, "f", 1, ",\"resources\":{\"gpu\":2}");
        assert_int_equal(sent(r, b, one), 1);
        assert_int_equal(sent(r, b, half), 0);
        (void)rig_teardown(state);
    }
}

/* Tasks with the same op, resources and workers share a row in a table. A row that no job uses any
 * more is free again. */
static void any_number_of_demands_may_follow_each_other_and_some_at_once(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    char more[64];
    for (uint32_t i = 0; i < 200; i++) {
        (void)snprintf(more, sizeof more, ",\"workers\":[\"w%u\"]", i);
        uint64_t job = submit_many(r, "f", 1, more);
        assert_int_not_equal(job, 0);
        assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
        assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    }
    char json[8192];
    size_t n = (size_t)snprintf(json, sizeof json, "{\"tasks\":{");
    for (uint32_t i = 0; i <= r->c.ops_max; i++)
        n += (size_t)snprintf(json + n, sizeof json - n,
            "%s\"t%u\":{\"op\":\"f\",\"args\":[%u],\"workers\":[\"v%u\"]}", i ? "," : "", i, i, i);
    (void)snprintf(json + n, sizeof json - n, "}}");
    assert_int_equal(rig_submit(r, json), 0);
    assert_int_equal(r->code, MR_ELIMIT);
    assert_non_null(strstr(
        r->text, "more than 64 different combinations of op, resources and workers are in use"));
    char *last = strstr(json, ",\"t64\"");
    (void)snprintf(last, 8, "}}");
    uint64_t job = rig_submit(r, json); /* these are as many combinations as the limit allows */
    assert_int_not_equal(job, 0);
    struct rig_worker w = join(r, "v63", 8, NULL);
    assert_int_equal(rig_attempt(r, w, job, "t63"), 1);
    assert_int_equal(sent(r, w, job), 1);
}

static void kinds_of_resources_are_bounded(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    char more[160], text[160];
    for (uint32_t i = 0; i <= MR_RESOURCES_MAX; i++) {
        (void)snprintf(more, sizeof more, ",\"resources\":{\"r%u\":1}", i);
        uint64_t job = submit_many(r, "f", 1, more);
        assert_int_equal(job != 0, i < MR_RESOURCES_MAX);
        if (job)
            assert_true(mr_str_eq(
                mr_sched_resource_name(r->s, i), mr_str_of(more + 15, strlen(more) - 19)));
    }
    assert_int_equal(r->code, MR_ELIMIT);
    (void)snprintf(text, sizeof text,
        "resources: \"r%u\": the scheduler has no room for more than %u kinds", MR_RESOURCES_MAX,
        MR_RESOURCES_MAX);
    assert_non_null(strstr(r->text, text));
    assert_int_equal(mr_sched_resource_name(r->s, MR_RESOURCES_MAX).n, 0);
    assert_int_not_equal(submit_many(r, "f", 1, ",\"resources\":{\"r0\":2}"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(the_least_loaded_worker_is_found_among_small_and_large_loads),
        RIG_TEST(the_most_loaded_worker_with_spare_tasks_is_asked_for_some),
        RIG_TEST(idle_workers_take_turns),
        RIG_TEST(a_turn_sends_8192_tasks_at_most),
        RIG_TEST(at_most_256_tasks_are_asked_back_at_once),
        RIG_TEST(the_more_urgent_of_those_that_wait_for_a_resource_goes_first),
        RIG_TEST(of_one_job_the_first_in_the_graph_goes_first),
        RIG_TEST(each_of_several_demands_is_served_when_its_worker_comes),
        RIG_TEST(the_most_urgent_job_goes_first_whichever_are_cancelled),
        RIG_TEST(tasks_of_different_demands_are_told_apart),
        RIG_TEST(any_number_of_demands_may_follow_each_other_and_some_at_once),
        RIG_TEST(kinds_of_resources_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
