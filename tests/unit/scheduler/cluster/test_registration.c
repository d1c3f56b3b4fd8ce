/* The scheduler's core: workers that register for the first time, fall silent, leave or are lost.
 */
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
#define LARGE 900 /* bytes of a small value for which a cache of 8 blocks has no room */

static const struct rig_spec a_spec = {.name = "a", .node = "a", .slots = 16};

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

/* ---- silence and loss ------------------------------------------------------------------------ */

static void a_worker_has_a_lease_of_time_after_its_stream_has_ended(void **state)
{
    (void)state;
    struct rig *r = rig_new_empty();
    (void)join(r, "other", 1, 0);
    struct rig_worker a = join(r, "a", 1, 0);
    rig_pass(r, r->c.lease - MR_SECOND);
    mr_time joined = r->now - (r->c.lease - MR_SECOND);
    /* The leases of both workers end at the same time. */
    assert_int_equal(mr_sched_deadline(r->s), joined + r->c.lease);
    rig_close(r, a);
    mr_time closed = r->now;
    /* After this pause the scheduler has had no message from "other" for the time of a lease, so
     * "other" is lost. */
    rig_pass(r, 2 * MR_SECOND);
    assert_int_equal(mr_sched_deadline(r->s), closed + r->c.lease);
    rig_pass(r, r->c.lease - 2 * MR_SECOND - 1);
    struct mr_sched_worker_info info;
    assert_true(mr_sched_worker(r->s, a.slot, &info));
    rig_pass(r, 1);
    assert_false(mr_sched_worker(r->s, a.slot, &info));
    const struct mr_ws_register more = {.incarnation = a.incarnation};
    (void)rig_join_as(r, &a_spec, &more);
    assert_true(r->last.was_refused);
    assert_int_equal(r->code, MR_ESTATE);
    assert_non_null(strstr(r->text, "declared lost"));
}

/* The stream of the worker was busy, so the shell has not sent the last batch yet. */
static void what_was_not_sent_to_a_worker_that_went_is_dropped(void **state)
{
    (void)state;
    static const enum mr_sched_event_type types[] = {
        MR_SCHED_WORKER_CLOSED, MR_SCHED_WORKER_CRASHED};
    for (int i = 0; i < 2; i++) {
        struct rig *r = rig_new();
        struct rig_worker a = join(r, "a", 1, 0);
        const struct mr_ws_heartbeat h = {.time_ns = r->now};
        struct mr_sched_event ev = {
            .type = MR_SCHED_WORKER_MESSAGE, .slot = a.slot, .incarnation = a.incarnation};
        ev.message.heartbeat = &h;
        mr_sched_step(r->s, r->now, &ev, &r->fx);
        assert_non_null(r->fx.worker[a.slot]);
        ev =
            (struct mr_sched_event){.type = types[i], .slot = a.slot, .incarnation = a.incarnation};
        mr_sched_step(r->s, r->now, &ev, &r->fx);
        assert_null(r->fx.worker[a.slot]);
        (void)rig_teardown(state);
    }
}

static void a_lost_worker_is_told_by_its_own_slot_and_op(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec one = {.name = "a", .ops = "f"}, two = {.name = "b", .ops = "f g"};
    (void)rig_join(r, &one);
    struct rig_worker b = rig_join(r, &two);
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = b.slot, .incarnation = b.incarnation};
    uint64_t before = r->sequence;
    rig_step(r, &ev);
    const struct mr_sched_note *n = (const void *)r->notes.p;
    n += r->notes_count - 1;
    assert_int_equal(n->type, MR_NOTE_WORKER_CLOSE);
    assert_true(n->slot == b.slot && b.slot == 1);
    assert_string_equal(r->texts[r->notes_count - 1], "its process died");
    assert_true(r->sequence > before); /* the loss of the worker is in the journal */
    for (uint32_t i = 1; i <= mr_sched_ops_count(r->s); i++) {
        struct mr_sched_op_info op;
        assert_true(mr_sched_op(r->s, i, &op));
        assert_int_equal(op.workers, mr_str_eq(op.name, MR_STR("f")));
    }
}

static void what_only_a_retiring_worker_has_is_fetched(void **state)
{
    (void)state;
    struct rig *r = with_small_cache();
    struct rig_worker a = join(r, "a", 4, 0);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("s", "f", "2", "") "," T("o", "f", "3",
                              "") "," T("u", "rare", R("x") "," R("s") "," R("o"), ""),
                          "\"u\""));
    rig_done_bytes(r, a, job, "x", LARGE);
    rig_done(r, a, job, "s");
    (void)rig_done_object(r, a, job, "o");
    struct mr_ws_up m = {.leaving = true};
    rig_message(r, a, &m);
    assert_true(r->last.was_drained);
    assert_int_equal(rig_count(r, SAID_FETCH, a, job, "x"), 1);
    assert_int_equal(rig_count(r, SAID_FETCH, a, job, NULL), 1);
}

