/* The scheduler's core: a batch, which is all that the core wants to tell one worker, becomes a
 * message to this worker. Each test encodes the messages and decodes them again, as on the wire. */
#include "base/alloc.h"
#include "base/id.h"
#include "base/limits.h"
#include "services/scheduler/core/batch_message.h"
#include "session/decode.h"
#include "session/encode.h"
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
#define MEMORY ((size_t)4 << 20)
#define MESSAGES 16

/* The messages to one worker, decoded. A later message does not overwrite an earlier one. */
static struct wire {
    uint32_t slot, count;
    struct mr_sched_numbers numbers;
    struct mr_ws_down m[MESSAGES];
    struct mr_buf bytes[MESSAGES];
    unsigned char *memory;
    size_t used;
} wire;

static void *take(void *ctx, size_t bytes)
{
    (void)ctx;
    void *p = wire.memory + wire.used;
    wire.used += (bytes + 15) & ~(size_t)15;
    assert_true(wire.used <= MEMORY);
    return p;
}

static void read_batch(struct rig *r, uint32_t slot, const struct mr_sched_batch *b)
{
    const struct mr_ws_memory memory = {take, NULL, MEMORY};
    struct mr_ws_down down;
    struct mr_error e = {0};
    if (slot != wire.slot) return;
    assert_true(wire.count < MESSAGES);
    mr_sched_batch_message(r->s, b, &wire.numbers, &memory, &down);
    struct mr_buf *bytes = &wire.bytes[wire.count];
    mr_buf_init(bytes, MR_MESSAGE_BYTES_MAX);
    mr_ws_encode_down(&down, bytes);
    if (mr_ws_decode_down(mr_buf_str(bytes), &memory, &wire.m[wire.count++], &e))
        fail_msg("%s", e.text);
    if (!down.tasks.count) assert_int_equal(down.ops_count, 0);
}

/* From now on collects what the worker in `slot` is sent. */
static void read_worker(struct rig *r, uint32_t slot, bool with_addresses)
{
    wire.slot = slot;
    wire.memory = mr_alloc(MEMORY);
    wire.numbers.with_addresses = with_addresses;
    r->on_batch = read_batch;
}

static int end(void **state)
{
    for (uint32_t i = 0; i < wire.count; i++)
        mr_buf_fini(&wire.bytes[i]);
    mr_sched_numbers_fini(&wire.numbers);
    mr_release(wire.memory);
    wire = (struct wire){0};
    return rig_teardown(state);
}

/* Returns the last message that has tasks. */
static const struct mr_ws_down *with_tasks(void)
{
    for (uint32_t i = wire.count; i-- > 0;)
        if (wire.m[i].tasks.count) return &wire.m[i];
    fail_msg("no tasks");
    return NULL;
}

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots, .store = store};
    return rig_join(r, &spec);
}

static void assert_text(struct mr_str text, const char *expected)
{
    if (!mr_str_eq(text, mr_str(expected)))
        fail_msg("\"%.*s\" is not \"%s\"", MR_STR_ARG(text), expected);
}

/* ---- operators ------------------------------------------------------------------------------- */

static void the_name_of_an_operator_is_sent_once(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8, 0);
    read_worker(r, w.slot, false);
    (void)rig_submit(r, JOB(T("x", "h", "1", "") "," T("y", "h", "2", ""), "\"x\",\"y\""));
    const struct mr_ws_down *m = with_tasks();
    assert_int_equal(m->ops_count, 1);
    assert_text(m->ops[0], "h");
    assert_true(m->tasks.count == 2 && !m->tasks.op);
    assert_int_equal(m->tasks.op_of_all, 1);
    (void)rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "h", "3", ""), "\"x\",\"y\""));
    m = with_tasks();
    assert_int_equal(m->ops_count, 1);
    assert_text(m->ops[0], "f");
    assert_int_equal(m->tasks.count, 2);
    assert_int_equal(m->tasks.op[0] + m->tasks.op[1], 3);
    (void)rig_submit(r, JOB(T("x", "f", "5", ""), "\"x\""));
    m = with_tasks();
    assert_int_equal(m->ops_count, 0);
    assert_int_equal(mr_ws_op(&m->tasks, 0), 2);
}

