/* Requests to the scheduler. A struct request exists until the request is answered. The roles of a
 * training session are the tasks of one job. Two calls submit this job. First Cluster.Workers lists
 * the workers, to which the roles are assigned in turn. Then Jobs.Submit submits the job. */
#include "services/trainer/session/scheduler_client.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "rpc/status.h"
#include "services/trainer/core/core.h"
#include "services/trainer/link/role_job.h"

#include <millrace/v1/cluster.pb-c.h>
#include <millrace/v1/jobs.pb-c.h>

#include <inttypes.h>
#include <stdio.h>

#define ARENA_BYTES_MAX ((size_t)64 << 20)
#define CALL_TIME (20 * MR_SECOND)
#define POLL_WAIT_S 2.0 /* the scheduler answers sooner when the job ends */
#define FORGET_PAUSE MR_SECOND
#define FORGET_TRIES 60
/* bytes of the text that says why a job failed, with the NUL; a longer text is cut */
#define TEXT_BYTES_MAX 600

#define GRPC_OK 0
#define GRPC_CANCELLED 1
#define GRPC_NOT_FOUND 5
#define GRPC_FAILED_PRECONDITION 9
#define GRPC_INTERNAL 13

enum kind { SUBMIT, POLL, CANCEL, FORGET };

struct request {
    struct mr_list node;
    struct mr_sched_link *link;
    enum kind kind;
    mr_training_id session;
    uint64_t created_ns;
    enum mr_sched_link_which which;
    mr_job_id job;
    struct mr_buf document, trainer;
    struct mr_buf reason;
    bool is_under_way;
    mr_time at; /* FORGET: time of the next attempt */
    uint32_t tries;
    /* An error that no call has brought. It is reported in the next turn, because the core is in a
     * step when the error occurs. */
    int refused;
    /* id of the job, from the answer to a streaming call */
    mr_job_id accepted;
};

struct mr_sched_link {
    struct mr_sched_link_config config;
    struct mr_list requests;
    struct mr_pb_arena arena;
};

struct mr_sched_link *mr_sched_link_new(const struct mr_sched_link_config *config)
{
    struct mr_sched_link *l = mr_alloc(sizeof *l);
    l->config = *config;
    mr_list_init(&l->requests);
    mr_pb_arena_init(&l->arena, ARENA_BYTES_MAX);
    return l;
}

static void request_free(struct request *x)
{
    mr_list_remove(&x->node);
    mr_buf_fini(&x->document);
    mr_buf_fini(&x->trainer);
    mr_buf_fini(&x->reason);
    mr_release(x);
}

void mr_sched_link_free(struct mr_sched_link **lp)
{
    struct mr_sched_link *l = MR_STEAL(*lp);
    if (!l) return;
    MR_LIST_EACH(node, &l->requests)
    {
        request_free(MR_LIST_ITEM(node, struct request, node));
    }
    mr_pb_arena_fini(&l->arena);
    mr_release(l);
}

static struct request *request_new(
    struct mr_sched_link *l, enum kind kind, const struct mr_sched_link_job *j)
{
    struct request *x = mr_alloc(sizeof *x);
    x->link = l;
    x->kind = kind;
    x->session = j->session;
    x->created_ns = j->created_ns;
    x->which = j->which;
    x->job = j->job;
    mr_buf_init(&x->document, MR_ROLE_JOB_BYTES_MAX);
    mr_buf_init(&x->trainer, MR_ADDRESS_BYTES_MAX);
    mr_buf_init(&x->reason, MR_TRAINING_REASON_BYTES_MAX);
    mr_buf_add_str(&x->document, j->document);
    mr_buf_add_str(&x->trainer, j->trainer);
    mr_buf_add(&x->reason, j->text.p, MR_MIN(j->text.n, (size_t)MR_TRAINING_REASON_BYTES_MAX - 1));
    mr_buf_add_byte(&x->reason, 0);
    mr_list_add_tail(&l->requests, &x->node);
    return x;
}

/* Gives the answer to the core and frees the request. */
static void answer(struct request *x, struct mr_trainer_event *ev)
{
    static const enum mr_trainer_event_type types[] = {
        [SUBMIT] = MR_TE_JOB_SUBMITTED, [POLL] = MR_TE_JOB_STATE, [CANCEL] = MR_TE_JOB_CANCELLED};
    struct mr_sched_link *l = x->link;
    ev->type = types[x->kind];
    ev->session = x->session;
    ev->roles = x->which == MR_LINK_ROLES;
    ev->feed = x->which == MR_LINK_FEED;
    if (x->kind != SUBMIT) ev->job = x->job;
    request_free(x);
    l->config.on_event(l->config.ctx, ev);
}

