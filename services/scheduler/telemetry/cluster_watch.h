/* Cluster.Watch: what happens in the cluster, kept in a ring and told to every stream that watches.
 * Workers and stores are compared with how they were when somebody looked last; jobs come as notes
 * of the core. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_cluster_watch *mr_cluster_watch_new(const struct mr_shell *sh);
void mr_cluster_watch_free(struct mr_cluster_watch **w);

void mr_cluster_watch_job(struct mr_shell *sh, mr_job_id job, enum mr_job_state state);
void mr_cluster_watch_forgotten(struct mr_shell *sh, mr_job_id job);
/* A worker or store may have come, changed or gone: the next look is at once. */
void mr_cluster_watch_dirty(struct mr_shell *sh);
/* Once a turn, after the notes: looks, and tells those who watch. */
void mr_cluster_watch_tell(struct mr_shell *sh, mr_time now);
void mr_cluster_watch_stop(struct mr_shell *sh); /* ends every stream: ask again */

extern const struct mr_rpc_handler mr_cluster_watch_handler;
