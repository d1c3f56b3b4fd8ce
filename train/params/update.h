/* The work of train.ps: takes gradients, applies them to its shard, publishes versions. The rules:
 *
 * async  Each gradient is one update and one version, however stale it is (Downpour SGD: Dean et
 *        al., "Large Scale Distributed Deep Networks", 2012). Gradients that wait together are
 *        applied in one pass over memory, with the same result as one after another.
 * sync   The mean of `aggregate` gradients of the current version is one update (Chen et al.,
 *        "Revisiting Distributed Synchronous SGD", 2016, with backup workers). It is taken in order
 *        of worker, so that the sum is reproducible. A gradient of an older version, or the second
 *        of one worker and version, is stale: it is dropped and counted. With fewer live workers
 *        than `aggregate`, as many gradients are enough. A gradient of no examples says that its
 *        worker has none for this version, so the update does not wait for that worker.
 *        When all workers are to be aggregated, final parts of their gradients are applied while
 *        the workers compute the rest (mr_params_ready). If the update then uses other gradients,
 *        because a worker was lost, that part is done again.
 *
 *     err = mr_update_open(&options, &u, e);
 *     while (…) {
 *         err = mr_update_run(u, checkpoint_at, now + 50 * MR_MS);
 *         if (mr_shard_version(shard) == checkpoint_at) …write params and slots…
 *     }
 *
 * The thread of the role calls everything here unless the comment says otherwise. */
#pragma once

#include "nn/optim/optim.h"
#include "train/params/mailbox.h"

struct mr_update;

enum mr_update_rule { MR_UPDATE_ASYNC, MR_UPDATE_SYNC };

struct mr_update_options {
    struct mr_shard *shard;          /* lent */
    const struct mr_nn_optim *optim; /* copied */
    uint64_t trainable_count;        /* of the whole model */
    enum mr_update_rule rule;
    uint32_t aggregate; /* sync: replicas_to_aggregate, at least 1 */
    uint32_t workers;   /* sync: number of workers; if all are to be aggregated, early passes are
                         * possible. 0: unknown */
    const float *const *slots; /* of this shard, to begin with; NULL: zeros. Copied */
    uint32_t processor;        /* preferred by the calling thread */
    uint32_t threads; /* that share an update, the calling one included; 0: as the rule needs */
};

struct mr_update_counts {
    uint64_t updates;  /* versions published */
    uint64_t applied;  /* gradients */
    uint64_t examples; /* in them */
    uint64_t stale;
    uint64_t early; /* early passes */
    uint64_t lost;  /* gradients of revoked incarnations and older epochs */
    uint64_t update_ns, wait_ns;
};

int mr_update_open(const struct mr_update_options *o, struct mr_update **out, struct mr_error *e);
void mr_update_close(struct mr_update **u); /* close the update before its shard */

/* Works until the deadline, or until the version is `version_limit` (0: no limit). The version
 * never passes the limit: further gradients wait, so that a checkpoint can be taken there. MR_OK:
 * at the limit. MR_ETIMEOUT: the deadline, whether or not there was work. MR_ECANCELED: the shard's
 * stop flag. */
int mr_update_run(struct mr_update *u, uint64_t version_limit, mr_time deadline);

/* Used instead when no more versions are to be made: drops the held gradients and those that come
 * by the deadline. They count as stale. */
int mr_update_drop(struct mr_update *u, mr_time deadline);

/* Sync: with fewer live workers than `aggregate`, as many gradients as workers make an update. */
void mr_update_set_live(struct mr_update *u, uint32_t workers);

/* As mr_shard_restore, with slots (NULL: zeros). Drops the held gradients. */
void mr_update_restore(struct mr_update *u, uint32_t restore_epoch, uint64_t version,
    const float *params, const float *const *slots);

/* For checkpoints, between two runs: mr_nn_optim_slots() vectors of the shard's count. */
float *const *mr_update_slots(struct mr_update *u);
void mr_update_counts(const struct mr_update *u, struct mr_update_counts *out); /* any thread */
