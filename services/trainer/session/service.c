/* The service Trainings, except Start. A call that changes the state of a training is answered when
 * the core has an effect (core/effect.h) that answers it. A call that only reads is answered at
 * once, except Profile. */
#include "services/trainer/session/internal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "services/trainer/shell/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_MAX 1000u
/* When an answer of List has more bytes, no further session is added to it. */
#define PAGE_BYTES_MAX ((size_t)4 << 20)
#define PARTIES_MAX 1024u

struct mr_training_call *mr_training_call_of(const struct mr_rpc_call *call)
{
    return mr_rpc_call_context(call);
}

void mr_training_call_open(struct mr_rpc_call *call)
{
    struct mr_training_call *c = mr_alloc(sizeof *c);
    c->tr = mr_rpc_call_context(call);
    c->call = mr_rpc_call_id_of(call);
    mr_list_init(&c->node);
    mr_rpc_call_set_context(call, c);
}

void mr_training_call_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct mr_training_call *c = mr_training_call_of(call);
    (void)status;
    mr_list_remove(&c->node);
    if (c->is_waiting) {
        struct mr_trainer_event ev = {
            .type = MR_TE_GONE, .ticket = c->call.v, .session = c->session};
        mr_trainings_step(c->tr, &ev);
    }
    mr_training_intake_free(&c->intake);
    mr_release(c);
}

void mr_training_call_ask(struct mr_rpc_call *call, struct mr_trainer_event *ev)
{
    struct mr_training_call *c = mr_training_call_of(call);
    mr_assert(!c->is_waiting);
    c->is_waiting = true;
    mr_list_add_tail(&c->tr->waiting, &c->node);
    ev->ticket = c->call.v;
    mr_trainings_step(c->tr, ev);
}

bool mr_training_take_wait(struct mr_rpc_call *call, double wait_s, double most_s, mr_duration *out)
{
    if (!(wait_s >= 0 && wait_s <= most_s)) {
        mr_trainer_fail(call, MR_EINVAL, "wait_s: expected 0 to %g seconds", most_s);
        return false;
    }
    *out = (mr_duration)llround(wait_s * 1e9);
    return true;
}

static bool take_id(
    struct mr_rpc_call *call, const char *field, const char *text, mr_training_id *id)
{
    if (!mr_trainer_id_parse(mr_str(text), id)) return true;
    mr_trainer_fail(
        call, MR_EINVAL, "%s: \"%.64s\" is no session id (they look like t1-7)", field, text);
    return false;
}

bool mr_training_lookup(struct mr_rpc_call *call, const char *field, const char *text,
    mr_training_id *id, struct mr_training_info *info)
{
    const struct mr_training_call *c = mr_training_call_of(call);
    if (!take_id(call, field, text, id)) return false;
    if (!mr_trainer_info(c->tr->core, *id, info)) return true;
    mr_trainer_fail(call, MR_ENOENT, "there is no session %s", text);
    return false;
}

/* Checks a text that will appear in records, environments and answers to other clients. */
bool mr_training_is_text(
    struct mr_rpc_call *call, const char *field, const char *text, size_t bytes_max)
{
    struct mr_str s = mr_str(text);
    if (!s.n || mr_utf8_is_key(s, bytes_max)) return true;
    mr_trainer_fail(call, MR_EINVAL, "%s: at most %zu bytes of UTF-8 without control characters",
        field, bytes_max);
    return false;
}

/* ---- methods that only read ------------------------------------------------------------------ */

static void get(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_training_call *c = mr_training_call_of(call);
    struct mr_training_info info;
    const Millrace__V1__GetTrainingRequest *m =
        mr_trainer_request(c->tr->t, call, msg, &millrace__v1__get_training_request__descriptor);
    if (!m || !mr_training_take_wait(call, m->wait_s, MR_TRAINING_WAIT_S_MAX, &c->wait)) return;
    if (mr_training_lookup(call, "id", m->id, &c->session, &info)) mr_training_follow(call);
}

static void watch(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_training_call *c = mr_training_call_of(call);
    struct mr_training_info info;
    const Millrace__V1__WatchTrainingRequest *m =
        mr_trainer_request(c->tr->t, call, msg, &millrace__v1__watch_training_request__descriptor);
    if (!m || !mr_training_lookup(call, "id", m->id, &c->session, &info)) return;
    char *end = NULL;
    c->seen = strtoull(m->last_event_id, &end, 10);
    if (*end || strchr("+- ", m->last_event_id[0] ? m->last_event_id[0] : 'x')) {
        mr_trainer_fail(call, MR_EINVAL, "last_event_id: \"%.40s\" is no event id of a session",
            m->last_event_id);
        return;
    }
    c->has_sent = c->seen != 0;
    c->is_watch = true;
    mr_training_follow(call);
}

