/* The cursor of a strand, which is a list of numbered items. The taker thread takes items 0, 1, 2 …
 * in order; another thread, the cutter, may lower the end at any time. One atomic word holds the
 * next item and the end, so each item is either taken or cut, never both. When the cutter sees that
 * an item was taken, the cutter also sees all that the taker wrote before taking the item. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mr_strand_cursor {
    _Atomic uint64_t v; /* end << 32 | next item */
    _Atomic uint32_t settled;
};

static inline void mr_strand_cursor_init(struct mr_strand_cursor *c, uint32_t count)
{
    atomic_store_explicit(&c->v, (uint64_t)count << 32, memory_order_relaxed);
    atomic_store_explicit(&c->settled, 0, memory_order_relaxed);
}

/* Called by the taker: takes the next item and sets `*item` to its number. False: no item is left,
 * and none will come. */
static inline bool mr_strand_cursor_take(struct mr_strand_cursor *c, uint32_t *item)
{
    uint64_t v = atomic_load_explicit(&c->v, memory_order_relaxed);
    do {
        if ((uint32_t)v >= (uint32_t)(v >> 32)) return false;
    } while (!atomic_compare_exchange_weak_explicit(
        &c->v, &v, v + 1, memory_order_acq_rel, memory_order_relaxed));
    *item = (uint32_t)v;
    return true;
}

/* Called by the taker: its results of the first n items are final, and the cutter may read these
 * results. */
static inline void mr_strand_cursor_settle(struct mr_strand_cursor *c, uint32_t n)
{
    atomic_store_explicit(&c->settled, n, memory_order_release);
}

static inline uint32_t mr_strand_cursor_settled(const struct mr_strand_cursor *c)
{
    return atomic_load_explicit(&c->settled, memory_order_acquire);
}

/* Called by the taker. True: no item is left. */
static inline bool mr_strand_cursor_is_at_end(const struct mr_strand_cursor *c)
{
    uint64_t v = atomic_load_explicit(&c->v, memory_order_relaxed);
    return (uint32_t)v >= (uint32_t)(v >> 32);
}

/* Called by the cutter: no item from `keep` on will be taken any more, unless it has been taken
 * already. Returns the new end: all items below the end have been taken or will be taken. */
static inline uint32_t mr_strand_cursor_cut(struct mr_strand_cursor *c, uint32_t keep)
{
    uint64_t v = atomic_load_explicit(&c->v, memory_order_relaxed), next;
    uint32_t end;
    do {
        uint32_t taken = (uint32_t)v;
        end = (uint32_t)(v >> 32);
        if (keep < end) end = keep;
        if (taken > end) end = taken;
        next = (uint64_t)end << 32 | taken;
    } while (!atomic_compare_exchange_weak_explicit(
        &c->v, &v, next, memory_order_acq_rel, memory_order_relaxed));
    return end;
}
