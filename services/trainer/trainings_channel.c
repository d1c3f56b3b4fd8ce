/* Channels that a session's stop rule looks at: whatever is appended there, by whomever, reaches
 * the core in order. */
#include "services/trainer/trainings.h"

#include "base/alloc.h"
#include "host/log.h"
#include "services/trainer/channels.h"
#include "store/meta/channel.h"

#include <string.h>

struct followed {
    struct mr_list node;
    struct mr_trainings *tr;
    struct mr_follower *follower;
    char *name;
    bool has_begun; /* before: the core may name a time, which no entry has */
};

static void on_entry(void *ctx, int err, const struct mr_channel_entry *entry)
{
    struct followed *f = ctx;
    bool has_begun = f->has_begun;
    f->has_begun = true;
    if (!entry) {
        mr_log(has_begun ? MR_WARN : MR_DEBUG, "channel.gap", "channel=\"%s\" error=%s", f->name,
            mr_err_name(err));
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

void mr_trainings_channels_close(struct mr_trainings *tr)
{
    MR_LIST_EACH(node, &tr->channels)
    {
        unfollow(MR_LIST_ITEM(node, struct followed, node));
    }
}
