/* Between the columns of both cores, as the wire would carry them: copied, with the session's
 * tables of ops and nodes. What services/{scheduler,worker}/wire*.c do with protobuf between. */
#include "tests/sim/sim.h"

#include <stdio.h>

static const struct mr_ws_run *runs_down(
    struct sim_msg *m, const struct mr_sched_runs_out *r, uint32_t *count)
{
    const struct mr_sched_run *from = r->p;
    *count = r->count;
    struct mr_ws_run *to = sim_keep(m, NULL, *count * sizeof *to);
    for (uint32_t i = 0; i < *count; i++)
        to[i] = (struct mr_ws_run){{from[i].job}, from[i].count, from[i].unfused};
    return to;
}

static void *keep_buf(struct sim_msg *m, const struct mr_buf *b)
{
    return sim_keep(m, b->p, b->n);
}

static struct mr_str keep_str(struct sim_msg *m, struct mr_str t)
{
    return mr_str_of(sim_keep(m, t.p, t.n), t.n);
}

static struct mr_ws_refs refs_down(struct sim_msg *m, const struct mr_sched_refs_out *r)
{
    struct mr_ws_refs out = {.count = r->count};
    if (!r->count) return out;
    out.runs = runs_down(m, &r->runs, &out.runs_count);
    out.index = sim_keep(m, r->index, r->count * sizeof *r->index);
    out.attempt = sim_keep(m, r->attempt, r->count * sizeof *r->attempt);
    return out;
}

struct tables {
    struct mr_str ops[64];
    struct mr_ws_node nodes[STORES_MAX + 2];
};

static uint32_t store_number(
    struct sim *s, struct sim_session *x, struct sim_msg *m, uint32_t store, struct tables *t)
{
    uint64_t incarnation = 0;
    struct mr_str node;
    struct mr_str address;
    bool is_alive;
    if (x->store_of[store]) return x->store_of[store];
    if (!mr_sched_store(s->sched, store, &incarnation, &node, &address, &is_alive)) return 0;
    t->nodes[m->down.nodes_count++] = (struct mr_ws_node){keep_str(m, address), {incarnation}};
    return x->store_of[store] = ++x->stores;
}

static void values_down(struct sim *s, struct sim_session *x, struct sim_msg *m,
    const struct mr_sched_batch *b, struct tables *t)
{
    struct mr_ws_values *v = &m->down.values;
    const mr_object_id *ids = (const void *)b->value_object.p;
    const uint32_t *stores = (const void *)b->value_object_store.p;
    uint32_t n = (uint32_t)(b->value_object.n / sizeof *ids);
    if (!b->values.count) return;
    v->runs = runs_down(m, &b->values.runs, &v->runs_count);
    v->count = b->values.count;
    v->index = sim_keep(m, b->values.index, v->count * sizeof *v->index);
    v->inline_bytes = sim_keep(m, b->values.inline_bytes, v->count * sizeof *v->inline_bytes);
    v->inlined = keep_str(m, mr_buf_str(&b->value_inline));
    v->objects_count = n;
    uint64_t *maker = sim_keep(m, NULL, n * sizeof *maker);
    uint64_t *number = sim_keep(m, NULL, n * sizeof *number);
    uint32_t *node = sim_keep(m, NULL, n * sizeof *node);
    v->object_bytes = keep_buf(m, &b->value_object_bytes);
    for (uint32_t i = 0; i < n; i++) {
        maker[i] = ids[i].maker;
        number[i] = ids[i].number;
        node[i] = stores[i] ? store_number(s, x, m, stores[i], t) : 0;
    }
    v->object_maker = maker;
    v->object_number = number;
    v->object_node = node;
    if (s->plant == PLANT_VALUE && sim_chance(s, 4)) *v = (struct mr_ws_values){0};
}

