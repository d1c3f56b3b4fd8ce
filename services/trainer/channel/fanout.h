/* Followers of channels. Each followed channel has one feed, so that Redis is read once for all
 * followers. A *live* follower is at the position of the feed. Other followers catch up with reads
 * of their own. A feed knows only positions, not what an entry means or which client follows.
 *
 *   news of a channel ──▶ its feed reads once ──▶ every live follower
 *   a new or slow follower reads by itself until no entry is left; then it is live
 *
 * For service.c only; other folders use service.h. */
#pragma once

#include "services/trainer/channel/service.h"
#include "store/meta/stream/channel.h"

struct mr_feeds;

struct mr_feeds *mr_feeds_new(struct mr_trainer_shell *t);
/* Frees the feeds. Called after Redis is closed, so that no answer can come. */
void mr_feeds_free(struct mr_feeds **f);

/* Called when the channel has changed. If `all`, `channel` is "", and any channel may have
 * changed. */
void mr_feeds_news(struct mr_feeds *f, struct mr_str channel, bool all);
mr_time mr_feeds_turn(struct mr_feeds *f, mr_time now);
/* Returns the number of followers. */
size_t mr_feeds_count(const struct mr_feeds *f);

struct mr_follower *mr_feeds_follow(
    struct mr_feeds *f, const char *channel, const char *after_id, mr_follow_fn fn, void *ctx);
void mr_feeds_unfollow(struct mr_follower **f);
/* Gives the follower no entries until mr_feeds_resume. May be called in the follower's callback. */
void mr_feeds_hold(struct mr_follower *f);
void mr_feeds_resume(struct mr_follower *f);
