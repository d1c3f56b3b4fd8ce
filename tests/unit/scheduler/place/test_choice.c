/* The scheduler's core: which worker gets a task. The cases stand on both sides of the bounds in
 * place.c. */
#include "base/alloc.h"
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
#define LIKES_B ",\"workers\":[\"b\"],\"allow_other_workers\":true"
#define MIB ((uint64_t)1 << 20)

static const mr_object_id no_object = {0, 0};

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots, .store = store};
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

/* Runs one task of the operator for `took`, so that the core knows the operator's run time. */
static void known(struct rig *r, struct rig_worker w, const char *op, mr_duration took)
{
    uint64_t job = submit_many(r, op, 1, AT_A);
    rig_done_as(r, w, job, "k-0", rig_attempt(r, w, job, "k-0"), MR_OUTCOME_OK, no_object, 1, took);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    rig_forget_rows(r);
}

static uint32_t sent(struct rig *r, struct rig_worker w, uint64_t job)
{
    return rig_count(r, SAID_TASK, w, job, NULL);
}

/* ---- data ------------------------------------------------------------------------------------ */

struct data {
    uint64_t bytes; /* size of the input, which is at worker a */
    bool is_object, has_store, same_store;
    mr_duration load; /* run time of the task that worker a has to run first */
    bool stays;
};

/* Task u goes to its input at worker a if the transfer to worker b would take longer than worker a
 * is busy. */
static void a_task_goes_where_it_can_start_first(void **state)
{
    static const struct data cases[] = {
        {10 * MIB, true, true, false, MR_MS, true}, /* the transfer takes about 5 ms */
        /* The transfer takes 100 us: a fixed cost, plus the time for the bytes. */
        {100000, true, true, false, 120 * MR_US, false},
        {100000, true, true, false, 99 * MR_US, true},
        {10 * MIB, true, true, true, MR_MS, false},   /* both workers use the same store */
        {10 * MIB, true, false, false, MR_MS, false}, /* no store is known to have the object */
        {4000, false, true, false, 1900, true},       /* the transfer takes 2 us */
        {4000, false, true, false, 2100, false},
        {1, false, true, false, 1100, false},
        {1, false, true, false, 900, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct data *d = &cases[i];
        struct rig *r = rig_new();
        rig_store(r, 0x51, "a");
        rig_store(r, 0x52, "b");
        struct rig_worker a = join(r, "a", 1, d->has_store ? 0x51 : 0);
        known(r, a, "f", d->load);
        struct rig_worker b = join(r, "b", 1, d->same_store ? 0x51 : 0x52);
        uint64_t job = rig_submit(r, JOB(T("x", "h", "1", AT_A) "," T("y", "h", R("x") ",2",
                                             AT_B) "," T("u", "g", R("x"), ""),
                                         "\"u\",\"y\""));
        (void)rig_submit(r, JOB(T("busy", "f", "1", AT_A), "\"busy\""));
        r->object_bytes = d->bytes;
        if (d->is_object)
            (void)rig_done_object(r, a, job, "x");
        else
            rig_done_bytes(r, a, job, "x", (uint32_t)d->bytes);
        uint32_t at_a = rig_count(r, SAID_TASK, a, job, "u");
        uint32_t at_b = rig_count(r, SAID_TASK, b, job, "u");
        if (at_a != d->stays || at_b == d->stays) fail_msg("case %u", (unsigned)i);
        (void)rig_teardown(state);
    }
}

/* To place task t, the core scores the first four workers that have inputs of t, however many
 * inputs each of them has. The worker of the large input is found behind one worker with small
 * inputs, or behind three. The tasks p0 to p4, which make the inputs, are long-running, so that t
 * is not sent before they are done. */
static void the_worker_of_a_large_input_is_found_behind_others(void **state)
{
    (void)state;
    for (int is_spread = 0; is_spread < 2; is_spread++) {
        struct rig *r = rig_new();
        static const char *const names[] = {"a", "b", "c", "d", "e"};
        struct rig_worker w[5];
        for (uint64_t i = 0; i < 5; i++) {
            rig_store(r, 0x51 + i, names[i]);
            w[i] = join(r, names[i], 4, 0x51 + i);
        }
        char json[1024], more[5][32];
        for (uint32_t i = 0; i < 5; i++) {
            bool is_large = i == (is_spread ? 3u : 4u);
            (void)snprintf(more[i], sizeof more[i], ",\"workers\":[\"%s\"]",
                is_spread || is_large ? names[is_large ? 3 : i] : "a");
        }
        (void)snprintf(json, sizeof json,
            JOB(T("p0", "long", "0", "%s") "," T("p1", "long", "1", "%s") "," T("p2", "long", "2",
                    "%s") "," T("p3", "long", "3", "%s") "," T("p4", "long", "4", "%s") "," T("t",
                    "g", R("p0") "," R("p1") "," R("p2") "," R("p3") "," R("p4"), ""),
                "\"t\""),
            more[0], more[1], more[2], more[3], more[4]);
        uint64_t job = rig_submit(r, json);
        for (uint32_t i = 0; i < 5; i++) {
            const char key[] = {'p', (char)('0' + i), 0};
            bool is_large = i == (is_spread ? 3u : 4u);
            struct rig_worker at = is_large ? w[3] : is_spread ? w[i] : w[0];
            r->object_bytes = is_large ? 100 * MIB : 1000;
            (void)rig_done_object(r, at, job, key);
        }
        assert_int_equal(rig_attempt(r, w[3], job, "t"), 1);
        (void)rig_teardown(state);
    }
}

/* A task with inputs frees memory when it ends, so it may go to a worker whose memory is full. */
static void a_task_with_data_goes_to_a_worker_whose_memory_is_full(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "b", .node = "b", .slots = 1, .memory = 4000};
    struct rig_worker a = join(r, "a", 1, 0), b = rig_join(r, &spec);
    known(r, a, "f", MR_MS);
    known(r, a, "h", 10 * MR_MS);
    uint64_t job = rig_submit(
        r, JOB(T("x", "long", "1", AT_A) "," T("y", "g", R("x"), "") "," T("z", "rare", R("x"), ""),
               "\"y\",\"z\""));
    (void)submit_many(r, "h", 1, AT_A);
    (void)submit_many(r, "f", 1, AT_B);
    const struct mr_ws_heartbeat h = {.time_ns = r->now, .memory_used_bytes = 3001};
    struct mr_ws_up m = {.heartbeat = &h};
    rig_message(r, b, &m);
    rig_done(r, a, job, "x");
    assert_int_equal(rig_attempt(r, b, job, "y"), 1);
}

