/* Channels, and how a client call begins and ends. */
#include "rpc/core.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"

#include <grpc/grpc_security.h>
#include <string.h>

#define AUTHORIZATION_BYTES_MAX 4096

struct mr_rpc_channel {
    struct mr_rpc_loop *loop;
    grpc_channel *grpc; /* NULL after the channel was closed */
    char *address;
    /* "Bearer …". NULL: the channel sends no token, or uses `credential`. */
    char *authorization;
    const struct mr_credential *credential; /* NULL: no credential */
    struct mr_rpc_tls *tls;                 /* NULL: no TLS */
    struct mr_list calls;
    uint32_t references; /* one reference of the owner, and one of each call */
};

static int arg_ms(mr_duration d)
{
    uint64_t ms = d / MR_MS;
    return d == MR_NEVER || ms > INT32_MAX ? INT32_MAX : (int)MR_MAX(ms, 1u);
}

static grpc_arg int_arg(const char *key, int value)
{
    grpc_arg a = {.type = GRPC_ARG_INTEGER, .key = mr_unconst(key)};
    a.value.integer = value;
    return a;
}

/* Returns gRPC's form of an address. gRPC reads the path of a socket as the path of a URI, so bytes
 * that are not allowed there are percent-encoded. A comma ends the path even when it is encoded;
 * unix_listener refuses such a path. */
static char *target_of(const char *address)
{
    static const char plain[] =
        "/-._~ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    if (strncmp(address, "unix:", 5) != 0) return mr_copy_text(address);
    static const char hex[] = "0123456789ABCDEF";
    char *target = mr_alloc(5 + 3 * strlen(address + 5) + 1), *at = target;
    memcpy(at, "unix:", 5);
    at += 5;
    for (const char *p = address + 5; *p; p++) {
        unsigned byte = (unsigned char)*p;
        if (strchr(plain, *p)) {
            *at++ = *p;
            continue;
        }
        *at++ = '%';
        *at++ = hex[byte >> 4];
        *at++ = hex[byte & 15];
    }
    *at = 0;
    return target;
}

static grpc_channel *make_channel(
    const char *address, const struct mr_rpc_channel_options *o, struct mr_rpc_tls *tls)
{
    bool is_unix = strncmp(address, "unix:", 5) == 0;
    mr_duration keepalive = o->keepalive ? o->keepalive : is_unix ? MR_NEVER : 10 * MR_SECOND;
    mr_duration backoff_max = o->backoff_max ? o->backoff_max : 2 * MR_SECOND;
    mr_duration backoff = MR_MIN(100 * MR_MS, backoff_max);
    size_t bytes_max = o->message_bytes_max ? o->message_bytes_max : MR_MESSAGE_BYTES_MAX;
    mr_assert(bytes_max <= INT32_MAX);
    grpc_arg args[] = {
        int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)bytes_max),
        int_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, (int)bytes_max),
        int_arg(GRPC_ARG_MAX_METADATA_SIZE, 65536),
        int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, arg_ms(keepalive)),
        int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000),
        int_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
        int_arg(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, arg_ms(backoff)),
        /* Despite its name, this option sets the least time that an attempt to connect gets. */
        int_arg(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, arg_ms(MR_MAX(backoff_max, MR_SECOND))),
        int_arg(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, arg_ms(backoff_max)),
        /* Channels do not share connections. */
        int_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
        /* gRPC does not repeat calls: the caller decides which calls may be repeated */
        int_arg(GRPC_ARG_ENABLE_RETRIES, 0),
        int_arg(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
        int_arg(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1),
        int_arg(GRPC_ARG_ENABLE_CHANNELZ, 0),
        /* Measuring the bandwidth of the link costs a ping and two timers for each message. On a
         * UNIX socket a large fixed window replaces the measurement. */
        int_arg(GRPC_ARG_HTTP2_BDP_PROBE, !is_unix),
        int_arg(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, is_unix ? MR_RPC_WINDOW_BYTES : 65535),
    };
    grpc_channel_args all = {MR_ARRAY_LEN(args), args};
    grpc_channel_credentials *credentials =
        tls ? mr_rpc_tls_channel_credentials(tls) : grpc_insecure_credentials_create();
    MR_AUTO(mr_free_ptr) char *target = target_of(address);
    grpc_channel *channel = grpc_channel_create(target, credentials, &all);
    grpc_channel_credentials_release(credentials);
    return channel;
}

struct mr_rpc_channel *mr_rpc_channel_open(
    struct mr_rpc_loop *loop, const char *address, const struct mr_rpc_channel_options *options)
{
    static const struct mr_rpc_channel_options none;
    const struct mr_rpc_channel_options *o = options ? options : &none;
    struct mr_rpc_channel *c = mr_alloc(sizeof *c);
    c->loop = loop;
    c->address = mr_copy_text(address);
    c->tls = mr_rpc_tls_for(o->tls, address);
    c->grpc = make_channel(address, o, c->tls);
    if (o->bearer) c->authorization = mr_format("Bearer %s", o->bearer);
    c->credential = o->credential;
    c->references = 1;
    mr_list_init(&c->calls);
    loop->owners_count++;
    return c;
}

