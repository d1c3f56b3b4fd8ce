/* The scheduler's core: suspects. A suspect is a quarantined task: it ran when a worker crashed.
 * The tests check which worker is kept free for it, which crashes it is blamed for, and when its
 * probation ends. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define T(key, op, args) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]}"
#define JOB(tasks, targets)                                                                        \
    "{\"on_error\":\"continue\",\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define TWO JOB(T("x", "long", "1") "," T("y", "long", "2"), "\"x\",\"y\"")

static struct rig_worker join(struct rig *r, const char *name)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = 1};
    return rig_join(r, &spec);
}

/* The worker's process dies while it runs the tasks `keys`, which ends with NULL. */
static void crash(struct rig *r, struct rig_worker w, uint64_t job, const char *const *keys)
{
    uint32_t index[8], attempt[8], n = 0;
    for (; keys[n]; n++) {
        index[n] = rig_index(r, job, keys[n]);
        attempt[n] = rig_sent(r, w, job, index[n]);
    }
    const struct mr_ws_run run = {.job = {job}, .count = n};
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = w.slot, .incarnation = w.incarnation};
    ev.refs = (struct mr_ws_refs){&run, 1, index, attempt, n};
    rig_step(r, &ev);
    rig_turn(r);
}

static bool is_at(struct rig *r, struct rig_worker w, uint64_t job, const char *key)
{
    struct mr_sched_task_info t = rig_task(r, job, key);
    return t.state == MR_TASK_RUNNING && t.worker == w.slot;
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- one worker is kept free ----------------------------------------------------------------- */

#define AT(w) ",\"workers\":[\"" w "\"]"
#define TW(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"

static void say(struct rig *r, uint64_t job, const char *key, const char *expected)
{
    struct mr_buf lines;
    mr_buf_init(&lines, 1 << 16);
    assert_true(mr_sched_explain(r->s, (mr_job_id){job}, rig_index(r, job, key), &lines));
    mr_buf_add(&lines, "", 1);
    if (!strstr((const char *)lines.p, expected))
        fail_msg("\"%s\" does not say \"%s\"", (const char *)lines.p, expected);
    mr_buf_fini(&lines);
}

static uint64_t retried(struct rig *r, uint64_t job)
{
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    return info.retried;
}

/* Task x has crashed worker c and waits for an empty worker. Workers a and b have two tasks each: a
 * has tasks of 1 ms, b has tasks of 5 ms. */
struct suspect {
    struct rig *r;
    struct rig_worker a, b;
    uint64_t job, at_a, at_b;
};

static struct suspect suspect(void)
{
    struct suspect s = {.r = rig_new()};
    struct rig *r = s.r;
    s.a = join(r, "a");
    for (int i = 0; i < 2; i++) { /* runs each operator once, so that its run time is known */
        uint64_t warm =
            rig_submit(r, i ? JOB(T("w", "g", "1"), "\"w\"") : JOB(T("w", "f", "1"), "\"w\""));
        rig_done_as(
            r, s.a, warm, "w", 1, MR_OUTCOME_OK, (mr_object_id){0, 0}, 1, i ? 5 * MR_MS : MR_MS);
    }
    s.b = join(r, "b");
    struct rig_worker c = join(r, "c");
    s.at_a = rig_submit(
        r, JOB(TW("p", "f", "1", AT("a")) "," TW("q", "f", "2", AT("a")), "\"p\",\"q\""));
    s.at_b = rig_submit(
        r, JOB(TW("p", "g", "1", AT("b")) "," TW("q", "g", "2", AT("b")), "\"p\",\"q\""));
    s.job = rig_submit(r, JOB(T("x", "f", "3"), "\"x\""));
    assert_true(is_at(r, c, s.job, "x"));
    crash(r, c, s.job, KEYS("x"));
    assert_int_equal(rig_state(r, s.job, "x"), MR_TASK_READY);
    return s;
}

static bool gets_tasks(struct rig *r, struct rig_worker w)
{
    uint64_t job = rig_submit(r, JOB(T("n", "h", "1"), "\"n\""));
    bool is_here = is_at(r, w, job, "n");
    (void)rig_ask(r, MR_SCHED_CANCEL, job);
    return is_here;
}

static void the_least_loaded_worker_is_kept_free_for_a_suspect(void **state)
{
    (void)state;
    struct suspect s = suspect();
    struct rig *r = s.r;
    say(r, s.job, "x",
        "it is in quarantine, since a worker crashed while it ran (crashes blamed on it: 1; 3 fail "
        "it): next it runs alone on an empty worker\n");
    /* Worker a has less to do than b, so a is kept free, and b still gets tasks. */
    assert_true(gets_tasks(r, s.b));
    rig_done(r, s.a, s.at_a, "p");
    assert_false(is_at(r, s.a, s.job, "x"));
    rig_done(r, s.a, s.at_a, "q");
    assert_true(is_at(r, s.a, s.job, "x"));
    assert_true(rig_row(r, SAID_TASK, s.job, "x")->alone);
    assert_true(gets_tasks(r, s.b));
    rig_done(r, s.a, s.job, "x");
    assert_true(gets_tasks(r, s.a));
}

static void a_suspect_goes_to_a_worker_that_is_empty_before_the_one_kept_free(void **state)
{
    (void)state;
    struct suspect s = suspect();
    struct rig *r = s.r;
    rig_done(r, s.b, s.at_b, "p");
    rig_done(r, s.b, s.at_b, "q");
    assert_true(is_at(r, s.b, s.job, "x"));
    assert_true(gets_tasks(r, s.a)); /* worker a is not kept free any more */
}

static void a_worker_is_not_kept_free_for_a_suspect_that_is_cancelled(void **state)
{
    (void)state;
    struct suspect s = suspect();
    assert_int_equal(rig_ask(s.r, MR_SCHED_CANCEL, s.job), MR_OK);
    assert_true(gets_tasks(s.r, s.a));
}

/* The core looks at the suspects in each turn and keeps their order. */
static void suspects_wait_for_any_number_of_turns(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.tasks_max = 256;
    struct rig *r = rig_new_with(&c);
    struct rig_worker a = join(r, "a");
    uint64_t job =
        rig_submit(r, JOB(T("x", "long", "1") "," T("y", "long", "2") "," T("z", "long", "3"),
                          "\"x\",\"y\",\"z\""));
    crash(r, a, job, KEYS("x", "y", "z"));
    uint64_t other = rig_submit(r, JOB(T("w", "f", "1"), "\"w\""));
    const struct rig_spec spec = {.name = "b", .node = "b", .slots = 1, .ops = "f"};
    struct rig_worker b = rig_join(r, &spec); /* worker b lacks the suspects' operator */
    assert_true(is_at(r, b, other, "w"));
    for (int i = 0; i < 300; i++)
        rig_heartbeat(r, b);
    a = join(r, "a");
    const char *const keys[] = {"x", "y", "z"};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            assert_int_equal(is_at(r, a, job, keys[k]), k == i);
        rig_done(r, a, job, keys[i]);
    }
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void a_worker_stays_kept_free_when_another_goes(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct suspect s = suspect();
        struct rig *r = s.r;
        struct mr_sched_event ev = {
            .type = MR_SCHED_WORKER_RETIRE, .slot = s.b.slot, .incarnation = s.b.incarnation};
        if (how == 0) rig_close(r, s.b);
        if (how == 1) crash(r, s.b, s.at_b, KEYS(NULL));
        if (how == 2) rig_step(r, &ev);
        rig_turn(r);
        assert_false(gets_tasks(r, s.a));
        rig_done(r, s.a, s.at_a, "p");
        rig_done(r, s.a, s.at_a, "q");
        assert_true(is_at(r, s.a, s.job, "x"));
        (void)rig_teardown(state);
    }
}