/* A worker's process is silent, and a new process registers with the same name. It may name the
 * task that ran when the process before it crashed. */
static void a_new_process_of_a_name_says_what_crashed_the_old_one(void **state)
{
    (void)state;
    for (int has_suspects = 0; has_suspects < 2; has_suspects++) {
        struct rig *r = rig_new();
        struct rig_worker a = join(r, "a", 4, 0);
        uint64_t job = rig_submit(
            r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", "") "," T("z", "f", "3", ""),
                   "\"x\",\"y\",\"z\""));
        assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 3);
        rig_close(r, a);
        uint32_t index = rig_index(r, job, "y"), one = 1;
        const struct mr_ws_run run = {.job = {job}, .count = 1};
        const struct mr_ws_register more = {
            .has_suspects = has_suspects, .suspects = {&run, 1, &index, &one, 1}};
        struct rig_worker n = rig_join_as(r, &a_spec, &more);
        assert_true(n.incarnation != a.incarnation && n.slot == a.slot);
        struct mr_sched_job_info info;
        assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
        /* If the new process does not say which task ran, each of the three may have run. */
        assert_int_equal(info.retried, has_suspects ? 1 : 3);
        (void)rig_teardown(state);
    }
}

/* ---- who may register ------------------------------------------------------------------------ */

static void register_with(struct rig *r, const struct mr_ws_register *w)
{
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_REGISTER, .session = 77};
    ev.worker = *w;
    r->last = (struct rig_worker){.slot = UINT32_MAX};
    rig_step(r, &ev);
}

static void refused(struct rig *r, const struct mr_ws_register *w, int code, const char *words)
{
    register_with(r, w);
    assert_true(r->last.was_refused);
    assert_int_equal(r->code, code);
    if (!strstr(r->text, words)) fail_msg("\"%s\" does not say \"%s\"", r->text, words);
}

static void an_incarnation_is_not_found_by_the_name_of_another(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.incarnation = (uint64_t)5000001 << 32 | 17;
    struct rig *r = rig_new_with(&c);
    struct rig_worker a = join(r, "a", 1, 0);
    struct mr_ws_register w = {.name = MR_STR("a"), .node = MR_STR("n"), .slots = 1};
    refused(r, &w, MR_EEXIST, "of this name is connected");
    /* This scheduler might have given this incarnation, but it knows no worker that has it. */
    w.incarnation = a.incarnation + 5;
    refused(r, &w, MR_ESTATE, "was declared lost");
    w.incarnation = (uint64_t)6000001 << 32 | 1;
    refused(r, &w, MR_ESTATE, "from a journal that Redis has lost");
    w.incarnation = a.incarnation;
    w.name = MR_STR("z");
    refused(r, &w, MR_EEXIST, "is connected");
    rig_close(r, a);
    register_with(r, &w); /* the worker is found by its incarnation, whatever name it gives */
    assert_false(r->last.was_refused);
    assert_int_equal(r->last.slot, a.slot);
}

/* A worker was lost. The next worker that gets its slot has neither its operators nor its
 * resources. */
static void a_slot_is_empty_when_the_next_worker_gets_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec gpu = {
        .name = "a", .slots = 4, .resource = "gpu", .amount = 4, .ops = "f rare"};
    struct rig_worker a = rig_join(r, &gpu);
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = a.slot, .incarnation = a.incarnation};
    rig_step(r, &ev);
    struct rig_worker b = join(r, "b", 4, 0);
    assert_int_equal(b.slot, a.slot);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ",\"resources\":{\"gpu\":1}") "," T(
                                         "y", "rare", "2", "") "," T("z", "f", "3", ""),
                                     "\"x\",\"y\",\"z\""));
    assert_int_equal(rig_count(r, SAID_TASK, b, job, NULL), 1);
    assert_int_equal(rig_attempt(r, b, job, "z"), 1);
    a = join(r, "a", 4, 0); /* the name of the lost worker is free */
    assert_false(r->last.was_refused);
}

/* After a restart of the scheduler, a worker may register again with another name. */
static void a_worker_is_known_by_the_name_that_it_had_last(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    rig_crash(r);
    struct mr_ws_register w = {
        .name = MR_STR("z"), .node = MR_STR("n"), .slots = 1, .incarnation = a.incarnation};
    register_with(r, &w);
    assert_false(r->last.was_refused);
    assert_true(mr_str_eq(worker_of(r, r->last).name, MR_STR("z")));
    w.incarnation = 0;
    refused(r, &w, MR_EEXIST, "of this name is connected");
    w.name = MR_STR("a");
    register_with(r, &w);
    assert_false(r->last.was_refused);
    assert_true(r->last.incarnation != a.incarnation);
}

