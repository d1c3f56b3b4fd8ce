/* The operator queue.put: puts a batch that a graph has computed into a queue that feeds training.
 * The id of the item is the id of the task, so a task that runs twice puts one item. The task
 * occupies no executor slot (MR_OP_LONG_RUNNING): it may wait for room in the queue while the roles
 * that take items need the slot. Only TURNS_MAX tasks of a process call the trainer at the same
 * time. */
#include "train/queue/put.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "millrace/v1/queues.pb-c.h"
#include "ops/arg.h"
#include "store/object/collection.h"
#include "store/arena/client_stop.h"
#include "store/object/value.h"
#include "train/feed/rpc.h"
#include "train/member/env.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

/* Time that the trainer may hold one call. The call is repeated while the queue is full. */
#define PUT_WAIT_S 0.5
#define CALL_TIMEOUT (5 * MR_SECOND)
#define ROOM_TIMEOUT (60 * MR_SECOND)
#define RETRY (50 * MR_MS)
#define TURNS_MAX 8 /* limit of puts that this process sends at the same time */
#define TURN_EVERY (25 * MR_MS)

enum { ARG_QUEUE, ARG_X, ARG_Y, ARG_TRAINER };

static atomic_uint turns;

static int turn_take(struct mr_op_call *call)
{
    for (;;) {
        if (atomic_fetch_add(&turns, 1) < TURNS_MAX) return MR_OK;
        atomic_fetch_sub(&turns, 1);
        int err = call->does->wait(call, TURN_EVERY);
        if (err) return err;
    }
}

static bool is_cancelled(void *ctx)
{
    struct mr_op_call *call = ctx;
    return call->does->is_cancelled(call);
}

/* Makes part `i` of the item, with its bytes inline, so that the item is one object. */
static int part_fill(const struct mr_arg *a, uint32_t i, struct mr_buf *b,
    struct mr_collection_part *out, struct mr_error *e)
{
    int err = mr_arg_pack(a, b, e);
    if (err) return err;
    *out = (struct mr_collection_part){.kind = MR_VALUE_PACK, .inline_pack = mr_buf_str(b)};
    if (a->type == MR_ARG_TENSOR) {
        out->kind = MR_VALUE_TENSOR;
        out->dtype = a->tensor->dtype;
    }
    out->nbytes = a->extent.n ? a->extent.n : mr_value_pack_size(b->n);
    out->start[0] = i;
    out->shape[0] = 1;
    return MR_OK;
}

static int pair_build(struct mr_store *store, struct mr_stop stop,
    const struct mr_collection_part *parts, struct mr_store_draft *draft, struct mr_error *e)
{
    const uint64_t shape[1] = {2};
    const struct mr_collection_spec s = {
        .kind = MR_VALUE_PACK, .ndim = 1, .shape = shape, .parts = parts, .count = 2};
    uint64_t bytes = mr_collection_bytes(&s);
    if (!bytes) return mr_fail(e, MR_ELIMIT, "x and y are too large for one item");
    int err = mr_store_create_or_stop(store, bytes, ROOM_TIMEOUT, stop, draft, e);
    if (!err) mr_collection_build(draft->p, &s);
    return err;
}

/* Stores x and y as one object, which this process holds. */
static int object_make(struct mr_op_call *call, mr_object_id *out, struct mr_error *e)
{
    const struct mr_role_env *env = mr_role_env();
    if (!env->store)
        return mr_fail(e, MR_ELOST, "this worker has no object store (--store) for the item");
    struct mr_buf x, y;
    struct mr_collection_part parts[2];
    struct mr_store_draft draft;
    mr_buf_init(&x, (size_t)1 << 30);
    mr_buf_init(&y, (size_t)1 << 30);
    int err = part_fill(&call->args[ARG_X], 0, &x, &parts[0], e);
    if (!err) err = part_fill(&call->args[ARG_Y], 1, &y, &parts[1], e);
    const struct mr_stop stop = {is_cancelled, call};
    if (!err) err = pair_build(env->store, stop, parts, &draft, e);
    mr_buf_fini(&x);
    mr_buf_fini(&y);
    if (err) return err;
    const struct mr_store_owner mine = {0};
    *out = draft.id;
    return mr_store_seal(env->store, &draft, &mine, NULL, e);
}

static int create(struct mr_role_link *link, char *queue, struct mr_stop stop, struct mr_error *e)
{
    Millrace__V1__CreateQueueRequest q = MILLRACE__V1__CREATE_QUEUE_REQUEST__INIT;
    q.queue = queue;
    return mr_role_call(
        link, "/millrace.v1.Queues/Create", &q.base, CALL_TIMEOUT, stop, NULL, NULL, NULL, e);
}

