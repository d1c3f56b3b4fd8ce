/* Runs a worker's core in a test and simulates everything around the core: the scheduler's
 * messages, the executors and the object store. It is a header only, for the unit tests of the core
 * and its benchmark. The head of services/worker/core/core.h explains the terms strand, item, cut
 * and turn. */
#pragma once

#include "base/alloc.h"
#include "base/assert.h"
#include "services/worker/core/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RIG_ROWS 4096

struct rig_msg { /* a message of the scheduler while the test builds it */
    struct mr_ws_down down;
    struct mr_ws_registered registered;
    struct mr_ws_run value_runs[RIG_ROWS], task_runs[RIG_ROWS];
    uint32_t value_index[RIG_ROWS], value_inline[RIG_ROWS], value_node[RIG_ROWS];
    uint64_t maker[RIG_ROWS], number[RIG_ROWS], bytes[RIG_ROWS];
    uint32_t index[RIG_ROWS], attempt[RIG_ROWS], op[RIG_ROWS], args_bytes[RIG_ROWS];
    uint32_t inputs_count[RIG_ROWS], inputs[RIG_ROWS * 4], last_use[RIG_ROWS * 4];
    uint32_t order[RIG_ROWS], uses[RIG_ROWS];
    int32_t priority[RIG_ROWS];
    struct mr_ws_extra extras[RIG_ROWS];
    char inlined[RIG_ROWS * 8], args[RIG_ROWS];
    struct rig_refs {
        struct mr_ws_run runs[RIG_ROWS];
        uint32_t index[RIG_ROWS], attempt[RIG_ROWS];
    } cancel, release, steal, fetch, leave, adopt, keep;
    mr_job_id forget[16];
};

struct rig_done { /* a completion that the worker has sent */
    uint64_t job;
    uint32_t index, attempt;
    enum mr_outcome outcome;
    bool is_object;
    int code;
};

struct rig {
    struct mr_worker *w;
    struct mr_worker_effects fx;
    mr_time now;
    struct rig_msg m;
    /* The strands that executors hold and have not finished, in the order in which the core started
     * them. A slot may have several of them. */
    struct mr_strand *strands[512];
    uint32_t strands_count;
    struct rig_done done[65536];
    uint32_t done_count;
    uint32_t restarts; /* number of restarts of the scheduler */
    uint32_t given, started, unknown, missing, heartbeats, registers;
    uint32_t left; /* number of tasks reported to have left their slot */
    uint32_t starts, takes, looks, stops, moves, fetches, unpins, drops, wants, connects;
    bool has_spilled;
    uint32_t held, queued; /* number of values held and of tasks queued, as in the last Register */
    struct rig_row {
        uint32_t index, attempt;
    } held_rows[4096], queued_rows[4096], given_rows[4096], missing_rows[4096];
    uint32_t held_rows_count, queued_rows_count, given_rows_count, missing_rows_count;
    uint32_t fetch_value, fetch_serial; /* the last fetch that the core asked for */
    struct rig_fetch {
        uint32_t value, serial;
        bool here;
        mr_object_id object;
        mr_job_id job;
    } fetched[256]; /* fetches that are under way, and objects that are pinned */
    uint32_t fetched_count;
    /* by an item's index in the strand that was started last; true: the item was told to stop */
    bool stopped[64];
    bool hung_up, lethal, leaving, connected, hold_cuts;
    /* true: executors report strands that were cut to nothing only when the test calls
     * rig_let_go_all */
    bool is_behind;
    uint32_t cut_away[512];
    uint32_t cut_away_count;
    uint64_t objects; /* number of objects made; their ids are 1, 2, … */
    struct mr_ws_heartbeat heartbeat;
    struct mr_worker_effect last[MR_WORKER_LETHAL + 1]; /* the last effect of each kind */
    /* Called with each message; the message is lent for the call. */
    void (*on_up)(struct rig *r, const struct mr_ws_up *up);
};

