/* Calls that change the core's state. A call has a ticket. The event carries the ticket to the
 * core, and the core's reply carries it back. If the call is gone when the reply comes, the change
 * still holds. */
#include "services/scheduler/shell/submit.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "host/clock.h"
#include "host/config/value.h"
#include "proto/methods.h"
#include "services/scheduler/base/job_lookup.h"
#include "services/scheduler/shell/job_message.h"
#include "services/scheduler/base/journal_link.h"
#include "services/scheduler/shell/watch.h"

#include <math.h>

#define WAIT_S_MAX 3600.0
#define REQUEST_ID_BYTES_MAX 128
/* limit of the wait for the core's reply, for calls without a deadline */
#define ANSWER_WAIT_MAX (60 * MR_SECOND)
#define ANSWER_MARGIN_MAX (MR_SECOND / 4)

enum change { CHANGE_SUBMIT, CHANGE_CANCEL, CHANGE_RETRY, CHANGE_FORGET };

/* The context of a call that submits or changes a job. */
struct submission {
    struct mr_shell *sh;
    struct mr_parser_request *request;
    enum change change;
    mr_job_id job; /* the job of a CANCEL, RETRY or FORGET */
    double wait_s;
    struct mr_sched_parent parent;
    bool want_values;
    bool has_first;
    mr_rpc_call_id call;
    uint64_t ticket;
    struct mr_list node; /* member of sh->answers until the core replies */
    mr_time answer_by;
    struct mr_list reading; /* member of sh->reading until the body is complete */
    mr_time heard_at;
    bool is_late; /* the call was failed before the core replied */
};

/* Returns the submission that a ticket belongs to; NULL: the call is gone. A ticket is a call's id,
 * which the process never uses again. */
static struct submission *submission_of(
    struct mr_shell *sh, uint64_t ticket, struct mr_rpc_call **call)
{
    *call = mr_rpc_call_find(sh->loop, (mr_rpc_call_id){ticket});
    return *call ? mr_rpc_call_context(*call) : NULL;
}

static void on_open(struct mr_rpc_call *call)
{
    struct submission *s = mr_alloc(sizeof *s);
    s->sh = mr_shell_of(call);
    s->call = mr_rpc_call_id_of(call);
    s->ticket = s->call.v;
    s->request = mr_parser_request_new(s->sh->parser, s->ticket);
    mr_list_init(&s->node);
    mr_rpc_call_set_context(call, s);
    s->heard_at = mr_clock_now();
    mr_list_add_tail(&s->sh->reading, &s->reading);
    s->sh->reading_due = MR_MIN(s->sh->reading_due, s->heard_at + s->sh->options.reading_idle);
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    struct submission *s = mr_rpc_call_context(call);
    mr_watch_call_done(call);
    mr_parser_drop(s->sh->parser, &s->request);
    mr_list_remove(&s->node);
    mr_list_remove(&s->reading);
    mr_release(s);
}

/* Reads the value of a task's variable MILLRACE_TASK: "j1kq07ab-7/12/1" is job, index, attempt. */
static int parse_parent(const char *text, struct mr_sched_parent *out, struct mr_error *e)
{
    const char *slash = strchr(text, '/');
    const char *second = slash ? strchr(slash + 1, '/') : NULL;
    uint64_t index = 0, attempt = 0;
    if (!text[0]) return MR_OK;
    bool good = second && !mr_job_id_parse(mr_str_of(text, (size_t)(slash - text)), &out->job) &&
                !mr_config_parse_u64(mr_str_of(slash + 1, (size_t)(second - slash - 1)), &index) &&
                !mr_config_parse_u64(mr_str(second + 1), &attempt) && index <= UINT32_MAX &&
                attempt >= 1 && attempt <= UINT32_MAX;
    if (!good)
        return mr_fail(e, MR_EINVAL,
            "parent: \"%.64s\" is no task (they look like j1kq07ab-7/12/1: job, index, attempt)",
            text);
    out->index = (uint32_t)index;
    out->attempt = (uint32_t)attempt;
    return MR_OK;
}

