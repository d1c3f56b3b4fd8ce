/* How a training role spent the time of its run, packed into one number. The number has four shares
 * of the run's duration, 16 bits each, in units of 1/65535. The number is 0 if the task is no
 * training role, or if its process was lost. */
#pragma once

#include "base/defs.h"
#include "base/time.h"

enum mr_training_part {
    MR_TRAINING_FEED, /* fetching batches */
    MR_TRAINING_PULL, /* fetching parameters */
    MR_TRAINING_PUSH, /* sending gradients */
    MR_TRAINING_WAIT, /* waiting for other roles */
    MR_TRAINING_PARTS
};

/* Packs the shares of the durations `ns` in the duration `of`. No share is more than 1. */
static inline uint64_t mr_training_shares(const mr_duration ns[MR_TRAINING_PARTS], mr_duration of)
{
    uint64_t shares = 0;
    for (unsigned i = 0; i < MR_TRAINING_PARTS && of > 0; i++)
        shares |= (uint64_t)(65535.0 * (double)MR_MIN(ns[i], of) / (double)of + 0.5) << 16 * i;
    return shares;
}

/* Returns the time of one part, in ns, in a run of the duration `of`. */
static inline mr_duration mr_training_part_ns(
    uint64_t shares, enum mr_training_part part, mr_duration of)
{
    return (mr_duration)((double)of * (double)(shares >> 16 * part & 65535) / 65535.0);
}