static const struct mr_worker_op rig_ops[] = {
    {.name = MR_STR_INIT("inc"), .cost_ns = 200},
    {.name = MR_STR_INIT("slow"), .cost_ns = 10 * MR_MS},
    {.name = MR_STR_INIT("ref"), .flags = MR_WORKER_OP_BY_REFERENCE, .cost_ns = 200},
    {.name = MR_STR_INIT("block"), .flags = MR_WORKER_OP_SOLO, .cost_ns = 200},
    {.name = MR_STR_INIT("role"), .flags = MR_WORKER_OP_LONG, .cost_ns = 200},
};
enum { OP_INC = 1, OP_SLOW, OP_REF, OP_BLOCK, OP_ROLE, OP_NONE };

#define RIG_STORE 77 /* id of this node's store */
#define RIG_JOB ((mr_job_id){5})
#define RIG_LEASE (5 * MR_SECOND)

static inline void rig_effects(struct rig *r);

static inline void rig_step(struct rig *r, const struct mr_worker_event *ev)
{
    mr_worker_step(r->w, r->now, ev, &r->fx);
    rig_effects(r);
}

static inline void rig_turn(struct rig *r)
{
    struct mr_worker_event ev = {.kind = MR_WORKER_TURN};
    for (int i = 0; i < 8; i++) {
        ev.turn.may_send = r->connected;
        ev.turn.has_spilled = r->has_spilled;
        rig_step(r, &ev);
        mr_worker_check(r->w);
        if (mr_worker_deadline(r->w) > r->now) return;
    }
}

static inline void rig_rows(struct rig_row *rows, uint32_t *count, const uint32_t *index,
    const uint32_t *attempt, uint32_t n)
{
    for (uint32_t i = 0; i < n && *count < 4096; i++)
        rows[(*count)++] = (struct rig_row){index[i], attempt[i]};
}

/* Checks, as the scheduler does, that the columns of each message fit together. */
static inline void rig_check_up(const struct mr_ws_up *up)
{
    const struct mr_ws_refs *refs[] = {&up->completed.tasks, &up->given, &up->started, &up->unknown,
        &up->left_slot, up->reg ? &up->reg->holding.tasks : NULL, up->reg ? &up->reg->queued : NULL,
        up->heartbeat ? &up->heartbeat->running_tasks : NULL};
    for (size_t i = 0; i < MR_ARRAY_LEN(refs); i++) {
        struct mr_error e = {0};
        if (refs[i] && mr_ws_refs_check("sent", refs[i], &e)) fprintf(stderr, "%s\n", e.text);
        mr_assert(!e.text[0]);
    }
}

static inline void rig_sent(struct rig *r, const struct mr_ws_up *up)
{
    rig_check_up(up);
    rig_rows(
        r->given_rows, &r->given_rows_count, up->given.index, up->given.attempt, up->given.count);
    if (up->reg) {
        r->registers++;
        r->held_rows_count = r->queued_rows_count = 0;
        rig_rows(r->held_rows, &r->held_rows_count, up->reg->holding.tasks.index,
            up->reg->holding.tasks.attempt, up->reg->holding.tasks.count);
        rig_rows(r->queued_rows, &r->queued_rows_count, up->reg->queued.index,
            up->reg->queued.attempt, up->reg->queued.count);
        r->held = up->reg->holding.tasks.count;
        r->queued = up->reg->queued.count;
    }
    if (r->on_up) r->on_up(r, up);
    const struct mr_ws_completed *c = &up->completed;
    for (uint32_t i = 0, run = 0, left = 0; i < c->tasks.count; i++, left--) {
        while (!left)
            left = c->tasks.runs[run++].count;
        struct rig_done *d = &r->done[r->done_count++];
        *d = (struct rig_done){.job = c->tasks.runs[run - 1].job.v,
            .index = c->tasks.index[i],
            .attempt = c->tasks.attempt[i],
            .outcome = c->outcome ? (enum mr_outcome)c->outcome[i] : MR_OUTCOME_OK,
            .is_object = !c->inline_bytes[i]};
        for (uint32_t k = 0; k < c->failures_count; k++)
            if (c->failures[k].row == i) d->code = mr_err_from_grpc(c->failures[k].code);
    }
    r->given += up->given.count;
    r->started += up->started.count;
    r->unknown += up->unknown.count;
    r->left += up->left_slot.count;
    r->missing += up->missing_count;
    for (uint32_t i = 0; i < up->missing_count && r->missing_rows_count < 4096; i++)
        r->missing_rows[r->missing_rows_count++] =
            (struct rig_row){up->missing[i].input, up->missing[i].attempt};
    r->leaving = r->leaving || up->leaving;
    if (up->heartbeat) r->heartbeat = *up->heartbeat;
    r->heartbeats += up->heartbeat != NULL;
}

