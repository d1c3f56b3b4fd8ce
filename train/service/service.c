/* The service Parameters. A pull pins the buffer of the current version and streams directly from
 * this buffer, under gRPC's flow control. A push over gRPC is collected in heap memory. Then it
 * enters the same mailbox as pushes through shared memory. */
#include "train/service/service.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/protowire.h"
#include "host/clock.h"
#include "host/monitor.h"
#include "millrace/v1/parameters.pb-c.h"
#include "rpc/util/pb.h"
#include "train/params/shard_table.h"
#include "train/params/wire.h"
#include "train/allreduce/ring_inbox.h"
#include "train/allreduce/ring_service.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>

#define WAIT_MAX_S 60.0

struct mr_params_service {
    struct mr_rpc_loop *loop;
    struct mr_list waiting; /* struct pull each */
    struct mr_buf scratch;
    struct mr_monitor *lock; /* guards `done` and `published` */
    struct mr_list done;     /* struct mr_remote_push each */
    bool published;
};

struct hold { /* a pinned buffer from which gRPC may still send; any thread may drop a reference */
    struct mr_shard *shard;
    uint32_t buffer;
    _Atomic uint32_t users;
};

struct pull {
    struct mr_list node; /* member of service->waiting, or of no list */
    struct mr_params_service *service;
    struct mr_rpc_call *call;
    struct mr_shard *shard;
    uint64_t version_min;
    uint32_t restore_epoch;
    mr_time until;
    bool is_noted; /* the pull is counted by mr_shard_note_waiting */
    struct hold *hold;
    struct mr_shard_pin pin;
    uint64_t at, bytes;
};

struct gradient { /* a push that is being received */
    struct mr_params_service *service;
    struct mr_shard *shard;
    struct mr_remote_push *push;
    uint64_t at, bytes;
};

static void hold_put(void *ctx)
{
    struct hold *h = ctx;
    if (atomic_fetch_sub(&h->users, 1) != 1) return;
    mr_shard_unpin(h->shard, h->buffer);
    mr_shard_put(&h->shard);
    mr_release(h);
}

static void fail(struct mr_rpc_call *call, const struct mr_error *e)
{
    (void)mr_rpc_call_fail(call, e);
}

static int find(const char *session, uint32_t shard, struct mr_shard **out, struct mr_error *e)
{
    *out = mr_shard_get(session, shard);
    if (!*out)
        return mr_fail(
            e, MR_ENOENT, "shard %u of session \"%s\" is not served here", shard, session);
    return MR_OK;
}

/* ---- pull -------------------------------------------------------------------------------------*/

/* Removes the pull from those that wait. */
static void pull_forget(struct pull *p)
{
    mr_list_remove(&p->node);
    if (p->is_noted) mr_shard_note_waiting(p->shard, -1);
    p->is_noted = false;
}

static void pull_stream(struct pull *p)
{
    while (p->hold && mr_rpc_call_is_writable(p->call)) {
        uint64_t n = MR_MIN(p->bytes - p->at, (uint64_t)MR_CHUNK_BYTES);
        struct mr_buf *b = &p->service->scratch;
        mr_buf_clear(b);
        if (!p->at) {
            mr_protowire_add_varint(b, 1, p->pin.version);
            mr_protowire_add_varint(b, 2, p->pin.restore_epoch);
            mr_protowire_add_varint(b, 3, p->bytes / sizeof(float));
        }
        mr_protowire_varint(b, 4 << 3 | MR_PROTOWIRE_BYTES);
        mr_protowire_varint(b, n);
        (void)atomic_fetch_add(&p->hold->users, 1);
        const struct mr_rpc_part parts[] = {{mr_buf_str(b), NULL, NULL},
            {mr_str_of((const char *)p->pin.params + p->at, n), hold_put, p->hold}};
        int err = mr_rpc_call_send_parts(p->call, parts, MR_ARRAY_LEN(parts));
        p->at += n;
        bool ends = err || p->at == p->bytes;
        if (!ends) continue;
        if (!err) (void)mr_rpc_call_finish_ok(p->call);
        hold_put(p->hold);
        p->hold = NULL;
    }
}

/* Tries to answer the pull. True: the pull was answered, or the answer is being sent. False: the
 * pull has to wait for a version. */
static bool pull_try(struct pull *p)
{
    struct mr_error e = {0};
    int err = mr_shard_pin(p->shard, p->version_min, p->restore_epoch, &p->pin);
    if (err == MR_EAGAIN && mr_clock_now() < p->until) return false;
    if (err == MR_EAGAIN)
        (void)mr_fail(&e, MR_ETIMEOUT, "version %" PRIu64 " did not come in time", p->version_min);
    if (err == MR_EABORTED)
        (void)mr_fail(&e, err, "the shard went back to a checkpoint: restore epoch %u is over",
            p->restore_epoch);
    if (err == MR_EAWAY) (void)mr_fail(&e, err, "the server of the shard is gone");
    if (err) {
        fail(p->call, &e);
        return true;
    }
    p->hold = mr_alloc(sizeof *p->hold);
    p->hold->shard = p->shard; /* the reference to the shard moves to the hold */
    p->hold->buffer = p->pin.buffer;
    atomic_store(&p->hold->users, 1);
    if (p->is_noted) mr_shard_note_waiting(p->shard, -1);
    p->is_noted = false;
    p->shard = NULL;
    pull_stream(p);
    return true;
}

