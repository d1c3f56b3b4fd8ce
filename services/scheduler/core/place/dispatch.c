/* A turn of dispatch sends, in this order: quarantined tasks (quarantine.c), retries of tasks that
 * had too little memory (memory_retry.c), consumers of values that fill memory (memory_order.c),
 * then queued and parked tasks in one order. A parked task has found no worker and waits for one.
 * place.c chooses the worker, except for the first two kinds. A turn ends when the workers have
 * enough work, or when TURN_TASKS_MAX tasks were sent or parked.
 *
 * Work stealing happens when nothing is left to send and a worker is idle. As in Blumofe and
 * Leiserson (J. ACM 1999), work moves only when a worker has none; but here the scheduler decides,
 * and asks the most loaded worker to give back tasks that have not started. */
#include "services/scheduler/core/place/dispatch.h"

#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/placement_class.h"
#include "services/scheduler/core/index/ready_queue.h"
#include "services/scheduler/core/place/memory_order.h"
#include "services/scheduler/core/place/memory_retry.h"
#include "services/scheduler/core/place/place.h"
#include "services/scheduler/core/place/quarantine.h"
#include "services/scheduler/core/state/batch.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/assign.h"

#define TURN_TASKS_MAX 8192
#define STEAL_TASKS_MAX 256
#define STEAL_NS MR_MS /* a smaller difference of load is not worth moving tasks */
/* number of most loaded workers that one turn examines to find a victim */
#define STEAL_LOOK_MAX 16
#define STEAL_EVERY (500 * MR_US)
/* limit of parked tasks of one class while the run time of their operator is unknown */
#define PARKED_UNKNOWN_MAX 256
#define PARKED_CLASSES_MAX 64u /* classes with parked tasks that one turn looks at */

/* Classes that had parked tasks when the turn began. A class whose task finds no worker is removed,
 * because workers get no new room during a turn. */
struct parked {
    uint32_t class[PARKED_CLASSES_MAX];
    uint32_t count;
};

static void parked_look(const struct mr_sched *s, struct parked *p)
{
    uint32_t from = s->class_list.active_count > PARKED_CLASSES_MAX
                        ? (uint32_t)(s->totals.turns % s->class_list.active_count)
                        : 0;
    p->count = MR_MIN(s->class_list.active_count, PARKED_CLASSES_MAX);
    for (uint32_t i = 0; i < p->count; i++)
        p->class[i] = s->class_list.active[(from + i) % s->class_list.active_count];
}

/* Returns the first parked task, if it goes before the task `queued`; else NONE. */
static uint32_t parked_first(const struct mr_sched *s, const struct parked *p, uint32_t queued)
{
    uint32_t best = queued;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t head = s->classes[p->class[i]].parked_head;
        if (head != NONE && (best == NONE || mr_sched__task_before(s, head, best))) best = head;
    }
    return best == queued ? NONE : best;
}

static void parked_drop(struct parked *p, uint32_t class)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->class[i] == class) p->class[i] = p->class[--p->count];
}

static void dispatch_one_parked(struct mr_sched *s, struct parked *p, uint32_t task)
{
    uint32_t w = mr_sched__place(s, task);
    if (w == NONE) {
        parked_drop(p, s->tasks[task].class);
        return;
    }
    mr_sched__unpark(s, task);
    mr_sched__send(s, task, w);
}

/* Called for a ready task that found no worker. True: dispatch stops here and leaves the queue as
 * it is, because no worker would take the tasks behind this task either. False: the task is to be
 * parked, and the tasks behind it may be sent. This is so if the task has special demands or only
 * waits for memory. If the run time of the task's operator is unknown, the result is a guess: true
 * when PARKED_UNKNOWN_MAX tasks of the class are parked. */
static bool is_everyone_served(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct class *c = &s->classes[t->class];
    if (!mr_sched__all_may_run(s, t) || t->flags & T_LONG) return false;
    if (!s->ops[c->op].estimate_ns) return c->parked >= PARKED_UNKNOWN_MAX;
    return !mr_sched__any_has_room(s, t);
}

/* Sends or parks `task`, the first of the queue, or takes it off the queue until it is ready.
 * False: no worker has room for any queued task, and `task` stays in the queue. */
