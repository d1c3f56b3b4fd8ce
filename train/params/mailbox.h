/* The mailbox of a shard: gradients that wait for the server, from shared memory and from gRPC. The
 * thread of the role calls everything here unless a comment says otherwise. */
#pragma once

#include "base/list.h"
#include "train/params/shard.h"

enum mr_push_outcome {
    MR_PUSH_APPLIED,
    MR_PUSH_STALE,  /* too old for the synchronous rule */
    MR_PUSH_LOST,   /* of a revoked incarnation or of another restore epoch */
    MR_PUSH_REPEAT, /* the same push came before */
};

struct mr_push {
    uint32_t worker;
    uint32_t examples;
    uint64_t incarnation;
    uint64_t step;
    uint64_t base_version; /* of the parameters that the gradient was computed at */
    uint32_t restore_epoch;
    uint32_t source;   /* private to mailbox.c: client, by its slot */
    uint32_t buffer;   /* private */
    void *remote;      /* private: struct mr_remote_push; NULL: from shared memory */
    const float *grad; /* of this shard; until mr_shard_done_push. A faulty client may still change
                        * the numbers, but not the memory's extent */
};

/* The next gradient to apply; lost and repeated ones are answered inside. MR_ETIMEOUT: none by the
 * deadline. MR_ECANCELED: the stop flag is set. Several gradients may be held at once. */
int mr_shard_next_push(struct mr_shard *s, mr_time deadline, struct mr_push *out);
/* To wait for gradients and for announcements together: read the word, look for work (next_push
 * with deadline 0, mr_shard_early), then sleep until the word has changed. May wake early. */
uint32_t mr_shard_word(const struct mr_shard *s);
void mr_shard_sleep(struct mr_shard *s, uint32_t word, mr_time deadline);
/* Returns the buffer to the worker with the outcome. Until this call the gradient stays readable,
 * even if its worker dies. */
void mr_shard_done_push(struct mr_shard *s, const struct mr_push *p, enum mr_push_outcome outcome);

/* From now on drops gradients of this worker whose incarnation is below `incarnation`. A push with
 * a higher incarnation than before does the same. */
void mr_shard_revoke(struct mr_shard *s, uint32_t worker, uint64_t incarnation);

/* ---- gradients that are still being computed ------------------------------------------------- */

#define MR_PARAMS_EARLY_MIN ((uint64_t)65536) /* numbers that are worth a pass of their own */

/* A gradient for the current version of which the worker has announced a part (mr_params_ready). */
struct mr_early {
    uint32_t worker;
    uint32_t source;            /* private to mailbox.c */
    uint64_t incarnation, step; /* of the push to come */
    uint64_t low; /* numbers of the shard from here to the last trained one are final */
    const float *grad;
};
/* Finds at most `most` of them, of different workers. They stay readable until early_done. */
uint32_t mr_shard_early(struct mr_shard *s, struct mr_early *out, uint32_t most);
void mr_shard_early_done(struct mr_shard *s, const struct mr_early *early, uint32_t n);

/* ---- any thread ------------------------------------------------------------------------------ */

struct mr_remote_push { /* one gradient that came by gRPC */
    struct mr_list node;
    struct mr_push push;
    float *grad;      /* of the shard's count */
    uint64_t call;    /* mr_rpc_call_id */
    uint64_t version; /* this and the outcome are filled when the push is done */
    enum mr_push_outcome outcome;
};
/* Puts a gradient into the mailbox. On failure `p` stays the caller's: MR_EAWAY: the shard is
 * closed; MR_ELIMIT: too many gradients wait. */
int mr_shard_post(struct mr_shard *s, struct mr_remote_push *p);

struct mr_shard_counts {
    uint64_t pushes;  /* handed out by mr_shard_next_push */
    uint64_t lost;    /* dropped by it */
    uint64_t repeats; /* ignored by it */
    uint32_t clients; /* connected by shared memory */
};
void mr_shard_counts(const struct mr_shard *s, struct mr_shard_counts *out);
