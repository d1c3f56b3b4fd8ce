/* What a slot waited for, backward in time: the critical path of a task. Of the tasks that made its
 * inputs, the path leads to the one that finished last. From there it goes on in the same way, to
 * the submission of the job. Each piece of the path is a segment with its class. */
#pragma once

#include "account/pause.h"
#include "account/recent.h"

struct mr_account_segment {
    mr_time from, to;
    /* The task that the segment belongs to. If the class is DEPENDENCY, this is the task that runs,
     * not the one that needs its result. MR_ACCOUNT_NONE: the task is not known. */
    uint32_t job, index;
    uint32_t op;
    /* DEPENDENCY: share of the task's run time in which the kernel ran another thread instead */
    uint16_t late_permille;
    uint8_t class; /* enum mr_account_class */
};

struct mr_account_chain {
    const struct mr_account_pauses *pauses; /* NULL: no process was paused */
    /* from the latest segment to the earliest; segments[i + 1] ends when segments[i] begins */
    struct mr_account_segment *segments;
    uint32_t count, room;
    mr_time at;    /* the segments reach down to this time; MR_NEVER: there are none */
    mr_time lower; /* no segment begins before this time */
};

/* What the path needs to know of a job. */
struct mr_account_job_times {
    mr_time submitted, accepted; /* accepted: when Redis had the job's record */
};

/* Empties a chain and sets its limits: segments will lie between `lower` and `upper`. */
void mr_account_chain_begin(struct mr_account_chain *c, mr_time lower, mr_time upper);
void mr_account_chain_fini(struct mr_account_chain *c);
/* Adds a segment from `from`, but not before c->lower, up to c->at. Does nothing if c->at is not
 * later than `from`. */
void mr_account_chain_down(struct mr_account_chain *c, mr_time from, enum mr_account_class class,
    const struct mr_account_recent *of);
/* Adds the critical path of a task that starts at c->at or earlier. Differs from
 * mr_account_chain_follow where a task waited for its slot, and not for an input: the path goes on
 * with the task that the slot ran before. */
void mr_account_chain_critical(struct mr_account_chain *c, const struct mr_account_recents *recents,
    const struct mr_account_recent *task, const struct mr_account_job_times *job);
/* Adds the segments of a task that starts at c->at or earlier: what the task waited for, what its
 * last input waited for, and so on, down to the job's submission. `slot_known`: when the scheduler
 * learned that the task's slot was free; 0: the task did not wait for the scheduler to learn it. */
void mr_account_chain_follow(struct mr_account_chain *c, const struct mr_account_recents *recents,
    const struct mr_account_recent *task, const struct mr_account_job_times *job,
    mr_time slot_known);
