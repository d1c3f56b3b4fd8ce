/* How feeds and followers (fanout.h) read channels from Redis. A position is the id of the last
 * entry that a follower has received. While a read is running, the feed or follower that reads must
 * stay in memory. So mr_feeds_unfollow only marks a follower, and a later turn frees the follower
 * and its feed. */
#include "services/trainer/channel/fanout.h"

#include "base/alloc.h"
#include "host/clock.h"

#include <stdio.h>

#define PAGE 1000u
#define AGAIN_AFTER (200 * MR_MS) /* pause before a read is repeated while Redis is away */
#define ID_BYTES_MAX 48

struct feed {
    struct mr_list node;
    struct mr_feeds *feeds;
    char *channel;
    struct mr_list followers;
    char at[ID_BYTES_MAX]; /* the position that all live followers (fanout.h) of the feed have */
    uint64_t news;         /* number of times that the channel was reported as changed */
    /* value of `news` when the last read began; if `news` has grown since, the feed is read
     * again */
    uint64_t news_read;
    bool is_reading;
    bool is_stale; /* the feed has to be read again at once */
    struct mr_channel_answer *answer;
};

struct mr_follower {
    struct mr_list node;
    struct feed *feed;
    mr_follow_fn fn; /* NULL: mr_feeds_unfollow was called */
    void *ctx;
    char at[ID_BYTES_MAX];
    uint64_t news_read;
    bool is_live, is_held, is_reading, is_stale;
    struct mr_channel_answer *answer;
};

struct mr_feeds {
    struct mr_trainer_shell *trainer;
    struct mr_list feeds;
    size_t followers_count;
    bool has_stale, has_dead;
    mr_time again_at;
};

struct mr_feeds *mr_feeds_new(struct mr_trainer_shell *t)
{
    struct mr_feeds *f = mr_alloc(sizeof *f);
    f->trainer = t;
    mr_list_init(&f->feeds);
    return f;
}

static void follower_free(struct mr_follower *f)
{
    mr_list_remove(&f->node);
    mr_channel_answer_free(&f->answer);
    mr_release(f);
}

static void feed_free(struct feed *feed)
{
    mr_list_remove(&feed->node);
    mr_channel_answer_free(&feed->answer);
    mr_release(feed->channel);
    mr_release(feed);
}

void mr_feeds_free(struct mr_feeds **fp)
{
    struct mr_feeds *f = MR_STEAL(*fp);
    if (!f) return;
    MR_LIST_EACH(node, &f->feeds)
    {
        struct feed *feed = MR_LIST_ITEM(node, struct feed, node);
        MR_LIST_EACH(inner, &feed->followers)
        follower_free(MR_LIST_ITEM(inner, struct mr_follower, node));
        feed_free(feed);
    }
    mr_release(f);
}

static void set_id(char at[ID_BYTES_MAX], struct mr_str id)
{
    (void)snprintf(at, ID_BYTES_MAX, "%.*s", MR_STR_ARG(id));
}

/* ---- reads ------------------------------------------------------------------------------------*/

static void follower_answered(void *p);
static void feed_answered(void *p);

static void on_follower(void *ctx, struct mr_channel_answer **answer)
{
    struct mr_follower *f = ctx;
    f->answer = MR_STEAL(*answer);
    mr_trainer_post(f->feed->feeds->trainer, follower_answered, f);
}

static void on_feed(void *ctx, struct mr_channel_answer **answer)
{
    struct feed *feed = ctx;
    feed->answer = MR_STEAL(*answer);
    mr_trainer_post(feed->feeds->trainer, feed_answered, feed);
}

static void be_stale(struct mr_feeds *f, bool *is_stale)
{
    *is_stale = true;
    f->has_stale = true;
    f->again_at = mr_time_after(mr_clock_now(), AGAIN_AFTER);
}

