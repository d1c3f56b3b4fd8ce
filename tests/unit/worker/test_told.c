/* The worker's core: its effects for executors and store, and its messages to the scheduler, field
 * by field. */
#include "tests/unit/worker/test.h"

#define OTHER_JOB ((mr_job_id){6})

static void a_strand_says_what_its_tasks_were_sent_with(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 19, 0);
    rig_value(r, RIG_JOB, 20, 0);
    rig_value(r, RIG_JOB, 21, 1); /* an object in the store of the worker's own node */
    r->m.inlined[0] = 2;
    rig_task(r, RIG_JOB, 7, 3, OP_SLOW, INPUTS(20, 21, 19));
    *rig_extra(r) = (struct mr_ws_extra){.row = 0,
        .want_object = true,
        .persist = true,
        .timeout_ns = 77 * MR_SECOND,
        .key = MR_STR("its key"),
        .persist_name = MR_STR("a name"),
        .definition = MR_STR("sixteen bytes ok")};
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    const struct mr_strand *s = r->strands[0];
    const struct mr_strand_item *item = &s->items[0];
    assert_int_equal(s->count, 1);
    assert_int_equal(item->job.v, RIG_JOB.v);
    assert_int_equal(item->index, 7);
    assert_int_equal(item->attempt, 3);
    assert_int_equal(item->op, OP_SLOW - 1);
    assert_true(item->want_object && item->persist);
    assert_int_equal(item->timeout_ns, 77 * MR_SECOND);
    assert_true(mr_str_eq(item->key, MR_STR("its key")));
    assert_true(mr_str_eq(item->persist_name, MR_STR("a name")));
    assert_true(mr_str_eq(item->definition, MR_STR("sixteen bytes ok")));
    assert_true(mr_str_eq(item->args, MR_STR("\x90")));
    assert_int_equal(item->inputs_count, 3);
    assert_true(mr_str_eq(item->inputs[2].pack, MR_STR("\x02")));
    assert_int_equal(item->inputs[0].kind, MR_STRAND_PACK);
    assert_int_equal(item->inputs[0].index, 20);
    assert_true(mr_str_eq(item->inputs[0].pack, MR_STR("\x01")));
    assert_int_equal(item->inputs[1].kind, MR_STRAND_OBJECT);
    assert_int_equal(item->inputs[1].index, 21);
    assert_true(mr_object_id_eq(item->inputs[1].object, (mr_object_id){1001, 21}));
    assert_int_equal(item->inputs[1].object_bytes, 1 << 20);
}

static void a_task_without_more_has_no_texts(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 7, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    const struct mr_strand_item *item = &r->strands[0]->items[0];
    assert_false(item->want_object || item->persist || item->timeout_ns);
    assert_int_equal(item->key.n + item->persist_name.n + item->definition.n, 0);
    assert_int_equal(item->uses, 0);
}

/* The message has no columns of orders, priorities and uses. So the tasks have the same priority,
 * the worker runs them in the order of their index, and it reports all values. */
static void columns_that_are_not_sent_have_their_usual_values(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 2; i++) {
        rig_task(r, RIG_JOB, 8 - i, 1, OP_INC, NULL);
        rig_task(r, RIG_JOB, 18 - i, 1, OP_INC, INPUTS(8 - (int)i));
    }
    for (uint32_t i = 0; i < 4; i++) {
        r->m.order[i] = r->m.uses[i] = 1;
        r->m.priority[i] = (int32_t)i;
    }
    r->m.down.tasks.order = r->m.down.tasks.uses = NULL;
    r->m.down.tasks.priority = NULL;
    rig_deliver(r);
    rig_turn(r);
    const struct mr_strand *s = r->strands[0];
    assert_int_equal(s->count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(s->items[i].index, i % 2 + (i < 2 ? 7 : 17));
        assert_int_equal(s->items[i].uses, 0);
    }
    rig_run_all(r);
    for (uint32_t i = 7; i < 9; i++)
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_OK);
}

/* If the store has spilled objects, the worker names to the store the objects that a task will
 * read. The worker does not name small values. It does not name the inputs of an operator "by
 * reference" either, because such an operator gets only the ids of its inputs. */
static void what_is_wanted_in_memory_is_named(void **state)
{
    struct rig *r = *state;
    r->has_spilled = true;
    rig_turn(r);
    rig_value(r, RIG_JOB, 21, 1);
    rig_value(r, RIG_JOB, 22, 0);
    rig_task(r, RIG_JOB, 1, 1, OP_REF, INPUTS(21));
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, INPUTS(22));
    rig_deliver(r);
    assert_int_equal(r->wants, 0);
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, INPUTS(21, 22));
    rig_deliver(r);
    assert_int_equal(r->wants, 1);
    assert_true(mr_object_id_eq(r->last[MR_WORKER_WANT].object.object, (mr_object_id){1001, 21}));
}

