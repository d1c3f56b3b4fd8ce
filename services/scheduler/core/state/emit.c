/* Writes effects of the running step: batches, which become messages to workers and stores, and
 * notes for the shell. */
#include "services/scheduler/core/state/emit.h"

#include "base/assert.h"
#include "services/scheduler/core/state/lookup.h"

#include <string.h>

static void buf_init(struct mr_buf *b)
{
    mr_buf_init(b, MR_SCHED_EFFECT_BYTES_MAX);
}

static struct mr_sched_batch *batch_take(struct mr_sched_effects *fx)
{
    struct mr_sched_batch *b = fx->pool;
    if (b)
        fx->pool = b->next;
    else
        b = mr_sched_batch_new();
    __builtin_prefetch(fx->pool); /* the batch that the next worker will get */
    b->serial = ++fx->batch_serial;
    return b;
}

struct mr_sched_batch *mr_sched__batch(struct mr_sched *s, uint32_t worker)
{
    struct mr_sched_batch *b = s->fx->worker[worker];
    if (b) return b;
    b = s->fx->worker[worker] = batch_take(s->fx);
    b->incarnation = s->workers[worker].incarnation;
    b->session = s->workers[worker].session;
    mr_buf_add(&s->fx->dirty_workers, &worker, sizeof worker);
    return b;
}

struct mr_sched_batch *mr_sched__batch_more(struct mr_sched *s, uint32_t worker)
{
    struct mr_sched_batch *b = mr_sched__batch(s, worker);
    b->has_more = true;
    return b;
}

struct mr_sched_store_batch *mr_sched__store_batch(struct mr_sched *s, uint32_t store)
{
    struct mr_sched_store_batch *b = &s->fx->store[store];
    if (b->is_dirty) return b;
    if (!b->hold.bytes_max) {
        buf_init(&b->hold);
        buf_init(&b->unhold);
        buf_init(&b->claimed);
        buf_init(&b->verify);
    }
    b->is_dirty = true;
    mr_buf_add(&s->fx->dirty_stores, &store, sizeof store);
    return b;
}

struct mr_sched_note *mr_sched__note(struct mr_sched *s, enum mr_sched_note_type type)
{
    struct mr_sched_note *n = mr_buf_extend(&s->fx->notes, sizeof *n);
    mr_assert(n);
    *n = (struct mr_sched_note){.type = type, .wall_ns = mr_sched__wall(s)};
    return n;
}

void mr_sched__note_text(struct mr_sched *s, struct mr_sched_note *n, const char *text)
{
    n->text_at = (uint32_t)s->fx->text.n;
    n->text_bytes = (uint32_t)strlen(text);
    mr_buf_add(&s->fx->text, text, n->text_bytes);
}

void mr_sched__reply(struct mr_sched *s, uint64_t ticket, mr_job_id job, int code, const char *text)
{
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_REPLY);
    n->ticket = ticket;
    n->job = job;
    n->code = code;
    if (text) mr_sched__note_text(s, n, text);
}
