/* The scheduler's core: the fields of the messages that it sends to a worker. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define STORE 0x51
#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define ROWS 64

/* Copies of what one worker was sent, because a batch lives for one step only. */
static struct sent {
    uint32_t slot; /* the worker's row in the core's table of workers */
    uint32_t count, values_count, batches;
    struct sent_row {
        uint64_t job;
        uint32_t index, attempt, inputs_count, inputs[8], last, uses;
        int32_t priority;
        char op[16], args[64];
        size_t args_bytes;
        bool unfused, has_extra, alone, long_running, persist;
        uint64_t timeout_ns;
        char key[16], name[16], resource[16];
        uint64_t micro;
        mr_graph_hash definition;
    } row[ROWS];
    struct sent_value {
        uint64_t job;
        uint32_t index;
        char bytes[64];
        size_t bytes_count;
        mr_object_id object;
        uint64_t object_bytes;
        uint32_t store;
    } value[ROWS];
    uint64_t incarnation, session, heard;
    bool frees_objects;
} sent;

static void take_values(const struct mr_sched_batch *b)
{
    size_t inline_at = 0, objects = 0;
    for (uint32_t i = 0, run = 0, left = 0; i < b->values.count; i++, left--) {
        while (!left)
            left = b->values.runs.p[run++].count;
        struct sent_value *v = &sent.value[sent.values_count++];
        *v = (struct sent_value){.job = b->values.runs.p[run - 1].job.v,
            .index = b->values.index[i],
            .bytes_count = b->values.inline_bytes[i]};
        memcpy(v->bytes, b->value_inline.p + inline_at, MR_MIN(v->bytes_count, sizeof v->bytes));
        inline_at += v->bytes_count;
        if (v->bytes_count) continue;
        v->object = ((const mr_object_id *)(const void *)b->value_object.p)[objects];
        v->object_bytes = ((const uint64_t *)(const void *)b->value_object_bytes.p)[objects];
        v->store = ((const uint32_t *)(const void *)b->value_object_store.p)[objects++];
    }
    assert_int_equal(inline_at, b->value_inline.n);
    if (objects) assert_true(b->has_more);
}

static void take_extra(struct rig *r, const struct mr_sched_batch *b, uint32_t first)
{
    const struct mr_sched_extra *x = (const void *)b->extra.p;
    for (size_t i = 0; i < b->extra.n / sizeof *x; i++) {
        struct sent_row *row = &sent.row[first + x[i].row];
        assert_true(b->has_more && !row->has_extra);
        row->has_extra = true;
        row->alone = x[i].alone;
        row->long_running = x[i].long_running;
        row->persist = x[i].persist;
        row->timeout_ns = x[i].timeout_ns;
        row->definition = x[i].definition;
        memcpy(row->key, b->text.p + x[i].key_at, x[i].key_bytes);
        memcpy(row->name, b->text.p + x[i].persist_name_at, x[i].persist_name_bytes);
        const struct mr_sched_amount *a = (const void *)b->resources.p;
        assert_true(x[i].resources_count <= 1);
        if (!x[i].resources_count) continue;
        struct mr_str kind = mr_sched_resource_name(r->s, a[x[i].resources_at].kind);
        (void)snprintf(row->resource, sizeof row->resource, "%.*s", MR_STR_ARG(kind));
        row->micro = a[x[i].resources_at].micro;
    }
}

