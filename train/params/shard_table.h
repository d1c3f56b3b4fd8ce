/* The shards of this process, for its network thread (train/service). The table finds a shard by
 * session and index, pins versions that gRPC sends, and tells the thread about published versions
 * and finished pushes. Any thread may call any function. */
#pragma once

#include "train/params/mailbox.h"

/* Returns a counted reference, which the caller drops with mr_shard_put. NULL: this process has no
 * such shard. */
struct mr_shard *mr_shard_get(const char *session, uint32_t shard);
void mr_shard_put(struct mr_shard **s);

struct mr_shard_pin {
    uint32_t buffer;
    uint64_t version;
    uint32_t restore_epoch;
    const float *params; /* valid until mr_shard_unpin */
};
/* Pins the current version, if it is at least `version_min` and of `restore_epoch`. MR_EAGAIN:
 * there is no such version yet, or gRPC has pinned MR_PARAMS_REMOTE_PINS other buffers.
 * MR_EABORTED: the shard has a later epoch. MR_EAWAY: the shard is closed. */
int mr_shard_pin(
    struct mr_shard *s, uint64_t version_min, uint32_t restore_epoch, struct mr_shard_pin *out);
void mr_shard_unpin(struct mr_shard *s, uint32_t buffer);
/* Changes the number of network readers that wait for a version. */
void mr_shard_note_waiting(struct mr_shard *s, int change);

/* Sets the sink, which is called on any thread. Called with NULL: a version was published while
 * network readers wait, or a shard was closed. Called with a push: the push is done, and belongs to
 * the sink. There is one sink; without a sink (NULL), finished pushes are freed. When
 * mr_shard_set_sink returns, the previous sink is no longer running. */
void mr_shard_set_sink(void (*sink)(void *ctx, struct mr_remote_push *p), void *ctx);

/* ---- for shard.c and mailbox.c --------------------------------------------------------------- */

/* Lists the shard: from now on clients can connect and mr_shard_get finds it. MR_EEXIST: this
 * process already has the shard. */
int mr_shard_list(struct mr_shard *s, struct mr_error *e);
/* Unlists the shard: mr_shard_get no longer finds it. */
void mr_shard_unlist(struct mr_shard *s);
/* Calls the sink, under the table's lock. */
void mr_shard_notify(struct mr_remote_push *p);
