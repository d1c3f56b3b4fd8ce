/* Spans of tasks, for Timeline, Profile and Explain. The core thread collects spans; a second
 * thread encodes and writes them (trace_writer.h), a third reads them back (trace_reader.h). So
 * neither a slow Redis nor a long trace delays a job. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/history/timeline_page.h"

struct mr_trace_answer;

int mr_trace_open(struct mr_shell *sh, struct mr_error *e); /* after replay restored the jobs */
void mr_trace_close(struct mr_trace **t); /* waits at most two seconds for Redis to take the rest */

void mr_trace_add(struct mr_shell *sh);                        /* collects fx.spans */
void mr_trace_job_changed(struct mr_shell *sh, mr_job_id job); /* if it has ended: writes */
void mr_trace_forget(struct mr_shell *sh, mr_job_id job);
void mr_trace_worker(struct mr_shell *sh, uint32_t slot); /* another worker has the slot now */
mr_time mr_trace_deadline(const struct mr_shell *sh);
void mr_trace_tick(struct mr_shell *sh, mr_time now);

struct mr_trace_ask {
    mr_job_id job;
    struct mr_trace_want want;
    /* TASK: answers the call. `span` is NULL if none is recorded. */
    void (*on_task)(struct mr_shell *sh, struct mr_rpc_call *call, mr_job_id job, uint32_t index,
        const struct mr_trace_span *span);
};

/* Answers the call when the reader has answered. */
void mr_trace_ask(struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_trace_ask *ask);
void mr_trace_call_done(struct mr_shell *sh, const struct mr_rpc_call *call);
void mr_trace_answered(struct mr_shell *sh, struct mr_trace_answer **answer); /* MR_SHELL_TRACE */