static bool take_options(struct mr_rpc_call *call, struct submission *s, const char *request_id,
    const char *parent, double wait_s, bool want_values)
{
    struct mr_error e;
    if (parse_parent(parent, &s->parent, &e)) {
        (void)mr_rpc_call_fail(call, &e);
        return false;
    }
    if (!(wait_s >= 0 && wait_s <= WAIT_S_MAX)) {
        mr_shell_fail(call, MR_EINVAL, "wait_s: expected 0 to %g seconds", WAIT_S_MAX);
        return false;
    }
    size_t n = request_id ? strlen(request_id) : 0;
    if (n > REQUEST_ID_BYTES_MAX) {
        mr_shell_fail(
            call, MR_EINVAL, "request_id: %zu bytes, at most %d", n, REQUEST_ID_BYTES_MAX);
        return false;
    }
    s->has_first = true;
    s->wait_s = wait_s;
    s->want_values = want_values;
    if (n) s->request->request_id = mr_copy_text(request_id);
    return true;
}

static void add_body(struct mr_rpc_call *call, struct submission *s, const void *p, size_t n)
{
    struct mr_error e;
    if (!s->request) return; /* the call has failed */
    s->heard_at = mr_clock_now();
    if (!mr_parser_add_body(s->sh->parser, s->request, call, mr_str_of(p, n), &e)) return;
    mr_parser_drop(s->sh->parser, &s->request);
    (void)mr_rpc_call_fail(call, &e);
}

static void on_submit_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct submission *s = mr_rpc_call_context(call);
    const Millrace__V1__SubmitRequest *m =
        mr_shell_request(s->sh, call, msg, &millrace__v1__submit_request__descriptor);
    /* a body of which a message is missing must not be parsed */
    if (!m) mr_parser_drop(s->sh->parser, &s->request);
    if (!m || !s->request) return;
    if (!s->has_first &&
        !take_options(call, s, m->request_id, m->parent, m->wait_s, m->want_values)) {
        mr_parser_drop(s->sh->parser, &s->request);
        return;
    }
    s->request->form = MR_PARSER_JSON;
    if (m->body) add_body(call, s, m->body->data.data, m->body->data.len);
    if (s->request) mr_parser_parse_ahead(s->sh->parser, s->request);
}

static void on_instantiate_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct submission *s = mr_rpc_call_context(call);
    const Millrace__V1__InstantiateTemplateRequest *m =
        mr_shell_request(s->sh, call, msg, &millrace__v1__instantiate_template_request__descriptor);
    if (!m) mr_parser_drop(s->sh->parser, &s->request);
    if (!m || !s->request) return;
    if (!s->has_first) {
        if (!take_options(call, s, m->request_id, m->parent, m->wait_s, m->want_values)) {
            mr_parser_drop(s->sh->parser, &s->request);
            return;
        }
        s->request->template = mr_copy_text(m->name);
    }
    s->request->form = MR_PARSER_INSTANTIATE;
    if (m->body) add_body(call, s, m->body->data.data, m->body->data.len);
}

static void on_graph_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct submission *s = mr_rpc_call_context(call);
    const Millrace__V1__SubmitGraphRequest *m =
        mr_shell_request(s->sh, call, msg, &millrace__v1__submit_graph_request__descriptor);
    if (!m) mr_parser_drop(s->sh->parser, &s->request);
    if (!m) return;
    struct mr_str bytes = mr_rpc_message_str(msg);
    if (!take_options(call, s, m->request_id, m->parent, m->wait_s, m->want_values)) {
        mr_parser_drop(s->sh->parser, &s->request);
        return;
    }
    s->request->form = MR_PARSER_GRAPH;
    add_body(call, s, bytes.p, bytes.n);
}

