/* Private to train/allreduce: the two ways between ranks, shared memory and a ring. */
#pragma once

#include "train/allreduce/allreduce.h"
#include "train/transport/segment.h"

struct mr_reduce_wait { /* what ends a wait besides its deadline */
    const struct mr_flag *stop;
    const struct mr_flag *aborted;
};

/* ---- one segment (shm.c) ----------------------------------------------------------- */

struct mr_shm_group;

int mr_shm_group_open(const struct mr_reduce_options *o, struct mr_reduce_wait w, mr_time deadline,
    struct mr_shm_group **out, struct mr_error *e);
void mr_shm_group_close(struct mr_shm_group **n); /* the other ranks learn of it */
float *mr_shm_group_params(struct mr_shm_group *n);
float *mr_shm_group_grads(struct mr_shm_group *n, uint32_t rank);
/* This rank's gradients from `low` on are final, up to the end of what is trained. */
void mr_shm_group_announce(struct mr_shm_group *n, uint64_t low);
void mr_shm_group_announce_all(struct mr_shm_group *n);
void mr_shm_group_announce_none(struct mr_shm_group *n); /* the same, but of no examples */
/* Ranks that have gradients of examples; once mr_shm_group_final is not UINT64_MAX. */
uint32_t mr_shm_group_contributors(const struct mr_shm_group *n);
/* From which number on those of all ranks are final, up to the end of what is trained (UINT64_MAX:
 * none are); `*all`: from 0 on, and what stands behind, too. */
uint64_t mr_shm_group_final(const struct mr_shm_group *n, bool *all);
/* Waits until that is below `low`, or all are. */
int mr_shm_group_await(struct mr_shm_group *n, uint64_t low, mr_time deadline, struct mr_error *e);
/* All ranks are here; what is announced after it is of the next step. */
int mr_shm_group_barrier(struct mr_shm_group *n, mr_time deadline, struct mr_error *e);
void mr_shm_group_abort(struct mr_shm_group *n); /* any thread */

/* ---- a ring (ring.c) ----------------------------------------------------------------------- */

struct mr_ring;

/* Returns when the next rank is there. */
int mr_ring_open(const struct mr_reduce_options *o, struct mr_reduce_wait w, mr_time deadline,
    struct mr_ring **out, struct mr_error *e);
void mr_ring_close(struct mr_ring **r);
/* One step: begin, scatter and gather or gather alone, end. After scatter the slice of this rank
 * holds the sum over all ranks, beginning with the next rank's and ending with its own;
 * `*contributors` is 1 if this rank has examples, and becomes how many ranks have. */
void mr_ring_begin(struct mr_ring *r, uint64_t step, bool gathers_only);
int mr_ring_scatter(
    struct mr_ring *r, float *grads, uint32_t *contributors, mr_time deadline, struct mr_error *e);
int mr_ring_gather(struct mr_ring *r, float *params, mr_time deadline, struct mr_error *e);
int mr_ring_end(struct mr_ring *r, mr_time deadline, struct mr_error *e);
