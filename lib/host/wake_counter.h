/* When a thread that is told of much wants to be woken: tellers count what they have told, the
 * listener says at which count it will have something to do. Tellers first leave what they tell
 * (host/inbox.h: put), then count; the listener first says what it waits for, then looks at the
 * count, then sleeps: one of the two sees the other. Beside it, how much there is that an idle
 * teller could be given, in which case it does wake the listener. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mr_wake_counter { /* zero: nothing was told, and the listener is always woken */
    _Atomic uint64_t told;
    _Atomic uint64_t wake_at;
    _Atomic uint32_t spare;
};

/* Teller: so much more has been told. Is the listener to be woken? */
static inline bool mr_wake_counter_add(struct mr_wake_counter *t, uint32_t n)
{
    return atomic_fetch_add(&t->told, n) + n >= atomic_load(&t->wake_at);
}

/* Listener: at this count, counted from the beginning, it wants to be woken. False: it is reached;
 * what was told can be taken, unless an earlier teller has not finished, who counts later. */
static inline bool mr_wake_counter_wait_for(struct mr_wake_counter *t, uint64_t count)
{
    atomic_store(&t->wake_at, count);
    return atomic_load(&t->told) < count;
}

static inline void mr_wake_counter_spare(struct mr_wake_counter *t, bool more)
{
    if (more)
        atomic_fetch_add(&t->spare, 1);
    else
        atomic_fetch_sub(&t->spare, 1);
}

static inline bool mr_wake_counter_has_spare(const struct mr_wake_counter *t)
{
    return atomic_load(&t->spare) != 0;
}