static const struct mr_ws_extra *extras_down(
    struct sim *s, struct sim_msg *m, const struct mr_sched_batch *b, uint32_t *count)
{
    const struct mr_sched_extra *from = (const void *)b->extra.p;
    const struct mr_sched_amount *amounts = (const void *)b->resources.p;
    *count = (uint32_t)(b->extra.n / sizeof *from);
    struct mr_ws_extra *to = sim_keep(m, NULL, *count * sizeof *to);
    for (uint32_t i = 0; i < *count; i++) {
        const struct mr_sched_extra *x = &from[i];
        struct mr_ws_resource *r = sim_keep(m, NULL, x->resources_count * sizeof *r);
        for (uint32_t k = 0; k < x->resources_count; k++) {
            const struct mr_sched_amount *a = &amounts[x->resources_at + k];
            r[k] = (struct mr_ws_resource){
                keep_str(m, mr_sched_resource_name(s->sched, a->kind)), a->micro};
        }
        to[i] = (struct mr_ws_extra){.row = x->row,
            .long_running = x->long_running,
            .alone = x->alone,
            .want_object = x->want_object,
            .persist = x->persist,
            .timeout_ns = x->timeout_ns,
            .persist_name =
                keep_str(m, mr_str_of(b->text.p + x->persist_name_at, x->persist_name_bytes)),
            .resources = r,
            .resources_count = x->resources_count,
            .key = keep_str(m, mr_str_of(b->text.p + x->key_at, x->key_bytes))};
    }
    return to;
}

static uint32_t *column_down(
    struct sim_msg *m, const struct mr_sched_rows *r, enum mr_sched_column c)
{
    const uint32_t *column = mr_sched_column(r, c);
    return column ? sim_keep(m, column, r->count * sizeof *column) : NULL;
}

static uint32_t op_down(
    struct sim *s, struct sim_session *x, struct sim_msg *m, uint32_t op, struct tables *t)
{
    mr_assert(op < MR_ARRAY_LEN(x->op_of));
    if (!x->op_of[op]) {
        x->op_of[op] = ++x->ops;
        t->ops[m->down.ops_count++] = keep_str(m, mr_sched_op_name(s->sched, op));
    }
    return x->op_of[op];
}

static const uint32_t *uses_down(struct sim *s, struct sim_msg *m, const struct mr_sched_rows *r)
{
    uint32_t *uses = column_down(m, r, MR_COLUMN_USES);
    if (s->plant == PLANT_USES && uses) /* also of those that several want, somewhere */
        for (uint32_t i = 0; i < r->count; i++)
            uses[i] = 1;
    for (uint32_t i = 0; uses && i < r->count && s->plant == PLANT_EARLY; i++)
        uses[i] -= uses[i] > 1;
    return uses;
}

static void tasks_down(struct sim *s, struct sim_session *x, struct sim_msg *m,
    const struct mr_sched_batch *b, struct tables *t)
{
    struct mr_ws_tasks *k = &m->down.tasks;
    const struct mr_sched_rows *r = &b->tasks;
    if (!r->count) return;
    *k = (struct mr_ws_tasks){.index = column_down(m, r, MR_COLUMN_INDEX),
        .attempt = column_down(m, r, MR_COLUMN_ATTEMPT),
        .args = keep_str(m, mr_buf_str(&b->args)),
        .args_bytes = column_down(m, r, MR_COLUMN_ARGS_BYTES),
        .inputs_count = column_down(m, r, MR_COLUMN_INPUTS_COUNT),
        .inputs = keep_buf(m, &b->inputs),
        .last_use = keep_buf(m, &b->last_use),
        .priority = (const int32_t *)column_down(m, r, MR_COLUMN_PRIORITY),
        .uses = uses_down(s, m, r),
        .count = r->count,
        .inputs_total = (uint32_t)(b->inputs.n / sizeof(uint32_t)),
        .last_use_count = (uint32_t)(b->last_use.n / sizeof(uint32_t))};
    k->runs = runs_down(m, &b->tasks.runs, &k->runs_count);
    uint32_t *op = column_down(m, r, MR_COLUMN_OP);
    for (uint32_t i = 0; op && i < k->count; i++)
        op[i] = op_down(s, x, m, op[i], t);
    if (!op) k->op_of_all = op_down(s, x, m, r->usual_op, t);
    k->op = op;
    k->extras = extras_down(s, m, b, &k->extras_count);
    for (uint32_t i = 0; i < k->runs_count; i++)
        (void)sim_job_of(s, k->runs[i].job.v); /* learnt while the scheduler can tell */
}

