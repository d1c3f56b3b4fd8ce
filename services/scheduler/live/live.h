/* Cluster.Live: streams of the present state of the cluster. The state is made at most four times a
 * second, once for all clients, and only while there is a client. */
#pragma once

#include "services/scheduler/base/context.h"

/* Limits of the lists and texts in a state, so that a state as JSON has at most 64 KiB. */
#define MR_LIVE_OPS_MAX 16 /* operators in `doing` */
#define MR_LIVE_JOBS_MAX 16
#define MR_LIVE_JOB_OPS_MAX 8
#define MR_LIVE_SERVICES_MAX 32
#define MR_LIVE_WORKERS_MAX 48
#define MR_LIVE_TEXT_BYTES 64 /* with the NUL */

struct mr_live *mr_live_new(void);
void mr_live_free(struct mr_live **l);
/* Returns when mr_live_tick is due; MR_NEVER: there is no client. */
mr_time mr_live_deadline(const struct mr_shell *sh);
void mr_live_tick(struct mr_shell *sh, mr_time now);
/* Fails every stream. */
void mr_live_stop(struct mr_shell *sh);

extern const struct mr_rpc_handler mr_live_handler;
