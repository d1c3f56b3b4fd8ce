/* Spans of tasks, for Timeline, Profile and Explain. The core thread collects spans; a second
 * thread encodes and writes them (trace_writer.h), a third reads them back (trace_reader.h). So
 * neither a slow Redis nor a long trace delays a job. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/history/sample_series.h"
#include "services/scheduler/history/timeline_page.h"
#include "services/scheduler/tiles/tiles.h"

struct mr_trace_answer;
struct mr_job_account;

/* Starts the threads. Called when replay has restored the jobs. */
int mr_trace_open(struct mr_shell *sh, struct mr_error *e);
/* Stops the threads. Waits at most two seconds until Redis has taken the spans that are left. */
void mr_trace_close(struct mr_trace **t);

/* Collects the spans that the core has put into its effects (sh->fx.spans). */
void mr_trace_add(struct mr_shell *sh);
/* Called when the job has changed: if it has ended, its spans are written. */
void mr_trace_job_changed(struct mr_shell *sh, mr_job_id job);
void mr_trace_forget(struct mr_shell *sh, mr_job_id job);
/* Called when the journal has the record of a new job. `client`: the name of its client. */
void mr_trace_job_accepted(struct mr_shell *sh, mr_job_id job, struct mr_str client);
/* Called when a worker gets the place `slot` in the core's table of workers: later spans with this
 * number belong to this worker. `began`: when the worker's process began, by the worker's clock.
 * `processors`: those that the process may use. Both 0: not known. */
void mr_trace_worker(struct mr_shell *sh, uint32_t slot, mr_time began, uint32_t processors);
void mr_trace_worker_gone(struct mr_shell *sh, uint32_t slot, uint64_t incarnation);
/* Called when a worker tells of a pause of its process. The times are of the worker's clock. */
void mr_trace_worker_paused(struct mr_shell *sh, uint32_t slot, mr_time from, mr_time until);
/* Called after a pause of the scheduler's process. */
void mr_trace_paused(struct mr_shell *sh, mr_time from, mr_time until);
mr_time mr_trace_deadline(const struct mr_shell *sh);
void mr_trace_tick(struct mr_shell *sh, mr_time now);

enum mr_trace_ask_kind {
    MR_TRACE_ASK_SPANS,
    MR_TRACE_ASK_ACCOUNT,
    MR_TRACE_ASK_TILES,
    MR_TRACE_ASK_SAMPLES
};

struct mr_trace_ask {
    enum mr_trace_ask_kind kind;
    mr_job_id job; /* 0: an account of more than one job between `from_ns` and `until_ns` */
    uint64_t from_ns, until_ns;
    /* ACCOUNT, if `job` is 0: the namespace of the jobs; empty: all jobs. Lent until mr_trace_ask
     * returns. */
    struct mr_str name_space;
    uint32_t steps_max;        /* ACCOUNT: limit of steps of the critical path */
    struct mr_trace_want want; /* SPANS */
    /* SPANS: owned until it is passed to mr_trace_ask; NULL: none. Sets want.filter. */
    struct mr_trace_filter *filter;
    struct mr_job_tiles_ask tiles;      /* TILES */
    const struct mr_series_ask *series; /* SAMPLES; lent until mr_trace_ask returns */
    /* Set if want.kind is MR_TRACE_TASK: called with the task's last span, to answer the call.
     * `span` is NULL if no span of the task is recorded. */
    void (*on_task)(struct mr_shell *sh, struct mr_rpc_call *call, mr_job_id job, uint32_t index,
        const struct mr_trace_span *span);
    /* ACCOUNT: called with the account, or with an error if there is none, to answer the call.
     * NULL: the answer is a ProfileResponse. */
    void (*on_account)(struct mr_shell *sh, struct mr_rpc_call *call, int err,
        const struct mr_job_account *account);
};

/* Gives a block of samples (store/meta/trace/samples.h) to the writer thread, and takes the block.
 * If the writer has fallen behind, the block is dropped. */
void mr_trace_samples_give(struct mr_shell *sh, struct mr_buf **block);

void mr_trace_filter_free(struct mr_trace_filter **f);
/* Passes a question to the reader thread. Takes ask->filter. The call is answered when the reader
 * has answered. */
void mr_trace_ask(struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_trace_ask *ask);
void mr_trace_call_done(struct mr_shell *sh, const struct mr_rpc_call *call);
/* Called when the message MR_SHELL_TRACE brings an answer of the reader thread. Answers the call
 * that asked. */
void mr_trace_answered(struct mr_shell *sh, struct mr_trace_answer **answer);