/* ---- stores ---------------------------------------------------------------------------------- */

static void submit_one(struct rig *r)
{
    (void)rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
}

static void a_worker_is_told_of_each_store_with_its_first_tasks(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "a");
    rig_store(r, 0x52, "b");
    rig_store(r, 0x53, "c");
    rig_store_close(r, 0x52);
    struct rig_worker w = join(r, "w", 8, 0x51);
    read_worker(r, w.slot, true);
    rig_heartbeat(r, w);
    assert_int_equal(wire.m[0].nodes_count, 0); /* the answer to a heartbeat names no store */
    submit_one(r);
    const struct mr_ws_down *m = with_tasks();
    assert_int_equal(m->nodes_count, 2); /* 0x52 has no session */
    assert_int_equal(m->nodes[0].id.v, 0x51);
    assert_int_equal(m->nodes[1].id.v, 0x53);
    assert_text(m->nodes[0].address, "a");
    submit_one(r);
    /* No store has registered since the last message. */
    assert_int_equal(with_tasks()->nodes_count, 0);
    rig_store(r, 0x52, "b");
    submit_one(r);
    m = with_tasks();
    assert_int_equal(m->nodes_count, 1);
    assert_int_equal(m->nodes[0].id.v, 0x52);
}

static void without_addresses_only_stores_of_values_are_named(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "a");
    rig_store(r, 0x52, "b");
    const struct rig_spec one = {.name = "a", .node = "a", .slots = 4, .store = 0x52, .ops = "f"},
                          two = {.name = "b", .node = "b", .slots = 4, .store = 0x51, .ops = "g"};
    struct rig_worker a = rig_join(r, &one), b = rig_join(r, &two);
    read_worker(r, b.slot, false);
    uint64_t job = rig_submit(
        r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", "") "," T("z", "f", "3", "") "," T(
                   "u", "g", R("x") "," R("y"), "") "," T("v", "g", R("z"), ""),
               "\"u\",\"v\""));
    rig_done(r, a, job, "x");
    r->object_bytes = 70000;
    mr_object_id y = rig_done_object(r, a, job, "y");
    const struct mr_ws_down *m = with_tasks();
    assert_int_equal(m->nodes_count, 1);
    assert_int_equal(m->nodes[0].id.v, 0x52);
    assert_int_equal(m->values.count, 2);
    assert_int_equal(m->values.objects_count, 1);
    assert_int_equal(m->values.object_maker[0], y.maker);
    assert_int_equal(m->values.object_number[0], y.number);
    assert_int_equal(m->values.object_bytes[0], 70000);
    assert_int_equal(m->values.object_node[0], 1);
    assert_text(m->values.inlined, "x");
    assert_int_equal(m->values.inline_bytes[0] + m->values.inline_bytes[1], 1);
    assert_true(m->values.runs_count == 1 && m->values.runs[0].job.v == job);
    (void)rig_done_object(r, a, job, "z");
    m = with_tasks();
    assert_int_equal(m->nodes_count, 0); /* the worker knows the number of store 0x52 already */
    assert_int_equal(m->values.object_node[0], 1);
}

/* Submits a job whose task needs an object of `store`, and returns the message with that task.
 * `store` 0: the scheduler does not know the object's store. */
static const struct mr_ws_down *submit_use(struct rig *r, uint64_t number, uint64_t store)
{
    const struct mr_sched_resolved there = {
        .index = 0, .object = {7, number}, .bytes = 9, .store = store};
    const struct mr_sched_submit more = {.resolved = &there, .resolved_count = 1};
    uint64_t job = rig_submit_with(r,
        "{\"tasks\":{\"o\":{\"name\":\"n\"},\"y\":{\"op\":\"f\",\"args\":[{\"ref\":\"o\"}]}},"
        "\"targets\":[\"y\"]}",
        &more);
    assert_int_equal(rig_index(r, job, "o"), 0);
    return with_tasks();
}