static void take(struct rig *r, uint32_t slot, const struct mr_sched_batch *b)
{
    if (slot != sent.slot) return;
    uint32_t first = sent.count, input = 0, last = 0;
    size_t args = 0;
    const uint32_t *inputs = (const void *)b->inputs.p, *lasts = (const void *)b->last_use.p;
    sent.batches++;
    sent.incarnation = b->incarnation;
    sent.session = b->session;
    sent.heard = b->heard;
    sent.frees_objects = b->frees_objects;
    for (uint32_t i = 0, run = 0, left = 0; i < b->tasks.count; i++, left--) {
        while (!left)
            left = b->tasks.runs.p[run++].count;
        struct sent_row *row = &sent.row[sent.count++];
        struct mr_str op = mr_sched_op_name(r->s, mr_sched_cell(&b->tasks, MR_COLUMN_OP, i));
        *row = (struct sent_row){.job = b->tasks.runs.p[run - 1].job.v,
            .unfused = b->tasks.runs.p[run - 1].unfused,
            .index = mr_sched_cell(&b->tasks, MR_COLUMN_INDEX, i),
            .attempt = mr_sched_cell(&b->tasks, MR_COLUMN_ATTEMPT, i),
            .inputs_count = mr_sched_cell(&b->tasks, MR_COLUMN_INPUTS_COUNT, i),
            .uses = mr_sched_cell(&b->tasks, MR_COLUMN_USES, i),
            .priority = (int32_t)mr_sched_cell(&b->tasks, MR_COLUMN_PRIORITY, i),
            .args_bytes = mr_sched_cell(&b->tasks, MR_COLUMN_ARGS_BYTES, i)};
        (void)snprintf(row->op, sizeof row->op, "%.*s", MR_STR_ARG(op));
        memcpy(row->args, b->args.p + args, row->args_bytes);
        args += row->args_bytes;
        for (uint32_t k = 0; k < row->inputs_count; k++, input++) {
            row->inputs[k] = inputs[input];
            if (last < b->last_use.n / sizeof *lasts && lasts[last] == input) {
                row->last |= 1u << k;
                last++;
            }
        }
    }
    assert_int_equal(args, b->args.n);
    assert_int_equal(input * sizeof *inputs, b->inputs.n);
    assert_int_equal(last * sizeof *lasts, b->last_use.n);
    take_extra(r, b, first);
    take_values(b);
}

static void look_at(struct rig *r, struct rig_worker w)
{
    sent = (struct sent){.slot = w.slot};
    r->on_batch = take;
}

static const struct sent_row *row_of(struct rig *r, uint64_t job, const char *key)
{
    for (uint32_t i = sent.count; i-- > 0;)
        if (sent.row[i].job == job && sent.row[i].index == rig_index(r, job, key))
            return &sent.row[i];
    fail_msg("\"%s\" was not sent", key);
    return NULL;
}

static const struct sent_value *value_of(struct rig *r, uint64_t job, const char *key)
{
    for (uint32_t i = sent.values_count; i-- > 0;)
        if (sent.value[i].job == job && sent.value[i].index == rig_index(r, job, key))
            return &sent.value[i];
    fail_msg("the value of \"%s\" was not sent", key);
    return NULL;
}

static void assert_args(struct rig *r, uint64_t job, const char *key)
{
    struct mr_sched_job_info info;
    const struct sent_row *row = row_of(r, job, key);
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    struct mr_str args = mr_graph_args(info.graph, row->index);
    assert_int_equal(row->args_bytes, args.n);
    assert_memory_equal(row->args, args.p, args.n);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_task_is_sent_as_its_graph_has_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {
        .name = "w", .slots = 8, .store = STORE, .resource = "gpu", .amount = 4};
    rig_store(r, STORE, "n");
    const struct rig_spec other = {.name = "o", .ops = "rare", .resource = "tpu", .amount = 4};
    (void)rig_join(r, &other);
    struct rig_worker w = rig_join(r, &spec);
    look_at(r, w);
    uint64_t job = rig_submit(r,
        "{\"priority\":-7,\"tasks\":{" T("a", "f", "1", "") "," T("b", "g",
            R("a") ",\"text\"," R("lit"),
            ",\"timeout_s\":2.5,\"retries\":1") ","
                                                "\"lit\":{\"value\":[1,2,3]}," T("c", "h", "3",
                                                    ",\"resources\":{\"gpu\":1.5}") "," T("d", "f",
                                                    R("a"),
                                                    ",\"persist\":\"a name\"") "," T("e", "f", "5",
                                                    ",\"priority\":9") "," T("l", "long", "6",
                                                    ",\"long_running\":true") "},\"targets\":[\"b\",\"c\",\"d\",\"e\",\"l\"]}");
    rig_done(r, w, job, "a");
    const struct sent_row *a = row_of(r, job, "a"), *b = row_of(r, job, "b"),
                          *c = row_of(r, job, "c"), *d = row_of(r, job, "d"),
                          *e = row_of(r, job, "e"), *l = row_of(r, job, "l");
    for (const char *key = "abcdel"; *key; key++) {
        const char text[2] = {*key, 0};
        assert_args(r, job, text);
        assert_int_equal(row_of(r, job, text)->attempt, 1);
        assert_int_equal(row_of(r, job, text)->priority, *key == 'e' ? -6991 : -7000);
        assert_false(row_of(r, job, text)->unfused || row_of(r, job, text)->alone);
        assert_int_equal(row_of(r, job, text)->last, 0); /* no last use: two tasks use "a" */
    }
    assert_string_equal(a->op, "f");
    assert_string_equal(b->op, "g");
    assert_string_equal(c->op, "h");
    assert_false(a->has_extra || e->has_extra);
    assert_int_equal(b->inputs_count, 2);
    assert_int_equal(b->inputs[0], rig_index(r, job, "a"));
    assert_int_equal(b->inputs[1], rig_index(r, job, "lit"));
    assert_int_equal(d->inputs_count, 1);
    assert_int_equal(a->inputs_count + c->inputs_count + e->inputs_count, 0);
    assert_int_equal(b->timeout_ns, 2500 * MR_MS);
    assert_string_equal(b->key, "b");
    assert_false(b->persist || b->long_running);
    assert_false(b->definition.hi || b->definition.lo);
    assert_true(l->has_extra && l->long_running);
    assert_false(d->long_running);
    assert_string_equal(l->key, "l");
    assert_string_equal(b->name, "");
    assert_string_equal(c->resource, "gpu");
    assert_int_equal(c->micro, 1500000);
    assert_string_equal(c->key, "c");
    assert_int_equal(c->timeout_ns, 0);
    assert_true(d->persist);
    assert_string_equal(d->name, "a name");
    assert_string_equal(d->key, "d");
    assert_string_equal(d->resource, "");
    assert_true(d->definition.hi || d->definition.lo);
    assert_string_equal(l->op, "long");
    const struct sent_value *lit = value_of(r, job, "lit");
    assert_true(lit->bytes_count > 0 && lit->store == 0);
    assert_int_equal(sent.incarnation, w.incarnation);
    assert_int_equal(sent.session, w.session);
}

