/* Knows both shapes of a session's messages: protobuf-c structs and the core's columns. What comes
 * from outside is checked here for shape - columns of one length, run counts that add up, inline
 * bytes that exist; what it means is the core's business. */
#include "services/scheduler/shell/sessions.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/pack.h"

#include <math.h>

/* A flag of a store's number in a session's table: it was told without an address. */
#define STORE_BARE 0x80000000u

static int runs_in(struct mr_shell *sh, Millrace__V1__Run **runs, size_t n, size_t rows,
    const char *what, struct mr_sched_run **out, struct mr_error *e)
{
    struct mr_sched_run *r = mr_shell_take(sh, n * sizeof *r);
    uint64_t total = 0;
    if (!r && n) return mr_fail(e, MR_ELIMIT, "%s: too many runs", what);
    for (size_t i = 0; i < n; i++) {
        r[i] = (struct mr_sched_run){.job = runs[i]->job, .count = runs[i]->count};
        total += runs[i]->count;
    }
    if (total != rows)
        return mr_fail(e, MR_EFORMAT, "%s: runs cover %llu rows, index has %zu", what,
            (unsigned long long)total, rows);
    *out = r;
    return MR_OK;
}

/* Is a column absent, or as long as it must be? */
static int column(size_t n, size_t rows, const char *what, const char *name, struct mr_error *e)
{
    if (n == 0 || n == rows) return MR_OK;
    return mr_fail(e, MR_EFORMAT, "%s.%s: %zu rows, expected %zu", what, name, n, rows);
}

int mr_wire_refs(struct mr_shell *sh, const Millrace__V1__TaskRefs *m, struct mr_sched_refs *out,
    struct mr_error *e)
{
    *out = (struct mr_sched_refs){0};
    if (!m) return MR_OK;
    struct mr_sched_run *runs = NULL;
    int err = runs_in(sh, m->runs, m->n_runs, m->n_index, "task refs", &runs, e);
    if (!err) err = column(m->n_attempt, m->n_index, "task refs", "attempt", e);
    if (err) return err;
    *out = (struct mr_sched_refs){.runs = runs,
        .runs_count = (uint32_t)m->n_runs,
        .index = m->index,
        .attempt = m->n_attempt ? m->attempt : NULL,
        .count = (uint32_t)m->n_index};
    return MR_OK;
}

static struct mr_str text_of(const char *s)
{
    return mr_str(s ? s : "");
}

static int failures_in(struct mr_shell *sh, const Millrace__V1__Completed *m,
    struct mr_sched_completed *out, struct mr_error *e)
{
    struct mr_sched_failure *f = mr_shell_take(sh, m->n_failures * sizeof *f);
    uint32_t last = 0;
    for (size_t i = 0; i < m->n_failures; i++) {
        const Millrace__V1__TaskFailure *from = m->failures[i];
        if (from->row >= m->n_index || (i && from->row <= last))
            return mr_fail(e, MR_EFORMAT, "completed.failures: row %u is out of place", from->row);
        last = from->row;
        f[i] = (struct mr_sched_failure){.row = from->row,
            .code = from->code,
            .message = text_of(from->message),
            .arguments = text_of(from->arguments),
            .log = text_of(from->log)};
    }
    out->failures = f;
    out->failures_count = (uint32_t)m->n_failures;
    return MR_OK;
}

/* Inline bytes must add up and be packs; rows that are OK and have none take an object each. */
static int values_in(const Millrace__V1__Completed *m, struct mr_error *e)
{
    uint64_t inline_total = 0;
    size_t objects = 0;
    for (size_t i = 0; i < m->n_index; i++) {
        uint32_t n = m->n_inline_bytes ? m->inline_bytes[i] : 0;
        bool ok = !m->n_outcome || m->outcome[i] == MILLRACE__V1__OUTCOME__OUTCOME_OK;
        if (n > m->inline_.len - inline_total)
            return mr_fail(e, MR_EFORMAT, "completed.inline: ends inside row %zu", i);
        if (n && mr_pack_check(mr_str_of(m->inline_.data + inline_total, n), 0, e))
            return MR_EFORMAT;
        inline_total += n;
        objects += ok && !n;
    }
    if (inline_total != m->inline_.len)
        return mr_fail(e, MR_EFORMAT, "completed.inline: %zu bytes, its rows have %llu",
            m->inline_.len, (unsigned long long)inline_total);
    if (m->n_object_maker != objects || m->n_object_number != objects ||
        m->n_object_bytes != objects)
        return mr_fail(e, MR_EFORMAT, "completed.object_*: expected %zu rows", objects);
    return MR_OK;
}