/* An object that a graph names may be in a store whose address the scheduler does not know yet. */
static void a_store_gets_another_number_when_its_address_is_known(void **state)
{
    (void)state;
    for (int with_addresses = 0; with_addresses < 2; with_addresses++) {
        struct rig *r = rig_new();
        struct rig_worker w = join(r, "w", 8, 0);
        read_worker(r, w.slot, with_addresses);
        /* The store keeps its number as long as it has no address. */
        for (uint64_t i = 1; i < 3; i++) {
            const struct mr_ws_down *m = submit_use(r, i, 0x99);
            assert_int_equal(m->nodes_count, i == 1);
            if (i == 1) assert_true(m->nodes[0].id.v == 0x99 && !m->nodes[0].address.n);
            assert_int_equal(m->values.object_node[0], 1);
        }
        rig_store(r, 0x99, "b");
        const struct mr_ws_down *m = submit_use(r, 3, 0x99);
        assert_int_equal(m->nodes_count, with_addresses);
        if (with_addresses) assert_text(m->nodes[0].address, "a");
        assert_int_equal(m->values.object_node[0], 1 + with_addresses);
        m = submit_use(r, 4, 0x99);
        assert_int_equal(m->nodes_count, 0);
        assert_int_equal(m->values.object_node[0], 1 + with_addresses);
        m = submit_use(r, 6, 0x98); /* another store gets the next number */
        assert_int_equal(m->values.object_node[0], 2 + with_addresses);
        assert_int_equal(submit_use(r, 5, 0)->values.object_node[0], 0);
        (void)end(state);
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void what_few_tasks_have_is_sent_with_these(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 8, .resource = "gpu", .amount = 9};
    struct rig_worker w = rig_join(r, &spec);
    read_worker(r, w.slot, false);
    uint64_t job = rig_submit(
        r, "{\"priority\":2,\"tasks\":{" T("a", "f", "1", "") "," T("b", "f", "2",
               ",\"timeout_s\":2") "," T("c", "f", "3", ",\"resources\":{\"gpu\":3}") "," T("d",
               "f", R("a"), ",\"persist\":\"name\"") "," T("e", "long", "5",
               "") "},\"targets\":[\"b\",\"c\",\"d\",\"e\"]}");
    rig_done(r, w, job, "a");
    uint32_t seen = 0;
    for (uint32_t i = 0; i < wire.count; i++) {
        const struct mr_ws_tasks *k = &wire.m[i].tasks;
        for (uint32_t n = 0; n < k->extras_count; n++) {
            const struct mr_ws_extra *x = &k->extras[n];
            char key = x->key.p[0];
            seen += 1u << 4 * (key - 'b');
            assert_int_equal(k->index[x->row], rig_index(r, job, (char[]){key, 0}));
            assert_int_equal(x->timeout_ns, key == 'b' ? 2 * MR_SECOND : 0);
            assert_int_equal(x->resources_count, key == 'c');
            if (key == 'c') assert_text(x->resources[0].name, "gpu");
            if (key == 'c') assert_int_equal(x->resources[0].micro, 3000000);
            assert_int_equal(x->persist, key == 'd');
            assert_text(x->persist_name, key == 'd' ? "name" : "");
            assert_int_equal(x->definition.n, key == 'd' ? 16 : 0);
            assert_false(x->alone || x->long_running || x->want_object);
        }
        for (uint32_t n = 0; n < k->count; n++)
            assert_int_equal(k->priority[n], 2000);
    }
    assert_int_equal(seen, 0x111);
    rig_end(r, w, job, "d", MR_OUTCOME_RETURNED);
    rig_heartbeat(r, w);
    const struct mr_ws_tasks *d = &with_tasks()->tasks;
    assert_int_equal(d->inputs_total, 1);
    assert_int_equal(d->inputs[0], rig_index(r, job, "a"));
    assert_true(d->last_use_count == 1 && d->last_use[0] == 0);
    assert_int_equal(d->inputs_count[0], 1);
    assert_int_equal(mr_ws_attempt(d, 0), 2);
    assert_true(d->args.n == d->args_bytes[0] && d->args.n > 0);
}

static void all_resources_of_a_task_are_sent_and_what_defines_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct mr_ws_operator ops[] = {{.name = MR_STR("f")}};
    const struct mr_ws_resource resources[] = {
        {MR_STR_INIT("cpu"), 4000000}, {MR_STR_INIT("gpu"), 2000000}};
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_REGISTER, .session = 7};
    ev.worker = (struct mr_ws_register){.name = MR_STR("a"),
        .node = MR_STR("a"),
        .slots = 8,
        .ops = ops,
        .ops_count = 1,
        .resources = resources,
        .resources_count = 2};
    rig_step(r, &ev);
    read_worker(r, r->last.slot, false);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", ",\"resources\":{\"gpu\":2,\"cpu\":3}") "," T(
                              "y", "f", "2", ",\"resources\":{\"cpu\":1},\"persist\":\"n\""),
                          "\"x\",\"y\""));
    const struct mr_ws_tasks *k = &with_tasks()->tasks;
    assert_int_equal(k->extras_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct mr_ws_extra *x = &k->extras[i];
        bool is_x = x->key.p[0] == 'x';
        assert_int_equal(x->resources_count, is_x ? 2 : 1);
        assert_text(x->resources[0].name, "cpu");
        assert_int_equal(x->resources[0].micro, is_x ? 3000000 : 1000000);
        if (is_x) assert_text(x->resources[1].name, "gpu");
        if (is_x) assert_int_equal(x->resources[1].micro, 2000000);
        if (is_x) continue;
        struct mr_sched_job_info info;
        assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
        mr_graph_hash hash = info.graph->hash[rig_index(r, job, "y")];
        unsigned char bytes[16];
        mr_object_id_to_bytes((mr_object_id){hash.hi, hash.lo}, bytes);
        assert_int_equal(x->definition.n, 16);
        assert_memory_equal(x->definition.p, bytes, 16);
    }
}