static void a_value_is_sent_to_who_does_not_have_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec one = {.name = "a", .node = "a", .slots = 1, .store = STORE, .ops = "f"},
                          two = {
                              .name = "b", .node = "b", .slots = 4, .store = STORE + 1, .ops = "g"};
    rig_store(r, STORE, "a");
    rig_store(r, STORE + 1, "b");
    struct rig_worker a = rig_join(r, &one), b = rig_join(r, &two);
    look_at(r, b);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", "") "," T("z", "g",
                                         R("x") "," R("y"), "") "," T("u", "g", R("x"), ""),
                                     "\"z\",\"u\""));
    rig_done(r, a, job, "x");
    r->object_bytes = 123456;
    mr_object_id y = rig_done_object(r, a, job, "y");
    assert_int_equal(row_of(r, job, "z")->inputs_count, 2);
    const struct sent_value *small = value_of(r, job, "x"), *large = value_of(r, job, "y");
    assert_int_equal(small->bytes_count, 1);
    assert_int_equal(small->bytes[0], 'x');
    assert_true(mr_object_id_eq(large->object, y));
    assert_int_equal(large->object_bytes, 123456);
    assert_int_equal(large->store, 1);
}

/* A value may be dropped after the run of its last consumer. */
static void a_last_use_is_marked(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 4};
    struct rig_worker w = rig_join(r, &spec);
    look_at(r, w);
    uint64_t job = rig_submit(
        r, JOB(T("x", "f", "1", "") "," T("t", "f", "2", "") "," T("o", "f", "3", "") "," T(
                   "z", "g", R("t") "," R("x") "," R("o"), "") "," T("u", "h", R("o"), ""),
               "\"z\",\"t\",\"u\""));
    rig_done(r, w, job, "x");
    rig_done(r, w, job, "t");
    rig_done(r, w, job, "o");
    rig_end(r, w, job, "z", MR_OUTCOME_RETURNED);
    rig_heartbeat(r, w);
    const struct sent_row *z = row_of(r, job, "z");
    assert_int_equal(z->attempt, 2);
    assert_int_equal(z->inputs_count, 3);
    /* only "x" is marked: "t" is a target, and two tasks use "o" */
    for (uint32_t k = 0; k < 3; k++)
        assert_int_equal(z->last >> k & 1, z->inputs[k] == rig_index(r, job, "x"));
    rig_done(r, w, job, "z");
    rig_done(r, w, job, "u");
    assert_int_equal(rig_count(r, SAID_RELEASE, w, job, "x"), 0);
    assert_int_equal(rig_count(r, SAID_RELEASE, w, job, "o"), 1);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void an_attempt_after_a_failure_has_the_next_number(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 4};
    struct rig_worker w = rig_join(r, &spec);
    look_at(r, w);
    uint64_t job =
        rig_submit(r, "{\"tasks\":{" T("x", "f", "1", ",\"retries\":2") "},"
                                                                        "\"targets\":[\"x\"]}");
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(row_of(r, job, "x")->attempt, i);
        rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
    }
    assert_int_equal(row_of(r, job, "x")->attempt, 3);
    assert_int_equal(row_of(r, job, "x")->uses, 0);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_int_equal(info.retried, 2);
    assert_int_equal(rig_task(r, job, "x").retries_left, 0);
}

