/* A call that waits for a job. For watch.c and results.c only. */
#pragma once

#include "services/scheduler/shell/watch.h"

struct mr_watched_job {
    mr_job_id job;
    struct mr_list watchers;
    /* number of running loops over `watchers`; while it is above 0 the struct must not be freed */
    uint32_t busy;
};

struct mr_relay; /* a value on its way from an object store */

struct mr_watcher {
    struct mr_list node; /* member of job->watchers */
    struct mr_shell *sh;
    struct mr_watched_job *job;
    struct mr_watcher_spec spec;
    mr_rpc_call_id call;
    uint32_t slot;
    mr_time deadline;
    uint64_t seen_event; /* only in EVENTS: number of the last event that was sent */
    bool has_sent;
    bool is_late; /* the wait is over, but not all rows without a value are sent */

    /* only in RESULT and RESULTS: */
    uint32_t one;         /* only in RESULT: the node whose result is wanted */
    uint64_t *wanted;     /* a bit for each node that is wanted and not queued yet */
    uint32_t wanted_left; /* number of bits that are set in `wanted` */
    struct mr_buf queue;  /* u32 nodes whose value, or error, can be sent */
    size_t queue_at;      /* position of the next node to send */
    char *accept;
    struct mr_relay *relay;
};
