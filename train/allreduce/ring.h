/* Private to train/allreduce: a rank of a ring between nodes, over gRPC. */
#pragma once

#include "train/allreduce/allreduce.h"

struct mr_ring;

/* Opens the rank. Returns as soon as the next rank has answered. */
int mr_ring_open(
    const struct mr_reduce_options *o, mr_time deadline, struct mr_ring **out, struct mr_error *e);
void mr_ring_close(struct mr_ring **r);

/* A step is: begin; scatter and gather, or (`gathers_only`) gather alone; end. */
void mr_ring_begin(struct mr_ring *r, uint64_t step, bool gathers_only);
/* Reduce-scatter: afterwards this rank's slice of `grads` has the sum over all ranks, added from
 * the next rank's numbers to this rank's own. `*contributors` is 1 if this rank has examples, else
 * 0; it becomes the number of ranks that have examples. */
int mr_ring_scatter(
    struct mr_ring *r, float *grads, uint32_t *contributors, mr_time deadline, struct mr_error *e);
/* All-gather: afterwards `params` has the slices of all ranks. */
int mr_ring_gather(struct mr_ring *r, float *params, mr_time deadline, struct mr_error *e);
int mr_ring_end(struct mr_ring *r, mr_time deadline, struct mr_error *e);
