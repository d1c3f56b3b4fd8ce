/* Threads: each has a name, blocks all signals (host/os/signal.h receives them), and is joined by
 * its owner. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_thread;

struct mr_thread *mr_thread_start(const char *name, void (*run)(void *ctx), void *ctx);
/* Returns a number of the calling thread, never 0, which no other living thread has. */
uint64_t mr_thread_self(void);
/* Makes the calling thread a background thread: it gets less processor time than others (nice
 * 10). */
void mr_thread_set_background(void);
/* Gives the calling thread short time slices: it runs soon after it wakes even if other threads
 * want its processor, but gets no larger share of the processor. `on` false: the default slice.
 * Linux 6.12 and later follow this hint; earlier kernels ignore it. */
void mr_thread_set_short_slice(bool on);
/* Sets a soft affinity: the calling thread moves to the n-th of the processors that it may use,
 * counted cyclically, and prefers it from now on. The kernel may still move the thread. Without a
 * preference, threads that wake together gather on one processor. */
void mr_thread_cpu_prefer(uint32_t n);
/* Moves the calling thread back to its preferred processor if the kernel has moved it away: at most
 * 20 times a second, less often if the thread had to wait for the processor. Does nothing without a
 * preference. */
void mr_thread_cpu_return(void);
void mr_thread_cpu_clear(void); /* ends the preference */
/* Waits until the thread's `run` has returned, and frees the thread; `*thread` may be NULL. */
void mr_thread_join(struct mr_thread **thread);
