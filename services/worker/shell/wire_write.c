#include "services/worker/shell/wire.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "base/utf8.h"
#include "host/config/help.h"
#include "millrace/v1/session.pb-c.h"
#include "ops/describe.h"

/* The arena of outgoing messages is ours and grows with what the core may lend: running into its
 * ceiling is our mistake. */
static void *take(struct mr_pb_arena *a, size_t count, size_t bytes)
{
    if (!count) return NULL;
    void *p = mr_pb_arena_take(a, count * bytes);
    mr_assert(p);
    return p;
}

/* A protobuf string: ends with NUL, is UTF-8, so what is neither is escaped. */
static char *text(struct mr_pb_arena *a, struct mr_str s)
{
    bool plain = mr_utf8_is_valid(s) && !(s.n && memchr(s.p, 0, s.n));
    size_t room = plain ? s.n + 1 : s.n * 4 + 1;
    char *p = take(a, room, 1);
    if (plain && s.n) memcpy(p, s.p, s.n);
    if (plain) {
        p[s.n] = 0;
    } else {
        mr_utf8_printable(s.p, s.n, p, room);
    }
    return p;
}

static Millrace__V1__Run **runs(struct mr_pb_arena *a, const struct mr_ws_run *from, size_t n)
{
    Millrace__V1__Run **out = take(a, n, sizeof *out);
    Millrace__V1__Run *rows = take(a, n, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        rows[i] = (Millrace__V1__Run)MILLRACE__V1__RUN__INIT;
        rows[i].job = from[i].job.v;
        rows[i].count = from[i].count;
        out[i] = &rows[i];
    }
    return out;
}

/* protobuf-c does not know const; nothing of these is written to. */
#define COLUMN(type, p) ((type *)mr_unconst(p))

static Millrace__V1__TaskRefs *refs_even_none(struct mr_pb_arena *a, const struct mr_ws_refs *r)
{
    Millrace__V1__TaskRefs *m = take(a, 1, sizeof *m);
    *m = (Millrace__V1__TaskRefs)MILLRACE__V1__TASK_REFS__INIT;
    m->runs = runs(a, r->runs, r->runs_count);
    m->n_runs = r->runs_count;
    m->index = COLUMN(uint32_t, r->index);
    m->attempt = COLUMN(uint32_t, r->attempt);
    m->n_index = m->n_attempt = r->count;
    return m;
}

static Millrace__V1__TaskRefs *refs(struct mr_pb_arena *a, const struct mr_ws_refs *r)
{
    return r->count ? refs_even_none(a, r) : NULL;
}

static void failures(
    struct mr_pb_arena *a, const struct mr_ws_completed *c, Millrace__V1__Completed *m)
{
    m->failures = take(a, c->failures_count, sizeof *m->failures);
    m->n_failures = c->failures_count;
    for (uint32_t i = 0; i < c->failures_count; i++) {
        Millrace__V1__TaskFailure *f = take(a, 1, sizeof *f);
        *f = (Millrace__V1__TaskFailure)MILLRACE__V1__TASK_FAILURE__INIT;
        f->row = c->failures[i].row;
        f->code = mr_err_grpc(c->failures[i].code);
        f->message = text(a, c->failures[i].message);
        f->arguments = text(a, c->failures[i].arguments);
        f->log = text(a, c->failures[i].log);
        m->failures[i] = f;
    }
}

static Millrace__V1__Completed *completed(struct mr_pb_arena *a, const struct mr_ws_completed *c)
{
    if (!c->count) return NULL;
    Millrace__V1__Completed *m = take(a, 1, sizeof *m);
    *m = (Millrace__V1__Completed)MILLRACE__V1__COMPLETED__INIT;
    size_t n = c->count;
    m->runs = runs(a, c->runs, c->runs_count);
    m->n_runs = c->runs_count;
    m->index = COLUMN(uint32_t, c->index);
    m->attempt = COLUMN(uint32_t, c->attempt);
    m->inline_bytes = COLUMN(uint32_t, c->inline_bytes);
    m->n_index = m->n_attempt = m->n_inline_bytes = n;
    if (c->outcome) {
        m->outcome = take(a, n, sizeof *m->outcome);
        m->n_outcome = n;
        for (size_t i = 0; i < n; i++)
            m->outcome[i] = (Millrace__V1__Outcome)c->outcome[i];
    }
    m->inline_.data = COLUMN(uint8_t, c->inlined.p);
    m->inline_.len = c->inlined.n;
    m->object_maker = COLUMN(uint64_t, c->object_maker);
    m->object_number = COLUMN(uint64_t, c->object_number);
    m->object_bytes = COLUMN(uint64_t, c->object_bytes);
    m->n_object_maker = m->n_object_number = m->n_object_bytes = c->objects_count;
    m->base_ns = c->base_ns;
    m->started_ns = COLUMN(uint64_t, c->started_ns);
    m->duration_ns = COLUMN(uint64_t, c->duration_ns);
    m->cpu_ns = COLUMN(uint64_t, c->cpu_ns);
    m->slot = COLUMN(uint32_t, c->slot);
    m->n_started_ns = m->n_duration_ns = m->n_cpu_ns = m->n_slot = n;
    failures(a, c, m);
    return m;
}

