#include "services/trainer/shell/retry.h"

#include "base/assert.h"
#include "host/clock.h"

#define AGAIN_AFTER (100 * MR_MS)
#define WAIT_TIMEOUT (60 * MR_SECOND)
#define MARGIN (100 * MR_MS)

void mr_waiting_list_init(struct mr_waiting_list *l, size_t bytes_max)
{
    *l = (struct mr_waiting_list){.again_at = MR_NEVER, .due = MR_NEVER, .bytes_max = bytes_max};
    mr_list_init(&l->all);
}

void mr_waiting_list_fini(struct mr_waiting_list *l)
{
    MR_LIST_EACH(node, &l->all)
    {
        struct mr_waiting *w = MR_LIST_ITEM(node, struct mr_waiting, node);
        mr_waiting_end(&w);
    }
}

static void later(struct mr_waiting *w)
{
    w->is_sent = false;
    if (w->list->again_at == MR_NEVER)
        w->list->again_at = mr_time_after(mr_clock_now(), AGAIN_AFTER);
}

static void try_now(struct mr_waiting *w)
{
    w->is_sent = w->ops->send(w) == MR_OK;
    if (!w->is_sent) later(w);
}

int mr_waiting_begin(struct mr_waiting_list *l, struct mr_waiting *w)
{
    if (l->bytes + w->bytes > l->bytes_max) return MR_ELIMIT;
    l->bytes += w->bytes;
    l->due = MR_MIN(l->due, w->deadline);
    w->list = l;
    mr_list_add_tail(&l->all, &w->node);
    if (l->again_at != MR_NEVER) /* older requests wait, and this one waits behind them */
        later(w);
    else
        try_now(w);
    return MR_OK;
}

bool mr_waiting_is_answered(struct mr_waiting *w, int err)
{
    mr_assert(w->is_sent);
    w->was_sent = true;
    if (err != MR_EAWAY || w->is_given_up) return true;
    later(w);
    return false;
}

void mr_waiting_leave(struct mr_waiting *w)
{
    w->list->bytes -= w->bytes;
    mr_list_remove(&w->node);
    w->is_sent = false;
}

void mr_waiting_end(struct mr_waiting **wp)
{
    struct mr_waiting *w = MR_STEAL(*wp);
    mr_waiting_leave(w);
    w->ops->free(w);
}

static void give_up(struct mr_waiting *w)
{
    if (!w->is_given_up) w->ops->give_up(w);
    w->is_given_up = true;
    w->deadline = MR_NEVER;
    if (!w->is_sent) mr_waiting_end(&w);
}

static void look_at_deadlines(struct mr_waiting_list *l, mr_time now)
{
    l->due = MR_NEVER;
    MR_LIST_EACH(node, &l->all)
    {
        struct mr_waiting *w = MR_LIST_ITEM(node, struct mr_waiting, node);
        if (w->deadline <= now)
            give_up(w);
        else
            l->due = MR_MIN(l->due, w->deadline);
    }
}

mr_time mr_waiting_turn(struct mr_waiting_list *l, mr_time now)
{
    if (l->due <= now) look_at_deadlines(l, now);
    if (l->again_at <= now) {
        l->again_at = MR_NEVER;
        MR_LIST_EACH(node, &l->all)
        {
            struct mr_waiting *w = MR_LIST_ITEM(node, struct mr_waiting, node);
            if (!w->is_sent && !w->is_given_up) try_now(w);
        }
    }
    return MR_MIN(l->due, l->again_at);
}

void mr_waiting_give_up(struct mr_waiting_list *l)
{
    MR_LIST_EACH(node, &l->all)
    give_up(MR_LIST_ITEM(node, struct mr_waiting, node));
    l->again_at = MR_NEVER;
}

mr_time mr_waiting_deadline(const struct mr_rpc_call *call)
{
    mr_time now = mr_clock_now(), until = mr_time_after(now, WAIT_TIMEOUT);
    mr_time deadline = mr_rpc_call_deadline(call);
    if (deadline == MR_NEVER) return until;
    mr_duration left = deadline > now ? deadline - now : 0;
    return MR_MIN(until, now + left - MR_MIN(MARGIN, left / 10));
}
