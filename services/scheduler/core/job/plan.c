/* Makes a job of a graph: numbers its tasks, finds their placement classes, and ranks them by
 * priority. Then plans the job: decides which tasks have to run, given the values that exist. */
#include "services/scheduler/core/job/plan.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "services/scheduler/core/cluster/store.h"
#include "services/scheduler/core/index/job_index.h"
#include "services/scheduler/core/index/op_index.h"
#include "services/scheduler/core/index/placement_class.h"
#include "services/scheduler/core/index/placement_table.h"
#include "services/scheduler/core/index/ready_queue.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/shared_key.h"
#include "services/scheduler/core/task/task.h"
#include "services/scheduler/core/task/value.h"

#include <stdlib.h>
#include <string.h>

/* Allocates `n` consecutive task numbers and returns the first. `n` is a multiple of JOB_ALIGN.
 * NONE: there is no free range of that length. */
static uint32_t numbers_take(struct task_numbers *numbers, uint32_t n, uint32_t max)
{
    for (uint32_t i = 0; i < numbers->free_count; i++) {
        struct extent *x = &numbers->free[i];
        if (x->count < n) continue;
        uint32_t at = x->at;
        x->at += n;
        x->count -= n;
        if (!x->count) {
            numbers->free_count--;
            memmove(x, x + 1, (numbers->free_count - i) * sizeof *x);
        }
        return at;
    }
    if (max - numbers->top < n) return NONE;
    numbers->top += n;
    return numbers->top - n;
}

static void numbers_give(struct task_numbers *numbers, uint32_t at, uint32_t n)
{
    struct extent *x = numbers->free;
    uint32_t i = 0;
    while (i < numbers->free_count && x[i].at < at)
        i++;
    bool joins_left = i > 0 && x[i - 1].at + x[i - 1].count == at;
    bool joins_right = i < numbers->free_count && at + n == x[i].at;
    if (joins_left && joins_right) {
        x[i - 1].count += n + x[i].count;
        numbers->free_count--;
        memmove(x + i, x + i + 1, (numbers->free_count - i) * sizeof *x);
    } else if (joins_left) {
        x[i - 1].count += n;
    } else if (joins_right) {
        x[i].at = at;
        x[i].count += n;
    } else {
        memmove(x + i + 1, x + i, (numbers->free_count - i) * sizeof *x);
        x[i] = (struct extent){at, n};
        numbers->free_count++;
    }
}

static int by_rank(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Ranks the job's tasks, if some have a priority of their own: higher priority first, then
 * canonical order. */
static void rank(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    const struct mr_graph *g = j->graph;
    bool has_any = false;
    for (uint32_t i = 0; i < g->options_count; i++)
        has_any |= g->options[i].priority != 0;
    if (!has_any) return;
    uint64_t *keys = mr_alloc_array(g->nodes_count, sizeof *keys);
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        const struct mr_task_options *o = mr_graph_options(g, i);
        uint64_t down = (uint64_t)(0x7fffffffll - (o ? o->priority : 0));
        keys[i] = down << 32 | i;
    }
    qsort(keys, g->nodes_count, sizeof *keys, by_rank);
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        uint32_t task = j->base + (uint32_t)keys[i];
        s->queue.ranked[j->base + i] = task;
        s->queue.rank_of[task] = j->base + i;
    }
    mr_release(keys);
    j->flags |= J_RANKED;
}

static int make_tasks(struct mr_sched *s, uint32_t job, struct mr_error *e)
{
    struct job *j = &s->jobs[job];
    const struct mr_graph *g = j->graph;
    for (uint32_t i = 0; i < j->span; i += JOB_ALIGN)
        s->job_at[(j->base + i) / JOB_ALIGN] = job;
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        struct task *t = &s->tasks[j->base + i];
        *t = (struct task){.worker = NONE, .value = NONE, .prev = NONE, .next = NONE};
        if (g->kind[i] == MR_NODE_TASK) continue;
        t->flags = T_FIXED;
        t->state = MR_TASK_DONE;
        if (g->kind[i] == MR_NODE_LITERAL) t->value = LITERAL;
    }
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        struct task *t = &s->tasks[j->base + i];
        if (t->flags & T_FIXED) continue;
        uint32_t class, op = j->ops[g->op[i]];
        const struct mr_task_options *o = mr_graph_options(g, i);
        int err = mr_sched__class_of(s, op, o, &class, e);
        if (err) return err;
        t->class = (uint16_t) class;
        if (o) t->retries_left = o->retries & RETRIES_MASK;
        if (!mr_graph_is_pure(g, i)) t->flags |= T_IMPURE;
        if ((o && o->long_running) || s->ops[op].long_running) t->flags |= T_LONG;
    }
    for (uint32_t i = 0; i < g->targets_count; i++)
        s->tasks[j->base + g->targets[i]].flags |= T_TARGET;
    mr_sched__loop_new(s, job);
    mr_sched__cache_new(s, job);
    return MR_OK;
}