/* The scheduler names another object for a value that was made here. The worker drops its own
 * object. */
static void an_object_that_the_scheduler_has_elsewhere_is_dropped_here(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_extra(r)->want_object = true;
    rig_deliver(r);
    rig_run_all(r);
    rig_value(r, RIG_JOB, 1, 2);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->drops, 1);
    assert_true(mr_object_id_eq(r->last[MR_WORKER_DROP].object.object, (mr_object_id){1, 1}));
    assert_int_equal(r->fetches, 1);
    assert_false(mr_worker_keeps(r->w, RIG_JOB, 1));
    r->now += RIG_LEASE;
    rig_turn(r);
    assert_int_equal(r->heartbeat.held_bytes, 0);
}

/* A release applies only to a value that is here, not to one that a task is about to make. */
static void a_release_before_the_value_is_made_does_nothing(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 0);
    rig_deliver(r);
    rig_run_all(r);
    assert_true(mr_worker_keeps(r->w, RIG_JOB, 1));
}

/* An operator "by reference" gets the id and the node of each input's object. */
static void a_reference_names_object_and_node(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 21, 2);
    rig_task(r, RIG_JOB, 7, 1, OP_REF, INPUTS(21));
    rig_deliver(r);
    rig_turn(r);
    const struct mr_strand *s = r->strands[0];
    const struct mr_strand_input *in = &s->items[0].inputs[0];
    assert_int_equal(in->kind, MR_STRAND_OBJECT);
    assert_true(mr_object_id_eq(in->object, (mr_object_id){1002, 21}));
    assert_int_equal(in->object_bytes, 1 << 20);
    assert_true(in->node < s->nodes_count);
    assert_int_equal(s->nodes[in->node].id.v, 78);
    assert_true(mr_str_eq(s->nodes[in->node].address, MR_STR("unix:there")));
}

static void what_is_fetched_is_named_when_it_is_asked_for_and_let_go(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 21, 2);
    rig_task(r, RIG_JOB, 7, 1, OP_SLOW, INPUTS(1021));
    rig_deliver(r);
    rig_turn(r);
    const struct mr_worker_effect *f = &r->last[MR_WORKER_FETCH];
    assert_int_equal(r->fetches, 1);
    assert_true(mr_object_id_eq(f->object.object, (mr_object_id){1002, 21}));
    assert_int_equal(f->object.job.v, RIG_JOB.v);
    assert_int_equal(f->object.bytes, 1 << 20);
    assert_int_equal(mr_worker_node(r->w, f->object.node)->id.v, 78);
    struct mr_worker_event ev = {
        .kind = MR_WORKER_FETCHED, .fetched = {r->fetch_value, r->fetch_serial, MR_OK, {0}}};
    rig_step(r, &ev);
    rig_turn(r);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->unpins, 1);
    assert_int_equal(r->last[MR_WORKER_UNPIN].object.serial, r->fetch_serial);
}

static void what_is_not_needed_any_more_is_dropped_by_its_name(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 7, 1, OP_SLOW, NULL);
    rig_extra(r)->want_object = true;
    rig_deliver(r);
    rig_turn(r);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 7, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->drops, 1);
    assert_true(mr_object_id_eq(r->last[MR_WORKER_DROP].object.object, (mr_object_id){1, 1}));
    assert_int_equal(r->last[MR_WORKER_DROP].object.job.v, RIG_JOB.v);
}

/* ---- what the scheduler hears ---------------------------------------------------------------- */

static struct heard { /* copies of what the worker sent, because messages are lent for one step */
    struct heard_row {
        uint64_t job;
        uint32_t index, attempt, outcome, bytes, slot;
        uint64_t started, duration, cpu;
        char bytes_first, bytes_last;
        mr_object_id object;
        uint64_t object_bytes;
        int code;
        char message[32], arguments[32], log[32];
    } row[16];
    uint32_t count;
    uint32_t runs;
    struct mr_ws_register reg;
} heard;

static void text(char to[32], struct mr_str s)
{
    (void)snprintf(to, 32, "%.*s", MR_STR_ARG(s));
}

