/* All-reduce: ranks that compute gradients of the same parameters, average them, and move the
 * parameters together. Rank r owns slice r of the vector (mr_transport_slice): it averages that
 * slice over all ranks and runs the optimizer on it.
 *
 * Ranks of one node share one segment: no copies, and a step ends when all slices are there. When
 * any rank is on another node all form a ring over gRPC: 2 (ranks - 1) rounds a step. The result is
 * the same, bit for bit.
 *
 *     err = mr_reduce_open(&options, deadline, &r, e);           with all other ranks
 *     while (…) {
 *         mr_nn_net_learn(net, loss, mr_reduce_params(r), &batch, mr_reduce_buffer(r), …);
 *         err = mr_reduce_step(r, deadline, e);
 *     }
 *     mr_reduce_close(&r);
 *
 * MR_EAWAY: a rank is gone, MR_ECANCELED: the stop flag or mr_reduce_abort, MR_EABORTED: ranks
 * disagree (generation, version, count), MR_ETIMEOUT: not all came in time. After any of these the
 * parameters are void: close, Join again, and open anew from a checkpoint.
 *
 * A scorer reads through an ordinary shard (params/shard.h, shard 0 of 1) that rank 0 opens beside
 * the group: after a step, if mr_shard_is_wanted, copy mr_reduce_params to mr_shard_next and
 * publish mr_reduce_version. One thread uses a rank. */
#pragma once

#include "nn/optim/optim.h"
#include "train/plan/limits.h"
#include "train/transport/transport.h"

struct mr_reduce;

struct mr_reduce_options {
    const char *session;
    uint32_t generation; /* of the membership: all ranks open with the same one */
    uint32_t rank, ranks;
    const struct mr_place *places;   /* by rank, copied */
    uint64_t count, trainable_count; /* of the model */
    const struct mr_nn_optim *optim; /* copied */
    uint64_t version;                /* to begin with: the same for all */
    const float *params;             /* of this rank's slice; copied */
    const float *const *slots;       /* of this rank's slice; NULL: zeros. Copied */
    bool only_remote;                /* for tests and measurements: a ring even on one node */
    const struct mr_flag *stop;      /* NULL: none; lent for the group's life */
};

struct mr_reduce_counts {
    uint64_t steps;
    uint64_t wait_ns;    /* for other ranks; of a ring also what it sends and adds meanwhile */
    uint64_t average_ns; /* in one segment: adding up what the others computed */
    uint64_t update_ns;  /* the optimizer on this rank's slice */
    bool is_remote;      /* a ring */
};

int mr_reduce_open(const struct mr_reduce_options *o, mr_time deadline, struct mr_reduce **out,
    struct mr_error *e);
void mr_reduce_close(struct mr_reduce **r); /* the others notice at their next step */

float *mr_reduce_buffer(struct mr_reduce *r); /* for all `count` gradients; the same at each step */
/* Before the step: these gradients of the buffer are final, so that ranks that are done need not
 * wait for this one's whole pass backward. In the order of mr_nn_net_follow. Need not be called. */
void mr_reduce_ready(struct mr_reduce *r, uint64_t offset, uint64_t count);
/* Before the step: this rank has no examples, and its buffer is 0 where parameters are trained. The
 * mean is of the others then, and where nobody has any, nothing that is trained moves and no
 * version is made. */
void mr_reduce_pass(struct mr_reduce *r);
int mr_reduce_step(struct mr_reduce *r, mr_time deadline, struct mr_error *e);
const float *mr_reduce_params(const struct mr_reduce *r); /* all; change inside step only */
uint64_t mr_reduce_version(const struct mr_reduce *r);

/* For checkpoints, between steps: this rank's slice of the parameters and its optimizer slots. */
void mr_reduce_slice(const struct mr_reduce *r, uint64_t *first, uint64_t *count);
float *const *mr_reduce_slots(struct mr_reduce *r);

void mr_reduce_abort(struct mr_reduce *r); /* any thread: ends a step of this rank and of others */
void mr_reduce_counts(const struct mr_reduce *r, struct mr_reduce_counts *out);
