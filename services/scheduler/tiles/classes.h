/* What each slot spent its time on during a job, by class (lib/account/class.h), as a pyramid
 * (lib/tiles/pyramid.h). Only tiles.c calls these functions. */
#pragma once

#include "services/scheduler/history/job_account.h"
#include "services/scheduler/tiles/slots.h"
#include "base/time.h"
#include "tiles/pyramid.h"

struct mr_tile_classes {
    struct mr_tile_pyramid *pyramid; /* its lanes are numbers of slots; NULL: not built yet */
    mr_time due;      /* when the pyramid of a job that is not over is to be made again */
    uint64_t over_ns; /* end of the job, as known then; 0: the job was not over */
};

#define MR_TILE_CLASSES_SPANS_MAX 20000000u

/* Makes the pyramid, if there is none or if it is out of date. While the job is not over, the
 * pyramid is out of date after 20 times the time that making it took, but not before a second.
 * New slots are added to `slots`. MR_ELIMIT: the job has more than MR_TILE_CLASSES_SPANS_MAX spans.
 * MR_EAWAY: Redis does not answer. */
int mr_tile_classes_make(struct mr_tile_classes *c, const struct mr_trace_source *source,
    const struct mr_trace_view *view, const struct mr_job_account_ask *ask,
    struct mr_tile_slots *slots);
void mr_tile_classes_fini(struct mr_tile_classes *c);
