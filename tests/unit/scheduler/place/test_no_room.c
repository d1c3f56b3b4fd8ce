/* The scheduler's core: tasks that find no room in memory. The tests check the error texts, which
 * node is kept free for such a task, and how long the task waits for other processes of that node
 * to stop. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define JOB(op)                                                                                    \
    "{\"tasks\":{\"x\":{\"op\":\"f\"},\"t\":{\"op\":\"" op "\",\"args\":[{\"ref\":\"x\"}]}}}"
#define OTHER "{\"tasks\":{\"q\":{\"op\":\"f\",\"args\":[4]}}}"
#define TWO_OTHERS                                                                                 \
    "{\"tasks\":{\"p\":{\"op\":\"f\",\"args\":[3]},\"q\":{\"op\":\"f\",\"args\":[4]}}}"

static struct rig_worker join(struct rig *r, const char *name, const char *node, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = node, .slots = 2, .store = store};
    return rig_join(r, &spec);
}

static void no_room(struct rig *r, struct rig_worker w, uint64_t job)
{
    rig_end(r, w, job, "t", MR_OUTCOME_NO_ROOM);
}

static void live(struct rig *r, struct rig_worker a, struct rig_worker b, mr_duration time)
{
    for (mr_time until = r->now + time; r->now < until;) {
        rig_pass(r, MR_MIN(MR_SECOND, until - r->now));
        rig_heartbeat(r, a);
        rig_heartbeat(r, b);
    }
}

static void say(struct rig *r, uint64_t job, const char *expected)
{
    struct mr_buf lines;
    mr_buf_init(&lines, 1 << 16);
    assert_true(mr_sched_explain(r->s, (mr_job_id){job}, rig_index(r, job, "t"), &lines));
    mr_buf_add(&lines, "", 1);
    if (!strstr((const char *)lines.p, expected))
        fail_msg("\"%s\" does not say \"%s\"", (const char *)lines.p, expected);
    mr_buf_fini(&lines);
}

/* Task t finds no room twice. So it has to run alone, and waits until q, which runs on the same
 * node, has ended. Returns t's job. */
