/* Turns a batch for a worker into a message (batch_message.h). The columns of the message are those
 * of the batch, without a copy. Only columns that name operators or stores are copied: the copy has
 * the numbers of the worker's session in place of the core's numbers. */
#include "services/scheduler/core/batch_message.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "services/scheduler/core/query.h"
#include "services/scheduler/core/state/state.h"

/* A flag of a store's number in a session: the store was named to the worker without an address. */
#define STORE_BARE 0x80000000u

struct message { /* a message under construction */
    const struct mr_sched *s;
    const struct mr_sched_batch *b;
    struct mr_sched_numbers *n;
    const struct mr_ws_memory *memory;
    struct mr_ws_down *out;
    struct mr_str *ops;       /* operators that get their session number in this message */
    struct mr_ws_node *nodes; /* stores that get a session number in this message */
};

void mr_sched_numbers_fini(struct mr_sched_numbers *n)
{
    mr_release(n->op);
    mr_release(n->store);
    *n = (struct mr_sched_numbers){0};
}

static void *take(const struct message *m, size_t count, size_t each)
{
    void *p = m->memory->take(m->memory->ctx, count * each);
    mr_assert(p || !count); /* the shell's arena has room for the largest batch */
    return p;
}

static uint32_t *number_of(uint32_t **table, uint32_t *room, uint32_t number)
{
    if (number >= *room) {
        uint32_t more = MR_MAX(number + 1, 2 * *room);
        *table = mr_grow(*table, *room * sizeof **table, more * sizeof **table);
        *room = more;
    }
    return &(*table)[number];
}

static uint32_t op_number(struct message *m, uint32_t op)
{
    uint32_t *number = number_of(&m->n->op, &m->n->ops_room, op);
    if (!*number) {
        *number = ++m->n->ops_count;
        m->ops[m->out->ops_count++] = mr_sched_op_name(m->s, op);
    }
    return *number;
}

/* Returns the session's number of a store; 0: there is no such store. A store that is known only
 * from the journal has no address. A store that was named to the worker without an address gets
 * another number when the address is known. */
static uint32_t store_number(struct message *m, uint32_t store)
{
    uint32_t *number = number_of(&m->n->store, &m->n->stores_room, store);
    uint64_t incarnation = 0;
    struct mr_str node;
    struct mr_str address;
    bool is_alive = false;
    if (*number && !(m->n->with_addresses && *number & STORE_BARE)) return *number & ~STORE_BARE;
    if (!mr_sched_store(m->s, store, &incarnation, &node, &address, &is_alive)) return 0;
    if (*number && !address.n) return *number & ~STORE_BARE;
    m->nodes[m->out->nodes_count++] = (struct mr_ws_node){address, {incarnation}};
    *number = ++m->n->stores_count | (address.n ? 0 : STORE_BARE);
    return m->n->stores_count;
}

/* Names all living stores to the worker, if stores have changed since the last message. A task may
 * load objects that no message names, from any node: parts of a collection, the data of a training
 * role. */
static void all_stores(struct message *m)
{
    uint64_t incarnation = 0;
    struct mr_str node;
    struct mr_str address;
    bool is_alive = false;
    if (m->n->stores_seen == mr_sched_stores_changes(m->s)) return;
    m->n->stores_seen = mr_sched_stores_changes(m->s);
    for (uint32_t i = 1; i <= mr_sched_stores_count(m->s); i++)
        if (mr_sched_store(m->s, i, &incarnation, &node, &address, &is_alive) && is_alive)
            (void)store_number(m, i);
}

static struct mr_ws_refs refs(const struct mr_sched_refs_out *r)
{
    return (struct mr_ws_refs){r->runs.p, r->runs.count, r->index, r->attempt, r->count};
}

static void values(struct message *m)
{
    const struct mr_sched_batch *b = m->b;
    const mr_object_id *ids = (const void *)b->value_object.p;
    const uint32_t *stores = (const void *)b->value_object_store.p;
    uint32_t n = (uint32_t)(b->value_object.n / sizeof *ids);
    uint64_t *maker = take(m, n, sizeof *maker), *number = take(m, n, sizeof *number);
    uint32_t *node = take(m, n, sizeof *node);
    for (uint32_t i = 0; i < n; i++) {
        maker[i] = ids[i].maker;
        number[i] = ids[i].number;
        node[i] = stores[i] ? store_number(m, stores[i]) : 0;
    }
    m->out->values = (struct mr_ws_values){.runs = b->values.runs.p,
        .runs_count = b->values.runs.count,
        .index = b->values.index,
        .inline_bytes = b->values.inline_bytes,
        .inlined = mr_buf_str(&b->value_inline),
        .object_maker = maker,
        .object_number = number,
        .object_bytes = (const void *)b->value_object_bytes.p,
        .object_node = node,
        .count = b->values.count,
        .objects_count = n};
}

