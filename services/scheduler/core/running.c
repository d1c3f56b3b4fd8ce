/* Estimates which tasks run. Workers report few starts, because a report costs more than a small
 * task. Workers report starts in heartbeats, and when they are asked to give tasks back. Tasks that
 * were reported as started count as running. If the worker has more slots than such tasks, the
 * tasks that were sent to it first count as running, too. All other tasks wait at the worker. */
#include "services/scheduler/core/running.h"

#include "services/scheduler/core/index/job_index.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/run_time.h"

#include <string.h>

/* look_at examines at most this many tasks of a worker: those that were sent first */
#define LOOKED_MAX(w) (256 + 4 * (w)->slots)

struct looked {
    uint32_t job, task; /* the job and the task to look for; NONE: any */
    uint32_t count;
    struct mr_buf *out;
};

static void look(const struct mr_sched *s, uint32_t task, struct looked *l)
{
    const struct job *j = job_of(s, task);
    if (l->job != NONE && j != &s->jobs[l->job]) return;
    if (l->task != NONE && task != l->task) return;
    uint32_t index = task - j->base;
    l->count++;
    if (l->out) mr_buf_add(l->out, &index, sizeof index);
}

/* Visits tasks that have a slot of `w`. `started` true: tasks that the worker reported as started;
 * false: the others, in the order in which they were sent. Takes one of *slots for each task, and
 * stops when *slots is 0. */
static void look_at(const struct mr_sched *s, const struct worker *w, bool started, uint32_t *slots,
    struct looked *l)
{
    uint32_t seen = 0;
    for (uint32_t i = w->sent_head; i != NONE && seen < LOOKED_MAX(w); i = s->tasks[i].next) {
        const struct task *t = &s->tasks[i];
        seen++;
        if (t->state != MR_TASK_RUNNING || t->fused_use == FUSED_CONSUMED) continue;
        if (t->flags & T_LONG) { /* a long-running task takes no slot and starts at once */
            if (started) look(s, i, l);
            continue;
        }
        if (!*slots || started != ((t->flags & T_STARTED) != 0)) continue;
        --*slots;
        look(s, i, l);
    }
}

static void look_at_worker(const struct mr_sched *s, uint32_t slot, struct looked *l)
{
    const struct worker *w = &s->workers[slot];
    uint32_t slots = w->slots;
    if (w->state != W_CONNECTED || w->sent_head == NONE) return;
    look_at(s, w, true, &slots, l);
    if (slots) look_at(s, w, false, &slots, l);
}

uint32_t mr_sched_running(const struct mr_sched *s, mr_job_id id, struct mr_buf *out)
{
    struct looked l = {.job = mr_sched__job_find(s, id.v), .task = NONE, .out = out};
    if (l.job == NONE || !s->jobs[l.job].counts[MR_TASK_RUNNING]) return 0;
    for (uint32_t i = 0; i < s->worker_list.top; i++)
        look_at_worker(s, i, &l);
    return l.count;
}

bool mr_sched_is_running(const struct mr_sched *s, mr_job_id id, uint32_t index)
{
    struct looked l = {.job = NONE, .task = mr_sched__find(s, id.v, index)};
    if (l.task == NONE || s->tasks[l.task].state != MR_TASK_RUNNING) return false;
    look_at_worker(s, s->tasks[l.task].worker, &l);
    return l.count != 0;
}

bool mr_sched_longest(const struct mr_sched *s, mr_job_id id, uint32_t *index, mr_time *since)
{
    uint32_t job = mr_sched__job_find(s, id.v);
    bool found = false;
    if (job == NONE || !s->jobs[job].counts[MR_TASK_RUNNING]) return false;
    const struct job *j = &s->jobs[job];
    for (uint32_t slot = 0; slot < s->worker_list.top; slot++) {
        const struct worker *w = &s->workers[slot];
        const struct worker_facts *f = w->facts;
        for (uint32_t i = 0; w->state == W_CONNECTED && i < f->began_count; i++) {
            uint32_t at = f->began[i].task - j->base;
            const struct task *t = &s->tasks[f->began[i].task];
            if (f->began[i].task < j->base || at >= j->graph->nodes_count) continue;
            if (t->state != MR_TASK_RUNNING || t->worker != slot) continue;
            if (t->attempt != f->began[i].attempt) continue;
            bool is_older = f->began[i].at < *since || (f->began[i].at == *since && at < *index);
            if (found && !is_older) continue;
            *since = f->began[i].at;
            *index = at;
            found = true;
        }
    }
    return found;
}

uint64_t mr_sched_job_slots(const struct mr_sched *s, mr_job_id id)
{
    uint32_t job = mr_sched__job_find(s, id.v);
    if (job == NONE) return 0;
    const struct job *j = &s->jobs[job];
    uint64_t slots_us = j->slots_us, ran_us = j->ran_us;
    if (j->ran_mark) {
        slots_us += mr_sched__slots_us(s) - j->slots_mark;
        ran_us += (s->now - j->ran_mark) / MR_US;
    }
    if (!ran_us) return j->ran_mark ? (uint64_t)s->slot_time.slots * 1000 : 0;
    return slots_us / ran_us * 1000 + slots_us % ran_us * 1000 / ran_us;
}

bool mr_sched_job_op(
    const struct mr_sched *s, mr_job_id id, uint32_t op, struct mr_sched_op_tasks *out)
{
    uint32_t job = mr_sched__job_find(s, id.v);
    const struct job *j = job == NONE ? NULL : &s->jobs[job];
    if (!j || op >= j->graph->ops_count) return false;
    *out =
        (struct mr_sched_op_tasks){j->graph->ops[op], j->op_tasks[op].tasks, j->op_tasks[op].ended};
    return true;
}