static void another_worker_is_kept_free_when_the_first_goes(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct suspect s = suspect();
        struct rig *r = s.r;
        struct mr_sched_event ev = {
            .type = MR_SCHED_WORKER_RETIRE, .slot = s.a.slot, .incarnation = s.a.incarnation};
        if (how == 0) rig_close(r, s.a);
        if (how == 1) crash(r, s.a, s.at_a, KEYS(NULL));
        if (how == 2) rig_step(r, &ev);
        rig_turn(r);
        rig_done(r, s.b, s.at_b, "p");
        rig_done(r, s.b, s.at_b, "q");
        assert_true(is_at(r, s.b, s.job, "x"));
        (void)rig_teardown(state);
    }
}

/* Worker a is kept free for x. Worker a lacks the operator of y, the other suspect. */
static void a_suspect_does_not_go_to_a_free_worker_without_its_op(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec both = {.name = "c", .node = "c", .slots = 2, .ops = "f rare"};
    struct rig_worker a = join(r, "a"), c = rig_join(r, &both);
    uint64_t busy = rig_submit(r, JOB(TW("p", "f", "1", AT("a")), "\"p\""));
    uint64_t rare = rig_submit(r, JOB(T("y", "rare", "1"), "\"y\""));
    uint64_t job =
        rig_submit(r, JOB(TW("x", "f", "2", AT("c") ",\"allow_other_workers\":true"), "\"x\""));
    assert_true(is_at(r, c, rare, "y") && is_at(r, c, job, "x"));
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = c.slot, .incarnation = c.incarnation};
    const struct mr_ws_run run[2] = {{.job = {rare}, .count = 1}, {.job = {job}, .count = 1}};
    const uint32_t index[2] = {0, 0}, attempt[2] = {1, 1};
    ev.refs = (struct mr_ws_refs){run, 2, index, attempt, 2};
    rig_step(r, &ev);
    rig_turn(r);
    assert_true(retried(r, rare) == 1 && retried(r, job) == 1);
    rig_done(r, a, busy, "p");
    assert_true(is_at(r, a, job, "x"));
    assert_int_equal(rig_state(r, rare, "y"), MR_TASK_READY);
    rig_done(r, a, job, "x");
    assert_int_equal(rig_state(r, rare, "y"), MR_TASK_READY);
    c = rig_join(r, &both);
    assert_true(is_at(r, c, rare, "y"));
}

