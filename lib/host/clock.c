/* Reads the kernel's clocks. */
#include "host/clock.h"

#include "base/assert.h"

#include <errno.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;
    int err = clock_gettime(id, &t);
    mr_assert(!err);
    return (uint64_t)t.tv_sec * MR_SECOND + (uint64_t)t.tv_nsec;
}

mr_time mr_clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t mr_clock_wall(void)
{
    return read_clock(CLOCK_REALTIME);
}

mr_duration mr_clock_thread_cpu(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

mr_duration mr_clock_process_cpu(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* At MR_NEVER, the thread sleeps for ever. */
static void sleep_until(mr_time t)
{
    /* 2^62 ns are 146 years of uptime, which fit into time_t on every machine */
    const mr_time far = (mr_time)1 << 62;
    mr_time until = MR_MIN(t, far);
    struct timespec at = {(time_t)(until / MR_SECOND), (long)(until % MR_SECOND)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

void mr_clock_sleep(mr_duration d)
{
    sleep_until(mr_time_after(mr_clock_now(), d));
}
