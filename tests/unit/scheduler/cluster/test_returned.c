/* The scheduler's core: a worker registers again and reports what it has. The values that it has
 * and the tasks that it runs stay with it. What it does not report is made or sent again. */
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
#define AT_A ",\"workers\":[\"a\"]"
#define AT_B ",\"workers\":[\"b\"]"
/* Bytes of a value that is sent inline, not as an object. The cache of `with_small_cache` has 8
 * blocks of 32 bytes, so the cache has no room for such a value. */
#define LARGE 900

static const mr_object_id no_object = {0, 0};

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots, .store = store};
    return rig_join(r, &spec);
}

static struct rig *with_small_cache(void)
{
    struct mr_sched_config c;
    rig_config(&c);
    c.inline_blocks = 8;
    struct rig *r = rig_new_with(&c);
    /* This job takes the first task numbers, so that in the jobs of the tests a task's number
     * differs from its index. */
    (void)rig_submit(r, "{\"dsk\":{\"first\":1},\"targets\":[\"first\"]}");
    return r;
}

static struct mr_sched_worker_info worker_of(struct rig *r, struct rig_worker w)
{
    struct mr_sched_worker_info info;
    assert_true(mr_sched_worker(r->s, w.slot, &info));
    return info;
}

struct again { /* what a worker reports when it registers again */
    struct mr_ws_run held_run, queued_run;
    uint32_t held[8], held_attempt[8], bytes[8], queued[8], queued_attempt[8], objects;
    uint64_t maker[8], number[8], size[8];
    char text[4096];
    size_t text_bytes;
};

static void holds(
    struct rig *r, struct again *x, uint64_t job, const char *key, uint32_t attempt, uint32_t bytes)
{
    uint32_t at = x->held_run.count++;
    x->held_run.job.v = job;
    x->held[at] = rig_index(r, job, key);
    x->held_attempt[at] = attempt;
    x->bytes[at] = bytes;
    memset(x->text + x->text_bytes, key[0], bytes);
    x->text_bytes += bytes;
}

static void holds_object(
    struct rig *r, struct again *x, uint64_t job, const char *key, mr_object_id id)
{
    holds(r, x, job, key, 1, 0);
    x->maker[x->objects] = id.maker;
    x->number[x->objects] = id.number;
    x->size[x->objects++] = 100000;
}

static void queues(struct rig *r, struct again *x, uint64_t job, const char *key, uint32_t attempt)
{
    uint32_t at = x->queued_run.count++;
    x->queued_run.job.v = job;
    x->queued[at] = rig_index(r, job, key);
    x->queued_attempt[at] = attempt;
}

static struct rig_worker comes_again(
    struct rig *r, struct rig_worker w, const struct rig_spec *spec, const struct again *x)
{
    struct mr_ws_register more = {.incarnation = w.incarnation};
    more.holding = (struct mr_ws_completed){
        .tasks = {&x->held_run, 1, x->held, x->held_attempt, x->held_run.count},
        .inline_bytes = x->bytes,
        .inlined = mr_str_of(x->text, x->text_bytes),
        .object_maker = x->maker,
        .object_number = x->number,
        .object_bytes = x->size,
        .objects_count = x->objects};
    more.queued =
        (struct mr_ws_refs){&x->queued_run, 1, x->queued, x->queued_attempt, x->queued_run.count};
    return rig_join_as(r, spec, &more);
}

static const struct rig_spec a_spec = {.name = "a", .node = "a", .slots = 16};