/* ---- blame and its end ----------------------------------------------------------------------- */

static void after_three_crashes_the_error_says_how_often_and_where(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1"), "\"x\""));
    for (uint32_t i = 1; i <= 3; i++) {
        struct rig_worker a = join(r, i == 3 ? "last" : "a");
        assert_true(is_at(r, a, job, "x"));
        crash(r, a, job, KEYS("x"));
        assert_int_equal(retried(r, job), i < 3 ? i : 2);
    }
    struct mr_sched_error e = rig_task(r, job, "x").error;
    assert_true(mr_str_eq(e.message,
        MR_STR("the task was running each time when 3 workers died, the last one \"last\"")));
    assert_int_equal(e.code, 13);
    assert_int_equal(e.attempts, 3);
    assert_true(mr_str_eq(e.worker, MR_STR("last")));
}

/* When a task makes a value, the count of the crashes that are blamed on the task returns to 0. */
static void what_was_done_is_not_blamed_for_crashes_before(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    const struct rig_spec spec = {.name = "a", .node = "n", .slots = 1, .store = 0x51};
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1") "," T("y", "rare", "{\"ref\":\"x\"}"), "\"y\""));
    struct rig_worker a;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) {
            a = rig_join(r, &spec);
            assert_true(is_at(r, a, job, "x"));
            crash(r, a, job, KEYS("x"));
        }
        a = rig_join(r, &spec);
        rig_object_lost(r, 0x51, rig_done_object(r, a, job, "x"));
        assert_int_not_equal(rig_state(r, job, "x"), MR_TASK_ERRED);
        assert_false(rig_row(r, SAID_TASK, job, "x")->alone);
        crash(r, a, job, KEYS(NULL));
    }
    assert_int_equal(retried(r, job), 6);
}

/* A quarantined task runs beside a role, and their worker crashes. The role is suspected, but only
 * the quarantined task is blamed. */