static void json_text(struct mr_buf *out, struct mr_str s)
{
    mr_buf_add_byte(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c == '"' || c == '\\') {
            mr_buf_printf(out, "\\u%04x", c);
        } else {
            mr_buf_add_byte(out, c);
        }
    }
    mr_buf_add_byte(out, '"');
}

/* OpInfo of cluster.proto as JSON, for operators that only this worker knows. */
static void op_info(const struct mr_op_desc *op, struct mr_buf *out)
{
    mr_buf_add_text(out, "{\"name\":");
    json_text(out, mr_str(op->name));
    mr_buf_add_text(out, ",\"summary\":");
    json_text(out, mr_str(op->summary ? op->summary : ""));
    mr_buf_add_text(out, ",\"returns\":");
    json_text(out, mr_str(op->result ? op->result : ""));
    mr_buf_printf(out,
        ",\"runtime\":\"native\",\"variadic\":%s,\"deterministic\":%s,\"by_reference\":%s,"
        "\"parameters\":[",
        op->flags & MR_OP_VARIADIC ? "true" : "false",
        op->flags & MR_OP_DETERMINISTIC ? "true" : "false",
        op->flags & MR_OP_BY_REFERENCE ? "true" : "false");
    for (uint32_t i = 0; i < op->params_count; i++) {
        const struct mr_op_param *p = &op->params[i];
        struct mr_buf words;
        mr_buf_init(&words, 4096);
        mr_op_takes_words(p->takes, &words);
        mr_buf_add_text(out, i ? ",{\"name\":" : "{\"name\":");
        json_text(out, mr_str(p->name));
        mr_buf_add_text(out, ",\"type\":");
        json_text(out, mr_buf_str(&words));
        mr_buf_add_text(out, ",\"doc\":");
        json_text(out, mr_str(p->doc ? p->doc : ""));
        mr_buf_printf(out, ",\"required\":%s", p->fallback ? "false" : "true");
        if (p->fallback) {
            mr_buf_add_text(out, ",\"default_json\":");
            json_text(out, mr_str(p->fallback));
        }
        mr_buf_add_text(out, "}");
        mr_buf_fini(&words);
    }
    mr_buf_add_text(out, "]}");
}

static Millrace__V1__OpDescriptor *op_row(
    struct mr_pb_arena *a, const struct mr_worker_identity *id, const struct mr_op_desc *op)
{
    Millrace__V1__OpDescriptor *m = take(a, 1, sizeof *m);
    *m = (Millrace__V1__OpDescriptor)MILLRACE__V1__OP_DESCRIPTOR__INIT;
    m->name = text(a, mr_str(op->name));
    m->args_min = mr_op_args_min(op);
    m->args_max = mr_op_args_max(op);
    m->deterministic = (op->flags & MR_OP_DETERMINISTIC) != 0;
    m->by_reference = (op->flags & MR_OP_BY_REFERENCE) != 0;
    m->passes = (op->flags & MR_OP_PASSES) != 0;
    m->long_running = (op->flags & MR_OP_LONG_RUNNING) != 0;
    m->cost_ns = op->cost_ns;
    if (mr_registry_find(id->builtin, mr_str(op->name))) return m;
    struct mr_buf json;
    mr_buf_init(&json, (size_t)1 << 20);
    op_info(op, &json);
    m->info_json = text(a, mr_buf_str(&json));
    mr_buf_fini(&json);
    return m;
}

