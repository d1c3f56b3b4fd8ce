/* The parameters of a model as train.worker and train.scorer see them: one flat vector, which is
 * pulled from the servers of its shards, and gradients, which are pushed to them.
 *
 *     err = mr_params_open(&options, deadline, &p, e);
 *     for (uint64_t step = resume; …; step++) {
 *         err = mr_params_pull(p, version_min, deadline, &view, e);  without a copy where possible
 *         err = mr_params_buffer(p, deadline, &grads, e);
 *         mr_nn_net_learn(net, loss, view.params, &batch, grads, &score, e);
 *         mr_params_release(p);                  before that, mr_params_ready may be called
 *         err = mr_params_push(p, step, examples, e);
 *     }
 *     (void)mr_params_flush(p, deadline, e);
 *     mr_params_close(&p);
 *
 * version_min: 0 under the asynchronous rule (the newest version). Under the synchronous rule,
 * `view.version + 1` after a push, so that the next gradient belongs to the next version.
 *
 * Errors of all functions: MR_ETIMEOUT: the deadline has passed and nothing has changed; try again.
 * MR_ECANCELED: the stop flag is set. MR_EAWAY: a server is gone; close the client, call
 * Trainings.Join again, and open a new client. MR_EABORTED: a server has another restore epoch,
 * because the session went back to a checkpoint. Call Join again, which answers with the epoch.
 * Then call mr_params_set_epoch, or close the client and open a new one.
 *
 * A shard on this node is reached by shared memory if its socket admits this process; any other
 * shard is reached by gRPC at its address. Nothing else differs. One thread uses a client. */
#pragma once

#include "train/plan/limits.h"
#include "train/transport/transport.h"

struct mr_params;

struct mr_params_options {
    const char *session;
    uint32_t worker;      /* index of this worker; a reader may give any number */
    uint64_t incarnation; /* incarnation of this role, from Join */
    uint64_t count;       /* how many numbers the whole model has */
    uint32_t restore_epoch;
    const struct mr_place *shards; /* one for each shard, in order; copied */
    uint32_t shards_count;
    bool reads_only; /* true for a scorer, which needs no gradient buffers */
    /* waits a little for shards whose version is behind (for the synchronous rule) */
    bool same_version;
    /* mr_params_ready announces the gradients below this number, from the last to the first, as
     * they become final; 0: it announces none */
    uint64_t early_count;
    bool only_remote;           /* uses gRPC even on this node; for tests and measurements */
    const struct mr_flag *stop; /* NULL: none; lent for the client's life */
};

struct mr_params_view {
    const float *params; /* the whole model; lent until release, the next pull or close */
    uint64_t version;    /* the lowest of the shards' versions */
    uint32_t restore_epoch;
};

struct mr_params_counts { /* totals since the client was opened */
    uint64_t pulls, pushes;
    /* pushes that servers dropped: outcome MR_PUSH_STALE or MR_PUSH_LOST (mailbox.h) */
    uint64_t dropped;
    uint64_t pull_ns, push_ns; /* time inside pull and push, without the waits */
    uint64_t wait_ns;          /* time of waiting for a version or for a free buffer */
    uint32_t shards_local, shards_remote;
};

/* Opens a client. Tries until the deadline, because servers may still be starting. */
int mr_params_open(const struct mr_params_options *o, mr_time deadline, struct mr_params **out,
    struct mr_error *e);
/* Closes the client. Pushes that have no answer yet may be lost, so mr_params_flush comes first. */
void mr_params_close(struct mr_params **p);

/* Waits until every shard has at least `version_min`, and sets `*out` to the newest parameters.
 * Releases the previous view first. */
int mr_params_pull(struct mr_params *p, uint64_t version_min, mr_time deadline,
    struct mr_params_view *out, struct mr_error *e);
/* Releases the view, which the server may overwrite from now on. */
void mr_params_release(struct mr_params *p);

/* Sets `*out` to a buffer for the gradient of the whole model. The content is undefined. Every call
 * before the push sets the same buffer. Waits while two pushes have no answer yet. */
int mr_params_buffer(struct mr_params *p, mr_time deadline, float **out, struct mr_error *e);

/* Announces, before the push of `step`, that the gradients `offset` … `offset + count - 1` in the
 * buffer are final. Under the synchronous rule, a server of this node moves its parameters along
 * these gradients while the worker computes the others. Ranges are announced in the order in which
 * mr_nn_net_follow reports them. */
void mr_params_ready(struct mr_params *p, uint64_t step, uint64_t offset, uint64_t count);

/* Pushes the buffer, whose gradient was computed at the last pulled view. Does not wait. `step` has
 * to grow with each push of this role's incarnation: servers ignore a push whose step is not larger
 * than the last one. */
int mr_params_push(struct mr_params *p, uint64_t step, uint32_t examples, struct mr_error *e);

/* Waits until the servers have answered all pushes. */
int mr_params_flush(struct mr_params *p, mr_time deadline, struct mr_error *e);

/* Sets the restore epoch and drops the view. */
void mr_params_set_epoch(struct mr_params *p, uint32_t restore_epoch);
void mr_params_counts(const struct mr_params *p, struct mr_params_counts *out);
