/* Asserts each invariant of the state, in O(state): for the simulator and tests. */
#include "services/scheduler/core/check.h"

#include "base/assert.h"
#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/ready_queue.h"
#include "services/scheduler/core/index/worker_index.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/value.h"

static void check_task(const struct mr_sched *s, uint32_t job, uint32_t i)
{
    const struct job *j = &s->jobs[job];
    const struct task *t = &s->tasks[j->base + i];
    mr_assert(job_no(s, t) == job);
    if (t->flags & T_QUEUED) mr_assert(!(t->flags & (T_SENT | T_PARKED)));
    if (t->flags & T_SENT) {
        mr_assert(t->state == MR_TASK_WAITING || t->state == MR_TASK_RUNNING);
        mr_assert(s->workers[t->worker].state != W_FREE);
    }
    if (t->state == MR_TASK_RUNNING || t->fused_use) mr_assert(t->flags & T_SENT);
    if (!is_done(t)) mr_assert(t->value == NONE);
    if (is_done(t) && !(t->flags & T_FIXED)) mr_assert(t->value < LITERAL);
    mr_assert(!t->is_marked && t->kills <= KILLS_MAX);
    if (is_unfinished(t))
        mr_assert(t->refs == REF_ALL); /* I12 */
    else
        mr_assert(!t->refs || is_done(t)); /* I12 */
    if (!(j->flags & (J_HELD_BACK | J_RECLAIMING))) mr_assert(!mr_sched__is_broken(s, j->base + i));
    if (!is_unfinished(t) || j->flags & (J_STOPPED | J_FORGETTING)) return;
    uint32_t n;
    uint32_t waiting = 0;
    uint32_t unsent = 0;
    const uint32_t *in = mr_sched__inputs(s, j->base + i, &n);
    for (uint32_t k = 0; k < n; k++) {
        const struct task *u = &s->tasks[j->base + in[k]];
        waiting += !is_done(u);
        unsent += !is_done(u) && !(u->flags & T_SENT);
    }
    waiting += (t->flags & T_SHARED) != 0;
    unsent += (t->flags & T_SHARED) != 0;
    if (t->is_exit && !mr_sched__loop_is_decided(s, j->base + i)) {
        waiting++;
        unsent++;
    }
    mr_assert((t->state == MR_TASK_WAITING) == (waiting > 0)); /* I11 */
    if (t->state != MR_TASK_WAITING) return;
    mr_assert(t->waiting == waiting); /* I11 */
    mr_assert(t->unsent == unsent);
}

static void check_consumers(const struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    if (j->flags & (J_RECLAIMING | J_FORGETTING) || job == s->job_list.unplanned) return;
    for (uint32_t i = 0; i < j->graph->nodes_count; i++) {
        const struct task *t = &s->tasks[j->base + i];
        uint32_t consumers = mr_sched__ref_count(s, j->base + i);
        if (is_unfinished(t) || is_done(t)) mr_assert(t->consumers == consumers);   /* I12 */
        if (is_done(t) && !(t->flags & (T_TARGET | T_FIXED))) mr_assert(consumers); /* I12 */
    }
}

/* The counts of a running job: targets it waits for, and failures. */
static void check_targets(const struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    uint32_t left = 0, failed = 0, fallen = 0;
    if (j->state >= MR_JOB_DONE || job == s->job_list.unplanned) return;
    for (uint32_t i = 0; i < j->graph->nodes_count; i++) {
        const struct task *t = &s->tasks[j->base + i];
        left += t->flags & T_TARGET && is_unfinished(t);
        failed += t->flags & T_TARGET && t->state == MR_TASK_ERRED;
        fallen += t->state == MR_TASK_ERRED && t->cause != j->base + i;
    }
    mr_assert(j->targets_left == left);
    mr_assert(j->targets_failed == failed);
    mr_assert(j->fallen == fallen);
}

static void check_job(const struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    uint32_t counts[MR_TASK_STATES] = {0};
    uint32_t queued = 0, abandoned = 0;
    for (uint32_t i = 0; i < j->graph->nodes_count; i++) {
        const struct task *t = &s->tasks[j->base + i];
        check_task(s, job, i);
        mr_assert(!t->is_abandoned || t->state == MR_TASK_RELEASED);
        abandoned += t->is_abandoned;
        if (!(t->flags & T_FIXED)) counts[t->state]++;
        queued += (t->flags & T_QUEUED) != 0;
    }
    for (uint32_t k = MR_TASK_WAITING; k < MR_TASK_STATES; k++)
        mr_assert(j->counts[k] == counts[k]); /* I11 */
    mr_assert(j->queued == queued && j->abandoned == abandoned);
    check_consumers(s, job);
    check_targets(s, job);
}

