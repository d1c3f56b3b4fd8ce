/* An eventcount with a threshold: many senders, one receiver, which sleeps until so many messages
 * have come. A sender first queues a message (mr_inbox_push_quiet), then adds to the count. The
 * receiver first stores the count at which to wake, then reads the count, then sleeps. One of the
 * two sees the other. The counter also holds the number of spare items that an idle sender could
 * be given: such a sender wakes the receiver before the threshold. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mr_wake_counter { /* zero: no message yet, and each one wakes the receiver */
    _Atomic uint64_t told;
    _Atomic uint64_t wake_at;
    _Atomic uint32_t spare;
};

/* Sender: so many more messages are queued. Does the receiver have to be woken? */
static inline bool mr_wake_counter_add(struct mr_wake_counter *t, uint32_t n)
{
    return atomic_fetch_add(&t->told, n) + n >= atomic_load(&t->wake_at);
}

/* Receiver: wake it at this count, which begins at the counter's start. False: the count is
 * reached. Then the messages can be taken, unless an earlier sender is still writing; it counts
 * later. */
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
