/* The shards of this process, for its network thread (train/service): finds a shard by session and
 * index, pins versions that gRPC sends, and tells the thread about published versions and finished
 * pushes. Any thread may call any function. */
#pragma once

#include "train/params/mailbox.h"

/* A counted reference: mr_shard_put gives it back. NULL: this process has no such shard. */
struct mr_shard *mr_shard_get(const char *session, uint32_t shard);
void mr_shard_put(struct mr_shard **s);

struct mr_shard_pin {
    uint32_t buffer;
    uint64_t version;
    uint32_t restore_epoch;
    const float *params; /* until mr_shard_unpin */
};
/* Pins the current version, if it is at least `version_min` and of the epoch. MR_EAGAIN: not yet.
 * MR_EABORTED: the shard has a later epoch. MR_EAWAY: the shard is closed. */
int mr_shard_pin(
    struct mr_shard *s, uint64_t version_min, uint32_t restore_epoch, struct mr_shard_pin *out);
void mr_shard_unpin(struct mr_shard *s, uint32_t buffer);
/* Changes the number of network readers that wait for a version. */
void mr_shard_note_waiting(struct mr_shard *s, int change);

/* The sink is called on any thread: with NULL when a version was published or a shard closed while
 * network readers wait; with a push when that push is done, which gives the push to the sink. There
 * is one sink; without one (NULL), finished pushes are freed. After mr_shard_set_sink has returned,
 * no call of the sink before is under way. */
void mr_shard_set_sink(void (*sink)(void *ctx, struct mr_remote_push *p), void *ctx);

/* ---- for shard.c and mailbox.c --------------------------------------------------------------- */

/* From here on clients can connect and mr_shard_get finds the shard. MR_EEXIST: this process has
 * the shard already. */
int mr_shard_list(struct mr_shard *s, struct mr_error *e);
void mr_shard_unlist(struct mr_shard *s); /* mr_shard_get no longer finds it */
/* Calls the sink under the table's lock. */
void mr_shard_notify(struct mr_remote_push *p);
