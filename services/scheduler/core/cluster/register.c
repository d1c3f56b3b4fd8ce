/* Registers a worker: a new one, or one that registers again with its values and queued tasks. In
 * the second case the scheduler's state and the worker's are compared. A value that the worker has
 * and that a task needs is adopted. A task that was sent to the worker and is still there stays
 * there. A task that the worker never received is sent elsewhere. */
#include "services/scheduler/core/cluster/register.h"

#include "services/scheduler/core/cluster/completion.h"
#include "services/scheduler/core/cluster/recovery.h"
#include "services/scheduler/core/cluster/store.h"
#include "services/scheduler/core/cluster/worker.h"
#include "services/scheduler/core/index/job_index.h"
#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/op_index.h"
#include "services/scheduler/core/index/placement_class.h"
#include "services/scheduler/core/index/retry_rings.h"
#include "services/scheduler/core/index/worker_index.h"
#include "services/scheduler/core/place/memory_retry.h"
#include "services/scheduler/core/state/batch.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/run_time.h"
#include "services/scheduler/core/task/assign.h"
#include "services/scheduler/core/task/epoch.h"
#include "services/scheduler/core/task/journal.h"
#include "services/scheduler/core/task/lineage.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/shared_key.h"
#include "services/scheduler/core/task/task.h"
#include "services/scheduler/core/task/value.h"
#include "services/scheduler/core/task/value_delivery.h"

#include <string.h>

static void refuse(struct mr_sched *s, uint64_t session, int code, const char *why)
{
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_WORKER_REFUSED);
    n->session = session;
    n->code = code;
    mr_sched__note_text(s, n, why);
}

static void set_ops(struct mr_sched *s, uint32_t slot, const struct mr_ws_register *r)
{
    uint64_t *bits = &s->worker_list.op_bits[(size_t)slot * s->worker_list.op_words];
    memset(bits, 0, s->worker_list.op_words * sizeof *bits);
    for (uint32_t i = 0; i < r->ops_count; i++) {
        uint32_t op = mr_sched__op(s, r->ops[i].name);
        if (!op || bits[op / 64] >> (op % 64) & 1) continue;
        bits[op / 64] |= 1ull << (op % 64);
        struct op *o = &s->ops[op];
        if (!o->workers++) {
            o->cost_ns = r->ops[i].cost_ns;
            o->deterministic = r->ops[i].deterministic;
            o->by_reference = r->ops[i].by_reference;
            o->passes = r->ops[i].passes;
            o->long_running = r->ops[i].long_running;
        }
    }
}

static void describe(struct mr_sched *s, uint32_t slot, const struct mr_ws_register *r)
{
    struct worker *w = &s->workers[slot];
    w->slots = r->slots;
    mr_sched__worker_name(s, slot, r->name);
    copy_name(w->facts->node, r->node);
    w->store = mr_sched__store(s, r->store, r->store_address);
    w->memory_bytes = r->memory_bytes;
    for (uint32_t i = 0; i < r->resources_count; i++) {
        uint32_t k = mr_sched__resource(s, r->resources[i].name);
        if (k != NONE) w->facts->capacity[k] = r->resources[i].micro;
    }
    set_ops(s, slot, r);
}

static void join(struct mr_sched *s, uint32_t slot, const struct mr_ws_register *r)
{
    struct worker *w = mr_sched__worker_new(s, slot, mr_sched__id(s, ++s->worker_list.number));
    describe(s, slot, r);
    s->worker_list.live++;
    w->record = mr_sched__journal_worker(s, slot, false);
}

/* Called when a worker that the journal names registers again after a restart of the scheduler. */
static void register_again(struct mr_sched *s, uint32_t slot, const struct mr_ws_register *r)
{
    struct worker *w = &s->workers[slot];
    describe(s, slot, r);
    w->is_unrecovered = false;
    w->is_known = true;
}

