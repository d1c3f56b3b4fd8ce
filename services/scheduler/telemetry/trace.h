/* What tasks did when, for Timeline, Profile and Explain. The core thread only gathers spans and
 * hands them on; one thread encodes and keeps them (store/meta/trace/log.h), another reads them
 * back, so neither a slow Redis nor a long trace holds up a job. See trace_threads.h. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/history/timeline_page.h"

struct mr_trace_answer;

int mr_trace_open(struct mr_shell *sh, struct mr_error *e); /* after replay: the jobs are known */
void mr_trace_close(
    struct mr_trace **t); /* writes what is left, if Redis takes it in two seconds */

void mr_trace_add(struct mr_shell *sh);                        /* takes fx.spans */
void mr_trace_job_changed(struct mr_shell *sh, mr_job_id job); /* if it ended: writes at once */
void mr_trace_forget(struct mr_shell *sh, mr_job_id job);
void mr_trace_worker(struct mr_shell *sh, uint32_t slot); /* another worker has it from now on */
mr_time mr_trace_deadline(const struct mr_shell *sh);
void mr_trace_tick(struct mr_shell *sh, mr_time now);

struct mr_trace_ask {
    mr_job_id job;
    struct mr_trace_want want;
    /* Of TASK: answers the call; the span is NULL when none is recorded. */
    void (*on_task)(struct mr_shell *sh, struct mr_rpc_call *call, mr_job_id job, uint32_t index,
        const struct mr_trace_span *span);
};

/* Answers the call, later. */
void mr_trace_ask(struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_trace_ask *ask);
void mr_trace_call_done(struct mr_shell *sh, const struct mr_rpc_call *call);
void mr_trace_answered(struct mr_shell *sh, struct mr_trace_answer **answer); /* MR_SHELL_TRACE */