static void a_worker_that_comes_again_keeps_what_it_has_and_runs(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 16, 0);
    uint64_t warm = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    rig_done(r, a, warm, "x");
    uint64_t job =
        rig_submit(r, JOB("\"lit\":{\"value\":[1,2]}," T("x", "f", "1", "") "," T("o", "f", "2",
                              "") "," T("p", "f", R("lit"), "") "," T("q", "f", R("x") "," R("lit"),
                              "") "," T("n", "f", R("p") "," R("lit"), "") "," T("u", "f", "3",
                              "") "," T("v", "f", "4", "") "," T("w", "f", "5", ""),
                          "\"x\",\"o\",\"q\",\"n\",\"u\",\"v\",\"w\""));
    rig_done(r, a, job, "x");
    mr_object_id o = rig_done_object(r, a, job, "o");
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 8);
    rig_close(r, a);
    assert_false(worker_of(r, a).is_connected);
    rig_forget_rows(r);
    struct again x = {0};
    holds(r, &x, job, "x", 1, 1);
    holds_object(r, &x, job, "o", o);
    queues(r, &x, job, "p", 1);
    queues(r, &x, job, "q", 1);
    queues(r, &x, job, "n", 1);
    queues(r, &x, job, "w", 9); /* attempt 9 was never sent */
    a = comes_again(r, a, &a_spec, &x);
    assert_true(worker_of(r, a).is_connected);
    static const char *const keys[] = {"x", "o", "p", "q", "n", "u", "v", "w"};
    for (uint32_t i = 0; i < 8; i++) {
        bool is_value = i < 2, is_kept = i >= 2 && i < 5;
        assert_int_equal(rig_count(r, SAID_ADOPT, a, job, keys[i]), is_value);
        assert_int_equal(rig_count(r, SAID_KEEP, a, job, keys[i]), is_kept);
        assert_int_equal(rig_count(r, SAID_TASK, a, job, keys[i]), i >= 5);
        assert_int_equal(rig_task(r, job, keys[i]).attempt, i >= 5 ? 2 : 1);
    }
    /* The tasks that the worker keeps may lack values that were sent while it was away: "lit" is
     * sent again. The worker has the values that it made itself. */
    assert_int_equal(rig_count(r, SAID_VALUE, a, job, "lit"), 1);
    assert_int_equal(rig_count(r, SAID_VALUE, a, job, "x"), 0);
    assert_int_equal(rig_count(r, SAID_VALUE, a, job, "p"), 0);
    for (uint32_t i = 2; i < 8; i++)
        rig_done_as(r, a, job, keys[i], i >= 5 ? 2 : 1, MR_OUTCOME_OK, no_object, 1, MR_MS);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* The worker lost some values and tasks between its two returns. It does not report them the second
 * time, so they are made and sent again. */
static void a_worker_that_comes_again_twice_is_compared_twice(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 16, 0);
    uint64_t job = rig_submit(
        r, JOB(T("x", "f", "1", "") "," T("y", "g", "2", "") "," T("u", "rare", R("x"), ""),
               "\"u\",\"y\""));
    (void)rig_done_object(r, a, job, "x"); /* no store is known for it, only the worker has it */
    struct again x = {0}, none = {0};
    holds_object(r, &x, job, "x", rig_value(r, job, "x", NULL).object);
    queues(r, &x, job, "y", 1);
    rig_close(r, a);
    a = comes_again(r, a, &a_spec, &x);
    assert_int_equal(rig_count(r, SAID_KEEP, a, job, "y"), 1);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    rig_close(r, a);
    a = comes_again(r, a, &a_spec, &none);
    assert_int_equal(rig_attempt(r, a, job, "y"), 2);
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
}

/* The scheduler has restarted and knows no object id of x, the input of y. The value of y refers to
 * the object of x, so y must run again after x. */
static void a_task_by_reference_is_not_kept_without_its_inputs(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 16, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "ref", R("x"), ""), "\"y\""));
    (void)rig_done_object(r, a, job, "x");
    assert_int_equal(rig_attempt(r, a, job, "y"), 1);
    rig_crash(r);
    struct again x = {0};
    queues(r, &x, job, "y", 1);
    a = comes_again(r, a, &a_spec, &x);
    assert_int_equal(rig_count(r, SAID_KEEP, a, job, "y"), 0);
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_WAITING);
    assert_int_equal(rig_attempt(r, a, job, "x"), 1);
}

