/* The life of one call, on either side: which batches are on the completion queue, and what may be
 * sent next. server.c and client.c make calls. call_state.c has the states of a call and their
 * moves.
 *
 *   made ──▶ … messages … ──▶ over ──▶ on_done, freed
 *
 * gRPC reports the end of a call by MR_RPC_BATCH_CLOSE: RECV_CLOSE on the server, RECV_STATUS on
 * the client. This batch is started before all others. The call is freed when none of its batches
 * is left on the queue. Only the functions that handle events of the completion queue free a call,
 * after the callbacks. So a callback may do anything to its call. */
#include "rpc/core.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <grpc/support/alloc.h>

#define QUEUE_GROWTH 16

/* ---- the table of calls -------------------------------------------------------------------- */

static uint32_t slot_take(struct mr_rpc_loop *loop)
{
    if (loop->slots_free == UINT32_MAX) {
        uint32_t old = loop->slots_count;
        uint32_t count = old ? old * 2 : 64;
        mr_assert(count > old);
        loop->slots = mr_grow(loop->slots, old * sizeof *loop->slots, count * sizeof *loop->slots);
        for (uint32_t i = count; i > old; i--) {
            loop->slots[i - 1].generation = 1; /* starts at 1, so that no id is 0 */
            loop->slots[i - 1].next_free = loop->slots_free;
            loop->slots_free = i - 1;
        }
        loop->slots_count = count;
    }
    uint32_t slot = loop->slots_free;
    loop->slots_free = loop->slots[slot].next_free;
    return slot;
}

static void slot_give(struct mr_rpc_loop *loop, uint32_t slot)
{
    struct mr_rpc_slot *s = &loop->slots[slot];
    s->call = NULL;
    s->generation = s->generation == UINT32_MAX ? 1 : s->generation + 1;
    s->next_free = loop->slots_free;
    loop->slots_free = slot;
}

/* ---- traffic -------------------------------------------------------------------------------- */

static _Atomic uint64_t bytes_sent, bytes_received;

struct mr_rpc_traffic mr_rpc_traffic(void)
{
    return (struct mr_rpc_traffic){.sent = atomic_load_explicit(&bytes_sent, memory_order_relaxed),
        .received = atomic_load_explicit(&bytes_received, memory_order_relaxed)};
}

static void count_received(grpc_byte_buffer *b)
{
    atomic_fetch_add_explicit(&bytes_received, grpc_byte_buffer_length(b), memory_order_relaxed);
}

/* ---- the send queue ------------------------------------------------------------------------ */

static void queue_add(struct mr_rpc_queue *q, grpc_byte_buffer *b, size_t bytes)
{
    if (q->count == q->room) {
        uint32_t room = q->room ? q->room * 2 : QUEUE_GROWTH;
        grpc_byte_buffer **items = mr_alloc_array(room, sizeof *items);
        for (uint32_t i = 0; i < q->count; i++)
            items[i] = q->items[(q->head + i) % q->room];
        mr_release(q->items);
        *q = (struct mr_rpc_queue){items, 0, q->count, room, q->bytes};
    }
    q->items[(q->head + q->count) % q->room] = b;
    q->count++;
    q->bytes += bytes;
    atomic_fetch_add_explicit(&bytes_sent, bytes, memory_order_relaxed);
}

static grpc_byte_buffer *queue_pop(struct mr_rpc_queue *q)
{
    mr_assert(q->count);
    grpc_byte_buffer *b = q->items[q->head];
    q->head = (q->head + 1) % q->room;
    q->count--;
    q->bytes -= grpc_byte_buffer_length(b);
    return b;
}

static void queue_clear(struct mr_rpc_queue *q)
{
    while (q->count)
        grpc_byte_buffer_destroy(queue_pop(q));
}

