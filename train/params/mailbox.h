/* The mailbox of a shard: gradients that wait for the server, from shared memory and from gRPC. A
 * restore epoch begins when the session goes back to a checkpoint. The thread of the role calls all
 * functions, except where a comment says otherwise. */
#pragma once

#include "base/list.h"
#include "train/params/shard.h"

enum mr_push_outcome {
    MR_PUSH_APPLIED,
    MR_PUSH_STALE, /* the gradient is too old for the synchronous rule */
    /* the gradient is of a revoked incarnation of its worker, or of another restore epoch */
    MR_PUSH_LOST,
    MR_PUSH_REPEAT, /* the same push came before */
};

struct mr_push {
    uint32_t worker;
    uint32_t examples;
    uint64_t incarnation;
    uint64_t step;
    uint64_t base_version; /* version of the parameters at which the gradient was computed */
    uint32_t restore_epoch;
    uint32_t source; /* private to mailbox.c: slot of the client */
    uint32_t buffer; /* private to mailbox.c */
    /* private to mailbox.c: struct mr_remote_push; NULL: the push came by shared memory */
    void *remote;
    /* the gradient for the parameters of this shard, valid until mr_shard_done_push. A faulty
     * client may still change the numbers, but not the size of the memory */
    const float *grad;
};

/* Sets `*out` to the next gradient to apply. Gradients with the outcome MR_PUSH_LOST or
 * MR_PUSH_REPEAT are not returned: this function drops them and tells the worker the outcome. The
 * caller may hold several gradients at once. MR_ETIMEOUT: no gradient came by the deadline.
 * MR_ECANCELED: the stop flag is set. */
int mr_shard_next_push(struct mr_shard *s, mr_time deadline, struct mr_push *out);
/* These two functions wait for pushes and for announced parts of gradients (mr_early) together. The
 * caller reads the word with mr_shard_word and looks for work (mr_shard_next_push with deadline 0,
 * mr_shard_early). Then mr_shard_sleep sleeps until the word has changed. It may return earlier. */
uint32_t mr_shard_word(const struct mr_shard *s);
void mr_shard_sleep(struct mr_shard *s, uint32_t word, mr_time deadline);
/* Ends the use of a push: returns the buffer and the outcome to the worker. Until this call the
 * gradient stays readable, even if its worker dies. */
void mr_shard_done_push(struct mr_shard *s, const struct mr_push *p, enum mr_push_outcome outcome);

/* Makes the mailbox drop all gradients of this worker whose incarnation is below `incarnation`. A
 * push with a higher incarnation than before does the same. */
void mr_shard_revoke(struct mr_shard *s, uint32_t worker, uint64_t incarnation);

/* ---- gradients that are still being computed ------------------------------------------------- */

/* An early pass (update.h) applies at least this many numbers. A worker does not announce fewer
 * numbers of a shard at once. */
#define MR_PARAMS_EARLY_MIN ((uint64_t)65536)

/* A gradient at the current version. A worker is still computing this gradient, and has announced
 * that a part of it is final (mr_params_ready). */
struct mr_early {
    uint32_t worker;
    uint32_t source;            /* private to mailbox.c */
    uint64_t incarnation, step; /* incarnation and step of the push that will come */
    /* From this index of the shard on, the gradient of the trained parameters is final. */
    uint64_t low;
    const float *grad;
};
/* Fills `out` with gradients that workers have announced in part: at most `most` gradients, and at
 * most one of each worker. Returns their number. They stay readable until mr_shard_early_done. */
uint32_t mr_shard_early(struct mr_shard *s, struct mr_early *out, uint32_t most);
void mr_shard_early_done(struct mr_shard *s, const struct mr_early *early, uint32_t n);

/* ---- any thread ------------------------------------------------------------------------------ */

struct mr_remote_push { /* a gradient that came by gRPC */
    struct mr_list node;
    struct mr_push push;
    float *grad;      /* as many numbers as the shard has */
    uint64_t call;    /* mr_rpc_call_id */
    uint64_t version; /* version and outcome are filled in when the push is done */
    enum mr_push_outcome outcome;
};
/* Puts a gradient into the mailbox, which takes `p` if that succeeds. MR_EAWAY: the shard is
 * closed. MR_ELIMIT: too many gradients wait. */
int mr_shard_post(struct mr_shard *s, struct mr_remote_push *p);

struct mr_shard_counts {
    uint64_t pushes;  /* gradients that mr_shard_next_push has returned */
    uint64_t lost;    /* gradients that mr_shard_next_push has dropped */
    uint64_t repeats; /* gradients that mr_shard_next_push has ignored as repeated */
    uint32_t clients; /* clients that are connected by shared memory */
};
void mr_shard_counts(const struct mr_shard *s, struct mr_shard_counts *out);
