/* What tasks write to their standard output and error. Workers send it, history/task_output.h keeps
 * it, Logs returns it, and FollowLogs streams it while the tasks run. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_logs *mr_logs_new(void);
void mr_logs_free(struct mr_logs **l);

/* Stores the output that a worker's message brings. Called before the core's step with that
 * message. */
void mr_logs_message(struct mr_shell *sh, uint32_t worker, const struct mr_ws_up *m);
/* Sends new output to followers. Called after the core's step, because this function reuses the
 * memory of the worker's message. */
void mr_logs_tell(struct mr_shell *sh);
/* Sends the job's followers what they lack, and ends their calls if the job or their task has
 * ended. */
void mr_logs_job_changed(struct mr_shell *sh, mr_job_id job);
void mr_logs_forget(struct mr_shell *sh, mr_job_id job);

void mr_logs_answer(
    struct mr_shell *sh, struct mr_rpc_call *call, const Millrace__V1__LogsRequest *m);
void mr_logs_follow(
    struct mr_shell *sh, struct mr_rpc_call *call, const Millrace__V1__FollowLogsRequest *m);
void mr_logs_writable(struct mr_shell *sh, const struct mr_rpc_call *call);
void mr_logs_call_done(struct mr_shell *sh, const struct mr_rpc_call *call);
