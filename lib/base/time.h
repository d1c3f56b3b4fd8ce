/* Time: nanoseconds of a monotonic clock. The core of a service, its state machine without I/O,
 * gets the time as an argument. The code around the core, the service's shell, reads the clock. */
#pragma once

#include <stdint.h>

typedef uint64_t mr_time;     /* nanoseconds since an arbitrary start; never decreases */
typedef uint64_t mr_duration; /* ns */

#define MR_NEVER UINT64_MAX
#define MR_US ((mr_duration)1000)
#define MR_MS ((mr_duration)1000000)
#define MR_SECOND ((mr_duration)1000000000)

/* Returns t + d, but at most MR_NEVER. */
static inline mr_time mr_time_after(mr_time t, mr_duration d)
{
    return t > MR_NEVER - d ? MR_NEVER : t + d;
}
