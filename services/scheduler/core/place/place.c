/* Placement: chooses the worker for a task. A root is a task without inputs, or with literals only.
 * A sibling of a task is another input of the same consumer. A keeper is a worker that keeps the
 * value of an input. A crowded worker has too little memory for the result of another root. The
 * sticky worker is the one that place_root chose last to take several roots in a row. The warm
 * worker is the sticky worker while it is idle: its CPU caches still help a short root.
 *
 * The first rule that applies decides:
 *
 *  1. mr_sched__cached (placement_cache.c): a task of a loop or template goes to its cached worker.
 *  2. place_ahead: a task whose inputs do not all exist goes to the worker that got all tasks that
 *     make the missing inputs. If there is no such worker, the task is placed when it is ready.
 *  3. may_go: all rules below pass over a worker that may not run the task (mr_sched__may_run) or
 *     has no room for it (mr_sched__has_room).
 *  4. fewest_long: a long-running task goes to a worker that it prefers (the option `workers` with
 *     `allow_other_workers`).
 *  5. place_by_data: a task with inputs goes to the worker with the earliest estimated start: its
 *     load plus the time to transfer the inputs that it lacks (the earliest-start rule of list
 *     scheduling). Candidates are the keepers of inputs, the least loaded of the preferred workers,
 *     and the least loaded worker.
 *  6. place_root: a root passes over crowded workers (mr_sched__is_crowded).
 *     Long-running roots are spread (fewest_long). Other roots go to a preferred worker, to the
 *     worker of a sibling, to the warm worker, to the sticky worker, or to the least loaded one.
 *
 * Quarantined tasks and memory retries do not pass through this file: quarantine.c and
 * memory_retry.c choose their workers. dispatch.c decides which task is placed next, and its
 * function steal may move a task later (it asks mr_sched__is_better).
 *
 * Times are integers, in estimated nanoseconds. The costs of transfers are rough: they have to rank
 * workers, not to predict times. Ties go to the candidate looked at first: a keeper, then the
 * worker that got work longest ago.
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
/* On its cached worker (placement_cache.h), a task that waits for inputs may find this many times
 * the usual amount of work in the queue. */
#define QUEUES_AHEAD 6
#define BATCH_BYTES_MAX ((size_t)4 << 20)
/* limit of long-running tasks of a worker; the worker checks the same bound */
#define LONG_MAX 64
/* a worker that has this many long-running tasks gets no further one without a priority */
#define LONG_PLAIN 48
/* limit of workers visited in the order of load, if every worker may run the task */
#define LOAD_LOOK_MAX 64
#define INPUTS_MAX 16 /* one placement looks at this many inputs at most */
#define KEEPERS_MAX 4 /* one placement scores this many keepers of inputs at most */

/* Bounds and margins, in ns. */
/* load by which a sibling's worker may exceed the least load */
#define SIBLING_NS (200 * MR_US)
/* work that goes to one worker (the sticky worker) before another is chosen */
#define STICKY_NS (500 * MR_US)
#define WARM_NS (100 * MR_US)    /* longest task for which a warm CPU cache matters */
#define PREFERENCE_NS MR_SECOND  /* delay that a task accepts for a worker that it prefers */
#define TRANSFER_NS (50 * MR_US) /* fixed cost to transfer an object */
#define MESSAGE_NS MR_US         /* fixed cost of a small value, which travels in a message */

/* Rates. Decision 019 has measured 1.3 to 3.6 bytes/ns between two stores. */
#define OBJECT_BYTES_PER_NS 2
#define MESSAGE_BYTES_PER_NS 4
#define DISK_NS_PER_BYTE 2 /* assumed time to spill a value and to read it back, in all */

/* The warm worker is the sticky worker while it is idle. It is chosen before the least loaded
 * worker if its values have at most this many bytes more than those of the least loaded worker. */
#define WARM_BYTES_MAX ((uint64_t)1 << 20)

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

/* True: tasks of the class prefer the workers and nodes in c->names, but may run on others. */
static bool has_preference(const struct class *c)
{
    return c->names_count && c->any_worker;
}

static bool is_long(const struct mr_sched *s, const struct task *t)
{
    return t->flags & T_LONG || s->ops[s->classes[t->class].op].long_running;
}

