/* Collective over gRPC: a stream of blocks into the inbox of the rank they are for. */
#include "services/worker/ring_service.h"

#include "base/alloc.h"
#include "millrace/v1/parameters.pb-c.h"
#include "rpc/pb.h"
#include "services/worker/ring_parts.h"

struct exchange {
    struct mr_list node; /* of all open ones; the network thread's */
    struct mr_rpc_call *call;
    struct mr_ring_inbox *inbox; /* NULL: no message yet */
    bool has_ended;              /* answered, well or not */
};

static struct mr_list exchanges;

static void end(struct exchange *x, const struct mr_error *e)
{
    if (x->has_ended) return;
    x->has_ended = true;
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
    int err = mr_ring_message_read(mr_rpc_message_str(m), &h, &e);
    if (!err && !x->inbox) {
        x->inbox = mr_ring_inbox_get(h.session, h.rank_from, h.generation, &e);
        err = e.code;
    }
    if (!err && h.round != MR_RING_PROBE) err = mr_ring_inbox_add(x->inbox, &h, &e);
    if (err) end(x, &e);
}

static void on_half_close(struct mr_rpc_call *call)
{
    struct exchange *x = mr_rpc_call_context(call);
    if (x->has_ended) return;
    x->has_ended = true;
    Millrace__V1__RingResponse r = MILLRACE__V1__RING_RESPONSE__INIT;
    (void)mr_rpc_call_reply_pb(call, &r.base);
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    struct exchange *x = mr_rpc_call_context(call);
    if (x->inbox && !x->has_ended) { /* it broke in the middle */
        mr_monitor_enter(x->inbox->lock);
        x->inbox->is_broken = true;
        mr_monitor_leave(x->inbox->lock);
    }
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