static void a_role_beside_a_suspect_that_crashes_is_not_blamed(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a"), b;
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1"), "\"x\""));
    assert_true(is_at(r, a, job, "x"));
    b = join(r, "b");
    uint64_t roles = rig_submit(r, JOB(TW("u", "long", "1", AT("b")), "\"u\""));
    assert_true(is_at(r, b, roles, "u"));
    crash(r, a, job, KEYS("x"));
    assert_true(is_at(r, b, job, "x"));
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = b.slot, .incarnation = b.incarnation};
    const struct mr_ws_run run[2] = {{.job = {job}, .count = 1}, {.job = {roles}, .count = 1}};
    const uint32_t index[2] = {0, 0}, attempt[2] = {2, 1};
    ev.refs = (struct mr_ws_refs){run, 2, index, attempt, 2};
    rig_step(r, &ev);
    rig_turn(r);
    say(r, job, "x", "(crashes blamed on it: 2; 3 fail it): next it runs alone");
    say(r, roles, "u",
        "(crashes blamed on it: 0; 3 fail it): next it runs apart from other quarantined tasks\n");
    assert_true(retried(r, job) == 2 && retried(r, roles) == 1);
}

/* The report of the crash says that the suspect did not run. So each task that ran may have caused
 * the crash, and only these tasks are blamed. */
static void a_suspect_that_did_not_run_is_not_blamed(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a"), b;
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1"), "\"x\""));
    b = join(r, "b");
    uint64_t roles = rig_submit(r, JOB(TW("u", "long", "1", AT("b")), "\"u\""));
    crash(r, a, job, KEYS("x"));
    assert_true(is_at(r, b, job, "x"));
    crash(r, b, roles, KEYS("u"));
    say(r, job, "x", "(crashes blamed on it: 1; 3 fail it)");
    say(r, roles, "u", "(crashes blamed on it: 1; 3 fail it)");
}

/* Task y waited at a worker that crashed. Later, y's next worker is lost without a report of what
 * ran. Then y is suspected, in addition to the first tasks that were sent to the lost worker. */
static void what_was_near_a_crash_is_suspected_the_next_time(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t warm = rig_submit(r, JOB(T("w", "f", "1"), "\"w\""));
    rig_done(r, a, warm, "w");
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1"), "\"x\""));
    uint64_t near = rig_submit(r, JOB(T("y", "f", "2"), "\"y\""));
    uint64_t late = rig_submit(r, JOB(T("z", "f", "3"), "\"z\""));
    crash(r, a, job, KEYS("x"));
    assert_int_equal(retried(r, near), 0);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, late), MR_OK);
    uint64_t first =
        rig_submit(r, "{\"priority\":5,\"tasks\":{\"z\":{\"op\":\"f\",\"args\":[4]}}}");
    uint64_t last = rig_submit(r, JOB(T("v", "f", "5"), "\"v\""));
    a = join(r, "a");
    assert_true(is_at(r, a, first, "z") && is_at(r, a, near, "y") && is_at(r, a, last, "v"));
    rig_pass(r, r->c.lease + MR_SECOND);
    assert_int_equal(retried(r, first), 1);
    assert_int_equal(retried(r, near), 1);
    assert_int_equal(retried(r, last), 0);
}

/* After its probation a long-running task is no more suspect than any other. */
static void what_was_cleared_is_suspected_only_as_others_are(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, JOB(T("x", "long", "1"), "\"x\""));
    crash(r, a, job, KEYS("x"));
    uint64_t other =
        rig_submit(r, "{\"priority\":5,\"tasks\":{\"u\":{\"op\":\"long\",\"args\":[2]}}}");
    struct rig_worker b = join(r, "b");
    assert_true(is_at(r, b, other, "u") && is_at(r, b, job, "x"));
    rig_tell(r, b, TOLD_STARTED, job, "x");
    rig_pass(r, r->c.probation);
    rig_heartbeat(r, b);
    rig_tell(r, b, TOLD_GIVEN, job, "x");
    assert_true(is_at(r, b, job, "x"));
    rig_close(r, b);
    /* Nobody reports what ran. So one task is suspected, because the worker has one slot. */
    rig_pass(r, r->c.lease);
    assert_int_equal(retried(r, other) + retried(r, job), 2);
}

/* Probation lasts exactly its time: a base time at first, eight times as long the second time, 64
 * times as long from the third time on. */