struct sim_msg *sim_wire_down(struct sim *s, struct sim_session *x, const struct mr_sched_batch *b)
{
    struct sim_msg *m = mr_alloc(sizeof *m);
    struct tables t;
    if (b->has_registered) {
        struct mr_ws_registered *r = sim_keep(m, NULL, sizeof *r);
        *r = (struct mr_ws_registered){.incarnation = b->incarnation,
            .epoch = mr_sched_epoch(s->sched),
            .scheduler = s->config.incarnation,
            .heartbeat_ns = s->config.heartbeat,
            .lease_ns = s->config.lease,
            .adopt = refs_down(m, &b->adopt),
            .keep = refs_down(m, &b->keep)};
        m->down.registered = r;
        s->count.adopted += b->adopt.count;
        sim_journal_check_adopted(s, &b->adopt);
    }
    values_down(s, x, m, b, &t);
    tasks_down(s, x, m, b, &t);
    m->down.ops = sim_keep(m, t.ops, m->down.ops_count * sizeof *t.ops);
    m->down.nodes = sim_keep(m, t.nodes, m->down.nodes_count * sizeof *t.nodes);
    m->down.cancel = refs_down(m, &b->cancel);
    m->down.steal = refs_down(m, &b->steal);
    m->down.fetch = refs_down(m, &b->fetch);
    m->down.leave = refs_down(m, &b->leave);
    if (s->plant != PLANT_RELEASE) m->down.release = refs_down(m, &b->release);
    m->down.drain = b->drain;
    m->down.heard = b->heard;
    m->down.forget_jobs = keep_buf(m, &b->forget_jobs);
    m->down.forget_jobs_count = (uint32_t)(b->forget_jobs.n / sizeof(uint64_t));
    struct mr_error e = {0};
    if (mr_ws_down_check(&m->down, &e)) sim_fail(s, "the scheduler's columns: %s", e.text);
    return m;
}

static const struct mr_sched_run *runs_up(
    struct sim_msg *m, const struct mr_ws_run *from, uint32_t count)
{
    struct mr_sched_run *to = sim_keep(m, NULL, count * sizeof *to);
    for (uint32_t i = 0; i < count; i++)
        to[i] = (struct mr_sched_run){.job = from[i].job.v, .count = from[i].count};
    return to;
}

static struct mr_sched_refs refs_up(struct sim_msg *m, const struct mr_ws_refs *r)
{
    return (struct mr_sched_refs){.runs = runs_up(m, r->runs, r->runs_count),
        .runs_count = r->runs_count,
        .index = sim_keep(m, r->index, r->count * sizeof *r->index),
        .attempt = sim_keep(m, r->attempt, r->count * sizeof *r->attempt),
        .count = r->count};
}

static struct mr_sched_completed completed_up(struct sim_msg *m, const struct mr_ws_completed *c)
{
    size_t n = c->count;
    struct mr_sched_completed out = {.tasks = {.runs = runs_up(m, c->runs, c->runs_count),
                                         .runs_count = c->runs_count,
                                         .index = sim_keep(m, c->index, n * 4),
                                         .attempt = sim_keep(m, c->attempt, n * 4),
                                         .count = c->count},
        .inline_bytes = sim_keep(m, c->inline_bytes, n * 4),
        .inline_data = keep_str(m, c->inlined),
        .object_maker = sim_keep(m, c->object_maker, (size_t)c->objects_count * 8),
        .object_number = sim_keep(m, c->object_number, (size_t)c->objects_count * 8),
        .object_bytes = sim_keep(m, c->object_bytes, (size_t)c->objects_count * 8),
        .objects_count = c->objects_count,
        .base_ns = c->base_ns,
        .started_ns = sim_keep(m, c->started_ns, n * 8),
        .duration_ns = sim_keep(m, c->duration_ns, n * 8),
        .cpu_ns = sim_keep(m, c->cpu_ns, n * 8),
        .slot = sim_keep(m, c->slot, n * 4),
        .failures_count = c->failures_count};
    if (c->outcome) {
        uint32_t *outcome = sim_keep(m, NULL, n * sizeof *outcome);
        for (size_t i = 0; i < n; i++)
            outcome[i] = c->outcome[i];
        out.outcome = outcome;
    }
    struct mr_sched_failure *f = sim_keep(m, NULL, c->failures_count * sizeof *f);
    for (uint32_t i = 0; i < c->failures_count; i++)
        f[i] = (struct mr_sched_failure){.row = c->failures[i].row,
            .code = mr_err_grpc(c->failures[i].code),
            .message = keep_str(m, c->failures[i].message)};
    out.failures = f;
    return out;
}