static void pull_begin(
    struct pull *p, const Millrace__V1__PullParametersRequest *q, struct mr_error *e)
{
    if (!(q->wait_s >= 0 && q->wait_s <= WAIT_MAX_S)) {
        fail(p->call,
            (mr_fail(e, MR_EINVAL, "field \"wait_s\" is %g: expected 0 to 60", q->wait_s), e));
        return;
    }
    if (find(q->session, q->shard, &p->shard, e)) {
        fail(p->call, e);
        return;
    }
    p->version_min = q->version_min;
    p->restore_epoch = q->restore_epoch;
    p->until = mr_time_after(mr_clock_now(), (mr_duration)(q->wait_s * 1e9));
    p->bytes = mr_shard_count(p->shard) * sizeof(float);
    /* A version may be published just after pull_try has found none. The publication wakes this
     * thread, because the pull is noted already. */
    mr_shard_note_waiting(p->shard, 1);
    p->is_noted = true;
    if (pull_try(p))
        pull_forget(p);
    else
        mr_list_add_tail(&p->service->waiting, &p->node);
}

static void pull_open(struct mr_rpc_call *call)
{
    struct pull *p = mr_alloc(sizeof *p);
    mr_list_init(&p->node);
    p->service = mr_rpc_call_context(call);
    p->call = call;
    mr_rpc_call_set_context(call, p);
}

static void pull_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct pull *p = mr_rpc_call_context(call);
    struct mr_pb_arena a;
    mr_pb_arena_init(&a, 65536);
    struct mr_error e = {0};
    const Millrace__V1__PullParametersRequest *q = mr_pb_unpack(
        &millrace__v1__pull_parameters_request__descriptor, mr_rpc_message_str(m), &a, &e);
    if (q)
        pull_begin(p, q, &e);
    else
        fail(call, &e);
    mr_pb_arena_fini(&a);
}

static void pull_writable(struct mr_rpc_call *call)
{
    pull_stream(mr_rpc_call_context(call));
}

static void pull_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    struct pull *p = mr_rpc_call_context(call);
    pull_forget(p);
    if (p->hold) hold_put(p->hold);
    mr_shard_put(&p->shard);
    mr_release(p);
}

/* ---- push -------------------------------------------------------------------------------------*/

static int gradient_begin(struct gradient *g, struct mr_rpc_call *call,
    const struct mr_gradient_chunk *c, struct mr_error *e)
{
    int err = find(c->session, c->shard, &g->shard, e);
    if (err) return err;
    uint64_t count = mr_shard_count(g->shard);
    if (c->count != count)
        return mr_fail(e, MR_EINVAL, "field \"count\" is %" PRIu64 ": the shard has %" PRIu64,
            c->count, count);
    g->bytes = count * sizeof(float);
    g->push = mr_alloc(sizeof *g->push);
    g->push->grad = mr_alloc_aligned(g->bytes + 64, 64);
    g->push->call = mr_rpc_call_id_of(call).v;
    g->push->push = (struct mr_push){.worker = c->worker,
        .incarnation = c->incarnation,
        .step = c->step,
        .base_version = c->base_version,
        .restore_epoch = c->restore_epoch,
        .examples = c->examples};
    return MR_OK;
}

static void push_open(struct mr_rpc_call *call)
{
    struct gradient *g = mr_alloc(sizeof *g);
    g->service = mr_rpc_call_context(call);
    mr_rpc_call_set_context(call, g);
}

static void push_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct gradient *g = mr_rpc_call_context(call);
    struct mr_error e = {0};
    struct mr_gradient_chunk c;
    int err = mr_gradient_chunk_read(mr_rpc_message_str(m), &c, &e);
    if (!err && !g->shard) err = gradient_begin(g, call, &c, &e);
    if (!err && (!g->push || c.data.n > g->bytes - g->at))
        err = mr_fail(&e, MR_EINVAL, "more data than %" PRIu64 " bytes", g->bytes);
    if (err) {
        fail(call, &e);
        return;
    }
    if (c.data.n) memcpy((char *)g->push->grad + g->at, c.data.p, c.data.n);
    g->at += c.data.n;
}

static void push_half_close(struct mr_rpc_call *call)
{
    struct gradient *g = mr_rpc_call_context(call);
    struct mr_error e = {0};
    int err = MR_OK;
    if (!g->push || g->at != g->bytes)
        err = mr_fail(&e, MR_EINVAL, "%" PRIu64 " bytes of data, not %" PRIu64, g->at, g->bytes);
    if (!err) {
        err = mr_shard_post(g->shard, g->push);
        if (!err) g->push = NULL; /* the mailbox owns the push from now on */
        if (err == MR_EAWAY) (void)mr_fail(&e, err, "the server of the shard is gone");
        if (err == MR_ELIMIT) (void)mr_fail(&e, err, "too many gradients wait for the shard");
    }
    if (err) fail(call, &e);
}