static void a_task_that_is_tried_again_comes_with_its_attempt(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8, 0);
    read_worker(r, w.slot, false);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":2") "," T("y", "f", R("x"), ""), "\"y\""));
    rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
    const struct mr_ws_tasks *k = &with_tasks()->tasks;
    assert_int_equal(k->index[0], rig_index(r, job, "x"));
    assert_int_equal(mr_ws_attempt(k, 0), 2);
    bool has_uses = false;
    for (uint32_t i = 0; i < wire.count; i++)
        has_uses = has_uses || wire.m[i].tasks.uses;
    assert_true(has_uses); /* "x" has one consumer */
}

/* ---- other sections -------------------------------------------------------------------------- */

static const struct mr_ws_down *last(void)
{
    assert_true(wire.count > 0);
    return &wire.m[wire.count - 1];
}

static void assert_one(const struct mr_ws_refs *refs, uint64_t job, uint32_t index)
{
    assert_int_equal(refs->count, 1);
    assert_int_equal(refs->runs_count, 1);
    assert_int_equal(refs->runs[0].job.v, job);
    assert_int_equal(refs->index[0], index);
    assert_int_equal(mr_ws_attempt_of(refs, 0), 1);
}

static void what_a_worker_is_asked_for_is_in_the_section_of_that_name(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.inline_blocks = 8;
    struct rig *r = rig_new_with(&c);
    struct rig_worker w = join(r, "w", 1, 0);
    read_worker(r, w.slot, false);
    const struct mr_ws_heartbeat beat = {.time_ns = r->now, .sequence = 7};
    struct mr_ws_up up = {.heartbeat = &beat};
    rig_message(r, w, &up);
    assert_true(last()->heard == 7 && !last()->registered && !last()->drain);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    struct mr_sched_submit more = {.parent = {{job}, rig_index(r, job, "x"), 1}};
    uint64_t child = rig_submit_with(r, JOB(T("c", "f", "1", ""), "\"c\""), &more);
    assert_one(&last()->leave, job, 0);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, child), MR_OK);
    rig_done_bytes(r, w, job, "x", 900); /* the value is too large for the cache */
    rig_want(r, job, "x");
    assert_one(&last()->fetch, job, 0);
    rig_done_bytes(r, w, job, "x", 900); /* the worker sends the bytes of "x" */
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    assert_one(&last()->release, job, 0);
    job = rig_submit(r, JOB(T("x", "f", "2", ""), "\"x\""));
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_one(&last()->cancel, job, 0);
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_RETIRE, .slot = w.slot, .incarnation = w.incarnation};
    rig_step(r, &ev);
    assert_true(last()->drain);
}

