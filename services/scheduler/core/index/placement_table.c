/* Tables of cached workers. The cached worker of a task is the worker to which the task was first
 * sent. A job with loops has a table of its own; the jobs of one template share a table.
 * place/placement_cache.c reads the tables. */
#include "services/scheduler/core/index/placement_table.h"

#include "base/alloc.h"
#include "services/scheduler/core/state/lookup.h"

/* limit of the entries of a table; a larger template has no table, and its tasks are placed anew in
 * each job */
#define SHAPE_SIZE_MAX 65536u

void mr_sched__cache_new(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    if (!j->graph->slots_count) return;
    j->cache = mr_alloc_array(j->graph->slots_count, sizeof *j->cache);
}

void mr_sched__cache_share(struct mr_sched *s, uint32_t job, uint64_t template)
{
    struct job *j = &s->jobs[job];
    uint32_t size = j->graph->slots_count + j->graph->nodes_count;
    struct shape *x = NULL, *oldest = NULL;
    if (!template || size > SHAPE_SIZE_MAX) return;
    for (uint32_t i = 0; i < SHAPES_MAX && !x; i++) {
        struct shape *at = &s->placements.at[i];
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
    j->shape_1 = (uint32_t)(x - s->placements.at) + 1;
    x->users++;
    x->used = ++s->placements.clock;
}

void mr_sched__cache_drop(struct placements *p, struct job *j)
{
    if (j->shape_1)
        p->at[j->shape_1 - 1].users--;
    else
        mr_release(j->cache);
    j->cache = NULL;
}

void mr_sched__cache_fini(struct placements *p)
{
    for (uint32_t i = 0; i < SHAPES_MAX; i++)
        mr_release(p->at[i].at);
}

struct cached_placement *mr_sched__cached_placement(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    const struct mr_graph *g = j->graph;
    if (!j->cache) return NULL;
    uint32_t node = task - j->base, slot = g->slot_of ? g->slot_of[node] : MR_NODE_NONE;
    if (slot == MR_NODE_NONE && !j->shape_1) return NULL;
    return &j->cache[slot == MR_NODE_NONE ? g->slots_count + node : slot];
}

void mr_sched__cache_note(struct mr_sched *s, uint32_t task, uint32_t worker)
{
    struct cached_placement *p = mr_sched__cached_placement(s, task);
    if (p && !p->incarnation)
        *p = (struct cached_placement){worker, s->workers[worker].incarnation};
}

void mr_sched__cache_forget(struct mr_sched *s, uint32_t task)
{
    struct cached_placement *p = mr_sched__cached_placement(s, task);
    if (p) p->incarnation = 0;
}
