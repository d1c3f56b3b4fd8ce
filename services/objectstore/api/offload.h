/* A thread that does what would hold up the gRPC thread, in the order it was asked. */
#pragma once

#include "base/err.h"

#define MR_HELPER_JOBS_MAX 65536u

struct mr_helper;

struct mr_helper *mr_helper_open(const char *name);
void mr_helper_close(struct mr_helper **h); /* does what it was asked for, then ends */
/* `run(p, q)` on its thread. MR_ELIMIT: too much is waiting; MR_ESTATE: closed. */
int mr_helper_do(struct mr_helper *h, void (*run)(void *p, void *q), void *p, void *q);
