/* What tasks wrote: kept as workers tell it (history/task_output.h), answered at once by Logs, and
 * passed on to calls that follow a job or a task while it runs. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_logs *mr_logs_new(void);
void mr_logs_free(struct mr_logs **l);

/* What a worker's message says of output; before the core hears the rest of it. Followers are told
 * by mr_logs_tell, when the message is done with: what they are told takes its place in memory. */
void mr_logs_message(struct mr_shell *sh, uint32_t worker, const Millrace__V1__WorkerMessage *m);
void mr_logs_tell(struct mr_shell *sh);
void mr_logs_job_changed(struct mr_shell *sh, mr_job_id job); /* it, or a task of it, may be over */
void mr_logs_forget(struct mr_shell *sh, mr_job_id job);

void mr_logs_answer(
    struct mr_shell *sh, struct mr_rpc_call *call, const Millrace__V1__LogsRequest *m);
void mr_logs_follow(
    struct mr_shell *sh, struct mr_rpc_call *call, const Millrace__V1__FollowLogsRequest *m);
void mr_logs_writable(struct mr_shell *sh, const struct mr_rpc_call *call);
void mr_logs_call_done(struct mr_shell *sh, const struct mr_rpc_call *call);
