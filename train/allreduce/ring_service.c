/* The service Collective: passes a stream of blocks from one rank to the inbox of the next rank. */
#include "train/allreduce/ring_service.h"

#include "base/alloc.h"
#include "millrace/v1/parameters.pb-c.h"
#include "rpc/util/pb.h"
#include "train/allreduce/ring_inbox.h"

struct exchange {
    struct mr_list node; /* member of `exchanges`; used by the network thread only */
    struct mr_rpc_call *call;
    struct mr_ring_inbox *inbox; /* NULL: no message has come yet */
    bool has_brought;            /* a block has come, and not only a probe */
    bool has_ended;              /* the call was answered with its reply or error */
};

static struct mr_list exchanges;

/* Tells the inbox that the stream of the previous rank has ended, with or without an error. */
static void over(struct exchange *x)
{
    x->has_ended = true;
    if (x->inbox && x->has_brought) mr_ring_inbox_break(x->inbox);
}

static void end(struct exchange *x, const struct mr_error *e)
{
    if (x->has_ended) return;
    over(x);
    (void)mr_rpc_call_fail(x->call, e);
}

static void on_open(struct mr_rpc_call *call)
{
    struct exchange *x = mr_alloc(sizeof *x);
    x->call = call;
    if (!exchanges.next) mr_list_init(&exchanges);
    mr_list_add_tail(&exchanges, &x->node);
    mr_rpc_call_set_context(call, x);
}

static void on_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct exchange *x = mr_rpc_call_context(call);
    struct mr_error e = {0};
    struct mr_ring_message h;
    if (x->has_ended) return;
    int err = mr_ring_message_read(mr_rpc_message_str(m), &h, &e);
    if (!err && !x->inbox) {
        x->inbox = mr_ring_inbox_get(h.session, h.rank_from, h.generation, &e);
        err = e.code;
    }
    bool brings = !err && h.round != MR_RING_PROBE;
    if (brings) err = mr_ring_inbox_add(x->inbox, &h, &e);
    x->has_brought |= brings;
    if (err) end(x, &e);
}

static void on_half_close(struct mr_rpc_call *call)
{
    struct exchange *x = mr_rpc_call_context(call);
    if (x->has_ended) return;
    over(x);
    Millrace__V1__RingResponse r = MILLRACE__V1__RING_RESPONSE__INIT;
    (void)mr_rpc_call_reply_pb(call, &r.base);
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    struct exchange *x = mr_rpc_call_context(call);
    if (!x->has_ended) over(x); /* the connection broke */
    mr_list_remove(&x->node);
    mr_ring_inbox_put(&x->inbox);
    mr_release(x);
}

void mr_ring_service_turn(void)
{
    if (!exchanges.next) return;
    MR_LIST_EACH(node, &exchanges)
    {
        struct exchange *x = MR_LIST_ITEM(node, struct exchange, node);
        if (!x->inbox || x->has_ended) continue;
        mr_monitor_enter(x->inbox->lock);
        bool closed = x->inbox->is_closed;
        mr_monitor_leave(x->inbox->lock);
        struct mr_error e;
        if (closed && mr_fail(&e, MR_EAWAY, "the rank closed")) end(x, &e);
    }
}

static const struct mr_rpc_handler handler = {.on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_done = on_done};
static const struct mr_rpc_method methods[] = {
    {.name = "Exchange", .client_streaming = true, .handler = &handler},
};
const struct mr_rpc_service mr_ring_service = {
    "millrace.v1.Collective", methods, MR_ARRAY_LEN(methods)};