static void follower_read(struct mr_follower *f)
{
    if (f->is_reading || f->is_held || !f->fn) return;
    struct feed *feed = f->feed;
    f->is_stale = false;
    f->news_read = feed->news;
    f->is_reading = mr_channel_read(feed->feeds->trainer->redis, mr_str(feed->channel),
                        mr_str(f->at), PAGE, on_follower, f) == MR_OK;
    if (!f->is_reading) be_stale(feed->feeds, &f->is_stale);
}

static bool has_live(const struct feed *feed)
{
    MR_LIST_EACH(node, &feed->followers)
    if (MR_LIST_ITEM(node, struct mr_follower, node)->is_live) return true;
    return false;
}

static void feed_read(struct feed *feed)
{
    if (feed->is_reading || !has_live(feed)) return;
    feed->is_stale = false;
    feed->news_read = feed->news;
    feed->is_reading = mr_channel_read(feed->feeds->trainer->redis, mr_str(feed->channel),
                           mr_str(feed->at), PAGE, on_feed, feed) == MR_OK;
    if (!feed->is_reading) be_stale(feed->feeds, &feed->is_stale);
}

static void give(struct mr_follower *f, const struct mr_channel_answer *a)
{
    for (size_t i = 0; i < a->count && f->fn && !f->is_held; i++) {
        if (f->at[0] && mr_channel_id_cmp(a->entries[i].id, mr_str(f->at)) <= 0) continue;
        set_id(f->at, a->entries[i].id);
        f->fn(f->ctx, MR_OK, &a->entries[i]);
    }
    if (f->is_held) f->is_live = false;
}

/* Called when entries that the follower has not received were trimmed or lost. Notifies the
 * follower, which goes on at the oldest entry. */
static void give_gap(struct mr_follower *f, struct mr_str first_id)
{
    const struct mr_channel_entry oldest = {.id = first_id};
    f->is_live = false;
    f->at[0] = 0;
    if (f->fn) f->fn(f->ctx, MR_ERANGE, &oldest);
    follower_read(f);
}

/* Called when the follower has read all entries. Makes the follower live: from now on it receives
 * what the feed reads. But if the feed is at a later position by now, the follower reads again. */
static void become_live(struct mr_follower *f)
{
    struct feed *feed = f->feed;
    if (!has_live(feed)) {
        set_id(feed->at, mr_str(f->at));
        /* the answer of the running read will be outdated */
        if (feed->is_reading) feed->is_stale = true;
    }
    f->is_live = mr_channel_id_cmp(mr_str(f->at), mr_str(feed->at)) >= 0;
    if (!f->is_live) follower_read(f);
}

static void follower_answered(void *p)
{
    struct mr_follower *f = p;
    struct mr_channel_answer *a = MR_STEAL(f->answer);
    f->is_reading = false;
    if (f->fn && a->err == MR_ERANGE) {
        give_gap(f, a->first_id);
    } else if (f->fn && a->err) {
        be_stale(f->feed->feeds, &f->is_stale);
    } else if (f->fn) {
        if (!strcmp(f->at, "$")) set_id(f->at, a->last_id);
        give(f, a);
        if (f->is_held || !f->fn)
            ;
        else if (a->more || f->news_read != f->feed->news)
            follower_read(f);
        else
            become_live(f);
    }
    mr_channel_answer_free(&a);
}

static void feed_give(struct feed *feed, const struct mr_channel_answer *a)
{
    MR_LIST_EACH(node, &feed->followers)
    {
        struct mr_follower *f = MR_LIST_ITEM(node, struct mr_follower, node);
        if (!f->is_live) continue;
        if (a->err == MR_ERANGE)
            give_gap(f, a->first_id);
        else
            give(f, a);
    }
}

static void feed_answered(void *p)
{
    struct feed *feed = p;
    struct mr_channel_answer *a = MR_STEAL(feed->answer);
    feed->is_reading = false;
    bool is_old = feed->is_stale; /* the feed's position has changed since the read was sent */
    if (!is_old && a->err && a->err != MR_ERANGE) {
        be_stale(feed->feeds, &feed->is_stale);
    } else {
        if (!is_old) {
            if (!a->err) set_id(feed->at, a->last_id);
            feed_give(feed, a);
        }
        if (is_old || a->more || feed->news_read != feed->news) feed_read(feed);
    }
    mr_channel_answer_free(&a);
}

