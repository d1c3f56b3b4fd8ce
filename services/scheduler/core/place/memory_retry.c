/* Retries of tasks that had too little memory: the worker had pinned some inputs, and the other
 * inputs or the result did not fit beside what other tasks had pinned. The worker unpins everything
 * and gives the task back, and the task is tried again. If that fails twice, the task runs on a
 * node that is kept free for it: nothing runs beside it but long-running tasks, so the store can
 * spill everything else. A task that does not fit even there fails, and the error text names the
 * size of its inputs and of the store's memory. One node at a time is kept free, so that other
 * nodes go on. */
#include "services/scheduler/core/place/memory_retry.h"

#include "base/units.h"
#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/retry_rings.h"
#include "services/scheduler/core/place/place.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/assign.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/task.h"

#include <stdio.h>

/* How many attempts of a task may be refused for want of memory before the last attempt: two beside
 * other tasks, and one on a node that is kept free. If the last attempt is refused, and no tasks
 * but long-running ones ran beside it, the task fails. */
#define OOM_RETRIES_MAX 3
/* after the lease of a worker has ended, the worker may still have objects pinned for this many
 * lease times */
#define LOST_LEASES 3

static bool is_retry_ready(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    return t->state == MR_TASK_READY && t->oom_retries > 1 &&
           !(t->flags & (T_SENT | T_QUEUED | T_PARKED | T_QUARANTINED | T_LONG)) &&
           !(job_of(s, task)->flags & J_STOPPED);
}

/* Keeps the node of `store` free: its workers get no more tasks. `store` 0: keeps no node free. */
static void reserve_node(struct mr_sched *s, uint32_t store)
{
    s->memory_retry.reserved_store = store;
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        struct worker *w = &s->workers[i];
        bool is_node_reserved = store && w->state != W_FREE && w->store == store;
        if (w->is_node_reserved == is_node_reserved) continue;
        w->is_node_reserved = is_node_reserved;
        mr_sched__load_changed(s, i, false);
        s->has_work = true;
    }
}

static bool may_take(const struct mr_sched *s, uint32_t worker, const struct class *c)
{
    const struct worker *w = &s->workers[worker];
    return w->state == W_CONNECTED && w->is_known && !w->is_retiring && !w->is_reserved &&
           !w->is_closed && w->store && mr_sched__may_run(s, worker, c);
}

/* True: a lost worker on the store's node may still have objects pinned. A process that is stopped,
 * not dead, keeps its pins after its lease has ended. */
static bool may_lost_hold(const struct mr_sched *s, uint32_t store)
{
    mr_time lost_at = MR_MAX(s->stores[store].lost_at, s->memory_retry.unrecovered_lost_at);
    return lost_at && s->now < mr_time_after(lost_at, LOST_LEASES * s->config.lease);
}

void mr_sched__memory_retry_lost(struct mr_sched *s, uint32_t worker)
{
    const struct worker *w = &s->workers[worker];
    struct store *st = &s->stores[w->store];
    bool is_only = !may_lost_hold(s, w->store) || st->lost_name == w->name_hash;
    /* 0 if several workers are lost: when one of them returns, the others may still have objects
     * pinned */
    st->lost_name = is_only ? w->name_hash : 0;
    if (w->store) st->lost_at = s->now;
    if (w->is_unrecovered) s->memory_retry.unrecovered_lost_at = s->now;
}

/* Called when a worker has registered. If the node's only lost worker has the same name, the lost
 * worker has come back. A worker unpins everything when it learns that it was lost, so its loss no
 * longer counts. Retries on the node wait a while, as they do after an attempt was told to stop, so
 * that the worker has time to unpin. */
void mr_sched__memory_retry_joined(struct mr_sched *s, uint32_t worker)
{
    struct store *st = &s->stores[s->workers[worker].store];
    if (!st->lost_at || st->lost_name != s->workers[worker].name_hash) return;
    st->lost_at = 0;
    st->lost_name = 0;
    mr_sched__stopping_add(s, worker, 1);
}

static bool is_better(const struct mr_sched *s, uint32_t store, uint32_t best)
{
    uint64_t a = s->stores[store].memory_bytes, b = s->stores[best].memory_bytes;
    if (a != b) return a > b;
    return may_lost_hold(s, best) && !may_lost_hold(s, store);
}

/* Returns the store with the most memory, of the stores whose workers may run a task of the class;
 * 0: there is no such store now. */