static int completed_in(struct mr_shell *sh, const Millrace__V1__Completed *m,
    struct mr_sched_completed *out, struct mr_error *e)
{
    *out = (struct mr_sched_completed){0};
    if (!m) return MR_OK;
    size_t rows = m->n_index;
    struct mr_sched_run *runs = NULL;
    int err = runs_in(sh, m->runs, m->n_runs, rows, "completed", &runs, e);
    if (!err && m->n_attempt != rows)
        err =
            mr_fail(e, MR_EFORMAT, "completed.attempt: %zu rows, expected %zu", m->n_attempt, rows);
    if (!err) err = column(m->n_outcome, rows, "completed", "outcome", e);
    if (!err) err = column(m->n_inline_bytes, rows, "completed", "inline_bytes", e);
    if (!err) err = column(m->n_started_ns, rows, "completed", "started_ns", e);
    if (!err) err = column(m->n_duration_ns, rows, "completed", "duration_ns", e);
    if (!err) err = column(m->n_cpu_ns, rows, "completed", "cpu_ns", e);
    if (!err) err = column(m->n_slot, rows, "completed", "slot", e);
    if (!err) err = values_in(m, e);
    if (!err) err = failures_in(sh, m, out, e);
    if (err) return err;
    out->tasks = (struct mr_sched_refs){.runs = runs,
        .runs_count = (uint32_t)m->n_runs,
        .index = m->index,
        .attempt = m->attempt,
        .count = (uint32_t)rows};
    _Static_assert(sizeof *m->outcome == sizeof(uint32_t), "enums are as wide as their column");
    out->outcome = m->n_outcome ? (const uint32_t *)(const void *)m->outcome : NULL;
    out->inline_bytes = m->n_inline_bytes ? m->inline_bytes : NULL;
    out->inline_data = mr_str_of(m->inline_.data, m->inline_.len);
    out->object_maker = m->object_maker;
    out->object_number = m->object_number;
    out->object_bytes = m->object_bytes;
    out->objects_count = (uint32_t)m->n_object_maker;
    out->base_ns = m->base_ns;
    out->started_ns = m->n_started_ns ? m->started_ns : NULL;
    out->duration_ns = m->n_duration_ns ? m->duration_ns : NULL;
    out->cpu_ns = m->n_cpu_ns ? m->cpu_ns : NULL;
    out->slot = m->n_slot ? m->slot : NULL;
    return MR_OK;
}

static int resources_in(struct mr_shell *sh, const Millrace__V1__Register *m,
    struct mr_sched_register *out, struct mr_error *e)
{
    struct mr_sched_resource *r = mr_shell_take(sh, m->n_resources * sizeof *r);
    if (m->n_resources > MR_RESOURCES_MAX)
        return mr_fail(e, MR_ELIMIT, "register.resources: at most %d kinds", MR_RESOURCES_MAX);
    for (size_t i = 0; i < m->n_resources; i++) {
        double amount = m->resources[i]->value;
        if (!(amount >= 0 && amount <= 1e12))
            return mr_fail(e, MR_EINVAL, "register.resources: \"%s\" is not between 0 and 1e12",
                m->resources[i]->key);
        r[i] = (struct mr_sched_resource){
            text_of(m->resources[i]->key), (uint64_t)llround(amount * 1e6)};
    }
    out->resources = r;
    out->resources_count = (uint32_t)m->n_resources;
    return MR_OK;
}