static void a_heartbeat_is_answered_with_its_number(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w"});
    for (uint64_t i = 7; i < 9; i++) {
        look_at(r, w);
        const struct mr_ws_heartbeat beat = {.time_ns = r->now, .sequence = i};
        struct mr_ws_up m = {.heartbeat = &beat};
        rig_message(r, w, &m);
        assert_int_equal(sent.heard, i);
    }
    look_at(r, w);
    (void)rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    assert_int_equal(sent.count, 1);
    assert_int_equal(sent.heard, 0); /* this batch answers no heartbeat */
}

static struct { /* what the batches have said since the test looked last */
    bool more, drain, registered, frees;
    uint32_t columns; /* a bit for each column of tasks that was written */
    uint32_t batches, adopted, kept, cancelled, released;
} seen;

static void see(struct rig *r, uint32_t slot, const struct mr_sched_batch *b)
{
    (void)r;
    (void)slot;
    seen.batches++;
    seen.columns |= b->tasks.filled;
    seen.more |= b->has_more;
    seen.drain |= b->drain;
    seen.registered |= b->has_registered;
    seen.frees |= b->frees_objects;
    seen.adopted += b->adopt.count;
    seen.kept += b->keep.count;
    seen.cancelled += b->cancel.count;
    seen.released += b->release.count;
}

static void look(struct rig *r)
{
    memset(&seen, 0, sizeof seen);
    r->on_batch = see;
}

/* The core uses the memory of a batch again. A batch must not repeat what the batch before said. */
static void a_batch_says_nothing_of_the_batch_before(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "n");
    look(r);
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w", .slots = 4, .store = STORE});
    assert_true(seen.registered && !seen.frees && !seen.drain);
    look(r);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\""));
    assert_true(seen.batches && !seen.registered && !seen.more);
    assert_int_equal(seen.columns, 1u << MR_COLUMN_INDEX | 1u << MR_COLUMN_ARGS_BYTES);
    (void)rig_done_object(r, w, job, "x");
    look(r);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    assert_true(seen.frees && seen.more);
    assert_int_equal(seen.cancelled, 1);
    assert_int_equal(seen.released, 1);
    look(r);
    job =
        rig_submit(r, "{\"priority\":1,\"tasks\":{" T("x", "f", "1", "") "},\"targets\":[\"x\"]}");
    assert_int_equal(seen.batches, 1);
    assert_int_equal(seen.columns,
        1u << MR_COLUMN_INDEX | 1u << MR_COLUMN_ARGS_BYTES | 1u << MR_COLUMN_PRIORITY);
    assert_false(seen.frees || seen.more || seen.registered || seen.drain);
    assert_int_equal(seen.cancelled + seen.released + seen.adopted + seen.kept, 0);
    rig_done(r, w, job, "x"); /* the value of "x" is small: no store has it */
    look(r);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    assert_int_equal(seen.released, 1);
    assert_false(seen.frees);
    look(r);
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_RETIRE, .slot = w.slot, .incarnation = w.incarnation};
    rig_step(r, &ev);
    assert_true(seen.drain);
    look(r);
    rig_heartbeat(r, w);
    (void)rig_join(r, &(struct rig_spec){.name = "v"});
    assert_true(seen.batches && seen.registered && !seen.drain);
}

/* The batch has more rows than its memory has room for at first. */
static void the_rows_of_a_large_batch_stay_whole(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(r,
        "{\"tasks\":{\"x-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"priority\":3,\"for\":{\"i\":30}},"
        "\"y-${i}\":{\"op\":\"g\",\"args\":[\"${i}\"],\"for\":{\"i\":30}}}}");
    look_at(r, (struct rig_worker){.slot = 0});
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w", .slots = 60});
    assert_int_equal(w.slot, 0);
    assert_int_equal(sent.count, 60);
    assert_int_equal(sent.batches, 2); /* one batch answers Register, and one has the tasks */
    for (uint32_t i = 0; i < 30; i++) {
        char key[16];
        for (int is_y = 0; is_y < 2; is_y++) {
            (void)snprintf(key, sizeof key, "%c-%u", is_y ? 'y' : 'x', i);
            assert_args(r, job, key);
            assert_string_equal(row_of(r, job, key)->op, is_y ? "g" : "f");
            assert_int_equal(row_of(r, job, key)->priority, is_y ? 0 : 3);
        }
    }
    rig_forget_rows(r);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    for (uint32_t i = 0; i < 30; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "x-%u", i);
        assert_int_equal(rig_count(r, SAID_CANCEL, w, job, key), 1);
        assert_int_equal(rig_row(r, SAID_CANCEL, job, key)->attempt, 1);
    }
}