static uint64_t refused_twice(struct rig *r, struct rig_worker w, const char *beside, uint64_t *q)
{
    uint64_t job = rig_submit(r, JOB("g"));
    (void)rig_done_object(r, w, job, "x");
    *q = rig_submit(r, beside);
    assert_int_equal(rig_attempt(r, w, *q, "q"), 1);
    no_room(r, w, job);
    no_room(r, w, job);
    assert_int_equal(rig_attempt(r, w, job, "t"), 2);
    return job;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void fails_with(struct rig *r, uint64_t job, const char *expected)
{
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    struct mr_sched_error e = rig_task(r, job, "t").error;
    assert_int_equal(e.code, 8);
    assert_true(mr_str_eq(e.worker, MR_STR("a")));
    if (!mr_str_eq(e.message, mr_str(expected)))
        fail_msg("\"%.*s\" is not \"%s\"", MR_STR_ARG(e.message), expected);
}

static void a_task_that_does_not_fit_alone_fails_with_the_numbers(void **state)
{
    (void)state;
    static const char *const says[] = {
        "\"t\" needs more memory at once than there is: its inputs are 97.7 KiB, and it went wrong, "
        "though nothing else ran on its node; the object store of node \"n\" has 1.0 GiB: give it "
        "more (--memory), or make the parts smaller",
        /* the value of t refers to its inputs, so t does not read them */
        "\"t\" needs more memory at once than there is: its inputs are 0 B, and it went wrong, "
        "though nothing else ran on its node; the object store of node \"n\" has 1.0 GiB: give it "
        "more (--memory), or make the parts smaller"};
    for (int i = 0; i < 2; i++) {
        struct rig *r = rig_new();
        rig_store(r, 0x51, "n");
        struct rig_worker a = join(r, "a", "n", 0x51);
        uint64_t job = rig_submit(r, i ? JOB("ref") : JOB("g"));
        (void)rig_done_object(r, a, job, "x");
        for (int k = 0; k < 4; k++) {
            assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
            no_room(r, a, job);
        }
        fails_with(r, job, says[i]);
        const struct mr_sched_span *s = (const void *)r->spans.p;
        uint32_t spans = 0;
        for (size_t k = 0; k < r->spans.n / sizeof *s; k++)
            spans += s[k].job.v == job && s[k].outcome == MR_OUTCOME_NO_ROOM;
        assert_int_equal(spans, 4);
        (void)rig_teardown(state);
    }
}

static void a_task_whose_inputs_are_larger_than_the_memory_fails_at_once(void **state)
{
    (void)state;
    for (uint64_t memory = 99999; memory <= 100000; memory++) {
        struct rig *r = rig_new();
        r->store_memory = memory;
        rig_store(r, 0x51, "n");
        struct rig_worker a = join(r, "a", "n", 0x51);
        uint64_t job = rig_submit(r, JOB("g"));
        (void)rig_done_object(r, a, job, "x");
        struct mr_sched_event ev = {.type = MR_SCHED_STORE_HEARD};
        ev.store = (struct mr_sched_store){.store = 0x51, .disk_full = MR_STR("/spill")};
        /* The error does not name the full disk, because a larger disk would not help. */
        rig_step(r, &ev);
        no_room(r, a, job);
        if (memory < 100000)
            fails_with(r, job,
                "\"t\" needs more memory at once than there is: its inputs are 97.7 KiB, and it "
                "went wrong; the object store of node \"n\" has 97.7 KiB: give it more (--memory), "
                "or make the parts smaller");
        else
            assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
        (void)rig_teardown(state);
    }
}

/* The error names the store's directory; up to 127 bytes of its name are kept. */
static void a_full_disk_is_named_as_long_as_it_is_full(void **state)
{
    (void)state;
    char directory[200], text[1024];
    memset(directory, 'd', sizeof directory);
    for (int is_full = 0; is_full < 2; is_full++) {
        struct rig *r = rig_new();
        rig_store(r, 0x51, "n");
        struct rig_worker a = join(r, "a", "n", 0x51);
        uint64_t job = rig_submit(r, JOB("g"));
        (void)rig_done_object(r, a, job, "x");
        struct mr_sched_event ev = {.type = MR_SCHED_STORE_HEARD};
        ev.store = (struct mr_sched_store){
            .store = 0x51, .disk_full = mr_str_of(directory, sizeof directory)};
        rig_step(r, &ev);
        ev.store.disk_full = MR_STR("");
        if (!is_full) rig_step(r, &ev);
        for (int k = 0; k < 4; k++)
            no_room(r, a, job);
        (void)snprintf(text, sizeof text,
            "\"t\" found no space left on %.127s of node \"n\": its inputs are 97.7 KiB, and it "
            "went wrong; the object store's memory is 1.0 GiB, and what does not fit is written "
            "there: make space, or give the store more memory (--memory)",
            directory);
        if (is_full)
            fails_with(r, job, text);
        else
            assert_non_null(memmem(
                rig_task(r, job, "t").error.message.p, 30, "\"t\" needs more memory at once", 29));
        (void)rig_teardown(state);
    }
}

static void each_refusal_is_explained(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t job = rig_submit(r, JOB("g"));
    (void)rig_done_object(r, a, job, "x");
    uint64_t other = rig_submit(r, OTHER);
    no_room(r, a, job);
    say(r, job, "it released its inputs and is tried again\n");
    no_room(r, a, job);
    say(r, job, "it runs next with nothing else on its node\n");
    rig_done(r, a, other, "q");
    say(r, job, "nothing else is sent to its node meanwhile: beside other tasks it found no room");
}

/* ---- the node that is kept free -------------------------------------------------------------- */

static void workers_that_join_the_node_get_nothing_while_it_is_kept_free(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    rig_store(r, 0x52, "m");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t other, job = refused_twice(r, a, OTHER, &other);
    rig_done(r, a, other, "q");
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
    struct rig_worker b = join(r, "b", "n", 0x51), c = join(r, "c", "m", 0x52);
    uint64_t jobs[3];
    for (int i = 0; i < 3; i++) {
        char json[128];
        (void)snprintf(json, sizeof json,
            "{\"tasks\":{\"q\":{\"op\":\"f\",\"args\":[%d],\"workers\":[\"%c\"]}}}", i, 'a' + i);
        jobs[i] = rig_submit(r, json);
    }
    assert_int_equal(rig_attempt(r, a, jobs[0], "q") + rig_attempt(r, b, jobs[1], "q"), 0);
    assert_int_equal(rig_attempt(r, c, jobs[2], "q"), 1); /* worker c is on another node */
    rig_done(r, a, job, "t");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(rig_attempt(r, a, jobs[0], "q") + rig_attempt(r, b, jobs[1], "q"), 2);
}

static void a_node_is_not_kept_free_for_a_task_that_is_cancelled(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t other, job = refused_twice(r, a, OTHER, &other);
    uint64_t more = rig_submit(r, OTHER);
    assert_int_equal(rig_attempt(r, a, more, "q"), 0);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_attempt(r, a, more, "q"), 1);
}