int mr_wire_register(struct mr_shell *sh, const Millrace__V1__Register *m,
    struct mr_sched_register *out, struct mr_error *e)
{
    if (m->protocol_version != MR_PROTOCOL_VERSION || m->layout_version != MR_LAYOUT_VERSION)
        return mr_fail(e, MR_ESTATE,
            "worker \"%s\" speaks protocol %u with value layout %u, this scheduler %d with %d",
            m->name, m->protocol_version, m->layout_version, MR_PROTOCOL_VERSION,
            MR_LAYOUT_VERSION);
    if (!m->name[0] || strlen(m->name) > MR_LABEL_BYTES_MAX)
        return mr_fail(e, MR_EINVAL, "register.name: 1 to %d bytes", MR_LABEL_BYTES_MAX);
    if (strlen(m->address) > MR_ADDRESS_BYTES_MAX)
        return mr_fail(e, MR_EINVAL, "register.address: at most %d bytes", MR_ADDRESS_BYTES_MAX);
    if (m->slots < 1 || m->slots > MR_SLOTS_MAX)
        return mr_fail(e, MR_EINVAL, "register.slots: 1 to %d, not %u", MR_SLOTS_MAX, m->slots);
    *out = (struct mr_sched_register){.incarnation = m->incarnation,
        .epoch = m->epoch,
        .scheduler = m->scheduler,
        .name = text_of(m->name),
        .node = text_of(m->node),
        .store = m->store,
        .store_address = text_of(m->store_address),
        .slots = m->slots,
        .memory_bytes = m->memory_bytes,
        .time_ns = m->time_ns,
        .ops_count = (uint32_t)m->n_ops};
    int err = resources_in(sh, m, out, e);
    if (err) return err;
    struct mr_sched_op *ops = mr_shell_take(sh, m->n_ops * sizeof *ops);
    for (size_t i = 0; i < m->n_ops; i++) {
        const Millrace__V1__OpDescriptor *op = m->ops[i];
        if (!op->name[0] || strlen(op->name) > MR_OP_NAME_BYTES_MAX)
            return mr_fail(e, MR_EINVAL, "register.ops: a name of %zu bytes", strlen(op->name));
        ops[i] = (struct mr_sched_op){.name = text_of(op->name),
            .cost_ns = op->cost_ns,
            .deterministic = op->deterministic,
            .by_reference = op->by_reference,
            .passes = op->passes,
            .long_running = op->long_running};
    }
    out->ops = ops;
    err = completed_in(sh, m->holding, &out->holding, e);
    if (!err) err = mr_wire_refs(sh, m->queued, &out->queued, e);
    if (!err) err = mr_wire_refs(sh, m->suspects, &out->suspects, e);
    out->has_suspects = m->suspects != NULL;
    return err;
}

static int heartbeat_in(struct mr_shell *sh, const Millrace__V1__Heartbeat *m,
    struct mr_sched_heartbeat *out, struct mr_error *e)
{
    if (!m) return MR_OK;
    *out = (struct mr_sched_heartbeat){.present = true,
        .sequence = m->sequence,
        .time_ns = m->time_ns,
        .memory_used_bytes = m->memory_used_bytes,
        .held_bytes = m->held_bytes,
        .queued = m->queued,
        .running = m->running,
        .tasks_started = m->tasks_started,
        .tasks_done = m->tasks_done,
        .queue_ns = m->queue_ns};
    int err = mr_wire_refs(sh, m->running_tasks, &out->running_tasks, e);
    if (!err && m->n_running_ns && m->n_running_ns == out->running_tasks.count)
        out->running_ns = m->running_ns;
    return err;
}

int mr_wire_message(struct mr_shell *sh, const Millrace__V1__WorkerMessage *m,
    struct mr_sched_message *out, struct mr_error *e)
{
    int err = heartbeat_in(sh, m->heartbeat, &out->heartbeat, e);
    if (!err) err = completed_in(sh, m->completed, &out->completed, e);
    if (!err) err = mr_wire_refs(sh, m->given, &out->given, e);
    if (!err) err = mr_wire_refs(sh, m->started, &out->started, e);
    if (!err) err = mr_wire_refs(sh, m->unknown, &out->unknown, e);
    if (!err) err = mr_wire_refs(sh, m->left_slot, &out->left_slot, e);
    if (err) return err;
    struct mr_sched_missing *missing = mr_shell_take(sh, m->n_missing * sizeof *missing);
    for (size_t i = 0; i < m->n_missing; i++) {
        const Millrace__V1__MissingInput *from = m->missing[i];
        missing[i] = (struct mr_sched_missing){
            from->job, from->index, from->attempt, from->input, text_of(from->why)};
    }
    out->missing = missing;
    out->missing_count = (uint32_t)m->n_missing;
    out->leaving = m->leaving;
    return MR_OK;
}