static inline struct mr_strand *rig_strand(struct rig *r, uint32_t id)
{
    for (uint32_t i = 0; i < r->strands_count; i++)
        if (r->strands[i]->id == id) return r->strands[i];
    return NULL;
}

static inline void rig_remove(struct rig *r, uint32_t id)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < r->strands_count; i++)
        if (r->strands[i]->id != id) r->strands[k++] = r->strands[i];
    r->strands_count = k;
}

/* Returns how many items of the strand have begun: the executors of this rig begin the first item
 * of a slot's first strand at once. */
static inline uint32_t rig_begun(struct rig *r, const struct mr_strand *s)
{
    for (uint32_t i = 0; i < r->strands_count; i++) {
        if (r->strands[i]->slot != s->slot) continue;
        return r->strands[i] == s ? s->reported + 1 : 0;
    }
    return 0;
}

/* Reports that the executor has taken a strand, which was cut to nothing, out of its inbox. */
static inline void rig_let_go(struct rig *r, uint32_t strand)
{
    struct mr_worker_event ev = {.kind = MR_WORKER_REPORT, .report = {strand, 0, true}};
    rig_step(r, &ev);
}

static inline void rig_let_go_all(struct rig *r)
{
    while (r->cut_away_count)
        rig_let_go(r, r->cut_away[--r->cut_away_count]);
}

static inline void rig_cut(struct rig *r, uint32_t strand, uint32_t at)
{
    struct mr_strand *s = rig_strand(r, strand);
    mr_assert(s);
    uint32_t count = MR_MIN(MR_MAX(rig_begun(r, s), at), s->count);
    struct mr_worker_event ev = {.kind = MR_WORKER_CUT, .cut = {strand, count}};
    bool is_over = count == s->reported;
    if (is_over) rig_remove(r, strand);
    rig_step(r, &ev);
    if (is_over && r->is_behind) r->cut_away[r->cut_away_count++] = strand;
    if (is_over && !r->is_behind) rig_let_go(r, strand);
}

static inline void rig_unpin(struct rig *r, uint32_t serial)
{
    for (uint32_t i = 0; i < r->fetched_count; i++) {
        if (r->fetched[i].serial != serial) continue;
        r->fetched[i] = r->fetched[--r->fetched_count];
        return;
    }
    mr_assert(false); /* the fetch was unpinned before, or never made */
}

