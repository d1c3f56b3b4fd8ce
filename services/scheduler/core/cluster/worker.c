/* Workers that become silent, retire or are lost. A worker whose stream ends is silent until its
 * lease ends; a retiring worker without tasks is lost at once. When a worker is lost, its
 * incarnation is revoked, its tasks go to other workers, and values that only it had are computed
 * again. */
#include "services/scheduler/core/cluster/worker.h"

#include "base/assert.h"
#include "services/scheduler/core/cluster/recovery.h"
#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/worker_index.h"
#include "services/scheduler/core/place/memory_retry.h"
#include "services/scheduler/core/place/quarantine.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/run_time.h"
#include "services/scheduler/core/task/journal.h"
#include "services/scheduler/core/task/lineage.h"
#include "services/scheduler/core/task/task.h"
#include "services/scheduler/core/task/value.h"
#include "services/scheduler/core/task/value_delivery.h"

static void wipe_batch(struct mr_sched *s, uint32_t slot)
{
    mr_sched_batch_put(s->fx, &s->fx->worker[slot]);
}

static void close_note(struct mr_sched *s, uint32_t slot, const char *why)
{
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_WORKER_CLOSE);
    n->slot = slot;
    n->incarnation = s->workers[slot].incarnation;
    n->session = s->workers[slot].session;
    n->code = MR_ESTATE;
    mr_sched__note_text(s, n, why);
}

void mr_sched__worker_closed(struct mr_sched *s, uint32_t slot, uint64_t incarnation)
{
    if (slot >= s->worker_list.top) return;
    struct worker *w = &s->workers[slot];
    if (w->state != W_CONNECTED || w->incarnation != incarnation) return;
    mr_sched__worker_is(s, w, W_SILENT);
    w->last_heard = s->now;
    mr_sched__load_changed(s, slot, false);
    if (s->quarantine.reserved == slot) s->quarantine.reserved = NONE;
    w->is_reserved = false;
    wipe_batch(s, slot);
    if (w->is_retiring && !w->sent) mr_sched__worker_lost(s, slot, NULL, "it has left");
    mr_time lapse = mr_time_after(s->now, s->config.lease);
    s->due.leases = MR_MIN(s->due.leases, lapse);
}

/* Takes all tasks off the worker. */
static void unsend_all(struct mr_sched *s, uint32_t slot, const struct mr_ws_refs *ran)
{
    struct worker *w = &s->workers[slot];
    uint32_t n = 0;
    uint32_t *list = s->stack + s->stack_count;
    for (uint32_t t = w->sent_head; t != NONE; t = s->tasks[t].next)
        list[n++] = t;
    s->stack_count += n;
    mr_sched__quarantine_blame(s, slot, ran);
    for (uint32_t i = 0; i < n; i++)
        if (s->tasks[list[i]].flags & T_SENT) mr_sched__task_unsend(s, list[i]);
    for (uint32_t i = 0; i < n; i++) {
        /* the task has failed meanwhile, because a task that it needs failed */
        if (!is_unfinished(&s->tasks[list[i]])) continue;
        if (!mr_sched__quarantine_fail(s, list[i], w->facts->name))
            mr_sched__task_requeue(s, list[i]);
    }
    s->stack_count -= n;
}

/* Takes all values from the worker. A value of which only this worker had the bytes is lost. A
 * value of which an object store or the scheduler's cache has the bytes stays, without a keeper. */
static void unkeep_all(struct mr_sched *s, uint32_t slot)
{
    struct worker *w = &s->workers[slot];
    uint32_t *lost = s->stack + s->stack_count, n = 0;
    while (w->held_head != NONE) {
        uint32_t value = w->held_head;
        struct value *v = &s->values[value];
        bool is_gone = v->kind == V_AWAY || (v->kind == V_OBJECT && !(v->flags & V_HELD));
        if (is_gone) lost[n++] = v->task;
        mr_sched__value_unkeep(s, value);
    }
    s->stack_count += n;
    for (uint32_t i = 0; i < n; i++)
        if (is_done(&s->tasks[lost[i]])) mr_sched__task_lost(s, lost[i]);
    s->stack_count -= n;
}

/* Performs the consequences of a lost worker, in this order:
 *   1. The shell is told to end the worker's session, while the session is known.
 *   2. The worker leaves the load index, and its unsent messages are dropped: no later step places
 *      or sends a task there.
 *   3. The worker's tasks are taken away. Quarantine comes first, because it reads the list of
 *      tasks. Then all tasks leave before any is queued again, because the input of one may be the
 *      value of another.
 *   4. The worker's values lose their keeper, all of them before any is planned again: else a value
 *      that is gone would count as an input that exists.
 *   5. The journal gets a record of the revoked incarnation, and the slot is freed.
 *   6. Recovery ends if it waited for no other worker. */
void mr_sched__worker_lost(
    struct mr_sched *s, uint32_t slot, const struct mr_ws_refs *ran, const char *why)
{
    struct worker *w = &s->workers[slot];
    mr_assert(w->state != W_FREE);
    if (w->state == W_CONNECTED) close_note(s, slot, why);
    mr_sched__worker_is(s, w, W_SILENT);
    if (s->quarantine.reserved == slot) s->quarantine.reserved = NONE;
    mr_sched__load_changed(s, slot, false);
    wipe_batch(s, slot);
    unsend_all(s, slot, ran);
    unkeep_all(s, slot);
    mr_assert(!w->sent && !w->queue_ns && w->held_head == NONE);
    const uint64_t *bits = &s->worker_list.op_bits[(size_t)slot * s->worker_list.op_words];
    for (uint32_t op = 1; op <= s->op_list.count; op++)
        s->ops[op].workers -= (uint32_t)(bits[op / 64] >> (op % 64) & 1);
    s->worker_list.live--;
    (void)mr_sched__journal_worker(s, slot, true);
    mr_sched__worker_free(s, slot);
    s->has_work = true;
    mr_sched__recover_tick(s);
}

/* Fetches the small values of which the retiring worker has the only copy. */
static void fetch_all(struct mr_sched *s, uint32_t slot)
{
    for (uint32_t v = s->workers[slot].held_head; v != NONE; v = s->values[v].next)
        if (s->values[v].kind == V_AWAY) mr_sched__send_fetch(s, s->values[v].task);
}

void mr_sched__worker_retire(struct mr_sched *s, uint32_t slot, uint64_t incarnation)
{
    if (slot >= s->worker_list.top) return;
    struct worker *w = &s->workers[slot];
    if (w->state == W_FREE || w->incarnation != incarnation || w->is_retiring) return;
    w->is_retiring = true;
    if (s->quarantine.reserved == slot) s->quarantine.reserved = NONE;
    w->is_reserved = false;
    mr_sched__load_changed(s, slot, false);
    if (w->state != W_CONNECTED) return;
    mr_sched__batch(s, slot)->drain = true;
    fetch_all(s, slot);
}

void mr_sched__worker_leases(struct mr_sched *s)
{
    if (s->now < s->due.leases) return;
    s->due.leases = MR_NEVER;
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        struct worker *w = &s->workers[i];
        if (w->state == W_FREE) continue;
        mr_time end = mr_time_after(w->last_heard, s->config.lease);
        if (end > s->now) {
            s->due.leases = MR_MIN(s->due.leases, end);
            continue;
        }
        mr_sched__memory_retry_lost(s, i);
        mr_sched__worker_lost(s, i, NULL, "its lease has run out");
    }
}
