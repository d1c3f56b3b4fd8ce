/* Functions that are to run on the gRPC thread soon. Other threads post answers in this way. The
 * gRPC thread itself posts a function that must not run at once, because its caller still uses the
 * same call. */
#pragma once

#include "rpc/loop.h"

struct mr_posts;

/* Called on the gRPC thread. Borrows `loop`. */
struct mr_posts *mr_posts_new(struct mr_rpc_loop *loop);
void mr_posts_free(struct mr_posts **q);
/* Makes the gRPC thread run `run(p)`, and wakes its loop. Any thread may call this function.
 * Threads other than the gRPC thread wait while too many functions are queued. After mr_posts_close
 * new functions are dropped. */
void mr_posts_add(struct mr_posts *q, void (*run)(void *p), void *p);
/* Runs some of the posted functions, and returns their number. These functions may post more, so
 * the caller repeats this until the result is 0. Called on the gRPC thread. */
size_t mr_posts_run(struct mr_posts *q);
/* Refuses new functions. Functions that were posted before can still be run. */
void mr_posts_close(struct mr_posts *q);