/* ---- out ---------------------------------------------------------------------------------- */

#define NEW(sh, type, init)                                                                        \
    __extension__({                                                                                \
        type *made_ = mr_shell_take((sh), sizeof(type));                                           \
        const type blank_ = init;                                                                  \
        *made_ = blank_;                                                                           \
        made_;                                                                                     \
    })

void mr_wire_tables_fini(struct mr_wire_tables *t)
{
    mr_release(t->op);
    mr_release(t->store);
    *t = (struct mr_wire_tables){0};
}

static uint32_t *slot_of(uint32_t **table, uint32_t *room, uint32_t number)
{
    if (number >= *room) {
        uint32_t more = MR_MAX(number + 1, 2 * *room);
        *table = mr_grow(*table, *room * sizeof **table, more * sizeof **table);
        *room = more;
    }
    return &(*table)[number];
}

static Millrace__V1__Run **runs_out(
    struct mr_shell *sh, const struct mr_sched_runs_out *r, size_t *n)
{
    const struct mr_sched_run *runs = r->p;
    *n = r->count;
    Millrace__V1__Run **out = mr_shell_take(sh, *n * sizeof *out);
    Millrace__V1__Run *rows = mr_shell_take(sh, *n * sizeof *rows);
    for (size_t i = 0; i < *n; i++) {
        millrace__v1__run__init(&rows[i]);
        rows[i].job = runs[i].job;
        rows[i].count = runs[i].count;
        rows[i].unfused = runs[i].unfused;
        out[i] = &rows[i];
    }
    return out;
}

static Millrace__V1__TaskRefs *refs_out(struct mr_shell *sh, const struct mr_sched_refs_out *r)
{
    if (!r->count) return NULL;
    Millrace__V1__TaskRefs *m = NEW(sh, Millrace__V1__TaskRefs, MILLRACE__V1__TASK_REFS__INIT);
    m->runs = runs_out(sh, &r->runs, &m->n_runs);
    m->index = r->index;
    m->attempt = r->attempt;
    m->n_index = m->n_attempt = r->count;
    return m;
}

/* Names that this session has not heard yet; the number of `op` in its table. */
static uint32_t op_number(
    struct mr_shell *sh, struct mr_wire_tables *t, uint32_t op, Millrace__V1__SchedulerMessage *m)
{
    uint32_t *number = slot_of(&t->op, &t->ops_room, op);
    if (!*number) {
        *number = ++t->ops_count;
        m->ops[m->n_ops++] = mr_shell_text(sh, mr_sched_op_name(sh->core, op));
    }
    return *number;
}

/* One that was told without an address, which the journal does not have, is told again with it. */
static uint32_t store_number(struct mr_shell *sh, struct mr_wire_tables *t, uint32_t store,
    Millrace__V1__SchedulerMessage *m)
{
    uint32_t *number = slot_of(&t->store, &t->stores_room, store);
    uint64_t incarnation = 0;
    struct mr_str node;
    struct mr_str address;
    bool alive = false;
    if (*number && !(*number & STORE_BARE)) return *number;
    if (!mr_sched_store(sh->core, store, &incarnation, &node, &address, &alive)) return 0;
    if (*number && !address.n) return *number & ~STORE_BARE;
    Millrace__V1__Node *row = NEW(sh, Millrace__V1__Node, MILLRACE__V1__NODE__INIT);
    row->id = incarnation;
    row->address = mr_shell_text(sh, address);
    *number = ++t->stores_count | (address.n ? 0 : STORE_BARE);
    m->nodes[m->n_nodes++] = row;
    return t->stores_count;
}

/* A task may load objects that no message names, on any node: parts of a collection, the data of a
 * role. Whoever gets tasks or values has to know where to ask for them. */
static void stores_out(
    struct mr_shell *sh, struct mr_wire_tables *t, Millrace__V1__SchedulerMessage *m)
{
    if (t->stores_seen == mr_sched_stores_changes(sh->core)) return;
    t->stores_seen = mr_sched_stores_changes(sh->core);
    uint64_t incarnation = 0;
    struct mr_str node;
    struct mr_str address;
    bool alive = false;
    for (uint32_t n = 1; n <= mr_sched_stores_count(sh->core); n++)
        if (mr_sched_store(sh->core, n, &incarnation, &node, &address, &alive) && alive)
            (void)store_number(sh, t, n, m);
}

