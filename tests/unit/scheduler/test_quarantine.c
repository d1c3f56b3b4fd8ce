/* The scheduler's core: which task crashed a worker, and how tasks in quarantine run again. Most
 * tests are about long-running tasks, such as the roles of a training. Such a task may never end,
 * and every worker may run several of these tasks. */
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

static void beat(struct rig *r)
{
    struct mr_sched_worker_info info;
    for (uint32_t slot = 0; slot < RIG_WORKERS; slot++) {
        if (!mr_sched_worker(r->s, slot, &info) || !info.is_connected) continue;
        const struct rig_worker w = {.slot = slot, .incarnation = info.incarnation};
        rig_heartbeat(r, w);
    }
}

/* Lets the task run for long enough to be cleared of suspicion. */
static void live(struct rig *r, struct rig_worker w, uint64_t job, const char *key)
{
    rig_tell(r, w, TOLD_STARTED, job, key);
    for (int i = 0; i < 5; i++) {
        rig_pass(r, r->c.probation / 4);
        beat(r);
    }
    rig_turn(r);
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_long_running_task_in_quarantine_runs_apart_from_others_not_alone(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a"), b, c;
    uint64_t job = rig_submit(r, TWO);
    b = join(r, "b");
    c = join(r, "c");
    uint64_t other = rig_submit(r, JOB(T("u", "long", "1") "," T("v", "long", "2"), "\"u\",\"v\""));
    assert_true(rig_attempt(r, b, other, "u") || rig_attempt(r, c, other, "u"));
    crash(r, a, job, KEYS("x", "y"));
    /* No worker is empty, so x and y go to different workers. */
    assert_true(is_at(r, b, job, "x") != is_at(r, c, job, "x"));
    assert_true(is_at(r, b, job, "y") == is_at(r, c, job, "x"));
    assert_true(is_at(r, c, job, "y") == is_at(r, b, job, "x"));
    assert_false(rig_row(r, SAID_TASK, job, "x")->alone);
}

static void a_long_running_task_is_cleared_after_a_while_and_the_next_one_starts(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, TWO);
    crash(r, a, job, KEYS("x", "y"));
    a = join(r, "a");
    /* The suspects run one after the other. */
    assert_true(is_at(r, a, job, "x") != is_at(r, a, job, "y"));
    const char *first = is_at(r, a, job, "x") ? "x" : "y";
    rig_pass(r, 2 * r->c.probation);
    rig_heartbeat(r, a); /* no report says that the quarantined task has started */
    assert_true(is_at(r, a, job, "x") != is_at(r, a, job, "y"));
    live(r, a, job, first);
    assert_true(is_at(r, a, job, "x") && is_at(r, a, job, "y"));
}

static void a_worker_that_was_not_heard_of_clears_no_task(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, TWO);
    crash(r, a, job, KEYS("x", "y"));
    a = join(r, "a");
    const char *first = is_at(r, a, job, "x") ? "x" : "y";
    const char *second = first[0] == 'x' ? "y" : "x";
    rig_tell(r, a, TOLD_STARTED, job, first);
    rig_pass(r, 2 * r->c.probation);
    assert_false(is_at(r, a, job, second));
    crash(r, a, job, KEYS(first));
    a = join(r, "a");
    crash(r, a, job, KEYS(is_at(r, a, job, "x") ? "x" : "y"));
    a = join(r, "a");
    crash(r, a, job, KEYS(is_at(r, a, job, "x") ? "x" : "y"));
    assert_true(rig_state(r, job, "x") == MR_TASK_ERRED || rig_state(r, job, "y") == MR_TASK_ERRED);
}

static void a_long_task_that_crashes_three_workers_is_blamed_and_none_beside_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w[3] = {join(r, "a"), {0}, {0}};
    uint64_t job =
        rig_submit(r, JOB(T("bad", "long", "1") "," T("u", "long", "2") "," T("v", "long", "3"),
                          "\"bad\",\"u\",\"v\""));
    w[1] = join(r, "b");
    w[2] = join(r, "c");
    for (int kills = 0; kills < 3; kills++) {
        assert_int_equal(rig_state(r, job, "bad"), MR_TASK_RUNNING);
        uint32_t at = 0;
        while (!is_at(r, w[at], job, "bad"))
            at++;
        const char *ran[4] = {"bad"};
        uint32_t n = 1;
        for (int i = 0; i < 2; i++)
            if (is_at(r, w[at], job, i ? "v" : "u")) ran[n++] = i ? "v" : "u";
        crash(r, w[at], job, ran);
        w[at] = join(r, at == 0 ? "a" : at == 1 ? "b" : "c");
        for (uint32_t i = 0; i < 3; i++)
            for (int k = 0; k < 2; k++)
                if (is_at(r, w[i], job, k ? "v" : "u")) live(r, w[i], job, k ? "v" : "u");
    }
    assert_int_equal(rig_state(r, job, "bad"), MR_TASK_ERRED);
    assert_int_equal(rig_state(r, job, "u"), MR_TASK_RUNNING);
    assert_int_equal(rig_state(r, job, "v"), MR_TASK_RUNNING);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_int_equal(info.error.code, 13);
    assert_non_null(memmem(info.error.message.p, info.error.message.n, "3 workers died", 14));
}

/* The trainer counts how often a session loses its roles, so the scheduler does not blame a role
 * that ran for long. */
static void a_role_that_lived_between_two_crashes_is_not_blamed(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job =
        rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"long\",\"retries\":1000}},\"targets\":[\"x\"]}");
    for (int i = 0; i < 20; i++) {
        struct rig_worker a = join(r, "a");
        live(r, a, job, "x");
        crash(r, a, job, KEYS("x"));
    }
    assert_int_not_equal(rig_state(r, job, "x"), MR_TASK_ERRED);
}

