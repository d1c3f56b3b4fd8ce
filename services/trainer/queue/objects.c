/* Objects of items. The name queue/QUEUE/ITEM keeps an object in its store from before the item is
 * put until Redis has said that no item needs the object. If the put fails, the name is removed. A
 * name is left behind only if the trainer dies in between, or if Redis never answers a put. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "proto/methods.h"
#include "rpc/status.h"
#include "services/trainer/queue/internal.h"

#include <millrace/v1/objects.pb-c.h>
#include <stdio.h>

#define STORE_TIMEOUT (5 * MR_SECOND)
#define RELEASE_AFTER (100 * MR_MS)
/* pause before the next attempt to remove names, after Redis or the store failed */
#define RELEASE_AGAIN (2 * MR_SECOND)
#define MESSAGE_BYTES_MAX 4096

static void call_store(struct mr_queues *q, enum mr_method_id method, const ProtobufCMessage *m,
    mr_rpc_on_reply fn, void *ctx)
{
    struct mr_buf b;
    mr_buf_init(&b, MESSAGE_BYTES_MAX);
    mr_pb_pack(m, &b);
    const struct mr_rpc_call_options options = {.timeout = STORE_TIMEOUT, .one_reply = true};
    (void)mr_rpc_unary(
        q->trainer->store, mr_proto_method(method)->path, mr_buf_str(&b), &options, fn, ctx);
    mr_buf_fini(&b);
}

static char *name_of(const struct mr_queue_op *op)
{
    return mr_format("queue/%s/%s", op->queue, op->item_id);
}

static void name_object(struct mr_queue_op *op, bool replace, mr_rpc_on_reply fn, void *ctx)
{
    Millrace__V1__NameRequest r = MILLRACE__V1__NAME_REQUEST__INIT;
    r.name = name_of(op);
    r.object = op->value;
    r.replace = replace;
    call_store(op->queues, MR_METHOD_OBJECTS_NAME, &r.base, fn, ctx);
    mr_release(r.name);
}

static void note_failure(
    void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    (void)ctx;
    (void)reply;
    if (status->code && status->code != mr_err_grpc(MR_ENOENT))
        mr_log(MR_WARN, "object.name_failed", "code=%d what=\"%.*s\"", status->code,
            MR_STR_ARG(status->message));
}

static void on_held(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct mr_queue_op *op = ctx;
    struct mr_error e;
    (void)reply;
    struct mr_rpc_call *call = mr_queue_op_call(op);
    int err = mr_rpc_status_error(status, &e);
    op->is_held = !err;
    if (!err || err == MR_EEXIST) { /* the name exists already: the item may have been put before */
        mr_queue_op_begin(op);
        return;
    }
    if (call) (void)mr_rpc_call_fail(call, &e);
    mr_queue_op_end(&op);
}

void mr_queue_object_hold(struct mr_queue_op *op)
{
    struct mr_rpc_call *call = mr_queue_op_call(op);
    if (op->queues->trainer->store) {
        name_object(op, false, on_held, op);
        return;
    }
    if (call)
        mr_trainer_fail(call, MR_ESTATE,
            "object: this trainer knows no object store (--store), so queues take values only");
    mr_queue_op_end(&op);
}

static void unname(const struct mr_queue_op *op)
{
    Millrace__V1__UnnameRequest r = MILLRACE__V1__UNNAME_REQUEST__INIT;
    r.name = name_of(op);
    call_store(op->queues, MR_METHOD_OBJECTS_UNNAME, &r.base, note_failure, NULL);
    mr_release(r.name);
}

static void on_named(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct mr_queue_op *op = ctx;
    note_failure(NULL, status, reply);
    mr_queue_reply(op);
    mr_queue_op_end(&op);
}

bool mr_queue_object_put(struct mr_queue_op *op, int err)
{
    if (!op->is_object) return false;
    /* the name existed before this request, left by an attempt that failed: it is set again */
    if (!err && !op->is_held) {
        bool waits = mr_queue_op_call(op) != NULL;
        name_object(op, true, waits ? on_named : note_failure, waits ? op : NULL);
        return waits;
    }
    bool is_live = !err || (err == MR_EEXIST && op->answer->is_live);
    if (!is_live && op->is_held) unname(op);
    op->is_held = false;
    return false;
}

/* True: another waiting request puts the same item, because the caller repeated a call that broke;
 * from now on that request owns the name. False: no other request needs the name. */
static bool is_passed_on(const struct mr_queue_op *op)
{
    if (!op->line) return false;
    MR_LIST_EACH(node, &op->line->ops[0])
    {
        struct mr_queue_op *other = MR_LIST_ITEM(node, struct mr_queue_op, place);
        if (other == op || !other->is_object || strcmp(other->item_id, op->item_id) != 0 ||
            strcmp(other->value, op->value) != 0)
            continue;
        other->is_held = true;
        return true;
    }
    return false;
}

void mr_queue_object_drop(struct mr_queue_op *op)
{
    /* a request in doubt may have put the item, which then needs the name */
    if (!op->is_held || op->is_in_doubt) return;
    if (!op->queues->trainer->store) return; /* the process is ending */
    if (!is_passed_on(op)) unname(op);
    op->is_held = false;
}

/* ---- lost objects -----------------------------------------------------------------------------*/

struct look {
    struct mr_queue_op *op;
    size_t at;
};

