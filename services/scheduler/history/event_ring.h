/* A ring of fixed size with the latest events of the cluster. Also compares an earlier and a later
 * state of a worker or store, and tells which events happened in between. No I/O and no clock.
 * telemetry/cluster_watch.c uses this file. */
#pragma once

#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mr_cluster_change { /* numbers as in ClusterChange of cluster.proto */
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
    uint64_t number; /* 1, 2, 3 … */
    enum mr_cluster_change change;
    uint64_t wall_ns;
    mr_job_id job;
    int state;           /* the job's new state */
    char *worker, *node; /* owned; NULL: none */
};

struct mr_cluster_ring {
    struct mr_cluster_event *events; /* number n is at n % events_max */
    uint32_t events_max;
    uint64_t last; /* number of the newest event; 0: there were no events yet */
};

void mr_cluster_ring_init(struct mr_cluster_ring *r, uint32_t events_max);
void mr_cluster_ring_fini(struct mr_cluster_ring *r);

/* Adds the next event and returns it; the caller fills it in. A full ring loses its oldest
 * event. */
struct mr_cluster_event *mr_cluster_ring_add(
    struct mr_cluster_ring *r, enum mr_cluster_change change, uint64_t wall_ns);

/* Returns the number of the oldest event in the ring; last + 1: the ring is empty. */
uint64_t mr_cluster_ring_first(const struct mr_cluster_ring *r);

/* Returns the first event after number `after`, lent until an event is added; NULL: there is none
 * yet. `*missed`: number of the events in between that the ring has lost. */
const struct mr_cluster_event *mr_cluster_ring_next(
    const struct mr_cluster_ring *r, uint64_t after, uint64_t *missed);

/* An event's id as a text: the scheduler's incarnation and the event's number, as in
 * "00c0ffee00c0ffee-17". mr_cluster_id_parse returns false if the text is no such id. */
#define MR_CLUSTER_ID_TEXT_MAX 40
void mr_cluster_id_format(uint64_t incarnation, uint64_t number, char out[MR_CLUSTER_ID_TEXT_MAX]);
bool mr_cluster_id_parse(struct mr_str text, uint64_t *incarnation, uint64_t *number);

/* What the scheduler sees of a worker or a store at one time. */
struct mr_cluster_seen {
    bool is_there, is_connected, is_retiring;
    uint64_t incarnation;
};

#define MR_CLUSTER_CHANGES_MAX 3
/* Stores the events that lead from state `before` of a worker to state `now`, in order, and returns
 * how many. */
size_t mr_cluster_worker_changes(const struct mr_cluster_seen *before,
    const struct mr_cluster_seen *now, enum mr_cluster_change out[MR_CLUSTER_CHANGES_MAX]);
enum mr_cluster_change mr_cluster_store_change(
    const struct mr_cluster_seen *before, const struct mr_cluster_seen *now);