/* Adds the message to the body, after its length (u64). gRPC may deliver the message in several
 * slices. */
static void add_framed(struct mr_rpc_call *call, struct submission *s, struct mr_rpc_message *msg)
{
    const struct mr_str *parts = NULL;
    size_t count = mr_rpc_message_parts(msg, &parts);
    uint64_t n = mr_rpc_message_bytes(msg);
    add_body(call, s, &n, sizeof n);
    for (size_t i = 0; i < count; i++)
        add_body(call, s, parts[i].p, parts[i].n);
}

/* Passes messages of columns to the parser as bytes. Only the first message is unpacked, since it
 * has the options. */
static void on_columns_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct submission *s = mr_rpc_call_context(call);
    if (!s->request) return;
    if (!s->has_first) {
        const Millrace__V1__SubmitColumns *m =
            mr_shell_request(s->sh, call, msg, &millrace__v1__submit_columns__descriptor);
        if (!m) mr_parser_drop(s->sh->parser, &s->request);
        if (!m) return;
        if (!take_options(call, s, m->request_id, m->parent, m->wait_s, m->want_values)) {
            mr_parser_drop(s->sh->parser, &s->request);
            return;
        }
    }
    s->request->form = MR_PARSER_COLUMNS;
    add_framed(call, s, msg);
    if (s->request) mr_parser_parse_ahead(s->sh->parser, s->request);
}

static void on_half_close(struct mr_rpc_call *call)
{
    struct submission *s = mr_rpc_call_context(call);
    mr_list_remove(&s->reading);
    if (!s->request) return;
    if (!s->has_first) {
        mr_shell_fail(call, MR_EINVAL, "a submission without a message");
        return;
    }
    s->request->is_recovering = mr_shell_is_recovering(s->sh);
    struct mr_parser_result *done = mr_parser_parse_now(s->sh->parser, s->request);
    if (done) {
        mr_parser_drop(s->sh->parser, &s->request);
        mr_submit_parsed(s->sh, done);
        return;
    }
    if (mr_parser_push(s->sh->parser, &s->request))
        mr_shell_fail(call, MR_EAWAY, "too many submissions are waiting: try again");
}

/* Queues the call until the core replies. While Redis is away the reply may take any time. Shortly
 * before the call's deadline the call is failed, so that the client reads the reason instead of a
 * timeout. */
static void wait_for_reply(struct submission *s, const struct mr_rpc_call *call)
{
    mr_time now = mr_clock_now();
    mr_time deadline = mr_rpc_call_deadline(call);
    mr_duration left = deadline > now ? deadline - now : 0;
    if (deadline == MR_NEVER)
        s->answer_by = now + ANSWER_WAIT_MAX;
    else
        s->answer_by = now + left - MR_MIN(left / 10, ANSWER_MARGIN_MAX);
    mr_list_add_tail(&s->sh->answers, &s->node);
    s->sh->answers_due = MR_MIN(s->sh->answers_due, s->answer_by);
}

mr_time mr_submit_deadline(const struct mr_shell *sh)
{
    return MR_MIN(sh->answers_due, sh->reading_due);
}

/* Fails calls whose body has not grown for `reading_idle`. This frees the bytes that these bodies
 * take from the limit `reading_bytes`. */
static void end_idle(struct mr_shell *sh, mr_time now)
{
    if (sh->reading_due > now) return;
    sh->reading_due = MR_NEVER;
    MR_LIST_EACH(node, &sh->reading)
    {
        struct submission *s = MR_LIST_ITEM(node, struct submission, reading);
        mr_time due = s->heard_at + sh->options.reading_idle;
        if (due > now) {
            sh->reading_due = MR_MIN(sh->reading_due, due);
            continue;
        }
        mr_list_remove(&s->reading);
        mr_parser_drop(sh->parser, &s->request);
        struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, s->call);
        if (call)
            mr_shell_fail(call, MR_ETIMEOUT,
                "the body of the job is incomplete, and no byte has come for %.0f s: send it again",
                (double)sh->options.reading_idle / 1e9);
    }
}