/* The tasks that were sent to a worker: its list, and its sums. */
static void check_sent(const struct mr_sched *s, uint32_t slot)
{
    const struct worker *w = &s->workers[slot];
    uint32_t sent = 0, prev = NONE, unknown = 0, lasting = 0, stealing = 0;
    uint64_t queue = 0, taken[RESOURCES] = {0};
    for (uint32_t at = w->sent_head; at != NONE; at = s->tasks[at].next) {
        const struct task *t = &s->tasks[at];
        mr_assert(t->flags & T_SENT && t->worker == slot && t->prev == prev);
        queue += t->estimate;
        unknown += (t->flags & T_UNKNOWN) != 0;
        lasting += (t->flags & T_LONG) != 0;
        stealing += (t->flags & T_STEALING) != 0;
        for (uint32_t r = 0; t->class >= s->config.ops_max && r < s->class_list.resources_count;
             r++)
            taken[r] += s->classes[t->class].need[r];
        prev = at;
        sent++;
    }
    mr_assert(w->sent == sent && w->queue_ns == queue && w->sent_tail == prev);
    mr_assert(w->unknown == unknown && w->long_sent == lasting && w->stealing == stealing);
    for (uint32_t r = 0; r < s->class_list.resources_count; r++)
        mr_assert(w->facts->taken[r] == taken[r]);
    mr_assert(
        w->probation == NONE || (s->tasks[w->probation].flags & T_SENT && !w->is_unrecovered));
}

static void check_worker(const struct mr_sched *s, uint32_t slot)
{
    const struct worker *w = &s->workers[slot];
    uint64_t held = 0;
    mr_assert(w->state != W_FREE || slot >= s->worker_list.free_at);
    if (w->state == W_FREE) return;
    mr_assert(mr_sched__worker_find(s, w->incarnation) == slot);
    check_sent(s, slot);
    for (uint32_t v = w->held_head; v != NONE; v = s->values[v].next)
        held += s->values[v].bytes;
    mr_assert(w->held_bytes == held);
}

/* Bytes that workers keep in a store, and that they are computing for it. */
static void check_store(const struct mr_sched *s, uint32_t store)
{
    const struct store *st = &s->stores[store];
    uint64_t kept = 0;
    uint32_t coming = 0;
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        const struct worker *w = &s->workers[i];
        if (w->state == W_FREE) continue;
        for (uint32_t t = w->sent_head; w->store == store && t != NONE; t = s->tasks[t].next)
            coming += s->tasks[t].is_coming;
        for (uint32_t v = w->held_head; v != NONE; v = s->values[v].next)
            if (s->values[v].kind == V_OBJECT && s->values[v].store == store)
                kept += s->values[v].bytes;
    }
    mr_assert(st->coming == coming && st->kept_bytes == kept);
    mr_assert(coming || !st->coming_bytes);
}

/* Parked tasks, by class. */
static void check_parked(const struct mr_sched *s)
{
    uint32_t active = 0;
    for (uint32_t i = 0; i < s->class_list.top; i++) {
        const struct class *c = &s->classes[i];
        uint32_t parked = 0, prev = NONE;
        if (!c->parked) continue;
        for (uint32_t at = c->parked_head; at != NONE; at = s->tasks[at].next) {
            const struct task *t = &s->tasks[at];
            mr_assert(t->flags & T_PARKED && t->class == i && t->prev == prev);
            prev = at;
            parked++;
        }
        mr_assert(c->parked == parked && c->parked_tail == prev);
        mr_assert(s->class_list.active[c->active_at] == i);
        active++;
    }
    mr_assert(active == s->class_list.active_count);
}

