/* The job of a graph that fills the queue a session trains from. The core does not know of it: it
 * begins when the roles do, ends when the session stops, and when it fails the session does. Asked
 * for under the same request id after a restart, it is the same job. */
#include "services/trainer/trainings.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "services/trainer/role_job.h"

#include <stdio.h>

#define PAUSE MR_SECOND

enum state { SUBMIT, POLL, CANCEL };

struct feed {
    struct mr_list node;
    mr_training_id session;
    mr_job_id job;
    enum state state;
    bool is_under_way;
    mr_time at;
};

static struct feed *find(struct mr_trainings *tr, mr_training_id session)
{
    MR_LIST_EACH(node, &tr->feeds)
    {
        struct feed *f = MR_LIST_ITEM(node, struct feed, node);
        if (f->session.v == session.v) return f;
    }
    return NULL;
}

static void drop(struct feed *f)
{
    mr_list_remove(&f->node);
    mr_release(f);
}

void mr_trainings_feed_begin(struct mr_trainings *tr, mr_training_id session)
{
    if (!mr_role_job_has_feed(mr_training_json(tr, session)) || find(tr, session)) return;
    struct feed *f = mr_alloc(sizeof *f);
    f->session = session;
    mr_list_add_tail(&tr->feeds, &f->node);
}

static bool is_wanted(struct mr_trainings *tr, mr_training_id session)
{
    struct mr_training_info info;
    return !mr_trainer_info(tr->core, session, &info) && info.state < MR_TRAINING_STOPPING;
}

void mr_trainings_feed_changed(struct mr_trainings *tr, mr_training_id session)
{
    struct feed *f = find(tr, session);
    if (!f || f->state == CANCEL || is_wanted(tr, session)) return;
    f->state = CANCEL;
    f->at = 0;
}

/* The session cannot go on without. */
static void fail(struct mr_trainings *tr, mr_training_id session, mr_job_id job, struct mr_str why)
{
    char id[MR_JOB_ID_TEXT_MAX] = "";
    char text[MR_TRAINING_REASON_BYTES_MAX];
    if (job.v) mr_job_id_format(job, id);
    (void)snprintf(text, sizeof text, "its feed (job %s) failed: %.*s", job.v ? id : "refused",
        MR_STR_ARG(why));
    struct mr_trainer_event ev = {.type = MR_TE_STOP,
        .session = session,
        .text = mr_str(text),
        .abandon = true,
        .ticket = MR_TRAINING_TICKET_OURS | ++tr->tickets};
    mr_trainings_step(tr, &ev);
}

static bool is_later(int err)
{
    return err == MR_EAWAY || err == MR_EAGAIN || err == MR_ETIMEOUT;
}

static void submitted(struct mr_trainings *tr, struct feed *f, const struct mr_trainer_event *ev)
{
    if (!ev->err) {
        f->job = ev->job;
        if (f->state == SUBMIT) f->state = POLL;
        f->at = 0;
    } else if (!is_later(ev->err)) {
        drop(f);
        fail(tr, ev->session, (mr_job_id){0}, ev->text);
    }
}

void mr_trainings_feed_answered(struct mr_trainings *tr, const struct mr_trainer_event *ev)
{
    struct feed *f = find(tr, ev->session);
    if (!f) return;
    f->is_under_way = false;
    f->at = mr_time_after(mr_clock_now(), PAUSE);
    if (ev->type == MR_TE_JOB_SUBMITTED) {
        submitted(tr, f, ev);
        return;
    }
    if (ev->type == MR_TE_JOB_CANCELLED) {
        if (!is_later(ev->err)) drop(f);
        return;
    }
    if (ev->job_state == MR_TRAINING_JOB_GOES_ON || ev->job_state == MR_TRAINING_JOB_AWAY) return;
    bool is_done = ev->job_state == MR_TRAINING_JOB_DONE || f->state == CANCEL;
    drop(f);
    if (!is_done) fail(tr, ev->session, ev->job, ev->text);
}

static void go_on(struct mr_trainings *tr, struct feed *f)
{
    struct mr_sched_link_job j = {
        .session = f->session, .which = MR_LINK_FEED, .job = f->job, .text = MR_STR("it stopped")};
    j.document = mr_training_json(tr, f->session);
    bool is_lost = f->state == SUBMIT && !j.document.n;
    if (is_lost || (f->state == CANCEL && !f->job.v)) {
        drop(f);
        return;
    }
    f->is_under_way = true;
    j.trainer = mr_str(tr->t->address);
    if (f->state == SUBMIT)
        mr_sched_link_submit(tr->sched, &j);
    else if (f->state == POLL)
        mr_sched_link_poll(tr->sched, &j);
    else
        mr_sched_link_cancel(tr->sched, &j);
}

mr_time mr_trainings_feed_turn(struct mr_trainings *tr, mr_time now)
{
    mr_time next = MR_NEVER;
    if (tr->is_draining) return next;
    MR_LIST_EACH(node, &tr->feeds)
    {
        struct feed *f = MR_LIST_ITEM(node, struct feed, node);
        if (f->is_under_way) continue;
        if (f->at <= now)
            go_on(tr, f);
        else
            next = MR_MIN(next, f->at);
    }
    return next;
}

void mr_trainings_feed_recover(struct mr_trainings *tr)
{
    mr_training_id at = {0};
    while ((at = mr_trainer_older(tr->core, at)).v) {
        struct mr_training_info info;
        if (!mr_trainer_info(tr->core, at, &info) && info.role_job.v && is_wanted(tr, at))
            mr_trainings_feed_begin(tr, at);
    }
}

void mr_trainings_feed_close(struct mr_trainings *tr)
{
    MR_LIST_EACH(node, &tr->feeds)
    {
        drop(MR_LIST_ITEM(node, struct feed, node));
    }
}
