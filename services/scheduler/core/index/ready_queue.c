/* Ready tasks in the order in which they run. Jobs with queued tasks are in a heap, by priority and
 * virtual time. In a job the lowest place goes first; a hierarchical bit set over all task numbers
 * finds it (four levels; a bit of a level says whether a word of the level below is nonzero). A
 * place is the number of a task, or its rank in a job whose tasks have priorities. Task numbers
 * follow the depth-first order of the graph (lib/graph/order.c), so that consumers of a value run
 * soon after it was computed and the value can be released early.
 *
 * Jobs of one priority share the workers by start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM
 * 1996), with estimated run time in the place of packet length. The virtual time of a job is the
 * work of its tasks that were sent; the job with the least virtual time goes first. A job that
 * enters the queue starts at the clock of its priority, less a credit that lets a small job
 * overtake large ones. The clock is never below the least virtual time of the queued jobs. It
 * advances by the work that is sent, divided by the number of queued jobs. So the jobs in the queue
 * get their share however many jobs arrive. Work is charged a quantum at a time, so that tasks of
 * one job stay together and the heap changes seldom. */
#include "services/scheduler/core/index/ready_queue.h"

#include "base/assert.h"
#include "services/scheduler/core/state/lookup.h"

#define QUANTUM_NS MR_MS
#define CREDIT_NS (10 * MR_MS)
#define TASK_NS_MIN 200 /* a job is charged at least this much work for each task */

static bool goes_before(const struct mr_sched *s, uint32_t a, uint32_t b)
{
    return mr_sched__job_before(&s->jobs[a], &s->jobs[b]);
}

static uint32_t level_at(const struct job *j)
{
    int32_t most = MR_MIN(j->priority, (int32_t)MR_PRIORITY_MAX);
    return (uint32_t)(MR_MAX(most, (int32_t)-MR_PRIORITY_MAX) + MR_PRIORITY_MAX);
}

/* Returns the level of the job's priority. A new level starts at the highest clock that any level
 * had, so that its jobs are not owed work of the past. */
static struct level *level_of(struct mr_sched *s, const struct job *j)
{
    struct level *l = &s->queue.levels[level_at(j)];
    if (!l->is_used) *l = (struct level){.is_used = true, .clock = s->queue.clock};
    return l;
}

/* Advances the clock, and increases the job's virtual time by charged_ns, the work of the job that
 * was sent since the last call. */
static void settle(struct mr_sched *s, struct job *j)
{
    if (!j->charged_ns) return;
    struct level *l = level_of(s, j);
    /* bounds how far one long task moves the clock */
    uint64_t most = MR_MIN(j->charged_ns, (uint64_t)QUANTUM_NS);
    const struct job *first = s->queue.heap_count ? &s->jobs[s->queue.heap[0]] : j;
    uint64_t least = first->priority == j->priority ? first->virtual_ns : j->virtual_ns;
    l->clock = MR_MAX(l->clock + most / MR_MAX(l->jobs, 1u) + 1, MR_MIN(least, j->virtual_ns));
    s->queue.clock = MR_MAX(s->queue.clock, l->clock);
    j->virtual_ns += j->charged_ns;
    j->charged_ns = 0;
}

static void enter(struct mr_sched *s, struct job *j)
{
    struct level *l = level_of(s, j);
    l->jobs++;
    uint64_t from = l->clock > CREDIT_NS ? l->clock - CREDIT_NS : 0;
    j->virtual_ns = MR_MAX(j->virtual_ns, from);
}

static void leave(struct mr_sched *s, struct job *j)
{
    settle(s, j);
    struct level *l = level_of(s, j);
    mr_assert(l->jobs);
    l->jobs--;
}

static void heap_set(struct mr_sched *s, uint32_t at, uint32_t job)
{
    s->queue.heap[at] = job;
    s->jobs[job].heap_at = at;
}

static void heap_up(struct mr_sched *s, uint32_t at)
{
    uint32_t job = s->queue.heap[at];
    while (at > 0 && goes_before(s, job, s->queue.heap[(at - 1) / 2])) {
        heap_set(s, at, s->queue.heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_set(s, at, job);
}

static void heap_down(struct mr_sched *s, uint32_t at)
{
    uint32_t job = s->queue.heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= s->queue.heap_count) break;
        if (child + 1 < s->queue.heap_count &&
            goes_before(s, s->queue.heap[child + 1], s->queue.heap[child]))
            child++;
        if (!goes_before(s, s->queue.heap[child], job)) break;
        heap_set(s, at, s->queue.heap[child]);
        at = child;
    }
    heap_set(s, at, job);
}

