/* Threads: named, with every signal blocked (host/signal.h takes those), joined by their owner. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_thread;

struct mr_thread *mr_thread_start(const char *name, void (*run)(void *ctx), void *ctx);
/* A number of the calling thread: no other that lives has it. Never 0; cheap. */
uint64_t mr_thread_self(void);
/* The calling thread from now on gives way to those that did not call this. */
void mr_thread_set_background(void);
/* The calling thread runs soon after it wakes, in short turns, while others want its processor,
 * too; or again as all do. No more of the processor than its share. A hint: Linux 6.12 knows it. */
void mr_thread_set_short_slice(bool on);
/* The calling thread goes to one of the processors that it may use: the n-th, counted round and
 * round; that is its home. It is not bound to it: where others want the processor, too, the kernel
 * may move it. Threads that wake together and come home do not gather on one processor. */
void mr_thread_cpu_prefer(uint32_t n);
/* … goes there again if it was moved, 20 times a second at most, less often where it has to wait.
 * Cheap; nothing without a home. */
void mr_thread_cpu_return(void);
void mr_thread_cpu_clear(void);                 /* … has no home any more */
void mr_thread_join(struct mr_thread **thread); /* waits for the end of `run`; NULL is fine */