static void what_runs_long_goes_to_the_third_worker_if_it_prefers_that(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    (void)join(r, "a", 1, 0);
    (void)join(r, "b", 1, 0);
    struct rig_worker c = join(r, "c", 1, 0);
    uint64_t job = submit_many(r, "long", 3, ",\"workers\":[\"c\"],\"allow_other_workers\":true");
    assert_int_equal(sent(r, c, job), 3);
}

/* ---- roots ----------------------------------------------------------------------------------- */

/* A sibling of a task is another input of the same consumer. A task without inputs goes to the
 * worker to which a sibling was sent. That worker may have at most 200 us more load than the least
 * loaded worker. */
static void siblings_gather_up_to_a_bound(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    known(r, a, "f", 50 * MR_US);
    struct rig_worker b = join(r, "b", 1, 0);
    uint64_t job =
        rig_submit(r, "{\"tasks\":{" T("x", "f", "0",
                          AT_B) ",\"y-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],"
                                "\"for\":{\"i\":7}}," T("z", "rare",
                                    R("x") ",{\"each\":{\"ref\":\"y-${i}\"},\"for\":{\"i\":7}}",
                                    "") "},\"targets\":[\"z\"]}");
    /* Worker b gets x, and then four siblings of x, up to a load of 200 us. Two more tasks follow
     * because b is the sticky worker, which gets the next roots: at most half as many as each slot
     * would get if the queue were spread evenly. */
    assert_int_equal(sent(r, b, job), 7);
    assert_int_equal(sent(r, a, job), 1);
}

