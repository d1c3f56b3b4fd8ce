/* The latest events of the cluster, in a ring of fixed size, and what a worker's change means.
 * Knows no clock and no stream; Cluster.Watch (shell/cluster_watch.c) tells from it. */
#pragma once

#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mr_cluster_change { /* as ClusterChange of cluster.proto */
    MR_CLUSTER_NOTHING,
    MR_CLUSTER_GAP,
    MR_CLUSTER_SCHEDULER,
    MR_CLUSTER_WORKER_JOINED,
    MR_CLUSTER_WORKER_SILENT,
    MR_CLUSTER_WORKER_RETURNED,
    MR_CLUSTER_WORKER_DRAINING,
    MR_CLUSTER_WORKER_LEFT,
    MR_CLUSTER_WORKER_LOST,
    MR_CLUSTER_STORE_JOINED,
    MR_CLUSTER_STORE_LOST,
    MR_CLUSTER_STORE_RETURNED,
    MR_CLUSTER_JOB_STATE,
    MR_CLUSTER_JOB_FORGOTTEN,
};

struct mr_cluster_event {
    uint64_t number; /* from 1, grows by one */
    enum mr_cluster_change change;
    uint64_t wall_ns;
    mr_job_id job;
    int state;           /* of the job */
    char *worker, *node; /* owned; NULL: none */
};

struct mr_cluster_ring {
    struct mr_cluster_event *events; /* number n is at n % events_max */
    uint32_t events_max;
    uint64_t last; /* number of the newest; 0: none yet */
};

void mr_cluster_ring_init(struct mr_cluster_ring *r, uint32_t events_max);
void mr_cluster_ring_fini(struct mr_cluster_ring *r);

/* The next event, for the caller to fill in; the oldest makes room. */
struct mr_cluster_event *mr_cluster_ring_add(
    struct mr_cluster_ring *r, enum mr_cluster_change change, uint64_t wall_ns);

/* Number of the oldest that is there; last + 1: none is. */
uint64_t mr_cluster_ring_first(const struct mr_cluster_ring *r);

/* The event after `after`, on loan until the next one is added; NULL: there is none yet. `*missed`
 * counts those between that are gone. */
const struct mr_cluster_event *mr_cluster_ring_next(
    const struct mr_cluster_ring *r, uint64_t after, uint64_t *missed);

/* "00c0ffee00c0ffee-17": incarnation of the scheduler and number. */
#define MR_CLUSTER_ID_TEXT_MAX 40
void mr_cluster_id_format(uint64_t incarnation, uint64_t number, char out[MR_CLUSTER_ID_TEXT_MAX]);
bool mr_cluster_id_parse(struct mr_str text, uint64_t *incarnation, uint64_t *number);

/* A worker, or a store, at two times. */
struct mr_cluster_seen {
    bool is_there, is_connected, is_retiring;
    uint64_t incarnation;
};

#define MR_CLUSTER_CHANGES_MAX 3
/* What happened to it in between, in order; how many changes. */
size_t mr_cluster_worker_changes(const struct mr_cluster_seen *before,
    const struct mr_cluster_seen *now, enum mr_cluster_change out[MR_CLUSTER_CHANGES_MAX]);
enum mr_cluster_change mr_cluster_store_change(
    const struct mr_cluster_seen *before, const struct mr_cluster_seen *now);
