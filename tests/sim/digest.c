/* A digest of a run, which stays the same over a change of the code that changes no behaviour. The
 * digest covers each event of the world with its time, in order; each message between the scheduler
 * and the workers, column by column; and each byte of the journal. It is a 64-bit FNV-1a hash. */
#include "tests/sim/sim.h"

static void bytes(struct sim *s, const void *p, size_t n)
{
    const unsigned char *b = p;
    uint64_t h = s->digest;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 1099511628211u;
    s->digest = h;
}

static void number(struct sim *s, uint64_t v)
{
    unsigned char b[8];
    for (size_t i = 0; i < 8; i++)
        b[i] = (unsigned char)(v >> 8 * i);
    bytes(s, b, sizeof b);
}

static void text(struct sim *s, struct mr_str t)
{
    number(s, t.n);
    bytes(s, t.p, t.n);
}

/* Adds a column to the digest. An absent column gives another digest than a column of zeros. */
static void column(struct sim *s, const uint32_t *p, uint32_t count)
{
    number(s, p ? count + 1u : 0);
    for (uint32_t i = 0; p && i < count; i++)
        number(s, p[i]);
}

static void column64(struct sim *s, const uint64_t *p, uint32_t count)
{
    number(s, p ? count + 1u : 0);
    for (uint32_t i = 0; p && i < count; i++)
        number(s, p[i]);
}

static void runs(struct sim *s, const struct mr_ws_run *r, uint32_t count)
{
    number(s, count);
    for (uint32_t i = 0; i < count; i++) {
        number(s, r[i].job.v);
        number(s, r[i].count);
        number(s, r[i].unfused);
    }
}

static void refs(struct sim *s, const struct mr_ws_refs *r)
{
    runs(s, r->runs, r->runs_count);
    column(s, r->index, r->count);
    column(s, r->attempt, r->count);
}

static void extras(struct sim *s, const struct mr_ws_tasks *k)
{
    number(s, k->extras_count);
    for (uint32_t i = 0; i < k->extras_count; i++) {
        const struct mr_ws_extra *x = &k->extras[i];
        number(s, x->row);
        number(s, (uint64_t)x->long_running | (uint64_t)x->alone << 1 |
                      (uint64_t)x->want_object << 2 | (uint64_t)x->persist << 3);
        number(s, x->timeout_ns);
        text(s, x->persist_name);
        text(s, x->key);
        number(s, x->resources_count);
        for (uint32_t r = 0; r < x->resources_count; r++) {
            text(s, x->resources[r].name);
            number(s, x->resources[r].micro);
        }
    }
}

static void values(struct sim *s, const struct mr_ws_values *v)
{
    runs(s, v->runs, v->runs_count);
    column(s, v->index, v->count);
    column(s, v->inline_bytes, v->count);
    text(s, v->inlined);
    column64(s, v->object_maker, v->objects_count);
    column64(s, v->object_number, v->objects_count);
    column64(s, v->object_bytes, v->objects_count);
    column(s, v->object_node, v->objects_count);
}

static void tasks(struct sim *s, const struct mr_ws_tasks *k)
{
    runs(s, k->runs, k->runs_count);
    column(s, k->index, k->count);
    column(s, k->attempt, k->count);
    column(s, k->op, k->count);
    number(s, k->op_of_all);
    text(s, k->args);
    column(s, k->args_bytes, k->count);
    column(s, k->inputs_count, k->count);
    column(s, k->inputs, k->inputs_total);
    column(s, k->last_use, k->last_use_count);
    column(s, (const uint32_t *)k->priority, k->count);
    column(s, k->uses, k->count);
    extras(s, k);
}

void sim_digest_down(struct sim *s, uint32_t session, const struct mr_ws_down *m)
{
    number(s, session);
    number(s, m->registered != NULL);
    if (m->registered) {
        number(s, m->registered->incarnation);
        number(s, m->registered->epoch);
        refs(s, &m->registered->adopt);
        refs(s, &m->registered->keep);
    }
    number(s, m->ops_count);
    for (uint32_t i = 0; i < m->ops_count; i++)
        text(s, m->ops[i]);
    number(s, m->nodes_count);
    for (uint32_t i = 0; i < m->nodes_count; i++)
        number(s, m->nodes[i].id.v);
    values(s, &m->values);
    tasks(s, &m->tasks);
    refs(s, &m->cancel);
    refs(s, &m->release);
    refs(s, &m->steal);
    refs(s, &m->fetch);
    refs(s, &m->leave);
    number(s, m->forget_jobs_count);
    for (uint32_t i = 0; i < m->forget_jobs_count; i++)
        number(s, m->forget_jobs[i].v);
    number(s, m->drain);
    number(s, m->heard);
}

static void refs_up(struct sim *s, const struct mr_ws_refs *r)
{
    number(s, r->runs_count);
    for (uint32_t i = 0; i < r->runs_count; i++) {
        number(s, r->runs[i].job.v);
        number(s, r->runs[i].count);
    }
    column(s, r->index, r->count);
    column(s, r->attempt, r->count);
}

void sim_digest_up(struct sim *s, uint32_t session, const struct mr_ws_up *m)
{
    const struct mr_ws_completed *c = &m->completed;
    number(s, session);
    refs_up(s, &c->tasks);
    column(s, c->outcome, c->tasks.count);
    column(s, c->inline_bytes, c->tasks.count);
    text(s, c->inlined);
    column64(s, c->object_maker, c->objects_count);
    column64(s, c->object_number, c->objects_count);
    column64(s, c->object_bytes, c->objects_count);
    number(s, c->base_ns);
    column64(s, c->started_ns, c->tasks.count);
    column64(s, c->duration_ns, c->tasks.count);
    number(s, c->failures_count);
    for (uint32_t i = 0; i < c->failures_count; i++) {
        number(s, c->failures[i].row);
        number(s, (uint64_t)c->failures[i].code);
        text(s, c->failures[i].message);
    }
    refs_up(s, &m->given);
    refs_up(s, &m->started);
    refs_up(s, &m->unknown);
    refs_up(s, &m->left_slot);
    number(s, m->missing_count);
    for (uint32_t i = 0; i < m->missing_count; i++) {
        number(s, m->missing[i].job.v);
        number(s, m->missing[i].index);
        number(s, m->missing[i].attempt);
        number(s, m->missing[i].input);
    }
    number(s, m->leaving);
    number(s, m->heartbeat != NULL);
    if (!m->heartbeat) return;
    number(s, m->heartbeat->sequence);
    number(s, m->heartbeat->held_bytes);
    number(s, m->heartbeat->queued);
    number(s, m->heartbeat->running);
}

void sim_digest_record(struct sim *s, const struct mr_sched_record_head *head, const void *p)
{
    number(s, head->sequence);
    number(s, head->type);
    number(s, head->bytes);
    bytes(s, p, head->bytes);
}

void sim_digest_event(struct sim *s, const struct mr_virtual_event *ev)
{
    number(s, ev->at);
    number(s, (uint64_t)ev->kind);
    number(s, ev->a);
    number(s, ev->b);
    number(s, ev->c);
}

void sim_digest_begin(struct sim *s)
{
    s->digest = 14695981039346656037u;
}