static inline void rig_effects(struct rig *r)
{
    struct mr_worker_effects fx = r->fx;
    r->fx = (struct mr_worker_effects){0};
    for (uint32_t i = 0; i < fx.count; i++)
        if (fx.p[i].kind == MR_WORKER_SEND) rig_sent(r, fx.p[i].send);
    for (uint32_t i = 0; i < fx.count; i++) {
        const struct mr_worker_effect *e = &fx.p[i];
        r->last[e->kind] = *e;
        switch (e->kind) {
        case MR_WORKER_START:
            r->strands[r->strands_count++] = e->strand;
            memset(r->stopped, 0, sizeof r->stopped);
            r->starts++;
            break;
        case MR_WORKER_TAKE:
            r->takes++;
            if (!r->hold_cuts) rig_cut(r, e->item.strand, e->item.at);
            break;
        case MR_WORKER_LOOK: r->looks++; break;
        case MR_WORKER_STOP:
            r->stops++;
            if (e->item.at < 64) r->stopped[e->item.at] = true;
            break;
        case MR_WORKER_MOVE: r->moves++; break;
        case MR_WORKER_FETCH:
            r->fetches++;
            r->fetch_value = e->object.value;
            r->fetch_serial = e->object.serial;
            r->fetched[r->fetched_count++] = (struct rig_fetch){
                e->object.value, e->object.serial, false, e->object.object, e->object.job};
            break;
        case MR_WORKER_UNPIN:
            r->unpins++;
            rig_unpin(r, e->object.serial);
            break;
        case MR_WORKER_DROP: r->drops++; break;
        case MR_WORKER_WANT: r->wants++; break;
        case MR_WORKER_SEND: break;
        case MR_WORKER_CONNECT: r->connects++; break;
        case MR_WORKER_HANG_UP: r->hung_up = true; break;
        case MR_WORKER_LETHAL: r->lethal = true; break;
        }
    }
    mr_worker_effects_fini(&fx);
}

static inline struct rig *rig_new_with(const struct mr_worker_config *config)
{
    static const struct mr_ws_resource gpu = {MR_STR_INIT("gpu"), 1000000};
    struct rig *r = mr_alloc(sizeof *r);
    struct mr_worker_config c = *config;
    c.store = (mr_node_id){RIG_STORE};
    if (!c.ops) {
        c.ops = rig_ops;
        c.ops_count = MR_ARRAY_LEN(rig_ops);
    }
    if (!c.resources) {
        c.resources = &gpu;
        c.resources_count = 1;
    }
    r->w = mr_worker_new(&c);
    r->now = MR_SECOND;
    return r;
}

static inline void rig_free(struct rig **r)
{
    mr_worker_free(&(*r)->w);
    mr_worker_effects_fini(&(*r)->fx);
    mr_release(*r);
    *r = NULL;
}

static inline void rig_clear(struct rig *r)
{
    struct rig_msg *m = &r->m;
    m->down = (struct mr_ws_down){0};
    m->down.values = (struct mr_ws_values){.runs = m->value_runs,
        .index = m->value_index,
        .inline_bytes = m->value_inline,
        .inlined = mr_str_of(m->inlined, 0),
        .object_maker = m->maker,
        .object_number = m->number,
        .object_bytes = m->bytes,
        .object_node = m->value_node};
    m->down.tasks = (struct mr_ws_tasks){.runs = m->task_runs,
        .index = m->index,
        .attempt = m->attempt,
        .op = m->op,
        .args = mr_str_of(m->args, 0),
        .args_bytes = m->args_bytes,
        .inputs_count = m->inputs_count,
        .inputs = m->inputs,
        .last_use = m->last_use,
        .priority = m->priority,
        .order = m->order,
        .uses = m->uses,
        .extras = m->extras};
}

/* Adds the value of task `index` to the message: a small value if `node` is 0, else an object on
 * that node. */
static inline void rig_value(struct rig *r, mr_job_id job, uint32_t index, uint32_t node)
{
    struct rig_msg *m = &r->m;
    struct mr_ws_values *v = &m->down.values;
    m->value_runs[v->runs_count++] = (struct mr_ws_run){.job = job, .count = 1};
    m->value_index[v->count] = index;
    m->value_inline[v->count++] = node ? 0 : 1;
    if (!node) {
        m->inlined[v->inlined.n++] = 1;
        return;
    }
    m->maker[v->objects_count] = 1000 + node;
    m->number[v->objects_count] = index;
    m->bytes[v->objects_count] = 1 << 20;
    m->value_node[v->objects_count++] = node;
}

static inline struct mr_ws_extra *rig_extra(struct rig *r)
{
    struct mr_ws_tasks *t = &r->m.down.tasks;
    struct mr_ws_extra *x = &r->m.extras[t->extras_count++];
    *x = (struct mr_ws_extra){.row = t->count - 1};
    return x;
}