static Millrace__V1__Values *values_out(struct mr_shell *sh, const struct mr_sched_batch *b,
    struct mr_wire_tables *t, Millrace__V1__SchedulerMessage *m)
{
    if (!b->values.count) return NULL;
    Millrace__V1__Values *v = NEW(sh, Millrace__V1__Values, MILLRACE__V1__VALUES__INIT);
    const mr_object_id *ids = (const void *)b->value_object.p;
    const uint32_t *stores = (const void *)b->value_object_store.p;
    size_t objects = b->value_object.n / sizeof *ids;
    v->runs = runs_out(sh, &b->values.runs, &v->n_runs);
    v->index = b->values.index;
    v->inline_bytes = b->values.inline_bytes;
    v->n_index = v->n_inline_bytes = b->values.count;
    v->inline_.data = b->value_inline.p;
    v->inline_.len = b->value_inline.n;
    v->object_bytes = (uint64_t *)(void *)b->value_object_bytes.p;
    v->n_object_bytes = v->n_object_maker = v->n_object_number = v->n_object_node = objects;
    v->object_maker = mr_shell_take(sh, objects * sizeof *v->object_maker);
    v->object_number = mr_shell_take(sh, objects * sizeof *v->object_number);
    v->object_node = mr_shell_take(sh, objects * sizeof *v->object_node);
    for (size_t i = 0; i < objects; i++) {
        v->object_maker[i] = ids[i].maker;
        v->object_number[i] = ids[i].number;
        v->object_node[i] = stores[i] ? store_number(sh, t, stores[i], m) : 0;
    }
    return v;
}

static Millrace__V1__TaskExtra *extra_out(
    struct mr_shell *sh, const struct mr_sched_batch *b, const struct mr_sched_extra *x)
{
    Millrace__V1__TaskExtra *m = NEW(sh, Millrace__V1__TaskExtra, MILLRACE__V1__TASK_EXTRA__INIT);
    const struct mr_sched_amount *amounts = (const void *)b->resources.p;
    const char *text = (const char *)b->text.p;
    m->row = x->row;
    m->timeout_ns = x->timeout_ns;
    m->long_running = x->long_running;
    m->alone = x->alone;
    m->want_object = x->want_object;
    m->persist = x->persist;
    if (x->key_bytes) m->key = mr_shell_text(sh, mr_str_of(text + x->key_at, x->key_bytes));
    if (x->persist_name_bytes)
        m->persist_name =
            mr_shell_text(sh, mr_str_of(text + x->persist_name_at, x->persist_name_bytes));
    if (x->persist) {
        m->definition.len = 16;
        m->definition.data = mr_shell_take(sh, 16);
        mr_object_id_to_bytes(
            (mr_object_id){x->definition.hi, x->definition.lo}, m->definition.data);
    }
    m->n_resources = x->resources_count;
    m->resources = mr_shell_take(sh, x->resources_count * sizeof *m->resources);
    for (uint32_t i = 0; i < x->resources_count; i++) {
        const struct mr_sched_amount *a = &amounts[x->resources_at + i];
        m->resources[i] = NEW(sh, Millrace__V1__TaskExtra__ResourcesEntry,
            MILLRACE__V1__TASK_EXTRA__RESOURCES_ENTRY__INIT);
        m->resources[i]->key = mr_shell_text(sh, mr_sched_resource_name(sh->core, a->kind));
        m->resources[i]->value = (double)a->micro / 1e6;
    }
    return m;
}

/* The column as it stands in the batch; none if every row has what is usual. */
static uint32_t *column_out(const struct mr_sched_rows *r, enum mr_sched_column c, size_t *n)
{
    uint32_t *column = mr_sched_column(r, c);
    *n = column ? r->count : 0;
    return column;
}