static void nobody_registers_before_the_journal_is_read(void **state)
{
    (void)state;
    struct mr_sched_config c;
    struct mr_arena arena;
    struct mr_sched_effects fx;
    rig_config(&c);
    mr_arena_init(&arena, mr_sched_arena_bytes(&c));
    mr_sched_effects_init(&fx, c.workers_max, c.stores_max);
    struct mr_sched *s = mr_sched_new(&c, &arena);
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_REGISTER, .session = 7};
    ev.worker = (struct mr_ws_register){.name = MR_STR("a"), .node = MR_STR("n"), .slots = 1};
    for (int is_read = 0; is_read < 2; is_read++) {
        mr_sched_step(s, MR_SECOND, &ev, &fx);
        const struct mr_sched_note *n = (const void *)fx.notes.p;
        assert_int_equal(fx.notes.n, sizeof *n);
        assert_int_equal(n->type, is_read ? MR_NOTE_WORKER_JOINED : MR_NOTE_WORKER_REFUSED);
        assert_int_equal(n->code, is_read ? MR_OK : MR_EAWAY);
        assert_int_equal(n->session, 7);
        assert_int_equal(mr_sched_deadline(s) == MR_NEVER, !is_read);
        mr_sched_effects_clear(&fx);
        const struct mr_sched_event read = {.type = MR_SCHED_RECOVERED};
        if (!is_read) mr_sched_step(s, MR_SECOND, &read, &fx);
        mr_sched_effects_clear(&fx);
    }
    mr_sched_free(&s);
    mr_sched_effects_fini(&fx);
    mr_arena_fini(&arena);
}

static void a_worker_states_its_resources_and_the_costs_of_its_ops(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct mr_ws_operator ops[] = {{.name = MR_STR("f"), .cost_ns = 7 * MR_MS},
        /* "f" stands twice: the first cost counts. */
        {.name = MR_STR("g")}, {.name = MR_STR("f"), .cost_ns = 9 * MR_MS},
        {.name = MR_STR("ref"), .by_reference = true, .deterministic = true}};
    const struct mr_ws_resource resources[] = {{MR_STR_INIT("cpu"), 4000000},
        {MR_STR_INIT("gpu"), 2000000}, {MR_STR_INIT("disk"), 1000000}};
    struct mr_ws_register w = {.name = MR_STR("a"),
        .node = MR_STR("n"),
        .slots = 8,
        .memory_bytes = 123,
        .ops = ops,
        .ops_count = 4,
        .resources = resources,
        .resources_count = 3};
    register_with(r, &w);
    rig_turn(r);
    assert_int_equal(worker_of(r, r->last).memory_bytes, 123);
    uint64_t job = rig_submit(
        r, JOB(T("x", "f", "1", "") "," T("y", "g", "2", ",\"resources\":{\"disk\":1}") "," T(
                   "z", "g", "3", ",\"resources\":{\"gpu\":3}"),
               "\"x\",\"y\",\"z\""));
    /* the op of "y" states no cost: 100 us are assumed */
    assert_int_equal(worker_of(r, r->last).queue_ns, 7 * MR_MS + 100 * MR_US);
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_RUNNING);
    assert_int_equal(rig_state(r, job, "z"), MR_TASK_READY);
    for (uint32_t i = 1; i <= mr_sched_ops_count(r->s); i++) {
        struct mr_sched_op_info op;
        assert_true(mr_sched_op(r->s, i, &op));
        assert_int_equal(op.workers, 1);
        bool is_ref = mr_str_eq(op.name, MR_STR("ref"));
        assert_true(op.by_reference == is_ref && op.deterministic == is_ref && !op.long_running);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_worker_has_a_lease_of_time_after_its_stream_has_ended),
        RIG_TEST(what_was_not_sent_to_a_worker_that_went_is_dropped),
        RIG_TEST(a_lost_worker_is_told_by_its_own_slot_and_op),
        RIG_TEST(what_only_a_retiring_worker_has_is_fetched),
        RIG_TEST(a_new_process_of_a_name_says_what_crashed_the_old_one),
        RIG_TEST(an_incarnation_is_not_found_by_the_name_of_another),
        RIG_TEST(a_slot_is_empty_when_the_next_worker_gets_it),
        RIG_TEST(a_worker_is_known_by_the_name_that_it_had_last),
        RIG_TEST(nobody_registers_before_the_journal_is_read),
        RIG_TEST(a_worker_states_its_resources_and_the_costs_of_its_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
