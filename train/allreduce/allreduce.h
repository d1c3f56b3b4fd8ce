/* All-reduce: ranks that compute gradients of the same parameters, average them, and update the
 * parameters together. Rank r owns slice r of the vector (mr_transport_slice): it averages the
 * gradients of that slice over all ranks and runs the optimizer on it (as ZeRO shards the
 * optimizer: Rajbhandari et al., 2020).
 *
 * Ranks of one node share one segment without copies. If any rank is on another node, all ranks
 * form a ring over gRPC, with 2 (ranks - 1) rounds a step. Both give the same result, bit for bit.
 *
 *     err = mr_reduce_open(&options, deadline, &r, e);           with all other ranks
 *     while (…) {
 *         mr_nn_net_learn(net, loss, mr_reduce_params(r), &batch, mr_reduce_buffer(r), …);
 *         err = mr_reduce_step(r, deadline, e);
 *     }
 *     mr_reduce_close(&r);
 *
 * MR_EAWAY: a rank is gone. MR_ECANCELED: the stop flag, or mr_reduce_abort. MR_EABORTED: the ranks
 * disagree about generation, version or size. MR_ETIMEOUT: some rank was late. After any of these
 * errors the parameters are invalid: close, Join again, and open anew from a checkpoint.
 *
 * A scorer reads an ordinary shard (params/shard.h, shard 0 of 1), which rank 0 opens beside the
 * group: after a step, if mr_shard_is_wanted, rank 0 copies mr_reduce_params to mr_shard_next and
 * publishes mr_reduce_version. One thread uses a rank. */
#pragma once

#include "nn/optim/optim.h"
#include "train/plan/limits.h"
#include "train/transport/transport.h"

struct mr_reduce;

struct mr_reduce_options {
    const char *session;
    uint32_t generation; /* all ranks of a group open with the same number */
    uint32_t rank, ranks;
    const struct mr_place *places;   /* by rank; copied */
    uint64_t count, trainable_count; /* of the model */
    const struct mr_nn_optim *optim; /* copied */
    uint64_t version;                /* the same for all ranks */
    const float *params;             /* of this rank's slice; copied */
    const float *const *slots;       /* of this rank's slice; NULL: zeros. Copied */
    /* For tests and measurements: makes a ring even on one node. */
    bool only_remote;
    const struct mr_flag *stop; /* NULL: none; lent for the group's life */
};

struct mr_reduce_counts {
    uint64_t steps;
    uint64_t wait_ns;    /* waits for other ranks; of a ring also sending and adding */
    uint64_t average_ns; /* shared memory: summing the gradients of all ranks */
    uint64_t update_ns;  /* the optimizer on this rank's slice */
    bool is_remote;      /* a ring */
};

int mr_reduce_open(const struct mr_reduce_options *o, mr_time deadline, struct mr_reduce **out,
    struct mr_error *e);
void mr_reduce_close(struct mr_reduce **r); /* the other ranks notice in their next step */

/* All `count` gradients; the same buffer in each step. */
float *mr_reduce_buffer(struct mr_reduce *r);
/* Announces, before the step, that these gradients of the buffer are final, so that ranks that have
 * finished need not wait for the whole backward pass of this one. Call in the order of
 * mr_nn_net_follow. Optional. */
void mr_reduce_ready(struct mr_reduce *r, uint64_t offset, uint64_t count);
/* Says, before the step, that this rank has no examples; its gradients of trained parameters must
 * be 0. The mean is then over the other ranks. If no rank has examples, the step makes no version
 * and changes no trained parameter. */
void mr_reduce_pass(struct mr_reduce *r);
int mr_reduce_step(struct mr_reduce *r, mr_time deadline, struct mr_error *e);
/* All `count`; they change only inside a step. */
const float *mr_reduce_params(const struct mr_reduce *r);
uint64_t mr_reduce_version(const struct mr_reduce *r);

/* For checkpoints, between steps: this rank's slice of the parameters and its optimizer slots. */
void mr_reduce_slice(const struct mr_reduce *r, uint64_t *first, uint64_t *count);
float *const *mr_reduce_slots(struct mr_reduce *r);

void mr_reduce_abort(struct mr_reduce *r); /* any thread: ends the current step of all ranks */
void mr_reduce_counts(const struct mr_reduce *r, struct mr_reduce_counts *out);
