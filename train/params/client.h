/* The parameters of a model as train.worker and train.scorer see them: one flat vector, which is
 * pulled from the servers of its shards, and gradients, which are pushed to them.
 *
 *     err = mr_params_open(&options, deadline, &p, e);
 *     for (uint64_t step = resume; …; step++) {
 *         err = mr_params_pull(p, version_min, deadline, &view, e);      without a copy, if it can
 *         err = mr_params_buffer(p, deadline, &grads, e);
 *         mr_nn_net_learn(net, loss, view.params, &batch, grads, &score, e);   mr_params_ready
 *         mr_params_release(p);
 *         err = mr_params_push(p, step, examples, e);
 *     }
 *     (void)mr_params_flush(p, deadline, e);
 *     mr_params_close(&p);
 *
 * version_min: 0 under the asynchronous rule (the newest version). Under the synchronous rule,
 * `view.version + 1` after a push, so that the next gradient belongs to the next version.
 *
 * Errors of all functions: MR_ETIMEOUT: the deadline has passed and nothing has changed; try again.
 * MR_ECANCELED: the stop flag is set. MR_EAWAY: a server is gone; close, Join again, open anew.
 * MR_EABORTED: a server has another restore epoch; Join again for the epoch, then
 * mr_params_set_epoch, or close and open.
 *
 * A shard on this node is reached by shared memory if its socket admits this process; any other
 * shard is reached by gRPC at its address. Nothing else differs. One thread uses a client. */
#pragma once

#include "train/plan/limits.h"
#include "train/transport/transport.h"

struct mr_params;

struct mr_params_options {
    const char *session;
    uint32_t worker;      /* index of this worker; of a reader: anything */
    uint64_t incarnation; /* of this role, from Join */
    uint64_t count;       /* numbers of the whole model */
    uint32_t restore_epoch;
    const struct mr_place *shards; /* copied; in order, one for each shard */
    uint32_t shards_count;
    bool reads_only;      /* a scorer: makes no gradient buffers */
    bool same_version;    /* wait a little for shards whose version is behind (sync) */
    uint64_t early_count; /* the first this many gradients are announced while they become final,
                           * from the last to the first (mr_params_ready); 0: none are announced */
    bool only_remote;     /* for tests and measurements: gRPC even on this node */
    const struct mr_flag *stop; /* NULL: none; lent for the client's life */
};

struct mr_params_view {
    const float *params; /* all `count`; a loan until release, the next pull or close */
    uint64_t version;    /* the lowest version of any shard */
    uint32_t restore_epoch;
};

struct mr_params_counts { /* since open */
    uint64_t pulls, pushes;
    uint64_t dropped;          /* pushes that servers dropped: stale or lost */
    uint64_t pull_ns, push_ns; /* inside pull and push, without the waits */
    uint64_t wait_ns;          /* waiting for a version or for a free buffer */
    uint32_t shards_local, shards_remote;
};

/* Tries until the deadline, because servers may still be starting. */
int mr_params_open(const struct mr_params_options *o, mr_time deadline, struct mr_params **out,
    struct mr_error *e);
void mr_params_close(struct mr_params **p); /* may lose pushes that are under way: flush first */

/* Waits until every shard has at least `version_min`, and returns the newest parameters. Releases
 * the previous view. */
int mr_params_pull(struct mr_params *p, uint64_t version_min, mr_time deadline,
    struct mr_params_view *out, struct mr_error *e);
void mr_params_release(struct mr_params *p); /* the server may overwrite the view from now on */

/* A buffer for all `count` gradients, of undefined content; the same one until it is pushed. Waits
 * while two pushes are under way. */
int mr_params_buffer(struct mr_params *p, mr_time deadline, float **out, struct mr_error *e);

/* Announces, before the push of `step`, that these gradients in the buffer are final. A server of
 * this node moves its parameters along them while the rest is computed (synchronous rule). Call in
 * the order of mr_nn_net_follow. */
void mr_params_ready(struct mr_params *p, uint64_t step, uint64_t offset, uint64_t count);

/* Pushes the buffer, which was computed at the last pulled view. Does not wait. `step` has to grow
 * with each push of an incarnation; servers ignore a repeated step. */
int mr_params_push(struct mr_params *p, uint64_t step, uint32_t examples, struct mr_error *e);

/* Waits until the servers have answered all pushes. */
int mr_params_flush(struct mr_params *p, mr_time deadline, struct mr_error *e);

void mr_params_set_epoch(struct mr_params *p, uint32_t restore_epoch); /* drops the view */
void mr_params_counts(const struct mr_params *p, struct mr_params_counts *out);