void mr_sched__queue_job_changed(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    bool should = j->queued && !(j->flags & (J_HELD_BACK | J_STOPPED | J_FORGETTING));
    if (should == (j->heap_at != NONE)) return;
    if (should) {
        enter(s, j);
        heap_set(s, s->queue.heap_count++, job);
        heap_up(s, j->heap_at);
        s->has_work = true;
        return;
    }
    uint32_t at = j->heap_at;
    j->heap_at = NONE;
    leave(s, j);
    uint32_t last = s->queue.heap[--s->queue.heap_count];
    if (last == job) return;
    heap_set(s, at, last);
    heap_up(s, at);
    heap_down(s, s->jobs[last].heap_at);
}

void mr_sched__queue_charge(struct mr_sched *s, uint32_t task)
{
    struct job *j = job_of(s, task);
    j->charged_ns += MR_MAX(s->tasks[task].estimate, (uint32_t)TASK_NS_MIN);
    if (j->charged_ns < QUANTUM_NS) return;
    settle(s, j);
    if (j->heap_at != NONE) heap_down(s, j->heap_at);
}

void mr_sched__queue_put(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    mr_assert(!(t->flags & (T_QUEUED | T_PARKED | T_SENT)));
    t->flags |= T_QUEUED;
    uint32_t at = place_of(s, task);
    for (uint32_t level = 0; level < 4; level++) {
        uint64_t *word = &s->queue.bits[level][at >> 6];
        bool was_empty = !*word;
        *word |= 1ull << (at & 63);
        if (!was_empty) break;
        at >>= 6;
    }
    s->queue.count++;
    s->has_work = true;
    if (!job_of(s, task)->queued++) mr_sched__queue_job_changed(s, job_no(s, t));
}

void mr_sched__queue_drop(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    mr_assert(t->flags & T_QUEUED);
    t->flags = (uint16_t)(t->flags & ~T_QUEUED);
    uint32_t at = place_of(s, task);
    for (uint32_t level = 0; level < 4; level++) {
        uint64_t *word = &s->queue.bits[level][at >> 6];
        *word &= ~(1ull << (at & 63));
        if (*word) break;
        at >>= 6;
    }
    s->queue.count--;
    if (!--job_of(s, task)->queued) mr_sched__queue_job_changed(s, job_no(s, t));
}

uint32_t mr_sched__queue_job(const struct mr_sched *s)
{
    return s->queue.heap_count ? s->queue.heap[0] : NONE;
}

/* Returns the first set bit at or after `at`: goes up a level while a word is empty, then down to
 * the bit. */
static uint32_t next_bit(const struct mr_sched *s, uint32_t at)
{
    uint32_t level = 0;
    for (;;) {
        uint64_t word = s->queue.bits[level][at >> 6] >> (at & 63) << (at & 63);
        if (word) {
            at = (at & ~63u) | (uint32_t)__builtin_ctzll(word);
            break;
        }
        mr_assert(level < 3);
        at = (at >> 6) + 1;
        level++;
    }
    while (level--)
        at = at << 6 | (uint32_t)__builtin_ctzll(s->queue.bits[level][at]);
    return at;
}

uint32_t mr_sched__queue_first(const struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    if (!j->queued) return NONE;
    uint32_t at = next_bit(s, j->base);
    mr_assert(at < j->base + j->span);
    return j->flags & J_RANKED ? s->queue.ranked[at] : at;
}

static void check_levels(const struct mr_sched *s)
{
    uint32_t jobs[LEVELS] = {0};
    for (uint32_t i = 0; i < s->queue.heap_count; i++)
        jobs[level_at(&s->jobs[s->queue.heap[i]])]++;
    for (uint32_t l = 0; l < LEVELS; l++)
        mr_assert(s->queue.levels[l].jobs == jobs[l]);
}

void mr_sched__queue_check(const struct mr_sched *s)
{
    check_levels(s);
    for (uint32_t i = 0; i < s->queue.heap_count; i++) {
        const struct job *j = &s->jobs[s->queue.heap[i]];
        mr_assert(j->heap_at == i);
        mr_assert(j->queued);
        mr_assert(i == 0 || !goes_before(s, s->queue.heap[i], s->queue.heap[(i - 1) / 2]));
    }
}