static void list(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    const struct mr_training_call *c = mr_training_call_of(call);
    struct mr_trainings *tr = c->tr;
    mr_training_id from = {0};
    const Millrace__V1__ListTrainingsRequest *m =
        mr_trainer_request(tr->t, call, msg, &millrace__v1__list_trainings_request__descriptor);
    if (!m) return;
    uint32_t page = m->page_size ? m->page_size : 100;
    if (page > PAGE_MAX) {
        mr_trainer_fail(call, MR_EINVAL, "page_size: expected 0 to %u, not %u", PAGE_MAX, page);
        return;
    }
    if (m->page_token[0] && mr_trainer_id_parse(mr_str(m->page_token), &from)) {
        mr_trainer_fail(
            call, MR_EINVAL, "page_token: \"%.64s\" came from no answer of List", m->page_token);
        return;
    }
    Millrace__V1__ListTrainingsResponse r = MILLRACE__V1__LIST_TRAININGS_RESPONSE__INIT;
    char next[MR_TRAINING_ID_TEXT_MAX] = "";
    Millrace__V1__Training **rows = mr_alloc_array(page, sizeof *rows);
    r.trainings = rows;
    mr_training_id at = mr_trainer_older(tr->core, from);
    for (; at.v; at = mr_trainer_older(tr->core, at)) {
        if (r.n_trainings == page || tr->t->scratch.bytes > PAGE_BYTES_MAX) {
            mr_trainer_id_format(from, next);
            break;
        }
        Millrace__V1__Training *row = mr_training_message(tr, at, false);
        from = at;
        if (row) r.trainings[r.n_trainings++] = row;
    }
    r.next_page_token = next;
    (void)mr_rpc_call_reply_pb(call, &r.base);
    mr_release(rows);
}

/* ---- methods that the core answers ----------------------------------------------------------- */

static void stop(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_training_call *c = mr_training_call_of(call);
    const Millrace__V1__StopTrainingRequest *m =
        mr_trainer_request(c->tr->t, call, msg, &millrace__v1__stop_training_request__descriptor);
    if (!m || !take_id(call, "id", m->id, &c->session)) return;
    if (!mr_training_is_text(call, "reason", m->reason, MR_TRAINING_REASON_BYTES_MAX)) return;
    struct mr_trainer_event ev = {.type = MR_TE_STOP,
        .session = c->session,
        .text = mr_str(m->reason),
        .abandon = m->abandon};
    mr_training_call_ask(call, &ev);
}

static void forget(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_training_call *c = mr_training_call_of(call);
    const Millrace__V1__ForgetTrainingRequest *m =
        mr_trainer_request(c->tr->t, call, msg, &millrace__v1__forget_training_request__descriptor);
    if (!m || !take_id(call, "id", m->id, &c->session)) return;
    struct mr_trainer_event ev = {.type = MR_TE_FORGET, .session = c->session};
    mr_training_call_ask(call, &ev);
}

bool mr_training_take_role(
    struct mr_rpc_call *call, const char *session, int role, mr_training_id *id)
{
    if (!take_id(call, "session", session, id)) return false;
    if (role >= MILLRACE__V1__TRAINING_ROLE__TRAINING_PS &&
        role <= MILLRACE__V1__TRAINING_ROLE__TRAINING_SCORER)
        return true;
    mr_trainer_fail(
        call, MR_EINVAL, "role: %d is none; expected 1 (ps), 2 (worker) or 3 (scorer)", role);
    return false;
}

