/* The thread of the agent of a role (a parameter server, a worker or a scorer). The thread calls
 * the trainer's methods Join and Report, and retries them with exponential back-off. Each report
 * has the state that the role posted last. So the role goes on while the trainer does not
 * answer. */
#include "train/member/agent.h"

#include "base/alloc.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "host/monitor.h"
#include "host/thread.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define CALL_TIMEOUT (5 * MR_SECOND)
/* Time that the trainer may hold one Join. It is short, because the reports between two Joins renew
 * the member's lease. */
#define JOIN_WAIT_S 0.4
#define RETRY_MIN (20 * MR_MS)
#define RETRY_MAX MR_SECOND
#define LOOK_EVERY (20 * MR_MS) /* interval of checks whether the task was cancelled */
/* limit of the wait for the last report of a role that ends */
#define LAST_REPORT (2 * MR_SECOND)
/* limit of the wait for the last report of a role whose task was cancelled */
#define LAST_REPORT_CANCELLED (500 * MR_MS)
/* limit of checkpoints that wait to be reported; a further one drops the oldest */
#define CHECKPOINTS_MAX 8
#define ANSWER_BYTES_MAX ((size_t)64 << 20)

struct pending_checkpoint {
    uint64_t version;
    char object[MR_OBJECT_ID_TEXT_MAX];
};

struct mr_agent {
    struct mr_agent_config c;
    char *texts[7];
    struct mr_thread *thread;
    struct mr_monitor *monitor; /* guards all members below, except those of the agent's thread */

    struct mr_agent_view view;
    char why[MR_ERROR_TEXT_MAX];
    struct mr_membership *fresh; /* the membership for mr_agent_take; NULL: none */
    uint64_t incarnation;
    bool wants_join;

    struct mr_agent_post post;
    struct pending_checkpoint checkpoints[CHECKPOINTS_MAX];
    uint32_t checkpoints_count;
    char *failure, *model_object, *score_json;
    Millrace__V1__TrainingPhase finished; /* the phase whose work the role has finished; 0: none */
    bool is_urgent;                       /* the next report is sent without delay */
    /* number of posts that have to reach the trainer: finished phases, failures, checkpoints */
    uint64_t said;
    uint64_t heard; /* number of such posts that the trainer has acknowledged */
    bool stop;
    mr_time stop_at; /* valid with `stop`: the thread ends at this time at the latest */

    /* members that only the agent's thread uses: */
    struct mr_role_link *link;
    struct mr_pb_arena arena;
    struct mr_agent_counters reported;
    double last_loss, last_accuracy;
    mr_time report_at, join_at;
    mr_duration backoff;
    bool was_away;
};

/* ---- memberships ----------------------------------------------------------------------------- */

void mr_membership_free(struct mr_membership **m)
{
    if (!*m) return;
    mr_pb_arena_fini(&(*m)->arena);
    mr_release(*m);
    *m = NULL;
}

