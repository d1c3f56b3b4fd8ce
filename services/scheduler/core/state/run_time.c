/* Start times of running tasks, as their workers reported them; spans of tasks whose worker was
 * lost; and the slots that the cluster had while a job ran. */
#include "services/scheduler/core/state/run_time.h"

#include "base/assert.h"
#include "services/scheduler/core/state/lookup.h"

#define SAME_CLOCK (int64_t)(50 * MR_MS)

static mr_time began_at(const struct worker *w, uint32_t task, uint32_t attempt)
{
    const struct worker_facts *f = w->facts;
    for (uint32_t i = 0; i < f->began_count; i++)
        if (f->began[i].task == task && f->began[i].attempt == attempt) return f->began[i].at;
    return 0;
}

void mr_sched__began(struct mr_sched *s, uint32_t worker, uint32_t task, mr_time at)
{
    struct worker_facts *f = s->workers[worker].facts;
    if (f->began_count == BEGAN_MAX) return;
    f->began[f->began_count++] = (struct began){task, s->tasks[task].attempt, at};
}

void mr_sched__span_ready(const struct mr_sched *s, const struct task *t, struct mr_sched_span *p)
{
    p->last_input = p->index;
    if (t->state == MR_TASK_WAITING || !t->ready_us) return;
    p->ready = ready_at(s, t);
    p->last_input = t->last_input;
}

/* Emits the span of a task whose worker was lost. The span begins at the start time that the worker
 * reported. Without a report, the span begins when the task became ready or was sent, whichever is
 * later. The span ends when the worker was last heard, but never before the span begins. */
void mr_sched__span_lost(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct worker *w = &s->workers[t->worker];
    mr_time began = began_at(w, task, t->attempt);
    struct mr_sched_span *p = mr_buf_extend(&s->fx->spans, sizeof *p);
    mr_assert(p);
    *p = (struct mr_sched_span){.job = {job_of(s, task)->id},
        .index = index_of(s, task),
        .attempt = t->attempt,
        .op = s->classes[t->class].op,
        .worker = t->worker,
        /* long-running tasks have threads of their own, with numbers above those of the slots */
        .slot = t->flags & T_LONG ? w->slots : 0,
        .outcome = MR_OUTCOME_LOST,
        .accounted = s->now};
    mr_sched__span_ready(s, t, p);
    p->sent = sent_at(s, t, began);
    p->started = began ? began : MR_MAX(p->ready, p->sent);
    p->finished = MR_MAX(p->started, MR_MIN(w->last_heard, s->now));
}

/* The processes of one machine share one clock. Their measured offset is only the delay of the
 * fastest message, so an offset of 0 to SAME_CLOCK counts as 0. The clocks of two machines start
 * at boot, and hardly ever differ by less than SAME_CLOCK. */
int64_t mr_sched__clock_offset(const struct mr_sched *s, uint32_t worker)
{
    int64_t offset = s->workers[worker].clock_offset;
    return offset >= 0 && offset < SAME_CLOCK ? 0 : offset;
}

uint64_t mr_sched__slots_us(const struct mr_sched *s)
{
    return s->slot_time.us + (s->now - s->slot_time.at) / MR_US * s->slot_time.slots;
}

void mr_sched__worker_is(struct mr_sched *s, struct worker *w, uint32_t state)
{
    bool was = w->state == W_CONNECTED, is = state == W_CONNECTED;
    w->state = (uint8_t)state;
    if (was == is) return;
    s->slot_time.us = mr_sched__slots_us(s);
    s->slot_time.at = s->now;
    s->slot_time.slots = is ? s->slot_time.slots + w->slots : s->slot_time.slots - w->slots;
}

void mr_sched__slots_begin(struct mr_sched *s, struct job *j)
{
    j->slots_mark = mr_sched__slots_us(s);
    j->ran_mark = s->now;
}

void mr_sched__slots_end(struct mr_sched *s, struct job *j)
{
    if (!j->ran_mark) return;
    j->slots_us += mr_sched__slots_us(s) - j->slots_mark;
    j->ran_us += (s->now - j->ran_mark) / MR_US;
    /* The job ran for less than a microsecond, or without slots. Then the mean number of slots,
     * slots_us / ran_us, becomes the number of slots that the cluster has now. */
    if (!j->slots_us) {
        j->slots_us = s->slot_time.slots;
        j->ran_us = 1;
    }
    j->ran_mark = 0;
}
