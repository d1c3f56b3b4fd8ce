/* The jobs of a session. The core submits a job until the scheduler accepts it, polls it, and
 * cancels it when the session has failed. */
#include "services/trainer/core/internal.h"

static bool is_away(int err)
{
    return err == MR_EAWAY || err == MR_EAGAIN || err == MR_ETIMEOUT;
}

static const char *name_of(const struct mr_trainer_event *ev)
{
    return ev->feed    ? "the job that feeds its queue"
           : ev->roles ? "the job of its roles"
                       : "the job of its graph";
}

static void job_turn(struct mr_trainer *t, struct session *s, enum which_job which)
{
    struct job *j = &s->job[which];
    struct mr_trainer_effect *x = NULL;
    if (j->state == JOB_WANTED && j->cancel && !j->may_exist && !j->is_asked) {
        j->state = JOB_ENDED;
        s->is_dirty = true;
    }
    if (mr_trainer__is_over(s->state) && j->state == JOB_ON && !j->cancel &&
        mr_time_after(s->since, s->document->stopping) <= t->now)
        /* the roles should have ended by themselves within the limit of the state STOPPING */
        j->cancel = true;
    if (j->next > t->now) return;
    if (j->state == JOB_WANTED && !j->is_asked && s->is_known) {
        x = mr_trainer__emit(t, MR_TX_JOB_SUBMIT);
        j->is_asked = j->may_exist = true;
    } else if (j->state == JOB_ON && j->cancel && !j->is_cancelling) {
        x = mr_trainer__emit(t, MR_TX_JOB_CANCEL);
        mr_trainer__text(t, x, mr_str_of(s->reason, s->reason_bytes));
        j->is_cancelling = true;
    } else if (j->state == JOB_ON && !j->cancel && !j->is_polled) {
        x = mr_trainer__emit(t, MR_TX_JOB_POLL);
        j->is_polled = true;
    }
    if (!x) return;
    x->session = s->id;
    x->roles = which == JOB_ROLES;
    x->feed = which == JOB_FEED;
    x->job = j->id;
}

void mr_trainer__job_turn(struct mr_trainer *t, struct session *s)
{
    if (!s->document) return;
    for (int i = 0; i < JOBS; i++)
        job_turn(t, s, (enum which_job)i);
}

mr_time mr_trainer__job_next(const struct mr_trainer *t, const struct session *s)
{
    mr_time next = MR_NEVER;
    (void)t;
    for (int i = 0; i < JOBS; i++) {
        const struct job *j = &s->job[i];
        bool asks = (j->state == JOB_WANTED && !j->is_asked && s->is_known) ||
                    (j->state == JOB_ON && (j->cancel ? !j->is_cancelling : !j->is_polled));
        if (asks) next = MR_MIN(next, j->next);
        if (j->state == JOB_ON && !j->cancel && mr_trainer__is_over(s->state))
            next = MR_MIN(next, mr_time_after(s->since, s->document->stopping));
    }
    return next;
}

static void submitted(
    struct mr_trainer *t, struct session *s, struct job *j, const struct mr_trainer_event *ev)
{
    if (j->state != JOB_WANTED) return;
    j->is_asked = false;
    if (is_away(ev->err)) {
        j->next = mr_time_after(t->now, t->config.retry);
        return;
    }
    s->is_dirty = true;
    s->change++; /* clients see the ids of a session's jobs */
    j->state = ev->err ? JOB_ENDED : JOB_ON;
    j->id = ev->err ? (mr_job_id){0} : ev->job;
    j->next = t->now;
    if (!ev->err && ev->roles)
        /* only now is it known whether roles that wait belong to the session */
        mr_trainer__members_ask_again(t, s);
    if (!ev->err) return;
    if (ev->feed && j->cancel) return; /* the job is no longer wanted */
    mr_trainer__fail(t, s, "%s was refused: %.*s", name_of(ev), MR_STR_ARG(ev->text));
}

static void on_job_state(
    struct mr_trainer *t, struct session *s, struct job *j, const struct mr_trainer_event *ev)
{
    static const char *const words[] = {"", "", "failed", "was cancelled", "is not known any more"};
    j->is_polled = false;
    if (j->state != JOB_ON) return;
    bool away = ev->job_state == MR_TRAINING_JOB_AWAY;
    j->next = mr_time_after(t->now, away ? t->config.retry : t->config.poll);
    if (away || ev->job_state == MR_TRAINING_JOB_GOES_ON) return;
    j->state = JOB_ENDED;
    j->outcome = ev->job_state;
    s->is_dirty = true;
    if (ev->job_state == MR_TRAINING_JOB_DONE) return;
    /* the model is saved, so the session does not fail */
    if (ev->roles && s->phase == MR_TRAINING_EXIT) return;
    if (ev->feed && j->cancel) return; /* the job is no longer needed */
    mr_trainer__fail(t, s, "%s %s%s%.*s", name_of(ev), words[ev->job_state], ev->text.n ? ": " : "",
        MR_STR_ARG(ev->text));
}

void mr_trainer__job_event(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct session *s = mr_trainer__find(t, ev->session);
    if (!s || s->is_forgotten) return;
    struct job *j = &s->job[ev->feed ? JOB_FEED : ev->roles ? JOB_ROLES : JOB_GRAPH];
    if (ev->type == MR_TE_JOB_SUBMITTED) {
        submitted(t, s, j, ev);
    } else if (ev->type == MR_TE_JOB_STATE) {
        on_job_state(t, s, j, ev);
    } else {
        j->is_cancelling = false;
        j->next = mr_time_after(t->now, t->config.retry);
        if (j->state != JOB_ON || is_away(ev->err)) return;
        j->state = JOB_ENDED;
        s->is_dirty = true;
    }
}
