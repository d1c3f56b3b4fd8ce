/* The operator queue.close: the last task of a graph that feeds training. A closed queue takes no
 * more items; its items can still be taken. Closing twice changes nothing, so the task may run
 * twice. */
#include "train/queue/close.h"

#include "base/alloc.h"
#include "millrace/v1/queues.pb-c.h"
#include "ops/op.h"
#include "train/feed/rpc.h"
#include "train/member/env.h"

#define CALL_TIMEOUT (5 * MR_SECOND)
#define RETRY (200 * MR_MS)

enum { ARG_QUEUE, ARG_AFTER, ARG_TRAINER };

static bool is_cancelled(void *ctx)
{
    struct mr_op_call *call = ctx;
    return call->does->is_cancelled(call);
}

static int close_it(
    struct mr_op_call *call, struct mr_role_link *link, char *queue, struct mr_error *e)
{
    const struct mr_stop stop = {is_cancelled, call};
    Millrace__V1__CloseQueueRequest q = MILLRACE__V1__CLOSE_QUEUE_REQUEST__INIT;
    q.queue = queue;
    for (;;) {
        int err = mr_role_call(
            link, "/millrace.v1.Queues/Close", &q.base, CALL_TIMEOUT, stop, NULL, NULL, NULL, e);
        if (!err || !mr_role_may_retry(err)) return err;
        if (call->does->wait(call, RETRY)) return MR_ECANCELED;
    }
}

static int close_run(struct mr_op_call *call)
{
    const struct mr_arg *a = call->args;
    const char *trainer = mr_role_env()->trainer;
    MR_AUTO(mr_free_ptr) char *given = NULL;
    MR_AUTO(mr_free_ptr) char *queue = mr_format("%.*s", MR_STR_ARG(a[ARG_QUEUE].bytes));
    if (a[ARG_TRAINER].type == MR_ARG_TEXT)
        trainer = given = mr_format("%.*s", MR_STR_ARG(a[ARG_TRAINER].bytes));
    if (!trainer)
        return call->does->fail(call, MR_EINVAL,
            "no trainer is known: give mr-worker --trainer, or this operator \"trainer\"");
    struct mr_error e;
    int err = mr_role_trainer_check(trainer, &e);
    if (err) return call->does->fail(call, err, "%s", e.text);
    struct mr_role_link *link = mr_role_link_open(trainer, mr_role_credential_for(trainer));
    err = close_it(call, link, queue, &e);
    mr_role_link_close(&link);
    if (err) return call->does->fail(call, err, "queue \"%s\": %s", queue, e.text);
    return call->does->return_nil(call);
}

static const struct mr_op_param params[] = {
    {"queue", MR_TAKES_TEXT, NULL, "Name of the queue."},
    {"after", MR_TAKES_ANY, "null",
        "Results of queue.put, as a list: the queue is closed after these puts."},
    {"trainer", MR_TAKES_NIL | MR_TAKES_TEXT, "null",
        "Address of the trainer; null: the worker's --trainer."},
};

const struct mr_op_desc mr_queue_close_op = {.abi = MR_OP_ABI,
    .flags = MR_OP_MAY_BLOCK,
    .name = "queue.close",
    .summary = "Closes a queue: a session that takes from the queue ends when the queue is empty.",
    .result = "null",
    .params = params,
    .params_count = MR_ARRAY_LEN(params),
    .cost_ns = 1000000,
    .run = close_run};