static void push_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    struct gradient *g = mr_rpc_call_context(call);
    if (g->push) mr_release(g->push->grad);
    mr_release(g->push);
    mr_shard_put(&g->shard);
    mr_release(g);
}

/* ---- hand-over --------------------------------------------------------------------------------*/

static void sink(void *ctx, struct mr_remote_push *p)
{
    struct mr_params_service *s = ctx;
    mr_monitor_enter(s->lock);
    if (p)
        mr_list_add_tail(&s->done, &p->node);
    else
        s->published = true;
    mr_monitor_leave(s->lock);
    mr_rpc_loop_wake(s->loop);
}

static void answer(struct mr_params_service *s, struct mr_remote_push *p)
{
    struct mr_rpc_call *call = mr_rpc_call_find(s->loop, (mr_rpc_call_id){p->call});
    if (call) {
        Millrace__V1__PushGradientResponse r = MILLRACE__V1__PUSH_GRADIENT_RESPONSE__INIT;
        r.version = p->version;
        r.dropped = p->outcome == MR_PUSH_STALE || p->outcome == MR_PUSH_LOST;
        (void)mr_rpc_call_reply_pb(call, &r.base);
    }
    mr_release(p->grad);
    mr_release(p);
}

static void wake(void *ctx)
{
    mr_rpc_loop_wake(((struct mr_params_service *)ctx)->loop);
}

static void turn(void *ctx)
{
    struct mr_params_service *s = ctx;
    mr_ring_service_turn();
    struct mr_list done;
    mr_list_init(&done);
    mr_monitor_enter(s->lock);
    bool look = s->published;
    s->published = false;
    for (struct mr_list *node; (node = mr_list_pop_head(&s->done));)
        mr_list_add_tail(&done, node);
    mr_monitor_leave(s->lock);
    for (struct mr_list *node; (node = mr_list_pop_head(&done));)
        answer(s, MR_LIST_ITEM(node, struct mr_remote_push, node));
    if (mr_list_is_empty(&s->waiting)) return;
    look |= mr_params_service_deadline(s) <= mr_clock_now();
    if (!look) return;
    MR_LIST_EACH(node, &s->waiting)
    {
        struct pull *p = MR_LIST_ITEM(node, struct pull, node);
        if (pull_try(p)) pull_forget(p);
    }
}

mr_time mr_params_service_deadline(const struct mr_params_service *s)
{
    mr_time at = MR_NEVER;
    MR_LIST_EACH(node, &s->waiting)
    {
        const struct pull *p = MR_LIST_ITEM(node, struct pull, node);
        at = MR_MIN(at, p->until);
    }
    return at;
}

static const struct mr_rpc_handler pull_handler = {.on_open = pull_open,
    .on_message = pull_message,
    .on_writable = pull_writable,
    .on_done = pull_done};
static const struct mr_rpc_handler push_handler = {.on_open = push_open,
    .on_message = push_message,
    .on_half_close = push_half_close,
    .on_done = push_done};
static const struct mr_rpc_method methods[] = {
    {.name = "Pull", .server_streaming = true, .handler = &pull_handler},
    {.name = "Push", .client_streaming = true, .handler = &push_handler},
};
static const struct mr_rpc_service parameters = {
    "millrace.v1.Parameters", methods, MR_ARRAY_LEN(methods)};

struct mr_params_service *mr_params_service_open(
    struct mr_rpc_server *server, struct mr_rpc_loop *loop)
{
    struct mr_params_service *s = mr_alloc(sizeof *s);
    s->loop = loop;
    s->lock = mr_monitor_new();
    mr_list_init(&s->waiting);
    mr_list_init(&s->done);
    mr_buf_init(&s->scratch, 4096);
    mr_rpc_server_add_service(server, &parameters, s);
    mr_rpc_server_add_service(server, &mr_ring_service, NULL);
    mr_rpc_loop_set_turn(loop, turn, s);
    mr_shard_set_sink(sink, s);
    mr_ring_set_waker(wake, s);
    return s;
}

void mr_params_service_close(struct mr_params_service **service)
{
    if (!*service) return;
    struct mr_params_service *s = MR_STEAL(*service);
    mr_shard_set_sink(NULL, NULL);
    mr_ring_set_waker(NULL, NULL);
    mr_rpc_loop_set_turn(s->loop, NULL, NULL);
    mr_assert(mr_list_is_empty(&s->waiting));
    for (struct mr_list *node; (node = mr_list_pop_head(&s->done));) {
        struct mr_remote_push *p = MR_LIST_ITEM(node, struct mr_remote_push, node);
        mr_release(p->grad);
        mr_release(p);
    }
    mr_monitor_free(&s->lock);
    mr_buf_fini(&s->scratch);
    mr_release(s);
}