static void short_lone_tasks_stay_at_one_worker(void **state)
{
    (void)state;
    static const struct {
        mr_duration took;
        uint32_t first_bytes;
        bool stay;
    } cases[] = {{100 * MR_US, 1, true}, {100 * MR_US + 1000, 1, false}};
    for (int i = 0; i < 2; i++) {
        struct rig *r = rig_new();
        struct rig_worker w[2] = {join(r, "a", 1, 0), join(r, "b", 1, 0)};
        uint32_t at[2] = {0, 0};
        for (int k = 0; k < 12; k++) {
            uint64_t job = submit_many(r, "f", 1, "");
            uint32_t to = sent(r, w[1], job);
            assert_int_equal(sent(r, w[0], job) + to, 1);
            at[to]++;
            rig_done_as(r, w[to], job, "k-0", 1, MR_OUTCOME_OK, no_object, cases[i].first_bytes,
                cases[i].took);
            rig_pass(r, MR_SECOND);
            rig_heartbeat(r, w[0]);
            rig_heartbeat(r, w[1]);
        }
        assert_int_equal(at[0] == 12 || at[1] == 12, cases[i].stay);
        (void)rig_teardown(state);
    }
}

/* Short tasks that come one at a time go to the worker of the last one, for its warm caches. They
 * leave this worker if it keeps over 1 MiB of values more than the other: values attract tasks. */
static void short_lone_tasks_leave_a_worker_that_keeps_a_mebibyte_more(void **state)
{
    (void)state;
    for (int is_more = 0; is_more < 2; is_more++) {
        struct rig *r = rig_new();
        rig_store(r, 0x51, "a");
        struct rig_worker w[2] = {join(r, "a", 1, 0x51), join(r, "b", 1, 0x51)};
        uint64_t first = submit_many(r, "g", 1, AT_A);
        r->object_bytes = MIB + (is_more ? 100 : 0);
        (void)rig_done_object(r, w[0], first, "k-0");
        uint32_t at_a = 0;
        for (int k = 0; k < 12; k++) {
            uint64_t job = submit_many(r, "f", 1, k ? "" : AT_A);
            uint32_t to = sent(r, w[1], job);
            at_a += !to;
            rig_done_as(r, w[to], job, "k-0", 1, MR_OUTCOME_OK, no_object, 1, 10 * MR_US);
            assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
        }
        assert_int_equal(at_a > 6, !is_more);
        (void)rig_teardown(state);
    }
}

static void the_worker_with_the_fewest_long_running_tasks_gets_the_next(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    known(r, a, "f", MR_MS);
    struct rig_worker b = join(r, "b", 1, 0), c = join(r, "c", 1, 0);
    (void)rig_submit(
        r, JOB(T("x", "long", "1", AT_A) "," T("y", "long", "2", AT_A) "," T("z", "long", "3",
                   AT_B) "," T("w", "long", "4", ",\"workers\":[\"c\"]") "," T("u", "f", "5", AT_B),
               "\"x\",\"y\",\"z\",\"w\",\"u\""));
    /* Worker a has less load than b, but more long-running tasks than b and c. */
    uint64_t job = submit_many(r, "long", 2, "");
    assert_int_equal(sent(r, a, job), 0);
    assert_int_equal(sent(r, b, job), 1);
    assert_int_equal(sent(r, c, job), 1);
}

/* ---- room ------------------------------------------------------------------------------------ */

static void however_short_tasks_are_a_slot_has_4096_at_most(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    known(r, a, "f", 1);
    uint64_t job = submit_many(r, "f", 5000, "");
    assert_int_equal(sent(r, a, job), 4096);
}

/* For each slot, a worker takes tasks with 5 ms of work in all, but at least two tasks. While it
 * has fewer than three tasks for each slot, it also takes a task of a job of which no task runs. */
static void a_job_of_which_nothing_runs_gets_in_as_the_third(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 2, 0);
    known(r, a, "f", 10 * MR_MS);
    uint64_t large = submit_many(r, "f", 9, "");
    assert_int_equal(sent(r, a, large), 4);
    uint64_t other = submit_many(r, "f", 2, ""), third = submit_many(r, "f", 2, "");
    assert_int_equal(sent(r, a, other), 1);
    assert_int_equal(sent(r, a, third), 1);
    uint64_t fourth = submit_many(r, "f", 2, "");
    assert_int_equal(sent(r, a, fourth), 0);
    known(r, a, "g", MR_MS);
}