/* ---- news and time ----------------------------------------------------------------------------*/

void mr_feeds_news(struct mr_feeds *f, struct mr_str channel, bool all)
{
    MR_LIST_EACH(node, &f->feeds)
    {
        struct feed *feed = MR_LIST_ITEM(node, struct feed, node);
        if (!all && !mr_str_eq(mr_str(feed->channel), channel)) continue;
        feed->news++;
        feed_read(feed);
    }
}

static void sweep(struct mr_feeds *f)
{
    f->has_dead = false;
    MR_LIST_EACH(node, &f->feeds)
    {
        struct feed *feed = MR_LIST_ITEM(node, struct feed, node);
        MR_LIST_EACH(inner, &feed->followers)
        {
            struct mr_follower *one = MR_LIST_ITEM(inner, struct mr_follower, node);
            if (!one->fn && !one->is_reading)
                follower_free(one);
            else if (!one->fn)
                f->has_dead = true;
        }
        if (mr_list_is_empty(&feed->followers) && !feed->is_reading)
            feed_free(feed);
        else if (mr_list_is_empty(&feed->followers))
            f->has_dead = true;
    }
}

static void read_stale(struct mr_feeds *f)
{
    f->has_stale = false;
    MR_LIST_EACH(node, &f->feeds)
    {
        struct feed *feed = MR_LIST_ITEM(node, struct feed, node);
        if (feed->is_stale && !feed->is_reading) feed_read(feed);
        MR_LIST_EACH(inner, &feed->followers)
        {
            struct mr_follower *one = MR_LIST_ITEM(inner, struct mr_follower, node);
            if (one->is_stale) follower_read(one);
        }
    }
}

mr_time mr_feeds_turn(struct mr_feeds *f, mr_time now)
{
    if (f->has_dead) sweep(f);
    if (f->has_stale && f->again_at <= now) read_stale(f);
    return f->has_stale ? f->again_at : MR_NEVER;
}

/* ---- followers --------------------------------------------------------------------------------*/

static struct feed *feed_of(struct mr_feeds *f, const char *channel)
{
    MR_LIST_EACH(node, &f->feeds)
    {
        struct feed *feed = MR_LIST_ITEM(node, struct feed, node);
        if (!strcmp(feed->channel, channel)) return feed;
    }
    struct feed *feed = mr_alloc(sizeof *feed);
    feed->feeds = f;
    feed->channel = mr_copy_text(channel);
    mr_list_init(&feed->followers);
    mr_list_add_tail(&f->feeds, &feed->node);
    return feed;
}

struct mr_follower *mr_feeds_follow(
    struct mr_feeds *feeds, const char *channel, const char *after_id, mr_follow_fn fn, void *ctx)
{
    struct mr_follower *f = mr_alloc(sizeof *f);
    f->feed = feed_of(feeds, channel);
    f->fn = fn;
    f->ctx = ctx;
    set_id(f->at, mr_str(after_id));
    mr_list_add_tail(&f->feed->followers, &f->node);
    feeds->followers_count++;
    follower_read(f);
    return f;
}

void mr_feeds_unfollow(struct mr_follower **fp)
{
    struct mr_follower *f = MR_STEAL(*fp);
    if (!f) return;
    f->fn = NULL;
    f->is_live = false;
    f->feed->feeds->followers_count--;
    f->feed->feeds->has_dead = true;
}

void mr_feeds_hold(struct mr_follower *f)
{
    f->is_held = true;
}

void mr_feeds_resume(struct mr_follower *f)
{
    if (!f->is_held) return;
    f->is_held = false;
    f->is_live = false;
    follower_read(f);
}

size_t mr_feeds_count(const struct mr_feeds *f)
{
    return f->followers_count;
}
