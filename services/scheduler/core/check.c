/* Asserts each invariant of the state, in time proportional to the state's size: for the simulator
 * and tests. I11, for example, is the invariant of that number in docs/invariants.md. */
#include "services/scheduler/core/check.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "services/scheduler/core/core.h"
#include "services/scheduler/core/index/job_index.h"
#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/placement_table.h"
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

/* Compares a job's tasks, their order by priority, and the job's loops with the job's graph. */
static void check_graph(const struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    const struct mr_graph *g = j->graph;
    uint32_t targets = 0;
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        const struct task *t = &s->tasks[j->base + i];
        const struct mr_task_options *o = mr_graph_options(g, i);
        targets += (t->flags & T_TARGET) != 0;
        if (g->kind[i] != MR_NODE_TASK) continue;
        mr_assert(!(t->flags & T_FIXED));
        mr_assert(s->classes[t->class].op == j->ops[g->op[i]]);
        mr_assert(((t->flags & T_IMPURE) != 0) == !mr_graph_is_pure(g, i));
        mr_assert(t->retries_left <= (o ? o->retries : 0));
        if (o && o->long_running) mr_assert(t->flags & T_LONG);
        mr_assert(s->classes[t->class].names_count == (o ? o->workers_count : 0));
    }
    for (uint32_t i = 0; i < g->targets_count; i++)
        mr_assert(s->tasks[j->base + g->targets[i]].flags & T_TARGET);
    mr_assert(targets <= g->targets_count);
    for (uint32_t i = 1; j->flags & J_RANKED && i < g->nodes_count; i++) {
        const struct mr_task_options *a =
            mr_graph_options(g, s->queue.ranked[j->base + i - 1] - j->base);
        const struct mr_task_options *b =
            mr_graph_options(g, s->queue.ranked[j->base + i] - j->base);
        mr_assert((a ? a->priority : 0) >= (b ? b->priority : 0));
    }
    for (uint32_t l = 0; j->loops && l < g->loops_count; l++) {
        const struct loop *x = &j->loops[l];
        mr_assert(x->at < g->loops[l].rounds && (x->stop == NONE || x->stop < g->loops[l].rounds));
        mr_assert(!x->is_over || x->stop != NONE);
    }
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

/* Checks three counts of a running job: targets that have neither a value nor a failure, targets
 * that failed, and tasks that failed because another task failed. */
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

/* I11 for each operator */
static void check_ops(const struct mr_sched *s, const struct job *j)
{
    const struct mr_graph *g = j->graph;
    MR_AUTO(mr_free_ptr) struct op_tasks *seen = mr_alloc_array(g->ops_count + 1, sizeof *seen);
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        if (g->kind[i] != MR_NODE_TASK) continue;
        seen[g->op[i]].tasks++;
        seen[g->op[i]].ended += s->tasks[j->base + i].state > MR_TASK_RUNNING;
    }
    for (uint32_t op = 0; op < g->ops_count; op++)
        mr_assert(!memcmp(&seen[op], &j->op_tasks[op], sizeof *seen));
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
    check_graph(s, job);
    check_consumers(s, job);
    check_targets(s, job);
    check_ops(s, j);
}

/* Checks the worker in `slot`: its list of sent tasks, and its sums over these tasks. */
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

/* Checks two sums of a store: the bytes of objects that workers keep in the store, and the tasks
 * that are computing large results for the store. */
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

/* Checks each class's list of parked tasks, for which no worker was found, and the list of classes
 * with parked tasks. */
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

/* Checks that the counts of workers, operators and jobs are true. */
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
        /* a job that is being forgotten is no longer in the list that orders jobs by age */
        jobs += !(s->jobs[i].flags & J_FORGETTING);
        queued += s->jobs[i].queued;
        reclaims += (s->jobs[i].flags & J_RECLAIMING) != 0;
        mr_assert(!s->jobs[i].unreclaimed == !(s->jobs[i].flags & J_RECLAIMING));
    }
    for (uint32_t i = 0; i < s->config.failures_max; i++)
        stories += s->failures.at[i].task != NONE;
    mr_assert(live == s->worker_list.live);
    mr_assert(jobs == s->job_list.count && queued == s->queue.count &&
              reclaims == s->job_list.reclaims_count);
    mr_assert(stories == s->failures.index.count);
}

/* True: the task is in the ring. */
static bool is_in_ring(const struct mr_sched *s, const struct task_ring *r, uint32_t task)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->at[(r->first + i) % s->config.tasks_max] == task) return true;
    return false;
}

/* Checks that each ready task is where dispatch finds it: queued, parked (waiting on the list of
 * its class), in the ring of quarantined tasks, or in the ring of memory retries. */