const Millrace__V1__TrainingMember *mr_membership_find(
    const struct mr_membership *m, Millrace__V1__TrainingRole role, uint32_t index)
{
    for (size_t i = 0; i < m->m->n_members; i++)
        if (m->m->members[i]->role == role && m->m->members[i]->index == index)
            return m->m->members[i];
    return NULL;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void stop_all(struct mr_agent *a)
{
    mr_flag_set(a->c.stop, true);
    mr_flag_set(a->c.is_void, true);
}

/* True: the agent's thread has to end. Called every few milliseconds, also inside calls. */
static bool is_stopped(void *ctx)
{
    struct mr_agent *a = ctx;
    bool is_cancelled = mr_stop_is_set(a->c.cancelled);
    if (is_cancelled) {
        stop_all(a);
        mr_monitor_notify(a->monitor);
    }
    mr_monitor_enter(a->monitor);
    if (is_cancelled && a->stop)
        a->stop_at = MR_MIN(a->stop_at, mr_time_after(mr_clock_now(), LAST_REPORT_CANCELLED));
    bool stopped = a->stop && (a->said == a->heard || mr_clock_now() >= a->stop_at);
    mr_monitor_leave(a->monitor);
    return stopped;
}

static struct mr_stop stop_of(struct mr_agent *a)
{
    return (struct mr_stop){is_stopped, a};
}

/* Ends the role for the reason `why`. Called inside the monitor. */
static void end_with(struct mr_agent *a, const char *why)
{
    if (a->view.is_over) return;
    (void)snprintf(a->why, sizeof a->why, "%s", why);
    a->view.why = a->why;
    a->view.is_over = true;
    stop_all(a);
    a->heard = a->said; /* no acknowledgement will come, so a thread that waits for one gives up */
    mr_monitor_notify(a->monitor);
}

/* Called when a call has failed: schedules a retry, or ends the role if a retry makes no sense.
 * Does nothing if the call was cancelled. */
static void failed(struct mr_agent *a, int err, const struct mr_error *e)
{
    if (err == MR_ECANCELED) return;
    if (mr_role_may_retry(err)) {
        a->backoff = a->backoff ? MR_MIN(a->backoff * 2, RETRY_MAX) : RETRY_MIN;
        if (!a->was_away)
            mr_log(MR_WARN, "trainer.away", "session=%s why=\"%s\"", a->c.session, e->text);
        a->was_away = true;
        return;
    }
    mr_monitor_enter(a->monitor);
    end_with(a, e->text);
    mr_monitor_leave(a->monitor);
}

static void answered(struct mr_agent *a)
{
    a->backoff = 0;
    a->was_away = false;
}

/* Takes over the phase that the trainer has sent. Called inside the monitor. */
static void take_phase(struct mr_agent *a, Millrace__V1__TrainingPhase phase)
{
    a->view.phase = phase;
    if (phase == MILLRACE__V1__TRAINING_PHASE__TRAINING_PHASE_EXIT) stop_all(a);
}

static uint32_t workers_live(const Millrace__V1__JoinResponse *r)
{
    uint32_t n = 0;
    for (size_t i = 0; i < r->n_members; i++)
        n += r->members[i]->role == MILLRACE__V1__TRAINING_ROLE__TRAINING_WORKER &&
             r->members[i]->incarnation != 0 && strcmp(r->members[i]->state, "lost") != 0;
    return n;
}

static void take_join(struct mr_agent *a, struct mr_membership **m)
{
    const Millrace__V1__JoinResponse *r = (*m)->m;
    mr_monitor_enter(a->monitor);
    a->incarnation = r->incarnation ? r->incarnation : a->incarnation;
    take_phase(a, r->phase);
    if (r->n_members) a->view.workers_live = workers_live(r);
    if (r->formed) {
        a->view.generation = r->generation;
        if (r->restore_epoch != a->view.restore_epoch && a->view.joined)
            mr_flag_set(a->c.is_void, true);
        a->view.restore_epoch = r->restore_epoch;
        a->view.joined++;
        a->wants_join = false;
        mr_membership_free(&a->fresh);
        a->fresh = MR_STEAL(*m);
    }
    mr_monitor_notify(a->monitor);
    mr_monitor_leave(a->monitor);
}

static void join(struct mr_agent *a)
{
    Millrace__V1__JoinRequest r = MILLRACE__V1__JOIN_REQUEST__INIT;
    r.session = mr_unconst(a->c.session);
    r.role = a->c.role;
    r.index = a->c.index;
    r.task = mr_unconst(a->c.task);
    r.address = mr_unconst(a->c.address);
    r.node = mr_unconst(a->c.node);
    r.socket = mr_unconst(a->c.socket);
    r.wait_s = JOIN_WAIT_S;
    MR_AUTO(mr_membership_free) struct mr_membership *m = mr_alloc(sizeof *m);
    struct mr_error e;
    e.text[0] = 0;
    mr_pb_arena_init(&m->arena, ANSWER_BYTES_MAX);
    int err = mr_role_call(a->link, "/millrace.v1.Trainings/Join", &r.base, CALL_TIMEOUT,
        stop_of(a), &millrace__v1__join_response__descriptor, &m->arena, &m->m, &e);
    if (err) {
        failed(a, err, &e);
        a->join_at = mr_time_after(mr_clock_now(), a->backoff);
        return;
    }
    answered(a);
    /* the trainer may answer at once, so a pause limits the number of Joins */
    a->join_at = mr_time_after(mr_clock_now(), RETRY_MIN);
    take_join(a, &m);
}

static void fill_counters(
    struct mr_agent *a, const struct mr_agent_counters *c, Millrace__V1__TrainingCounters *out)
{
    uint64_t scored = c->scored - a->reported.scored;
    if (scored) {
        a->last_loss = (c->loss_sum - a->reported.loss_sum) / (double)scored;
        /* reports show NaN until further examples are scored */
        if (c->spoiled != a->reported.spoiled) a->last_loss = NAN;
        a->last_accuracy = (c->correct - a->reported.correct) / (double)scored;
    }
    out->steps = c->steps;
    out->examples = c->examples;
    out->epoch = c->epoch;
    out->loss = a->last_loss;
    out->accuracy = a->last_accuracy;
    out->pull_s = c->pull_s;
    out->push_s = c->push_s;
    out->wait_s = c->wait_s;
    out->compute_s = c->compute_s;
    out->feed_s = c->feed_s;
    out->gradients_stale = c->gradients_stale;
    out->gradients_lost = c->gradients_lost;
    out->steps_lost = c->steps_lost;
    out->gradients_applied = c->gradients_applied;
    out->moved_parts = c->moved_parts;
    out->moved_bytes = c->moved_bytes;
}

static void take_report(
    struct mr_agent *a, const Millrace__V1__ReportResponse *r, uint64_t said, bool had_checkpoint)
{
    mr_monitor_enter(a->monitor);
    if (r->generation != a->view.generation || r->restore_epoch != a->view.restore_epoch)
        a->wants_join = true;
    if (r->restore_epoch != a->view.restore_epoch) mr_flag_set(a->c.is_void, true);
    a->view.generation = r->generation;
    a->view.restore_epoch = r->restore_epoch;
    take_phase(a, r->phase);
    if (had_checkpoint) {
        a->checkpoints_count--;
        memmove(
            a->checkpoints, a->checkpoints + 1, a->checkpoints_count * sizeof a->checkpoints[0]);
        a->is_urgent = a->is_urgent || a->checkpoints_count;
    }
    if (!a->checkpoints_count) a->heard = said;
    mr_monitor_notify(a->monitor);
    mr_monitor_leave(a->monitor);
}

static void report(struct mr_agent *a)
{
    Millrace__V1__ReportRequest r = MILLRACE__V1__REPORT_REQUEST__INIT;
    Millrace__V1__TrainingCounters counters = MILLRACE__V1__TRAINING_COUNTERS__INIT;
    Millrace__V1__TrainingCheckpoint checkpoint = MILLRACE__V1__TRAINING_CHECKPOINT__INIT;
    struct pending_checkpoint first;
    char *objects[1] = {first.object};
    mr_monitor_enter(a->monitor);
    a->is_urgent = false;
    uint64_t said = a->said;
    const struct mr_agent_post post = a->post;
    r.incarnation = a->incarnation;
    r.generation = a->view.generation;
    r.finished = a->finished && a->finished == a->view.phase;
    /* failure, model_object and score_json do not change once they are set */
    if (a->failure) r.failure = a->failure;
    if (a->model_object) r.model_object = a->model_object;
    if (a->score_json) r.score_json = a->score_json;
    bool has_checkpoint = a->checkpoints_count;
    if (has_checkpoint) first = a->checkpoints[0];
    mr_monitor_leave(a->monitor);
    if (has_checkpoint) {
        checkpoint.version = first.version;
        checkpoint.objects = objects;
        checkpoint.n_objects = 1;
        checkpoint.time_ns = mr_clock_wall();
        r.checkpoint = &checkpoint;
    }
    fill_counters(a, &post.counters, &counters);
    r.session = mr_unconst(a->c.session);
    r.role = a->c.role;
    r.index = a->c.index;
    r.counters = &counters;
    r.version = post.version;
    r.exhausted = post.exhausted;
    r.restore_epoch = post.restore_epoch;
    struct mr_error e;
    e.text[0] = 0;
    const Millrace__V1__ReportResponse *got = NULL;
    int err = mr_role_call(a->link, "/millrace.v1.Trainings/Report", &r.base, CALL_TIMEOUT,
        stop_of(a), &millrace__v1__report_response__descriptor, &a->arena, &got, &e);
    a->report_at =
        mr_time_after(mr_clock_now(), err ? MR_MAX(a->backoff, RETRY_MIN) : MR_AGENT_REPORT_EVERY);
    if (err) {
        failed(a, err, &e);
        return;
    }
    answered(a);
    a->reported = post.counters;
    take_report(a, got, said, has_checkpoint);
}

/* Sets `*wants_join` and `*wants_report` to whether these calls are due now. If neither is due,
 * sleeps until one of them may be due. */
static void turn(struct mr_agent *a, bool *wants_join, bool *wants_report)
{
    mr_monitor_enter(a->monitor);
    mr_time now = mr_clock_now();
    bool may = !a->view.is_over;
    bool urgent = a->is_urgent && !a->backoff;
    *wants_join = may && a->wants_join && !a->stop && now >= a->join_at;
    *wants_report = may && a->incarnation && (urgent || now >= a->report_at);
    if (!*wants_join && !*wants_report && !a->stop) {
        mr_time next = mr_time_after(now, LOOK_EVERY);
        if (may && a->wants_join) next = MR_MIN(next, a->join_at);
        if (may && a->incarnation) next = MR_MIN(next, a->report_at);
        (void)mr_monitor_wait(a->monitor, next);
    } else if (!*wants_join && !*wants_report) {
        (void)mr_monitor_wait(a->monitor, mr_time_after(now, RETRY_MIN));
    }
    mr_monitor_leave(a->monitor);
}

static void agent_main(void *ctx)
{
    struct mr_agent *a = ctx;
    while (!is_stopped(a)) {
        bool wants_join = false, wants_report = false;
        turn(a, &wants_join, &wants_report);
        if (wants_join) join(a);
        if (wants_report) report(a);
    }
}

/* ---- the role's side ------------------------------------------------------------------------- */

static const char *keep(struct mr_agent *a, uint32_t at, const char *text)
{
    a->texts[at] = text ? mr_copy_text(text) : NULL;
    return a->texts[at];
}

struct mr_agent *mr_agent_start(const struct mr_agent_config *c)
{
    struct mr_agent *a = mr_alloc(sizeof *a);
    a->c = *c;
    a->c.trainer = keep(a, 0, c->trainer);
    a->c.session = keep(a, 2, c->session);
    a->c.task = keep(a, 3, c->task);
    a->c.address = keep(a, 4, c->address ? c->address : "");
    a->c.node = keep(a, 5, c->node ? c->node : "");
    a->c.socket = keep(a, 6, c->socket ? c->socket : "");
    a->monitor = mr_monitor_new();
    a->link = mr_role_link_open(a->c.trainer, a->c.credential);
    a->wants_join = true;
    a->view.why = "";
    mr_pb_arena_init(&a->arena, ANSWER_BYTES_MAX);
    a->thread = mr_thread_start("role-agent", agent_main, a);
    return a;
}

void mr_agent_stop(struct mr_agent **agent)
{
    struct mr_agent *a = *agent;
    if (!a) return;
    mr_monitor_enter(a->monitor);
    a->stop = true;
    a->stop_at = mr_time_after(mr_clock_now(), LAST_REPORT);
    mr_monitor_notify(a->monitor);
    mr_monitor_leave(a->monitor);
    mr_thread_join(&a->thread);
    mr_role_link_close(&a->link);
    mr_pb_arena_fini(&a->arena);
    mr_membership_free(&a->fresh);
    mr_monitor_free(&a->monitor);
    for (size_t i = 0; i < MR_ARRAY_LEN(a->texts); i++)
        mr_release(a->texts[i]);
    mr_release(a->failure);
    mr_release(a->model_object);
    mr_release(a->score_json);
    mr_release(a);
    *agent = NULL;
}

void mr_agent_look(struct mr_agent *a, struct mr_agent_view *out)
{
    mr_monitor_enter(a->monitor);
    *out = a->view;
    mr_monitor_leave(a->monitor);
}

struct mr_membership *mr_agent_take(struct mr_agent *a)
{
    mr_monitor_enter(a->monitor);
    struct mr_membership *m = MR_STEAL(a->fresh);
    mr_monitor_leave(a->monitor);
    return m;
}

void mr_agent_report(struct mr_agent *a, const struct mr_agent_post *p)
{
    mr_monitor_enter(a->monitor);
    bool is_news = p->exhausted && !a->post.exhausted;
    a->post = *p;
    if (is_news) {
        a->is_urgent = true;
        mr_monitor_notify(a->monitor);
    }
    mr_monitor_leave(a->monitor);
}

void mr_agent_count_scored(
    struct mr_agent_counters *c, double loss_sum, uint64_t correct, uint64_t examples)
{
    if (isfinite(loss_sum))
        c->loss_sum += loss_sum;
    else
        c->spoiled++;
    c->correct += (double)correct;
    c->scored += examples;
}

/* Makes the agent report at once, and counts the report as one that the trainer has to acknowledge.
 * Called inside the monitor. */
static void must_report(struct mr_agent *a)
{
    a->said++;
    a->is_urgent = true;
    mr_monitor_notify(a->monitor);
}

void mr_agent_report_checkpoint(struct mr_agent *a, uint64_t version, const char *object)
{
    mr_monitor_enter(a->monitor);
    if (a->checkpoints_count == CHECKPOINTS_MAX) {
        a->checkpoints_count--;
        memmove(
            a->checkpoints, a->checkpoints + 1, a->checkpoints_count * sizeof a->checkpoints[0]);
    }
    struct pending_checkpoint *p = &a->checkpoints[a->checkpoints_count++];
    p->version = version;
    (void)snprintf(p->object, sizeof p->object, "%s", object);
    must_report(a);
    mr_monitor_leave(a->monitor);
}

void mr_agent_report_finished(struct mr_agent *a, Millrace__V1__TrainingPhase phase,
    const char *model_object, const char *score_json)
{
    mr_monitor_enter(a->monitor);
    if (a->finished != phase) {
        a->finished = phase;
        /* A text that is set is kept: a report may be using it outside the monitor. */
        if (!a->model_object && model_object) a->model_object = mr_copy_text(model_object);
        if (!a->score_json && score_json) a->score_json = mr_copy_text(score_json);
        must_report(a);
    }
    mr_monitor_leave(a->monitor);
}

void mr_agent_report_failure(struct mr_agent *a, const char *why, mr_duration timeout)
{
    mr_time until = mr_time_after(mr_clock_now(), timeout);
    mr_monitor_enter(a->monitor);
    if (!a->failure) a->failure = mr_copy_text(why);
    must_report(a);
    while (a->heard != a->said && !a->view.is_over && mr_clock_now() < until) {
        mr_monitor_leave(a->monitor);
        bool is_cancelled =
            /* called outside the monitor, because the callback may take locks */
            mr_stop_is_set(a->c.cancelled);
        mr_monitor_enter(a->monitor);
        if (is_cancelled) break;
        (void)mr_monitor_wait(a->monitor, MR_MIN(until, mr_time_after(mr_clock_now(), LOOK_EVERY)));
    }
    mr_monitor_leave(a->monitor);
}

void mr_agent_wait(struct mr_agent *a, mr_time deadline)
{
    mr_monitor_enter(a->monitor);
    (void)mr_monitor_wait(a->monitor, deadline);
    mr_monitor_leave(a->monitor);
}