/* Lets all tasks at the worker run for `time`. */
static void live_for(struct rig *r, struct rig_worker w, uint64_t job, mr_duration time)
{
    for (mr_time end = r->now + time; r->now < end;) {
        for (int i = 0; i < 3; i++)
            if (is_at(r, w, job, &"u\0v\0x"[2 * i]))
                rig_tell(r, w, TOLD_STARTED, job, &"u\0v\0x"[2 * i]);
        rig_pass(r, MR_SECOND / 4);
        beat(r);
        rig_turn(r);
    }
}

/* Returns how often x crashed its worker before x was blamed. x crashes `late` after its start; u
 * and v run beside x whenever they can. */
static uint32_t crashes_until_blamed(mr_duration late)
{
    struct rig *r = rig_new();
    uint64_t job =
        rig_submit(r, JOB(T("u", "long", "1") "," T("x", "long", "2") "," T("v", "long", "3"),
                          "\"u\",\"v\",\"x\""));
    uint32_t deaths = 0;
    while (rig_state(r, job, "x") != MR_TASK_ERRED && deaths < 10) {
        struct rig_worker a = join(r, "a");
        for (int i = 0; i < 4000 && !is_at(r, a, job, "x"); i++)
            live_for(r, a, job, MR_SECOND / 4);
        assert_true(is_at(r, a, job, "x"));
        live_for(r, a, job, late);
        const char *ran[4] = {"x"};
        uint32_t n = 1;
        if (is_at(r, a, job, "u")) ran[n++] = "u";
        if (is_at(r, a, job, "v")) ran[n++] = "v";
        crash(r, a, job, ran);
        deaths++;
    }
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_ERRED);
    assert_int_not_equal(rig_state(r, job, "u"), MR_TASK_ERRED);
    assert_int_not_equal(rig_state(r, job, "v"), MR_TASK_ERRED);
    (void)rig_teardown(NULL);
    return deaths;
}

static void a_long_task_that_crashes_late_is_blamed_and_none_beside_it(void **state)
{
    (void)state;
    for (mr_duration late = 0; late < 126 * MR_SECOND; late += MR_MAX(late / 5, MR_SECOND / 2))
        assert_in_range(crashes_until_blamed(late), 3, 5);
}

static void a_quarantined_task_with_an_end_runs_beside_long_running_tasks(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a"), b;
    uint64_t job =
        rig_submit(r, JOB(T("short", "f", "1") "," T("next", "f", "2"), "\"short\",\"next\""));
    assert_int_equal(rig_attempt(r, a, job, "short"), 1);
    b = join(r, "b");
    rig_done(r, b, job, "next");
    uint64_t roles =
        rig_submit(r, "{\"tasks\":{\"u\":{\"op\":\"long\",\"args\":[1],\"workers\":[\"b\"],"
                      "\"allow_other_workers\":true}},\"targets\":[\"u\"]}");
    assert_true(is_at(r, b, roles, "u"));
    crash(r, a, job, KEYS("short"));
    assert_true(is_at(r, b, job, "short"));
    assert_true(rig_row(r, SAID_TASK, job, "short")->alone);
    const struct mr_ws_run run[2] = {{.job = {job}, .count = 1}, {.job = {roles}, .count = 1}};
    uint32_t index[2] = {rig_index(r, job, "short"), rig_index(r, roles, "u")};
    uint32_t attempt[2] = {2, 1};
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = b.slot, .incarnation = b.incarnation};
    ev.refs = (struct mr_ws_refs){run, 2, index, attempt, 2};
    /* The role runs beside the quarantined task each time the worker crashes. */
    for (int i = 0; i < 2; i++) {
        rig_step(r, &ev);
        rig_turn(r);
        b = join(r, "b");
        ev.slot = b.slot;
        ev.incarnation = b.incarnation;
        if (is_at(r, b, roles, "u")) live(r, b, roles, "u");
        attempt[0]++;
        attempt[1]++;
        if (i == 0) assert_true(is_at(r, b, job, "short"));
    }
    assert_int_equal(rig_state(r, job, "short"), MR_TASK_ERRED);
    assert_true(is_at(r, b, roles, "u"));
}

static void a_quarantined_task_that_waits_for_its_child_gives_it_room(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, JOB(T("parent", "f", "1"), "\"parent\""));
    crash(r, a, job, KEYS("parent"));
    a = join(r, "a");
    assert_true(rig_row(r, SAID_TASK, job, "parent")->alone);
    uint64_t child = rig_submit(r, JOB(T("c", "f", "1"), "\"c\""));
    assert_int_equal(rig_attempt(r, a, child, "c"), 0);
    rig_tell(r, a, TOLD_LEFT_SLOT, job, "parent");
    assert_int_equal(rig_attempt(r, a, child, "c"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_long_running_task_in_quarantine_runs_apart_from_others_not_alone),
        RIG_TEST(a_long_running_task_is_cleared_after_a_while_and_the_next_one_starts),
        RIG_TEST(a_worker_that_was_not_heard_of_clears_no_task),
        RIG_TEST(a_long_task_that_crashes_three_workers_is_blamed_and_none_beside_it),
        RIG_TEST(a_role_that_lived_between_two_crashes_is_not_blamed),
        RIG_TEST(a_long_task_that_crashes_late_is_blamed_and_none_beside_it),
        RIG_TEST(a_quarantined_task_with_an_end_runs_beside_long_running_tasks),
        RIG_TEST(a_quarantined_task_that_waits_for_its_child_gives_it_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
