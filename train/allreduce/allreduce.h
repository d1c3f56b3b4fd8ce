/* All-reduce: ranks that compute gradients of the same parameters, average them, and update the
 * parameters together. Rank r owns slice r of the vector (mr_transport_slice): it averages the
 * gradients of that slice over all ranks and runs the optimizer on the slice (as ZeRO shards the
 * optimizer: Rajbhandari et al., 2020).
 *
 * If all ranks are on one node, they share one segment without copies. Otherwise all ranks form a
 * ring over gRPC, with 2 (ranks - 1) rounds a step. Both ways give the same result, bit for bit.
 *
 *     err = mr_reduce_open(&options, deadline, &r, e);           waits for all other ranks
 *     while (…) {
 *         mr_nn_net_learn(net, loss, mr_reduce_params(r), &batch, mr_reduce_buffer(r), …);
 *         err = mr_reduce_step(r, deadline, e);
 *     }
 *     mr_reduce_close(&r);
 *
 * MR_EAWAY: a rank is gone. MR_ECANCELED: the stop flag is set.
 * MR_EABORTED: the ranks disagree about generation, version or size. MR_ETIMEOUT: a rank was late.
 * After any of these errors the parameters are invalid: close the rank, call Trainings.Join again,
 * and open the rank anew from a checkpoint.
 *
 * A scorer reads an ordinary shard (params/shard.h, shard 0 of 1), which rank 0 opens beside the
 * group. After a step, if mr_shard_is_wanted, rank 0 copies mr_reduce_params to mr_shard_next and
 * publishes mr_reduce_version.
 *
 * One thread uses a rank. */
#pragma once

#include "nn/optim/optim.h"
#include "train/plan/limits.h"
#include "train/transport/transport.h"

struct mr_reduce;

struct mr_reduce_options {
    const char *session;
    uint32_t generation; /* all ranks of a group open with the same number */
    uint32_t rank, ranks;
    const struct mr_place *places; /* by rank; copied */
    /* how many numbers the vector has: those of the model, and those that the caller adds; how many
     * of them, from the first on, are trained */
    uint64_t count, trainable_count;
    const struct mr_nn_optim *optim; /* copied */
    uint64_t version;                /* version of the parameters, the same for all ranks */
    const float *params;             /* parameters of this rank's slice; copied */
    const float *const *slots;       /* optimizer slots of this rank's slice; NULL: zeros. Copied */
    /* Makes a ring even on one node. For tests and measurements. */
    bool only_remote;
    const struct mr_flag *stop; /* NULL: none; lent for the group's life */
};

struct mr_reduce_counts {
    uint64_t steps;
    /* time waiting for other ranks; in a ring this includes the time for sending and adding */
    uint64_t wait_ns;
    uint64_t average_ns; /* only with shared memory: time for summing the gradients of all ranks */
    uint64_t update_ns;  /* time of the optimizer on this rank's slice */
    bool is_remote;      /* the ranks form a ring */
};

int mr_reduce_open(const struct mr_reduce_options *o, mr_time deadline, struct mr_reduce **out,
    struct mr_error *e);
/* Closes the rank. The other ranks notice this in their next step. */
void mr_reduce_close(struct mr_reduce **r);

/* Returns the buffer for all `count` gradients, which is the same in each step. */
float *mr_reduce_buffer(struct mr_reduce *r);
/* Announces, before the step, that the gradients `offset` … `offset + count - 1` in the buffer are
 * final. So ranks that have finished need not wait for the whole backward pass of this rank. Ranges
 * are announced in the order in which mr_nn_net_follow reports them. Optional. */
void mr_reduce_ready(struct mr_reduce *r, uint64_t offset, uint64_t count);
/* Says, before the step, that this rank has no examples. Its gradients of trained parameters must
 * be 0. The mean is then taken over the ranks that have examples. If no rank has examples, the step
 * makes no version and changes no trained parameter. */
void mr_reduce_pass(struct mr_reduce *r);
int mr_reduce_step(struct mr_reduce *r, mr_time deadline, struct mr_error *e);
/* Returns all `count` parameters. They change only inside a step. */
const float *mr_reduce_params(const struct mr_reduce *r);
uint64_t mr_reduce_version(const struct mr_reduce *r);

/* For checkpoints, between steps: mr_reduce_slice sets `*first` and `*count` to the range of this
 * rank's slice, and mr_reduce_slots returns the optimizer slots of the slice. */
void mr_reduce_slice(const struct mr_reduce *r, uint64_t *first, uint64_t *count);
float *const *mr_reduce_slots(struct mr_reduce *r);

void mr_reduce_counts(const struct mr_reduce *r, struct mr_reduce_counts *out);
