/* Effects: making, clearing, and the notes among them. */
#include "services/scheduler/core/state/effect.h"

#include "base/alloc.h"
#include "services/scheduler/core/task/internal.h"

#define FX_BYTES_MAX ((size_t)1 << 34)
#define FX_KEPT_MAX ((size_t)4 << 20) /* of each: a turn that took more is rare */

static void buf_clear(struct mr_buf *b)
{
    mr_buf_clear_above(b, FX_KEPT_MAX);
}

static void buf_init(struct mr_buf *b)
{
    mr_buf_init(b, FX_BYTES_MAX);
}

static void fx_each_buf(struct mr_sched_effects *fx, void (*fn)(struct mr_buf *))
{
    struct mr_buf *all[] = {&fx->journal, &fx->notes, &fx->ready, &fx->text, &fx->spans,
        &fx->dirty_workers, &fx->dirty_stores};
    for (size_t i = 0; i < MR_ARRAY_LEN(all); i++)
        fn(all[i]);
}

void mr_sched_effects_init(struct mr_sched_effects *fx, uint32_t workers_max, uint32_t stores_max)
{
    *fx = (struct mr_sched_effects){.workers_max = workers_max, .stores_max = stores_max};
    fx_each_buf(fx, buf_init);
    fx->worker = mr_alloc_array(workers_max, sizeof *fx->worker);
    fx->store = mr_alloc_array((size_t)stores_max + 1, sizeof *fx->store);
}

void mr_sched_effects_fini(struct mr_sched_effects *fx)
{
    for (uint32_t i = 0; i < fx->workers_max; i++)
        mr_sched_batch_free(&fx->worker[i]);
    while (fx->pool) {
        struct mr_sched_batch *b = fx->pool;
        fx->pool = b->next;
        mr_sched_batch_free(&b);
    }
    for (uint32_t i = 0; i <= fx->stores_max; i++) {
        mr_buf_fini(&fx->store[i].hold);
        mr_buf_fini(&fx->store[i].unhold);
        mr_buf_fini(&fx->store[i].claimed);
        mr_buf_fini(&fx->store[i].verify);
    }
    mr_release(fx->worker);
    mr_release(fx->store);
    fx_each_buf(fx, mr_buf_fini);
    *fx = (struct mr_sched_effects){0};
}

void mr_sched_effects_clear(struct mr_sched_effects *fx)
{
    fx_each_buf(fx, buf_clear);
}

void mr_sched_batch_put(struct mr_sched_effects *fx, struct mr_sched_batch **bp)
{
    struct mr_sched_batch *b = *bp;
    *bp = NULL;
    if (!b) return;
    mr_sched_batch_clear(b);
    b->next = fx->pool;
    fx->pool = b;
}

void mr_sched_store_batch_clear(struct mr_sched_store_batch *b)
{
    mr_buf_clear(&b->hold);
    mr_buf_clear(&b->unhold);
    mr_buf_clear(&b->claimed);
    mr_buf_clear(&b->verify);
    b->is_dirty = b->has_registered = false;
}

static struct mr_sched_batch *batch_take(struct mr_sched_effects *fx)
{
    struct mr_sched_batch *b = fx->pool;
    if (b)
        fx->pool = b->next;
    else
        b = mr_sched_batch_new();
    if (fx->pool) __builtin_prefetch(fx->pool); /* the next worker's */
    b->serial = ++fx->batch_serial;
    return b;
}

struct mr_sched_batch *mr_sc_batch(struct mr_sched *s, uint32_t worker)
{
    struct mr_sched_batch *b = s->fx->worker[worker];
    if (b) return b;
    b = s->fx->worker[worker] = batch_take(s->fx);
    b->incarnation = s->workers[worker].incarnation;
    b->session = s->workers[worker].session;
    mr_buf_add(&s->fx->dirty_workers, &worker, sizeof worker);
    return b;
}

struct mr_sched_batch *mr_sc_batch_more(struct mr_sched *s, uint32_t worker)
{
    struct mr_sched_batch *b = mr_sc_batch(s, worker);
    b->has_more = true;
    return b;
}

struct mr_sched_store_batch *mr_sc_store_batch(struct mr_sched *s, uint32_t store)
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

struct mr_sched_note *mr_sc_note(struct mr_sched *s, enum mr_sched_note_type type)
{
    struct mr_sched_note *n = mr_buf_extend(&s->fx->notes, sizeof *n);
    mr_assert(n);
    *n = (struct mr_sched_note){.type = type, .wall_ns = mr_sc_wall(s)};
    return n;
}

void mr_sc_note_text(struct mr_sched *s, struct mr_sched_note *n, const char *text)
{
    n->text_at = (uint32_t)s->fx->text.n;
    n->text_bytes = (uint32_t)strlen(text);
    mr_buf_add(&s->fx->text, text, n->text_bytes);
}

void mr_sc_reply(struct mr_sched *s, uint64_t ticket, mr_job_id job, int code, const char *text)
{
    struct mr_sched_note *n = mr_sc_note(s, MR_NOTE_REPLY);
    n->ticket = ticket;
    n->job = job;
    n->code = code;
    if (text) mr_sc_note_text(s, n, text);
}
