/* One shard of a model's parameters on its server (train.ps): versions in shared memory, which
 * clients map and read. mailbox.h has the gradients that clients push. train.ps calls update.h,
 * which applies these gradients to the shard and publishes the new versions.
 *
 * The role's thread calls all functions. Publishing never waits for readers, because there are more
 * buffers than readers. A buffer takes memory only when it is first written to, so in practice two
 * or three use memory. */
#pragma once

#include "train/plan/limits.h"
#include "train/transport/transport.h"

struct mr_shard;

struct mr_shard_options {
    const char *session;
    uint32_t shard, shards; /* index of this shard; number of all shards */
    uint64_t count;         /* how many numbers the whole model has */
    uint64_t incarnation;   /* incarnation of this server */
    uint32_t restore_epoch;
    uint64_t version;           /* version of `params` */
    const float *params;        /* parameters of this shard; copied */
    uint32_t readers_max;       /* limit of clients at the same time; 0: 64 */
    const struct mr_flag *stop; /* NULL: none; lent for the shard's life */
};

/* Opens a shard. MR_EEXIST: this process already has this shard of the session. */
int mr_shard_open(const struct mr_shard_options *o, struct mr_shard **out, struct mr_error *e);
/* Closes the shard. Clients learn that the server is gone. */
void mr_shard_close(struct mr_shard **s);

/* Returns the parameters of the current version, lent until the second publication from now. */
const float *mr_shard_params(const struct mr_shard *s);
uint64_t mr_shard_version(const struct mr_shard *s);
uint32_t mr_shard_epoch(const struct mr_shard *s);
/* Returns the place of the shard's first number in the model's vector. */
uint64_t mr_shard_first(const struct mr_shard *s);
/* Returns how many numbers the shard has. */
uint64_t mr_shard_count(const struct mr_shard *s);

/* Returns the memory for the next version, which has to be written as a whole. Returns the same
 * memory until the version is published. */
float *mr_shard_next(struct mr_shard *s);
void mr_shard_publish(struct mr_shard *s, uint64_t version);
/* True: a reader waits for a newer version. In an all-reduce group, the scorer reads from a shard
 * of rank 0. After a step, rank 0 copies the parameters into this shard only if a reader waits. */
bool mr_shard_is_wanted(const struct mr_shard *s);

/* Publishes the parameters of a checkpoint. Gradients of older epochs count as lost from now on. */
void mr_shard_restore(
    struct mr_shard *s, uint32_t restore_epoch, uint64_t version, const float *params);
