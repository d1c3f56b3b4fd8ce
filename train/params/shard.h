/* One shard of a model's parameters, as its server (train.ps) holds it: versions in shared memory
 * that readers map, and a mailbox of gradients, whether they came by shared memory or by gRPC.
 * update.h has the update rules on top; a role normally uses that.
 *
 * One thread, the role's, calls everything here unless its comment says otherwise. Publishing never
 * waits for readers: there are more buffers than readers, and a buffer takes memory only once it
 * has been written to, so in practice there are two or three. */
#pragma once

#include "train/transport/transport.h"

struct mr_shard;

struct mr_shard_options {
    const char *session;
    uint32_t shard, shards; /* which one of how many */
    uint64_t count;         /* numbers of the whole model */
    uint64_t incarnation;   /* of this server */
    uint32_t restore_epoch;
    uint64_t version;           /* that `params` are */
    const float *params;        /* of this shard; copied */
    uint32_t readers_max;       /* connected at once; 0: 64 */
    const struct mr_flag *stop; /* NULL: none; lent for the shard's life */
};

enum mr_push_outcome {
    MR_PUSH_APPLIED,
    MR_PUSH_STALE,  /* too old for the synchronous rule */
    MR_PUSH_LOST,   /* of a revoked incarnation or another restore epoch */
    MR_PUSH_REPEAT, /* accounted for before */
};

struct mr_push {
    uint32_t worker;
    uint32_t examples;
    uint64_t incarnation;
    uint64_t step;
    uint64_t base_version;
    uint32_t restore_epoch;
    uint32_t source;   /* private: which client, or remote */
    uint32_t buffer;   /* private */
    void *remote;      /* private */
    const float *grad; /* of this shard; until done_push. What a peer may still change: numbers */
};

struct mr_shard_counts {
    uint64_t pushes, lost, repeats; /* handed out, dropped by next_push, ignored by it */
    uint32_t clients;               /* connected by shared memory */
};

/* MR_EEXIST when this process has the shard of that session already. */
int mr_shard_open(const struct mr_shard_options *o, struct mr_shard **out, struct mr_error *e);
void mr_shard_close(struct mr_shard **s); /* clients learn that it is gone */

const float *mr_shard_params(const struct mr_shard *s); /* the current ones, till 2 publishes on */
uint64_t mr_shard_version(const struct mr_shard *s);
uint32_t mr_shard_epoch(const struct mr_shard *s);
uint64_t mr_shard_first(const struct mr_shard *s);
uint64_t mr_shard_count(const struct mr_shard *s); /* of this shard */

/* Where the next version is to be written, all of it; the same until it is published. */
float *mr_shard_next(struct mr_shard *s);
void mr_shard_publish(struct mr_shard *s, uint64_t version);
/* Does a reader wait for a version that is not there yet? For a rank of an all-reduce group that
 * serves the scorer: it copies its parameters and publishes them only when asked to. */
bool mr_shard_is_wanted(const struct mr_shard *s);

/* Takes the parameters to another place: those of a checkpoint. Gradients of older epochs are lost
 * from here on. */
void mr_shard_restore(
    struct mr_shard *s, uint32_t restore_epoch, uint64_t version, const float *params);

/* Gradients of this worker's incarnations below `incarnation` are dropped. One that pushes with a
 * higher one than before revokes its predecessor by itself. */
void mr_shard_revoke(struct mr_shard *s, uint32_t worker, uint64_t incarnation);

/* The next gradient worth looking at. MR_ETIMEOUT; MR_ECANCELED when the stop flag is set. Several
 * may be held at once. */
int mr_shard_next_push(struct mr_shard *s, mr_time deadline, struct mr_push *out);
/* The same, cut in two: what next_push with a deadline of 0 finds, and a sleep until more may be
 * there than when the word was read. */
uint32_t mr_shard_word(const struct mr_shard *s);
void mr_shard_sleep(struct mr_shard *s, uint32_t word, mr_time deadline);

#define MR_PARAMS_EARLY_MIN ((uint64_t)65536) /* numbers that are worth a pass of their own */

/* A gradient of the current version that is still being computed (mr_params_ready). */
struct mr_early {
    uint32_t worker;
    uint32_t source;            /* private */
    uint64_t incarnation, step; /* of the push to come */
    uint64_t low; /* numbers of the shard from here to the last trained one are final */
    const float *grad;
};
/* Finds at most `most` of them, of different workers, which stay readable until early_done. */
uint32_t mr_shard_early(struct mr_shard *s, struct mr_early *out, uint32_t most);
void mr_shard_early_done(struct mr_shard *s, const struct mr_early *early, uint32_t n);
/* The worker gets its buffer back and hears the outcome. Numbers that came of a worker that died
 * meanwhile stay readable until here. */
void mr_shard_done_push(struct mr_shard *s, const struct mr_push *p, enum mr_push_outcome outcome);

void mr_shard_counts(const struct mr_shard *s, struct mr_shard_counts *out); /* any thread */