/* ---- what the slots do ----------------------------------------------------------------------- */

/* mr_sched_doing looks at the tasks of so many slots; the others count as busy with operator 0 if
 * enough tasks were sent to their worker */
#define DOING_SLOTS_MAX 4096u

/* True: the task would take a slot. Tasks that were sent ahead of their inputs wait, and
 * long-running tasks take no slot. */
static bool takes_slot(const struct task *t)
{
    return t->state == MR_TASK_RUNNING && t->fused_use != FUSED_CONSUMED && !(t->flags & T_LONG);
}

/* Returns how many slots of the worker run tasks. Adds the slots to by_op, unless by_op is NULL.
 * *queued is set if a further task would run if there were another slot. */
static uint32_t busy_of(
    const struct mr_sched *s, const struct worker *w, uint32_t *by_op, bool *queued)
{
    uint32_t seen = 0, busy = 0;
    for (uint32_t i = w->sent_head; i != NONE && seen < LOOKED_MAX(w); i = s->tasks[i].next) {
        const struct task *t = &s->tasks[i];
        seen++;
        if (!takes_slot(t)) continue;
        if (busy == w->slots) {
            *queued = true;
            break;
        }
        if (by_op) by_op[s->classes[t->class].op]++;
        busy++;
    }
    return busy;
}

uint32_t mr_sched_worker_busy(const struct mr_sched *s, uint32_t slot)
{
    bool queued = false;
    if (slot >= s->worker_list.top || s->workers[slot].state != W_CONNECTED) return 0;
    return busy_of(s, &s->workers[slot], NULL, &queued);
}

/* True: some tasks were ready and no worker could take them. *restricted: at least one of them asks
 * for something that only some workers have. */
static bool is_parked(const struct mr_sched *s, bool *restricted)
{
    const struct class_list *l = &s->class_list;
    *restricted = false;
    for (uint32_t i = 0; i < l->active_count && i < 64; i++)
        if (l->active[i] >= s->config.ops_max) *restricted = true;
    return l->active_count || s->memory_retry.ring.count;
}

/* Returns the cause that holds for the idle slots of all workers that may be given tasks. `queued`:
 * some tasks wait at a worker for a slot. */
static enum mr_sched_idle cause_of_all(const struct mr_sched *s, bool queued)
{
    bool restricted = false;
    bool is_paused =
        s->journal.written_bytes - s->journal.acked_bytes > s->config.unacked_bytes_max;
    if (!s->job_list.running) return MR_SCHED_IDLE_NO_WORK;
    if (s->queue.count) return is_paused ? MR_SCHED_IDLE_JOURNAL : MR_SCHED_IDLE_DECIDE;
    if (s->quarantine.ring.count) return MR_SCHED_IDLE_RESTRICTED;
    if (is_parked(s, &restricted))
        return restricted ? MR_SCHED_IDLE_RESTRICTED : MR_SCHED_IDLE_MEMORY;
    if (queued) return MR_SCHED_IDLE_IMBALANCE;
    return MR_SCHED_IDLE_DEPENDENCY;
}

/* The cause that holds for one worker alone; MR_SCHED_IDLES: there is none. */
static enum mr_sched_idle cause_of_worker(const struct worker *w)
{
    if (w->state != W_CONNECTED || w->is_retiring) return MR_SCHED_IDLE_STOPPED;
    if (w->is_reserved || w->is_node_reserved || w->is_closed) return MR_SCHED_IDLE_RESTRICTED;
    return w->is_full ? MR_SCHED_IDLE_MEMORY : MR_SCHED_IDLES;
}

void mr_sched_doing(const struct mr_sched *s, uint32_t *by_op, struct mr_sched_doing *out)
{
    bool queued = false;
    uint32_t looked = 0, idle[MR_SCHED_IDLES + 1] = {0};
    *out = (struct mr_sched_doing){0};
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        const struct worker *w = &s->workers[i];
        uint32_t busy = 0;
        if (w->state == W_FREE || w->is_unrecovered) continue;
        if (w->state == W_CONNECTED && looked < DOING_SLOTS_MAX) {
            busy = busy_of(s, w, by_op, &queued);
            looked += w->slots;
        } else if (w->state == W_CONNECTED) {
            busy = MR_MIN(w->slots, w->sent - MR_MIN(w->sent, w->long_sent));
            by_op[0] += busy;
        }
        out->slots += w->slots;
        out->busy += busy;
        idle[cause_of_worker(w)] += w->slots - busy;
    }
    enum mr_sched_idle of_all = cause_of_all(s, queued);
    /* nothing runs and nothing is ready: the jobs wait until Redis has their records */
    bool is_unacked = s->journal.acked < s->journal.sequence;
    if (of_all == MR_SCHED_IDLE_DEPENDENCY && !out->busy && is_unacked)
        of_all = MR_SCHED_IDLE_JOURNAL;
    memcpy(out->idle, idle, sizeof out->idle);
    out->idle[of_all] += idle[MR_SCHED_IDLES];
    if (of_all != MR_SCHED_IDLE_NO_WORK) return;
    for (uint32_t i = 0; i < MR_SCHED_IDLES; i++) {
        if (i == MR_SCHED_IDLE_NO_WORK || i == MR_SCHED_IDLE_STOPPED) continue;
        out->idle[MR_SCHED_IDLE_NO_WORK] += out->idle[i];
        out->idle[i] = 0;
    }
}
