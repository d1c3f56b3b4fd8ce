/* The work of train.ps: take gradients, apply them to its shard, publish versions. The rules:
 *
 * async  Each gradient is one update and one version. Those that wait together are applied in one
 *        pass over memory, with the result of doing them one after another.
 * sync   The mean of `aggregate` gradients of the current version, in order of worker, is one
 *        update; a gradient of an older version, or a worker's second of one version, is stale:
 *        dropped and counted. When fewer workers
 *        are alive, so many are enough. A gradient of no examples says that its worker has nothing
 *        for this version: it is not waited for. When no worker is to spare, what all of them
 *        have announced (mr_params_ready) is applied while they compute the rest. If the update is
 *        of other gradients in the end - a worker was lost in between - that part is made anew.
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
    uint32_t workers; /* sync: so many there are; when all are to be aggregated, gradients are used
                       * while they are computed. 0: unknown */
    const float *const *slots; /* of this shard, to begin with; NULL: zeros. Copied */
    uint32_t processor;        /* on which the calling thread settles */
    uint32_t threads; /* that may share an update, this one included; 0: as the rule wants */
};

struct mr_update_counts {
    uint64_t updates;  /* versions published */
    uint64_t applied;  /* gradients */
    uint64_t examples; /* in them */
    uint64_t stale;
    uint64_t early; /* passes along gradients that were still being computed */
    uint64_t lost;  /* of revoked incarnations and older epochs, those of the shard included */
    uint64_t update_ns, wait_ns;
};

int mr_update_open(const struct mr_update_options *o, struct mr_update **out, struct mr_error *e);
void mr_update_close(struct mr_update **u); /* before the shard */

/* Works until the deadline or until the version is `version_limit` (0: no limit), which it never
 * passes: gradients beyond it wait, so that a checkpoint can be cut there. MR_OK at the limit;
 * MR_ETIMEOUT by the deadline, whether or not there was work; MR_ECANCELED by the shard's stop
 * flag. */
int mr_update_run(struct mr_update *u, uint64_t version_limit, mr_time deadline);

/* Instead, when no more versions are to be made: drops what is held and what comes by the deadline,
 * counted as stale. */
int mr_update_drop(struct mr_update *u, mr_time deadline);

/* Sync: so many workers are alive now, so `aggregate` or fewer gradients make an update. */
void mr_update_set_live(struct mr_update *u, uint32_t workers);

/* mr_shard_restore, with slots (NULL: zeros). Gradients held for the next mean are dropped. */
void mr_update_restore(struct mr_update *u, uint32_t restore_epoch, uint64_t version,
    const float *params, const float *const *slots);

/* mr_nn_optim_slots() vectors of the shard's count: for a checkpoint, between two runs. */
float *const *mr_update_slots(struct mr_update *u);
void mr_update_counts(const struct mr_update *u, struct mr_update_counts *out); /* any thread */
