/* What follows from a task's number or its record alone. For the scheduler core's own files. */
#pragma once

#include "services/scheduler/core/state/state.h"

static inline struct job *job_of(const struct mr_sched *s, uint32_t task)
{
    return &s->jobs[s->job_at[task / JOB_ALIGN]];
}

static inline uint32_t job_no(const struct mr_sched *s, const struct task *t)
{
    return s->job_at[(size_t)(t - s->tasks) / JOB_ALIGN];
}

static inline struct job *job_at(const struct mr_sched *s, const struct task *t)
{
    return &s->jobs[job_no(s, t)];
}

static inline uint32_t index_of(const struct mr_sched *s, uint32_t task)
{
    return task - job_of(s, task)->base;
}

static inline uint32_t sent_us(const struct mr_sched *s) /* 0 is kept for "never" */
{
    return MR_MAX((uint32_t)(s->now / MR_US), 1u);
}

/* The last time it was sent, before `until`; the clock's low bits come round in 71 minutes. */
static inline mr_time sent_at(const struct mr_sched *s, const struct task *t, mr_time until)
{
    if (!t->sent_us) return 0;
    mr_time now = s->now / MR_US;
    mr_time at = (now - (uint32_t)((uint32_t)now - t->sent_us)) * MR_US;
    mr_time round = ((mr_time)UINT32_MAX + 1) * MR_US;
    return until && at > until + round / 2 && at > round ? at - round : at;
}

static inline bool is_unfinished(const struct task *t)
{
    return t->state >= MR_TASK_WAITING && t->state <= MR_TASK_RUNNING;
}

static inline bool is_done(const struct task *t)
{
    return t->state == MR_TASK_DONE;
}

static inline uint32_t task_at(const struct mr_sched *s, uint32_t job, uint32_t index)
{
    if (job == NONE) return NONE;
    const struct job *j = &s->jobs[job];
    if (index >= j->graph->nodes_count) return NONE;
    uint32_t task = j->base + index;
    return s->tasks[task].flags & T_FIXED ? NONE : task;
}

/* Where a task stands in its job: its number, or its rank if tasks have priorities. */
static inline uint32_t place_of(const struct mr_sched *s, uint32_t task)
{
    return job_of(s, task)->flags & J_RANKED ? s->rank_of[task] : task;
}

/* Is it served first? */
static inline bool mr_sc_job_before(const struct job *x, const struct job *y)
{
    if (x->priority != y->priority) return x->priority > y->priority;
    if (x->virtual_ns != y->virtual_ns) return x->virtual_ns < y->virtual_ns;
    return x->serial < y->serial;
}

static inline bool mr_sc_task_before(const struct mr_sched *s, uint32_t a, uint32_t b)
{
    const struct job *x = job_of(s, a), *y = job_of(s, b);
    return x != y ? mr_sc_job_before(x, y) : place_of(s, a) < place_of(s, b);
}

static inline uint64_t mr_sc_load(const struct worker *w) /* ns of work per slot */
{
    return w->slots == 1 ? w->queue_ns : w->queue_ns / w->slots; /* a division costs more */
}

static inline bool mr_sc_load_is_usable(const struct worker *w)
{
    return w->state == W_CONNECTED && w->is_known && !w->is_retiring && !w->is_full &&
           !w->is_reserved && !w->is_closed && !w->is_quiet;
}