static void the_node_with_the_most_memory_is_kept_free(void **state)
{
    (void)state;
    for (int is_second = 0; is_second < 2; is_second++) {
        struct rig *r = rig_new();
        rig_store(r, 0x50, "l");
        r->store_memory = (uint64_t)(is_second ? 1 : 3) << 30;
        rig_store(r, 0x51, "n");
        r->store_memory = (uint64_t)2 << 30;
        rig_store(r, 0x52, "m");
        struct rig_worker a = join(r, "a", "n", 0x51);
        uint64_t other, job = refused_twice(r, a, OTHER, &other);
        struct rig_worker b = join(r, "b", "m", 0x52);
        if (!is_second) rig_done(r, a, other, "q");
        assert_int_equal(rig_attempt(r, is_second ? b : a, job, "t"), 3);
        (void)rig_teardown(state);
    }
}

static void what_was_told_to_stop_and_is_given_back_has_stopped(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    const struct rig_spec spec = {.name = "a", .node = "n", .slots = 4, .store = 0x51};
    struct rig_worker a = rig_join(r, &spec);
    uint64_t other, job = refused_twice(r, a, TWO_OTHERS, &other);
    assert_int_equal(rig_count(r, SAID_TASK, a, other, NULL), 2);
    (void)rig_ask(r, MR_SCHED_CANCEL, other);
    const struct mr_ws_run run = {.job = {other}, .count = 1};
    const uint32_t index[2] = {0, 1}, attempt[2] = {1, 1};
    struct mr_ws_up m = {.given = {&run, 1, index, attempt, 1}};
    rig_message(r, a, &m);
    rig_heartbeat(r, a);
    assert_int_equal(rig_attempt(r, a, job, "t"), 2);
    m.given = (struct mr_ws_refs){&run, 1, index + 1, attempt, 1};
    rig_message(r, a, &m);
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
}

static void what_a_worker_that_comes_again_does_not_run_has_stopped(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t other, job = refused_twice(r, a, OTHER, &other);
    mr_object_id x = rig_value(r, job, "x", NULL).object;
    (void)rig_ask(r, MR_SCHED_CANCEL, other);
    rig_close(r, a);
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    const uint32_t index = rig_index(r, job, "x"), one = 1;
    const uint64_t size = 100000;
    const struct rig_spec spec = {.name = "a", .node = "n", .slots = 2, .store = 0x51};
    struct mr_ws_register more = {.incarnation = a.incarnation};
    more.holding = (struct mr_ws_completed){.tasks = {&run, 1, &index, &one, 1},
        .object_maker = &x.maker,
        .object_number = &x.number,
        .object_bytes = &size,
        .objects_count = 1};
    a = rig_join_as(r, &spec, &more);
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
}

/* A cancelled task is told to stop. After three seconds its worker has killed the task's process.
 */