/* Returns the error code for the status of a call, and sets `*e` to the scheduler's error text. The
 * core uses the code to decide whether to repeat the request. */
static int error_of(const struct mr_rpc_status *status, struct mr_error *e)
{
    int err = mr_rpc_status_error(status, e);
    /* the connection to the scheduler broke */
    if (status->code == GRPC_CANCELLED || status->code == GRPC_INTERNAL) err = MR_EAWAY;
    if (e->code) e->code = err;
    if (strstr(e->text, "unknown op \"train.exec\"")) {
        struct mr_error was = *e;
        return mr_fail(
            e, err, "%s: roles with exec need workers started with --allow-exec", was.text);
    }
    return err;
}

static void answer_error(struct request *x, int err, struct mr_str why)
{
    struct mr_trainer_event ev = {.err = err, .text = why};
    if (x->kind == POLL) {
        bool unknown = err == MR_ENOENT;
        ev.job_state = unknown ? MR_TRAINING_JOB_UNKNOWN : MR_TRAINING_JOB_AWAY;
    }
    answer(x, &ev);
}

static void answer_later(struct request *x, int err, struct mr_str why)
{
    mr_buf_clear(&x->reason);
    mr_buf_add_str(&x->reason, why);
    x->refused = err;
    x->is_under_way = false;
}

static bool is_refused_without(struct request *x)
{
    if (*x->link->config.channel) return false;
    answer_later(x, MR_ESTATE, MR_STR("the trainer was started without --scheduler"));
    return true;
}

/* ---- submit ---------------------------------------------------------------------------------- */

static void on_accepted(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct request *x = mr_rpc_call_context(call);
    mr_pb_arena_clear(&x->link->arena);
    const Millrace__V1__SubmitResponse *r = mr_pb_unpack(
        &millrace__v1__submit_response__descriptor, mr_rpc_message_str(m), &x->link->arena, NULL);
    if (r) (void)mr_job_id_parse(mr_str(r->id), &x->accepted);
}

static void on_submitted(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct request *x = mr_rpc_call_context(call);
    struct mr_error e = {0};
    int err = error_of(status, &e);
    if (!err && !x->accepted.v)
        err = mr_fail(&e, MR_EAWAY, "the scheduler's answer could not be read");
    if (err) {
        answer_error(x, err, mr_str(e.text));
        return;
    }
    struct mr_trainer_event ev = {.job = x->accepted};
    answer(x, &ev);
}

static void send_body(struct mr_rpc_call *call, const char *request_id, struct mr_str body)
{
    size_t at = 0;
    do {
        size_t n = MR_MIN(body.n - at, MR_CHUNK_BYTES);
        Google__Api__HttpBody piece = GOOGLE__API__HTTP_BODY__INIT;
        Millrace__V1__SubmitRequest m = MILLRACE__V1__SUBMIT_REQUEST__INIT;
        piece.data.data = (unsigned char *)mr_unconst(body.p) + at;
        piece.data.len = n;
        m.body = &piece;
        if (!at) m.request_id = mr_unconst(request_id);
        (void)mr_rpc_call_send_pb(call, &m.base);
        at += n;
    } while (at < body.n);
    (void)mr_rpc_call_half_close(call);
}

static const struct {
    const char *name;
    int (*make)(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e);
} makers[] = {[MR_LINK_GRAPH] = {"graph", mr_role_job_graph},
    [MR_LINK_ROLES] = {"roles", mr_role_job_roles},
    [MR_LINK_FEED] = {"feed", mr_role_job_feed}};

