/* A finished job as it was recorded: its tasks, what each needed, and when each waited and ran. The
 * caller fills it in from a trace and a graph. All times are ns of one clock; 0: not known. */
#pragma once

#include "base/str.h"
#include "base/time.h"

#include <stdbool.h>

#define MR_WHATIF_NONE UINT32_MAX

struct mr_whatif_task {
    uint32_t op;     /* number of the operator; MR_WHATIF_NONE: the node did not run */
    uint32_t worker; /* number of the worker that ran the task */
    uint32_t slot;
    uint32_t inputs_at, inputs_count; /* range of `inputs` of the job */
    bool is_target;
    mr_time ready, sent, received, inputs, started, finished, accounted; /* account/account.h */
    mr_duration cpu_ns, input_ns, output_ns, room_ns, late_ns;
    uint64_t bytes; /* of the task's value; 0: not reported */
};

struct mr_whatif_job {            /* the arrays are the caller's */
    struct mr_whatif_task *tasks; /* by index in the job's graph */
    uint32_t tasks_count;
    const uint32_t *inputs; /* indexes of tasks */
    uint32_t inputs_count;
    const struct mr_str *ops; /* names */
    uint32_t ops_count;
    uint32_t workers_count; /* workers that ran a task of the job */
    uint32_t slots;         /* slots of the cluster while the job was in it; 0: not known */
    const uint32_t *node;   /* by worker: number of its node; NULL: all on one node */
    bool is_unfused;        /* the worker ran and reported each task separately (fuse: false) */
    mr_time submitted;
    mr_time over; /* when a client could know the job's end */
};

/* Returns whether node `index` ran. */
static inline bool mr_whatif_ran(const struct mr_whatif_job *j, uint32_t index)
{
    return index < j->tasks_count && j->tasks[index].op != MR_WHATIF_NONE;
}

/* Returns the slots of the cluster, at least those that ran a task. */
uint32_t mr_whatif_slots(const struct mr_whatif_job *j);
/* Puts workers on nodes. A worker and the maker of a large value are on one node if the worker used
 * the value and did not wait for it. Else they are on different nodes if some task waited for such
 * a value. Without such uses, all workers are on one node. `node` has an element for each worker.
 */
void mr_whatif_nodes_find(const struct mr_whatif_job *j, uint32_t *node);
/* Guesses j->is_unfused. True: some tasks ran right before the only user of their value, on its
 * slot, and all of these values were reported. */
bool mr_whatif_is_unfused(const struct mr_whatif_job *j);
