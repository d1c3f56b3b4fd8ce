/* Draws timelines without the scheduler, from Redis and the trace files. */
#pragma once

#include "services/scheduler/history/history.h"
#include "services/scheduler/tiles/tiles.h"

/* Draws a picture of a timeline, as mr_job_tiles_draw does. ask->segments is not read. MR_ENOENT:
 * there is no trace of the job. */
int mr_job_tiles_offline(struct mr_job_tiles *t, struct mr_history *h,
    const struct mr_job_tiles_ask *ask, struct mr_job_tiles_picture *out, struct mr_error *e);
