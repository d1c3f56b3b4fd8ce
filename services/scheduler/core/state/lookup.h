/* Small look-ups in tables, by number. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

#include <string.h>

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

/* Returns the present time as a value of task.sent_us, never 0, which means "never sent". */
static inline uint32_t sent_us(const struct mr_sched *s)
{
    return MR_MAX((uint32_t)(s->now / MR_US), 1u);
}

/* Returns the time when the task was sent last; 0: the task was never sent. The task keeps only the
 * low 32 bits of that time in microseconds, which wrap after 71 minutes. `until`: a time after the
 * sending, which shows whether the bits have wrapped since; 0: unknown. */
static inline mr_time sent_at(const struct mr_sched *s, const struct task *t, mr_time until)
{
    if (!t->sent_us) return 0;
    mr_time now = s->now / MR_US;
    mr_time at = (now - (uint32_t)((uint32_t)now - t->sent_us)) * MR_US;
    mr_time round = ((mr_time)UINT32_MAX + 1) * MR_US;
    return until && at > until + round / 2 && at > round ? at - round : at;
}

#define READY_US_MASK (((uint64_t)1 << 40) - 1)

/* Returns the present time as a value of task.ready_us, never 0, which means "never ready". */
static inline uint64_t ready_us(const struct mr_sched *s)
{
    return MR_MAX(s->now / MR_US & READY_US_MASK, 1u);
}

/* Returns the time when a READY, RUNNING or DONE task became ready; 0: it was never ready. The task
 * keeps only the low 40 bits of that time in microseconds, which wrap after 12 days. */
static inline mr_time ready_at(const struct mr_sched *s, const struct task *t)
{
    mr_time now = s->now / MR_US;
    return t->ready_us ? (now - ((now - t->ready_us) & READY_US_MASK)) * MR_US : 0;
}

static inline bool is_unfinished(const struct task *t)
{
    return t->state >= MR_TASK_WAITING && t->state <= MR_TASK_RUNNING;
}

static inline bool is_done(const struct task *t)
{
    return t->state == MR_TASK_DONE;
}

/* Returns the position of a task in its job's order: the task's number, or its rank if the job's
 * tasks have priorities. */
static inline uint32_t place_of(const struct mr_sched *s, uint32_t task)
{
    return job_of(s, task)->flags & J_RANKED ? s->queue.rank_of[task] : task;
}

static inline bool mr_sched__is_object(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    return is_done(t) && t->value < LITERAL && s->values[t->value].kind == V_OBJECT;
}

/* Returns the task of a node of `job`; NONE: `job` is NONE, there is no such node, or the node is
 * not a task. */
static inline uint32_t task_at(const struct mr_sched *s, uint32_t job, uint32_t index)
{
    if (job == NONE) return NONE;
    const struct job *j = &s->jobs[job];
    if (index >= j->graph->nodes_count) return NONE;
    uint32_t task = j->base + index;
    return s->tasks[task].flags & T_FIXED ? NONE : task;
}

static inline uint64_t mr_sched__wall(const struct mr_sched *s)
{
    return s->now + s->wall_offset;
}

static inline uint64_t text_hash(struct mr_str t)
{
    uint64_t h = 0xcbf29ce484222325u ^ t.n;
    for (size_t i = 0; i < t.n; i++)
        h = (h ^ (unsigned char)t.p[i]) * 0x100000001b3u;
    return mr_hash_u64(h);
}

static inline void copy_name(char to[NAME_BYTES], struct mr_str from)
{
    memset(to, 0, NAME_BYTES);
    if (from.n) memcpy(to, from.p, MR_MIN(from.n, (size_t)NAME_BYTES - 1));
}
