/* One follower of a job; between watch.c and results.c. */
#pragma once

#include "services/scheduler/shell/watch.h"

struct mr_watched_job {
    mr_job_id job;
    struct mr_list watchers;
    uint32_t busy; /* walks under way */
};

struct mr_relay; /* a value on its way from an object store */

struct mr_watcher {
    struct mr_list node; /* of its job's */
    struct mr_shell *sh;
    struct mr_watched_job *job;
    struct mr_watcher_spec spec;
    mr_rpc_call_id call;
    uint32_t slot;
    mr_time deadline;
    uint64_t seen_event; /* WATCH */
    bool has_sent;
    bool is_late; /* its time was up, and not all rows that say so are sent */

    /* of values */
    uint32_t one;         /* RESULT: the node */
    uint64_t *wanted;     /* a bit a node: not yet queued */
    uint32_t wanted_left; /* bits set */
    struct mr_buf queue;  /* u32 nodes that can be sent */
    size_t queue_at;      /* the next one */
    char *accept;
    struct mr_relay *relay;
};