static void what_was_sent_elsewhere_meanwhile_is_not_kept(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\""));
    const char *key = rig_attempt(r, a, job, "x") ? "x" : "y";
    struct rig_worker b = join(r, "b", 1, 0);
    const char *other = *key == 'x' ? "y" : "x";
    assert_int_equal(rig_attempt(r, b, job, other), 1);
    rig_close(r, a);
    struct again x = {0};
    queues(r, &x, job, other, 1); /* the attempt number is right, but this task was sent to b */
    queues(r, &x, job, key, 1);
    rig_forget_rows(r);
    a = comes_again(r, a, &a_spec, &x);
    assert_int_equal(rig_count(r, SAID_KEEP, a, job, other), 0);
    assert_int_equal(rig_count(r, SAID_KEEP, a, job, key), 1);
    assert_int_equal(rig_task(r, job, other).worker, b.slot);
}

static void values_that_it_has_no_more_are_made_again(void **state)
{
    (void)state;
    struct rig *r = with_small_cache();
    struct rig_worker a = join(r, "a", 16, 0);
    uint64_t job = rig_submit(
        r, JOB(T("s", "f", "0", "") "," T("x", "f", "1", "") "," T("y", "f", "2", "") "," T(
                   "o", "f", "3", "") "," T("k", "f", "4", "") "," T("u", "rare", R("s") "," R("x"),
                   "") "," T("v", "rare", R("y") "," R("o") "," R("k"), ""),
               "\"u\",\"v\""));
    rig_done(r, a, job, "s");
    rig_done_bytes(r, a, job, "x", LARGE);
    rig_done_bytes(r, a, job, "y", LARGE);
    (void)rig_done_object(r, a, job, "o"); /* no store is known for it, only the worker has it */
    rig_done_bytes(r, a, job, "k", LARGE);
    rig_close(r, a);
    struct again x = {0};
    holds(r, &x, job, "k", 1, LARGE);
    a = comes_again(r, a, &a_spec, &x);
    static const char *const keys[] = {"s", "x", "y", "o", "k"};
    for (uint32_t i = 0; i < 5; i++) {
        bool is_lost = i >= 1 && i < 4;
        assert_int_equal(rig_state(r, job, keys[i]), is_lost ? MR_TASK_RUNNING : MR_TASK_DONE);
        assert_int_equal(rig_task(r, job, keys[i]).attempt, is_lost ? 2 : 1);
    }
    /* the scheduler's cache has the bytes of "s" */
    assert_int_equal(rig_value(r, job, "s", NULL).worker, UINT32_MAX);
    assert_int_equal(rig_value(r, job, "s", NULL).kind, MR_SCHED_VALUE_INLINE);
    assert_int_equal(rig_value(r, job, "k", NULL).worker, a.slot);
}

static void a_value_that_others_wait_for_is_asked_for_again(void **state)
{
    (void)state;
    struct rig *r = with_small_cache();
    struct rig_worker a = join(r, "a", 16, 0), b = join(r, "b", 4, 0);
    uint64_t job =
        rig_submit(r, JOB(T("p", "f", "0", AT_B) "," T("x", "f", "1", AT_A) "," T("y", "f", "2",
                              AT_A) "," T("u", "rare", R("p") "," R("x") "," R("y"), "") "," T("v",
                              "f", R("x") ",1", AT_A) "," T("w", "g", R("x") ",2", AT_B),
                          "\"p\",\"u\",\"v\",\"w\""));
    rig_done_bytes(r, a, job, "x", LARGE);
    rig_done_bytes(r, a, job, "y", LARGE);
    assert_int_equal(rig_attempt(r, b, job, "w"), 1);
    assert_int_equal(rig_count(r, SAID_FETCH, a, job, NULL), 1);
    rig_close(r, a); /* the worker did not get the question for the bytes */
    rig_forget_rows(r);
    struct again x = {0};
    holds(r, &x, job, "x", 1, LARGE);
    holds(r, &x, job, "y", 1, LARGE);
    queues(r, &x, job, "v", 1);
    a = comes_again(r, a, &a_spec, &x);
    assert_int_equal(rig_count(r, SAID_FETCH, a, job, "x"), 1);
    /* No task that was sent needs "y". */
    assert_int_equal(rig_count(r, SAID_FETCH, a, job, "y"), 0);
    rig_done_as(r, a, job, "x", 1, MR_OUTCOME_OK, no_object, LARGE, MR_MS);
    assert_int_equal(rig_count(r, SAID_VALUE, b, job, "x"), 1);
}

