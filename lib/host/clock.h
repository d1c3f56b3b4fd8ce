/* The clocks. Only the shell of a program reads them; its core gets the time as an argument
 * (base/time.h). */
#pragma once

#include "base/time.h"

mr_time mr_clock_now(void);             /* reads CLOCK_MONOTONIC */
uint64_t mr_clock_wall(void);           /* ns since 1970; the wall clock may jump */
mr_duration mr_clock_thread_cpu(void);  /* returns the CPU time of the calling thread */
mr_duration mr_clock_process_cpu(void); /* returns the CPU time of all threads of the process */
void mr_clock_sleep(mr_duration d);     /* sleeps; must not be called on a core thread */
