/* Follows the channels that a stop rule depends on. Every entry reaches the core in order,
 * whichever client appended it. */
#include "services/trainer/session/internal.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "services/trainer/channel/service.h"
#include "store/meta/stream/channel.h"

#include <string.h>

#define PAUSE (500 * MR_MS) /* pause while Redis is away */

struct followed {
    struct mr_list node;
    struct mr_trainings *tr;
    struct mr_follower *follower;
    char *name;
    /* false: no entry has come, and the entry at which the core wants to start may be gone */
    bool has_begun;
};

static void on_entry(void *ctx, int err, const struct mr_channel_entry *entry)
{
    struct followed *f = ctx;
    bool has_begun = f->has_begun;
    f->has_begun = true;
    if (err) {
        mr_log(has_begun ? MR_WARN : MR_DEBUG, "channel.entries_lost", "channel=\"%s\" error=%s",
            f->name, mr_err_name(err));
        return;
    }
    mr_counter_add(f->tr->entries, 1);
    struct mr_trainer_event ev = {
        .type = MR_TE_ENTRY, .channel = mr_str(f->name), .entry = entry->id, .text = entry->value};
    mr_trainings_step(f->tr, &ev);
}

static struct followed *find(struct mr_trainings *tr, struct mr_str name)
{
    MR_LIST_EACH(node, &tr->channels)
    {
        struct followed *f = MR_LIST_ITEM(node, struct followed, node);
        if (mr_str_eq(mr_str(f->name), name)) return f;
    }
    return NULL;
}

static void unfollow(struct followed *f)
{
    mr_list_remove(&f->node);
    mr_channels_unfollow(&f->follower);
    mr_release(f->name);
    mr_release(f);
}

static char *text_of(struct mr_str s)
{
    char *p = mr_alloc(s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return p;
}

void mr_trainings_channel(struct mr_trainings *tr, const struct mr_trainer_effect *x)
{
    struct mr_str name = mr_trainer_effect_channel(&tr->fx, x);
    struct followed *f = find(tr, name);
    if (f) unfollow(f);
    if (x->type == MR_TX_UNFOLLOW) return;
    f = mr_alloc(sizeof *f);
    f->tr = tr;
    f->name = text_of(name);
    mr_list_add_tail(&tr->channels, &f->node);
    char *after = text_of(mr_trainer_effect_text(&tr->fx, x));
    f->follower = mr_channels_follow(tr->t->channels, f->name, after, on_entry, f);
    mr_release(after);
}

/* ---- the last entry of a channel ------------------------------------------------------------- */

struct location {
    struct mr_list node;
    struct mr_trainings *tr;
    char *name;
    bool is_asked;
    mr_time at;
    struct mr_channel_answer *answer;
};

static void location_free(struct location *l)
{
    mr_list_remove(&l->node);
    mr_channel_answer_free(&l->answer);
    mr_release(l->name);
    mr_release(l);
}

static void located(void *p)
{
    struct location *l = p;
    struct mr_trainings *tr = l->tr;
    l->is_asked = false;
    l->at = mr_time_after(mr_clock_now(), PAUSE);
    if (l->answer->err) {
        mr_channel_answer_free(&l->answer);
        return;
    }
    struct mr_trainer_event ev = {
        .type = MR_TE_LOCATED, .channel = mr_str(l->name), .entry = l->answer->last_id};
    mr_trainings_step(tr, &ev);
    location_free(l);
}

static void on_location(void *ctx, struct mr_channel_answer **answer)
{
    struct location *l = ctx;
    l->answer = MR_STEAL(*answer);
    mr_trainer_post(l->tr->t, located, l);
}

void mr_trainings_locate(struct mr_trainings *tr, const struct mr_trainer_effect *x)
{
    struct location *l = mr_alloc(sizeof *l);
    l->tr = tr;
    l->name = text_of(mr_trainer_effect_channel(&tr->fx, x));
    mr_list_add_tail(&tr->locations, &l->node);
}

mr_time mr_trainings_channels_turn(struct mr_trainings *tr, mr_time now)
{
    mr_time next = MR_NEVER;
    MR_LIST_EACH(node, &tr->locations)
    {
        struct location *l = MR_LIST_ITEM(node, struct location, node);
        if (l->is_asked) continue;
        if (l->at <= now) {
            l->is_asked =
                !mr_channel_read(tr->t->redis, mr_str(l->name), MR_STR("$"), 1, on_location, l);
            l->at = mr_time_after(now, PAUSE);
        }
        if (!l->is_asked) next = MR_MIN(next, l->at);
    }
    return next;
}

void mr_trainings_channels_close(struct mr_trainings *tr)
{
    MR_LIST_EACH(node, &tr->locations)
    {
        location_free(MR_LIST_ITEM(node, struct location, node));
    }
    MR_LIST_EACH(node, &tr->channels)
    {
        unfollow(MR_LIST_ITEM(node, struct followed, node));
    }
}
