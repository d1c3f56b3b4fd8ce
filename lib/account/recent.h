/* A cache of the attempts that were accounted last, by job and index. Memory is bounded: 4 entries
 * share a bucket, and a new entry replaces the one of its bucket that was accounted first.
 * Consecutive tasks of a job use consecutive buckets, so a job that is no larger than the cache
 * loses no entry if no other job runs beside it. */
#pragma once

#include "base/time.h"

#include <stdbool.h>

#define MR_ACCOUNT_NONE UINT32_MAX

/* Except in `lane_free`, 0 stands for a time that is not known. All times are of one clock. */
struct mr_account_recent {
    uint32_t job, index;
    uint32_t last_input; /* index of the input whose value came last; `index`: there is none */
    uint32_t op, lane;
    uint8_t hold;           /* enum mr_account_class of the time from ready to sent */
    uint16_t late_permille; /* share of the run time in which the kernel ran another thread */
    mr_duration delayed_ns; /* time before the start in which the kernel ran other threads */
    mr_time ready, sent, received, inputs;
    mr_time started, finished, accounted;
    /* The lane's task before this one, and when it finished; 0: there was none. */
    mr_time lane_free;
    uint32_t before_job, before_index;
};

struct mr_account_recents_key { /* what a search compares */
    uint32_t job;               /* the job's number plus 1; 0: the entry is free */
    uint32_t index;
    mr_time accounted;
};

struct mr_account_recents {
    struct mr_account_recents_key
        *keys; /* of `entries`, apart from them: those of a bucket are 64 bytes */
    struct mr_account_recent *entries;
    uint32_t mask; /* number of buckets, a power of two, minus 1 */
};

void mr_account_recents_init(struct mr_account_recents *r, uint32_t entries_max);
void mr_account_recents_fini(struct mr_account_recents *r);
/* Returns the entry, lent until the next put; NULL: the attempt is not in the cache. */
const struct mr_account_recent *mr_account_recents_find(
    const struct mr_account_recents *r, uint32_t job, uint32_t index);
void mr_account_recents_put(struct mr_account_recents *r, const struct mr_account_recent *entry);
/* Begins to load the memory that a put of this attempt will probably use. */
void mr_account_recents_prefetch(const struct mr_account_recents *r, uint32_t job, uint32_t index);