/* Returns how many long-running tasks a worker may have if `t` is to be one of them. A long-running
 * task may wait for another one: for example, queue.put waits for a task that takes items from the
 * queue. The roles of a training (parameter server, worker, scorer) are tasks with a priority. Some
 * of a worker's LONG_MAX are reserved for tasks with a priority, so that other tasks cannot keep
 * the roles out. */
static uint32_t long_max(const struct mr_sched *s, const struct task *t)
{
    const struct job *j = job_at(s, t);
    const struct mr_task_options *o =
        mr_graph_options(j->graph, (uint32_t)(t - s->tasks) - j->base);
    return j->priority > 0 || (o && o->priority > 0) ? LONG_MAX : LONG_PLAIN;
}

/* True: the worker's queue has room for the task. While the run time of the task's operator is
 * unknown, the queue takes one such task for each slot. It takes other tasks up to `queues` times
 * the configured amount of work, and at least two tasks for each slot, so that the inputs of the
 * next task arrive in time. If no task of a job runs, the queue takes the job's ready tasks up to
 * three tasks for each slot, so that such a job seldom waits for room. The tasks of a worker may
 * need up to twice the worker's resources in total. Long-running tasks have a limit of their own
 * (long_max). */
static bool queue_has_room(
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

/* True: all tasks on the worker wait for inputs. One of these inputs may be the value of the task
 * that is being placed, so a full queue must not keep that task out. `but_long`: a
 * long-running task counts as waiting, too, because it may wait for the job of the task that is
 * being placed. */
static bool has_only_waiting(const struct mr_sched *s, const struct worker *w, bool but_long)
{
    for (uint32_t t = w->sent_head; t != NONE; t = s->tasks[t].next)
        if (s->tasks[t].state == MR_TASK_RUNNING && !(but_long && s->tasks[t].flags & T_LONG))
            return false;
    return true;
}

static bool worker_has_room(
    const struct mr_sched *s, uint32_t worker, const struct task *t, uint32_t queues)
{
    const struct worker *w = &s->workers[worker];
    /* outside of a step there are no effects: mr_sched_explain calls this function between two
     * steps */
    const struct mr_sched_batch *b = s->fx ? s->fx->worker[worker] : NULL;
    if (!mr_sched__load_is_usable(w)) return false;
    if (b && b->args.n + b->value_inline.n > BATCH_BYTES_MAX) return false;
    if (queue_has_room(s, w, t, queues)) return true;
    /* The queue is full, but the worker takes a ready task if all tasks there wait. A long-running
     * task there counts as one that waits, with two exceptions. First, the task to place is
     * long-running, too (long_max limits these). Second, the task to place takes resources, which
     * the long-running task may hold until its end. */
    bool takes_resources = t->class >= s->config.ops_max;
    return t->state == MR_TASK_READY &&
           has_only_waiting(s, w, !takes_resources && !(t->flags & T_LONG));
}

bool mr_sched__has_room(const struct mr_sched *s, uint32_t worker, const struct task *t)
{
    return worker_has_room(s, worker, t, 1);
}

/* A task of a loop or template may go to its cached worker before the task's inputs exist. Then
 * the worker's queue may be longer than usual, because the task takes no slot while it waits. With
 * several rounds in its queue, the worker goes on without the scheduler. The first placement of the
 * task, which holds for later rounds and jobs, allows only the usual length. Otherwise all tasks
 * that wait for one input would be put on the worker that computes the input. */
bool mr_sched__has_room_in_cache(const struct mr_sched *s, uint32_t worker, const struct task *t)
{
    return worker_has_room(s, worker, t, t->state == MR_TASK_WAITING ? QUEUES_AHEAD : 1);
}

bool mr_sched__all_may_run(const struct mr_sched *s, const struct task *t)
{
    return t->class < s->config.ops_max && s->ops[t->class].workers == s->worker_list.live;
}

/* Returns the time to transfer the value of an input to a worker. `score` calls this function only
 * for tasks that are ready or run, so all inputs have values. */
static uint64_t transfer_ns(
    const struct mr_sched *s, const struct task *u, const struct worker *w, uint32_t worker)
{
    if (u->value == LITERAL) return 0;
    const struct value *v = &s->values[u->value];
    if (v->worker == worker) return 0;
    if (v->kind != V_OBJECT) return MESSAGE_NS + v->bytes / MESSAGE_BYTES_PER_NS;
    /* without a store it is not known which node has the object: no worker is nearer than another
     */
    if (!v->store || v->store == w->store) return 0;
    return TRANSFER_NS + v->bytes / OBJECT_BYTES_PER_NS;
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
    if (has_preference(c) && !is_named(w, c)) ns += PREFERENCE_NS;
    return ns;
}

/* Decides for work stealing whether `worker` takes the task from the worker `from`. `taken` is the
 * run time of the tasks that `worker` already takes from `from`. True: `worker` may run the task
 * and has room for it, and the estimated start there is more than SIBLING_NS earlier than on
 * `from`.
 *
 * A stolen task is placed again. near_sibling has the same margin, so it does not choose `from`.
 * The rule for the sticky worker may return stolen tasks to `from`, at most STICKY_NS of work. */
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

/* True: one more large result would be too much for the store, beside the values that it keeps and
 * the results being computed. Large results are then computed one at a time; else each slot would
 * begin another branch of the graph. The exception are results that take longer to compute than to
 * spill: each worker may compute one, because waiting would cost more than it saves. */
static bool is_store_crowded(const struct store *st, const struct op *o, bool is_busy)
{
    uint64_t all = st->kept_bytes + st->coming_bytes + o->large_bytes;
    if (!st->memory_bytes || all <= st->memory_bytes / 4 * 3) return false;
    /* CPU time excludes waits for other processes */
    uint64_t ns = o->cpu_ns ? o->cpu_ns / o->tasks : o->estimate_ns;
    bool is_slow = ns / DISK_NS_PER_BYTE > o->large_bytes;
    return is_busy || (!is_slow && st->coming_bytes >= o->large_bytes);
}

/* True: the root has to wait, for the worker's memory or for its store. Adds 1 to *held if the
 * reason is the store. */
static bool is_crowded(
    const struct mr_sched *s, const struct worker *w, const struct task *t, uint64_t *held)
{
    uint64_t used = MR_MAX(w->held_bytes, w->memory_used_bytes);
    bool is_full = w->memory_bytes && used > w->memory_bytes / 4 * 3;
    const struct op *o = &s->ops[s->classes[t->class].op];
    if (!is_full && !o->large_bytes) return false;
    bool is_busy = !has_only_waiting(s, w, true);
    if (is_busy && (is_full || s->memory_order.count)) return true;
    if (!o->large_bytes) return false;
    bool is_held = is_store_crowded(&s->stores[w->store], o, is_busy);
    *held += is_held;
    return is_held;
}

/* Back-pressure on producers: true if the root `t` has to wait. A worker is busy if it has a
 * running task that is not long-running.
 *
 * - While more than three quarters of a worker's memory are in use, the worker gets no root if it
 *   is busy: the running tasks may free memory. A worker that is not busy may get the root, because
 *   waiting would free nothing.
 * - A root whose measured results are large waits while the store is nearly full. It is not sent to
 *   a busy worker while consumers are sent first to free memory (memory_order.c). */
bool mr_sched__is_crowded(struct mr_sched *s, const struct worker *w, const struct task *t)
{
    return is_crowded(s, w, t, &s->totals.roots_held);
}

static uint32_t least_loaded(struct mr_sched *s, const struct task *t, bool is_root)
{
    const struct class *c = &s->classes[t->class];
    bool all_may_run = mr_sched__all_may_run(s, t);
    uint32_t look = all_may_run ? LOAD_LOOK_MAX : s->load.workers;
    for (uint32_t w = mr_sched__load_least(s); w != NONE && look--; w = mr_sched__load_next(s, w)) {
        if (!all_may_run && !mr_sched__may_run(s, w, c)) continue;
        if (is_root && mr_sched__is_crowded(s, &s->workers[w], t)) continue;
        if (!mr_sched__has_room(s, w, t)) continue;
        /* The next call usually looks at this worker first, so its row is prefetched. */
        uint32_t next = s->workers[w].bucket_next;
        if (next != NONE) {
            __builtin_prefetch(&s->workers[next]);
            __builtin_prefetch(&s->workers[next].held_bytes);
        }
        return w;
    }
    return NONE;
}

bool mr_sched__any_has_room(struct mr_sched *s, const struct task *t)
{
    return least_loaded(s, t, false) != NONE;
}

static bool may_go(const struct mr_sched *s, uint32_t worker, const struct task *t)
{
    if (worker == NONE || !mr_sched__has_room(s, worker, t)) return false;
    return mr_sched__all_may_run(s, t) || mr_sched__may_run(s, worker, &s->classes[t->class]);
}

/* True: the task is short and comes alone, so it may go to the idle worker where the last root
 * went: the CPU caches there are warm, and the worker may still poll for work. Longer tasks gain
 * nothing by that, and their values attract later tasks, so they are spread over workers. */
static bool is_warm(const struct mr_sched *s, uint32_t worker, uint32_t least, const struct task *t)
{
    uint64_t ns = s->ops[s->classes[t->class].op].estimate_ns;
    if (!ns || ns > WARM_NS || t->flags & T_LONG) return false;
    if (s->queue.count > 1 || worker == least || !may_go(s, worker, t)) return false;
    const struct worker *w = &s->workers[worker];
    return !w->sent && w->held_bytes <= s->workers[least].held_bytes + WARM_BYTES_MAX;
}

/* Returns the least loaded of the workers that the task prefers and that have room for it; NONE:
 * there is no such worker. */
static uint32_t preferred_worker(struct mr_sched *s, const struct task *t, bool is_root)
{
    const struct class *c = &s->classes[t->class];
    if (!has_preference(c)) return NONE;
    for (uint32_t w = mr_sched__load_least(s); w != NONE; w = mr_sched__load_next(s, w)) {
        if (!is_named(&s->workers[w], c) || !may_go(s, w, t)) continue;
        if (!is_root || !mr_sched__is_crowded(s, &s->workers[w], t)) return w;
    }
    return NONE;
}

/* Returns the worker for a long-running task, which takes no slot and does not count as load: the
 * worker with the fewest long-running tasks; of several, the least loaded one. NONE: no worker has
 * room. By the rule for siblings all roles of a training, which are long-running tasks, would run
 * in one process. `preferred`: considers only workers that the task prefers. */
static uint32_t fewest_long(struct mr_sched *s, const struct task *t, bool is_root, bool preferred)
{
    const struct class *c = &s->classes[t->class];
    uint32_t best = NONE, look = mr_sched__all_may_run(s, t) ? LOAD_LOOK_MAX : s->load.workers;
    for (uint32_t w = mr_sched__load_least(s); w != NONE && look--; w = mr_sched__load_next(s, w)) {
        if (preferred && !is_named(&s->workers[w], c)) continue;
        if (!may_go(s, w, t)) continue;
        if (is_root && mr_sched__is_crowded(s, &s->workers[w], t)) continue;
        if (best == NONE || s->workers[w].long_sent < s->workers[best].long_sent) best = w;
        if (!s->workers[best].long_sent) break;
    }
    return best;
}

/* True: the worker may run the root `t`, has room for it and is not crowded. */
static bool may_take_root(struct mr_sched *s, uint32_t worker, const struct task *t)
{
    return may_go(s, worker, t) && !mr_sched__is_crowded(s, &s->workers[worker], t);
}

/* Returns the worker to which a sibling was sent; a sibling is another input of the same consumer.
 * So a reduction finds its inputs on one worker. NONE: no sibling was sent, or that worker cannot
 * take the root or has too high a load. */
static uint32_t near_sibling(struct mr_sched *s, uint32_t task, uint32_t least)
{
    const struct task *t = &s->tasks[task];
    const struct job *j = job_of(s, task);
    uint32_t n, near = t->worker;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    if (near == NONE && n) near = s->tasks[j->base + d[0]].worker;
    uint64_t load = mr_sched__load(&s->workers[least]);
    bool is_near = near != least && may_take_root(s, near, t) &&
                   mr_sched__load(&s->workers[near]) <= load + SIBLING_NS;
    return is_near ? near : NONE;
}

/* Returns the worker for a root; NONE: the root has to wait. The sticky worker got the last roots,
 * and gets the next ones until a quantum of work was sent to it. Then the least loaded worker
 * becomes the sticky one. So neighbours in the order of the graph share a worker, and a short queue
 * is still spread over all slots. */
static uint32_t place_root(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    if (is_long(s, t)) return fewest_long(s, t, true, false);
    uint32_t least = least_loaded(s, t, true);
    if (least == NONE) return NONE;
    uint32_t liked = preferred_worker(s, t, true);
    if (liked != NONE && score(s, task, liked) <= score(s, task, least)) return liked;
    uint32_t near = near_sibling(s, task, least);
    if (near != NONE) return near;
    uint64_t ns = mr_sched__estimate(s, s->classes[t->class].op);
    uint32_t w = s->sticky.worker;
    if (is_warm(s, w, least, t)) return w;
    if (s->sticky.left_ns >= ns && may_take_root(s, w, t)) {
        s->sticky.left_ns -= ns;
        return w;
    }
    /* half of one slot's equal share of the queued run time, as if each queued task took `ns` */
    uint64_t share = s->queue.count * ns / (2 * (uint64_t)MR_MAX(s->load.slots, 1u));
    s->sticky.left_ns = MR_MIN(share, (uint64_t)STICKY_NS);
    s->sticky.worker = least;
    return least;
}

/* Some inputs of the task do not exist yet. Returns the worker to which all tasks that make these
 * inputs were sent. NONE: the task is not sent before its inputs exist. A task whose value will
 * refer to its inputs is never sent so early, because the id of an input is known only when the
 * input exists. */
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
    if (!may_go(s, worker, t)) return NONE;
    const struct class *c = &s->classes[t->class];
    bool is_liked = !has_preference(c) || is_named(&s->workers[worker], c);
    return is_liked || preferred_worker(s, t, false) == NONE ? worker : NONE;
}

