/* A thread for work that would block the gRPC thread. It runs its jobs in the order of their
 * submission. */
#pragma once

#include "base/err.h"

#define MR_OFFLOAD_JOBS_MAX 65536u

struct mr_offload;

struct mr_offload *mr_offload_open(const char *name);
/* Waits until all submitted jobs have run, then ends the thread. */
void mr_offload_close(struct mr_offload **h);
/* Makes the offload thread call `run(p, q)`. Any thread may call this function. MR_ELIMIT: too many
 * jobs wait. MR_ESTATE: `h` is closed or NULL. */
int mr_offload_do(struct mr_offload *h, void (*run)(void *p, void *q), void *p, void *q);