static struct mr_ws_extra extra(const struct message *m, const struct mr_sched_extra *x)
{
    const struct mr_sched_amount *amounts = (const void *)m->b->resources.p;
    struct mr_ws_resource *resources = take(m, x->resources_count, sizeof *resources);
    for (uint32_t i = 0; i < x->resources_count; i++) {
        const struct mr_sched_amount *a = &amounts[x->resources_at + i];
        resources[i] = (struct mr_ws_resource){mr_sched_resource_name(m->s, a->kind), a->micro};
    }
    struct mr_ws_extra out = {.row = x->row,
        .long_running = x->long_running,
        .alone = x->alone,
        .want_object = x->want_object,
        .persist = x->persist,
        .timeout_ns = x->timeout_ns,
        .resources = resources,
        .resources_count = x->resources_count,
        .key = mr_str_of(m->b->text.p + x->key_at, x->key_bytes),
        .persist_name = mr_str_of(m->b->text.p + x->persist_name_at, x->persist_name_bytes)};
    if (x->persist) {
        unsigned char *hash = take(m, 1, 16);
        mr_object_id_to_bytes((mr_object_id){x->definition.hi, x->definition.lo}, hash);
        out.definition = mr_str_of(hash, 16);
    }
    return out;
}

static void ops(struct message *m, struct mr_ws_tasks *k)
{
    const struct mr_sched_rows *r = &m->b->tasks;
    const uint32_t *column = mr_sched_column(r, MR_COLUMN_OP);
    if (!column) {
        k->op_of_all = op_number(m, r->usual_op);
        return;
    }
    uint32_t *to = take(m, r->count, sizeof *to);
    for (uint32_t i = 0; i < r->count; i++)
        to[i] = op_number(m, column[i]);
    k->op = to;
}

static void tasks(struct message *m)
{
    const struct mr_sched_batch *b = m->b;
    const struct mr_sched_rows *r = &b->tasks;
    const struct mr_sched_extra *from = (const void *)b->extra.p;
    uint32_t n = (uint32_t)(b->extra.n / sizeof *from);
    struct mr_ws_extra *extras = take(m, n, sizeof *extras);
    for (uint32_t i = 0; i < n; i++)
        extras[i] = extra(m, &from[i]);
    struct mr_ws_tasks *k = &m->out->tasks;
    *k = (struct mr_ws_tasks){.runs = r->runs.p,
        .runs_count = r->runs.count,
        /* the order of tasks is that of `index`, so the column `order` is left out */
        .index = mr_sched_column(r, MR_COLUMN_INDEX),
        .attempt = mr_sched_column(r, MR_COLUMN_ATTEMPT),
        .args = mr_buf_str(&b->args),
        .args_bytes = mr_sched_column(r, MR_COLUMN_ARGS_BYTES),
        .inputs_count = mr_sched_column(r, MR_COLUMN_INPUTS_COUNT),
        .inputs = (const void *)b->inputs.p,
        .inputs_total = (uint32_t)(b->inputs.n / sizeof(uint32_t)),
        .last_use = (const void *)b->last_use.p,
        .last_use_count = (uint32_t)(b->last_use.n / sizeof(uint32_t)),
        .priority = (const int32_t *)mr_sched_column(r, MR_COLUMN_PRIORITY),
        .uses = mr_sched_column(r, MR_COLUMN_USES),
        .extras = extras,
        .extras_count = n,
        .count = r->count};
    ops(m, k);
}

static void registered(struct message *m)
{
    const struct mr_sched_config *c = &m->s->config;
    m->n->registered = (struct mr_ws_registered){.incarnation = m->b->incarnation,
        .epoch = c->epoch,
        .scheduler = c->incarnation,
        .heartbeat_ns = c->heartbeat,
        .lease_ns = c->lease,
        .adopt = refs(&m->b->adopt),
        .keep = refs(&m->b->keep)};
    m->out->registered = &m->n->registered;
}

/* Fills the sections that few batches have. */
static void sections(struct message *m)
{
    const struct mr_sched_batch *b = m->b;
    m->out->cancel = refs(&b->cancel);
    m->out->steal = refs(&b->steal);
    m->out->fetch = refs(&b->fetch);
    m->out->leave = refs(&b->leave);
}

void mr_sched_batch_message(const struct mr_sched *s, const struct mr_sched_batch *b,
    struct mr_sched_numbers *n, const struct mr_ws_memory *memory, struct mr_ws_down *out)
{
    struct message m = {.s = s, .b = b, .n = n, .memory = memory, .out = out};
    *out = (struct mr_ws_down){.release = refs(&b->release), .drain = b->drain, .heard = b->heard};
    if (b->has_registered) registered(&m);
    if (b->has_more) sections(&m);
    if (!b->tasks.count && !b->values.count) return;
    out->ops = m.ops = take(&m, mr_sched_ops_count(s) + 1, sizeof *m.ops);
    out->nodes = m.nodes = take(&m, mr_sched_stores_count(s), sizeof *m.nodes);
    if (n->with_addresses) all_stores(&m);
    if (b->values.count) values(&m);
    if (b->tasks.count) tasks(&m);
}
