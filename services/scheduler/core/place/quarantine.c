/* Quarantine finds poison tasks, which crash their worker. When a worker without a quarantined task
 * crashes, the crash is blamed on all tasks that ran. They are quarantined, and run again apart
 * from each other. When a worker with a quarantined task crashes, the crash is blamed on that task
 * alone; the other tasks that ran are quarantined without blame. A task that three crashes are
 * blamed on is a poison task and fails.
 *
 * A task that ends leaves quarantine. So does a long-running task after its probation of some
 * seconds, because it may never end, and no worker may ever be free for it. If such a task is
 * quarantined again, its probation is eight times as long, and then 64 times. So a task that
 * crashes late is blamed, too, and a task that merely ran beside it is not. The longer times do not
 * hold for tasks with the most retries that are allowed. The roles of training sessions are such
 * tasks: the trainer itself counts how often a role is lost.
 *
 * Some quarantined tasks run alone: tasks that are not long-running, and tasks that one more crash
 * would make fail. Alone means that all other tasks that run on the worker are long-running. Only
 * one worker at a time is kept free for such a task, so the other workers go on. */
#include "services/scheduler/core/place/quarantine.h"

#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/retry_rings.h"
#include "services/scheduler/core/place/place.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/run_time.h"
#include "services/scheduler/core/task/assign.h"
#include "services/scheduler/core/task/task.h"

#include <stdio.h>

/* after this many probations of a task, the time of a probation no longer grows */
#define PROBATIONS_MAX 3

static bool is_quarantined_ready(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    return t->state == MR_TASK_READY && t->flags & T_QUARANTINED && !(t->flags & T_SENT) &&
           !(job_of(s, task)->flags & J_STOPPED);
}

static void reserve(struct mr_sched *s, uint32_t worker)
{
    if (s->quarantine.reserved == worker) return;
    uint32_t old = s->quarantine.reserved;
    s->quarantine.reserved = worker;
    if (old != NONE) {
        s->workers[old].is_reserved = false;
        mr_sched__load_changed(s, old, false);
    }
    if (worker == NONE) return;
    s->workers[worker].is_reserved = true;
    mr_sched__load_changed(s, worker, false);
}

/* True: except for long-running tasks, no task of the worker runs or could start. Tasks that wait
 * for inputs are allowed: the quarantined task may make these inputs, and until then they do not
 * start. */
static bool is_empty(const struct mr_sched *s, uint32_t worker)
{
    if (s->workers[worker].probation != NONE) return false;
    for (uint32_t t = s->workers[worker].sent_head; t != NONE; t = s->tasks[t].next)
        if (s->tasks[t].state == MR_TASK_RUNNING && !(s->tasks[t].flags & T_LONG)) return false;
    return true;
}

/* Returns an empty worker that may run tasks of the class. If no such worker is empty, returns the
 * least loaded one, which the caller can reserve until it is empty. NONE: there is no such worker.
 */
static uint32_t find_empty(const struct mr_sched *s, const struct class *c)
{
    uint32_t least = NONE;
    for (uint32_t w = mr_sched__load_least(s); w != NONE; w = mr_sched__load_next(s, w)) {
        if (!mr_sched__may_run(s, w, c)) continue;
        if (is_empty(s, w)) return w;
        if (least == NONE) least = w;
    }
    return least;
}

/* Returns an empty worker, on which the task runs alone. NONE: no worker is empty; then *is_wanted
 * is set if a worker is kept free for the task from now on. */
static uint32_t place_alone(struct mr_sched *s, uint32_t task, bool *is_wanted)
{
    const struct class *c = &s->classes[s->tasks[task].class];
    uint32_t w = s->quarantine.reserved;
    if (w != NONE && !mr_sched__may_run(s, w, c)) w = NONE;
    if (w == NONE && s->quarantine.reserved == NONE) w = find_empty(s, c);
    /* Another worker may have become empty since `w` was reserved. */
    if (w != NONE && !is_empty(s, w)) {
        uint32_t other = find_empty(s, c);
        if (other != NONE && is_empty(s, other)) w = other;
    }
    if (w == NONE) return NONE;
    if (is_empty(s, w)) {
        reserve(s, NONE);
        return w;
    }
    reserve(s, w);
    *is_wanted = true;
    return NONE;
}

/* Returns the worker with the fewest long-running tasks, of those without a quarantined task; NONE:
 * none has room. */
static uint32_t place_apart(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct class *c = &s->classes[t->class];
    uint32_t best = NONE;
    for (uint32_t w = mr_sched__load_least(s); w != NONE; w = mr_sched__load_next(s, w)) {
        const struct worker *x = &s->workers[w];
        if (x->probation != NONE || !mr_sched__may_run(s, w, c) || !mr_sched__has_room(s, w, t))
            continue;
        if (best == NONE || x->long_sent < s->workers[best].long_sent) best = w;
    }
    return best;
}