static void hear(struct rig *r, const struct mr_ws_up *up)
{
    (void)r;
    const struct mr_ws_completed *c = up->reg ? &up->reg->holding : &up->completed;
    uint32_t run = 0, left = 0, objects = 0;
    size_t at = 0;
    uint64_t least = UINT64_MAX;
    if (up->reg) {
        heard.reg = *up->reg;
        heard.count = 0;
    }
    heard.runs += c->tasks.runs_count;
    for (uint32_t i = 0; i < c->tasks.count; i++, left--) {
        while (!left)
            left = c->tasks.runs[run++].count;
        struct heard_row *x = &heard.row[heard.count++];
        *x = (struct heard_row){.job = c->tasks.runs[run - 1].job.v,
            .index = c->tasks.index[i],
            .attempt = c->tasks.attempt[i],
            .outcome = c->outcome ? c->outcome[i] : MR_OUTCOME_OK,
            .bytes = c->inline_bytes[i],
            .slot = c->slot[i],
            .started = c->base_ns + c->started_ns[i],
            .duration = c->duration_ns[i],
            .cpu = c->cpu_ns[i]};
        if (c->duration_ns[i]) least = MR_MIN(least, c->started_ns[i]);
        if (x->bytes) {
            x->bytes_first = c->inlined.p[at];
            x->bytes_last = c->inlined.p[at + x->bytes - 1];
        }
        at += x->bytes;
        if (x->outcome == MR_OUTCOME_OK && !x->bytes) {
            x->object = (mr_object_id){c->object_maker[objects], c->object_number[objects]};
            x->object_bytes = c->object_bytes[objects++];
        }
        for (uint32_t k = 0; k < c->failures_count; k++) {
            if (c->failures[k].row != i) continue;
            x->code = mr_err_from_grpc(c->failures[k].code);
            text(x->message, c->failures[k].message);
            text(x->arguments, c->failures[k].arguments);
            text(x->log, c->failures[k].log);
        }
    }
    assert_int_equal(objects, c->objects_count);
    assert_int_equal(at, c->inlined.n);
    if (least == UINT64_MAX) least = c->base_ns; /* no task has started */
    assert_int_equal(least, 0);                  /* times are relative to the first start */
}

static const struct heard_row *row_of(uint64_t job, uint32_t index)
{
    for (uint32_t i = 0; i < heard.count; i++)
        if (heard.row[i].job == job && heard.row[i].index == index) return &heard.row[i];
    fail_msg("nothing was heard of %u", index);
    return NULL;
}

/* Runs three tasks of two jobs one after the other in one slot: the first makes a small value, the
 * second an object, the third fails. */
