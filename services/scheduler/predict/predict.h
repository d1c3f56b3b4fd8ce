/* Answers Jobs.WhatIf. The trace's reader thread gives the account of the job; then a thread of
 * this file runs the program mr-predictor (cli/predictor), which replays the job. The replay needs
 * a processor for seconds, so it runs in a process of its own at the lowest priority. At most one
 * prediction is made at a time. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_predict_run;

/* Starts the thread. */
struct mr_predict *mr_predict_open(struct mr_shell *sh);
/* Kills the program if it runs. */
void mr_predict_close(struct mr_predict **p);

/* Answers the call, or fails it. The request is not used after the return. */
void mr_predict_ask(struct mr_shell *sh, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, const Millrace__V1__WhatIfRequest *m);
/* Called at the end of each call of the service Jobs: the call is not used any more, and if it
 * waits for a prediction, the prediction is stopped. */
void mr_predict_call_done(struct mr_shell *sh, const struct mr_rpc_call *call);
/* Called when the message MR_SHELL_PREDICTED brings the outcome of a run. */
void mr_predict_ended(struct mr_shell *sh, struct mr_predict_run **run);
/* Frees the run of a message that comes while the process stops. */
void mr_predict_run_free(struct mr_predict_run **run);