static void outgoing_clear(struct mr_rpc_outgoing *o)
{
    for (size_t i = 0; i < o->count; i++) {
        grpc_slice_unref(o->items[i].key);
        grpc_slice_unref(o->items[i].value);
    }
    mr_release(o->items);
    *o = (struct mr_rpc_outgoing){0};
}

int mr_rpc_outgoing_add(struct mr_rpc_outgoing *o, const char *name, struct mr_str value)
{
    if (o->count >= MR_RPC_METADATA_MAX) return MR_ELIMIT;
    grpc_slice key = grpc_slice_from_copied_string(name);
    grpc_slice v = grpc_slice_from_copied_buffer(value.p, value.n);
    bool legal = grpc_header_key_is_legal(key) &&
                 (grpc_is_binary_header(key) || grpc_header_nonbin_value_is_legal(v));
    if (!legal) {
        grpc_slice_unref(key);
        grpc_slice_unref(v);
        return MR_EINVAL;
    }
    size_t bytes = sizeof *o->items;
    o->items = mr_grow(o->items, o->count * bytes, (o->count + 1) * bytes);
    o->items[o->count].key = key;
    o->items[o->count].value = v;
    o->count++;
    return MR_OK;
}

/* ---- birth and end -------------------------------------------------------------------------- */

static const struct mr_rpc_handler no_handler;

static void call_free(struct mr_rpc_call *call)
{
    struct mr_rpc_loop *loop = call->loop;
    if (call->on_freed) call->on_freed(call);
    slot_give(loop, (uint32_t)call->id.v);
    loop->calls_count--;
    mr_list_remove(&call->dirty_node);
    mr_list_remove(&call->owed_node);
    mr_list_remove(&call->owner_node);
    grpc_call_unref(call->grpc);
    grpc_slice_unref(call->path);
    grpc_slice_unref(call->status_text);
    grpc_metadata_array_destroy(&call->metadata_in);
    grpc_metadata_array_destroy(&call->trailing_in);
    outgoing_clear(&call->initial_out);
    outgoing_clear(&call->trailing_out);
    if (call->received) grpc_byte_buffer_destroy(call->received);
    queue_clear(&call->queue);
    mr_release(call->queue.items);
    if (call->peer) gpr_free(call->peer);
    mr_rpc_channel_put(&call->channel);
    mr_release(call);
}

static struct mr_rpc_status outcome(const struct mr_rpc_call *call)
{
    struct mr_rpc_status s = {0};
    if (call->server) {
        bool answered = call->state.sending == MR_RPC_ANSWERED && !call->cancelled;
        s.code = answered ? GRPC_STATUS_OK : GRPC_STATUS_CANCELLED;
        if (!answered) s.message = MR_STR("the call was cancelled");
        return s;
    }
    s.code = (int)call->status;
    s.message =
        mr_str_of(GRPC_SLICE_START_PTR(call->status_text), GRPC_SLICE_LENGTH(call->status_text));
    (void)mr_rpc_call_metadata(call, "grpc-status-details-bin", &s.details);
    return s;
}

void mr_rpc_call_end_if_over(struct mr_rpc_call *call)
{
    if (call->batches) return;
    mr_assert(mr_rpc_state_is_over(&call->state));
    struct mr_rpc_status status = outcome(call);
    if (call->handler->on_done) call->handler->on_done(call, &status);
    call_free(call);
}

void mr_rpc_call_batch(
    struct mr_rpc_call *call, const grpc_op *ops, size_t ops_count, enum mr_rpc_batch batch)
{
    mr_assert(!mr_rpc_call_has_batch(call, batch));
    call->batches |= 1u << batch;
    grpc_call_error err =
        grpc_call_start_batch(call->grpc, ops, ops_count, &call->tags[batch], NULL);
    mr_assert(err == GRPC_CALL_OK);
}