static int find_ops(struct mr_sched *s, struct job *j, struct mr_error *e)
{
    const struct mr_graph *g = j->graph;
    j->ops = mr_alloc_array(MR_MAX(g->ops_count, 1u), sizeof *j->ops);
    j->op_tasks = mr_alloc_array(MR_MAX(g->ops_count, 1u), sizeof *j->op_tasks);
    for (uint32_t i = 0; i < g->nodes_count; i++)
        if (g->kind[i] == MR_NODE_TASK) j->op_tasks[g->op[i]].tasks++;
    for (uint32_t i = 0; i < g->ops_count; i++) {
        j->ops[i] = (uint16_t)mr_sched__op(s, g->ops[i]);
        if (!j->ops[i])
            return mr_fail(e, MR_ELIMIT,
                "op \"%.*s\": the scheduler has no room for more names of operators",
                MR_STR_ARG(g->ops[i]));
    }
    return MR_OK;
}

uint32_t mr_sched__job_add(
    struct mr_sched *s, uint64_t id, struct mr_graph **given, struct mr_error *e)
{
    MR_AUTO(mr_graph_free) struct mr_graph *graph = MR_STEAL(*given);
    uint32_t span = (uint32_t)mr_align_up(graph->nodes_count, JOB_ALIGN);
    uint32_t job = s->job_list.free;
    if (job == NONE && s->job_list.top == s->config.jobs_max) {
        (void)mr_fail(e, MR_ELIMIT, "the scheduler keeps %u jobs; forget some", s->config.jobs_max);
        return NONE;
    }
    uint32_t base = numbers_take(&s->numbers, span, s->config.tasks_max);
    if (base == NONE) {
        (void)mr_fail(e, MR_ELIMIT, "the graph has %u nodes, and there is no room for them now",
            graph->nodes_count);
        return NONE;
    }
    if (job != NONE)
        s->job_list.free = s->jobs[job].newer;
    else
        job = s->job_list.top++;
    struct job *j = &s->jobs[job];
    *j = (struct job){.id = id,
        .graph = MR_STEAL(graph),
        .base = base,
        .span = span,
        .heap_at = NONE,
        .serial = ++s->job_list.serial,
        .state = MR_JOB_PENDING,
        .deadline = MR_NEVER,
        .failure = {.task = NONE}};
    j->priority = j->graph->job.priority;
    if (j->graph->job.on_error == MR_ON_ERROR_CONTINUE) j->flags |= J_CONTINUE;
    if (j->graph->job.unfused) j->flags |= J_UNFUSED;
    int err = find_ops(s, j, e);
    if (!err) err = make_tasks(s, job, e);
    mr_sched__job_enlist(s, job);
    s->job_list.running++;
    if (err) {
        mr_sched__job_drop(s, job);
        return NONE;
    }
    rank(s, job);
    return job;
}

/* Gives values to the nodes of `r` and to nodes that are stored objects: these values exist before
 * the job runs. Fails with MR_ENOENT if a node refers to a name that no stored object has. */
int mr_sched__resolve(struct mr_sched *s, uint32_t job, const struct mr_sched_resolved *r,
    uint32_t n, struct mr_error *e)
{
    const struct job *j = &s->jobs[job];
    const struct mr_graph *g = j->graph;
    uint32_t at = 0;
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        while (at < n && r[at].index < i)
            at++;
        bool is_given = at < n && r[at].index == i;
        uint32_t task = j->base + i;
        if (g->kind[i] == MR_NODE_LITERAL) continue;
        if (!is_given && (g->kind[i] == MR_NODE_TASK || g->kind[i] == MR_NODE_ALIAS)) continue;
        if (!is_given && g->kind[i] != MR_NODE_OBJECT)
            return mr_fail(e, MR_ENOENT, "key \"%.*s\": there is no %s \"%.*s\"",
                MR_STR_ARG(mr_graph_key(g, i)), "stored object of the name",
                MR_STR_ARG(mr_graph_text(g, i)));
        struct value *v = &s->values[mr_sched__value_new(s, task)];
        v->kind = V_OBJECT;
        v->object = is_given ? r[at].object : mr_graph_object(g, i);
        if (is_given) {
            v->bytes = r[at].bytes;
            v->store = (uint16_t)mr_sched__store(s, r[at].store, (struct mr_str){0});
        }
        if (g->kind[i] == MR_NODE_TASK) {
            mr_sched__task_move(s, task, MR_TASK_DONE);
            s->jobs[job].joined++;
        }
    }
    return MR_OK;
}

