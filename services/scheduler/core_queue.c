/* What is ready, in the order in which it is to run: jobs by (priority, age) in a heap of those
 * that have anything queued; inside a job the lowest place first, found in bits over all task
 * numbers with three summing levels above. A place is the task's number, or, in a job whose tasks
 * have priorities, its rank. */
#include "services/scheduler/core_do.h"

static bool goes_before(const struct mr_sched *s, uint32_t a, uint32_t b)
{
    const struct job *x = &s->jobs[a], *y = &s->jobs[b];
    if (x->priority != y->priority) return x->priority > y->priority;
    return x->serial < y->serial;
}

static void heap_set(struct mr_sched *s, uint32_t at, uint32_t job)
{
    s->heap[at] = job;
    s->jobs[job].heap_at = at;
}

static void heap_up(struct mr_sched *s, uint32_t at)
{
    uint32_t job = s->heap[at];
    while (at > 0 && goes_before(s, job, s->heap[(at - 1) / 2])) {
        heap_set(s, at, s->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_set(s, at, job);
}

static void heap_down(struct mr_sched *s, uint32_t at)
{
    uint32_t job = s->heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= s->heap_count) break;
        if (child + 1 < s->heap_count && goes_before(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (!goes_before(s, s->heap[child], job)) break;
        heap_set(s, at, s->heap[child]);
        at = child;
    }
    heap_set(s, at, job);
}

void mr_sc_queue_job_changed(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    bool should = j->queued && !(j->flags & (J_HELD_BACK | J_STOPPED | J_FORGETTING));
    if (should == (j->heap_at != NONE)) return;
    if (should) {
        heap_set(s, s->heap_count++, job);
        heap_up(s, j->heap_at);
        s->has_work = true;
        return;
    }
    uint32_t at = j->heap_at;
    j->heap_at = NONE;
    uint32_t last = s->heap[--s->heap_count];
    if (last == job) return;
    heap_set(s, at, last);
    heap_up(s, at);
    heap_down(s, s->jobs[last].heap_at);
}

void mr_sc_queue_put(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    mr_assert(!(t->flags & (T_QUEUED | T_PARKED | T_SENT)));
    t->flags |= T_QUEUED;
    uint32_t at = place_of(s, task);
    for (uint32_t level = 0; level < 4; level++) {
        uint64_t *word = &s->queue[level][at >> 6];
        bool was_empty = !*word;
        *word |= 1ull << (at & 63);
        if (!was_empty) break;
        at >>= 6;
    }
    s->queued++;
    s->has_work = true;
    if (!job_of(s, task)->queued++) mr_sc_queue_job_changed(s, job_no(s, t));
}

void mr_sc_queue_drop(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    mr_assert(t->flags & T_QUEUED);
    t->flags = (uint16_t)(t->flags & ~T_QUEUED);
    uint32_t at = place_of(s, task);
    for (uint32_t level = 0; level < 4; level++) {
        uint64_t *word = &s->queue[level][at >> 6];
        *word &= ~(1ull << (at & 63));
        if (*word) break;
        at >>= 6;
    }
    s->queued--;
    if (!--job_of(s, task)->queued) mr_sc_queue_job_changed(s, job_no(s, t));
}

uint32_t mr_sc_queue_job(const struct mr_sched *s)
{
    return s->heap_count ? s->heap[0] : NONE;
}

/* The first set bit at or after `at`: up while a word is empty, then down to the bit. */
static uint32_t next_bit(const struct mr_sched *s, uint32_t at)
{
    uint32_t level = 0;
    for (;;) {
        uint64_t word = s->queue[level][at >> 6] >> (at & 63) << (at & 63);
        if (word) {
            at = (at & ~63u) | (uint32_t)__builtin_ctzll(word);
            break;
        }
        mr_assert(level < 3);
        at = (at >> 6) + 1;
        level++;
    }
    while (level--)
        at = at << 6 | (uint32_t)__builtin_ctzll(s->queue[level][at]);
    return at;
}

uint32_t mr_sc_queue_first(const struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    if (!j->queued) return NONE;
    uint32_t at = next_bit(s, j->base);
    mr_assert(at < j->base + j->span);
    return j->flags & J_RANKED ? s->ranked[at] : at;
}

void mr_sc_queue_check(const struct mr_sched *s)
{
    for (uint32_t i = 0; i < s->heap_count; i++) {
        const struct job *j = &s->jobs[s->heap[i]];
        mr_assert(j->heap_at == i);
        mr_assert(j->queued);
        mr_assert(i == 0 || !goes_before(s, s->heap[i], s->heap[(i - 1) / 2]));
    }
}
