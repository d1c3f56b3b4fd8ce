/* The life of a role: it joins, waits for the other members, looks at the trainer's answers, and
 * ends. The agent (agent.c) calls the trainer's methods Join and Report. */
#include "train/member/role.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "train/feed/locate.h"

#include <inttypes.h>
#include <stdio.h>

/* limit of the time for reporting why a role cannot go on */
#define FAILURE_TIMEOUT (5 * MR_SECOND)
/* A failed attempt lasts at least this long (see last_a_while). */
#define ATTEMPT_MIN MR_SECOND

/* ---- looking up ------------------------------------------------------------------------------ */

bool mr_role_should_stop(void *ctx)
{
    const struct mr_role *r = ctx;
    return mr_flag_is_set(&r->stop) || r->call->does->is_cancelled(r->call);
}

struct mr_stop mr_role_stop_of(struct mr_role *r)
{
    return (struct mr_stop){mr_role_should_stop, r};
}

static bool is_cancelled(void *ctx)
{
    struct mr_op_call *call = ctx;
    return call->does->is_cancelled(call);
}

int mr_role_look(struct mr_role *r, bool *is_new)
{
    mr_agent_look(r->agent, &r->view);
    if (is_new) *is_new = false;
    struct mr_membership *m = mr_agent_take(r->agent);
    if (m) {
        mr_membership_free(&r->members);
        r->members = m;
        if (is_new) *is_new = true;
    }
    return mr_role_should_stop(r) || r->view.is_over ? MR_ECANCELED : MR_OK;
}

bool mr_role_is_current(const struct mr_role *r)
{
    return r->members && r->members->m->generation == r->view.generation &&
           r->members->m->restore_epoch == r->view.restore_epoch;
}