static void join(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_training_call *c = mr_training_call_of(call);
    const Millrace__V1__JoinRequest *m =
        mr_trainer_request(c->tr->t, call, msg, &millrace__v1__join_request__descriptor);
    if (!m || !mr_training_take_role(call, m->session, (int)m->role, &c->session)) return;
    if (!mr_training_take_wait(call, m->wait_s, MR_TRAINING_ROLE_WAIT_S_MAX, &c->wait)) return;
    if (!mr_training_is_text(call, "task", m->task, MR_TRAINING_TASK_BYTES_MAX) ||
        !mr_training_is_text(call, "address", m->address, MR_ADDRESS_BYTES_MAX) ||
        !mr_training_is_text(call, "node", m->node, MR_KEY_BYTES_MAX) ||
        !mr_training_is_text(call, "socket", m->socket, MR_TRAINING_SOCKET_BYTES_MAX))
        return;
    struct mr_trainer_event ev = {.type = MR_TE_JOIN,
        .session = c->session,
        .role = (enum mr_training_role)m->role,
        .index = m->index,
        .wait = c->wait};
    ev.join = (struct mr_training_join){.task = mr_str(m->task),
        .address = mr_str(m->address),
        .node = mr_str(m->node),
        .socket = mr_str(m->socket)};
    mr_counter_add(c->tr->joins, 1);
    mr_training_call_ask(call, &ev);
}

static void barrier(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_training_call *c = mr_training_call_of(call);
    const Millrace__V1__BarrierRequest *m =
        mr_trainer_request(c->tr->t, call, msg, &millrace__v1__barrier_request__descriptor);
    struct mr_error e = {0};
    if (!m || !mr_training_take_role(call, m->session, (int)m->role, &c->session)) return;
    if (!mr_training_take_wait(call, m->wait_s, MR_TRAINING_ROLE_WAIT_S_MAX, &c->wait)) return;
    if (mr_trainer_check_name("name", m->name, MR_TRAINING_BARRIER_BYTES_MAX, &e)) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    if (!m->parties || m->parties > PARTIES_MAX) {
        mr_trainer_fail(
            call, MR_EINVAL, "parties: expected 1 to %u, not %u", PARTIES_MAX, m->parties);
        return;
    }
    struct mr_trainer_event ev = {.type = MR_TE_BARRIER,
        .session = c->session,
        .role = (enum mr_training_role)m->role,
        .index = m->index,
        .incarnation = m->incarnation,
        .text = mr_str(m->name),
        .parties = m->parties,
        .wait = c->wait};
    mr_training_call_ask(call, &ev);
}

static struct mr_training_counters counters_of(const Millrace__V1__TrainingCounters *m)
{
    if (!m) return (struct mr_training_counters){0};
    return (struct mr_training_counters){.steps = m->steps,
        .examples = m->examples,
        .epoch = m->epoch,
        .loss = m->loss,
        .accuracy = m->accuracy,
        .pull_s = m->pull_s,
        .push_s = m->push_s,
        .wait_s = m->wait_s,
        .compute_s = m->compute_s,
        .feed_s = m->feed_s,
        .gradients_stale = m->gradients_stale,
        .gradients_lost = m->gradients_lost,
        .steps_lost = m->steps_lost,
        .gradients_applied = m->gradients_applied,
        .moved_parts = m->moved_parts,
        .moved_bytes = m->moved_bytes};
}

static bool take_object(
    struct mr_rpc_call *call, const char *field, const char *text, mr_object_id *out)
{
    if (!text[0] || !mr_object_id_parse(mr_str(text), out)) return true;
    mr_trainer_fail(call, MR_EINVAL, "%s: \"%.64s\" is no object id", field, text);
    return false;
}