static bool dispatch_queued(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    uint32_t w = mr_sched__place(s, task);
    if (w != NONE) {
        mr_sched__queue_drop(s, task);
        mr_sched__send(s, task, w);
        return true;
    }
    if (t->state == MR_TASK_READY && is_everyone_served(s, task)) return false;
    /* a task that is not ready is queued again when it becomes ready */
    mr_sched__queue_drop(s, task);
    if (t->state != MR_TASK_READY) return true;
    mr_sched__park(s, task);
    /* While the run time of the task's operator is unknown, the task counts as waiting for the
     * operator's first result. Otherwise it counts as held back. held_of in completion.c tells for
     * what: for memory, or for workers that meet the task's demands or have its operator. */
    t->was_held = s->ops[s->classes[t->class].op].estimate_ns != 0;
    return true;
}

/* Sends parked and queued tasks in one order, at most *left tasks. With two orders a task that was
 * parked for a moment would be overtaken, even if it is the one that frees memory. */
static void dispatch_all(struct mr_sched *s, uint32_t *left)
{
    struct parked parked;
    parked_look(s, &parked);
    for (bool is_queue_over = false; *left; --*left) {
        uint32_t job = is_queue_over ? NONE : mr_sched__queue_job(s);
        uint32_t queued = job == NONE ? NONE : mr_sched__queue_first(s, job);
        uint32_t task = parked_first(s, &parked, queued);
        if (task != NONE)
            dispatch_one_parked(s, &parked, task);
        else if (queued == NONE)
            return;
        else
            is_queue_over = !dispatch_queued(s, queued);
    }
}

/* True: more of the worker's tasks are ready than it has slots. A chain of tasks has at most one
 * ready task, which runs best on the worker that has the other tasks. */
static bool has_spare(const struct mr_sched *s, const struct worker *w)
{
    uint32_t ready = 0;
    for (uint32_t t = w->sent_head; t != NONE && ready <= w->slots; t = s->tasks[t].next)
        ready += s->tasks[t].state == MR_TASK_RUNNING;
    return ready > w->slots;
}

/* Asks `victim` to give back tasks that it has not started. Begins with the task that was sent
 * last. Asks only for tasks that `thief` may run and that placement would send to `thief`; any
 * other task would return to `victim` and be asked for again. Tasks that wait for inputs stay where
 * their inputs are computed. */
static void steal_from(struct mr_sched *s, uint32_t victim, uint32_t thief, uint64_t want_ns)
{
    struct worker *w = &s->workers[victim];
    if (!has_spare(s, w)) return;
    uint64_t got = 0;
    uint32_t keep = w->slots, n = 0;
    for (uint32_t t = w->sent_tail; t != NONE && got < want_ns && n < STEAL_TASKS_MAX;) {
        struct task *u = &s->tasks[t];
        uint32_t prev = u->prev;
        if (w->sent - w->stealing <= keep) break;
        bool is_fixed = u->flags & (T_LONG | T_QUARANTINED | T_STARTED | T_STEALING);
        if (!is_fixed && u->state == MR_TASK_RUNNING &&
            mr_sched__is_better(s, t, thief, victim, got)) {
            u->flags |= T_STEALING;
            w->stealing++;
            got += u->estimate;
            n++;
            mr_sched__refs_add(&mr_sched__batch_more(s, victim)->steal, job_of(s, t)->id,
                index_of(s, t), u->attempt);
        }
        t = prev;
    }
    s->totals.steals += n;
}

static void steal(struct mr_sched *s)
{
    if (s->load.workers < 2) return;
    uint32_t thief = mr_sched__load_least(s), victim = mr_sched__load_most(s);
    const struct worker *a = &s->workers[thief];
    if (a->sent >= a->slots) return;
    uint64_t low = mr_sched__load(a);
    for (uint32_t look = STEAL_LOOK_MAX; look-- && victim != NONE;
         victim = mr_sched__load_prev(s, victim)) {
        const struct worker *b = &s->workers[victim];
        uint64_t high = mr_sched__load(b);
        if (victim == thief || high < low + STEAL_NS) return;
        if (b->sent <= b->slots) continue;
        s->due.steal = s->now + STEAL_EVERY;
        if (!b->stealing) steal_from(s, victim, thief, (high - low) / 2 * b->slots);
        return;
    }
}

void mr_sched__dispatch(struct mr_sched *s)
{
    s->has_work = false;
    s->due.steal = MR_NEVER; /* a time in the past would cause a tick at once */
    if (s->journal.written_bytes - s->journal.acked_bytes > s->config.unacked_bytes_max) return;
    uint32_t left = TURN_TASKS_MAX;
    s->totals.turns++;
    mr_sched__quarantine_dispatch(s);
    if (s->memory_retry.ring.count || s->memory_retry.reserved_store)
        mr_sched__memory_retry_dispatch(s);
    mr_sched__memory_order_dispatch(s, &left);
    dispatch_all(s, &left);
    s->has_work = !left;
    if (s->queue.count && !left) return;
    steal(s);
}
