/* Channels: the service, and the same for the other parts of this process. Everything here runs on
 * the loop's thread, and callbacks come from the loop, never from inside these functions.
 *
 * One connection waits in Redis for news of all channels and queues
 * (store/meta/stream/change_feed.h), whoever wrote them; a channel that somebody follows is then
 * read once for all who follow it. */
#pragma once

#include "services/trainer/shell/shell.h"

#define MR_CHANNEL_NAME_BYTES_MAX 256
#define MR_CHANNEL_ENTRIES_MAX 1000000u /* the most that a channel may keep */

struct mr_channel_entry;
struct mr_follower;

extern const struct mr_trainer_part mr_channels_part;

/* MR_OK with an entry (lent for the call), in order, each once; MR_ERANGE with NULL: a part is
 * gone (trimmed, or Redis lost it), what follows begins at the oldest that is there. */
typedef void (*mr_follow_fn)(void *ctx, int err, const struct mr_channel_entry *entry);

/* Follows a channel, which need not exist yet, from after `after_id` ("": from the beginning, "$":
 * only what comes) until mr_channels_unfollow. Stays while Redis is away. */
struct mr_follower *mr_channels_follow(
    struct mr_channels *c, const char *channel, const char *after_id, mr_follow_fn fn, void *ctx);
void mr_channels_unfollow(struct mr_follower **f);