struct mr_rpc_call *mr_rpc_call_returned(struct mr_rpc_tag *tag, enum mr_rpc_batch batch)
{
    struct mr_rpc_call *call = MR_CONTAINER_OF(tag - batch, struct mr_rpc_call, tags);
    mr_assert(mr_rpc_call_has_batch(call, batch));
    call->batches &= ~(1u << batch);
    return call;
}

/* ---- receiving ------------------------------------------------------------------------------ */

void mr_rpc_call_pump(struct mr_rpc_call *call)
{
    if (call->state.receiving != MR_RPC_READING) return;
    if (mr_rpc_call_has_batch(call, MR_RPC_BATCH_RECEIVE)) return;
    if (!mr_rpc_state_may_tell(&call->state)) return;
    if (!call->auto_read && !call->read_wanted) return;
    call->read_wanted = false;
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
    op.data.recv_message.recv_message = &call->received;
    mr_rpc_call_batch(call, &op, 1, MR_RPC_BATCH_RECEIVE);
}

void mr_rpc_call_deliver(struct mr_rpc_call *call)
{
    struct mr_rpc_message m = {.bytes = MR_STEAL(call->received)};
    count_received(m.bytes);
    mr_rpc_receiving_move(&call->state, MR_RPC_DELIVERING);
    if (call->handler->on_message) call->handler->on_message(call, &m);
    mr_rpc_message_reset(&m);
}

static bool takes_one_request(const struct mr_rpc_call *call)
{
    return call->server && !call->method->client_streaming;
}

static void half_closed(struct mr_rpc_call *call)
{
    mr_rpc_receiving_move(&call->state, MR_RPC_PEER_DONE);
    if (!call->server || !mr_rpc_state_may_tell(&call->state)) return;
    if (call->handler->on_half_close) call->handler->on_half_close(call);
}

/* Handles the end of the peer's messages: the peer has closed its side. A call whose method takes
 * one message comes here only if the peer has sent none, and is refused. After the message of such
 * a call, received_message has called on_half_close. */
static void received_end(struct mr_rpc_call *call)
{
    static const struct mr_rpc_status none = {GRPC_STATUS_UNIMPLEMENTED,
        MR_STR_INIT("the method takes exactly one message, none came"), {0}};
    if (!takes_one_request(call) || !mr_rpc_state_may_tell(&call->state)) {
        half_closed(call);
        return;
    }
    mr_rpc_receiving_move(&call->state, MR_RPC_PEER_DONE);
    (void)mr_rpc_call_finish(call, &none);
}

static void received_message(struct mr_rpc_call *call)
{
    bool is_told = mr_rpc_state_may_tell(&call->state);
    if (is_told) {
        mr_rpc_call_deliver(call);
    } else {
        grpc_byte_buffer_destroy(call->received);
        call->received = NULL;
    }
    if (takes_one_request(call))
        half_closed(call);
    else if (is_told)
        mr_rpc_receiving_move(&call->state, MR_RPC_READING);
}

static void receive_done(struct mr_rpc_tag *tag, bool ok)
{
    struct mr_rpc_call *call = mr_rpc_call_returned(tag, MR_RPC_BATCH_RECEIVE);
    if (ok && call->received)
        received_message(call);
    else if (ok && !grpc_call_failed_before_recv_message(call->grpc))
        received_end(call);
    else
        /* The call was broken off, so on_half_close must not be called. */
        mr_rpc_receiving_move(&call->state, MR_RPC_PEER_DONE);
    if (!call->loop->turn_is_young) {
        mr_rpc_call_pump(call);
    } else if (!mr_list_is_linked(&call->owed_node)) {
        mr_list_add_tail(&call->loop->owed, &call->owed_node);
        call->has_waited = false;
    }
    mr_rpc_call_end_if_over(call);
}

/* ---- sending -------------------------------------------------------------------------------- */

void mr_rpc_call_mark(struct mr_rpc_call *call)
{
    if (mr_rpc_call_has_batch(call, MR_RPC_BATCH_SEND)) return;
    if (mr_list_is_linked(&call->dirty_node)) return;
    mr_list_add_tail(&call->loop->dirty, &call->dirty_node);
}

