/* Makes the message LiveState from what the scheduler knows. */
#pragma once

#include "services/scheduler/base/context.h"

#define MR_LIVE_SPEED_POINTS 5u

struct mr_live_speed { /* the latest counts of done tasks, to compute the tasks a second */
    struct {
        mr_time at;
        uint64_t tasks_done;
    } points[MR_LIVE_SPEED_POINTS]; /* a ring */
    uint32_t count;                 /* points that were ever added */
};

/* Adds a point. Returns the tasks a second since the oldest point in the ring; 0: there is no
 * earlier point. */
double mr_live_speed_next(struct mr_live_speed *s, mr_time now, uint64_t tasks_done);

/* Appends the packed state to `out`. Clears the scratch arena. The time that the function takes
 * grows with the number of workers and stores, and is bounded in everything else. */
void mr_live_render(struct mr_shell *sh, mr_time now, bool is_redis_away,
    struct mr_live_speed *speed, struct mr_buf *out);
