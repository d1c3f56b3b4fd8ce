/* Calls that follow a session, in one list. A list is enough, because followers are few and
 * sessions change rarely. */
#include "services/trainer/session/internal.h"

#include "host/clock.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_over(enum mr_training_state state)
{
    return state == MR_TRAINING_DONE || state == MR_TRAINING_FAILED;
}

static void send_event(
    struct mr_trainings *tr, struct mr_rpc_call *call, mr_training_id session, uint64_t change)
{
    char id[24] = "";
    mr_pb_arena_clear(&tr->t->scratch);
    Millrace__V1__TrainingEvent m = MILLRACE__V1__TRAINING_EVENT__INIT;
    m.training = mr_training_message(tr, session, false);
    if (change) (void)snprintf(id, sizeof id, "%" PRIu64, change);
    m.event_id = id;
    m.time_ns = mr_clock_wall();
    (void)mr_rpc_call_send_pb(call, &m.base);
}

/* Sends the session's state to a caller of Watch if the state has changed since it was last sent.
 * With `progress`, also sends an unchanged state once all earlier messages have left. True: the
 * session is over, and so is the call. */
static bool watch(struct mr_training_call *c, struct mr_rpc_call *call,
    const struct mr_training_info *info, bool progress)
{
    if (info->change > c->seen || !c->has_sent) {
        c->seen = info->change;
        c->has_sent = true;
        send_event(c->tr, call, c->session, info->change);
    } else if (progress && mr_rpc_call_is_writable(call) && !mr_rpc_call_queued_bytes(call)) {
        send_event(c->tr, call, c->session, 0);
    }
    if (!is_over(info->state)) return false;
    (void)mr_rpc_call_finish_ok(call);
    return true;
}

/* Called when the session may have changed: sends what the follower waits for. True: the call was
 * answered. */
static bool look(struct mr_training_call *c, struct mr_rpc_call *call, bool progress, bool is_late)
{
    struct mr_training_info info;
    if (mr_trainer_info(c->tr->core, c->session, &info)) {
        mr_trainer_fail(call, MR_ENOENT, "the session was forgotten meanwhile");
        return true;
    }
    if (c->is_watch) return watch(c, call, &info, progress);
    if (!is_over(info.state) && !is_late) return false;
    mr_pb_arena_clear(&c->tr->t->scratch);
    mr_training_reply(call, c->tr, c->session);
    return true;
}

void mr_training_follow(struct mr_rpc_call *call)
{
    struct mr_training_call *c = mr_training_call_of(call);
    bool is_late = !c->is_watch && !c->wait;
    c->until = c->is_watch ? MR_NEVER : mr_time_after(mr_clock_now(), c->wait);
    if (look(c, call, false, is_late || c->tr->is_draining)) return;
    if (c->tr->is_draining)
        mr_trainer_fail(call, MR_EAWAY, "the trainer is stopping: try again");
    else
        mr_list_add_tail(&c->tr->followers, &c->node);
}

static bool look_again(
    struct mr_trainings *tr, struct mr_training_call *c, bool progress, bool is_late)
{
    struct mr_rpc_call *call = mr_rpc_call_find(tr->t->loop, c->call);
    return !call || look(c, call, progress, is_late);
}

void mr_trainings_changed(struct mr_trainings *tr, mr_training_id session, bool progress)
{
    MR_LIST_EACH(node, &tr->followers)
    {
        struct mr_training_call *c = MR_LIST_ITEM(node, struct mr_training_call, node);
        if (c->session.v == session.v && look_again(tr, c, progress, false))
            mr_list_remove(&c->node);
    }
}

mr_time mr_trainings_follow_turn(struct mr_trainings *tr, mr_time now)
{
    mr_time next = MR_NEVER;
    MR_LIST_EACH(node, &tr->followers)
    {
        struct mr_training_call *c = MR_LIST_ITEM(node, struct mr_training_call, node);
        if (c->until <= now && look_again(tr, c, false, true))
            mr_list_remove(&c->node);
        else
            next = MR_MIN(next, c->until);
    }
    return next;
}

void mr_trainings_end_waits(struct mr_trainings *tr, struct mr_str waiter)
{
    MR_LIST_EACH(node, &tr->followers)
    {
        struct mr_training_call *c = MR_LIST_ITEM(node, struct mr_training_call, node);
        const struct mr_rpc_call *call = mr_rpc_call_find(tr->t->loop, c->call);
        if (!c->is_watch && call && mr_rpc_waits_of(call, waiter)) c->until = 0;
    }
}

void mr_training_followers_end(struct mr_trainings *tr)
{
    MR_LIST_EACH(node, &tr->followers)
    {
        struct mr_training_call *c = MR_LIST_ITEM(node, struct mr_training_call, node);
        if (!c->is_watch && look_again(tr, c, false, true)) mr_list_remove(&c->node);
    }
    mr_training_calls_end(tr, &tr->followers);
}

void mr_training_calls_end(struct mr_trainings *tr, struct mr_list *calls)
{
    for (struct mr_list *node; (node = mr_list_pop_head(calls));) {
        const struct mr_training_call *c = MR_LIST_ITEM(node, struct mr_training_call, node);
        struct mr_rpc_call *call = mr_rpc_call_find(tr->t->loop, c->call);
        if (call) mr_trainer_fail(call, MR_EAWAY, "the trainer is stopping: try again");
    }
}