void mr_rpc_channel_put(struct mr_rpc_channel **channel)
{
    if (!*channel) return;
    struct mr_rpc_channel *c = MR_STEAL(*channel);
    mr_assert(c->references);
    if (--c->references) return;
    mr_assert(!c->grpc);
    mr_release(c->address);
    mr_release(c->authorization);
    mr_release(c);
}

void mr_rpc_channel_close(struct mr_rpc_channel **channel)
{
    if (!*channel) return;
    struct mr_rpc_channel *c = *channel;
    MR_LIST_EACH(node, &c->calls)
    {
        mr_rpc_call_cancel(MR_LIST_ITEM(node, struct mr_rpc_call, owner_node));
    }
    c->loop->owners_count--;
    grpc_channel *grpc = MR_STEAL(c->grpc);
    grpc_channel_destroy(grpc);
    mr_rpc_channel_put(channel);
}

const char *mr_rpc_channel_address(const struct mr_rpc_channel *channel)
{
    return channel->address;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void open_done(struct mr_rpc_tag *tag, bool ok)
{
    struct mr_rpc_call *call = mr_rpc_call_returned(tag, MR_RPC_BATCH_OPEN);
    if (ok && !mr_rpc_state_is_over(&call->state)) {
        mr_rpc_receiving_move(&call->state, MR_RPC_READING);
        if (call->handler->on_open) call->handler->on_open(call);
        mr_rpc_call_pump(call);
    }
    mr_rpc_call_end_if_over(call);
}

/* Replaces the status text of a call whose connection failed because of TLS, or perhaps because of
 * TLS. The new text names the reason and the command-line options, such as --tls-ca. */
static void explain(struct mr_rpc_call *call)
{
    struct mr_error e;
    struct mr_str why =
        mr_str_of(GRPC_SLICE_START_PTR(call->status_text), GRPC_SLICE_LENGTH(call->status_text));
    const struct mr_rpc_channel *c = call->channel;
    if (!mr_rpc_tls_words(c->address, c->tls, why, &e)) return;
    grpc_slice_unref(call->status_text);
    call->status_text = grpc_slice_from_copied_string(e.text);
}

/* For a call with one_reply that ended well: calls on_open and on_message for the metadata and the
 * message, which came with the status. If no message came, sets the status to UNIMPLEMENTED. */
static void deliver_reply(struct mr_rpc_call *call)
{
    if (call->handler->on_open) call->handler->on_open(call);
    if (call->received) {
        mr_rpc_call_deliver(call);
        mr_rpc_receiving_move(&call->state, MR_RPC_PEER_DONE);
        return;
    }
    call->status = GRPC_STATUS_UNIMPLEMENTED;
    grpc_slice_unref(call->status_text);
    call->status_text =
        grpc_slice_from_static_string("the server sent no message where exactly one was due");
}

/* Ends a call whose status has come. For a call with one_reply, the metadata and the message have
 * come with the status. */
static void close_done(struct mr_rpc_tag *tag, bool ok)
{
    (void)ok;
    struct mr_rpc_call *call = mr_rpc_call_returned(tag, MR_RPC_BATCH_CLOSE);
    bool told = call->state.life != MR_RPC_MUTED && call->status == GRPC_STATUS_OK;
    if (call->one_reply && told) deliver_reply(call);
    if (call->status == GRPC_STATUS_UNAVAILABLE) explain(call);
    if (!mr_rpc_state_is_over(&call->state)) mr_rpc_life_move(&call->state, MR_RPC_OVER);
    mr_rpc_call_drop_queue(call);
    mr_rpc_call_end_if_over(call);
}

static void begin_receiving(struct mr_rpc_call *call)
{
    grpc_op ops[3] = {{.op = GRPC_OP_RECV_STATUS_ON_CLIENT}, {.op = GRPC_OP_RECV_INITIAL_METADATA},
        {.op = GRPC_OP_RECV_MESSAGE}};
    ops[0].data.recv_status_on_client.trailing_metadata = &call->trailing_in;
    ops[0].data.recv_status_on_client.status = &call->status;
    ops[0].data.recv_status_on_client.status_details = &call->status_text;
    ops[1].data.recv_initial_metadata.recv_initial_metadata = &call->metadata_in;
    ops[2].data.recv_message.recv_message = &call->received;
    call->tags[MR_RPC_BATCH_CLOSE].done = close_done;
    call->tags[MR_RPC_BATCH_OPEN].done = open_done;
    if (call->one_reply) {
        mr_rpc_call_batch(call, ops, 3, MR_RPC_BATCH_CLOSE);
        return;
    }
    mr_rpc_call_batch(call, &ops[0], 1, MR_RPC_BATCH_CLOSE);
    mr_rpc_call_batch(call, &ops[1], 1, MR_RPC_BATCH_OPEN);
}

static void add_authorization(struct mr_rpc_call *call)
{
    const struct mr_rpc_channel *c = call->channel;
    struct mr_buf text;
    if (c->authorization)
        (void)mr_rpc_outgoing_add(&call->initial_out, "authorization", mr_str(c->authorization));
    if (c->authorization || !c->credential) return;
    mr_buf_init(&text, AUTHORIZATION_BYTES_MAX);
    mr_credential_add(c->credential, &text);
    if (text.n) (void)mr_rpc_outgoing_add(&call->initial_out, "authorization", mr_buf_str(&text));
    mr_buf_fini(&text);
}

static void add_metadata(struct mr_rpc_call *call, const struct mr_rpc_call_options *o)
{
    add_authorization(call);
    for (size_t i = 0; i < o->metadata_count; i++) {
        int err =
            mr_rpc_outgoing_add(&call->initial_out, o->metadata[i].name, o->metadata[i].value);
        if (!err) continue;
        (void)grpc_call_cancel_with_status(
            call->grpc, GRPC_STATUS_INVALID_ARGUMENT, "bad or too much metadata to send", NULL);
    }
}

struct mr_rpc_call *mr_rpc_call_open(struct mr_rpc_channel *channel, const char *method,
    const struct mr_rpc_handler *handler, void *context, const struct mr_rpc_call_options *options)
{
    static const struct mr_rpc_call_options none;
    const struct mr_rpc_call_options *o = options ? options : &none;
    mr_assert(channel->grpc);
    gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (o->timeout && o->timeout != MR_NEVER)
        deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
            gpr_time_from_nanos((int64_t)MR_MIN(o->timeout, (mr_duration)INT64_MAX), GPR_TIMESPAN));
    grpc_slice path = grpc_slice_from_copied_string(method);
    grpc_call *grpc = grpc_channel_create_call(channel->grpc, NULL, GRPC_PROPAGATE_DEFAULTS,
        channel->loop->cq, path, NULL, deadline, NULL);
    struct mr_rpc_call *call = mr_rpc_call_new(channel->loop, grpc);
    channel->references++;
    call->channel = channel;
    mr_list_add_tail(&channel->calls, &call->owner_node);
    call->path = path;
    call->deadline = mr_rpc_time(deadline);
    call->handler = handler;
    call->context = context;
    call->auto_read = !o->manual_read;
    call->one_reply = o->one_reply;
    if (o->wait_for_ready)
        call->initial_flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY |
                              GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET;
    add_metadata(call, o);
    begin_receiving(call);
    mr_rpc_call_mark(call);
    return call;
}