static grpc_op initial_op(struct mr_rpc_call *call)
{
    grpc_op op = {.op = GRPC_OP_SEND_INITIAL_METADATA, .flags = call->initial_flags};
    op.data.send_initial_metadata.count = call->initial_out.count;
    op.data.send_initial_metadata.metadata = call->initial_out.items;
    call->initial_sent = true;
    return op;
}

static grpc_op status_op(struct mr_rpc_call *call)
{
    grpc_op op = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
    op.data.send_status_from_server.status = call->status;
    op.data.send_status_from_server.status_details = &call->status_text;
    op.data.send_status_from_server.trailing_metadata_count = call->trailing_out.count;
    op.data.send_status_from_server.trailing_metadata = call->trailing_out.items;
    mr_rpc_sending_move(&call->state, MR_RPC_FINISHED);
    return op;
}

/* Sends one batch: initial metadata if it is not sent, one message if one is queued, and after the
 * last message the end of our side. gRPC allows one such batch at a time; the rest waits for
 * send_done. GRPC_WRITE_BUFFER_HINT promises gRPC another message soon. The hint must not stand
 * beside initial metadata: such a batch of a server never completes. */
void mr_rpc_call_flush(struct mr_rpc_call *call)
{
    if (mr_rpc_call_has_batch(call, MR_RPC_BATCH_SEND)) return;
    if (mr_rpc_state_is_over(&call->state)) return;
    grpc_op ops[3];
    size_t n = 0;
    bool has_message = call->queue.count > 0;
    bool starts = has_message || !call->server || call->state.sending == MR_RPC_FINISHING;
    if (!call->initial_sent && starts) ops[n++] = initial_op(call);
    grpc_byte_buffer *message = NULL;
    if (has_message) {
        message = queue_pop(&call->queue);
        uint32_t hint = call->queue.count && !n ? GRPC_WRITE_BUFFER_HINT : 0;
        ops[n] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE, .flags = hint};
        ops[n++].data.send_message.send_message = message;
    }
    if (!call->queue.count && call->state.sending == MR_RPC_HALF_CLOSING) {
        ops[n++] = (grpc_op){.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
        mr_rpc_sending_move(&call->state, MR_RPC_HALF_CLOSED);
    }
    if (!call->queue.count && call->state.sending == MR_RPC_FINISHING) ops[n++] = status_op(call);
    if (n) mr_rpc_call_batch(call, ops, n, MR_RPC_BATCH_SEND);
    if (message) grpc_byte_buffer_destroy(message); /* the batch holds references to the slices */
}

static void send_done(struct mr_rpc_tag *tag, bool ok)
{
    struct mr_rpc_call *call = mr_rpc_call_returned(tag, MR_RPC_BATCH_SEND);
    if (!ok) queue_clear(&call->queue); /* the status of the call will give the reason */
    if (ok && call->state.sending == MR_RPC_FINISHED)
        mr_rpc_sending_move(&call->state, MR_RPC_ANSWERED);
    if (ok) mr_rpc_call_flush(call);
    bool low = call->queue.bytes < MR_RPC_QUEUE_BYTES_HIGH / 2 &&
               call->queue.count < MR_RPC_QUEUE_COUNT_HIGH / 2;
    if (call->was_full && low) {
        call->was_full = false;
        bool may_send = call->state.life == MR_RPC_LIVE && call->state.sending == MR_RPC_SENDING;
        if (may_send && call->handler->on_writable) call->handler->on_writable(call);
    }
    mr_rpc_call_end_if_over(call);
}