static void run_three(struct rig *r)
{
    heard = (struct heard){0};
    r->on_up = hear;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_task(r, OTHER_JOB, 2, 4, OP_SLOW, NULL);
    rig_extra(r)->want_object = true;
    rig_task(r, RIG_JOB, 3, 2, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    for (uint32_t n = 1; r->strands_count; n++) {
        struct mr_strand *s = r->strands[0];
        struct mr_strand_item *item = &s->items[s->reported];
        r->now += 10 * MR_MS;
        rig_result(r, item, item->index == 3 ? MR_STRAND_FAILED : MR_STRAND_DONE);
        item->result.started_ns = r->now - item->index * MR_MS;
        item->result.duration_ns = item->index * 100;
        item->result.cpu_ns = item->index * 10;
        item->result.arguments = MR_STR("(3) and twenty bytes more");
        item->result.log = MR_STR("a line");
        if (item->index == 1) item->result.pack = MR_STR("abcde");
        rig_report(r, s, s->reported + 1);
        rig_turn(r);
    }
    r->now += MR_SECOND;
    rig_turn(r);
}

static void assert_kept(uint64_t was)
{
    const struct heard_row *small = row_of(RIG_JOB.v, 1), *object = row_of(OTHER_JOB.v, 2);
    assert_int_equal(small->attempt, 1);
    assert_int_equal(small->outcome, MR_OUTCOME_OK);
    assert_int_equal(small->bytes, 5);
    assert_int_equal(small->bytes_first, 'a');
    assert_int_equal(small->bytes_last, 'e');
    assert_int_equal(small->duration, 100);
    assert_int_equal(small->cpu, 10);
    assert_int_equal(object->attempt, 4);
    assert_int_equal(object->outcome, MR_OUTCOME_OK);
    assert_int_equal(object->bytes, 0);
    assert_true(mr_object_id_eq(object->object, (mr_object_id){1, 1}));
    assert_int_equal(object->object_bytes, 4096);
    assert_int_equal(object->duration, 200);
    assert_int_equal(object->cpu, 20);
    assert_in_range(small->started, was, was + 40 * MR_MS);
    assert_int_equal(small->started % MR_MS, was % MR_MS);
    assert_int_equal((small->started + MR_MS - was) % (10 * MR_MS), 0);
    assert_int_equal((object->started + 2 * MR_MS - was) % (10 * MR_MS), 0);
    assert_true(small->slot < 2 && object->slot < 2);
}

static void a_completion_says_what_the_executor_said(void **state)
{
    struct rig *r = *state;
    uint64_t was = r->now;
    run_three(r);
    assert_int_equal(heard.count, 3);
    assert_kept(was);
    const struct heard_row *failed = row_of(RIG_JOB.v, 3);
    assert_int_equal(failed->attempt, 2);
    assert_int_equal(failed->outcome, MR_OUTCOME_ERROR);
    assert_int_equal(failed->code, MR_EUNKNOWN);
    assert_string_equal(failed->message, "it went wrong");
    assert_string_equal(failed->arguments, "(3) and twenty bytes more");
    assert_string_equal(failed->log, "a line");
    assert_int_equal(failed->duration, 300);
    assert_int_equal(failed->cpu, 30);
    assert_int_equal((failed->started + 3 * MR_MS - was) % (10 * MR_MS), 0);
}

/* A worker that registers again says which values it holds, and the times of the tasks that made
 * them. */
static void what_is_held_is_said_the_same_on_return(void **state)
{
    struct rig *r = *state;
    uint64_t was = r->now;
    run_three(r);
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    r->now += 20 * MR_SECOND;
    rig_connect(r);
    assert_int_equal(heard.reg.incarnation, 9);
    assert_int_equal(heard.reg.epoch, 1);
    assert_int_equal(heard.reg.scheduler, 1);
    assert_int_equal(heard.reg.time_ns, r->now);
    assert_int_equal(heard.count, 2); /* a failed task holds no value */
    assert_kept(was);
}

static void a_heartbeat_says_how_much_there_is(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_extra(r)->want_object = true;
    rig_task(r, RIG_JOB, 2, 6, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 4, 1, OP_NONE, INPUTS(90));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    r->now += 2 * MR_SECOND;
    struct mr_worker_event ev = {.kind = MR_WORKER_TURN};
    ev.turn.may_send = true;
    ev.turn.memory_used_bytes = 12345;
    uint64_t sequence = r->heartbeat.sequence;
    rig_step(r, &ev);
    assert_int_equal(r->heartbeat.sequence, sequence + 1);
    assert_int_equal(r->heartbeat.time_ns, r->now);
    assert_int_equal(r->heartbeat.memory_used_bytes, 12345);
    assert_int_equal(r->heartbeat.held_bytes, 4096);
    assert_int_equal(r->heartbeat.running, 2);
    assert_int_equal(r->heartbeat.queued, 0);
    assert_int_equal(r->heartbeat.tasks_done, 1);
    /* A task counts as started only when its executor has reported that the task ended. */
    assert_int_equal(r->heartbeat.tasks_started, 1);
    assert_int_equal(r->heartbeat.running_tasks.count, 2);
    assert_in_range(r->heartbeat.running_ns[0], 2 * MR_SECOND, 2 * MR_SECOND + MR_MS);
}

/* A message of the scheduler may arrive after the stream has ended. It is ignored. */
static void a_message_of_a_stream_that_is_over_changes_nothing(void **state)
{
    struct rig *r = *state;
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 0);
    rig_connect(r);
    assert_int_equal(r->queued, 0);
}

/* Each task has arguments of its own, and each completion the slot in which its task ran. */
static void tasks_of_one_message_have_their_own_arguments_and_slots(void **state)
{
    struct rig *r = *state;
    heard = (struct heard){0};
    r->on_up = hear;
    for (uint32_t i = 0; i < 3; i++)
        rig_task(r, i == 2 ? OTHER_JOB : RIG_JOB, i, 1, OP_BLOCK, NULL);
    memcpy(r->m.args, "abcc", 4);
    r->m.args_bytes[1] = 2;
    r->m.down.tasks.args.n = 4;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2);
    assert_true(mr_str_eq(r->strands[0]->items[0].args, MR_STR("a")));
    assert_true(mr_str_eq(r->strands[1]->items[0].args, MR_STR("bc")));
    r->connected = false;
    for (uint32_t i = 0; i < 2; i++) {
        r->now += MR_US;
        rig_run(r, 0, MR_STRAND_DONE);
    }
    rig_turn(r);
    assert_true(mr_str_eq(r->strands[0]->items[0].args, MR_STR("c")));
    rig_run(r, 0, MR_STRAND_DONE);
    r->connected = true;
    rig_turn(r);
    assert_int_equal(heard.count, 3);
    assert_int_equal(heard.runs, 2); /* each job has one run of rows */
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(row_of(RIG_JOB.v, i)->slot, i);
    assert_int_equal(row_of(RIG_JOB.v, 1)->started, row_of(RIG_JOB.v, 0)->started + MR_US);
    assert_int_equal(row_of(OTHER_JOB.v, 2)->slot, 0);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(heard.count, 3);
    assert_int_equal(row_of(RIG_JOB.v, 1)->slot, 1);
}

