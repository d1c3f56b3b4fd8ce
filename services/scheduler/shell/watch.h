/* Calls that wait for a job: for its end, its events or its values. A watcher is one such call. It
 * is answered when the core has a note about the job, or when its time is over. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_watch *mr_watch_new(struct mr_shell *sh);
void mr_watch_free(struct mr_watch **f);

enum mr_watch_kind {
    MR_WATCH_GET,     /* one Job, when the job or the wait has ended */
    MR_WATCH_SUBMIT,  /* one SubmitResponse, at the same time */
    MR_WATCH_EVENTS,  /* a stream of JobEvent */
    MR_WATCH_RESULT,  /* one value, as HttpBody */
    MR_WATCH_RESULTS, /* many values */
};

struct mr_watcher_spec {
    enum mr_watch_kind kind;
    mr_job_id job;
    mr_duration wait;
    bool want_values;      /* SUBMIT */
    bool existed;          /* SUBMIT */
    bool json;             /* RESULTS */
    uint64_t after_event;  /* EVENTS: an event with this number was seen */
    struct mr_str accept;  /* RESULT; copied */
    const uint32_t *nodes; /* RESULT: one; RESULTS: any; copied. NULL: all targets */
    uint32_t nodes_count;
};

/* Answers the call at once if possible; otherwise makes it a watcher. */
void mr_watch_add(
    struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_watcher_spec *spec);

void mr_watch_job_changed(struct mr_shell *sh, mr_job_id job, bool progress);
void mr_watch_targets_ready(
    struct mr_shell *sh, mr_job_id job, const uint32_t *nodes, uint32_t count);
void mr_watch_target_bytes(struct mr_shell *sh, mr_job_id job, uint32_t node, struct mr_str pack);
/* A target that a watcher wants will have no value. Code 0: its task failed, and has the error. */
void mr_watch_target_failed(
    struct mr_shell *sh, mr_job_id job, uint32_t node, int code, struct mr_str why);
void mr_watch_forgotten(struct mr_shell *sh, mr_job_id job);
mr_time mr_watch_deadline(const struct mr_shell *sh);
void mr_watch_tick(struct mr_shell *sh, mr_time now);
/* Ends the waits of this client at the next tick (rpc/server/waits.h). */
void mr_watch_end_waits(struct mr_shell *sh, struct mr_str waiter);
/* For shutdown: calls of Submit and Get are answered with the job as it is, other calls fail and
 * the client is asked to call again. */
void mr_watch_stop(struct mr_shell *sh);
/* For on_done of a call that may be a watcher. Its context begins with a `struct mr_shell *`. */
void mr_watch_call_done(struct mr_rpc_call *call);
void mr_watch_writable(struct mr_shell *sh, const struct mr_rpc_call *call);