/* Worker b returns with an object that worker a has too, and with a value of an attempt that was
 * never sent. It may keep the object and has to drop the value. */
static void only_the_value_that_counts_is_adopted(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "a");
    struct rig_worker a = join(r, "a", 4, 0x51), b = join(r, "b", 4, 0x51);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", AT_A) "," T("o", "f", "2", AT_A) "," T(
                                         "u", "rare", R("x") "," R("o"), ""),
                                     "\"u\""));
    rig_done(r, a, job, "x");
    mr_object_id o = rig_done_object(r, a, job, "o");
    rig_close(r, b);
    struct again x = {0};
    holds(r, &x, job, "x", 5, 1); /* attempt 5 was never sent */
    holds_object(r, &x, job, "o", o);
    const struct rig_spec spec = {.name = "b", .node = "b", .slots = 4, .store = 0x51};
    b = comes_again(r, b, &spec, &x);
    assert_int_equal(rig_count(r, SAID_ADOPT, b, job, "x"), 0);
    assert_int_equal(rig_count(r, SAID_ADOPT, b, job, "o"), 1);
    assert_int_equal(rig_value(r, job, "x", NULL).worker, a.slot);
    /* The scheduler's table still names worker a as the one that has the value. */
    assert_int_equal(rig_value(r, job, "o", NULL).worker, a.slot);
    assert_true(mr_object_id_eq(rig_value(r, job, "o", NULL).object, o));
}

/* The journal names the value and not the worker that has it. */
static void after_a_restart_a_worker_keeps_the_values_that_the_journal_has(void **state)
{
    (void)state;
    for (int with_room = 0; with_room < 2; with_room++) {
        struct rig *r = with_room ? rig_new() : with_small_cache();
        struct rig_worker a = join(r, "a", 4, 0);
        uint64_t job =
            rig_submit(r, JOB(T("w", "f", "0", "") "," T("x", "f", "1", ""), "\"w\",\"x\""));
        rig_done(r, a, job, "w");
        rig_done_bytes(r, a, job, "x", LARGE);
        assert_int_equal(rig_job(r, job), MR_JOB_DONE);
        rig_crash(r);
        assert_int_equal(rig_value(r, job, "x", NULL).worker, UINT32_MAX);
        assert_int_equal(rig_state(r, job, "x"), with_room ? MR_TASK_DONE : MR_TASK_RELEASED);
        struct again x = {0};
        holds(r, &x, job, "w", 3, 1); /* the journal has the value of attempt 3 */
        holds(r, &x, job, "x", 3, LARGE);
        a = comes_again(r, a, &a_spec, &x);
        assert_int_equal(rig_count(r, SAID_ADOPT, a, job, "w"), 1);
        assert_int_equal(rig_count(r, SAID_ADOPT, a, job, "x"), 1);
        assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
        assert_int_equal(rig_value(r, job, "x", NULL).worker, a.slot);
        assert_int_equal(rig_value(r, job, "w", NULL).worker, a.slot);
        assert_int_equal(rig_value(r, job, "x", NULL).kind,
            with_room ? MR_SCHED_VALUE_INLINE : MR_SCHED_VALUE_AWAY);
        assert_int_equal(rig_job(r, job), MR_JOB_DONE);
        /* the worker was told to keep the values, so it has to be told when they may go */
        assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
        assert_int_equal(rig_count(r, SAID_RELEASE, a, job, NULL), 2);
        for (uint32_t i = 0; i < r->rows_count; i++)
            if (r->rows[i].said == SAID_RELEASE) assert_int_equal(r->rows[i].attempt, 3);
        (void)rig_teardown(state);
    }
}