static void give_up(struct submission *s, const char *why)
{
    mr_list_remove(&s->node);
    s->is_late = true;
    struct mr_rpc_call *call = mr_rpc_call_find(s->sh->loop, s->call);
    if (call)
        mr_shell_fail(call, MR_EAWAY,
            "%s: the request may have been carried out or not; ask again%s", why,
            s->change == CHANGE_SUBMIT ? ", with the same request_id (Idempotency-Key)" : "");
}

void mr_submit_stop(struct mr_shell *sh)
{
    MR_LIST_EACH(node, &sh->answers)
    give_up(MR_LIST_ITEM(node, struct submission, node),
        "the scheduler is stopping and Redis has not confirmed it");
}

void mr_submit_tick(struct mr_shell *sh, mr_time now)
{
    end_idle(sh, now);
    if (sh->answers_due > now) return;
    sh->answers_due = MR_NEVER;
    MR_LIST_EACH(node, &sh->answers)
    {
        struct submission *s = MR_LIST_ITEM(node, struct submission, node);
        if (s->answer_by > now) {
            sh->answers_due = MR_MIN(sh->answers_due, s->answer_by);
            continue;
        }
        give_up(s, "Redis has not confirmed it in time");
    }
}

const struct mr_rpc_handler mr_submit_handler = {.on_open = on_open,
    .on_message = on_submit_message,
    .on_half_close = on_half_close,
    .on_done = on_done};
const struct mr_rpc_handler mr_submit_graph_handler = {.on_open = on_open,
    .on_message = on_graph_message,
    .on_half_close = on_half_close,
    .on_done = on_done};
const struct mr_rpc_handler mr_instantiate_handler = {.on_open = on_open,
    .on_message = on_instantiate_message,
    .on_half_close = on_half_close,
    .on_done = on_done};
const struct mr_rpc_handler mr_submit_stream_handler = {.on_open = on_open,
    .on_message = on_columns_message,
    .on_half_close = on_half_close,
    .on_done = on_done};

void mr_submit_parsed(struct mr_shell *sh, struct mr_parser_result *done)
{
    struct mr_rpc_call *call = NULL;
    bool is_answer = !done->is_dropped && !done->is_moved;
    struct submission *s = is_answer ? submission_of(sh, done->ticket, &call) : NULL;
    if (done->graph && s) {
        struct mr_sched_event ev = {.type = MR_SCHED_SUBMIT, .ticket = done->ticket};
        ev.submit = (struct mr_sched_submit){.ticket = done->ticket,
            .graph = done->graph,
            .graph_bytes = mr_buf_str(&done->graph_bytes),
            .piece_bytes = done->piece_bytes,
            .body_hash = done->body_hash,
            .parent = s->parent,
            .template = done->template,
            .resolved = done->resolved,
            .resolved_count = done->resolved_count};
        done->graph = NULL; /* the event owns the graph */
        wait_for_reply(s, call);
        mr_shell_step(sh, &ev);
        if (done->pieces_count) {
            mr_journal_link_give(sh, done->pieces);
            mr_journal_link_flush(sh); /* Redis writes the graph while the core plans the job */
        }
    } else if (s) {
        (void)mr_rpc_call_fail(call, &done->error);
    }
    mr_parser_result_free(&done);
}

static void reply_changed(struct mr_shell *sh, struct mr_rpc_call *call, const struct submission *s)
{
    mr_pb_arena_clear(&sh->scratch);
    if (s->change == CHANGE_FORGET) {
        const Millrace__V1__ForgetJobResponse done = MILLRACE__V1__FORGET_JOB_RESPONSE__INIT;
        (void)mr_rpc_call_reply_pb(call, &done.base);
        return;
    }
    Millrace__V1__Job *job = mr_job_message(sh, s->job);
    if (job)
        (void)mr_rpc_call_reply_pb(call, &job->base);
    else
        mr_shell_fail(call, MR_ENOENT, "the job was forgotten meanwhile");
}

