/* The work of train.ps: takes gradients, applies them to its shard, publishes versions. The rules:
 *
 * async  Each gradient is one update and one version, however stale it is (Downpour SGD: Dean et
 *        al., "Large Scale Distributed Deep Networks", 2012). Gradients that wait together are
 *        applied in one pass over memory, with the same result as one after another.
 * sync   The mean of `aggregate` gradients of the current version is one update (Chen et al.,
 *        "Revisiting Distributed Synchronous SGD", 2016, with backup workers). The gradients are
 *        added in the order of their workers, so that the sum is reproducible. A gradient of an
 *        older version, or the second gradient of one worker and version, is stale: it is dropped
 *        and counted. With fewer live workers than `aggregate`, one gradient of each is enough. A
 *        gradient of no examples says that its worker has no gradient for this version, so the
 *        update does not wait for that worker. When the gradients of all workers are to be
 *        aggregated, there are early passes: a worker announces which numbers of its gradient are
 *        final (mr_params_ready). An early pass applies the numbers that all workers have
 *        announced, while the workers compute the others. If the update then uses other gradients,
 *        because a worker was lost, the early passes are done again.
 *
 *     err = mr_update_open(&options, &u, e);
 *     while (…) {
 *         err = mr_update_run(u, checkpoint_at, now + 50 * MR_MS);
 *         if (mr_shard_version(shard) == checkpoint_at) …write params and slots…
 *     }
 *
 * The role's thread calls all functions, except where a comment says otherwise. */
#pragma once

#include "nn/optim/optim.h"
#include "train/params/mailbox.h"

struct mr_update;

enum mr_update_rule { MR_UPDATE_ASYNC, MR_UPDATE_SYNC };

struct mr_update_options {
    struct mr_shard *shard;          /* lent */
    const struct mr_nn_optim *optim; /* copied */
    uint64_t trainable_count;        /* how many numbers of the whole model are trained */
    enum mr_update_rule rule;
    /* sync: how many gradients make an update (replicas_to_aggregate), at least 1 */
    uint32_t aggregate;
    /* sync: number of workers; early passes are possible if it equals `aggregate`. 0: unknown */
    uint32_t workers;
    /* optimizer slots of this shard at the beginning; NULL: zeros. Copied */
    const float *const *slots;
    uint32_t processor; /* processor that the calling thread prefers */
    /* number of threads that share an update, including the calling thread; 0: a number that suits
     * the rule */
    uint32_t threads;
};

struct mr_update_counts {
    uint64_t updates;  /* published versions */
    uint64_t applied;  /* gradients that were applied */
    uint64_t examples; /* examples of these gradients */
    uint64_t stale;
    /* Number of early passes. Each applies the numbers that are already final in gradients that are
     * not complete yet. */
    uint64_t early;
    /* dropped gradients: of revoked incarnations of workers, or of other restore epochs
     * (mailbox.h) */
    uint64_t lost;
    uint64_t update_ns, wait_ns;
};

int mr_update_open(const struct mr_update_options *o, struct mr_update **out, struct mr_error *e);
/* Closes the update. Called before the shard is closed. */
void mr_update_close(struct mr_update **u);

/* Works until the deadline, or until the version is `version_limit` (0: no limit). The version
 * never passes the limit: further gradients wait, so that a checkpoint can be taken there. MR_OK:
 * the limit is reached. MR_ETIMEOUT: the deadline has passed, whether or not there was work.
 * MR_ECANCELED: the shard's stop flag is set. */
int mr_update_run(struct mr_update *u, uint64_t version_limit, mr_time deadline);

/* Called instead of mr_update_run when no more versions are to be made: drops the held gradients
 * and those that come by the deadline. The dropped gradients count as stale. MR_ETIMEOUT: the
 * deadline has passed. MR_ECANCELED: the shard's stop flag is set. */
int mr_update_drop(struct mr_update *u, mr_time deadline);

/* Sets the number of live workers (synchronous rule). If there are fewer live workers than
 * `aggregate`, an update needs one gradient of each live worker. */
void mr_update_set_live(struct mr_update *u, uint32_t workers);

/* Does the same as mr_shard_restore, and sets the optimizer slots to `slots` (NULL: zeros). Drops
 * the gradients that were collected for the next update. */
void mr_update_restore(struct mr_update *u, uint32_t restore_epoch, uint64_t version,
    const float *params, const float *const *slots);

/* Returns the optimizer slots for a checkpoint: mr_nn_optim_slots() vectors, each with
 * mr_shard_count() numbers. The next call of mr_update_run changes the vectors. */
float *const *mr_update_slots(struct mr_update *u);
/* Sets `*out` to the totals since mr_update_open. Any thread may call this function. */
void mr_update_counts(const struct mr_update *u, struct mr_update_counts *out);
