/* The clocks. Only the shell of a program reads them; its core gets the time as an argument
 * (base/time.h). */
#pragma once

#include "base/time.h"

#include <stdbool.h>

mr_time mr_clock_now(void);             /* reads CLOCK_MONOTONIC */
uint64_t mr_clock_wall(void);           /* ns since 1970; the wall clock may jump */
mr_duration mr_clock_thread_cpu(void);  /* returns the CPU time of the calling thread */
mr_duration mr_clock_process_cpu(void); /* returns the CPU time of all threads of the process */
void mr_clock_sleep(mr_duration d);     /* sleeps; not to be called on the thread of a core */

/* How long a thread could run and did not, because the kernel ran another one. Read from
 * /proc/thread-self/schedstat (Linux, Documentation/scheduler/sched-stats.rst).
 * mr_clock_delay_open returns a descriptor for the calling thread, which any thread may read. -1:
 * the kernel does not tell. */
int mr_clock_delay_open(void);
void mr_clock_delay_close(int *fd);
/* Sets `*delay` to the time, since its start, for which the thread of `fd` could run and did not.
 * False: this time cannot be read. */
bool mr_clock_delay_read(int fd, mr_duration *delay);