static void submit(struct request *x, const struct mr_str *workers, uint32_t workers_count)
{
    static const struct mr_rpc_handler handler = {
        .on_message = on_accepted, .on_done = on_submitted};
    const struct mr_rpc_call_options options = {.timeout = CALL_TIME};
    char session[MR_TRAINING_ID_TEXT_MAX];
    char request_id[MR_TRAINING_ID_TEXT_MAX + 32];
    struct mr_error e = {0};
    struct mr_buf body;
    mr_trainer_id_format(x->session, session);
    /* The session's time of creation is part of the request id. If Redis loses its data, session
     * ids may repeat while the scheduler still knows the old jobs. */
    (void)snprintf(request_id, sizeof request_id, "%s/%s/%" PRIu64, session, makers[x->which].name,
        x->created_ns);
    const struct mr_role_job_spec spec = {.document = mr_buf_str(&x->document),
        .session = mr_str(session),
        .trainer = mr_buf_str(&x->trainer),
        .workers = workers,
        .workers_count = workers_count};
    mr_buf_init(&body, MR_ROLE_JOB_BYTES_MAX);
    int err = makers[x->which].make(&spec, &body, &e);
    if (err)
        answer_later(x, err, mr_str(e.text));
    else
        send_body(mr_rpc_call_open(
                      *x->link->config.channel, "/millrace.v1.Jobs/Submit", &handler, x, &options),
            request_id, mr_buf_str(&body));
    mr_buf_fini(&body);
}

static bool can_train(const Millrace__V1__WorkerInfo *w)
{
    if (strcmp(w->state, "connected") != 0) return false;
    for (size_t i = 0; i < w->n_runtimes; i++)
        if (!strcmp(w->runtimes[i], "native")) return true;
    return false;
}

static void on_workers(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct request *x = ctx;
    struct mr_sched_link *l = x->link;
    struct mr_error e = {0};
    mr_pb_arena_clear(&l->arena);
    int err = error_of(status, &e);
    const Millrace__V1__WorkersResponse *r =
        err ? NULL
            : mr_pb_unpack(&millrace__v1__workers_response__descriptor, mr_rpc_message_str(reply),
                  &l->arena, &e);
    if (!r) {
        answer_error(x, err ? err : MR_EAWAY, mr_str(e.text));
        return;
    }
    struct mr_str *names = mr_alloc_array(r->n_workers + 1, sizeof *names);
    uint32_t count = 0;
    for (size_t i = 0; i < r->n_workers; i++)
        if (can_train(r->workers[i])) names[count++] = mr_str(r->workers[i]->name);
    submit(x, names, count);
    mr_release(names);
}

void mr_sched_link_submit(struct mr_sched_link *l, const struct mr_sched_link_job *j)
{
    Millrace__V1__WorkersRequest everyone = MILLRACE__V1__WORKERS_REQUEST__INIT;
    everyone.page_size = MR_WORKERS_MAX;
    struct request *x = request_new(l, SUBMIT, j);
    if (is_refused_without(x)) return;
    x->is_under_way = true;
    if (j->which != MR_LINK_ROLES) {
        submit(x, NULL, 0);
        return;
    }
    const struct mr_rpc_call_options options = {.timeout = CALL_TIME};
    struct mr_buf packed;
    mr_buf_init(&packed, 64);
    mr_pb_pack(&everyone.base, &packed);
    (void)mr_rpc_unary(*l->config.channel, "/millrace.v1.Cluster/Workers", mr_buf_str(&packed),
        &options, on_workers, x);
    mr_buf_fini(&packed);
}

/* ---- unary calls ----------------------------------------------------------------------------- */

static void ask(
    struct request *x, const char *method, const ProtobufCMessage *m, mr_rpc_on_reply fn)
{
    const struct mr_rpc_call_options options = {.timeout = CALL_TIME};
    struct mr_buf packed;
    x->is_under_way = true;
    mr_buf_init(&packed, 4096);
    mr_pb_pack(m, &packed);
    (void)mr_rpc_unary(*x->link->config.channel, method, mr_buf_str(&packed), &options, fn, x);
    mr_buf_fini(&packed);
}

/* Writes why the job failed: the key of the failed task and its error. */
static void job_reason(const Millrace__V1__Job *job, char *out, size_t out_bytes)
{
    const Millrace__V1__JobError *e = job->error;
    out[0] = 0;
    if (e && e->key && e->key[0])
        (void)snprintf(out, out_bytes, "%s: %s", e->key, e->message ? e->message : "");
    else if (e && e->message)
        (void)snprintf(out, out_bytes, "%s", e->message);
}