static void probation_grows_by_eight_up_to_the_third_time(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(r, TWO);
    struct rig_worker a = join(r, "a");
    mr_duration time = r->c.probation;
    for (int i = 0; i < 5; i++) {
        crash(r, a, job, KEYS("x", "y"));
        a = join(r, "a");
        for (int k = 0; k < 2; k++) {
            bool is_x = k ? !is_at(r, a, job, "y") ||
                                rig_task(r, job, "x").sent > rig_task(r, job, "y").sent
                          : is_at(r, a, job, "x");
            if (!k) assert_true(is_at(r, a, job, "x") != is_at(r, a, job, "y"));
            rig_tell(r, a, TOLD_STARTED, job, is_x ? "x" : "y");
            mr_time end = r->now + time;
            while (end - r->now > r->c.lease / 2) {
                rig_pass(r, r->c.lease / 2 - 1);
                rig_heartbeat(r, a);
            }
            rig_pass(r, end - r->now - 1);
            rig_heartbeat(r, a);
            if (!k) assert_true(is_at(r, a, job, "x") != is_at(r, a, job, "y"));
            rig_pass(r, 1);
            rig_heartbeat(r, a);
            assert_true(is_at(r, a, job, "x") && is_at(r, a, job, "y"));
        }
        if (i < 2) time *= 8;
    }
    assert_int_equal(time, 64 * r->c.probation);
}

/* The parent waits for a job that it submitted. Its probation begins when it gives its slot back.
 */
static void probation_of_a_parent_begins_when_it_leaves_its_slot(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, JOB(T("parent", "f", "1"), "\"parent\""));
    crash(r, a, job, KEYS("parent"));
    a = join(r, "a");
    rig_tell(r, a, TOLD_STARTED, job, "parent");
    rig_pass(r, r->c.probation - MR_SECOND / 2);
    rig_tell(r, a, TOLD_LEFT_SLOT, job, "parent");
    struct rig_worker b = join(r, "b");
    uint64_t next =
        rig_submit(r, JOB(TW("y", "f", "2", AT("b") ",\"allow_other_workers\":true"), "\"y\""));
    assert_true(is_at(r, b, next, "y"));
    crash(r, b, next, KEYS("y")); /* y waits for a worker that has no other suspect */
    assert_int_equal(rig_state(r, next, "y"), MR_TASK_READY);
    rig_pass(r, r->c.probation - 1);
    rig_heartbeat(r, a);
    assert_int_equal(rig_state(r, next, "y"), MR_TASK_READY);
    rig_pass(r, 1);
    /* The probation's time is over, so any message of the worker ends the probation. The core then
     * asks for a turn at once. */
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_MESSAGE, .slot = a.slot, .incarnation = a.incarnation};
    rig_step(r, &ev);
    assert_int_equal(mr_sched_deadline(r->s), r->now);
    rig_turn(r);
    assert_true(is_at(r, a, next, "y"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(the_least_loaded_worker_is_kept_free_for_a_suspect),
        RIG_TEST(a_suspect_goes_to_a_worker_that_is_empty_before_the_one_kept_free),
        RIG_TEST(a_worker_is_not_kept_free_for_a_suspect_that_is_cancelled),
        RIG_TEST(suspects_wait_for_any_number_of_turns),
        RIG_TEST(a_worker_stays_kept_free_when_another_goes),
        RIG_TEST(another_worker_is_kept_free_when_the_first_goes),
        RIG_TEST(a_suspect_does_not_go_to_a_free_worker_without_its_op),
        RIG_TEST(after_three_crashes_the_error_says_how_often_and_where),
        RIG_TEST(what_was_done_is_not_blamed_for_crashes_before),
        RIG_TEST(a_role_beside_a_suspect_that_crashes_is_not_blamed),
        RIG_TEST(a_suspect_that_did_not_run_is_not_blamed),
        RIG_TEST(what_was_near_a_crash_is_suspected_the_next_time),
        RIG_TEST(what_was_cleared_is_suspected_only_as_others_are),
        RIG_TEST(probation_grows_by_eight_up_to_the_third_time),
        RIG_TEST(probation_of_a_parent_begins_when_it_leaves_its_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
