/* Workers by load, in buckets of a logarithmic scale: eight buckets for each doubling of the load.
 * Finding the least and the most loaded worker takes the same time with ten workers as with ten
 * thousand. In a bucket, the worker that got work longest ago comes first. */
#include "services/scheduler/core/index/load_index.h"

#include "base/assert.h"

static uint32_t bucket_of(const struct worker *w)
{
    uint64_t v = mr_sched__load(w) >> 10;
    if (v < 8) return (uint32_t)v + (v == 0 && w->sent > 0);
    uint32_t e = 63 - (uint32_t)__builtin_clzll(v);
    return (e - 2) * 8 + (uint32_t)((v >> (e - 3)) & 7);
}

static void take_out(struct mr_sched *s, struct worker *w)
{
    uint32_t b = w->bucket;
    if (w->bucket_prev == NONE)
        s->load.head[b] = w->bucket_next;
    else
        s->workers[w->bucket_prev].bucket_next = w->bucket_next;
    if (w->bucket_next == NONE)
        s->load.tail[b] = w->bucket_prev;
    else
        s->workers[w->bucket_next].bucket_prev = w->bucket_prev;
    if (s->load.head[b] == NONE) s->load.bits[b / 64] &= ~(1ull << (b % 64));
    w->bucket = NONE;
}

static void put_in(struct mr_sched *s, uint32_t worker, uint32_t b)
{
    struct worker *w = &s->workers[worker];
    w->bucket = b;
    w->bucket_next = NONE;
    w->bucket_prev = s->load.tail[b];
    if (w->bucket_prev == NONE)
        s->load.head[b] = worker;
    else
        s->workers[w->bucket_prev].bucket_next = worker;
    s->load.tail[b] = worker;
    s->load.bits[b / 64] |= 1ull << (b % 64);
}

void mr_sched__load_changed(struct mr_sched *s, uint32_t worker, bool to_tail)
{
    struct worker *w = &s->workers[worker];
    if (worker == s->load.held_out) return;
    uint32_t b = mr_sched__load_is_usable(w) ? bucket_of(w) : NONE;
    if (b == w->bucket && !(to_tail && b != NONE)) return;
    if (w->bucket != NONE) {
        take_out(s, w);
        s->load.workers--;
        s->load.slots -= w->slots;
    }
    if (b == NONE) return;
    put_in(s, worker, b);
    s->load.workers++;
    s->load.slots += w->slots;
}

static uint32_t first_from(const struct load_index *l, uint32_t bucket)
{
    for (uint32_t i = bucket / 64; i < LOAD_BUCKETS / 64; i++) {
        uint64_t word = l->bits[i];
        if (i == bucket / 64) word = word >> (bucket % 64) << (bucket % 64);
        if (word) return l->head[i * 64 + (uint32_t)__builtin_ctzll(word)];
    }
    return NONE;
}

uint32_t mr_sched__load_least(const struct mr_sched *s)
{
    return first_from(&s->load, 0);
}

uint32_t mr_sched__load_next(const struct mr_sched *s, uint32_t worker)
{
    const struct worker *w = &s->workers[worker];
    if (w->bucket_next != NONE) return w->bucket_next;
    return w->bucket + 1 < LOAD_BUCKETS ? first_from(&s->load, w->bucket + 1) : NONE;
}

/* Returns the first worker of the last nonempty bucket below `bucket`; NONE: all these buckets are
 * empty. */
static uint32_t last_below(const struct load_index *l, uint32_t bucket)
{
    for (uint32_t i = bucket / 64 + 1; i-- > 0;) {
        uint64_t word = i < LOAD_BUCKETS / 64 ? l->bits[i] : 0;
        if (i == bucket / 64) word &= (1ull << (bucket % 64)) - 1;
        if (word) return l->head[i * 64 + 63 - (uint32_t)__builtin_clzll(word)];
    }
    return NONE;
}

uint32_t mr_sched__load_most(const struct mr_sched *s)
{
    return last_below(&s->load, LOAD_BUCKETS);
}

uint32_t mr_sched__load_prev(const struct mr_sched *s, uint32_t worker)
{
    const struct worker *w = &s->workers[worker];
    return w->bucket_next != NONE ? w->bucket_next : last_below(&s->load, w->bucket);
}

void mr_sched__load_check(const struct mr_sched *s)
{
    uint32_t workers = 0, slots = 0;
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        const struct worker *w = &s->workers[i];
        mr_assert((w->bucket != NONE) == mr_sched__load_is_usable(w));
        if (w->bucket == NONE) continue;
        mr_assert(w->bucket == bucket_of(w));
        workers++;
        slots += w->slots;
    }
    mr_assert(workers == s->load.workers);
    mr_assert(slots == s->load.slots);
    for (uint32_t b = 0; b < LOAD_BUCKETS; b++) {
        mr_assert((s->load.bits[b / 64] >> (b % 64) & 1) == (s->load.head[b] != NONE));
        uint32_t prev = NONE;
        for (uint32_t i = s->load.head[b]; i != NONE; i = s->workers[i].bucket_next) {
            mr_assert(s->workers[i].bucket == b && s->workers[i].bucket_prev == prev);
            prev = i;
            workers--;
        }
        mr_assert(s->load.tail[b] == prev);
    }
    mr_assert(!workers);
}