static void check_ready(const struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    if (j->flags & (J_STOPPED | J_FORGETTING)) return;
    for (uint32_t i = 0; i < j->graph->nodes_count; i++) {
        const struct task *t = &s->tasks[j->base + i];
        if (t->state != MR_TASK_READY || t->flags & (T_QUEUED | T_PARKED)) continue;
        mr_assert(t->flags & T_QUARANTINED || t->oom_retries > 1);
        mr_assert(is_in_ring(s, &s->quarantine.ring, j->base + i) ||
                  is_in_ring(s, &s->memory_retry.ring, j->base + i));
    }
}

/* Checks the bits of the ready queue and their count. A bit of an upper level says whether a word
 * of the level below is nonzero. */
static void check_bits(const struct mr_sched *s)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < s->job_list.top; i++) {
        const struct job *j = &s->jobs[i];
        for (uint32_t k = 0; j->id && k < j->graph->nodes_count; k++) {
            uint32_t task = j->base + k, at = place_of(s, task);
            bool is_set = s->queue.bits[0][at >> 6] >> (at & 63) & 1;
            mr_assert(is_set == ((s->tasks[task].flags & T_QUEUED) != 0));
            mr_assert(!(j->flags & J_RANKED) || s->queue.ranked[at] == task);
        }
    }
    for (uint32_t at = 0; at < s->numbers.top / 64; at++)
        count += (uint64_t)__builtin_popcountll(s->queue.bits[0][at]);
    mr_assert(count == s->queue.count);
    for (uint32_t level = 1, words = s->numbers.top / 64; level < 4;
         level++, words = words / 64 + 1)
        for (uint32_t at = 0; at < words; at++)
            mr_assert((s->queue.bits[level][at >> 6] >> (at & 63) & 1) ==
                      (s->queue.bits[level - 1][at] != 0));
}

/* Checks the task numbers: each number belongs to one job or is free, and no two free ranges
 * touch. */
static void check_numbers(const struct mr_sched *s)
{
    const struct extent *x = s->numbers.free;
    uint64_t taken = 0;
    for (uint32_t i = 0; i < s->job_list.top; i++)
        if (s->jobs[i].id) taken += s->jobs[i].span;
    for (uint32_t i = 0; i < s->numbers.free_count; i++) {
        mr_assert(x[i].count && x[i].at + x[i].count <= s->numbers.top);
        mr_assert(!i || x[i - 1].at + x[i - 1].count < x[i].at);
        taken += x[i].count;
    }
    mr_assert(taken == s->numbers.top);
}

/* Checks the list that orders jobs by age, and the indexes of jobs by id and by request id. */
static void check_job_list(const struct mr_sched *s)
{
    uint32_t count = 0, older = NONE, requests = 0;
    for (uint32_t i = s->job_list.oldest; i != NONE; i = s->jobs[i].newer) {
        const struct job *j = &s->jobs[i];
        mr_assert(j->older == older && mr_sched__job_find(s, j->id) == i);
        struct mr_str request = j->graph->job.request_id;
        requests += request.n && mr_sched__request_find(s, request) == i;
        older = i;
        count++;
    }
    mr_assert(s->job_list.newest == older);
    mr_assert(s->job_list.count == count && s->job_list.by_id.count == count);
    mr_assert(s->job_list.by_request.count == requests);
}

/* Checks the lists of tasks that share a key. Checks the count of skipped tasks: those in rounds of
 * a loop after its last round. */
static void check_shared(const struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    uint32_t users = 0, skipped = 0;
    for (uint32_t i = 0; i < j->graph->nodes_count; i++) {
        uint32_t task = j->base + i, head = s->keys.head[task];
        mr_assert((head != 0) == ((s->tasks[task].flags & T_HAS_SHARERS) != 0));
        mr_assert((s->keys.source[task] != 0) == ((s->tasks[task].flags & T_SHARED) != 0));
        for (; head; head = s->keys.next[head - 1]) {
            mr_assert(s->keys.source[head - 1] == task + 1);
            users++;
        }
    }
    mr_assert(j->users == users);
    for (uint32_t l = 0; j->loops && l < j->graph->loops_count; l++)
        if (j->loops[l].stop != NONE) skipped += mr_graph_loop_tail(j->graph, l, j->loops[l].stop);
    mr_assert(j->skipped == skipped);
}

/* Checks the members `users`: a special class (struct class) counts the tasks that have it, and a
 * placement table (struct shape) counts the jobs that use it. */
static void check_users(const struct mr_sched *s)
{
    for (uint32_t c = s->config.ops_max; c < s->class_list.top; c++) {
        uint32_t users = 0;
        for (uint32_t i = 0; i < s->job_list.top; i++)
            for (uint32_t k = 0; s->jobs[i].id && k < s->jobs[i].graph->nodes_count; k++)
                users += s->tasks[s->jobs[i].base + k].class == c;
        mr_assert(s->classes[c].users == users);
    }
    for (uint32_t x = 0; x < SHAPES_MAX; x++) {
        uint32_t users = 0;
        for (uint32_t i = 0; i < s->job_list.top; i++)
            users += s->jobs[i].id && s->jobs[i].shape_1 == x + 1;
        mr_assert(s->placements.at[x].users == users);
    }
}