static void what_does_not_stop_is_waited_for_three_seconds(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t other, job = refused_twice(r, a, OTHER, &other);
    (void)rig_ask(r, MR_SCHED_CANCEL, other);
    rig_pass(r, 3 * MR_SECOND - 1);
    rig_heartbeat(r, a);
    assert_int_equal(rig_attempt(r, a, job, "t"), 2);
    rig_pass(r, 1);
    rig_heartbeat(r, a);
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
}

/* Two tasks are cancelled, the second one four seconds after the first. Task t waits only until the
 * second one has stopped. The first one counts as ended, though the worker did not report this. */
static void what_did_not_stop_long_ago_does_not_count(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    uint64_t first = rig_submit(r, OTHER);
    assert_int_equal(rig_attempt(r, a, first, "q"), 1);
    (void)rig_ask(r, MR_SCHED_CANCEL, first);
    live(r, a, a, 4 * MR_SECOND);
    uint64_t other, job = refused_twice(r, a, OTHER, &other);
    (void)rig_ask(r, MR_SCHED_CANCEL, other);
    assert_int_equal(rig_attempt(r, a, job, "t"), 2);
    /* When the worker reports that the task has stopped, the core wants a tick in the same turn. */
    const struct mr_ws_run run = {.job = {other}, .count = 1};
    const uint32_t index = 0, one = 1, outcome = MR_OUTCOME_CANCELLED;
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_MESSAGE, .slot = a.slot, .incarnation = a.incarnation};
    ev.message.completed =
        (struct mr_ws_completed){.tasks = {&run, 1, &index, &one, 1}, .outcome = &outcome};
    rig_step(r, &ev);
    assert_int_equal(mr_sched_deadline(r->s), r->now);
    rig_turn(r);
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
}

/* Task t finds no room in its last attempt, in which t should run alone on its node. Task w1 waits
 * there for its input, which worker c computes again. If w1 starts during that attempt of t, t was
 * not alone and does not fail yet. */
static void an_attempt_beside_which_another_task_started_is_no_verdict(void **state)
{
    (void)state;
    for (int starts = 0; starts < 2; starts++) {
        struct rig *r = rig_new();
        rig_store(r, 0x51, "n");
        rig_store(r, 0x52, "m");
        struct rig_worker a = join(r, "a", "n", 0x51), c = join(r, "c", "m", 0x52);
        uint64_t waits = rig_submit(r,
            "{\"tasks\":{\"w0\":{\"op\":\"f\",\"workers\":[\"c\"]},\"w1\":{\"op\":\"h\",\"args\":"
            "[{\"ref\":\"w0\"}],\"workers\":[\"a\"]}}}");
        mr_object_id w0 = rig_done_object(r, c, waits, "w0");
        assert_int_equal(rig_attempt(r, a, waits, "w1"), 1);
        rig_object_lost(r, 0x52, w0);
        assert_int_equal(rig_state(r, waits, "w1"), MR_TASK_WAITING);
        uint64_t job =
            rig_submit(r, "{\"tasks\":{\"t\":{\"op\":\"g\",\"args\":[1],\"workers\":[\"a\"]}}}");
        for (int i = 0; i < 3; i++)
            no_room(r, a, job);
        assert_int_equal(rig_attempt(r, a, job, "t"), 4); /* the last attempt, which runs alone */
        if (starts) (void)rig_done_object(r, c, waits, "w0");
        assert_int_equal(rig_state(r, waits, "w1"), starts ? MR_TASK_RUNNING : MR_TASK_WAITING);
        no_room(r, a, job);
        assert_int_equal(rig_job(r, job), starts ? MR_JOB_RUNNING : MR_JOB_FAILED);
        (void)rig_teardown(state);
    }
}