void mr_sched__quarantine_dispatch(struct mr_sched *s)
{
    bool is_wanted = false;
    for (uint32_t left = s->quarantine.ring.count; left--;) {
        uint32_t task = mr_sched__ring_pop(&s->quarantine.ring, s->config.tasks_max);
        /* the task enters the ring again when it is ready */
        if (!is_quarantined_ready(s, task)) continue;
        uint32_t w = NONE;
        if (!(job_of(s, task)->flags & J_HELD_BACK))
            w = mr_sched__is_probation_alone(&s->tasks[task]) ? place_alone(s, task, &is_wanted)
                                                              : place_apart(s, task);
        if (w != NONE)
            mr_sched__send(s, task, w);
        else
            mr_sched__quarantine_add(s, task);
    }
    if (!is_wanted) reserve(s, NONE); /* no task waits for the reserved worker */
}

void mr_sched__probation_started(struct mr_sched *s, uint32_t task)
{
    struct worker *w = &s->workers[s->tasks[task].worker];
    if (w->probation == task && !w->probation_at) w->probation_at = s->now;
}

/* Called when the task gave its slot back to wait for a job that it submitted, which may need the
 * worker. */
void mr_sched__probation_left_slot(struct mr_sched *s, uint32_t task)
{
    struct worker *w = &s->workers[s->tasks[task].worker];
    if (w->probation != task) return;
    w->is_closed = mr_sched__is_probation_alone(&s->tasks[task]);
    w->probation_at = s->now;
}

static mr_duration probation_time(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct mr_task_options *o = mr_graph_options(job_of(s, task)->graph, index_of(s, task));
    if (t->probations < 2 || (o && o->retries >= MR_RETRIES_MAX)) return s->config.probation;
    return s->config.probation << 3 * (t->probations - 1);
}

void mr_sched__probation_heard(struct mr_sched *s, uint32_t worker)
{
    struct worker *w = &s->workers[worker];
    if (w->probation == NONE || !w->probation_at) return;
    struct task *t = &s->tasks[w->probation];
    if (!(t->flags & T_LONG) ||
        s->now < mr_time_after(w->probation_at, probation_time(s, w->probation)))
        return;
    t->kills = 0;
    t->flags = (uint16_t)(t->flags & ~(T_QUARANTINED | T_WAS_NEAR_CRASH));
    mr_sched__probation_end(w);
    mr_sched__load_changed(s, worker, false);
    s->has_work = true; /* the next quarantined task may run */
}

static bool did_run(struct mr_sched *s, uint32_t task, const struct mr_ws_refs *ran)
{
    uint64_t id = job_of(s, task)->id;
    uint32_t index = index_of(s, task), row = 0;
    for (uint32_t i = 0; i < ran->runs_count; i++)
        for (uint32_t k = 0; k < ran->runs[i].count; k++, row++)
            if (ran->runs[i].job.v == id && ran->index[row] == index) return true;
    return false;
}

/* True: the task may have run when the worker crashed. If `ran` is not NULL, it lists the tasks
 * that ran. Otherwise only a task with all inputs may have run. The answer is true if the worker
 * reported the task as running, if the task was on a worker that crashed before, or if the task is
 * quarantined. For other tasks with all inputs the answer is true as long as *guesses is not 0, and
 * each of these decrements *guesses. */
static bool may_have_run(
    struct mr_sched *s, uint32_t task, const struct mr_ws_refs *ran, uint32_t *guesses)
{
    const struct task *t = &s->tasks[task];
    if (ran) return did_run(s, task, ran);
    if (t->state != MR_TASK_RUNNING) return false;
    if (t->flags & (T_STARTED | T_WAS_NEAR_CRASH | T_QUARANTINED)) return true;
    if (!*guesses) return false;
    --*guesses;
    return true;
}

void mr_sched__quarantine_blame(struct mr_sched *s, uint32_t worker, const struct mr_ws_refs *ran)
{
    struct worker *w = &s->workers[worker];
    uint32_t tried = w->probation, guesses = w->slots;
    if (tried != NONE && ran && !did_run(s, tried, ran)) tried = NONE;
    for (uint32_t i = w->sent_head; i != NONE; i = s->tasks[i].next) {
        struct task *t = &s->tasks[i];
        if (may_have_run(s, i, ran, &guesses)) {
            bool is_blamed = tried == NONE || tried == i;
            bool is_again = is_blamed ? !t->kills : t->flags & T_LONG && t->probations;
            if (is_again && t->probations < PROBATIONS_MAX) t->probations++;
            if (is_blamed) t->kills++;
            t->flags |= T_QUARANTINED;
            if (t->fused_use != FUSED_CONSUMED) mr_sched__span_lost(s, i);
            if (t->fused_use != FUSED_CONSUMED && t->kills < KILLS_MAX) job_of(s, i)->retried++;
        }
        t->flags |= T_WAS_NEAR_CRASH;
    }
}

bool mr_sched__quarantine_fail(struct mr_sched *s, uint32_t task, const char *worker)
{
    char text[256];
    unsigned kills = s->tasks[task].kills;
    if (kills < KILLS_MAX) return false;
    (void)snprintf(text, sizeof text,
        "the task was running each time when %u workers died, the last one \"%.60s\"", kills,
        worker);
    struct failure st = mr_sched__failure_make(s, task, 13, mr_str(text), worker);
    mr_sched__task_fail(s, task, &st);
    mr_sched__failure_fini(&st);
    return true;
}
