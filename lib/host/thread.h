/* Threads: named, with every signal blocked (host/signal.h takes those), joined by their owner. */
#pragma once

#include "base/defs.h"

struct mr_thread;

struct mr_thread *mr_thread_start(const char *name, void (*run)(void *ctx), void *ctx);
/* The calling thread from now on gives way to those that did not call this. */
void mr_thread_give_way(void);
void mr_thread_join(struct mr_thread **thread); /* waits for the end of `run`; NULL is fine */
