#include "services/worker/shell/wire.h"

#include "base/limits.h"
#include "millrace/v1/session.pb-c.h"

#include <math.h>

#define UNPACKED_BYTES_MAX                                                                         \
    ((size_t)256 << 20) /* of one message; see scheduler_session.c for the arena */

static_assert(sizeof(int) == sizeof(uint32_t), "enum columns are 32 bits wide");

struct reader {
    struct mr_pb_arena *a;
    struct mr_error *e;
    int err;
};

static void *take(struct reader *r, size_t count, size_t bytes)
{
    void *p = count ? mr_pb_arena_take(r->a, count * bytes) : NULL;
    if (count && !p)
        r->err = mr_fail(r->e, MR_ELIMIT, "a message of the scheduler is larger than %zu bytes",
            UNPACKED_BYTES_MAX);
    return p;
}

static void lengths(struct reader *r, const char *what, size_t got, size_t want)
{
    if (r->err || got == want) return;
    r->err = mr_fail(r->e, MR_EFORMAT, "column %s has %zu rows instead of %zu", what, got, want);
}

static struct mr_str text(const char *s)
{
    return mr_str(s ? s : "");
}

static const struct mr_ws_run *runs(struct reader *r, Millrace__V1__Run **from, size_t n)
{
    struct mr_ws_run *to = take(r, n, sizeof *to);
    for (size_t i = 0; to && i < n; i++)
        to[i] = (struct mr_ws_run){{from[i]->job}, from[i]->count, from[i]->unfused};
    return to;
}

static struct mr_ws_refs refs(struct reader *r, const char *what, const Millrace__V1__TaskRefs *m)
{
    struct mr_ws_refs out = {0};
    if (!m) return out;
    out.runs = runs(r, m->runs, m->n_runs);
    out.runs_count = (uint32_t)m->n_runs;
    out.index = m->index;
    out.attempt = m->attempt;
    out.count = (uint32_t)m->n_index;
    if (!m->n_attempt && m->n_index) { /* release: whatever attempt */
        uint32_t *zeros = take(r, m->n_index, sizeof *zeros);
        if (zeros) memset(zeros, 0, m->n_index * sizeof *zeros);
        out.attempt = zeros;
    } else {
        lengths(r, what, m->n_attempt, m->n_index);
    }
    return out;
}

static void read_registered(
    struct reader *r, const Millrace__V1__Registered *m, struct mr_ws_down *out)
{
    struct mr_ws_registered *to = take(r, 1, sizeof *to);
    if (!to) return;
    *to = (struct mr_ws_registered){.incarnation = m->incarnation,
        .epoch = m->epoch,
        .scheduler = m->scheduler,
        .heartbeat_ns = m->heartbeat_ns,
        .lease_ns = m->lease_ns,
        .adopt = refs(r, "registered.adopt", m->adopt),
        .keep = refs(r, "registered.keep", m->keep)};
    out->registered = to;
}

static void read_tables(
    struct reader *r, const Millrace__V1__SchedulerMessage *m, struct mr_ws_down *out)
{
    struct mr_str *ops = take(r, m->n_ops, sizeof *ops);
    struct mr_ws_node *nodes = take(r, m->n_nodes, sizeof *nodes);
    if (r->err) return;
    for (size_t i = 0; i < m->n_ops; i++)
        ops[i] = text(m->ops[i]);
    for (size_t i = 0; i < m->n_nodes; i++)
        nodes[i] = (struct mr_ws_node){text(m->nodes[i]->address), {m->nodes[i]->id}};
    out->ops = ops;
    out->ops_count = (uint32_t)m->n_ops;
    out->nodes = nodes;
    out->nodes_count = (uint32_t)m->n_nodes;
}

static void read_values(struct reader *r, const Millrace__V1__Values *m, struct mr_ws_values *out)
{
    lengths(r, "values.inline_bytes", m->n_inline_bytes, m->n_index);
    lengths(r, "values.object_number", m->n_object_number, m->n_object_maker);
    lengths(r, "values.object_bytes", m->n_object_bytes, m->n_object_maker);
    lengths(r, "values.object_node", m->n_object_node, m->n_object_maker);
    *out = (struct mr_ws_values){.runs = runs(r, m->runs, m->n_runs),
        .index = m->index,
        .inline_bytes = m->inline_bytes,
        .inlined = mr_str_of(m->inline_.data, m->inline_.len),
        .object_maker = m->object_maker,
        .object_number = m->object_number,
        .object_bytes = m->object_bytes,
        .object_node = m->object_node,
        .runs_count = (uint32_t)m->n_runs,
        .count = (uint32_t)m->n_index,
        .objects_count = (uint32_t)m->n_object_maker};
}

