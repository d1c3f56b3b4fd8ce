/* The part of the trainer that has the sessions: steps the core, carries out the effects after each
 * step, and keeps the core's deadline. */
#include "services/trainer/session/internal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/log.h"

/* Pause between two polls of a job. It adds little delay, because each poll waits for a change
 * (POLL_WAIT_S in scheduler_client.c). */
#define POLL_PAUSE (100 * MR_MS)

static enum mr_sched_link_which link_of(const struct mr_trainer_effect *x)
{
    return x->feed ? MR_LINK_FEED : x->roles ? MR_LINK_ROLES : MR_LINK_GRAPH;
}

static void submit(struct mr_trainings *tr, const struct mr_trainer_effect *x)
{
    struct mr_training_info info;
    /* this cannot happen: the core shows every session that has effects */
    if (mr_trainer_info(tr->core, x->session, &info)) return;
    const struct mr_sched_link_job job = {.session = x->session,
        .created_ns = info.created_ns,
        .which = link_of(x),
        .document = mr_training_json(tr, x->session),
        .trainer = mr_str(tr->t->address)};
    mr_sched_link_submit(tr->sched, &job);
}

static void job(struct mr_trainings *tr, const struct mr_trainer_effect *x)
{
    const struct mr_sched_link_job j = {.session = x->session,
        .which = link_of(x),
        .job = x->job,
        .text = mr_trainer_effect_text(&tr->fx, x)};
    if (x->type == MR_TX_JOB_POLL)
        mr_sched_link_poll(tr->sched, &j);
    else if (x->type == MR_TX_JOB_CANCEL)
        mr_sched_link_cancel(tr->sched, &j);
    else
        mr_sched_link_forget(tr->sched, &j);
}

static void log_change(struct mr_trainings *tr, const struct mr_trainer_effect *x)
{
    static const char *const names[] = {
        "", "preparing", "forming", "running", "recovering", "stopping", "done", "failed"};
    struct mr_training_info info;
    char id[MR_TRAINING_ID_TEXT_MAX];
    char why[512];
    if (!x->change || mr_trainer_info(tr->core, x->session, &info)) return;
    mr_trainer_id_format(x->session, id);
    mr_log(MR_INFO, "training.state", "session=%s state=%s generation=%u restores=%u reason=%s", id,
        names[info.state], info.generation, info.restores,
        mr_log_quote(info.reason, why, sizeof why));
}

static void perform_one(struct mr_trainings *tr, const struct mr_trainer_effect *x)
{
    switch (x->type) {
    case MR_TX_STARTED:
    case MR_TX_STOPPED:
    case MR_TX_FORGOTTEN:
    case MR_TX_JOINED:
    case MR_TX_REPORTED:
    case MR_TX_ROWS:
    case MR_TX_BARRIER: mr_trainings_answer(tr, x); break;
    case MR_TX_WRITE:
    case MR_TX_DELETE: mr_trainings_write(tr, x); break;
    case MR_TX_JOB_SUBMIT:
        if (!tr->is_draining) submit(tr, x);
        break;
    case MR_TX_JOB_POLL:
    case MR_TX_JOB_CANCEL:
    case MR_TX_JOB_FORGET:
        if (!tr->is_draining) job(tr, x);
        break;
    case MR_TX_ERASE: mr_trainings_erase(tr, x); break;
    case MR_TX_LOCATE: mr_trainings_locate(tr, x); break;
    case MR_TX_FOLLOW:
    case MR_TX_UNFOLLOW: mr_trainings_channel(tr, x); break;
    case MR_TX_CHANGED:
        log_change(tr, x);
        mr_trainings_changed(tr, x->session, !x->change);
        break;
    }
}

void mr_trainings_step(struct mr_trainings *tr, struct mr_trainer_event *ev)
{
    mr_assert(!tr->is_in_step);
    tr->is_in_step = true;
    ev->wall_ns = mr_clock_wall();
    mr_trainer_step(tr->core, mr_clock_now(), ev, &tr->fx);
    for (size_t i = 0; i < mr_trainer_effects_count(&tr->fx); i++)
        perform_one(tr, mr_trainer_effect_at(&tr->fx, i));
    mr_trainer_effects_clear(&tr->fx);
    tr->is_in_step = false;
}

static void on_scheduler(void *ctx, struct mr_trainer_event *ev)
{
    mr_trainings_step(ctx, ev);
}

/* ---- counters -------------------------------------------------------------------------------- */

