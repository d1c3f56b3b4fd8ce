/* A finished job as it was recorded: its tasks, what each needed, and when each waited and ran. The
 * caller fills it in from a trace and a graph. All times are ns of one clock; 0: not known. */
#pragma once

#include "base/str.h"
#include "base/time.h"

#include <stdbool.h>

#define MR_WHATIF_NONE UINT32_MAX

struct mr_whatif_task {
    uint32_t op;     /* number of the operator; MR_WHATIF_NONE: the task did not run */
    uint32_t worker; /* number of the worker that ran the task */
    uint32_t slot;
    uint32_t inputs_at, inputs_count; /* range of mr_whatif_job.inputs */
    bool is_target;
    /* as in struct mr_account_task (account/account.h) */
    mr_time ready, sent, received, inputs, started, finished, accounted;
    mr_duration cpu_ns, input_ns, restore_ns, output_ns, room_ns, late_ns, delayed_ns;
    uint64_t bytes; /* of the task's value; 0: not reported */
};

struct mr_whatif_job {            /* the arrays are the caller's */
    struct mr_whatif_task *tasks; /* by index in the job's graph */
    uint32_t tasks_count;
    const uint32_t *inputs; /* indexes of tasks */
    uint32_t inputs_count;
    const struct mr_str *ops; /* names of the operators */
    uint32_t ops_count;
    uint32_t workers_count; /* workers that ran a task of the job */
    uint32_t slots;         /* slots of the cluster while the job was in it; 0: not known */
    uint32_t processors;    /* of each node; 0: not known */
    const uint32_t *node;   /* by worker: number of its node; NULL: all on one node */
    bool is_unfused;        /* workers ran and reported each task separately (fuse: false) */
    mr_time submitted;
    mr_time over; /* when a client could know the job's end */
};

/* Returns whether task `index` ran. */
static inline bool mr_whatif_ran(const struct mr_whatif_job *j, uint32_t index)
{
    return index < j->tasks_count && j->tasks[index].op != MR_WHATIF_NONE;
}

/* Returns the number of slots of the cluster: j->slots, or more if the tasks ran on more slots. */
uint32_t mr_whatif_slots(const struct mr_whatif_job *j);
/* Guesses the node of each worker: sets node[w] for each worker w. Two workers are on one node if
 * one used a large value that the other had made, and did not wait for this value. Other workers
 * are on different nodes. If no task waited for a large value of another worker, all workers are on
 * one node. */
void mr_whatif_nodes_find(const struct mr_whatif_job *j, uint32_t *node);
/* Guesses j->is_unfused from the values whose only user ran on the slot that made the value. A
 * fused chain does not report such values. True: there are such values, and all were reported. */
bool mr_whatif_is_unfused(const struct mr_whatif_job *j);
