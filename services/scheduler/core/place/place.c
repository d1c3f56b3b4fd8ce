/* Placement: a task goes to the worker with the earliest estimated start, which is the worker's
 * queued work plus the transfer time of inputs that it lacks (the earliest-start rule of list
 * scheduling). Candidates are the workers that have inputs, and the least loaded worker. A task
 * without inputs goes where its siblings went, so that a reduction finds its inputs in one place.
 * Times are integers, in estimated nanoseconds. Ties go to the candidate looked at first: one with
 * data, then the one that got work longest ago.
 *
 * This file and placement_cache.c call each other: placement asks the cache first, and the cache
 * asks whether a worker has room. */
#include "services/scheduler/core/place/place.h"

#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/placement_table.h"
#include "services/scheduler/core/place/placement_cache.h"
#include "services/scheduler/core/state/cost.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"

#define SLOT_QUEUE_MAX 4096 /* tasks queued for each slot, however short they are */
#define AHEAD 6             /* tasks that are not ready may make a queue so many times as long */
#define BATCH_BYTES_MAX ((size_t)4 << 20)
#define LONG_MAX 64   /* long-running tasks of a worker; the worker checks the same bound */
#define LONG_PLAIN 48 /* of these, tasks without a priority */
#define LOOK_MAX 64   /* candidates that one placement looks at */
#define INPUTS_MAX 16 /* inputs that one placement looks at */
#define SIBLING_NS (200 * MR_US)
#define DISK_NS_PER_BYTE 2 /* to spill and to read back */
#define STICKY_NS (500 * MR_US)
#define WARM_NS (100 * MR_US)
/* of two idle workers, the one used last is preferred if it holds at most so many bytes more */
#define WARM_BYTES_MAX ((uint64_t)1 << 20)
#define TRANSFER_NS (50 * MR_US) /* fixed cost of an object */
#define MESSAGE_NS MR_US         /* cost of a small value */

static bool has_op(const struct mr_sched *s, uint32_t worker, uint32_t op)
{
    return s->worker_list.op_bits[(size_t)worker * s->worker_list.op_words + op / 64] >> (op % 64) &
           1;
}

static bool is_named(const struct worker *w, const struct class *c)
{
    for (uint32_t i = 0; i < c->names_count; i++)
        if (mr_str_eq(c->names[i], mr_str(w->facts->name)) ||
            mr_str_eq(c->names[i], mr_str(w->facts->node)))
            return true;
    return false;
}

bool mr_sched__may_run(const struct mr_sched *s, uint32_t worker, const struct class *c)
{
    const struct worker *w = &s->workers[worker];
    if (!has_op(s, worker, c->op)) return false;
    for (uint32_t r = 0; r < s->class_list.resources_count; r++)
        if (c->need[r] > w->facts->capacity[r]) return false;
    return c->any_worker || is_named(w, c);
}

/* Long-running tasks may wait for others, as queue.put does. So that they do not take every place,
 * some places are reserved for tasks with a priority, which those others have. */
static uint32_t long_max(const struct mr_sched *s, const struct task *t)
{
    const struct job *j = job_at(s, t);
    const struct mr_task_options *o =
        mr_graph_options(j->graph, (uint32_t)(t - s->tasks) - j->base);
    return j->priority > 0 || (o && o->priority > 0) ? LONG_MAX : LONG_PLAIN;
}

/* True: the worker's queue has room. Of tasks with unknown run time it takes one for each slot. Of
 * others it takes the configured amount of work, and at least two for each slot, so that inputs of
 * the next one arrive in time; three for a job of which nothing runs, so that the job waits for
 * running tasks only. `queues`: factor on the configured amount. */
static bool has_place(
    const struct mr_sched *s, const struct worker *w, const struct task *t, uint32_t queues)
{
    const struct class *c = &s->classes[t->class];
    if (t->class >= s->config.ops_max)
        for (uint32_t r = 0; r < s->class_list.resources_count; r++)
            if (c->need[r] && w->facts->taken[r] + c->need[r] > 2 * w->facts->capacity[r])
                return false;
    if (t->flags & T_LONG) return w->long_sent < long_max(s, t);
    uint32_t sent = w->sent - w->long_sent;
    if (!s->ops[c->op].estimate_ns) return w->unknown < w->slots;
    if (sent >= w->slots * SLOT_QUEUE_MAX) return false;
    if (sent < 2 * w->slots || w->queue_ns < queues * s->config.queue * w->slots) return true;
    return sent < 3 * w->slots && t->state == MR_TASK_READY &&
           !job_at(s, t)->counts[MR_TASK_RUNNING];
}