/* Adds a task to the message. `inputs` ends with a negative number. 1000 + i stands for input i, of
 * which this is the last use. */
static inline void rig_task(
    struct rig *r, mr_job_id job, uint32_t index, uint32_t attempt, uint32_t op, const int *inputs)
{
    struct rig_msg *m = &r->m;
    struct mr_ws_tasks *t = &m->down.tasks;
    m->task_runs[t->runs_count++] = (struct mr_ws_run){.job = job, .count = 1};
    m->index[t->count] = index;
    m->attempt[t->count] = attempt;
    m->op[t->count] = op;
    m->args[t->args.n++] = (char)0x90;
    m->args_bytes[t->count] = 1;
    m->order[t->count] = index;
    m->priority[t->count] = 0;
    m->uses[t->count] = 0;
    m->inputs_count[t->count] = 0;
    for (; inputs && *inputs >= 0; inputs++) {
        if (*inputs >= 1000) m->last_use[t->last_use_count++] = t->inputs_total;
        m->inputs[t->inputs_total++] = (uint32_t)*inputs % 1000;
        m->inputs_count[t->count]++;
    }
    t->count++;
}

/* Sets how many tasks use the value of the last task added. No other task or client wants the
 * value. */
static inline void rig_uses(struct rig *r, uint32_t uses)
{
    r->m.uses[r->m.down.tasks.count - 1] = uses;
}

static inline void rig_ref(
    struct mr_ws_refs *to, struct rig_refs *from, mr_job_id job, uint32_t index, uint32_t attempt)
{
    from->runs[to->runs_count++] = (struct mr_ws_run){.job = job, .count = 1};
    from->index[to->count] = index;
    from->attempt[to->count++] = attempt;
    *to = (struct mr_ws_refs){from->runs, to->runs_count, from->index, from->attempt, to->count};
}

/* Delivers the message r->m to the core, and clears the message. */
static inline void rig_deliver(struct rig *r)
{
    struct mr_error e = {0};
    int err = mr_ws_down_check(&r->m.down, &e);
    if (err) fprintf(stderr, "%s\n", e.text);
    mr_assert(!err);
    struct mr_worker_event ev = {.kind = MR_WORKER_MESSAGE, .message = &r->m.down};
    rig_step(r, &ev);
    mr_worker_check(r->w);
    rig_clear(r);
}

static inline void rig_event(struct rig *r, enum mr_worker_event_kind kind)
{
    struct mr_worker_event ev = {.kind = kind};
    rig_step(r, &ev);
    mr_worker_check(r->w);
}

static inline void rig_connect(struct rig *r)
{
    rig_turn(r);
    r->connected = true;
    rig_event(r, MR_WORKER_CONNECTED);
    rig_turn(r);
}

/* Answers the worker's Register, and names the operators and the nodes. Before this call, a test
 * may put values to adopt and tasks to keep into r->m.registered. */
static inline void rig_register(struct rig *r, uint64_t incarnation)
{
    static const struct mr_str names[] = {MR_STR_INIT("inc"), MR_STR_INIT("slow"),
        MR_STR_INIT("ref"), MR_STR_INIT("block"), MR_STR_INIT("role"), MR_STR_INIT("nowhere")};
    static const struct mr_ws_node nodes[] = {
        {MR_STR_INIT("unix:here"), {RIG_STORE}}, {MR_STR_INIT("unix:there"), {78}}};
    r->m.registered.incarnation = incarnation;
    r->m.registered.epoch = 1 + r->restarts;
    r->m.registered.scheduler = 1 + r->restarts;
    r->m.registered.heartbeat_ns = 500 * MR_MS;
    r->m.registered.lease_ns = RIG_LEASE;
    r->m.down.registered = &r->m.registered;
    r->m.down.ops = names;
    r->m.down.ops_count = MR_ARRAY_LEN(names);
    r->m.down.nodes = nodes;
    r->m.down.nodes_count = MR_ARRAY_LEN(nodes);
    rig_deliver(r);
    rig_turn(r);
}