/* Puts the item. Waits until the queue has room or the task is cancelled. */
static int put(struct mr_op_call *call, struct mr_role_link *link, Millrace__V1__PutItemRequest *q,
    struct mr_error *e)
{
    const struct mr_stop stop = {is_cancelled, call};
    q->wait_s = PUT_WAIT_S;
    bool said = false;
    for (;;) {
        int err = mr_role_call(
            link, "/millrace.v1.Queues/Put", &q->base, CALL_TIMEOUT, stop, NULL, NULL, NULL, e);
        if (err == MR_ENOENT) {
            err = create(link, q->queue, stop, e);
            if (!err) continue;
        }
        if (!err || !mr_role_may_retry(err)) return err;
        if (err != MR_ELIMIT && !said)
            mr_log(MR_WARN, "queue.put_waits", "queue=\"%s\" item=%s why=\"%s\"", q->queue,
                q->item_id, e->text);
        said = said || err != MR_ELIMIT;
        if (call->does->wait(call, err == MR_ELIMIT ? MR_MS : RETRY)) return MR_ECANCELED;
    }
}

static int put_in_turn(struct mr_op_call *call)
{
    const struct mr_role_env *env = mr_role_env();
    const struct mr_arg *a = call->args;
    const char *trainer = env->trainer;
    MR_AUTO(mr_free_ptr) char *given = NULL;
    MR_AUTO(mr_free_ptr) char *queue = mr_format("%.*s", MR_STR_ARG(a[ARG_QUEUE].bytes));
    if (a[ARG_TRAINER].type == MR_ARG_TEXT)
        trainer = given = mr_format("%.*s", MR_STR_ARG(a[ARG_TRAINER].bytes));
    if (!trainer)
        return call->does->fail(call, MR_EINVAL,
            "no trainer is known: give mr-worker --trainer, or this operator \"trainer\"");
    struct mr_error e;
    mr_object_id object;
    int err = mr_role_trainer_check(trainer, &e);
    if (!err) err = object_make(call, &object, &e);
    if (err) return call->does->fail(call, err, "%s", e.text);
    char job[MR_JOB_ID_TEXT_MAX], id[MR_OBJECT_ID_TEXT_MAX], item[MR_JOB_ID_TEXT_MAX + 16];
    mr_job_id_format(call->task.job, job);
    mr_object_id_format(object, id);
    (void)snprintf(item, sizeof item, "%s/%u", job, call->task.index);
    Millrace__V1__PutItemRequest q = MILLRACE__V1__PUT_ITEM_REQUEST__INIT;
    q.queue = queue;
    q.item_id = item;
    q.object = id;
    struct mr_role_link *link = mr_role_link_open(trainer, mr_role_credential_for(trainer));
    err = put(call, link, &q, &e);
    mr_role_link_close(&link);
    /* after a success the queue holds the object; after a failure the object is not needed */
    mr_store_unhold(env->store, &object, 1, (struct mr_store_holder){.kind = MR_HOLD_CLIENT});
    if (err) return call->does->fail(call, err, "queue \"%s\": %s", queue, e.text);
    return call->does->return_text(call, mr_str(item));
}

static int put_run(struct mr_op_call *call)
{
    int err = turn_take(call);
    if (err) return err;
    err = put_in_turn(call);
    atomic_fetch_sub(&turns, 1);
    return err;
}

static const struct mr_op_param params[] = {
    {"queue", MR_TAKES_TEXT, NULL, "Name of the queue; created if it does not exist."},
    {"x", MR_TAKES_TENSOR, NULL, "Examples, one for each row."},
    {"y", MR_TAKES_TENSOR, NULL, "Labels of the examples, one for each row."},
    {"trainer", MR_TAKES_NIL | MR_TAKES_TEXT, "null",
        "Address of the trainer; null: the worker's --trainer."},
};

const struct mr_op_desc mr_queue_put_op = {.abi = MR_OP_ABI,
    .flags = MR_OP_LONG_RUNNING | MR_OP_MAY_BLOCK,
    .name = "queue.put",
    .summary = "Puts a batch into a queue that feeds training; waits while the queue is full.",
    .result = "the item's id",
    .params = params,
    .params_count = MR_ARRAY_LEN(params),
    .cost_ns = 1000000,
    .run = put_run};
