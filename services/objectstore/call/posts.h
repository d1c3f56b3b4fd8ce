/* Functions that are to run on the gRPC thread soon. Other threads post answers here. The gRPC
 * thread itself posts what it must not do at once, because its caller still uses the same call. */
#pragma once

#include "rpc/loop.h"

struct mr_posts;

/* On the gRPC thread. `loop` is borrowed. */
struct mr_posts *mr_posts_new(struct mr_rpc_loop *loop);
void mr_posts_free(struct mr_posts **q);
/* Any thread. Runs `run(p)` on the gRPC thread and wakes its loop. Another thread waits while the
 * inbox is full. After mr_posts_close nothing more is taken, and `run` is not called. */
void mr_posts_add(struct mr_posts *q, void (*run)(void *p), void *p);
/* On the gRPC thread: runs some of the posted functions, and returns their number. They may post
 * more, so the caller repeats until 0. */
size_t mr_posts_run(struct mr_posts *q);
void mr_posts_close(struct mr_posts *q);
