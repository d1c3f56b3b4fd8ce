/* An eventcount with a threshold, for many senders and one receiver. The receiver sleeps until a
 * given number of messages have come. A sender first queues a message (mr_inbox_push_quiet), then
 * adds to the count. The receiver first stores the count at which it wants to be woken, then reads
 * the count, then sleeps. So either the sender sees the threshold or the receiver sees the new
 * count, and no wake-up is lost. The counter also holds the number of spare work items. A sender
 * that has no work left and sees a spare item wakes the receiver before the threshold. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zeros: no message has come yet, and each message wakes the receiver. */
struct mr_wake_counter {
    _Atomic uint64_t told;
    _Atomic uint64_t wake_at;
    _Atomic uint32_t spare;
};

/* Called by a sender: `n` more messages are queued. True: the sender has to wake the receiver. */
static inline bool mr_wake_counter_add(struct mr_wake_counter *t, uint32_t n)
{
    return atomic_fetch_add(&t->told, n) + n >= atomic_load(&t->wake_at);
}

/* Called by the receiver: sets the total count of messages at which the receiver wants to be woken.
 * True: the count is not reached yet, and the receiver may sleep. False: the count is reached, and
 * the messages can be taken. One of them may still be missing: its sender has a place in the queue
 * but is still writing. That sender adds to the count later. */
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