/* Checks that the core's deadline is not later than the end of any lease, the deadline of any job,
 * or the next announcement of progress. */
static void check_due(const struct mr_sched *s)
{
    mr_time deadline = mr_sched_deadline(s);
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        const struct worker *w = &s->workers[i];
        if (w->state == W_FREE) continue;
        mr_assert(deadline <= MR_MAX(mr_time_after(w->last_heard, s->config.lease), s->now));
    }
    for (uint32_t i = 1; i <= s->store_list.count; i++) {
        const struct store *st = &s->stores[i];
        if (st->is_alive && *st->node && !st->is_expected)
            mr_assert(deadline <= MR_MAX(mr_time_after(st->last_heard, s->config.lease), s->now));
    }
    for (uint32_t i = 0; i < s->job_list.top; i++) {
        const struct job *j = &s->jobs[i];
        if (!j->id || j->state >= MR_JOB_DONE) continue;
        mr_assert(deadline <= MR_MAX(j->deadline, s->now));
        if (j->flags & J_DIRTY && j->flags & J_ACCEPTED)
            mr_assert(deadline <= s->now + 100 * MR_MS);
    }
}

/* Checks the worker that is kept free for a quarantined task, the workers that get no other task
 * while they have a quarantined one, and the node that is kept free for a memory retry. */
static void check_reserved(const struct mr_sched *s)
{
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        const struct worker *w = &s->workers[i];
        if (w->state == W_FREE) continue;
        mr_assert(w->is_reserved == (s->quarantine.reserved == i));
        if (w->is_node_reserved) mr_assert(w->store == s->memory_retry.reserved_store);
        if (w->is_closed) mr_assert(w->probation != NONE);
        if (w->probation == NONE) continue;
        mr_assert(s->tasks[w->probation].worker == i);
        mr_assert(s->tasks[w->probation].flags & T_QUARANTINED);
    }
}

/* Checks the order and the counts in the ring `pending`. It has what the core announces only after
 * Redis has acknowledged a record of the journal. */
static void check_promises(const struct mr_sched *s)
{
    uint64_t values = s->journal.open_count, sequence = 0, bytes = s->journal.acked_bytes;
    for (uint64_t i = s->journal.pending_at; i < s->journal.pending_end; i++) {
        const struct pending *p = &s->journal.pending[i % s->config.tasks_max];
        if (p->type == P_VALUES) values += p->count;
        mr_assert(p->sequence >= sequence && p->sequence <= s->journal.sequence);
        mr_assert(p->bytes >= bytes && p->bytes <= s->journal.written_bytes);
        sequence = p->sequence;
        bytes = p->bytes;
    }
    mr_assert(values == s->journal.unacked_end - s->journal.unacked_at);
    mr_assert(s->journal.acked_bytes <= s->journal.written_bytes);
}

/* Checks the lists of free value records and free blocks, and the flags of values. */
static void check_free(const struct mr_sched *s)
{
    uint32_t values = 0, blocks = 0;
    for (uint32_t v = s->value_list.free; v != NONE; v = s->values[v].next) {
        mr_assert(s->values[v].kind == V_FREE);
        values++;
    }
    mr_assert(values + s->value_list.count == s->value_list.top);
    for (uint32_t b = s->blocks.free; b != NONE; b = s->blocks.at[b].next)
        blocks++;
    mr_assert(blocks + s->config.inline_blocks - s->blocks.top == s->blocks.left);
    for (uint32_t i = 0; i < s->value_list.top; i++) {
        const struct value *v = &s->values[i];
        if (v->kind == V_FREE) continue;
        if (v->flags & V_FETCHING) mr_assert(v->kind == V_AWAY && v->worker != NONE);
        if (v->flags & V_LAST) mr_assert(v->worker != NONE);
        if (v->flags & V_HELD) mr_assert(v->kind == V_OBJECT && v->store);
    }
}

void mr_sched_check(const struct mr_sched *s)
{
    uint32_t running = 0;
    for (uint32_t i = 0; i < s->job_list.top; i++) {
        if (!s->jobs[i].id) continue;
        if (s->is_recovered) check_job(s, i);
        if (s->is_recovered) check_ready(s, i);
        if (s->is_recovered) check_shared(s, i);
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
    check_numbers(s);
    check_job_list(s);
    check_users(s);
    check_reserved(s);
    check_promises(s);
    if (s->is_recovered) mr_sched__value_check(s);
    if (s->is_recovered) check_free(s);
    if (s->is_recovered) check_bits(s);
    if (s->is_recovered) check_due(s);
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

/* Called by the simulator when every job is forgotten. Returns the name of what is left, which is a
 * leak; NULL: nothing is left. */
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
