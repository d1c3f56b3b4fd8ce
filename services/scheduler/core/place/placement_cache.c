#include "services/scheduler/core/place/placement_cache.h"

#include "base/alloc.h"
#include "services/scheduler/core/task/internal.h"

#define SHAPE_SIZE_MAX 65536u /* tasks: larger ones are placed each time */
#define LOOK_MAX 256          /* slots looked at for whether a worker has any */

void mr_sc_cache_new(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    if (!j->graph->slots_count) return;
    j->cache = mr_alloc_array(j->graph->slots_count, sizeof *j->cache);
}

void mr_sc_cache_share(struct mr_sched *s, uint32_t job, uint64_t template)
{
    struct job *j = &s->jobs[job];
    uint32_t size = j->graph->slots_count + j->graph->nodes_count;
    struct shape *x = NULL, *oldest = NULL;
    if (!template || size > SHAPE_SIZE_MAX) return;
    for (uint32_t i = 0; i < SHAPES_MAX && !x; i++) {
        struct shape *at = &s->shapes[i];
        if (at->at && at->template == template && at->size == size) x = at;
        if (!at->users && (!oldest || at->used < oldest->used)) oldest = at;
    }
    if (!x && !oldest) return;
    if (!x) {
        x = oldest;
        mr_release(x->at);
        *x = (struct shape){.template = template, .size = size};
        x->at = mr_alloc_array(size, sizeof *x->at);
    }
    mr_release(j->cache);
    j->cache = x->at;
    j->shape_1 = (uint32_t)(x - s->shapes) + 1;
    x->users++;
    x->used = ++s->shapes_clock;
}

void mr_sc_cache_drop(struct mr_sched *s, struct job *j)
{
    if (j->shape_1)
        s->shapes[j->shape_1 - 1].users--;
    else
        mr_release(j->cache);
    j->cache = NULL;
}

void mr_sc_cache_fini(struct mr_sched *s)
{
    for (uint32_t i = 0; i < SHAPES_MAX; i++)
        mr_release(s->shapes[i].at);
}

static struct place *place_last(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    const struct mr_graph *g = j->graph;
    if (!j->cache) return NULL;
    uint32_t node = task - j->base, slot = g->slot_of ? g->slot_of[node] : MR_NODE_NONE;
    if (slot == MR_NODE_NONE && !j->shape_1) return NULL;
    return &j->cache[slot == MR_NODE_NONE ? g->slots_count + node : slot];
}

void mr_sc_cache_note(struct mr_sched *s, uint32_t task, uint32_t worker)
{
    struct place *p = place_last(s, task);
    if (p && !p->incarnation) *p = (struct place){worker, s->workers[worker].incarnation};
}

void mr_sc_cache_forget(struct mr_sched *s, uint32_t task)
{
    struct place *p = place_last(s, task);
    if (p) p->incarnation = 0;
}

static bool has_any(const struct job *j, uint32_t worker)
{
    uint32_t n = j->graph->slots_count + (j->shape_1 ? j->graph->nodes_count : 0);
    n = MR_MIN(n, (uint32_t)LOOK_MAX);
    for (uint32_t i = 0; i < n; i++)
        if (j->cache[i].incarnation && j->cache[i].worker == worker) return true;
    return false;
}

/* Would it wait there, while a worker has nothing to do and never had? */
static bool is_better_off(struct mr_sched *s, uint32_t task, uint32_t worker)
{
    const struct worker *w = &s->workers[worker];
    if (w->sent < w->slots) return false;
    uint32_t least = mr_sc_load_least(s);
    if (least == NONE || least == worker || s->workers[least].sent) return false;
    return !has_any(job_of(s, task), least);
}

/* All that it waits for was sent, to whomever: who makes it last sends it there through us. */
static bool may_go_ahead(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    if (mr_sc_is_by_reference(s, task) || !mr_sc_loop_may_go_ahead(s, task)) return false;
    const uint32_t *in = mr_sc_inputs(s, task, &n);
    for (uint32_t i = 0; i < n; i++) {
        const struct task *u = &s->tasks[j->base + in[i]];
        if (is_done(u)) continue;
        if (!(u->flags & T_SENT) || u->flags & (T_SUSPECT | T_LONG | T_STEALING)) return false;
    }
    return true;
}

uint32_t mr_sc_cached(struct mr_sched *s, uint32_t task, bool *is_gone)
{
    const struct place *p = place_last(s, task);
    const struct task *t = &s->tasks[task];
    if (!p || !p->incarnation || t->flags & (T_SUSPECT | T_LONG)) return NONE;
    const struct worker *w = &s->workers[p->worker];
    *is_gone = w->state == W_FREE || w->incarnation != p->incarnation || w->is_retiring;
    if (*is_gone || t->attempt || !mr_sc_has_room_again(s, p->worker, t)) return NONE;
    if (!mr_sc_is_universal(s, t) && !mr_sc_may_run(s, p->worker, &s->classes[t->class]))
        return NONE;
    if (t->waiting && !may_go_ahead(s, task)) return NONE;
    uint32_t n;
    (void)mr_sc_inputs(s, task, &n);
    if (!n && mr_sc_is_crowded(s, w, t)) return NONE;
    if (!t->waiting && is_better_off(s, task, p->worker)) {
        mr_sc_cache_forget(s, task);
        return NONE;
    }
    s->placed_cached++;
    return p->worker;
}