static uint32_t keeper_of(const struct mr_sched *s, uint32_t task)
{
    const struct task *u = &s->tasks[task];
    return is_done(u) && u->value < LITERAL ? s->values[u->value].worker : NONE;
}

/* True: at least one of the first INPUTS_MAX inputs of the task is not a literal of the graph.
 * False: the task counts as a root. */
static bool has_data(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    for (uint32_t i = 0; i < n && i < INPUTS_MAX; i++)
        if (s->tasks[j->base + in[i]].value != LITERAL) return true;
    return false;
}

struct choice { /* the best worker so far; NONE: none */
    uint32_t worker;
    uint64_t ns;
};

static void compare(const struct mr_sched *s, uint32_t task, uint32_t worker, struct choice *best)
{
    if (worker == NONE || worker == best->worker) return;
    uint64_t ns = score(s, task, worker);
    if (ns < best->ns) *best = (struct choice){worker, ns};
}

static uint32_t place_by_data(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct job *j = job_of(s, task);
    uint32_t n, looked = 0, last = NONE;
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    struct choice best = {NONE, UINT64_MAX};
    for (uint32_t i = 0; i < n && i < INPUTS_MAX && looked < KEEPERS_MAX; i++) {
        uint32_t w = keeper_of(s, j->base + in[i]);
        if (w == NONE || w == last || !may_go(s, w, t)) continue;
        last = w;
        looked++;
        compare(s, task, w, &best);
    }
    compare(s, task, preferred_worker(s, t, false), &best);
    compare(s, task, least_loaded(s, t, false), &best);
    return best.worker;
}

static uint32_t place(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    if (t->state == MR_TASK_WAITING) return place_ahead(s, task);
    bool is_root = !has_data(s, task);
    if (has_preference(&s->classes[t->class]) && is_long(s, t)) {
        uint32_t w = fewest_long(s, t, is_root, true);
        if (w != NONE) return w;
    }
    return is_root ? place_root(s, task) : place_by_data(s, task);
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

bool mr_sched__waits_for_memory(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    uint64_t held = 0;
    bool has_room = false;
    if (t->state != MR_TASK_READY || has_data(s, task)) return false;
    for (uint32_t w = mr_sched__load_least(s); w != NONE; w = mr_sched__load_next(s, w)) {
        if (!may_go(s, w, t)) continue;
        if (!is_crowded(s, &s->workers[w], t, &held)) return false;
        has_room = true;
    }
    return has_room;
}
