/* Private to train/allreduce: the ranks of one node, which share one segment of memory. */
#pragma once

#include "train/allreduce/allreduce.h"

struct mr_shm_group;

/* Opens the group. Rank 0 makes and serves the segment, and the other ranks connect to rank 0. */
int mr_shm_group_open(const struct mr_reduce_options *o, mr_time deadline,
    struct mr_shm_group **out, struct mr_error *e);
/* Closes the group. This call aborts the steps of the other ranks. */
void mr_shm_group_close(struct mr_shm_group **n);
float *mr_shm_group_params(struct mr_shm_group *n);
float *mr_shm_group_grads(struct mr_shm_group *n, uint32_t rank);

/* The vector has the trained numbers first, then the others (`trainable_count` in allreduce.h).
 * mr_shm_group_announce says that this rank's gradients are final from index `low` to the last
 * trained number. _all says that the gradients of the whole vector are final. _none says the same
 * for a rank that has no examples in this step. */
void mr_shm_group_announce(struct mr_shm_group *n, uint64_t low);
void mr_shm_group_announce_all(struct mr_shm_group *n);
void mr_shm_group_announce_none(struct mr_shm_group *n);
/* Returns an index in the vector. From this index to the last trained number, the gradients of all
 * ranks are final. UINT64_MAX: some rank has announced nothing in this step. Sets `*all` to true if
 * the gradients of the whole vector are final in all ranks, else to false. */
uint64_t mr_shm_group_final(const struct mr_shm_group *n, bool *all);
/* Returns how many ranks have examples in this step. Valid when mr_shm_group_final no longer
 * returns UINT64_MAX. */
uint32_t mr_shm_group_contributors(const struct mr_shm_group *n);
/* Waits until mr_shm_group_final returns less than `low` or sets `*all`. MR_ETIMEOUT: this has not
 * happened by `deadline`. After any error, the steps of all ranks are aborted. */
int mr_shm_group_await(struct mr_shm_group *n, uint64_t low, mr_time deadline, struct mr_error *e);
/* Waits until all ranks have called this function. What a rank announces after this call
 * (mr_shm_group_announce) counts for the next step. */
int mr_shm_group_barrier(struct mr_shm_group *n, mr_time deadline, struct mr_error *e);