/* True: all tasks of the worker wait for inputs. They may wait for the very task that is placed, so
 * a full queue must not keep it out. `but_long`: long-running tasks count as waiting, because they
 * may wait for it, too. */
static bool has_only_waiting(const struct mr_sched *s, const struct worker *w, bool but_long)
{
    for (uint32_t t = w->sent_head; t != NONE; t = s->tasks[t].next)
        if (s->tasks[t].state == MR_TASK_RUNNING && !(but_long && s->tasks[t].flags & T_LONG))
            return false;
    return true;
}

static bool has_room(
    const struct mr_sched *s, uint32_t worker, const struct task *t, uint32_t queues)
{
    const struct worker *w = &s->workers[worker];
    const struct mr_sched_batch *b = s->fx->worker[worker];
    if (!mr_sched__load_is_usable(w)) return false;
    if (b && b->args.n + b->value_inline.n > BATCH_BYTES_MAX) return false;
    if (has_place(s, w, t, queues)) return true;
    /* a long-running task may hold the resources that waiting ones need */
    bool takes_resources = t->class >= s->config.ops_max;
    return t->state == MR_TASK_READY &&
           has_only_waiting(s, w, !takes_resources && !(t->flags & T_LONG));
}

bool mr_sched__has_room(const struct mr_sched *s, uint32_t worker, const struct task *t)
{
    return has_room(s, worker, t, 1);
}

/* Room for a task of a loop that is sent to the worker of its last round before its inputs exist. A
 * longer queue than usual: the task takes no slot while it waits, and with several rounds queued a
 * worker goes on without the scheduler. Not for the first placement, which holds for all rounds: it
 * would put all tasks that wait for one input on the worker that computes the input. */
bool mr_sched__has_room_again(const struct mr_sched *s, uint32_t worker, const struct task *t)
{
    return has_room(s, worker, t, t->state == MR_TASK_WAITING ? AHEAD : 1);
}

bool mr_sched__is_universal(const struct mr_sched *s, const struct task *t)
{
    return t->class < s->config.ops_max && s->ops[t->class].workers == s->worker_list.live;
}

/* The time to transfer a value to a worker. */
static uint64_t transfer_ns(
    const struct mr_sched *s, const struct task *u, const struct worker *w, uint32_t worker)
{
    if (!is_done(u)) return u->flags & T_SENT && u->worker == worker ? 0 : 10 * MESSAGE_NS;
    if (u->value == LITERAL) return 0;
    const struct value *v = &s->values[u->value];
    if (v->worker == worker) return 0;
    if (v->kind != V_OBJECT) return MESSAGE_NS + v->bytes / 4;
    if (!v->store || v->store == w->store) return 0;
    return TRANSFER_NS + v->bytes / 2;
}

static uint64_t score(const struct mr_sched *s, uint32_t task, uint32_t worker)
{
    const struct job *j = job_of(s, task);
    const struct worker *w = &s->workers[worker];
    uint32_t n;
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    uint64_t ns = mr_sched__load(w);
    for (uint32_t i = 0; i < n && i < INPUTS_MAX; i++)
        ns += transfer_ns(s, &s->tasks[j->base + in[i]], w, worker);
    const struct class *c = &s->classes[s->tasks[task].class];
    /* a preference for named workers */
    if (c->names_count && c->any_worker && !is_named(w, c)) ns += MR_SECOND;
    return ns;
}

/* True: a task that was sent to `from` would now be placed on `worker`, which also gets `taken` ns
 * of others. The margin is larger than each preference of place_root, so that tasks do not move
 * back. */
bool mr_sched__is_better(
    const struct mr_sched *s, uint32_t task, uint32_t worker, uint32_t from, uint64_t taken)
{
    const struct task *t = &s->tasks[task];
    if (!mr_sched__may_run(s, worker, &s->classes[t->class]) || !mr_sched__has_room(s, worker, t))
        return false;
    uint64_t less = (taken + t->estimate) / s->workers[from].slots;
    uint64_t more = taken / s->workers[worker].slots + SIBLING_NS;
    return score(s, task, worker) + more + less < score(s, task, from);
}

