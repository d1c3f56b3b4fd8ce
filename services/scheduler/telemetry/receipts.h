/* Remembers when a worker received each message with tasks. The scheduler sends these messages on
 * the worker's stream. Scheduler and worker count the messages from 0. Only the times of the last
 * MR_RECEIPTS_MAX messages are kept. */
#pragma once

#include "base/time.h"

#include <stdint.h>

#define MR_RECEIPTS_MAX 64u

struct mr_receipts { /* all zero: a new stream */
    struct {
        mr_time sent, received; /* received 0: not known yet */
    } at[MR_RECEIPTS_MAX];
    uint64_t count; /* number of messages that were sent */
};

/* Records that a message with tasks is sent at the time `now`. */
void mr_receipts_sent(struct mr_receipts *r, mr_time now);
/* Records when the worker received the message `first` and those that follow, as the worker told.
 * `offset` is the scheduler's clock minus the worker's, in ns. Messages that were not sent, or were
 * sent too long ago, are ignored. */
void mr_receipts_received(
    struct mr_receipts *r, uint64_t first, const mr_time *times, uint32_t count, int64_t offset);
/* Returns the time at which the worker received a task that was assigned at time `assigned`. The
 * task is in the first message that was sent at that time or later. 0: the result is unknown. */
mr_time mr_receipts_find(const struct mr_receipts *r, mr_time assigned);