static uint32_t *ops_out(struct mr_shell *sh, const struct mr_sched_rows *r,
    struct mr_wire_tables *t, Millrace__V1__SchedulerMessage *m, size_t *n)
{
    *n = mr_sched_column(r, MR_COLUMN_OP) ? r->count : 1;
    m->ops = mr_shell_take(sh, (mr_sched_ops_count(sh->core) + 1) * sizeof *m->ops);
    uint32_t *to = mr_shell_take(sh, *n * sizeof *to);
    for (uint32_t i = 0; i < *n; i++)
        to[i] = op_number(sh, t, mr_sched_cell(r, MR_COLUMN_OP, i), m);
    return to;
}

static Millrace__V1__Tasks *tasks_out(struct mr_shell *sh, const struct mr_sched_batch *b,
    struct mr_wire_tables *t, Millrace__V1__SchedulerMessage *m)
{
    const struct mr_sched_rows *r = &b->tasks;
    if (!r->count) return NULL;
    Millrace__V1__Tasks *k = NEW(sh, Millrace__V1__Tasks, MILLRACE__V1__TASKS__INIT);
    const struct mr_sched_extra *extras = (const void *)b->extra.p;
    k->runs = runs_out(sh, &r->runs, &k->n_runs);
    k->index = column_out(r, MR_COLUMN_INDEX, &k->n_index); /* and order, which is the same */
    k->attempt = column_out(r, MR_COLUMN_ATTEMPT, &k->n_attempt);
    k->args_bytes = column_out(r, MR_COLUMN_ARGS_BYTES, &k->n_args_bytes);
    k->inputs_count = column_out(r, MR_COLUMN_INPUTS_COUNT, &k->n_inputs_count);
    k->uses = column_out(r, MR_COLUMN_USES, &k->n_uses);
    k->priority = (int32_t *)column_out(r, MR_COLUMN_PRIORITY, &k->n_priority);
    k->op = ops_out(sh, r, t, m, &k->n_op);
    k->args.data = b->args.p;
    k->args.len = b->args.n;
    k->inputs = (uint32_t *)(void *)b->inputs.p;
    k->n_inputs = b->inputs.n / sizeof(uint32_t);
    k->last_use = (uint32_t *)(void *)b->last_use.p;
    k->n_last_use = b->last_use.n / sizeof(uint32_t);
    k->n_extra = b->extra.n / sizeof *extras;
    k->extra = mr_shell_take(sh, k->n_extra * sizeof *k->extra);
    for (size_t i = 0; i < k->n_extra; i++)
        k->extra[i] = extra_out(sh, b, &extras[i]);
    return k;
}

static Millrace__V1__Registered *registered_out(struct mr_shell *sh, const struct mr_sched_batch *b)
{
    Millrace__V1__Registered *r = NEW(sh, Millrace__V1__Registered, MILLRACE__V1__REGISTERED__INIT);
    r->incarnation = b->incarnation;
    r->epoch = mr_sched_epoch(sh->core);
    r->scheduler = sh->options.core.incarnation;
    r->heartbeat_ns = sh->options.core.heartbeat;
    r->lease_ns = sh->options.core.lease;
    r->cluster_id = sh->cluster_id;
    r->adopt = refs_out(sh, &b->adopt);
    r->keep = refs_out(sh, &b->keep);
    return r;
}

Millrace__V1__SchedulerMessage *mr_wire_batch(
    struct mr_shell *sh, const struct mr_sched_batch *b, struct mr_wire_tables *t)
{
    Millrace__V1__SchedulerMessage *m =
        NEW(sh, Millrace__V1__SchedulerMessage, MILLRACE__V1__SCHEDULER_MESSAGE__INIT);
    if (b->has_registered) m->registered = registered_out(sh, b);
    if (b->tasks.count || b->values.count) {
        m->nodes = mr_shell_take(sh, mr_sched_stores_count(sh->core) * sizeof *m->nodes);
        stores_out(sh, t, m);
    }
    m->values = values_out(sh, b, t, m);
    m->tasks = tasks_out(sh, b, t, m);
    m->cancel = refs_out(sh, &b->cancel);
    m->release = refs_out(sh, &b->release);
    m->steal = refs_out(sh, &b->steal);
    m->fetch = refs_out(sh, &b->fetch);
    m->leave = refs_out(sh, &b->leave);
    m->drain = b->drain;
    m->heard = b->heard;
    m->forget_jobs = (uint64_t *)(void *)b->forget_jobs.p;
    m->n_forget_jobs = b->forget_jobs.n / sizeof(uint64_t);
    return m;
}