static void set_aside(struct mr_queue_op *op, size_t at)
{
    const struct mr_queue_item *item = &op->answer->items[at];
    char *receipt = mr_format("%.*s-%.*s", MR_STR_ARG(item->lease), MR_STR_ARG(item->id));
    struct mr_str text = mr_str(receipt);
    mr_counter_add(op->queues->lost, 1);
    (void)mr_queue_nack(op->queues->trainer->redis, mr_str(op->queue), &text, 1, true,
        /* if Redis is away, the lease will expire */
        mr_str(op->lost[at]), mr_queue_ignore, NULL);
    mr_release(receipt);
}

static void all_looked_at(struct mr_queue_op *op)
{
    size_t count = op->answer->count, lost = 0;
    for (size_t i = 0; i < count; i++) {
        if (!op->lost[i]) continue;
        set_aside(op, i);
        lost++;
    }
    mr_queue_object_release(op->queues);
    if (lost < count || !mr_queue_op_call(op)) {
        mr_queue_reply(op);
        mr_queue_op_end(&op);
        return;
    }
    for (size_t i = 0; i < count; i++)
        mr_release(op->lost[i]);
    mr_release(op->lost);
    op->lost = NULL;
    mr_queue_answer_free(&op->answer);
    mr_queue_op_begin(op); /* all taken items are lost, so the request takes the next ones */
}

static void on_looked(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct look look = *(struct look *)ctx;
    struct mr_queue_op *op = look.op;
    mr_release(ctx);
    (void)reply;
    int code = status->code;
    bool is_lost = code == mr_err_grpc(MR_ENOENT) || code == mr_err_grpc(MR_ELOST);
    if (is_lost)
        op->lost[look.at] =
            mr_format("object %.*s is lost: %.*s", MR_STR_ARG(op->answer->items[look.at].value),
                (int)MR_MIN(status->message.n, 300u), status->message.p);
    if (--op->checking == 0) all_looked_at(op);
}

bool mr_queue_object_check(struct mr_queue_op *op)
{
    const struct mr_queue_answer *a = op->answer;
    if (!op->queues->trainer->store) return false;
    size_t objects = 0;
    for (size_t i = 0; i < a->count; i++)
        objects += a->items[i].is_object;
    if (!objects) return false;
    op->lost = mr_alloc_array(a->count, sizeof *op->lost);
    op->checking = objects;
    for (size_t i = 0; i < a->count; i++) {
        if (!a->items[i].is_object) continue;
        struct look *look = mr_alloc(sizeof *look);
        *look = (struct look){op, i};
        Millrace__V1__StatRequest r = MILLRACE__V1__STAT_REQUEST__INIT;
        r.id = mr_format("%.*s", MR_STR_ARG(a->items[i].value));
        call_store(op->queues, MR_METHOD_OBJECTS_STAT, &r.base, on_looked, look);
        mr_release(r.id);
    }
    return true;
}

/* ---- names that no item needs -----------------------------------------------------------------*/

struct release {
    struct mr_queues *queues;
    struct mr_queue_answer *answer;
    char *name;
};

static void on_unnamed(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct release *r = ctx;
    struct mr_queues *q = r->queues;
    (void)reply;
    bool is_gone = !status->code || status->code == mr_err_grpc(MR_ENOENT);
    if (is_gone) (void)mr_queue_forget(q->trainer->redis, mr_str(r->name), mr_queue_ignore, NULL);
    mr_assert(q->releasing > 0);
    q->releasing--;
    mr_duration after = is_gone ? RELEASE_AFTER : RELEASE_AGAIN;
    if (!q->releasing && q->release_at) q->release_at = mr_time_after(mr_clock_now(), after);
    mr_release(r->name);
    mr_release(r);
}

static void run_release(void *p)
{
    struct release *all = p;
    struct mr_queues *q = all->queues;
    q->releasing--;
    if (all->answer->err == MR_EAWAY) q->release_at = mr_time_after(mr_clock_now(), RELEASE_AGAIN);
    if (all->answer->more) q->release_at = 0;
    for (size_t i = 0; q->trainer->store && i < all->answer->count && !q->is_draining; i++) {
        struct release *r = mr_alloc(sizeof *r);
        r->queues = q;
        r->name = mr_format("%.*s", MR_STR_ARG(all->answer->names[i]));
        Millrace__V1__UnnameRequest request = MILLRACE__V1__UNNAME_REQUEST__INIT;
        request.name = r->name;
        q->releasing++;
        call_store(q, MR_METHOD_OBJECTS_UNNAME, &request.base, on_unnamed, r);
    }
    mr_queue_answer_free(&all->answer);
    mr_release(all);
}

static void on_released(void *ctx, struct mr_queue_answer **answer)
{
    struct release *all = ctx;
    all->answer = MR_STEAL(*answer);
    mr_trainer_post(all->queues->trainer, run_release, all);
}

void mr_queue_object_release(struct mr_queues *q)
{
    if (q->release_at == MR_NEVER && !q->releasing)
        q->release_at = mr_time_after(mr_clock_now(), RELEASE_AFTER);
}

mr_time mr_queue_object_turn(struct mr_queues *q, mr_time now)
{
    if (q->is_draining) return MR_NEVER;
    if (q->releasing) return MR_NEVER; /* Redis's or the store's answer causes the next turn */
    if (q->release_at > now) return q->release_at;
    q->release_at = MR_NEVER;
    struct release *all = mr_alloc(sizeof *all);
    all->queues = q;
    q->releasing = 1;
    if (mr_queue_released(q->trainer->redis, on_released, all)) {
        q->releasing = 0;
        q->release_at = mr_time_after(now, RELEASE_AGAIN);
        mr_release(all);
    }
    return q->release_at;
}