static void a_worker_is_asked_for_tasks_that_an_idle_one_could_run(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    uint64_t first = rig_submit(r, JOB(T("x", "f", "0", ""), "\"x\""));
    rig_done(r, a, first, "x");
    uint64_t job = rig_submit(
        r, "{\"tasks\":{\"t${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":5}}}}");
    read_worker(r, a.slot, false);
    (void)join(r, "b", 1, 0);
    const struct mr_ws_refs *steal = &last()->steal;
    assert_true(steal->count > 0);
    assert_int_equal(steal->index[0], rig_index(r, job, "t4"));
    assert_int_equal(steal->runs[0].job.v, job);
}

static void a_worker_that_comes_again_is_told_what_it_keeps(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 2, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", "2", ""), "\"x\",\"y\""));
    rig_done(r, w, job, "x");
    rig_close(r, w);
    uint32_t x = rig_index(r, job, "x"), y = rig_index(r, job, "y"), one = 1;
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    struct mr_ws_register more = {.incarnation = w.incarnation, .queued = {&run, 1, &y, &one, 1}};
    more.holding = (struct mr_ws_completed){
        .tasks = {&run, 1, &x, &one, 1}, .inline_bytes = &one, .inlined = MR_STR("x")};
    const struct rig_spec spec = {.name = "w", .node = "w", .slots = 2};
    read_worker(r, w.slot, false);
    (void)rig_join_as(r, &spec, &more);
    const struct mr_ws_registered *a = wire.m[0].registered;
    assert_non_null(a);
    assert_int_equal(a->incarnation, w.incarnation);
    assert_int_equal(a->epoch, r->c.epoch);
    assert_int_equal(a->scheduler, r->c.incarnation);
    assert_int_equal(a->heartbeat_ns, r->c.heartbeat);
    assert_int_equal(a->lease_ns, r->c.lease);
    assert_one(&a->adopt, job, x);
    assert_one(&a->keep, job, y);
    rig_heartbeat(r, w);
    assert_null(last()->registered);
}

#define WIRE_TEST(name) cmocka_unit_test_teardown(name, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WIRE_TEST(the_name_of_an_operator_is_sent_once),
        WIRE_TEST(a_worker_is_told_of_each_store_with_its_first_tasks),
        WIRE_TEST(without_addresses_only_stores_of_values_are_named),
        WIRE_TEST(a_store_gets_another_number_when_its_address_is_known),
        WIRE_TEST(what_few_tasks_have_is_sent_with_these),
        WIRE_TEST(all_resources_of_a_task_are_sent_and_what_defines_it),
        WIRE_TEST(a_task_that_is_tried_again_comes_with_its_attempt),
        WIRE_TEST(what_a_worker_is_asked_for_is_in_the_section_of_that_name),
        WIRE_TEST(a_worker_is_asked_for_tasks_that_an_idle_one_could_run),
        WIRE_TEST(a_worker_that_comes_again_is_told_what_it_keeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
