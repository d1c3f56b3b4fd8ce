/* A turn of dispatch: suspects first (core_trial.c); then what was parked; then the queue, until
 * the workers have what they want or the turn's bound is reached. Stealing is for when nothing is
 * left to give and somebody idles. */
#include "services/scheduler/core_trial.h"

#define TURN_TASKS_MAX 8192
#define STEAL_TASKS_MAX 256
#define STEAL_NS MR_MS /* a difference of load not worth moving anything for */
#define STEAL_LOOK_MAX 16
#define PARKED_UNKNOWN_MAX 256
#define STEAL_EVERY (500 * MR_US)

static void dispatch_parked(struct mr_sched *s, uint32_t *left)
{
    for (uint32_t i = 0; i < s->active_count && *left; i++) {
        uint32_t class = s->active[i];
        struct class *c = &s->classes[class];
        while (c->parked && *left) {
            uint32_t task = c->parked_head;
            uint32_t w = mr_sc_place(s, task);
            if (w == NONE) break;
            mr_sc_unpark(s, task);
            mr_sc_send(s, task, w);
            --*left;
        }
        if (!c->parked) i--; /* another took its place in the list */
    }
}

/* A ready task found no place: is that so for all that come behind it, too? Those that merely ask
 * for something special, or wait for memory, are parked and let the others pass. */
static bool is_everyone_served(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct class *c = &s->classes[t->class];
    if (!mr_sc_is_universal(s, t) || t->flags & T_LONG) return false;
    if (!s->ops[c->op].estimate_ns) return c->parked >= PARKED_UNKNOWN_MAX;
    return !mr_sc_has_place(s, t);
}

static void dispatch_queue(struct mr_sched *s, uint32_t *left)
{
    while (*left) {
        uint32_t job = mr_sc_queue_job(s);
        if (job == NONE) return;
        uint32_t task = mr_sc_queue_first(s, job);
        struct task *t = &s->tasks[task];
        uint32_t w = mr_sc_place(s, task);
        --*left;
        if (w != NONE) {
            mr_sc_queue_drop(s, task);
            mr_sc_send(s, task, w);
            continue;
        }
        if (t->state == MR_TASK_READY && is_everyone_served(s, task)) return;
        mr_sc_queue_drop(s, task); /* ahead of ready: once it is ready, it comes again */
        if (t->state == MR_TASK_READY) mr_sc_park(s, task);
    }
}

void mr_sc_dispatch(struct mr_sched *s)
{
    s->has_work = false;
    s->steal_at = MR_NEVER; /* a time that has passed would come again at once */
    if (!s->is_recovered) return;
    if (s->written_bytes - s->acked_bytes > s->config.unacked_bytes_max) return;
    uint32_t left = TURN_TASKS_MAX;
    if (s->suspects_count || s->reserved != NONE) mr_sc_trial_dispatch(s);
    dispatch_parked(s, &left);
    dispatch_queue(s, &left);
    s->has_work = !left;
    if (s->queued && !left) return;
    mr_sc_steal(s);
}

/* Asks `victim` for what it has not started, the last sent first. Only for what `thief` may run and
 * would be given: anything else would go back to where it came from, and be asked for again. What
 * waits for its inputs there stays with them. */
static void steal_from(struct mr_sched *s, uint32_t victim, uint32_t thief, uint64_t want_ns)
{
    struct worker *w = &s->workers[victim];
    uint64_t got = 0;
    uint32_t keep = w->slots, n = 0;
    for (uint32_t t = w->sent_tail; t != NONE && got < want_ns && n < STEAL_TASKS_MAX;) {
        struct task *u = &s->tasks[t];
        uint32_t prev = u->prev;
        if (w->sent - w->stealing <= keep) break;
        bool is_fixed = u->flags & (T_LONG | T_SUSPECT | T_STARTED | T_STEALING);
        if (!is_fixed && u->state == MR_TASK_RUNNING && mr_sc_is_better(s, t, thief, victim, got)) {
            u->flags |= T_STEALING;
            w->stealing++;
            got += u->estimate;
            n++;
            mr_sc_refs_add(
                &mr_sc_batch(s, victim)->steal, job_of(s, t)->id, index_of(s, t), u->attempt);
        }
        t = prev;
    }
    s->steals += n;
}

void mr_sc_steal(struct mr_sched *s)
{
    s->steal_at = MR_NEVER;
    if (s->workers_usable < 2) return;
    uint32_t thief = mr_sc_load_least(s), victim = mr_sc_load_most(s);
    const struct worker *a = &s->workers[thief];
    if (a->sent >= a->slots) return;
    uint64_t low = mr_sc_load(a);
    for (uint32_t look = STEAL_LOOK_MAX; look-- && victim != NONE;
         victim = mr_sc_load_prev(s, victim)) {
        const struct worker *b = &s->workers[victim];
        uint64_t high = mr_sc_load(b);
        if (victim == thief || high < low + STEAL_NS) return;
        if (b->sent <= b->slots) continue;
        s->steal_at = s->now + STEAL_EVERY;
        if (!b->stealing) steal_from(s, victim, thief, (high - low) / 2 * b->slots);
        return;
    }
}
