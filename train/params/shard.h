/* One shard of a model's parameters on its server (train.ps): versions in shared memory, which
 * clients map and read. mailbox.h has the gradients that clients push, update.h the update rules; a
 * role normally uses update.h.
 *
 * The thread of the role calls everything here. Publishing never waits for readers, because there
 * are more buffers than readers. A buffer takes memory only once it has been written to, so in
 * practice two or three are used. */
#pragma once

#include "train/plan/limits.h"
#include "train/transport/transport.h"

struct mr_shard;

struct mr_shard_options {
    const char *session;
    uint32_t shard, shards; /* index of this shard, number of all */
    uint64_t count;         /* numbers of the whole model */
    uint64_t incarnation;   /* of this server */
    uint32_t restore_epoch;
    uint64_t version;           /* of `params` */
    const float *params;        /* of this shard; copied */
    uint32_t readers_max;       /* clients at once; 0: 64 */
    const struct mr_flag *stop; /* NULL: none; lent for the shard's life */
};

/* MR_EEXIST: this process has the shard of that session already. */
int mr_shard_open(const struct mr_shard_options *o, struct mr_shard **out, struct mr_error *e);
void mr_shard_close(struct mr_shard **s); /* clients learn that the server is gone */

const float *mr_shard_params(const struct mr_shard *s); /* of the current version; a loan until the
                                                         * second publication from now */
uint64_t mr_shard_version(const struct mr_shard *s);
uint32_t mr_shard_epoch(const struct mr_shard *s);
uint64_t mr_shard_first(const struct mr_shard *s); /* its first number in the model's vector */
uint64_t mr_shard_count(const struct mr_shard *s); /* numbers of this shard */

/* Where the next version is to be written as a whole; the same until it is published. */
float *mr_shard_next(struct mr_shard *s);
void mr_shard_publish(struct mr_shard *s, uint64_t version);
/* Does a reader wait for a newer version? Rank 0 of an all-reduce group serves the scorer with a
 * shard, and copies its parameters only then. */
bool mr_shard_is_wanted(const struct mr_shard *s);

/* Publishes the parameters of a checkpoint. Gradients of older epochs are lost from here on. */
void mr_shard_restore(
    struct mr_shard *s, uint32_t restore_epoch, uint64_t version, const float *params);
