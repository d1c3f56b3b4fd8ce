/* Private to train/allreduce: a rank of a ring between nodes, over gRPC. */
#pragma once

#include "train/allreduce/allreduce.h"

struct mr_ring;

/* Opens the rank. Returns MR_OK as soon as the next rank has answered. MR_ETIMEOUT: the next rank
 * has not answered by `deadline`. MR_EAWAY: the next rank has no gRPC address. */
int mr_ring_open(
    const struct mr_reduce_options *o, mr_time deadline, struct mr_ring **out, struct mr_error *e);
void mr_ring_close(struct mr_ring **r);

/* A step is: begin; scatter and gather, or (`gathers_only`) gather alone; end. */
void mr_ring_begin(struct mr_ring *r, uint64_t step, bool gathers_only);
/* Reduce-scatter: afterwards this rank's slice of `grads` has the sum over all ranks. The numbers
 * of the next rank are added first, and those of this rank last. The caller sets `*contributors` to
 * 1 if this rank has examples, else to 0. The function sets it to the number of ranks that have
 * examples. */
int mr_ring_scatter(
    struct mr_ring *r, float *grads, uint32_t *contributors, mr_time deadline, struct mr_error *e);
/* All-gather: afterwards `params` has the slices of all ranks. */
int mr_ring_gather(struct mr_ring *r, float *params, mr_time deadline, struct mr_error *e);
int mr_ring_end(struct mr_ring *r, mr_time deadline, struct mr_error *e);
