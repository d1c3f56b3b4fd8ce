/* The number of owners of an object that several threads share. The last owner frees the object: a
 * thread that frees the object sees what every other owner wrote before its put. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mr_ref_count {
    _Atomic uint32_t v;
};

/* Sets the count to one: the owner is the caller. */
static inline void mr_ref_count_init(struct mr_ref_count *r)
{
    atomic_store_explicit(&r->v, 1, memory_order_relaxed);
}

static inline void mr_ref_count_get(struct mr_ref_count *r)
{
    atomic_fetch_add_explicit(&r->v, 1, memory_order_relaxed);
}

/* True: no owner is left, and the caller frees the object. */
static inline bool mr_ref_count_put(struct mr_ref_count *r)
{
    return atomic_fetch_sub_explicit(&r->v, 1, memory_order_acq_rel) == 1;
}