/* The core learns whether an operator is long-running from the first worker that offers the
 * operator. Here this worker comes after the job was planned. */
static void an_operator_is_long_running_if_its_first_worker_says_so(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job =
        rig_submit(r, JOB(T("l", "long", "1", "") "," T("x", "f", "2", ""), "\"l\",\"x\""));
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w", .slots = 1});
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "l"), 1);
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "x"), 1); /* "l" occupies no slot */
}

/* The scheduler's cache of inline values consists of blocks of 28 bytes. Each value here is longer,
 * so the cache keeps it in several blocks. */
static void each_value_of_a_batch_has_its_own_bytes(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = rig_join(r, &(struct rig_spec){.name = "a", .slots = 4, .ops = "f"}),
                      b = rig_join(r, &(struct rig_spec){.name = "b", .slots = 4, .ops = "rare"});
    uint64_t job = rig_submit(
        r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", "") "," T("z", "g", R("x") "," R("y"), ""),
               "\"z\""));
    static const char x[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                      y[] = "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy";
    rig_done_value(r, a, job, "x", mr_str(x));
    rig_done_value(r, a, job, "y", mr_str(y));
    /* Worker c will get the row after b's in the table of workers. look_at makes `sent` collect
     * what the scheduler sends to c. */
    look_at(r, (struct rig_worker){.slot = b.slot + 1});
    (void)rig_join(r, &(struct rig_spec){.name = "c", .slots = 4, .ops = "g"});
    assert_int_equal(sent.values_count, 2);
    assert_string_equal(value_of(r, job, "x")->bytes, x);
    assert_string_equal(value_of(r, job, "y")->bytes, y);
}

/* A task with a higher priority is sent first. Tasks of equal priority are sent in the order of
 * their graph. */
static void tasks_are_sent_by_priority_and_then_in_the_order_of_their_graph(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(
        r, JOB(T("a", "f", "1", "") "," T("b", "f", "2", ",\"priority\":5") "," T("c", "f", "3",
                   ",\"priority\":-5") "," T("d", "f", "4", ",\"priority\":5") "," T("e", "f", "5",
                   "") "," T("g", "f", "6", ",\"priority\":-5"),
               "\"a\",\"b\",\"c\",\"d\",\"e\",\"g\""));
    look_at(r, (struct rig_worker){.slot = 0});
    (void)rig_join(r, &(struct rig_spec){.name = "w", .slots = 6});
    assert_int_equal(sent.count, 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(sent.row[i].index,
            rig_index(r, job, (const char *[]){"b", "d", "a", "e", "c", "g"}[i]));
}

/* A worker need not report a value if it knows all tasks that use the value. The scheduler sends
 * their number, unless it is above 64. */
static void the_uses_of_a_value_are_counted_up_to_64(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w", .slots = 4});
    for (uint32_t n = 63; n <= 66; n++) {
        char json[256];
        (void)snprintf(json, sizeof json,
            "{\"tasks\":{" T("x", "f", "1", "") ",\"y-${i}\":{\"op\":\"rare\",\"args\":[" R(
                "x") ",\"${i}\"],\"for\":{\"i\":%u}}}}",
            n);
        look_at(r, w);
        uint64_t job = rig_submit(r, json);
        assert_int_equal(row_of(r, job, "x")->uses, n <= 64 ? n : 0);
        assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    }
}

/* Values that are persisted, impure, or targets are always reported, so no number of uses is sent.
 */
static void a_value_that_leaves_its_worker_is_sent_without_uses(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w", .slots = 8});
    look_at(r, w);
    uint64_t job =
        rig_submit(r, JOB(T("a", "f", "1", "") "," T("b", "f", "2", ",\"persist\":\"b\"") "," T(
                              "c", "f", "3", "") "," T("d", "f", "4", ",\"pure\":false") "," T("x",
                              "rare", R("a") "," R("b") "," R("c") "," R("d"), ""),
                          "\"x\",\"c\""));
    assert_int_equal(row_of(r, job, "a")->uses, 1);
    assert_int_equal(row_of(r, job, "b")->uses, 0);
    assert_int_equal(row_of(r, job, "c")->uses, 0);
    assert_int_equal(row_of(r, job, "d")->uses, 0);
}

/* A worker drops a received value as soon as no task of that worker needs the value. So each batch
 * with tasks that need the value has the value once. */
static void a_value_is_sent_with_each_batch_that_needs_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = rig_join(r, &(struct rig_spec){.name = "a", .slots = 4, .ops = "f"}),
                      b = rig_join(r, &(struct rig_spec){.name = "b", .slots = 2, .ops = "g"});
    uint64_t job =
        rig_submit(r, "{\"tasks\":{" T("x", "f", "1", "") ",\"y-${i}\":{\"op\":\"g\",\"args\":[" R(
                          "x") ",\"${i}\"],\"for\":{\"i\":4}}}}");
    rig_done(r, a, job, "x");
    assert_int_equal(rig_count(r, SAID_TASK, b, job, NULL), 2);
    assert_int_equal(rig_count(r, SAID_VALUE, b, job, "x"), 1);
    rig_done(r, b, job, rig_attempt(r, b, job, "y-0") ? "y-0" : "y-1");
    assert_int_equal(rig_count(r, SAID_TASK, b, job, NULL), 4);
    assert_int_equal(rig_count(r, SAID_VALUE, b, job, "x"), 2);
}