static void on_job(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct request *x = ctx;
    struct mr_error e = {0};
    char why[TEXT_BYTES_MAX];
    mr_pb_arena_clear(&x->link->arena);
    int err = error_of(status, &e);
    const Millrace__V1__Job *job = err ? NULL
                                       : mr_pb_unpack(&millrace__v1__job__descriptor,
                                             mr_rpc_message_str(reply), &x->link->arena, &e);
    if (!job) {
        answer_error(x, err ? err : MR_EAWAY, mr_str(e.text));
        return;
    }
    job_reason(job, why, sizeof why);
    struct mr_trainer_event ev = {.job_state = MR_TRAINING_JOB_GOES_ON, .text = mr_str(why)};
    if (job->state == MILLRACE__V1__JOB_STATE__JOB_DONE) ev.job_state = MR_TRAINING_JOB_DONE;
    if (job->state == MILLRACE__V1__JOB_STATE__JOB_FAILED) ev.job_state = MR_TRAINING_JOB_FAILED;
    if (job->state == MILLRACE__V1__JOB_STATE__JOB_CANCELLED)
        ev.job_state = MR_TRAINING_JOB_CANCELLED;
    answer(x, &ev);
}

void mr_sched_link_poll(struct mr_sched_link *l, const struct mr_sched_link_job *j)
{
    struct request *x = request_new(l, POLL, j);
    if (is_refused_without(x)) return;
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format(j->job, id);
    Millrace__V1__GetJobRequest m = MILLRACE__V1__GET_JOB_REQUEST__INIT;
    m.id = id;
    m.wait_s = POLL_WAIT_S;
    ask(x, "/millrace.v1.Jobs/Get", &m.base, on_job);
}

static void on_cancelled(
    void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct mr_error e = {0};
    (void)reply;
    int err = error_of(status, &e);
    struct mr_trainer_event ev = {.err = err, .text = mr_str(e.text)};
    answer(ctx, &ev);
}

static void cancel(struct request *x, const char *why, mr_rpc_on_reply fn)
{
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format(x->job, id);
    Millrace__V1__CancelJobRequest m = MILLRACE__V1__CANCEL_JOB_REQUEST__INIT;
    m.id = id;
    m.reason = mr_unconst(why);
    ask(x, "/millrace.v1.Jobs/Cancel", &m.base, fn);
}

void mr_sched_link_cancel(struct mr_sched_link *l, const struct mr_sched_link_job *j)
{
    struct request *x = request_new(l, CANCEL, j);
    if (!is_refused_without(x)) cancel(x, (const char *)x->reason.p, on_cancelled);
}

static void forget_later(struct request *x)
{
    x->is_under_way = false;
    x->at = mr_time_after(mr_clock_now(), FORGET_PAUSE);
}

static void on_cancelled_first(
    void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    (void)status;
    (void)reply;
    forget_later(ctx);
}

static void on_forgotten(
    void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct request *x = ctx;
    (void)reply;
    bool is_over = status->code == GRPC_OK || status->code == GRPC_NOT_FOUND;
    if (is_over || x->tries >= FORGET_TRIES) {
        if (!is_over)
            mr_log(MR_WARN, "job.forget_failed", "job=%llu code=%d", (unsigned long long)x->job.v,
                status->code);
        request_free(x);
        return;
    }
    if (status->code == GRPC_FAILED_PRECONDITION) /* the job still runs */
        cancel(x, "its session is forgotten", on_cancelled_first);
    else
        forget_later(x);
}

static void forget(struct request *x)
{
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format(x->job, id);
    Millrace__V1__ForgetJobRequest m = MILLRACE__V1__FORGET_JOB_REQUEST__INIT;
    m.id = id;
    x->tries++;
    ask(x, "/millrace.v1.Jobs/Forget", &m.base, on_forgotten);
}

void mr_sched_link_forget(struct mr_sched_link *l, const struct mr_sched_link_job *j)
{
    if (*l->config.channel) forget(request_new(l, FORGET, j));
}

static void answer_refused(struct request *x)
{
    char why[MR_ERROR_TEXT_MAX];
    (void)snprintf(why, sizeof why, "%.*s", MR_STR_ARG(mr_buf_str(&x->reason)));
    answer_error(x, x->refused, mr_str(why));
}

mr_time mr_sched_link_turn(struct mr_sched_link *l, mr_time now)
{
    mr_time next = MR_NEVER;
    MR_LIST_EACH(node, &l->requests)
    {
        struct request *x = MR_LIST_ITEM(node, struct request, node);
        if (x->is_under_way) continue;
        if (x->refused)
            answer_refused(x);
        else if (x->at <= now)
            forget(x);
        else
            next = MR_MIN(next, x->at);
    }
    return next;
}
