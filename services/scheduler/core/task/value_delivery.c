/* Sends values to the workers that need them, each once: a row in the worker's batch. If only
 * another worker has the bytes, that worker is asked, and the row follows its answer. */
#include "services/scheduler/core/task/value_delivery.h"

#include "base/assert.h"
#include "services/scheduler/core/state/batch.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/inline_bytes.h"
#include "services/scheduler/core/state/lookup.h"

#include <string.h>

static void put(struct mr_buf *b, const void *p, size_t n)
{
    void *to = mr_buf_extend(b, n);
    mr_assert(to);
    memcpy(to, p, n);
}

static void put_u32(struct mr_buf *b, uint32_t v)
{
    put(b, &v, sizeof v);
}

/* True: the worker's unsent batch has a row for the value of `task`. False: no row is known, and
 * the caller adds one. A hash table has the recent rows, by task and worker. If another row has
 * overwritten an entry, the value is at most sent twice. */
static bool is_row_there(
    struct mr_sched *s, uint32_t task, uint32_t worker, const struct mr_sched_batch *b)
{
    uint64_t hash = mr_hash_u64((uint64_t)task << 16 ^ worker);
    struct sent_row *r = &s->rows[hash % SENT_ROWS];
    if (r->task == task && r->worker == worker && r->serial == b->serial) return true;
    *r = (struct sent_row){task, worker, b->serial};
    return false;
}

static void row_inline(struct mr_sched *s, struct mr_sched_batch *b, uint32_t task, struct mr_str p)
{
    mr_sched__refs_add(&b->values, job_of(s, task)->id, index_of(s, task), (uint32_t)p.n);
    put(&b->value_inline, p.p, p.n);
}

static void row_object(
    struct mr_sched *s, struct mr_sched_batch *b, uint32_t task, const struct value *v)
{
    b->has_more = true;
    mr_sched__refs_add(&b->values, job_of(s, task)->id, index_of(s, task), 0);
    put(&b->value_object, &v->object, sizeof v->object);
    put(&b->value_object_bytes, &v->bytes, sizeof v->bytes);
    put_u32(&b->value_object_store, v->store);
}

void mr_sched__send_fetch(struct mr_sched *s, uint32_t task)
{
    struct value *v = &s->values[s->tasks[task].value];
    mr_assert(v->kind == V_AWAY && v->worker != NONE);
    if (v->flags & V_FETCHING || s->workers[v->worker].state != W_CONNECTED) return;
    v->flags |= V_FETCHING;
    mr_sched__refs_add(&mr_sched__batch_more(s, v->worker)->fetch, job_of(s, task)->id,
        index_of(s, task), v->attempt);
}

void mr_sched__send_value(struct mr_sched *s, uint32_t task, uint32_t worker)
{
    const struct task *t = &s->tasks[task];
    mr_assert(is_done(t));
    /* when the worker registers again, its values are compared with those of the core */
    if (s->workers[worker].state != W_CONNECTED) return;
    const struct value *v = t->value == LITERAL ? NULL : &s->values[t->value];
    if (v && v->worker == worker) return;
    if (v && v->kind == V_AWAY) {
        mr_sched__send_fetch(s, task); /* the worker's answer brings the row */
        return;
    }
    struct mr_sched_batch *b = mr_sched__batch(s, worker);
    if (is_row_there(s, task, worker, b)) return;
    const struct job *j = job_of(s, task);
    if (!v)
        row_inline(s, b, task, mr_graph_args(j->graph, task - j->base));
    else if (v->kind == V_OBJECT)
        row_object(s, b, task, v);
    else
        row_inline(s, b, task, mr_sched__value_bytes(s, v));
}

void mr_sched__send_bytes(struct mr_sched *s, uint32_t task, uint32_t worker, struct mr_str bytes)
{
    if (s->workers[worker].state != W_CONNECTED) return;
    struct mr_sched_batch *b = mr_sched__batch(s, worker);
    if (!is_row_there(s, task, worker, b)) row_inline(s, b, task, bytes);
}