static void process_facts(
    struct mr_pb_arena *a, const struct mr_worker_identity *id, Millrace__V1__Register *m)
{
    m->protocol_version = MR_PROTOCOL_VERSION;
    m->layout_version = MR_LAYOUT_VERSION;
    m->name = text(a, mr_str(id->name));
    m->node = text(a, mr_str(id->node));
    m->store = id->store.v;
    m->store_address = text(a, mr_str(id->store_address));
    m->address = text(a, mr_str(id->address));
    m->slots = id->slots;
    m->memory_bytes = id->memory_bytes;
    m->pid = id->pid;
    m->version = text(a, mr_str(mr_version()));
    m->resources = take(a, id->resources_count, sizeof *m->resources);
    m->n_resources = id->resources_count;
    for (uint32_t i = 0; i < id->resources_count; i++) {
        Millrace__V1__Register__ResourcesEntry *r = take(a, 1, sizeof *r);
        *r = (Millrace__V1__Register__ResourcesEntry)MILLRACE__V1__REGISTER__RESOURCES_ENTRY__INIT;
        r->key = text(a, id->resources[i].name);
        r->value = (double)id->resources[i].micro / 1e6;
        m->resources[i] = r;
    }
    m->runtimes = take(a, id->runtimes_count, sizeof *m->runtimes);
    m->n_runtimes = id->runtimes_count;
    for (uint32_t i = 0; i < id->runtimes_count; i++)
        m->runtimes[i] = text(a, mr_str(id->runtimes[i]));
    uint32_t n = mr_registry_count(id->ops);
    m->ops = take(a, n, sizeof *m->ops);
    m->n_ops = n;
    for (uint32_t i = 0; i < n; i++)
        m->ops[i] = op_row(a, id, mr_registry_at(id->ops, i));
}

static Millrace__V1__Register *reg(
    struct mr_pb_arena *a, const struct mr_ws_register *r, const struct mr_worker_identity *id)
{
    Millrace__V1__Register *m = take(a, 1, sizeof *m);
    *m = (Millrace__V1__Register)MILLRACE__V1__REGISTER__INIT;
    process_facts(a, id, m);
    m->incarnation = r->incarnation;
    m->epoch = r->epoch;
    m->scheduler = r->scheduler;
    m->time_ns = r->time_ns;
    m->holding = completed(a, &r->holding);
    m->queued = refs(a, &r->queued);
    if (id->knows_suspects) m->suspects = refs_even_none(a, &id->suspects);
    return m;
}

static Millrace__V1__Heartbeat *heartbeat(struct mr_pb_arena *a, const struct mr_ws_heartbeat *h)
{
    Millrace__V1__Heartbeat *m = take(a, 1, sizeof *m);
    *m = (Millrace__V1__Heartbeat)MILLRACE__V1__HEARTBEAT__INIT;
    m->sequence = h->sequence;
    m->time_ns = h->time_ns;
    m->memory_used_bytes = h->memory_used_bytes;
    m->held_bytes = h->held_bytes;
    m->queued = h->queued;
    m->running = h->running;
    m->tasks_started = h->tasks_started;
    m->tasks_done = h->tasks_done;
    m->running_tasks = refs(a, &h->running_tasks);
    m->running_ns = COLUMN(uint64_t, h->running_ns);
    m->n_running_ns = h->running_tasks.count;
    m->queue_ns = h->queue_ns;
    return m;
}

static void missing(
    struct mr_pb_arena *a, const struct mr_ws_up *up, Millrace__V1__WorkerMessage *m)
{
    m->missing = take(a, up->missing_count, sizeof *m->missing);
    m->n_missing = up->missing_count;
    for (uint32_t i = 0; i < up->missing_count; i++) {
        Millrace__V1__MissingInput *r = take(a, 1, sizeof *r);
        *r = (Millrace__V1__MissingInput)MILLRACE__V1__MISSING_INPUT__INIT;
        r->job = up->missing[i].job.v;
        r->index = up->missing[i].index;
        r->attempt = up->missing[i].attempt;
        r->input = up->missing[i].input;
        r->why = text(a, up->missing[i].why);
        m->missing[i] = r;
    }
}

void mr_worker_wire_write(const struct mr_ws_up *up, const struct mr_worker_identity *identity,
    const struct mr_worker_log *logs, uint32_t logs_count, struct mr_pb_arena *a,
    struct mr_buf *out)
{
    Millrace__V1__WorkerMessage m = MILLRACE__V1__WORKER_MESSAGE__INIT;
    if (up) {
        if (up->reg) m.register_ = reg(a, up->reg, identity);
        if (up->heartbeat) m.heartbeat = heartbeat(a, up->heartbeat);
        m.completed = completed(a, &up->completed);
        m.given = refs(a, &up->given);
        m.started = refs(a, &up->started);
        m.unknown = refs(a, &up->unknown);
        m.left_slot = refs(a, &up->left_slot);
        missing(a, up, &m);
        m.leaving = up->leaving;
    }
    m.logs = take(a, logs_count, sizeof *m.logs);
    m.n_logs = logs_count;
    for (uint32_t i = 0; i < logs_count; i++) {
        Millrace__V1__TaskLog *l = take(a, 1, sizeof *l);
        *l = (Millrace__V1__TaskLog)MILLRACE__V1__TASK_LOG__INIT;
        l->job = logs[i].job.v;
        l->index = logs[i].index;
        l->attempt = logs[i].attempt;
        l->text = text(a, logs[i].text);
        l->dropped = logs[i].lost;
        m.logs[i] = l;
    }
    mr_pb_pack(&m.base, out);
}
