/* Predicts how long a finished job would have taken on another cluster: with more or fewer slots, a
 * faster network, faster operators, or without some cost. The job's tasks run again in virtual time
 * with their recorded durations and sizes. The scheduler's core and the workers' cores are the real
 * ones; costs.h says what everything around them costs. No clock, no I/O. One thread.
 *
 * Not modelled: other jobs that ran at the same time, memory that is short and spilling, resources
 * and named workers, attempts that failed, and the processors that threads share. */
#pragma once

#include "account/account.h"
#include "base/err.h"
#include "base/str.h"
#include "virtual/whatif/costs.h"
#include "virtual/whatif/job.h"

/* What is set to 0: bits of mr_whatif_change.free. */
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
    double bandwidth;       /* factor of the network's speed; 0: 1 */
    uint32_t free;          /* bits of enum mr_whatif_free */
    const double *op_speed; /* by operator of the job: factor of its speed; NULL: all 1 */
};

struct mr_whatif_result {
    uint64_t wall_ns;
    uint32_t slots;
    struct mr_account_sums sums; /* the time of all slots by class; adds up to wall_ns * slots */
    struct mr_account_sums path; /* the critical path by class */
    /* the longest chain of tasks, each of which needs the one before: run times only */
    uint64_t chain_ns;
    uint64_t tasks;
    uint64_t messages; /* between the scheduler and the workers */
};

/* Returns the bit or bits of a name: a class of the account, or "scheduler". 0: no such name. */
uint32_t mr_whatif_free_of(struct mr_str name);
/* Lists the names that mr_whatif_free_of knows, for an error text. */
const char *mr_whatif_free_names(void);

/* Replays the job with given costs. MR_EINVAL: the job has no task that ran. MR_ELIMIT: it has too
 * many tasks. */
int mr_whatif_replay(const struct mr_whatif_job *job, const struct mr_whatif_costs *costs,
    const struct mr_whatif_change *change, struct mr_whatif_result *out, struct mr_error *e);
/* Measures the costs from the job's own times. Then scales the costs of the scheduler and of the
 * executors until a replay without a change takes the recorded time. `same` gets that replay. */
int mr_whatif_calibrate(const struct mr_whatif_job *job, struct mr_whatif_costs *costs,
    struct mr_whatif_result *same, struct mr_error *e);