#define ASK(name, which)                                                                           \
    static double name(void *ctx)                                                                  \
    {                                                                                              \
        const struct mr_trainings *tr = ctx;                                                       \
        return mr_trainer_count(tr->core, which);                                                  \
    }
ASK(preparing, MR_TRAINING_PREPARING)
ASK(forming, MR_TRAINING_FORMING)
ASK(running, MR_TRAINING_RUNNING)
ASK(recovering, MR_TRAINING_RECOVERING)
ASK(stopping, MR_TRAINING_STOPPING)
ASK(done, MR_TRAINING_DONE)
ASK(is_failed, MR_TRAINING_FAILED)

static void add_stats(struct mr_trainings *tr)
{
    static const struct {
        const char *label;
        double (*ask)(void *ctx);
    } states[] = {{"state=\"preparing\"", preparing}, {"state=\"forming\"", forming},
        {"state=\"running\"", running}, {"state=\"recovering\"", recovering},
        {"state=\"stopping\"", stopping}, {"state=\"done\"", done},
        {"state=\"failed\"", is_failed}};
    struct mr_stats *s = tr->t->stats;
    for (size_t i = 0; i < MR_ARRAY_LEN(states); i++)
        mr_stats_gauge_ask(s, "millrace_trainings", "Training sessions that are kept.",
            states[i].label, states[i].ask, tr);
    tr->started = mr_stats_counter(
        s, "millrace_trainings_started_total", "Training sessions accepted.", NULL);
    tr->reports = mr_stats_counter(s, "millrace_training_reports_total", "Reports of roles.", NULL);
    tr->joins = mr_stats_counter(
        s, "millrace_training_joins_total", "Requests of roles to join, repeats included.", NULL);
    tr->entries = mr_stats_counter(s, "millrace_training_scores_total",
        "Channel entries that stop rules have looked at.", NULL);
}

/* ---- the part -------------------------------------------------------------------------------- */

static int open_part(struct mr_trainer_shell *t, void **out, struct mr_error *e)
{
    struct mr_trainer_config config;
    struct mr_trainings *tr = mr_alloc(sizeof *tr);
    *out = tr;
    tr->t = t;
    mr_list_init(&tr->waiting);
    mr_list_init(&tr->followers);
    mr_list_init(&tr->channels);
    mr_list_init(&tr->locations);
    mr_list_init(&tr->erasures);
    mr_trainer_config_default(&config);
    config.epoch = t->epoch;
    config.poll = POLL_PAUSE;
    tr->core = mr_trainer_new(&config);
    mr_trainer_effects_init(&tr->fx);
    const struct mr_sched_link_config link = {&t->scheduler, on_scheduler, tr};
    tr->sched = mr_sched_link_new(&link);
    add_stats(tr);
    return mr_trainings_recover(tr, e);
}

static mr_time turn(void *part, mr_time now)
{
    struct mr_trainings *tr = part;
    if (mr_trainer_deadline(tr->core) <= now) {
        struct mr_trainer_event tick = {.type = MR_TE_TICK};
        mr_trainings_step(tr, &tick);
    }
    mr_time next = mr_records_turn(tr->records, now);
    next = MR_MIN(next, mr_sched_link_turn(tr->sched, now));
    next = MR_MIN(next, mr_trainings_follow_turn(tr, now));
    next = MR_MIN(next, mr_trainings_erase_turn(tr, now));
    next = MR_MIN(next, mr_trainings_channels_turn(tr, now));
    /* the core's deadline is read last, because the other turns may step the core */
    return MR_MIN(next, mr_trainer_deadline(tr->core));
}

static void end_waits(void *part, struct mr_str waiter)
{
    mr_trainings_end_waits(part, waiter);
}

/* Ends the waiting calls. Roles and clients will call the next trainer. Calls that wait for the end
 * of a session get the session as it is. */
static void drain(void *part)
{
    struct mr_trainings *tr = part;
    tr->is_draining = true;
    mr_training_followers_end(tr);
    mr_training_calls_end(tr, &tr->waiting);
}

static void close_part(void **part)
{
    struct mr_trainings *tr = MR_STEAL(*part);
    mr_trainings_channels_close(tr);
    mr_trainer_settle(tr->t);
    mr_trainings_erase_close(tr);
    mr_sched_link_free(&tr->sched);
    mr_records_free(&tr->records);
    mr_trainer_free(&tr->core);
    mr_trainer_effects_fini(&tr->fx);
    mr_release(tr);
}

const struct mr_trainer_part mr_trainings_part = {.service = &mr_trainings_service,
    .open = open_part,
    .turn = turn,
    .drain = drain,
    .end_waits = end_waits,
    .close = close_part};