/* ---- unary calls ---------------------------------------------------------------------------- */

struct unary {
    mr_rpc_on_reply on_reply;
    void *ctx;
    struct mr_rpc_message *reply;
};

static void unary_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct unary *u = mr_rpc_call_context(call);
    u->reply = mr_rpc_message_take(m);
}

static void unary_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct unary *u = mr_rpc_call_context(call);
    struct mr_rpc_message *reply = status->code == 0 ? u->reply : NULL;
    struct mr_rpc_message lent = {0};
    if (reply) {
        lent = *reply; /* if the callback takes the message, `lent` becomes empty */
        *reply = (struct mr_rpc_message){0};
    }
    u->on_reply(u->ctx, status, reply ? &lent : NULL);
    mr_rpc_message_reset(&lent);
    mr_rpc_message_free(&u->reply);
    mr_release(u);
}

mr_rpc_call_id mr_rpc_unary(struct mr_rpc_channel *channel, const char *method,
    struct mr_str request, const struct mr_rpc_call_options *options, mr_rpc_on_reply on_reply,
    void *ctx)
{
    static const struct mr_rpc_handler handler = {
        .on_message = unary_message, .on_done = unary_done};
    struct unary *u = mr_alloc(sizeof *u);
    u->on_reply = on_reply;
    u->ctx = ctx;
    struct mr_rpc_call_options o = {0};
    if (options) o = *options;
    o.one_reply = true;
    o.manual_read = false;
    struct mr_rpc_call *call = mr_rpc_call_open(channel, method, &handler, u, &o);
    mr_rpc_call_id id = mr_rpc_call_id_of(call);
    if (mr_rpc_call_send(call, request))
        (void)grpc_call_cancel_with_status(call->grpc, GRPC_STATUS_RESOURCE_EXHAUSTED,
            "the request is larger than one message may be", NULL);
    else
        (void)mr_rpc_call_half_close(call);
    return id;
}
