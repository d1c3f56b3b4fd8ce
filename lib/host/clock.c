/* Reads the kernel's clocks. */
#include "host/clock.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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
    /* 2^62 ns are 146 years, longer than any uptime; the seconds fit into a time_t of 64 bits */
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

int mr_clock_delay_open(void)
{
    return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void mr_clock_delay_close(int *fd)
{
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}

/* The file schedstat has three numbers: ns that the thread ran, ns that it waited for a processor,
 * and the number of its time slices. */
bool mr_clock_delay_read(int fd, mr_duration *delay)
{
    char text[96];
    if (fd < 0) return false;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0) return false;
    text[n] = 0;
    char *end = NULL, *last = NULL;
    (void)strtoull(text, &end, 10);
    unsigned long long waited = strtoull(end, &last, 10);
    if (last == end) return false;
    *delay = waited;
    return true;
}