/* A resource is asked for in millionths; what is no number asks for more than there ever is. */
static uint64_t micro(double v)
{
    if (!(v >= 0) || v > 1e9) return UINT64_MAX;
    return (uint64_t)llround(v * 1e6);
}

static void read_extra(struct reader *r, const Millrace__V1__TaskExtra *m, struct mr_ws_extra *out)
{
    struct mr_ws_resource *to = take(r, m->n_resources, sizeof *to);
    for (size_t i = 0; to && i < m->n_resources; i++)
        to[i] = (struct mr_ws_resource){text(m->resources[i]->key), micro(m->resources[i]->value)};
    *out = (struct mr_ws_extra){.row = m->row,
        .long_running = m->long_running,
        .alone = m->alone,
        .want_object = m->want_object,
        .persist = m->persist,
        .timeout_ns = m->timeout_ns,
        .resources = to,
        .resources_count = (uint32_t)m->n_resources,
        .key = text(m->key),
        .persist_name = text(m->persist_name),
        .definition = mr_str_of(m->definition.data, m->definition.len)};
}

static void read_tasks(struct reader *r, const Millrace__V1__Tasks *m, struct mr_ws_tasks *out)
{
    size_t n = m->n_index;
    bool has_one_op = m->n_op == 1;
    lengths(r, "tasks.args_bytes", m->n_args_bytes, n);
    if (!has_one_op) lengths(r, "tasks.op", m->n_op, n);
    if (m->n_attempt) lengths(r, "tasks.attempt", m->n_attempt, n);
    if (m->n_inputs_count) lengths(r, "tasks.inputs_count", m->n_inputs_count, n);
    if (m->n_order) lengths(r, "tasks.order", m->n_order, n);
    if (m->n_priority) lengths(r, "tasks.priority", m->n_priority, n);
    if (m->n_uses) lengths(r, "tasks.uses", m->n_uses, n);
    struct mr_ws_extra *extras = take(r, m->n_extra, sizeof *extras);
    for (size_t i = 0; extras && i < m->n_extra; i++)
        read_extra(r, m->extra[i], &extras[i]);
    *out = (struct mr_ws_tasks){.runs = runs(r, m->runs, m->n_runs),
        .index = m->index,
        .attempt = m->n_attempt ? m->attempt : NULL,
        .op = has_one_op ? NULL : m->op,
        .op_of_all = has_one_op ? m->op[0] : 0,
        .args = mr_str_of(m->args.data, m->args.len),
        .args_bytes = m->args_bytes,
        .inputs_count = m->n_inputs_count ? m->inputs_count : NULL,
        .inputs = m->inputs,
        .last_use = m->last_use,
        .priority = m->n_priority ? m->priority : NULL,
        .order = m->n_order ? m->order : NULL,
        .uses = m->n_uses ? m->uses : NULL,
        .extras = extras,
        .runs_count = (uint32_t)m->n_runs,
        .count = (uint32_t)n,
        .inputs_total = (uint32_t)m->n_inputs,
        .last_use_count = (uint32_t)m->n_last_use,
        .extras_count = (uint32_t)m->n_extra};
}

int mr_worker_wire_read(
    struct mr_str bytes, struct mr_pb_arena *a, struct mr_ws_down *out, struct mr_error *e)
{
    const Millrace__V1__SchedulerMessage *m =
        mr_pb_unpack(&millrace__v1__scheduler_message__descriptor, bytes, a, e);
    if (!m) return MR_EFORMAT;
    struct reader r = {.a = a, .e = e};
    *out = (struct mr_ws_down){.drain = m->drain, .heard = m->heard};
    if (m->registered) read_registered(&r, m->registered, out);
    read_tables(&r, m, out);
    if (m->values) read_values(&r, m->values, &out->values);
    if (m->tasks) read_tasks(&r, m->tasks, &out->tasks);
    out->cancel = refs(&r, "cancel.attempt", m->cancel);
    out->release = refs(&r, "release.attempt", m->release);
    out->steal = refs(&r, "steal.attempt", m->steal);
    out->fetch = refs(&r, "fetch.attempt", m->fetch);
    out->leave = refs(&r, "leave.attempt", m->leave);
    mr_job_id *jobs = take(&r, m->n_forget_jobs, sizeof *jobs);
    for (size_t i = 0; jobs && i < m->n_forget_jobs; i++)
        jobs[i].v = m->forget_jobs[i];
    out->forget_jobs = jobs;
    out->forget_jobs_count = (uint32_t)m->n_forget_jobs;
    return r.err ? r.err : mr_ws_down_check(out, e);
}