static void a_slot_has_tasks_for_five_milliseconds(void **state)
{
    (void)state;
    for (uint32_t slots = 1; slots <= 2; slots++) {
        struct rig *r = rig_new();
        struct rig_worker a = join(r, "a", slots, 0);
        known(r, a, "f", MR_MS);
        uint64_t job = submit_many(r, "f", 20, "");
        assert_int_equal(sent(r, a, job), 5 * slots);
        (void)rig_teardown(state);
    }
}

static uint32_t rows_most, batches;

static void look_at_size(struct rig *r, uint32_t slot, const struct mr_sched_batch *b)
{
    (void)r;
    (void)slot;
    batches += b->tasks.count > 0;
    rows_most = MR_MAX(rows_most, b->tasks.count);
}

/* A batch that has 4 MiB takes no more tasks. */
static void a_batch_is_bounded(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 16, 0);
    known(r, a, "f", MR_MS);
    size_t room = (size_t)10 << 20, n = 0;
    char *json = mr_alloc(room);
    n += (size_t)snprintf(json, room, "{\"tasks\":{");
    for (int i = 0; i < 8; i++) {
        n += (size_t)snprintf(
            json + n, room - n, "%s\"t%d\":{\"op\":\"f\",\"args\":[%d,\"", i ? "," : "", i, i);
        memset(json + n, 'x', 1000000);
        n += 1000000;
        n += (size_t)snprintf(json + n, room - n, "\"]}");
    }
    (void)snprintf(json + n, room - n, "}}");
    rows_most = batches = 0;
    r->on_batch = look_at_size;
    uint64_t job = rig_submit(r, json);
    mr_release(json);
    assert_int_equal(rows_most, 5);
    assert_int_equal(sent(r, a, job), 8); /* three tasks came in the second batch */
    assert_int_equal(batches, 2);
}

/* The worker has 4 cpu and 1 gpu. Tasks that need one kind do not wait for the other kind. */
static void resources_are_counted_by_kind(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct mr_ws_operator ops[] = {{.name = MR_STR("f")}};
    const struct mr_ws_resource resources[] = {
        {MR_STR_INIT("cpu"), 4000000}, {MR_STR_INIT("gpu"), 1000000}};
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_REGISTER, .session = 7};
    ev.worker = (struct mr_ws_register){.name = MR_STR("a"),
        .node = MR_STR("a"),
        .slots = 8,
        .ops = ops,
        .ops_count = 1,
        .resources = resources,
        .resources_count = 2};
    rig_step(r, &ev);
    struct rig_worker a = r->last;
    uint64_t gpu = submit_many(r, "f", 4, ",\"resources\":{\"gpu\":1}");
    assert_int_equal(sent(r, a, gpu), 2); /* one task has the gpu, and one waits at the worker */
    uint64_t two = submit_many(r, "f", 1, ",\"resources\":{\"gpu\":2}");
    uint64_t cpu = submit_many(r, "f", 1, ",\"resources\":{\"cpu\":4}");
    assert_int_equal(sent(r, a, two), 0);
    assert_int_equal(sent(r, a, cpu), 1);
    uint64_t plain = submit_many(r, "f", 1, "");
    assert_int_equal(sent(r, a, plain), 1);
    rig_done(r, a, gpu, "k-0");
    assert_int_equal(sent(r, a, gpu), 3);
    for (int i = 1; i < 4; i++)
        rig_done(r, a, gpu, (const char *[]){"", "k-1", "k-2", "k-3"}[i]);
    assert_int_equal(rig_job(r, gpu), MR_JOB_DONE);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void use_memory(struct rig *r, struct rig_worker w, uint64_t bytes)
{
    const struct mr_ws_heartbeat h = {.time_ns = r->now, .memory_used_bytes = bytes};
    struct mr_ws_up m = {.heartbeat = &h};
    rig_message(r, w, &m);
}

/* A worker counts as full when it uses more than three quarters of its memory. Then it gets only
 * one root (task without inputs) at a time. */