struct mr_str mr_submit_client(struct mr_shell *sh, uint64_t ticket)
{
    struct mr_rpc_call *call = NULL;
    return submission_of(sh, ticket, &call) ? mr_rpc_auth_caller(sh->auth, call) : MR_STR("");
}

void mr_submit_reply(struct mr_shell *sh, const struct mr_sched_note *n, struct mr_str text)
{
    struct mr_rpc_call *call = NULL;
    struct submission *s = submission_of(sh, n->ticket, &call);
    if (!s || s->is_late) return;
    mr_list_remove(&s->node);
    if (n->code) {
        mr_shell_fail(call, n->code, "%.*s", MR_STR_ARG(text));
        return;
    }
    if (s->change != CHANGE_SUBMIT) {
        reply_changed(sh, call, s);
        return;
    }
    const struct mr_watcher_spec spec = {.kind = MR_WATCH_SUBMIT,
        .job = n->job,
        .wait = (mr_duration)llround(s->wait_s * 1e9),
        .want_values = s->want_values,
        .existed = n->existed};
    mr_watch_add(sh, call, &spec);
}

/* ---- Cancel, Retry, Forget ------------------------------------------------------------------- */

static bool change_request(struct mr_rpc_call *call, struct mr_rpc_message *msg,
    struct submission *s, const char **id, const char **reason)
{
    const struct mr_proto_method *method = mr_proto_method_find(mr_rpc_call_method(call));
    mr_assert(method); /* cannot be NULL: the server found the handler by this name */
    void *m = mr_shell_request(s->sh, call, msg, method->request);
    if (!m) return false;
    *reason = "";
    if (method->request == &millrace__v1__cancel_job_request__descriptor) {
        s->change = CHANGE_CANCEL;
        *id = ((const Millrace__V1__CancelJobRequest *)m)->id;
        *reason = ((const Millrace__V1__CancelJobRequest *)m)->reason;
    } else if (method->request == &millrace__v1__retry_job_request__descriptor) {
        s->change = CHANGE_RETRY;
        *id = ((const Millrace__V1__RetryJobRequest *)m)->id;
    } else {
        s->change = CHANGE_FORGET;
        *id = ((const Millrace__V1__ForgetJobRequest *)m)->id;
    }
    return true;
}

static void on_change_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    static const enum mr_sched_event_type types[] = {[CHANGE_CANCEL] = MR_SCHED_CANCEL,
        [CHANGE_RETRY] = MR_SCHED_RETRY,
        [CHANGE_FORGET] = MR_SCHED_FORGET};
    struct submission *s = mr_rpc_call_context(call);
    const char *id = NULL;
    const char *reason = NULL;
    struct mr_sched_job_info info;
    mr_list_remove(&s->reading);
    if (!change_request(call, msg, s, &id, &reason)) return;
    if (strlen(reason) > 1024) {
        mr_shell_fail(call, MR_EINVAL, "reason: at most 1024 bytes");
        return;
    }
    bool again = s->change == CHANGE_FORGET && !mr_job_id_parse(mr_str(id), &s->job) &&
                 mr_sched_forgotten(s->sh->core, s->job);
    if (!again && !mr_job_lookup(s->sh, call, id, &s->job, &info)) return;
    wait_for_reply(s, call);
    struct mr_sched_event ev = {
        .type = types[s->change], .ticket = s->ticket, .job = s->job, .text = mr_str(reason)};
    mr_shell_step(s->sh, &ev);
}

const struct mr_rpc_handler mr_change_handler = {
    .on_open = on_open, .on_message = on_change_message, .on_done = on_done};
