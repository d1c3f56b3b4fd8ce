/* A boolean that one thread sets and others read, also in shared memory: for example, a request to
 * stop. A thread that reads the flag as set also sees what the other thread wrote before it set the
 * flag (release and acquire). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mr_flag {
    _Atomic uint8_t v; /* 0: not set */
};

static inline void mr_flag_set(struct mr_flag *f, bool on)
{
    atomic_store_explicit(&f->v, on ? 1 : 0, memory_order_release);
}

static inline bool mr_flag_is_set(const struct mr_flag *f)
{
    return atomic_load_explicit(&f->v, memory_order_acquire) != 0;
}
