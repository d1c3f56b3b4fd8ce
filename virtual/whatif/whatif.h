/* Predicts how long a finished job would have taken on another cluster: with more or fewer slots,
 * a faster network, faster operators, or without a cost. The job's tasks run again in
 * virtual time with their recorded durations and sizes. The scheduler and the workers run their
 * real cores. The time of everything around the cores comes from costs.h. No clock, no I/O. One
 * thread.
 *
 * The threads of the scheduler, of the workers and of their executors share the processors of their
 * node. Other jobs and programs that ran at the same time are not modelled. Neither are lack of
 * memory, spilling, and attempts that failed. */
#pragma once

#include "account/account.h"
#include "base/err.h"
#include "base/str.h"
#include "virtual/whatif/costs.h"
#include "virtual/whatif/job.h"

/* Bits of mr_whatif_change.free: times that become 0. */
enum mr_whatif_free {
    MR_WHATIF_FREE_DECIDE = 1 << 0,
    MR_WHATIF_FREE_REPORT = 1 << 1,
    MR_WHATIF_FREE_SEND = 1 << 2,
    MR_WHATIF_FREE_HANDOFF = 1 << 3,
    MR_WHATIF_FREE_TRANSFER = 1 << 4,
    MR_WHATIF_FREE_JOURNAL = 1 << 5,
    MR_WHATIF_FREE_INPUT = 1 << 6,
    MR_WHATIF_FREE_OUTPUT = 1 << 7,
    MR_WHATIF_FREE_PREEMPTED = 1 << 8,
    /* all that the scheduler and its messages cost */
    MR_WHATIF_FREE_SCHEDULER = MR_WHATIF_FREE_DECIDE | MR_WHATIF_FREE_REPORT | MR_WHATIF_FREE_SEND,
};

struct mr_whatif_change {
    uint32_t slots;         /* slots of all workers together; 0: as recorded */
    uint32_t processors;    /* processors of each node; 0: as recorded */
    double bandwidth;       /* factor of the network's speed; 0: as recorded */
    uint32_t free;          /* bits of enum mr_whatif_free */
    const double *op_speed; /* by operator of the job: factor of its speed; NULL or 0: unchanged */
};

struct mr_whatif_result {
    uint64_t wall_ns;
    uint32_t slots;
    struct mr_account_sums sums; /* the time of all slots by class; adds up to wall_ns * slots */
    struct mr_account_sums path; /* the critical path by class */
    /* sum of the run times in the longest chain of tasks, each of which needs the one before */
    uint64_t chain_ns;
    uint64_t tasks;
    uint64_t messages; /* between the scheduler and the workers */
};

/* Returns the bit or bits for a name of mr_whatif_free_names. 0: no such name. */
uint32_t mr_whatif_free_of(struct mr_str name);
/* Lists the names that mr_whatif_free_of knows, for an error text. */
const char *mr_whatif_free_names(void);

/* Replays the job with given costs. MR_EINVAL: no task of the job has run. MR_ELIMIT: there are too
 * many tasks, or too many slots for the number of workers. MR_EUNKNOWN: the replay failed or had no
 * end. */
int mr_whatif_replay(const struct mr_whatif_job *job, const struct mr_whatif_costs *costs,
    const struct mr_whatif_change *change, struct mr_whatif_result *out, struct mr_error *e);
/* Measures the costs from the job's own times. Then changes them by one factor, so that a replay
 * without a change takes about the recorded time. If no factor comes near it, the costs stay as
 * measured. `same` gets the replay without a change. */
int mr_whatif_calibrate(const struct mr_whatif_job *job, struct mr_whatif_costs *costs,
    struct mr_whatif_result *same, struct mr_error *e);
