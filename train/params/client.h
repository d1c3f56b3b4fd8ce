/* The parameters of a model as train.worker and train.scorer see them: one flat vector, pulled
 * from the servers of its shards, and gradients pushed to them.
 *
 *     err = mr_params_open(&options, deadline, &p, e);
 *     for (uint64_t step = resume; …; step++) {
 *         err = mr_params_pull(p, version_min, deadline, &view, e);      zero-copy if it can be
 *         err = mr_params_buffer(p, deadline, &grads, e);                waits if two are under way
 *         mr_nn_net_learn(net, loss, view.params, &batch, grads, &score, e);   mr_params_ready
 *         mr_params_release(p);
 *         err = mr_params_push(p, step, examples, e);                    does not wait
 *     }
 *     (void)mr_params_flush(p, deadline, e);
 *     mr_params_close(&p);
 *
 * version_min: async 0 (whatever is newest); sync `view.version + 1` after a push, so that the next
 * gradient is of the next version.
 *
 * Errors, the same everywhere: MR_ETIMEOUT by the deadline, nothing has changed, try again;
 * MR_ECANCELED the stop flag is set; MR_EAWAY a server is gone: close, Join again, open anew;
 * MR_EABORTED a server is at another restore epoch: Join again for the epoch, then
 * mr_params_set_epoch (or close and open).
 *
 * A shard whose place has this process's node name and a socket that lets us in is reached by
 * shared memory, another by gRPC at its address; nothing else differs. One thread uses a client. */
#pragma once

#include "train/plan/limits.h"
#include "train/transport/transport.h"

struct mr_params;

struct mr_params_options {
    const char *session;
    uint32_t worker;      /* index of this worker; of a reader: anything */
    uint64_t incarnation; /* of this member, from Join */
    uint64_t count;       /* numbers of the whole model */
    uint32_t restore_epoch;
    const struct mr_place *shards; /* copied; in order, one for each shard */
    uint32_t shards_count;
    bool reads_only;   /* a scorer: makes no gradient buffers */
    bool same_version; /* several shards, sync: wait a little for those that are a version behind */
    uint64_t early_count; /* gradients 0 to this become final from the last to the first and are
                           * announced while they do (mr_params_ready); 0: none are */
    bool only_remote;     /* for tests and measurements: gRPC even on this node */
    const struct mr_flag *stop; /* NULL: none; lent for the client's life */
};

struct mr_params_view {
    const float *params; /* all `count`; until release, the next pull or close */
    uint64_t version;    /* the smallest of the shards' */
    uint32_t restore_epoch;
};

struct mr_params_counts { /* since open */
    uint64_t pulls, pushes;
    uint64_t dropped;          /* pushes that servers had no use for: stale or lost */
    uint64_t pull_ns, push_ns; /* inside those calls, without */
    uint64_t wait_ns;          /* waiting for a version or for a free buffer */
    uint32_t shards_local, shards_remote;
};

/* Tries until the deadline: servers may still be opening. */
int mr_params_open(const struct mr_params_options *o, mr_time deadline, struct mr_params **out,
    struct mr_error *e);
void mr_params_close(struct mr_params **p); /* pushes under way may be lost: flush first */

/* The newest parameters, once every shard has at least `version_min`. Releases the view before. */
int mr_params_pull(struct mr_params *p, uint64_t version_min, mr_time deadline,
    struct mr_params_view *out, struct mr_error *e);
void mr_params_release(struct mr_params *p); /* the view may be overwritten from now on */

/* A buffer for all `count` gradients, its content undefined; the same one until it is pushed. */
int mr_params_buffer(struct mr_params *p, mr_time deadline, float **out, struct mr_error *e);

/* Before the push of `step`: these gradients in the buffer are final. A server of this node under
 * the synchronous rule moves its parameters along them while the rest is computed. In the order of
 * mr_nn_net_follow. */
void mr_params_ready(struct mr_params *p, uint64_t step, uint64_t offset, uint64_t count);

/* Hands the buffer over, as computed from the last pulled view. `step` grows with each push of
 * this incarnation (a repeat is ignored). */
int mr_params_push(struct mr_params *p, uint64_t step, uint32_t examples, struct mr_error *e);

/* Waits until the servers have accounted for all that was pushed. */
int mr_params_flush(struct mr_params *p, mr_time deadline, struct mr_error *e);

void mr_params_set_epoch(struct mr_params *p, uint32_t restore_epoch); /* drops the view */
void mr_params_counts(const struct mr_params *p, struct mr_params_counts *out);
