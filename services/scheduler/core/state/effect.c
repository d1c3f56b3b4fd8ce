/* The memory of effects. An effect is what the core tells the shell to do (effect.h). */
#include "services/scheduler/core/state/effect.h"

#include "base/alloc.h"

/* memory that a cleared buffer keeps, in bytes; few passes of the shell's loop need more */
#define FX_KEPT_MAX ((size_t)4 << 20)

static void buf_clear(struct mr_buf *b)
{
    mr_buf_clear_above(b, FX_KEPT_MAX);
}

static void buf_init(struct mr_buf *b)
{
    mr_buf_init(b, MR_SCHED_EFFECT_BYTES_MAX);
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