static void after_a_restart_attempts_go_on_where_the_worker_is(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 4, 0), b = join(r, "b", 4, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", AT_A) "," T("y", "f", "2", AT_A) "," T(
                                         "z", "f", R("y"), AT_A) "," T("w", "g", "3", AT_B),
                                     "\"x\",\"z\",\"w\""));
    rig_crash(r);
    assert_int_equal(rig_task(r, job, "y").attempt, 0);
    struct again x = {0};
    holds(r, &x, job, "x", 2, 1);
    queues(r, &x, job, "y", 3);
    queues(r, &x, job, "z", 4);
    a = comes_again(r, a, &a_spec, &x);
    assert_int_equal(rig_count(r, SAID_ADOPT, a, job, "x"), 1);
    assert_int_equal(rig_task(r, job, "x").attempt, 2);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    assert_int_equal(rig_task(r, job, "y").attempt, 3);
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_RUNNING);
    assert_int_equal(rig_task(r, job, "z").attempt, 4);
    assert_true(rig_task(r, job, "z").is_sent);
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_true(t.is_recovering); /* worker b has not returned yet */
    assert_int_equal(rig_state(r, job, "w"), MR_TASK_READY);
    static const struct rig_spec b_spec = {.name = "b", .node = "b", .slots = 4};
    const struct again none = {0};
    b = comes_again(r, b, &b_spec, &none);
    mr_sched_totals(r->s, &t);
    assert_false(t.is_recovering);
    assert_int_equal(rig_attempt(r, b, job, "w"), 1);
    rig_done_as(r, a, job, "y", 3, MR_OUTCOME_OK, no_object, 1, MR_MS);
    rig_done_as(r, a, job, "z", 4, MR_OUTCOME_OK, no_object, 1, MR_MS);
    rig_done(r, b, job, "w");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void a_worker_that_retires_is_told_again_when_it_comes_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_RETIRE, .slot = a.slot, .incarnation = a.incarnation};
    rig_step(r, &ev);
    rig_close(r, a); /* worker a has a task, so it may return */
    struct again x = {0};
    queues(r, &x, job, "x", 1);
    rig_step(r, &ev); /* worker a retires already, so the event changes nothing */
    a = comes_again(r, a, &a_spec, &x);
    assert_true(r->last.was_drained);
    rig_done(r, a, job, "x");
    struct mr_sched_worker_info info;
    rig_close(r, a);
    assert_false(mr_sched_worker(r->s, a.slot, &info));
}

static void its_clock_is_read_anew(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    const struct mr_ws_heartbeat ahead = {.time_ns = r->now + 300 * MR_MS};
    struct mr_ws_up m = {.heartbeat = &ahead};
    rig_message(r, a, &m);
    rig_close(r, a);
    const struct again none = {0};
    a = comes_again(r, a, &a_spec, &none);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    rig_pass(r, MR_SECOND);
    rig_done(r, a, job, "x");
    const struct mr_sched_span *s = (const void *)r->spans.p;
    assert_int_equal(s[r->spans.n / sizeof *s - 1].job.v, job);
    assert_int_equal(s[r->spans.n / sizeof *s - 1].started, r->now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_worker_that_comes_again_keeps_what_it_has_and_runs),
        RIG_TEST(a_worker_that_comes_again_twice_is_compared_twice),
        RIG_TEST(a_task_by_reference_is_not_kept_without_its_inputs),
        RIG_TEST(what_was_sent_elsewhere_meanwhile_is_not_kept),
        RIG_TEST(values_that_it_has_no_more_are_made_again),
        RIG_TEST(a_value_that_others_wait_for_is_asked_for_again),
        RIG_TEST(only_the_value_that_counts_is_adopted),
        RIG_TEST(after_a_restart_a_worker_keeps_the_values_that_the_journal_has),
        RIG_TEST(after_a_restart_attempts_go_on_where_the_worker_is),
        RIG_TEST(a_worker_that_retires_is_told_again_when_it_comes_again),
        RIG_TEST(its_clock_is_read_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