static void a_worker_whose_memory_is_full_gets_one_root_at_a_time(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "a", .node = "a", .slots = 4, .memory = 4000};
    struct rig_worker a = rig_join(r, &spec);
    known(r, a, "f", MR_MS);
    use_memory(r, a, 3001);
    uint64_t one = submit_many(r, "f", 1, ""), two = submit_many(r, "f", 1, "");
    assert_int_equal(sent(r, a, one), 1);
    assert_int_equal(sent(r, a, two), 0);
    const struct rig_spec other = {.name = "b", .node = "b", .slots = 4, .ops = "g"};
    (void)rig_join(r, &other); /* worker b lacks the operator "f" */
    struct mr_buf lines;
    mr_buf_init(&lines, 1 << 16);
    assert_true(mr_sched_explain(r->s, (mr_job_id){two}, 0, &lines));
    assert_non_null(memmem(lines.p, lines.n, "their memory is nearly full", 27));
    mr_buf_fini(&lines);
    uint64_t user = rig_submit(r, JOB("\"l\":{\"value\":1}," T("x", "f", R("l"), ""), "\"x\""));
    /* A literal is no input with data: the task counts as a root. */
    assert_int_equal(sent(r, a, user), 0);
    use_memory(r, a, 3000);
    assert_int_equal(sent(r, a, two), 1);
    assert_int_equal(sent(r, a, user), 1);
}

/* A root that prefers worker b goes to worker a while the memory of b is full. */
static void a_preference_for_a_worker_whose_memory_is_full_does_not_count(void **state)
{
    (void)state;
    for (int is_full = 0; is_full < 2; is_full++) {
        struct rig *r = rig_new();
        const struct rig_spec spec = {.name = "b", .node = "b", .slots = 4, .memory = 4000};
        struct rig_worker a = join(r, "a", 4, 0);
        known(r, a, "f", MR_MS);
        struct rig_worker b = rig_join(r, &spec);
        uint64_t busy = submit_many(r, "f", 1, AT_B);
        assert_int_equal(sent(r, b, busy), 1);
        use_memory(r, b, is_full ? 3001 : 3000);
        uint64_t job = submit_many(r, "f", 1, LIKES_B);
        assert_int_equal(sent(r, b, job), !is_full);
        assert_int_equal(sent(r, a, job), is_full);
        (void)rig_teardown(state);
    }
}

static void roots_that_wait_for_a_store_are_counted(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct mr_sched_totals t;
    r->store_memory = 4 * MIB;
    rig_store(r, 0x51, "a");
    struct rig_worker a = join(r, "a", 2, 0x51);
    uint64_t first = submit_many(r, "f", 1, "");
    r->object_bytes = 7 * MIB / 2;
    (void)rig_done_object(r, a, first, "k-0");
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.roots_held, 0);
    (void)submit_many(r, "f", 2, ""); /* one task runs, the other one waits */
    mr_sched_totals(r->s, &t);
    assert_in_range(t.roots_held, 1, 20);
    assert_int_equal(t.placed_scored, 2);
    assert_int_equal(t.placed_cached + t.placed_repaired, 0);
}

/* ---- stealing -------------------------------------------------------------------------------- */

static uint32_t stolen(struct rig *r, struct rig_worker a, uint64_t job)
{
    return rig_count(r, SAID_STEAL, a, job, NULL);
}

/* Worker a has 5 tasks of 1 ms. Two of them are asked back. A third one would not start earlier at
 * worker b. */
static void as_many_are_stolen_as_start_earlier_elsewhere(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct mr_sched_totals t;
    struct rig_worker a = join(r, "a", 1, 0);
    known(r, a, "f", MR_MS);
    uint64_t job = submit_many(r, "f", 5, "");
    assert_int_equal(sent(r, a, job), 5);
    struct rig_worker b = join(r, "b", 1, 0);
    assert_int_equal(stolen(r, a, job), 2);
    assert_int_equal(rig_count(r, SAID_STEAL, a, job, "k-4"), 1);
    assert_int_equal(rig_count(r, SAID_STEAL, a, job, "k-3"), 1);
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.steals, 2);
    rig_pass(r, 10 * MR_MS);
    assert_int_equal(stolen(r, a, job), 2); /* worker a has not answered yet */
    rig_tell(r, a, TOLD_GIVEN, job, "k-4");
    rig_tell(r, a, TOLD_STARTED, job, "k-3"); /* too late to give k-3 back */
    assert_int_equal(sent(r, b, job), 1);
    for (int i = 0; i < 4; i++)
        rig_done(r, a, job, (const char *[]){"k-0", "k-1", "k-2", "k-3"}[i]);
    rig_done(r, b, job, "k-4");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.steals, 2);
}