static void register_up(
    struct sim *s, struct sim_msg *m, const struct sim_proc *p, const struct mr_ws_register *r)
{
    static const struct mr_sched_resource gpu = {MR_STR_INIT("gpu"), GPU};
    char text[32];
    m->is_register = true;
    struct mr_sched_op *ops = sim_keep(m, NULL, OPS * sizeof *ops);
    for (uint32_t i = 0; i < OPS; i++)
        ops[i] = (struct mr_sched_op){.name = mr_str(sim_ops[i]),
            .deterministic = i != OP_DICE,
            .by_reference = i == OP_REF,
            .passes = i == OP_IDENTITY,
            .long_running = i == OP_LONG || i == OP_ROLE};
    m->reg = (struct mr_sched_register){.incarnation = r->incarnation,
        .epoch = r->epoch,
        .scheduler = r->scheduler,
        .store = p->store,
        .slots = p->slots,
        .memory_bytes = (uint64_t)1 << 30,
        .time_ns = r->time_ns,
        .resources = &gpu,
        .resources_count = p->name % 2,
        .ops = ops,
        .ops_count = p->name % 2 ? OPS : OPS - 1,
        .holding = completed_up(m, &r->holding),
        .queued = refs_up(m, &r->queued)};
    const struct sim_suspects *x = &s->suspects[p->name];
    m->reg.has_suspects = !r->incarnation && p->has_suspects;
    if (m->reg.has_suspects)
        m->reg.suspects = (struct mr_sched_refs){.runs = sim_keep(m, x->run, sizeof x->run),
            .runs_count = x->count,
            .index = sim_keep(m, x->index, sizeof x->index),
            .attempt = sim_keep(m, x->attempt, sizeof x->attempt),
            .count = x->count};
    (void)snprintf(text, sizeof text, "w%" PRIu32, p->name);
    m->reg.name = keep_str(m, mr_str(text));
    (void)snprintf(text, sizeof text, "n%" PRIu32, p->node);
    m->reg.node = keep_str(m, mr_str(text));
    m->reg.store_address = m->reg.node;
}

/* A result under the number of another job of the same template. */
static void plant_other(struct sim *s, struct sim_msg *m)
{
    struct mr_sched_refs *tasks = &m->up.completed.tasks;
    if (s->plant != PLANT_OTHER || !sim_chance(s, 10)) return;
    struct mr_sched_run *runs = sim_keep(m, tasks->runs, tasks->runs_count * sizeof *tasks->runs);
    for (uint32_t i = 0; i < tasks->runs_count; i++)
        runs[i].job = sim_template_other(s, runs[i].job);
    tasks->runs = runs;
}

struct sim_msg *sim_wire_up(struct sim *s, const struct sim_proc *p, const struct mr_ws_up *up)
{
    struct sim_msg *m = mr_alloc(sizeof *m);
    if (up->reg) {
        register_up(s, m, p, up->reg);
        return m;
    }
    m->up = (struct mr_sched_message){.completed = completed_up(m, &up->completed),
        .given = refs_up(m, &up->given),
        .started = refs_up(m, &up->started),
        .unknown = refs_up(m, &up->unknown),
        .left_slot = refs_up(m, &up->left_slot),
        .missing_count = up->missing_count,
        .leaving = up->leaving};
    plant_other(s, m);
    if (s->plant == PLANT_DONE && sim_chance(s, 50))
        m->up.completed = (struct mr_sched_completed){0};
    struct mr_sched_missing *x = sim_keep(m, NULL, up->missing_count * sizeof *x);
    for (uint32_t i = 0; i < up->missing_count; i++)
        x[i] = (struct mr_sched_missing){up->missing[i].job.v, up->missing[i].index,
            up->missing[i].attempt, up->missing[i].input, MR_STR("it is gone")};
    m->up.missing = x;
    if (up->heartbeat) {
        const struct mr_ws_heartbeat *h = up->heartbeat;
        m->up.heartbeat = (struct mr_sched_heartbeat){.present = true,
            .sequence = h->sequence,
            .time_ns = h->time_ns,
            .memory_used_bytes = h->memory_used_bytes,
            .held_bytes = h->held_bytes,
            .queued = h->queued,
            .running = h->running,
            .tasks_started = h->tasks_started,
            .tasks_done = h->tasks_done,
            .running_tasks = refs_up(m, &h->running_tasks),
            .running_ns = sim_keep(m, h->running_ns, h->running_tasks.count * sizeof(uint64_t)),
            .queue_ns = h->queue_ns};
    }
    return m;
}