/* Makes a rig whose worker is registered. */
static inline struct rig *rig_of(const struct mr_worker_config *config)
{
    struct rig *r = rig_new_with(config);
    rig_clear(r);
    rig_connect(r);
    rig_register(r, 9);
    return r;
}

static inline struct rig *rig_new(uint32_t slots)
{
    struct mr_worker_config c = {.slots = slots,
        .tasks_max = 2048,
        .values_max = 8192,
        .outbox_max = 1024,
        .bytes_max = 8 << 20,
        .prefetch_bytes = 3 << 20};
    return rig_of(&c);
}

/* Writes the result of an item, as an executor does. */
static inline void rig_result(struct rig *r, struct mr_strand_item *item, enum mr_strand_end end)
{
    static const char nil = (char)0xc0;
    item->result = (struct mr_strand_result){
        .end = end, .started_ns = r->now, .duration_ns = 200, .cpu_ns = 150};
    if (end == MR_STRAND_DONE && item->want_object) {
        item->result.object = (mr_object_id){1, ++r->objects};
        item->result.object_bytes = 4096;
    } else if (end == MR_STRAND_DONE) {
        item->result.pack = mr_str_of(&nil, 1);
    } else if (end == MR_STRAND_FAILED) {
        item->result.code = MR_EUNKNOWN;
        item->result.message = MR_STR("it went wrong");
    } else if (end == MR_STRAND_SKIPPED) {
        item->result.started_ns = 0;
    }
}

static inline void rig_report(struct rig *r, struct mr_strand *s, uint32_t done)
{
    struct mr_worker_event ev = {
        .kind = MR_WORKER_REPORT, .report = {s->id, done, done == s->count}};
    if (done == s->count) rig_remove(r, s->id);
    rig_step(r, &ev);
    mr_worker_check(r->w);
}

/* Runs strand `i` of `strands` to its end. All items end with `end`. */
static inline void rig_run(struct rig *r, uint32_t i, enum mr_strand_end end)
{
    struct mr_strand *s = r->strands[i];
    for (uint32_t k = s->reported; k < s->count; k++)
        rig_result(r, &s->items[k], end);
    rig_report(r, s, s->count);
}

/* Runs strands until none is left. */
static inline void rig_run_all(struct rig *r)
{
    for (rig_turn(r); r->strands_count; rig_turn(r))
        rig_run(r, 0, MR_STRAND_DONE);
}

static inline const struct rig_done *rig_find(const struct rig *r, uint32_t index)
{
    for (uint32_t i = r->done_count; i-- > 0;)
        if (r->done[i].index == index) return &r->done[i];
    return NULL;
}

/* Runs tasks of `op` that take `took` each, so often that the core's estimate is `took`. */
static inline void rig_measure(struct rig *r, uint32_t op, mr_duration took)
{
    for (uint32_t i = 0; i < 40; i++) {
        rig_task(r, RIG_JOB, 900 + i, 1, op, NULL);
        rig_deliver(r);
        rig_turn(r);
        struct mr_strand *s = r->strands[0];
        rig_result(r, &s->items[0], MR_STRAND_DONE);
        s->items[0].result.duration_ns = took;
        rig_report(r, s, 1);
        rig_turn(r);
        rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 900 + i, 1);
        rig_deliver(r);
    }
    r->done_count = r->starts = 0;
}

/* Adds a chain of `n` tasks, from index 0 on. All but the last one are sent with their number of
 * uses, which is 1. */
static inline void rig_chain(struct rig *r, uint32_t n, uint32_t op)
{
    for (uint32_t i = 0; i < n; i++) {
        const int input[] = {(int)i - 1, -1};
        rig_task(r, RIG_JOB, i, 1, op, i ? input : NULL);
        if (i + 1 < n) rig_uses(r, 1);
    }
}