/* Checks that a message of `bytes` bytes can be queued. */
static int check_send(const struct mr_rpc_call *call, size_t bytes)
{
    if (mr_rpc_state_is_over(&call->state)) return MR_ECANCELED;
    if (call->state.sending != MR_RPC_SENDING) return MR_ESTATE;
    if (bytes > MR_MESSAGE_BYTES_MAX) return MR_ETOOBIG;
    if (call->queue.count >= MR_RPC_QUEUE_COUNT_MAX) return MR_ELIMIT;
    if (call->queue.bytes + bytes > MR_RPC_QUEUE_BYTES_MAX) return MR_ELIMIT;
    return MR_OK;
}

int mr_rpc_call_send_parts(
    struct mr_rpc_call *call, const struct mr_rpc_part *parts, size_t parts_count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < parts_count; i++)
        bytes += parts[i].bytes.n;
    int err = check_send(call, bytes);
    if (err) {
        for (size_t i = 0; i < parts_count; i++)
            if (parts[i].release) parts[i].release(parts[i].ctx);
        return err;
    }
    queue_add(&call->queue, mr_rpc_bytes_of(parts, parts_count), bytes);
    if (!mr_rpc_call_is_writable(call)) call->was_full = true;
    mr_rpc_call_mark(call);
    return MR_OK;
}

int mr_rpc_call_send(struct mr_rpc_call *call, struct mr_str bytes)
{
    struct mr_rpc_part part = {.bytes = bytes};
    return mr_rpc_call_send_parts(call, &part, 1);
}

bool mr_rpc_call_is_writable(const struct mr_rpc_call *call)
{
    return !mr_rpc_state_is_over(&call->state) && call->queue.bytes < MR_RPC_QUEUE_BYTES_HIGH &&
           call->queue.count < MR_RPC_QUEUE_COUNT_HIGH;
}

size_t mr_rpc_call_queued_bytes(const struct mr_rpc_call *call)
{
    return call->queue.bytes;
}

bool mr_rpc_call_has_room(struct mr_rpc_call *call, size_t bytes_max)
{
    if (mr_rpc_call_is_writable(call) && call->queue.bytes <= bytes_max) return true;
    call->was_full = true;
    return false;
}

int mr_rpc_call_half_close(struct mr_rpc_call *call)
{
    mr_assert(!call->server);
    if (mr_rpc_state_is_over(&call->state)) return MR_ECANCELED;
    if (call->state.sending != MR_RPC_SENDING) return MR_ESTATE;
    mr_rpc_sending_move(&call->state, MR_RPC_HALF_CLOSING);
    mr_rpc_call_mark(call);
    return MR_OK;
}

void mr_rpc_call_drop_queue(struct mr_rpc_call *call)
{
    queue_clear(&call->queue);
}

void mr_rpc_call_cancel(struct mr_rpc_call *call)
{
    if (mr_rpc_state_is_over(&call->state)) return;
    mr_rpc_life_move(&call->state, MR_RPC_MUTED);
    queue_clear(&call->queue);
    (void)grpc_call_cancel(call->grpc, NULL);
}

struct mr_rpc_call *mr_rpc_call_new(struct mr_rpc_loop *loop, grpc_call *grpc)
{
    struct mr_rpc_call *call = mr_alloc(sizeof *call);
    call->loop = loop;
    call->grpc = grpc;
    call->handler = &no_handler;
    uint32_t slot = slot_take(loop);
    loop->slots[slot].call = call;
    call->id.v = (uint64_t)loop->slots[slot].generation << 32 | slot;
    loop->calls_count++;
    mr_list_init(&call->dirty_node);
    mr_list_init(&call->owed_node);
    mr_list_init(&call->owner_node);
    call->tags[MR_RPC_BATCH_RECEIVE].done = receive_done;
    call->tags[MR_RPC_BATCH_SEND].done = send_done;
    call->path = grpc_empty_slice();
    call->status_text = grpc_empty_slice();
    call->deadline = MR_NEVER;
    call->auto_read = true;
    grpc_metadata_array_init(&call->metadata_in);
    grpc_metadata_array_init(&call->trailing_in);
    return call;
}