/* True: one more large result would be too much for this store, with those being computed. Then
 * they are computed one at a time, since each slot would begin another branch of the graph. If
 * computing one takes longer than spilling it, each worker may compute one: waiting costs more than
 * it saves. */
static bool is_store_crowded(const struct store *st, const struct op *o, bool is_busy)
{
    uint64_t all = st->kept_bytes + st->coming_bytes + o->large_bytes;
    if (!st->memory_bytes || all <= st->memory_bytes / 4 * 3) return false;
    /* CPU time excludes waits for other processes */
    uint64_t ns = o->cpu_ns ? o->cpu_ns / o->tasks : o->estimate_ns;
    bool is_slow = ns / DISK_NS_PER_BYTE > o->large_bytes;
    return is_busy || (!is_slow && st->coming_bytes >= o->large_bytes);
}

/* True: memory is too full for another root task of this operator (back-pressure on producers). One
 * may always run, or nothing would be freed. Tasks whose measured results are large wait while the
 * store is nearly full, and while consumers of values are sent to free memory. */
bool mr_sched__is_crowded(struct mr_sched *s, const struct worker *w, const struct task *t)
{
    uint64_t used = MR_MAX(w->held_bytes, w->memory_used_bytes);
    bool is_full = w->memory_bytes && used > w->memory_bytes / 4 * 3;
    const struct op *o = &s->ops[s->classes[t->class].op];
    if (!is_full && !o->large_bytes) return false;
    bool is_busy = !has_only_waiting(s, w, true);
    if (is_busy && (is_full || s->memory_order.count)) return true;
    if (!o->large_bytes) return false;
    bool is_crowded = is_store_crowded(&s->stores[w->store], o, is_busy);
    s->totals.roots_held += is_crowded;
    return is_crowded;
}

static uint32_t least_loaded(struct mr_sched *s, const struct task *t, bool is_root)
{
    const struct class *c = &s->classes[t->class];
    bool is_universal = mr_sched__is_universal(s, t);
    uint32_t look = is_universal ? LOOK_MAX : s->load.workers;
    for (uint32_t w = mr_sched__load_least(s); w != NONE && look--; w = mr_sched__load_next(s, w)) {
        if (!is_universal && !mr_sched__may_run(s, w, c)) continue;
        if (is_root && mr_sched__is_crowded(s, &s->workers[w], t)) continue;
        if (!mr_sched__has_room(s, w, t)) continue;
        /* prefetched: usually the next candidate */
        uint32_t next = s->workers[w].bucket_next;
        if (next != NONE) {
            __builtin_prefetch(&s->workers[next]);
            __builtin_prefetch(&s->workers[next].held_bytes);
        }
        return w;
    }
    return NONE;
}

bool mr_sched__has_place(struct mr_sched *s, const struct task *t)
{
    return least_loaded(s, t, false) != NONE;
}

static bool may_go(const struct mr_sched *s, uint32_t worker, const struct task *t)
{
    if (worker == NONE || !mr_sched__has_room(s, worker, t)) return false;
    return mr_sched__is_universal(s, t) || mr_sched__may_run(s, worker, &s->classes[t->class]);
}

/* True: a task that comes alone may go where the last one went: the CPU caches there are warm, and
 * the worker may still poll for work. Only tasks that are known to be short gain by that. Values of
 * longer tasks attract later tasks and should be spread over workers. */
static bool is_warm(const struct mr_sched *s, uint32_t worker, uint32_t least, const struct task *t)
{
    uint64_t ns = s->ops[s->classes[t->class].op].estimate_ns;
    if (!ns || ns > WARM_NS || t->flags & T_LONG) return false;
    if (s->queue.count > 1 || worker == least || !may_go(s, worker, t)) return false;
    const struct worker *w = &s->workers[worker];
    return !w->sent && w->held_bytes <= s->workers[least].held_bytes + WARM_BYTES_MAX;
}

/* A long-running task takes no slot and does not count as load. It goes to the worker with the
 * fewest such tasks; among these, to the least loaded. By the rule for siblings all roles of a
 * training would run in one process. */