/* The cache has no room for the value of "x". The core fetches the bytes from the worker that made
 * the value. The core asks that worker only once, and sends the bytes to each worker that needs
 * them. */
static void a_value_that_only_its_worker_has_is_fetched_for_the_others(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.inline_blocks = 8;
    struct rig *r = rig_new_with(&c);
    struct rig_worker a = rig_join(r, &(struct rig_spec){.name = "a", .slots = 4, .ops = "f"}),
                      b = rig_join(r, &(struct rig_spec){.name = "b", .slots = 4, .ops = "g"}),
                      d = rig_join(r, &(struct rig_spec){.name = "d", .slots = 4, .ops = "h"});
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), "") "," T(
                                         "z", "h", R("x"), "") "," T("u", "g", R("x") ",2", ""),
                                     "\"y\",\"z\",\"u\""));
    rig_done_bytes(r, a, job, "x", 300);
    assert_int_equal(rig_count(r, SAID_FETCH, a, job, "x"), 1);
    assert_int_equal(rig_count(r, SAID_VALUE, b, job, "x"), 0);
    look_at(r, b);
    rig_done_as(r, a, job, "x", 1, MR_OUTCOME_OK, (mr_object_id){0, 0}, 300, MR_MS);
    assert_int_equal(value_of(r, job, "x")->bytes_count, 300);
    assert_string_equal(value_of(r, job, "x")->bytes, "x");
    assert_int_equal(rig_count(r, SAID_VALUE, b, job, "x"), 1); /* once, for "y" and "u" */
    assert_int_equal(rig_count(r, SAID_VALUE, d, job, "x"), 1);
    rig_done(r, b, job, "y");
    rig_done(r, d, job, "z");
    rig_done(r, b, job, "u");
    assert_int_equal(rig_count(r, SAID_RELEASE, a, job, "x"), 1);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_task_is_sent_as_its_graph_has_it),
        RIG_TEST(a_value_is_sent_to_who_does_not_have_it),
        RIG_TEST(a_last_use_is_marked),
        RIG_TEST(an_attempt_after_a_failure_has_the_next_number),
        RIG_TEST(a_heartbeat_is_answered_with_its_number),
        RIG_TEST(a_batch_says_nothing_of_the_batch_before),
        RIG_TEST(the_rows_of_a_large_batch_stay_whole),
        RIG_TEST(an_operator_is_long_running_if_its_first_worker_says_so),
        RIG_TEST(each_value_of_a_batch_has_its_own_bytes),
        RIG_TEST(tasks_are_sent_by_priority_and_then_in_the_order_of_their_graph),
        RIG_TEST(the_uses_of_a_value_are_counted_up_to_64),
        RIG_TEST(a_value_that_leaves_its_worker_is_sent_without_uses),
        RIG_TEST(a_value_is_sent_with_each_batch_that_needs_it),
        RIG_TEST(a_value_that_only_its_worker_has_is_fetched_for_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
