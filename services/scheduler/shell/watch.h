/* Calls that wait for a job: for its end, its events or its values. A watcher is one such call. A
 * watcher is answered when the core has a note about the job, or when its wait is over. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_watch *mr_watch_new(struct mr_shell *sh);
void mr_watch_free(struct mr_watch **f);

enum mr_watch_kind {
    MR_WATCH_GET,     /* gets one Job when the job or the wait has ended */
    MR_WATCH_SUBMIT,  /* gets one SubmitResponse when the job or the wait has ended */
    MR_WATCH_EVENTS,  /* gets a stream of JobEvent */
    MR_WATCH_RESULT,  /* gets one value as HttpBody */
    MR_WATCH_RESULTS, /* gets many values */
};

struct mr_watcher_spec {
    enum mr_watch_kind kind;
    mr_job_id job;
    mr_duration wait;
    bool want_values;     /* only in SUBMIT */
    bool existed;         /* only in SUBMIT */
    bool json;            /* only in RESULTS */
    uint64_t after_event; /* EVENTS: number of the last event that the client has seen */
    struct mr_str accept; /* only in RESULT; copied */
    /* Nodes of the job's graph whose values are wanted; copied. RESULT: one node. RESULTS: any
     * number of nodes; NULL: all targets of the job. */
    const uint32_t *nodes;
    uint32_t nodes_count;
};

/* Answers the call at once if possible; otherwise makes it a watcher. */
void mr_watch_add(
    struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_watcher_spec *spec);

void mr_watch_job_changed(struct mr_shell *sh, mr_job_id job, bool progress);
void mr_watch_targets_ready(
    struct mr_shell *sh, mr_job_id job, const uint32_t *nodes, uint32_t count);
void mr_watch_target_bytes(struct mr_shell *sh, mr_job_id job, uint32_t node, struct mr_str pack);
/* Called when a target that a watcher wants will have no value. Code 0: the task failed, and the
 * core has its error. */
void mr_watch_target_failed(
    struct mr_shell *sh, mr_job_id job, uint32_t node, int code, struct mr_str why);
void mr_watch_forgotten(struct mr_shell *sh, mr_job_id job);
mr_time mr_watch_deadline(const struct mr_shell *sh);
void mr_watch_tick(struct mr_shell *sh, mr_time now);
/* Ends the waits of the client `waiter` at the next tick (rpc/server/waits.h). */
void mr_watch_end_waits(struct mr_shell *sh, struct mr_str waiter);
/* Called at shutdown. Answers calls of Submit and Get with the job as it is. Fails all other calls,
 * so that their client calls again. */
void mr_watch_stop(struct mr_shell *sh);
/* Frees the watcher of a call, if the call has one. Called from on_done. The context of the call
 * begins with a `struct mr_shell *`. */
void mr_watch_call_done(struct mr_rpc_call *call);
void mr_watch_writable(struct mr_shell *sh, const struct mr_rpc_call *call);
