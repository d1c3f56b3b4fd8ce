/* Threads: named, with every signal blocked (host/os/signal.h takes those), joined by their owner.
 */
#pragma once

#include "base/defs.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_thread;

struct mr_thread *mr_thread_start(const char *name, void (*run)(void *ctx), void *ctx);
/* A number of the calling thread that no other living thread has. Never 0; cheap. */
uint64_t mr_thread_self(void);
/* The calling thread becomes a background thread: it gets less processor time than
 * others (nice 10). */
void mr_thread_set_background(void);
/* The calling thread gets short time slices: it runs soon after it wakes, also while other threads
 * want its processor, and gets no more than its share. Off: as all threads. A hint: Linux 6.12 and
 * later use it. */
void mr_thread_set_short_slice(bool on);
/* Soft affinity. The calling thread prefers the n-th of the processors that it may use, counted
 * round and round, and goes there. It is not bound to it: the kernel may move it when other threads
 * want the processor. Threads that wake together and return do not gather on one processor. */
void mr_thread_cpu_prefer(uint32_t n);
/* It goes there again if the kernel has moved it: 20 times a second at most, less often where it
 * has to wait. Cheap; does nothing without a preference. */
void mr_thread_cpu_return(void);
void mr_thread_cpu_clear(void);                 /* ends the preference */
void mr_thread_join(struct mr_thread **thread); /* waits for the end of `run`; NULL is fine */