static void both_rows_of_what_is_given_back_count(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    const struct rig_spec spec = {.name = "a", .node = "n", .slots = 4, .store = 0x51};
    struct rig_worker a = rig_join(r, &spec);
    uint64_t other, job = refused_twice(r, a, TWO_OTHERS, &other);
    (void)rig_ask(r, MR_SCHED_CANCEL, other);
    const struct mr_ws_run both = {.job = {other}, .count = 2};
    const uint32_t index[2] = {0, 1}, attempt[2] = {1, 1};
    struct mr_ws_up m = {.given = {&both, 1, index, attempt, 2}};
    rig_message(r, a, &m);
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
}

/* ---- other processes of the node ------------------------------------------------------------- */

/* The core sends a task's last attempt only if it got a message from each worker of the node in the
 * last half of a lease. */
static void a_worker_that_was_not_heard_for_half_a_lease_may_have_memory(void **state)
{
    (void)state;
    for (int is_late = 0; is_late < 2; is_late++) {
        struct rig *r = rig_new();
        rig_store(r, 0x51, "n");
        struct rig_worker a = join(r, "a", "n", 0x51), b = join(r, "b", "n", 0x51);
        uint64_t job = rig_submit(r, JOB("g"));
        struct rig_worker w = rig_attempt(r, a, job, "x") ? a : b, v = w.slot == a.slot ? b : a;
        (void)rig_done_object(r, w, job, "x");
        for (uint32_t i = 1; i <= 2; i++) {
            struct rig_worker at = rig_attempt(r, w, job, "t") == i ? w : v;
            no_room(r, at, job);
        }
        struct rig_worker at = rig_attempt(r, w, job, "t") == 3 ? w : v;
        struct rig_worker silent = at.slot == w.slot ? v : w;
        rig_heartbeat(r, silent);
        rig_pass(r, r->c.lease / 2 + (mr_duration)is_late);
        rig_heartbeat(r, at);
        no_room(r, at, job);
        uint32_t last = MR_MAX(rig_attempt(r, a, job, "t"), rig_attempt(r, b, job, "t"));
        assert_int_equal(last, is_late ? 3 : 4);
        rig_heartbeat(r, silent);
        last = MR_MAX(rig_attempt(r, a, job, "t"), rig_attempt(r, b, job, "t"));
        assert_int_equal(last, 4);
        (void)rig_teardown(state);
    }
}

/* Submits t, which finds no room at `a` three times. The third time no other task runs there. The
 * core sends the last attempt only if no lost worker may still have memory on the node. */
static uint64_t refused_alone(struct rig *r, struct rig_worker a)
{
    uint64_t other, job = refused_twice(r, a, OTHER, &other);
    rig_done(r, a, other, "q");
    assert_int_equal(rig_attempt(r, a, job, "t"), 3);
    no_room(r, a, job);
    return job;
}

static void lose(struct rig *r, struct rig_worker a, struct rig_worker b)
{
    struct mr_sched_worker_info info;
    while (mr_sched_worker(r->s, b.slot, &info) && info.incarnation == b.incarnation) {
        rig_pass(r, MR_SECOND);
        rig_heartbeat(r, a);
    }
}

/* Two workers of the node were lost. The return of one of them says nothing about the other. A
 * worker that was lost twice counts once. */
static void when_two_workers_were_lost_both_are_waited_for(void **state)
{
    (void)state;
    for (int is_same = 0; is_same < 2; is_same++) {
        struct rig *r = rig_new();
        rig_store(r, 0x51, "n");
        struct rig_worker a = join(r, "a", "n", 0x51);
        lose(r, a, join(r, "b", "n", 0x51));
        if (is_same) { /* worker b returns and is lost again */
            lose(r, a, join(r, "b", "n", 0x51));
        } else {
            struct rig_worker c = join(r, "c", "n", 0x51);
            lose(r, a, c);
        }
        uint64_t job = refused_alone(r, a);
        struct rig_worker b = join(r, "b", "n", 0x51);
        live(r, a, b, 4 * MR_SECOND);
        uint32_t last = MR_MAX(rig_attempt(r, a, job, "t"), rig_attempt(r, b, job, "t"));
        assert_int_equal(last, is_same ? 4 : 3);
        live(r, a, b, 3 * r->c.lease);
        last = MR_MAX(rig_attempt(r, a, job, "t"), rig_attempt(r, b, job, "t"));
        assert_int_equal(last, 4);
        (void)rig_teardown(state);
    }
}