static void report(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_training_call *c = mr_training_call_of(call);
    const Millrace__V1__ReportRequest *m =
        mr_trainer_request(c->tr->t, call, msg, &millrace__v1__report_request__descriptor);
    if (!m || !mr_training_take_role(call, m->session, (int)m->role, &c->session)) return;
    struct mr_trainer_event ev = {.type = MR_TE_REPORT,
        .session = c->session,
        .role = (enum mr_training_role)m->role,
        .index = m->index,
        .incarnation = m->incarnation};
    ev.report = (struct mr_training_report){.generation = m->generation,
        .restore_epoch = m->restore_epoch,
        .counters = counters_of(m->counters),
        .version = m->version,
        .exhausted = m->exhausted,
        .finished = m->finished,
        .score_json = mr_str(m->score_json)};
    struct mr_error shown = {0}; /* the role's failure text without unprintable characters */
    if (m->failure[0]) {
        (void)mr_fail(&shown, MR_EINVAL, "%s", m->failure);
        ev.report.failure = mr_str(shown.text);
    }
    struct mr_error e = {0};
    if (m->score_json[0] && mr_trainer_check_json("score_json", m->score_json, &e)) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    const Millrace__V1__TrainingCheckpoint *k = m->checkpoint;
    if (k && k->n_objects > 1) {
        mr_trainer_fail(call, MR_EINVAL, "checkpoint.objects: a role reports its own shard only");
        return;
    }
    if (k && k->n_objects) {
        ev.report.checkpoint_version = k->version;
        if (!take_object(call, "checkpoint.objects", k->objects[0], &ev.report.checkpoint_object))
            return;
    }
    if (!take_object(call, "model_object", m->model_object, &ev.report.model_object)) return;
    mr_counter_add(c->tr->reports, 1);
    mr_training_call_ask(call, &ev);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void reply_report(struct mr_rpc_call *call, const struct mr_trainer_instruction *instruction)
{
    Millrace__V1__ReportResponse r = MILLRACE__V1__REPORT_RESPONSE__INIT;
    r.generation = instruction->generation;
    r.phase = (Millrace__V1__TrainingPhase)instruction->phase;
    r.restore_epoch = instruction->restore_epoch;
    (void)mr_rpc_call_reply_pb(call, &r.base);
}

static void reply_joined(
    struct mr_trainings *tr, struct mr_rpc_call *call, const struct mr_trainer_effect *x)
{
    const Millrace__V1__JoinResponse *r = mr_training_joined_message(tr, x);
    if (r)
        (void)mr_rpc_call_reply_pb(call, &r->base);
    else
        mr_trainer_fail(call, MR_ENOENT, "the session was forgotten meanwhile");
}

void mr_trainings_answer(struct mr_trainings *tr, const struct mr_trainer_effect *x)
{
    static const Millrace__V1__ForgetTrainingResponse forgotten =
        MILLRACE__V1__FORGET_TRAINING_RESPONSE__INIT;
    struct mr_rpc_call *call = mr_rpc_call_find(tr->t->loop, (mr_rpc_call_id){x->ticket});
    if (!call) return;
    struct mr_training_call *c = mr_training_call_of(call);
    c->is_waiting = false;
    mr_list_remove(&c->node);
    mr_pb_arena_clear(&tr->t->scratch);
    if (x->err) {
        mr_trainer_fail(call, x->err, "%.*s", MR_STR_ARG(mr_trainer_effect_text(&tr->fx, x)));
        return;
    }
    if (x->type == MR_TX_STARTED) {
        c->session = x->session;
        if (!x->existed) mr_counter_add(tr->started, 1);
        mr_training_follow(call);
    } else if (x->type == MR_TX_STOPPED) {
        mr_training_reply(call, tr, x->session);
    } else if (x->type == MR_TX_FORGOTTEN) {
        (void)mr_rpc_call_reply_pb(call, &forgotten.base);
    } else if (x->type == MR_TX_JOINED) {
        reply_joined(tr, call, x);
    } else if (x->type == MR_TX_REPORTED) {
        reply_report(call, &x->instruction);
    } else if (x->type == MR_TX_ROWS) {
        mr_training_reply_rows(tr, call, x);
    } else {
        mr_assert(x->type == MR_TX_BARRIER);
        Millrace__V1__BarrierResponse r = MILLRACE__V1__BARRIER_RESPONSE__INIT;
        r.generation = x->instruction.generation;
        (void)mr_rpc_call_reply_pb(call, &r.base);
    }
}

#define UNARY(fn)                                                                                  \
    &(const struct mr_rpc_handler)                                                                 \
    {                                                                                              \
        .on_open = mr_training_call_open, .on_message = (fn), .on_done = mr_training_call_done     \
    }

static const struct mr_rpc_method methods[] = {
    {.name = "Start", .client_streaming = true, .handler = &mr_training_start_handler},
    {.name = "Get", .handler = UNARY(get)},
    {.name = "List", .handler = UNARY(list)},
    {.name = "Stop", .handler = UNARY(stop)},
    {.name = "Forget", .handler = UNARY(forget)},
    {.name = "Watch", .server_streaming = true, .handler = UNARY(watch)},
    {.name = "Join", .handler = UNARY(join)},
    {.name = "Barrier", .handler = UNARY(barrier)},
    {.name = "Report", .handler = UNARY(report)},
    {.name = "PlanRows", .handler = UNARY(mr_training_plan_rows)},
    {.name = "Profile", .handler = UNARY(mr_training_profile)},
};

const struct mr_rpc_service mr_trainings_service = {
    .name = "millrace.v1.Trainings", .methods = methods, .methods_count = MR_ARRAY_LEN(methods)};
