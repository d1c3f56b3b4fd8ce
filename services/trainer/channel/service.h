/* Channels: the gRPC service, and the same functions for the other parts of the trainer. All
 * functions run on the loop's thread. The loop runs callbacks later, never from inside these
 * functions.
 *
 * One connection to Redis waits for news of all channels and queues
 * (store/meta/stream/change_feed.h), whichever process wrote them. A channel that has followers is
 * then read once for all followers. */
#pragma once

#include "services/trainer/shell/shell.h"

#define MR_CHANNEL_NAME_BYTES_MAX 256
#define MR_CHANNEL_ENTRIES_MAX 1000000u /* limit of entries that a channel may keep */

struct mr_channel_entry;
struct mr_follower;

extern const struct mr_trainer_part mr_channels_part;

/* Called for each entry in order, with MR_OK. The entry is lent for the call. Called with MR_ERANGE
 * if some entries are gone, because they were trimmed or Redis lost them. Then `entry` has only the
 * id of the oldest entry that is left ("": the channel is empty), and the next call has that
 * entry. */
typedef void (*mr_follow_fn)(void *ctx, int err, const struct mr_channel_entry *entry);

/* Follows a channel, which need not exist yet, until mr_channels_unfollow. `after_id`: the follower
 * gets the entries after this one; "": all entries; "$": only new entries. The follower goes on
 * after Redis was away. */
struct mr_follower *mr_channels_follow(
    struct mr_channels *c, const char *channel, const char *after_id, mr_follow_fn fn, void *ctx);
void mr_channels_unfollow(struct mr_follower **f);