/* Counts of workers, operators and jobs. */
static void check_counts(const struct mr_sched *s)
{
    uint32_t live = 0, jobs = 0, reclaims = 0, stories = 0;
    uint64_t queued = 0;
    for (uint32_t i = 0; i < s->worker_list.top; i++)
        live += s->workers[i].state != W_FREE;
    for (uint32_t op = 1; op <= s->op_list.count; op++) {
        uint32_t workers = 0;
        for (uint32_t i = 0; i < s->worker_list.top; i++)
            if (s->workers[i].state != W_FREE)
                workers +=
                    (uint32_t)(s->worker_list
                                       .op_bits[(size_t)i * s->worker_list.op_words + op / 64] >>
                                   (op % 64) &
                               1);
        mr_assert(s->ops[op].workers == workers);
    }
    for (uint32_t i = 0; i < s->job_list.top; i++) {
        if (!s->jobs[i].id) continue;
        jobs += !(s->jobs[i].flags & J_FORGETTING); /* not in the list by age any more */
        queued += s->jobs[i].queued;
        reclaims += (s->jobs[i].flags & J_RECLAIMING) != 0;
    }
    for (uint32_t i = 0; i < s->config.failures_max; i++)
        stories += s->failures.at[i].task != NONE;
    mr_assert(live == s->worker_list.live);
    mr_assert(jobs == s->job_list.count && queued == s->queue.count &&
              reclaims == s->job_list.reclaims_count);
    mr_assert(stories == s->failures.index.count);
}

void mr_sched_check(const struct mr_sched *s)
{
    uint32_t running = 0;
    for (uint32_t i = 0; i < s->job_list.top; i++) {
        if (!s->jobs[i].id) continue;
        if (s->is_recovered) check_job(s, i);
        running += s->jobs[i].state < MR_JOB_DONE;
    }
    mr_assert(running == s->job_list.running);
    uint32_t slots = 0;
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        check_worker(s, i);
        if (s->workers[i].state == W_CONNECTED) slots += s->workers[i].slots;
    }
    mr_assert(slots == s->slot_time.slots);
    for (uint32_t i = 0; i <= s->store_list.count; i++)
        check_store(s, i);
    check_parked(s);
    check_counts(s);
    if (s->is_recovered) mr_sched__value_check(s);
    mr_sched__queue_check(s);
    mr_sched__load_check(s);
    mr_assert(s->journal.acked <= s->journal.sequence); /* I18 */
}

static const char *worker_leftover(const struct mr_sched *s, const struct worker *w)
{
    if (w->sent || w->sent_head != NONE || w->sent_tail != NONE) return "tasks at a worker";
    if (w->held_head != NONE || w->held_bytes) return "values at a worker";
    if (w->queue_ns || w->unknown || w->long_sent || w->stealing) return "load of a worker";
    if (w->probation != NONE || w->is_closed || w->is_reserved) return "a worker that is kept free";
    for (uint32_t r = 0; r < s->class_list.resources_count; r++)
        if (w->facts->taken[r]) return "resources of a worker";
    return NULL;
}

/* For the simulator, when every job is forgotten: whatever is left is a leak. */
const char *mr_sched_leftover(const struct mr_sched *s)
{
    uint32_t nodes = s->numbers.top;
    for (uint32_t i = 0; i < s->numbers.free_count; i++)
        nodes -= s->numbers.free[i].count;
    if (nodes) return "numbers of tasks";
    for (uint32_t i = 0; i <= s->store_list.count; i++)
        if (s->stores[i].kept_bytes || s->stores[i].coming)
            return "bytes that workers keep in a store";
    if (s->job_list.count || s->job_list.running || s->job_list.reclaims_count ||
        s->queue.heap_count)
        return "jobs";
    if (s->job_list.by_id.count || s->job_list.by_request.count) return "names of jobs";
    if (s->keys.index.count) return "keys of a namespace";
    if (s->value_list.count) return "values";
    if (s->blocks.left != s->config.inline_blocks) return "bytes of small values";
    if (s->queue.count || s->class_list.active_count) return "tasks in queues";
    if (s->quarantine.ring.count || s->quarantine.reserved != NONE) return "quarantined tasks";
    if (s->memory_retry.ring.count || s->memory_retry.reserved_store ||
        s->memory_retry.reserved_task != NONE)
        return "tasks that found no room";
    if (s->failures.index.count) return "failures";
    if (s->journal.pending_at != s->journal.pending_end ||
        s->journal.unacked_at != s->journal.unacked_end || s->journal.open_count)
        return "promises";
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        const char *what =
            s->workers[i].state == W_FREE ? NULL : worker_leftover(s, &s->workers[i]);
        if (what) return what;
    }
    for (uint32_t i = s->config.ops_max; i < s->class_list.top; i++)
        if (s->classes[i].users) return "classes of tasks";
    for (uint32_t i = 0; i < s->numbers.top; i++)
        if (s->keys.source[i] || s->keys.next[i] || s->keys.head[i]) return "tasks that share keys";
    return NULL;
}
