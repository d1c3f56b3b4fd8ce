/* One byte that one thread sets and others read: a request to stop, a mark in shared memory. What
 * was written before the set is seen by who sees it set. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mr_flag {
    _Atomic uint8_t v; /* zero: clear */
};

static inline void mr_flag_set(struct mr_flag *f, bool on)
{
    atomic_store_explicit(&f->v, on ? 1 : 0, memory_order_release);
}

static inline bool mr_flag_is_set(const struct mr_flag *f)
{
    return atomic_load_explicit(&f->v, memory_order_acquire) != 0;
}