static uint32_t find_store(const struct mr_sched *s, const struct class *c)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        if (!may_take(s, i, c)) continue;
        if (!best || is_better(s, s->workers[i].store, best)) best = s->workers[i].store;
    }
    return best;
}

/* True: the store's node still runs a task that is not long-running, or an attempt that was told to
 * stop. Tasks that wait for inputs do not count: nothing starts them while the node is kept
 * free. */
static bool is_busy(const struct mr_sched *s, uint32_t store)
{
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        const struct worker *w = &s->workers[i];
        if (w->state == W_FREE || w->store != store) continue;
        if (mr_sched__is_stopping(s, w)) return true;
        for (uint32_t t = w->sent_head; t != NONE; t = s->tasks[t].next)
            if (s->tasks[t].state == MR_TASK_RUNNING && !(s->tasks[t].flags & T_LONG)) return true;
    }
    return false;
}

/* True: a process on the store's node may have objects pinned though it runs nothing: it was lost,
 * it is silent, or its attempts were told to stop. */
static bool may_anyone_hold(const struct mr_sched *s, uint32_t store)
{
    /* an idle worker sends three heartbeats in a lease */
    mr_duration timeout = MR_MAX(3 * s->config.heartbeat, s->config.lease / 2);
    if (may_lost_hold(s, store)) return true;
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        const struct worker *w = &s->workers[i];
        if (w->state == W_FREE || w->store != store) continue;
        if (mr_sched__is_stopping(s, w)) return true;
        if (w->state == W_SILENT || mr_time_after(w->last_heard, timeout) < s->now) return true;
    }
    return false;
}

static uint32_t find_worker(const struct mr_sched *s, uint32_t store, const struct class *c)
{
    uint32_t best = NONE;
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        const struct worker *w = &s->workers[i];
        if (w->store != store || w->is_full || !may_take(s, i, c)) continue;
        if (best == NONE || w->long_sent < s->workers[best].long_sent) best = i;
    }
    return best;
}

/* Takes the next task that can be retried now from the ring, and drops those before it; NONE: there
 * is none. */
static uint32_t next_retry(struct mr_sched *s)
{
    while (s->memory_retry.ring.count) {
        uint32_t task = mr_sched__ring_pop(&s->memory_retry.ring, s->config.tasks_max);
        /* a task that is not ready leaves the ring, and enters it again when it is ready */
        if (is_retry_ready(s, task)) return task;
    }
    return NONE;
}

void mr_sched__memory_retry_dispatch(struct mr_sched *s)
{
    /* The task for which the node is kept free lost an input. The tasks that compute the input
     * again need the node. */
    if (s->memory_retry.reserved_task != NONE &&
        s->tasks[s->memory_retry.reserved_task].state != MR_TASK_RUNNING)
        s->memory_retry.reserved_task = NONE;
    if (s->memory_retry.reserved_task != NONE) {
        /* workers of the node that have registered meanwhile get no more tasks either */
        reserve_node(s, s->memory_retry.reserved_store);
        return;
    }
    uint32_t task = next_retry(s);
    if (task == NONE || job_of(s, task)->flags & J_HELD_BACK) {
        reserve_node(s, 0);
        if (task != NONE) mr_sched__memory_retry_add(s, task);
        return;
    }
    const struct class *c = &s->classes[s->tasks[task].class];
    bool is_last = s->tasks[task].oom_retries == OOM_RETRIES_MAX;
    uint32_t store = find_store(s, c);
    if (is_last && may_lost_hold(s, store))
        store = 0; /* no node is kept free while a lost worker there may have objects pinned */
    reserve_node(s, store);
    bool may_go = store && !is_busy(s, store) && !(is_last && may_anyone_hold(s, store));
    uint32_t w = may_go ? find_worker(s, store, c) : NONE;
    if (w != NONE) {
        s->memory_retry.reserved_task = task;
        s->memory_retry.is_disturbed = false;
        mr_sched__send(s, task, w);
        return;
    }
    /* a task that waits until other tasks have ended must not cause a tick */
    bool had_work = s->has_work;
    mr_sched__memory_retry_add(s, task);
    s->has_work = had_work;
}

static uint64_t inputs_bytes(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    uint64_t bytes = 0;
    const uint32_t *in = mr_graph_inputs(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n && !mr_sched__is_by_reference(s, task); i++)
        if (mr_sched__is_object(s, j->base + in[i]))
            bytes += s->values[s->tasks[j->base + in[i]].value].bytes;
    return bytes;
}