static uint32_t place_long(struct mr_sched *s, const struct task *t)
{
    uint32_t best = NONE, look = mr_sched__is_universal(s, t) ? LOOK_MAX : s->load.workers;
    for (uint32_t w = mr_sched__load_least(s); w != NONE && look--; w = mr_sched__load_next(s, w)) {
        if (!may_go(s, w, t) || mr_sched__is_crowded(s, &s->workers[w], t)) continue;
        if (best == NONE || s->workers[w].long_sent < s->workers[best].long_sent) best = w;
        if (!s->workers[best].long_sent) break;
    }
    return best;
}

/* A task without inputs goes where its siblings went, until a quantum of work was sent there. */
static uint32_t place_root(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct job *j = job_of(s, task);
    if (t->flags & T_LONG || s->ops[s->classes[t->class].op].long_running) return place_long(s, t);
    uint32_t least = least_loaded(s, t, true);
    if (least == NONE) return NONE;
    uint32_t n, near = t->worker;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    if (near == NONE && n) near = s->tasks[j->base + d[0]].worker;
    uint64_t load = mr_sched__load(&s->workers[least]);
    if (near != least && may_go(s, near, t) && !mr_sched__is_crowded(s, &s->workers[near], t) &&
        mr_sched__load(&s->workers[near]) <= load + SIBLING_NS)
        return near;
    uint64_t ns = mr_sched__estimate(s, s->classes[t->class].op);
    uint32_t w = s->sticky.worker;
    if (is_warm(s, w, least, t)) return w;
    if (s->sticky.left_ns >= ns && may_go(s, w, t) && !mr_sched__is_crowded(s, &s->workers[w], t)) {
        s->sticky.left_ns -= ns;
        return w;
    }
    uint64_t share = s->queue.count * ns / (2 * (uint64_t)MR_MAX(s->load.slots, 1u));
    s->sticky.left_ns = MR_MIN(share, (uint64_t)STICKY_NS);
    s->sticky.worker = least;
    return least;
}

/* A task that is sent before its inputs exist goes where all of them were sent. Not a task whose
 * value will refer to its inputs: the ids of these are known only when they are done. */
static uint32_t place_ahead(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct job *j = job_of(s, task);
    uint32_t n, worker = NONE;
    if (mr_sched__is_by_reference(s, task) || !mr_sched__loop_may_go_ahead(s, task)) return NONE;
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    for (uint32_t i = 0; i < n; i++) {
        const struct task *u = &s->tasks[j->base + in[i]];
        if (is_done(u)) continue;
        if (!(u->flags & T_SENT) || (worker != NONE && worker != u->worker)) return NONE;
        if (u->flags & (T_QUARANTINED | T_LONG | T_STEALING)) return NONE;
        worker = u->worker;
    }
    return may_go(s, worker, t) ? worker : NONE;
}

static uint32_t holder_of(const struct mr_sched *s, uint32_t task)
{
    const struct task *u = &s->tasks[task];
    return is_done(u) && u->value < LITERAL ? s->values[u->value].worker : NONE;
}

static uint32_t place(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct job *j = job_of(s, task);
    uint32_t n;
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    if (t->state == MR_TASK_WAITING) return place_ahead(s, task);
    uint32_t best = NONE, looked = 0, last = NONE;
    uint64_t best_ns = UINT64_MAX;
    bool has_data = false;
    for (uint32_t i = 0; i < n && i < INPUTS_MAX && looked < 4; i++) {
        uint32_t w = holder_of(s, j->base + in[i]);
        has_data |= s->tasks[j->base + in[i]].value != LITERAL;
        if (w == NONE || w == last || !may_go(s, w, t)) continue;
        last = w;
        looked++;
        uint64_t ns = score(s, task, w);
        if (ns >= best_ns) continue;
        best = w;
        best_ns = ns;
    }
    if (!has_data) return place_root(s, task);
    uint32_t w = least_loaded(s, t, false);
    if (w == NONE || w == best) return best;
    return score(s, task, w) < best_ns ? w : best;
}

uint32_t mr_sched__place(struct mr_sched *s, uint32_t task)
{
    bool is_gone = false;
    uint32_t w = mr_sched__cached(s, task, &is_gone);
    if (w != NONE) return w;
    w = place(s, task);
    s->totals.placed_repaired += w != NONE && is_gone;
    s->totals.placed_scored += w != NONE && !is_gone;
    if (is_gone && w != NONE) mr_sched__cache_forget(s, task);
    return w;
}
