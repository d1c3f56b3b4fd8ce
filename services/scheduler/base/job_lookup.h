/* Look-ups for requests: the job with an id, the node with a key, and the reason why a node has no
 * value. */
#pragma once

#include "services/scheduler/base/context.h"

/* Finds the job that a request names. False: there is no such job, and the call was failed. */
bool mr_job_lookup(struct mr_shell *sh, struct mr_rpc_call *call, const char *id, mr_job_id *out,
    struct mr_sched_job_info *info);
/* Finds the job's node with a key. False: there is no such node, and the call was failed. */
bool mr_job_node(struct mr_rpc_call *call, const struct mr_sched_job_info *info, const char *key,
    uint32_t *node);
bool mr_job_is_over(enum mr_job_state state);
/* Returns a sentence in the scratch arena that says why a node has no value, and stores a
 * google.rpc.Code in *code. The reason is the failure of the node's task, the failure of another
 * task, a cancellation, or that the value no longer exists. */
char *mr_task_complaint(
    struct mr_shell *sh, const struct mr_sched_job_info *info, uint32_t node, int *code);
