/* Where a task goes: to its data if that is not slower than waiting there, else to the least
 * loaded; root tasks after their siblings, so that a reduction finds its inputs in one place. All
 * in integers of estimated nanoseconds; ties go to the worker that was found first, which is the
 * data's, then the one given work longest ago. */
#include "services/scheduler/core/place/place.h"

#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/placement_table.h"
#include "services/scheduler/core/place/placement_cache.h"
#include "services/scheduler/core/state/cost.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"

#define SLOT_QUEUE_MAX 4096 /* tasks, however short */
#define AHEAD 6             /* queues of work may be sent there in all, with what is not ready */
#define BATCH_BYTES_MAX ((size_t)4 << 20)
#define LONG_MAX 64   /* long-running tasks of a worker, as its own bound */
#define LONG_PLAIN 48 /* of those, for tasks that nobody called urgent */
#define LOOK_MAX 64   /* workers looked at for one that can */
#define INPUTS_MAX 16 /* inputs looked at */
#define SIBLING_NS (200 * MR_US)
#define DISK_NS_PER_BYTE 2 /* out and back */
#define STICKY_NS (500 * MR_US)
#define WARM_NS (100 * MR_US)
#define WARM_BYTES_MAX ((uint64_t)1 << 20) /* more that the warmer of two idle workers may hold */
#define TRANSFER_NS (50 * MR_US)           /* of any object, before its first byte */
#define MESSAGE_NS MR_US                   /* of a small value */

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

/* Many that wait for others, as queue.put does, must not take the last place from those they wait
 * for: these ask for a priority. */
static uint32_t long_max(const struct mr_sched *s, const struct task *t)
{
    const struct job *j = job_at(s, t);
    const struct mr_task_options *o =
        mr_graph_options(j->graph, (uint32_t)(t - s->tasks) - j->base);
    return j->priority > 0 || (o && o->priority > 0) ? LONG_MAX : LONG_PLAIN;
}

/* Of unknown length one a slot, else as much as its queue should hold, and two a slot however long
 * they are, so that the next one's inputs come in time; three for a job of which nothing runs yet,
 * so that it waits for what runs and not for what waits. `queues`: so many times as much. */
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

/* Does all that was sent there wait for its inputs? Then it may be for just the task that seeks a
 * place, and the queue would stay full for ever. `but_long`: or runs long, which may wait for it,
 * too. */
static bool has_only_waiting(const struct mr_sched *s, const struct worker *w, bool but_long)
{
    for (uint32_t t = w->sent_head; t != NONE; t = s->tasks[t].next)
        if (s->tasks[t].state == MR_TASK_RUNNING && !(but_long && s->tasks[t].flags & T_LONG))
            return false;
    return true;
}

/* Has this worker a place for one more? */
static bool has_room(
    const struct mr_sched *s, uint32_t worker, const struct task *t, uint32_t queues)
{
    const struct worker *w = &s->workers[worker];
    const struct mr_sched_batch *b = s->fx->worker[worker];
    if (!mr_sched__load_is_usable(w)) return false;
    if (b && b->args.n + b->value_inline.n > BATCH_BYTES_MAX) return false;
    if (has_place(s, w, t, queues)) return true;
    bool takes_resources = t->class >= s->config.ops_max; /* what runs long may have them */
    return t->state == MR_TASK_READY &&
           has_only_waiting(s, w, !takes_resources && !(t->flags & T_LONG));
}

bool mr_sched__has_room(const struct mr_sched *s, uint32_t worker, const struct task *t)
{
    return has_room(s, worker, t, 1);
}

/* For what waits where it ran in the round before: it takes no slot from anybody meanwhile, and
 * with several rounds a worker goes on by itself. Not at its first placing, which is for all rounds
 * and would heap up what waits for one input where that is made. */
bool mr_sched__has_room_again(const struct mr_sched *s, uint32_t worker, const struct task *t)
{
    return has_room(s, worker, t, t->state == MR_TASK_WAITING ? AHEAD : 1);
}

bool mr_sched__is_universal(const struct mr_sched *s, const struct task *t)
{
    return t->class < s->config.ops_max && s->ops[t->class].workers == s->worker_list.live;
}

/* What it takes to bring a value to a worker. */
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
    if (c->names_count && c->any_worker && !is_named(w, c)) ns += MR_SECOND; /* it was a wish */
    return ns;
}

/* Would a task sent to `from` be given to `worker` if it came back now, together with `taken` ns of
 * others? By a margin that no preference of place_root outweighs. */
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

/* Would one more large result be too much for this store, together with those that are coming? Then
 * they come one at a time, lest each slot opens another branch of the graph; and one a worker where
 * making them takes longer than the disk: waiting for memory would cost more than it spares. */
static bool is_store_crowded(const struct store *st, const struct op *o, bool is_busy)
{
    uint64_t all = st->kept_bytes + st->coming_bytes + o->large_bytes;
    if (!st->memory_bytes || all <= st->memory_bytes / 4 * 3) return false;
    uint64_t ns = o->cpu_ns ? o->cpu_ns / o->tasks : o->estimate_ns; /* not what others took */
    bool is_slow = ns / DISK_NS_PER_BYTE > o->large_bytes;
    return is_busy || (!is_slow && st->coming_bytes >= o->large_bytes);
}

/* Does memory want no more root tasks of this kind here? One may always run, or nothing would ever
 * be freed. Those whose results, as measured, are large wait for a store that is nearly full, and
 * for what is being used up: that makes room. */
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
        uint32_t next = s->workers[w].bucket_next; /* most likely the one after this */
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

/* May a lone task go where the last one went? That worker's caches are warm, and it may still be
 * looking for work. Only what is known to be short gains by that; the values of others draw what
 * comes later, and had better lie on several workers. */
static bool is_warm(const struct mr_sched *s, uint32_t worker, uint32_t least, const struct task *t)
{
    uint64_t ns = s->ops[s->classes[t->class].op].estimate_ns;
    if (!ns || ns > WARM_NS || t->flags & T_LONG) return false;
    if (s->queue.count > 1 || worker == least || !may_go(s, worker, t)) return false;
    const struct worker *w = &s->workers[worker];
    return !w->sent && w->held_bytes <= s->workers[least].held_bytes + WARM_BYTES_MAX;
}

/* What runs long takes no slot, and shows in no load: it goes where the fewest such tasks are,
 * among those the one with the least other work. Roles of a training would otherwise gather in one
 * process, by what siblings prefer, beside others that have nothing to do. */
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

/* A task without inputs: after its siblings, a stretch at a time. */
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

/* Sent ahead: only where all that it waits for was sent. What refers to its inputs is not: which
 * attempt's value it would name is known only when they are done. */
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