static void fail(
    struct mr_sched *s, uint32_t task, uint32_t worker, bool was_alone, struct mr_str why)
{
    const struct worker *w = &s->workers[worker];
    const char *alone =
        s->stores[w->store].lost_name
            ? ", though nothing else ran on its node, unless a worker that was lost "
              "there still does"
            : ", though nothing else ran on its node";
    const struct mr_graph *g = job_of(s, task)->graph;
    struct mr_str key = mr_graph_key(g, index_of(s, task));
    char in[MR_BYTES_TEXT_MAX], memory[MR_BYTES_TEXT_MAX], text[MR_ERROR_TEXT_MAX];
    mr_bytes_text(inputs_bytes(s, task), in);
    const char *disk = s->stores[w->store].disk_full;
    uint64_t most = s->stores[w->store].memory_bytes;
    mr_bytes_text(most, memory);
    if (*disk && inputs_bytes(s, task) <= most)
        (void)snprintf(text, sizeof text,
            "\"%.*s\" found no space left on %s of node \"%.60s\": its inputs are %s, and %.*s; the "
            "object store's memory is %s, and what does not fit is written there: make space, or give "
            "the store more memory (--memory)",
            (int)MR_MIN(key.n, (size_t)120), key.p, disk, w->facts->node, in,
            (int)MR_MIN(why.n, (size_t)300), why.p, memory);
    else
        (void)snprintf(text, sizeof text,
            "\"%.*s\" needs more memory at once than there is: its inputs are %s, and %.*s%s; the "
            "object store of node \"%.60s\" has %s: give it more (--memory), or make the parts smaller",
            (int)MR_MIN(key.n, (size_t)120), key.p, in, (int)MR_MIN(why.n, (size_t)300), why.p,
            was_alone ? alone : "", w->facts->node, memory);
    struct failure st = mr_sched__failure_make(s, task, 8, mr_str(text), w->facts->name);
    mr_sched__task_fail(s, task, &st);
    mr_sched__failure_fini(&st);
}

/* True: on the node of `store`, tasks that are not long-running are running, or a process may still
 * hold objects. Asked when a long-running task was refused there. No node is kept free for a
 * long-running task, because it may never end. So its refused attempts count only if this function
 * returns false. */
static bool ran_beside_others(const struct mr_sched *s, uint32_t store)
{
    return is_busy(s, store) || may_anyone_hold(s, store);
}

void mr_sched__memory_retry_refused(
    struct mr_sched *s, uint32_t task, uint32_t worker, struct mr_str why)
{
    struct task *t = &s->tasks[task];
    uint32_t store = s->workers[worker].store;
    uint64_t memory = s->stores[store].memory_bytes;
    bool is_long = t->flags & T_LONG;
    bool was_alone = s->memory_retry.reserved_task == task && !s->memory_retry.is_disturbed &&
                     !may_anyone_hold(s, s->memory_retry.reserved_store);
    mr_sched__task_unsend(s, task);
    bool never = memory && inputs_bytes(s, task) > memory;
    bool is_last = is_long ? !ran_beside_others(s, store) : was_alone;
    if (never || (is_last && t->oom_retries == OOM_RETRIES_MAX)) {
        fail(s, task, worker, was_alone, why);
        return;
    }
    /* Other tasks were beside the long-running task. So its `oom_retries` becomes 2, which is less
     * than OOM_RETRIES_MAX. */
    if (is_long && !is_last) t->oom_retries = 1;
    if (t->oom_retries < OOM_RETRIES_MAX) t->oom_retries++;
    mr_sched__task_requeue(s, task);
}

void mr_sched__memory_retry_explain(const struct mr_sched *s, uint32_t task, struct mr_buf *out)
{
    if (s->memory_retry.reserved_task == task)
        mr_buf_add_text(out,
            "nothing else is sent to its node meanwhile: beside other tasks it found no room in "
            "memory for its inputs and its result\n");
    else if (s->tasks[task].oom_retries > 1)
        mr_buf_add_text(out,
            "it found no room in memory for its inputs and its result beside those of "
            "other tasks: it runs next with nothing else on its node\n");
    else if (s->tasks[task].oom_retries)
        mr_buf_add_text(out,
            "it found no room in memory for its inputs and its result beside those of other "
            "tasks: it released its inputs and is tried again\n");
}
