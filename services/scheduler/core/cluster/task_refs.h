/* A cursor over rows of tasks that workers report. For the core's own files only. */
#pragma once

#include "services/scheduler/core/index/job_index.h"

/* a run is a group of consecutive rows of one job; the cursor finds the job of each row */
struct cursor {
    const struct mr_ws_refs *r;
    uint32_t run, left;
    uint32_t job; /* slot of the current row's job, or NONE */
    uint64_t id;
};

static inline void cursor_next(struct mr_sched *s, struct cursor *c)
{
    while (!c->left) {
        c->id = c->r->runs[c->run].job.v;
        c->left = c->r->runs[c->run++].count;
        c->job = mr_sched__job_find(s, c->id);
    }
    c->left--;
}

static inline uint32_t column(const uint32_t *c, uint32_t i)
{
    return c ? c[i] : 0;
}

static inline bool is_current(const struct task *t, uint32_t worker, uint32_t attempt)
{
    return t->flags & T_SENT && t->worker == worker && t->attempt == attempt;
}