/* Decides which nodes have to run. Nodes with a value and fixed nodes stay as they are. Of the
 * other nodes, those that a target needs have to run. The loop goes backwards through the canonical
 * order, so it sees all dependents of a node before the node. */
static void plan_needs(struct mr_sched *s, struct job *j)
{
    for (uint32_t i = j->graph->nodes_count; i-- > 0;) {
        uint32_t task = j->base + i;
        struct task *t = &s->tasks[task];
        t->consumers = mr_sched__ref_count(s, task);
        if (t->flags & T_FIXED) continue;
        bool is_needed = t->consumers || t->flags & T_TARGET;
        if (is_done(t) && is_needed) continue;
        if (is_done(t)) mr_sched__value_release(s, t->value, false);
        t->refs = is_needed ? REF_ALL : REF_NONE;
        if (is_needed)
            mr_sched__task_move(s, task, MR_TASK_WAITING); /* the caller counts the inputs next */
        else if (t->state != MR_TASK_RELEASED)
            mr_sched__task_move(s, task, MR_TASK_RELEASED);
    }
}

void mr_sched__plan(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    plan_needs(s, j);
    for (uint32_t i = 0; i < j->graph->nodes_count; i++) {
        struct task *t = &s->tasks[j->base + i];
        if (!is_unfinished(t)) continue;
        const struct mr_task_options *o = mr_graph_options(j->graph, i);
        t->retries_left = (o ? o->retries : 0) & RETRIES_MASK;
        t->kills = t->probations = t->oom_retries = 0;
        t->flags = (uint16_t)(t->flags & ~(T_QUARANTINED | T_WAS_NEAR_CRASH));
        t->worker = NONE;
        uint32_t n;
        const uint32_t *in = mr_sched__inputs(s, j->base + i, &n);
        t->waiting = t->is_exit && !mr_sched__loop_is_decided(s, j->base + i);
        for (uint32_t k = 0; k < n; k++)
            t->waiting += !is_done(&s->tasks[j->base + in[k]]);
        /* a task that shares another job's value waits for it as for one more input */
        t->waiting += (t->flags & T_SHARED) != 0;
        t->unsent = t->waiting;
        if (!t->waiting) mr_sched__task_inputs_done(s, j->base + i, j->base + i);
    }
    j->targets_left = 0;
    for (uint32_t i = 0; i < j->graph->targets_count; i++)
        j->targets_left += !is_done(&s->tasks[j->base + j->graph->targets[i]]);
    mr_sched__loop_settle(s, job);
}

void mr_sched__job_drop(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    const struct mr_graph *g = j->graph;
    mr_sched__shared_key_drop_job(s, job);
    mr_sched__job_unlist(s, job);
    if (j->state < MR_JOB_DONE) s->job_list.running--;
    for (uint32_t i = 0; i < g->nodes_count && s->tasks[j->base + i].prev == NONE; i++) {
        struct task *t = &s->tasks[j->base + i];
        mr_assert(!(t->flags & (T_SENT | T_QUEUED | T_PARKED)));
        if (t->value < LITERAL) mr_sched__value_release(s, t->value, false);
        mr_sched__class_drop(s, t->class);
    }
    memset(&s->tasks[j->base], 0, (size_t)j->span * sizeof *s->tasks);
    numbers_give(&s->numbers, j->base, j->span);
    mr_release(j->ops);
    mr_release(j->op_tasks);
    mr_release(j->loops);
    mr_sched__cache_drop(&s->placements, j);
    mr_sched__failure_fini(&j->failure);
    mr_graph_free(&j->graph);
    *j = (struct job){.newer = s->job_list.free, .heap_at = NONE};
    s->job_list.free = job;
}