/* Worker b of the node is lost while t runs alone and finds no room. Worker b may have used the
 * memory, so t gets another attempt. */
static void a_worker_that_is_lost_meanwhile_makes_a_failure_no_verdict(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51), b = join(r, "b", "n", 0x51);
    uint64_t job =
        rig_submit(r, "{\"tasks\":{\"t\":{\"op\":\"g\",\"args\":[1],\"workers\":[\"a\"]}}}");
    for (int i = 0; i < 3; i++)
        no_room(r, a, job);
    assert_int_equal(rig_attempt(r, a, job, "t"), 4); /* the last attempt, which runs alone */
    lose(r, a, b);
    no_room(r, a, job);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    live(r, a, a, 3 * r->c.lease + MR_SECOND);
    assert_int_equal(rig_attempt(r, a, job, "t"), 5);
    no_room(r, a, job);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
}

/* The core waits for the return of a lost worker. A worker that registers under another name is not
 * the lost one. */
static void a_worker_of_another_name_is_not_the_one_that_was_lost(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker a = join(r, "a", "n", 0x51);
    lose(r, a, join(r, "b", "n", 0x51));
    uint64_t job = refused_alone(r, a);
    struct rig_worker c = join(r, "c", "n", 0x51);
    live(r, a, c, 5 * MR_SECOND);
    assert_int_equal(MR_MAX(rig_attempt(r, a, job, "t"), rig_attempt(r, c, job, "t")), 3);
}

/* The scheduler does not know after its restart on which node worker b was. So b may have memory on
 * any node. */
static void a_worker_that_did_not_come_again_after_a_restart_may_be_anywhere(void **state)
{
    (void)state;
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        struct rig *r = rig_new();
        rig_store(r, 0x51, "n");
        if (is_lost) (void)join(r, "b", "m", 0);
        rig_crash(r);
        rig_store(r, 0x51, "n");
        struct rig_worker a = join(r, "a", "n", 0x51);
        for (mr_time end = r->now + r->c.lease + MR_SECOND; r->now < end;) {
            rig_store(r, 0x51, "n");
            rig_pass(r, MR_SECOND);
            rig_heartbeat(r, a);
        }
        uint64_t job = refused_alone(r, a);
        assert_int_equal(rig_attempt(r, a, job, "t"), is_lost ? 3 : 4);
        (void)rig_teardown(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_task_that_does_not_fit_alone_fails_with_the_numbers),
        RIG_TEST(a_task_whose_inputs_are_larger_than_the_memory_fails_at_once),
        RIG_TEST(a_full_disk_is_named_as_long_as_it_is_full),
        RIG_TEST(each_refusal_is_explained),
        RIG_TEST(workers_that_join_the_node_get_nothing_while_it_is_kept_free),
        RIG_TEST(a_node_is_not_kept_free_for_a_task_that_is_cancelled),
        RIG_TEST(the_node_with_the_most_memory_is_kept_free),
        RIG_TEST(what_was_told_to_stop_and_is_given_back_has_stopped),
        RIG_TEST(what_a_worker_that_comes_again_does_not_run_has_stopped),
        RIG_TEST(what_does_not_stop_is_waited_for_three_seconds),
        RIG_TEST(what_did_not_stop_long_ago_does_not_count),
        RIG_TEST(an_attempt_beside_which_another_task_started_is_no_verdict),
        RIG_TEST(both_rows_of_what_is_given_back_count),
        RIG_TEST(a_worker_that_was_not_heard_for_half_a_lease_may_have_memory),
        RIG_TEST(when_two_workers_were_lost_both_are_waited_for),
        RIG_TEST(a_worker_that_is_lost_meanwhile_makes_a_failure_no_verdict),
        RIG_TEST(a_worker_of_another_name_is_not_the_one_that_was_lost),
        RIG_TEST(a_worker_that_did_not_come_again_after_a_restart_may_be_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
