/* Look-ups for requests: the job of an id, the node of a key, and why a node has no value. */
#pragma once

#include "services/scheduler/base/context.h"

/* The job that a request names. On an error the call is failed; returns false. */
bool mr_job_lookup(struct mr_shell *sh, struct mr_rpc_call *call, const char *id, mr_job_id *out,
    struct mr_sched_job_info *info);
/* The node of a key of the job. On an error the call is failed; returns false. */
bool mr_job_node(struct mr_rpc_call *call, const struct mr_sched_job_info *info, const char *key,
    uint32_t *node);
bool mr_job_is_over(enum mr_job_state state);
/* Why a node has no value: a sentence in the scratch arena, and a google.rpc.Code. The cause is the
 * task's own failure, or the failure of the task that kept it from running. */
char *mr_task_complaint(
    struct mr_shell *sh, const struct mr_sched_job_info *info, uint32_t node, int *code);
