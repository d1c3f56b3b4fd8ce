/* Cluster.Watch: events of the cluster go to a ring, and from the ring to every stream that
 * watches. The core tells of changes of jobs by notes (core/state/effect.h), which become events.
 * Events of workers and stores are found by comparing their states with the states at the last
 * comparison. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_cluster_watch *mr_cluster_watch_new(const struct mr_shell *sh);
void mr_cluster_watch_free(struct mr_cluster_watch **w);

void mr_cluster_watch_job(struct mr_shell *sh, mr_job_id job, enum mr_job_state state);
void mr_cluster_watch_forgotten(struct mr_shell *sh, mr_job_id job);
/* Called when a worker or store may have changed: mr_cluster_watch_tell then compares all
 * states. */
void mr_cluster_watch_dirty(struct mr_shell *sh);
/* Called in each pass of the shell's loop, after the core's notes. Compares the states if that is
 * due, and sends new events. */
void mr_cluster_watch_tell(struct mr_shell *sh, mr_time now);
/* Fails every stream. */
void mr_cluster_watch_stop(struct mr_shell *sh);

extern const struct mr_rpc_handler mr_cluster_watch_handler;