static void take_queued(struct mr_sched *s, uint32_t slot, uint32_t task, uint32_t attempt)
{
    struct task *t = &s->tasks[task];
    if (!is_unfinished(t) || job_of(s, task)->flags & J_STOPPED || t->flags & T_SHARED) return;
    if (t->flags & T_SENT) {
        if (t->worker != slot || t->attempt != attempt) return;
    } else {
        if (attempt < t->attempt || t->flags & T_QUARANTINED) return;
        if (t->state == MR_TASK_WAITING && mr_sched__is_by_reference(s, task)) return;
        if (t->is_exit && !mr_sched__loop_is_decided(s, task))
            return; /* since the restart the loop may end in another round than before */
        mr_sched__task_unqueue(s, task);
        t->attempt = attempt;
        mr_sched__send_adopted(s, task, slot);
    }
    t->flags |= T_SEEN;
    const struct job *j = job_of(s, task);
    mr_sched__refs_add(&mr_sched__batch_more(s, slot)->keep, j->id, task - j->base, attempt);
    uint32_t n;
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    for (uint32_t i = 0; i < n; i++)
        if (is_done(&s->tasks[j->base + in[i]])) mr_sched__send_value(s, j->base + in[i], slot);
}

/* Decides which queued tasks the worker keeps. The worker stops all others, and does not report
 * their end. */
static void compare_queued(struct mr_sched *s, uint32_t slot, const struct mr_ws_refs *q)
{
    s->workers[slot].stopping = 0;
    uint32_t row = 0;
    for (uint32_t i = 0; i < q->runs_count; i++)
        for (uint32_t k = 0; k < q->runs[i].count; k++, row++) {
            uint32_t task = mr_sched__find(s, q->runs[i].job.v, q->index[row]);
            uint32_t attempt = q->attempt ? q->attempt[row] : 0;
            if (task != NONE) take_queued(s, slot, task, attempt);
        }
    if (q->count > mr_sched__batch_more(s, slot)->keep.count) mr_sched__stopping_add(s, slot, 1);
}

/* Unsends the tasks that were sent to the worker and that the worker does not report: it never
 * received them. */
static void drop_unseen_tasks(struct mr_sched *s, uint32_t slot)
{
    struct worker *w = &s->workers[slot];
    uint32_t *list = s->stack + s->stack_count, n = 0;
    for (uint32_t t = w->sent_head; t != NONE; t = s->tasks[t].next) {
        if (!(s->tasks[t].flags & T_SEEN)) list[n++] = t;
        s->tasks[t].flags = (uint16_t)(s->tasks[t].flags & ~(T_SEEN | T_STEALING));
    }
    w->stealing = 0;
    s->stack_count += n;
    for (uint32_t i = 0; i < n; i++)
        if (s->tasks[list[i]].flags & T_SENT) mr_sched__task_unsend(s, list[i]);
    for (uint32_t i = 0; i < n; i++)
        if (is_unfinished(&s->tasks[list[i]])) mr_sched__task_requeue(s, list[i]);
    s->stack_count -= n;
}

static bool is_waited_for_elsewhere(const struct mr_sched *s, uint32_t task, uint32_t slot)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n; i++) {
        const struct task *u = &s->tasks[j->base + d[i]];
        if (is_unfinished(u) && u->flags & T_SENT && u->worker != slot &&
            mr_sched__is_edge(s, task, j->base + d[i]))
            return true;
    }
    return mr_sched__shared_key_is_waited(s, task);
}

/* Compares the values that the worker made with those that it reports. A value that is missing in
 * the report is lost, unless the scheduler has the value's bytes or a store was told to hold the
 * object. If only the worker has a reported value, and tasks elsewhere wait for the value, the
 * worker is asked to send the value. */
static void drop_unseen_values(struct mr_sched *s, uint32_t slot)
{
    uint32_t *lost = s->stack + s->stack_count, n = 0, next;
    for (uint32_t i = s->workers[slot].held_head; i != NONE; i = next) {
        struct value *v = &s->values[i];
        struct task *t = &s->tasks[v->task];
        next = v->next;
        bool is_seen = t->flags & T_SEEN;
        t->flags = (uint16_t)(t->flags & ~T_SEEN);
        v->flags &= (uint8_t)~V_FETCHING;
        if (is_seen) {
            if (v->kind == V_AWAY && is_waited_for_elsewhere(s, v->task, slot))
                mr_sched__send_fetch(s, v->task);
            continue;
        }
        if (v->kind == V_AWAY || (v->kind == V_OBJECT && !(v->flags & V_HELD))) lost[n++] = v->task;
        mr_sched__value_unkeep(s, i);
    }
    s->stack_count += n;
    for (uint32_t i = 0; i < n; i++)
        if (is_done(&s->tasks[lost[i]])) mr_sched__task_lost(s, lost[i]);
    s->stack_count -= n;
}

