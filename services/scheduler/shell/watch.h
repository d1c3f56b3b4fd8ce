/* Calls that follow a job: they wait for its end, its events or its values, and are answered when
 * the core says so or their time is over. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_watch *mr_watch_new(struct mr_shell *sh);
void mr_watch_free(struct mr_watch **f);

enum mr_watch_kind {
    MR_WATCH_GET,     /* answer with the Job when it has ended, or time is over */
    MR_WATCH_SUBMIT,  /* the same, as SubmitResponse */
    MR_WATCH_EVENTS,  /* a stream of JobEvent */
    MR_WATCH_RESULT,  /* one value as HttpBody */
    MR_WATCH_RESULTS, /* many values */
};

struct mr_watcher_spec {
    enum mr_watch_kind kind;
    mr_job_id job;
    mr_duration wait;
    bool want_values;      /* SUBMIT */
    bool existed;          /* SUBMIT */
    bool json;             /* RESULTS */
    uint64_t after_event;  /* WATCH */
    struct mr_str accept;  /* RESULT; copied */
    const uint32_t *nodes; /* RESULT: one, RESULTS: indexes; copied. NULL: all targets */
    uint32_t nodes_count;
};

/* Answers at once what can be answered, and keeps the rest. */
void mr_watch_add(
    struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_watcher_spec *spec);

void mr_watch_job_changed(struct mr_shell *sh, mr_job_id job, bool progress);
void mr_watch_targets_ready(
    struct mr_shell *sh, mr_job_id job, const uint32_t *nodes, uint32_t count);
void mr_watch_target_bytes(struct mr_shell *sh, mr_job_id job, uint32_t node, struct mr_str pack);
void mr_watch_target_failed(/* code 0: it erred, see the task */
    struct mr_shell *sh, mr_job_id job, uint32_t node, int code, struct mr_str why);
void mr_watch_forgotten(struct mr_shell *sh, mr_job_id job);
mr_time mr_watch_deadline(const struct mr_shell *sh);
void mr_watch_tick(struct mr_shell *sh, mr_time now);
/* The waits of this caller are over at the next tick (rpc/waits.h). */
void mr_watch_end_waits(struct mr_shell *sh, struct mr_str waiter);
/* The scheduler stops: who submitted or asked for a job gets it as it is, everybody else is told to
 * ask again. */
void mr_watch_stop(struct mr_shell *sh);
/* on_done of a call that may follow; its context begins with a `struct mr_shell *` */
void mr_watch_call_done(struct mr_rpc_call *call);
void mr_watch_writable(struct mr_shell *sh, const struct mr_rpc_call *call);
