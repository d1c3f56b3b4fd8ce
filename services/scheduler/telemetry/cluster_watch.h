/* Cluster.Watch: events of the cluster go to a ring, and from the ring to every stream that
 * watches. The core tells of changes of jobs by notes (core/state/effect.h), which become events.
 * Events of workers and stores are found by comparing their states with the states at the last
 * comparison. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/history/event_ring.h"

struct mr_cluster_watch *mr_cluster_watch_new(const struct mr_shell *sh);
void mr_cluster_watch_free(struct mr_cluster_watch **w);

void mr_cluster_watch_job(struct mr_shell *sh, mr_job_id job, enum mr_job_state state);
void mr_cluster_watch_forgotten(struct mr_shell *sh, mr_job_id job);
/* Called when a worker or store may have changed: the states are then compared soon. */
void mr_cluster_watch_dirty(struct mr_shell *sh);
/* Returns when mr_cluster_watch_tell has to be called because of a change; MR_NEVER: there was none
 * since the last comparison. */
mr_time mr_cluster_watch_deadline(const struct mr_shell *sh);
/* Called in each pass of the shell's loop, after the core's notes. Compares the states if that is
 * due, and sends new events. */
void mr_cluster_watch_tell(struct mr_shell *sh, mr_time now);
/* Returns the latest events, lent until the next one is added. */
const struct mr_cluster_ring *mr_cluster_watch_ring(const struct mr_shell *sh);
/* Fails every stream. */
void mr_cluster_watch_stop(struct mr_shell *sh);

extern const struct mr_rpc_handler mr_cluster_watch_handler;