int mr_role_await_members(struct mr_role *r)
{
    Millrace__V1__TrainingPhase phase = r->view.phase;
    for (;;) {
        int err = mr_role_look(r, NULL);
        if (err || mr_role_is_current(r) || r->view.phase != phase) return err;
        mr_role_wait(r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
    }
}

struct mr_place mr_role_place(
    const struct mr_role *r, Millrace__V1__TrainingRole role, uint32_t index)
{
    const Millrace__V1__TrainingMember *m = mr_membership_find(r->members, role, index);
    if (!m) return (struct mr_place){"", "", "", 0};
    /* gRPC calls carry the cluster's secret. If the trainer belongs to another cluster, its members
     * must not get the secret. So the place has no address, and the member is not called. */
    bool is_ours = r->credential || !r->env->for_trainer;
    return (struct mr_place){is_ours ? m->address : "", m->node, m->socket, m->incarnation};
}

static const struct mr_arg *member(const struct mr_arg *dict, const char *name)
{
    if (!dict || dict->type != MR_ARG_DICT) return NULL;
    for (uint32_t i = 0; i < dict->count; i++)
        if (mr_str_eq(dict->items[i].name, mr_str(name))) return &dict->items[i];
    return NULL;
}

const struct mr_arg *mr_role_set(const struct mr_role *r, const char *set, const char *part)
{
    return member(member(r->data, set), part);
}

double mr_role_lap(mr_time *at)
{
    mr_time now = mr_clock_now();
    double s = (double)(now - *at) / 1e9;
    *at = now;
    return s;
}

void mr_role_wait(struct mr_role *r, mr_time deadline)
{
    mr_time since = mr_clock_now();
    mr_agent_wait(r->agent, deadline);
    r->waited_ns += mr_clock_now() - since;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static int feed_get(
    void *ctx, mr_object_id id, const char *source, struct mr_store_view *out, struct mr_error *e)
{
    return mr_role_get_part(ctx, id, source, out, e);
}

static void feed_find(void *ctx, const mr_object_id *ids, uint32_t n, const char **sources)
{
    mr_role_find_sources(ctx, ids, n, sources);
}

static void feed_release(void *ctx, struct mr_store_view *view)
{
    const struct mr_role_store *s = ctx;
    mr_store_release(s->store, view);
}

static void feed_room(void *ctx, uint64_t *memory, uint64_t *pinned)
{
    mr_role_room(ctx, memory, pinned);
}

static void agent_start(struct mr_role *r, const char *socket, const char *address)
{
    char job[MR_JOB_ID_TEXT_MAX], task[MR_JOB_ID_TEXT_MAX + 32];
    mr_job_id_format(r->call->task.job, job);
    (void)snprintf(task, sizeof task, "%s/%u/%u", job, r->call->task.index, r->call->task.attempt);
    const struct mr_agent_config c = {.trainer = r->trainer,
        .credential = r->credential,
        .session = r->session,
        .role = r->kind,
        .index = r->index,
        .task = task,
        .address = address ? address : r->env->address,
        .node = r->env->node,
        .socket = socket,
        .cancelled = {is_cancelled, r->call},
        .is_void = &r->is_void,
        .stop = &r->stop};
    r->agent = mr_agent_start(&c);
}

static char *text_of(const struct mr_arg *a)
{
    return mr_format("%.*s", MR_STR_ARG(a->bytes));
}

int mr_role_begin(struct mr_op_call *call, struct mr_role *r, Millrace__V1__TrainingRole kind,
    const char *socket, const char *address)
{
    static const char *const kinds[] = {"", "ps", "worker", "scorer"};
    mr_assert((size_t)kind < MR_ARRAY_LEN(kinds));
    *r =
        (struct mr_role){.call = call, .env = mr_role_env(), .kind = kind, .begun = mr_clock_now()};
    const struct mr_arg *a = call->args;
    if (a[1].type != MR_ARG_INT || a[1].i < 0 || a[1].i > UINT32_MAX)
        return call->does->fail(call, MR_EINVAL, "index: expected a whole number from 0 on");
    r->session = text_of(&a[0]);
    r->index = (uint32_t)a[1].i;
    r->trainer = text_of(&a[2]);
    r->data = &a[3];
    struct mr_error e;
    int err = mr_role_trainer_check(r->trainer, &e);
    if (err) return call->does->fail(call, err, "%s", e.text);
    r->credential = mr_role_credential_for(r->trainer);
    r->link = mr_role_link_open(r->trainer, r->credential);
    r->store = (struct mr_role_store){
        .store = r->env->store, .stop = mr_role_stop_of(r), .call = call, .node = r->env->node};
    r->store.link = mr_role_link_open(r->env->store_address, r->env->for_store);
    r->feed_store = (struct mr_feed_store){feed_get, feed_release, &r->store, feed_room, feed_find};
    agent_start(r, socket, address);
    while (!r->members) {
        err = mr_role_look(r, NULL);
        if (err) return err;
        if (!r->members) mr_role_wait(r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
    }
    err = mr_role_plan_read(mr_str(r->members->m->document_json), kinds[kind], &r->plan, &e);
    if (err) {
        mr_agent_report_failure(r->agent, e.text, FAILURE_TIMEOUT);
        return call->does->fail(call, err, "%s", e.text);
    }
    r->post.restore_epoch = r->members->m->restore_epoch;
    mr_log(MR_INFO, "role.begin", "session=%s role=%s index=%u generation=%u", r->session,
        kinds[kind], r->index, r->members->m->generation);
    return MR_OK;
}

/* Sets the task's result: nil, or an error with its text. */
static int outcome(struct mr_role *r, int err, const struct mr_error *e)
{
    struct mr_op_call *call = r->call;
    if (call->does->is_cancelled(call))
        return call->does->fail(call, MR_ECANCELED, "session %s: cancelled", r->session);
    if (r->agent) mr_agent_look(r->agent, &r->view);
    if (r->view.phase == MR_ROLE_EXIT) return call->does->return_nil(call);
    if (r->view.is_over)
        return call->does->fail(call, MR_EABORTED, "session %s: %s", r->session, r->view.why);
    if (!err) return call->does->return_nil(call);
    if (!e) return err; /* the call already has the error's text */
    return call->does->fail(call, err, "session %s: %s", r->session, e->text);
}

/* True: another attempt would fail, too, so the session has to fail. */
static bool is_final(int err)
{
    return err && err != MR_ECANCELED && err != MR_EABORTED && err != MR_EAWAY &&
           err != MR_ETIMEOUT && err != MR_EIO;
}

/* Waits until a failed attempt has lasted ATTEMPT_MIN. The scheduler retries a failed task at once.
 * A role that cannot begin yet would use up its retries in a second, although the session waits for
 * the role for a minute. Returns `err`, or MR_ECANCELED if the task was cancelled meanwhile. */
static int last_a_while(struct mr_op_call *call, mr_time since, int err)
{
    mr_duration lasted = mr_clock_now() - since;
    if (!err || err == MR_ECANCELED || lasted >= ATTEMPT_MIN) return err;
    return call->does->wait(call, ATTEMPT_MIN - lasted) ? MR_ECANCELED : err;
}

int mr_role_refuse(struct mr_op_call *call, int err, const struct mr_error *e)
{
    return last_a_while(call, mr_clock_now(), call->does->fail(call, err, "%s", e->text));
}

static uint64_t ns_of(double s)
{
    return s > 0 ? (uint64_t)(s * 1e9) : 0;
}

static void note_times(const struct mr_role *r)
{
    const struct mr_agent_counters *c = &r->post.counters;
    const struct mr_op_training_times times = {.feed = ns_of(c->feed_s),
        .pull = ns_of(c->pull_s),
        .push = ns_of(c->push_s),
        .wait = ns_of(c->wait_s) + (uint64_t)r->waited_ns};
    r->call->does->note_training(r->call, &times);
}

int mr_role_end(struct mr_role *r, int err, const struct mr_error *e)
{
    note_times(r);
    if (e && is_final(err) && r->agent && !r->view.is_over)
        mr_agent_report_failure(r->agent, e->text, FAILURE_TIMEOUT);
    err = outcome(r, err, e);
    mr_agent_stop(&r->agent);
    mr_membership_free(&r->members);
    mr_role_plan_fini(&r->plan);
    mr_role_link_close(&r->link);
    mr_role_link_close(&r->store.link);
    mr_role_sources_fini(&r->store);
    if (r->session)
        mr_log(MR_INFO, "role.end", "session=%s index=%u err=%d", r->session, r->index, err);
    mr_release(r->session);
    mr_release(r->trainer);
    return last_a_while(r->call, r->begun, err);
}