static void what_cannot_run_there_or_is_little_is_not_stolen(void **state)
{
    (void)state;
    static const struct {
        const char *ops;
        mr_duration took;
        uint32_t tasks, slots, stolen;
    } cases[] = {
        {"g", MR_MS, 5, 1, 0},       /* the idle worker lacks the op */
        {"f", 100 * MR_US, 5, 1, 0}, /* all waiting tasks together take less than a millisecond */
        {"f", 400 * MR_US, 3, 1, 1}, {"f", 400 * MR_US, 2, 1, 0},
        {"f", 10 * MR_MS, 2, 2, 0}, /* both tasks have a slot at worker a */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig *r = rig_new();
        struct rig_worker a = join(r, "a", cases[i].slots, 0);
        known(r, a, "f", cases[i].took);
        uint64_t job = submit_many(r, "f", cases[i].tasks, "");
        assert_int_equal(sent(r, a, job), cases[i].tasks);
        const struct rig_spec spec = {.name = "b", .node = "b", .slots = 1, .ops = cases[i].ops};
        (void)rig_join(r, &spec);
        if (stolen(r, a, job) != cases[i].stolen)
            fail_msg("case %u: %u", (unsigned)i, stolen(r, a, job));
        (void)rig_teardown(state);
    }
}

static void tasks_that_wait_for_inputs_are_not_stolen(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    known(r, a, "f", MR_MS);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", R("x"), "") "," T("z", "f", R("y"),
                              "") "," T("u", "f", R("z"), "") "," T("v", "f", R("u"), ""),
                          "\"v\""));
    assert_int_equal(sent(r, a, job), 5);
    (void)join(r, "b", 1, 0);
    assert_int_equal(stolen(r, a, job), 0);
}

static void the_next_look_for_tasks_to_steal_is_half_a_millisecond_later(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    known(r, a, "f", MR_MS);
    uint64_t job = submit_many(r, "f", 5, "");
    struct rig_worker b = join(r, "b", 1, 0);
    assert_int_equal(mr_sched_deadline(r->s), r->now + 500 * MR_US);
    rig_tell(r, a, TOLD_GIVEN, job, "k-4");
    rig_tell(r, a, TOLD_GIVEN, job, "k-3");
    assert_int_equal(sent(r, b, job), 2);
    assert_true(mr_sched_deadline(r->s) > r->now + MR_MS); /* no worker is idle */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_task_goes_where_it_can_start_first),
        RIG_TEST(the_worker_of_a_large_input_is_found_behind_others),
        RIG_TEST(a_task_with_data_goes_to_a_worker_whose_memory_is_full),
        RIG_TEST(what_runs_long_goes_to_the_third_worker_if_it_prefers_that),
        RIG_TEST(siblings_gather_up_to_a_bound),
        RIG_TEST(short_lone_tasks_stay_at_one_worker),
        RIG_TEST(short_lone_tasks_leave_a_worker_that_keeps_a_mebibyte_more),
        RIG_TEST(the_worker_with_the_fewest_long_running_tasks_gets_the_next),
        RIG_TEST(however_short_tasks_are_a_slot_has_4096_at_most),
        RIG_TEST(a_job_of_which_nothing_runs_gets_in_as_the_third),
        RIG_TEST(a_slot_has_tasks_for_five_milliseconds),
        RIG_TEST(a_batch_is_bounded),
        RIG_TEST(resources_are_counted_by_kind),
        RIG_TEST(a_worker_whose_memory_is_full_gets_one_root_at_a_time),
        RIG_TEST(a_preference_for_a_worker_whose_memory_is_full_does_not_count),
        RIG_TEST(roots_that_wait_for_a_store_are_counted),
        RIG_TEST(as_many_are_stolen_as_start_earlier_elsewhere),
        RIG_TEST(what_cannot_run_there_or_is_little_is_not_stolen),
        RIG_TEST(tasks_that_wait_for_inputs_are_not_stolen),
        RIG_TEST(the_next_look_for_tasks_to_steal_is_half_a_millisecond_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
