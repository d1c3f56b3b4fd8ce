/* The account of slots as some jobs see it, for example one job, or the jobs of a namespace. All
 * slots and all classes are in it, so the classes add up to the time of all slots. What the slots
 * did for the other jobs is in `other_ns`, too. */
#pragma once

#include "account/account.h"

struct mr_account_share {
    const bool *is_own; /* by the number of the job; lent; NULL: all jobs are the share's own */
    uint32_t jobs_count;
    struct mr_account_sums sums;
    uint64_t other_ns; /* part of the busy classes of `sums`: slots ran tasks of other jobs */
};

/* Returns whether the job is one of the share's own. `job` may be MR_ACCOUNT_NONE. */
bool mr_account_share_has(const struct mr_account_share *s, uint32_t job);
/* Adds a piece of time. Returns whether the task of the piece belongs to one of the own jobs. */
bool mr_account_share_add(struct mr_account_share *s, const struct mr_account_piece *piece);
/* Returns the time in which slots ran tasks of the share's own jobs. */
uint64_t mr_account_share_busy(const struct mr_account_share *s);