static uint32_t find_worker(const struct mr_sched *s, const struct mr_ws_register *r)
{
    if (r->incarnation) return mr_sched__worker_find(s, r->incarnation);
    return mr_sched__worker_find_name(s, r->name);
}

/* True: the worker in `slot` is dead though its stream is open: its store is lost, so its node was
 * restarted. */
static bool is_outlived(const struct mr_sched *s, uint32_t slot)
{
    const struct worker *w = &s->workers[slot];
    return w->store && s->stores[w->store].is_lost;
}

static bool is_refused(struct mr_sched *s, uint64_t session, const struct mr_ws_register *r)
{
    if (!s->is_recovered)
        refuse(s, session, MR_EAWAY, "the scheduler is reading its journal");
    else if (!r->name.n || r->name.n >= NAME_BYTES || r->node.n >= NAME_BYTES)
        refuse(s, session, MR_EINVAL, "the worker's name and node must have 1 to 127 bytes");
    else if (!r->slots || r->slots > MR_SLOTS_MAX)
        refuse(s, session, MR_EINVAL, "the worker's slots must be 1 to 1024");
    else
        return false;
    return true;
}

void mr_sched__worker_register(struct mr_sched *s, uint64_t session, const struct mr_ws_register *r)
{
    if (is_refused(s, session, r)) return;
    mr_sched__epoch_heard(s, r->epoch, r->scheduler);
    uint32_t slot = find_worker(s, r);
    bool is_there = slot != NONE && s->workers[slot].state == W_CONNECTED;
    if (is_there && (r->incarnation || !is_outlived(s, slot))) {
        refuse(s, session, MR_EEXIST, "a worker of this name is connected");
        return;
    }
    if (r->incarnation && slot == NONE) {
        bool is_other = mr_sched__is_lost_journal(s, (uint32_t)(r->incarnation >> 32));
        refuse(s, session, MR_ESTATE,
            is_other ? "this incarnation is from a journal that Redis has lost: Redis came back "
                       "without the scheduler that gave it; register as a new one"
                     : "this incarnation was declared lost; register as a new one");
        return;
    }
    if (!r->incarnation) {
        if (slot != NONE)
            mr_sched__worker_lost(
                s, slot, r->has_suspects ? &r->suspects : NULL, "a new process took its name");
        slot = mr_sched__worker_place(s);
        if (slot == NONE) {
            refuse(s, session, MR_ELIMIT, "the cluster has as many workers as it may");
            return;
        }
        join(s, slot, r);
    }
    struct worker *w = &s->workers[slot];
    if (w->is_unrecovered) register_again(s, slot, r);
    mr_sched__worker_is(s, w, W_CONNECTED);
    w->is_full = false;
    w->session = session;
    w->last_heard = s->now;
    w->clock_offset = (int64_t)(s->now - r->time_ns);
    mr_time end = mr_time_after(s->now, s->config.lease);
    s->due.leases = MR_MIN(s->due.leases, end);
    struct mr_sched_batch *b = mr_sched__batch_more(s, slot);
    b->has_registered = true;
    b->session = session;
    mr_sched__completed(s, slot, &r->holding, &b->adopt);
    compare_queued(s, slot, &r->queued);
    mr_sched__memory_retry_joined(s, slot);
    drop_unseen_tasks(s, slot);
    drop_unseen_values(s, slot);
    if (w->is_retiring) b->drain = true;
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_WORKER_JOINED);
    n->slot = slot;
    n->incarnation = w->incarnation;
    n->session = session;
    mr_sched__load_changed(s, slot, false);
    s->has_work = true;
    mr_sched__recover_tick(s);
}