/* An object in the store of this node needs no address. In the table of nodes, row 0 stands for
 * this node. */
static void an_object_that_was_made_here_is_read_here(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    rig_extra(r)->want_object = true;
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    const struct mr_strand_input *in = &r->strands[0]->items[0].inputs[0];
    assert_int_equal(in->kind, MR_STRAND_OBJECT);
    assert_int_equal(in->node, 0);
    assert_int_equal(in->object_bytes, 4096);
    assert_true(mr_object_id_eq(in->object, (mr_object_id){1, 1}));
}

/* Two tasks run on one executor, and only the second task uses the value of the first one. So the
 * worker drops this value. The scheduler still learns the times and the slot of the first task. */
static void what_was_used_up_is_told_with_its_times(void **state)
{
    struct rig *r = *state;
    heard = (struct heard){0};
    r->on_up = hear;
    rig_task(r, RIG_JOB, 9, 1, OP_BLOCK, NULL); /* this task runs in slot 0 */
    rig_deliver(r);
    rig_turn(r);
    rig_chain(r, 2, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[1];
    assert_int_equal(s->slot, 1);
    for (uint32_t i = 0; i < 2; i++) {
        rig_result(r, &s->items[i], MR_STRAND_DONE);
        s->items[i].result.started_ns = r->now + i;
    }
    mr_time began = r->now;
    rig_report(r, s, 2);
    r->now += RIG_LEASE;
    rig_turn(r);
    const struct heard_row *x = row_of(RIG_JOB.v, 0);
    assert_int_equal(x->outcome, MR_OUTCOME_USED_UP);
    assert_int_equal(x->slot, 1);
    assert_int_equal(x->started, began);
    assert_int_equal(x->duration, 200);
    assert_int_equal(x->cpu, 150);
    assert_int_equal(r->heartbeat.tasks_done, 2);
    /* these are the bytes of the second value alone */
    assert_int_equal(r->heartbeat.held_bytes, 1);
}

static void only_some_tasks_of_a_message_have_more(void **state)
{
    struct rig *r = *state;
    static const char *const keys[] = {"", "one", "", "", "four"};
    for (uint32_t i = 0; i < 5; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        if (*keys[i]) rig_extra(r)->key = mr_str(keys[i]);
    }
    rig_deliver(r);
    rig_turn(r);
    const struct mr_strand *s = r->strands[0];
    assert_int_equal(s->count, 5);
    for (uint32_t i = 0; i < 5; i++)
        assert_true(mr_str_eq(s->items[i].key, mr_str(keys[i])));
}

/* The worker refuses the task, which never starts. So both times in the task's row are 0. */
static void what_was_refused_has_no_times(void **state)
{
    struct rig *r = *state;
    heard = (struct heard){0};
    r->on_up = hear;
    rig_task(r, RIG_JOB, 1, 1, OP_NONE, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(row_of(RIG_JOB.v, 1)->started, 0);
    assert_int_equal(row_of(RIG_JOB.v, 1)->duration, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_strand_says_what_its_tasks_were_sent_with),
        TEST(a_task_without_more_has_no_texts),
        TEST(columns_that_are_not_sent_have_their_usual_values),
        TEST(what_is_wanted_in_memory_is_named),
        TEST(an_object_that_the_scheduler_has_elsewhere_is_dropped_here),
        TEST(a_release_before_the_value_is_made_does_nothing),
        TEST(a_reference_names_object_and_node),
        TEST(what_is_fetched_is_named_when_it_is_asked_for_and_let_go),
        TEST(what_is_not_needed_any_more_is_dropped_by_its_name),
        TEST(a_completion_says_what_the_executor_said),
        TEST(what_is_held_is_said_the_same_on_return),
        TEST(a_heartbeat_says_how_much_there_is),
        TEST(a_message_of_a_stream_that_is_over_changes_nothing),
        TEST(tasks_of_one_message_have_their_own_arguments_and_slots),
        TEST(an_object_that_was_made_here_is_read_here),
        TEST(what_was_used_up_is_told_with_its_times),
        TEST(only_some_tasks_of_a_message_have_more),
        TEST(what_was_refused_has_no_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
