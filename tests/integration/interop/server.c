/* The interop test's server on lib/rpc: answers TestService of interop.proto until SIGTERM, then
 * drains. Prints `listening PORT` when it is ready. */
#include "base/alloc.h"
#include "host/clock.h"
#include "host/config/config.h"
#include "host/inbox.h"
#include "host/os/signal.h"
#include "interop.pb-c.h"
#include "rpc/loop.h"
#include "rpc/util/pb.h"
#include "rpc/server.h"
#include "rpc/status.h"

#include <stdio.h>

#define RESPONSE_BYTES_MAX ((int32_t)8 << 20)
#define ERROR_INFO "type.googleapis.com/google.rpc.ErrorInfo"

struct mr_str mr_interop_descriptors(void); /* the generated descriptors of interop.proto */

static const unsigned char zeros[RESPONSE_BYTES_MAX];

/* Totals of one call of StreamingInputCall. */
struct totals {
    int64_t bytes;
    int64_t messages;
};

static void echo_metadata(struct mr_rpc_call *call)
{
    struct mr_str v;
    if (mr_rpc_call_metadata(call, "x-interop-echo", &v))
        (void)mr_rpc_call_add_initial(call, "x-interop-echo", v);
    if (mr_rpc_call_metadata(call, "x-interop-echo-bin", &v))
        (void)mr_rpc_call_add_trailing(call, "x-interop-echo-bin", v);
}

/* Ends the call with the status that the client asked for, and returns true. Returns false if the
 * client asked for none. */
static bool finish_as_asked(struct mr_rpc_call *call, const Millrace__Interop__WantedStatus *wanted)
{
    if (!wanted || !wanted->code) return false;
    struct mr_str message = mr_str(wanted->message);
    struct mr_buf details;
    mr_buf_init(&details, 4096);
    if (wanted->details) {
        mr_rpc_details_begin(&details, wanted->code, message);
        mr_rpc_details_add(&details, MR_STR(ERROR_INFO), MR_STR("\x0a\x07INTEROP\x12\x08millrace"));
    }
    struct mr_rpc_status s = {wanted->code, message, mr_buf_str(&details)};
    (void)mr_rpc_call_finish(call, &s);
    mr_buf_fini(&details);
    return true;
}

static bool refuse_size(struct mr_rpc_call *call, int32_t bytes)
{
    if (bytes >= 0 && bytes <= RESPONSE_BYTES_MAX) return false;
    struct mr_error e;
    (void)mr_fail(
        &e, MR_EINVAL, "%d bytes: from 0 to %d may be asked for", bytes, RESPONSE_BYTES_MAX);
    (void)mr_rpc_call_fail(call, &e);
    return true;
}

static ProtobufCBinaryData payload_of(int32_t bytes)
{
    return (ProtobufCBinaryData){(size_t)bytes, (uint8_t *)(uintptr_t)zeros};
}

/* Unpacks a message into the arena, which the caller frees. On failure, fails the call and returns
 * NULL. */
static void *unpack(struct mr_rpc_call *call, struct mr_rpc_message *m, struct mr_pb_arena *a,
    const ProtobufCMessageDescriptor *type)
{
    struct mr_error e;
    mr_pb_arena_init(a, (size_t)64 << 20);
    void *request = mr_pb_unpack(type, mr_rpc_message_str(m), a, &e);
    if (!request) (void)mr_rpc_call_fail(call, &e);
    return request;
}

static void on_empty(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    (void)m;
    (void)mr_rpc_call_reply(call, MR_STR(""));
}

static void on_unary(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_pb_arena a;
    Millrace__Interop__SimpleRequest *r =
        unpack(call, m, &a, &millrace__interop__simple_request__descriptor);
    if (r && !refuse_size(call, r->response_bytes) && !finish_as_asked(call, r->status)) {
        Millrace__Interop__SimpleResponse reply = MILLRACE__INTEROP__SIMPLE_RESPONSE__INIT;
        reply.payload = payload_of(r->response_bytes);
        (void)mr_rpc_call_reply_pb(call, &reply.base);
    }
    mr_pb_arena_fini(&a);
}

/* Sends the responses that a request asks for. Returns true if the call has ended, with an error or
 * with the status that the request asks for; false if the call goes on. */
static bool send_responses(
    struct mr_rpc_call *call, const Millrace__Interop__StreamingOutputRequest *r)
{
    for (size_t i = 0; i < r->n_responses; i++) {
        if (refuse_size(call, r->responses[i]->bytes)) return true;
        Millrace__Interop__StreamingOutputResponse reply =
            MILLRACE__INTEROP__STREAMING_OUTPUT_RESPONSE__INIT;
        reply.payload = payload_of(r->responses[i]->bytes);
        (void)mr_rpc_call_send_pb(call, &reply.base);
    }
    return finish_as_asked(call, r->status);
}

static void on_output(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_pb_arena a;
    Millrace__Interop__StreamingOutputRequest *r =
        unpack(call, m, &a, &millrace__interop__streaming_output_request__descriptor);
    if (r && !send_responses(call, r)) (void)mr_rpc_call_finish_ok(call);
    mr_pb_arena_fini(&a);
}

static void on_duplex(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_pb_arena a;
    Millrace__Interop__StreamingOutputRequest *r =
        unpack(call, m, &a, &millrace__interop__streaming_output_request__descriptor);
    if (r) (void)send_responses(call, r);
    mr_pb_arena_fini(&a);
}

static void finish(struct mr_rpc_call *call)
{
    (void)mr_rpc_call_finish_ok(call);
}

static void on_input_open(struct mr_rpc_call *call)
{
    echo_metadata(call);
    mr_rpc_call_set_context(call, mr_alloc(sizeof(struct totals)));
}

static void on_input(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct totals *t = mr_rpc_call_context(call);
    struct mr_pb_arena a;
    Millrace__Interop__StreamingInputRequest *r =
        unpack(call, m, &a, &millrace__interop__streaming_input_request__descriptor);
    if (r) {
        t->bytes += (int64_t)r->payload.len;
        t->messages++;
    }
    mr_pb_arena_fini(&a);
}

static void on_input_end(struct mr_rpc_call *call)
{
    const struct totals *t = mr_rpc_call_context(call);
    Millrace__Interop__StreamingInputResponse reply =
        MILLRACE__INTEROP__STREAMING_INPUT_RESPONSE__INIT;
    reply.payload_bytes = t->bytes;
    reply.messages = t->messages;
    (void)mr_rpc_call_reply_pb(call, &reply.base);
}

static void on_input_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    mr_release(mr_rpc_call_context(call));
}

static const struct mr_rpc_handler empty = {.on_open = echo_metadata, .on_message = on_empty};
static const struct mr_rpc_handler unary = {.on_open = echo_metadata, .on_message = on_unary};
static const struct mr_rpc_handler output = {.on_open = echo_metadata, .on_message = on_output};
static const struct mr_rpc_handler duplex = {
    .on_open = echo_metadata, .on_message = on_duplex, .on_half_close = finish};
static const struct mr_rpc_handler input = {.on_open = on_input_open,
    .on_message = on_input,
    .on_half_close = on_input_end,
    .on_done = on_input_done};

static const struct mr_rpc_method methods[] = {
    {.name = "EmptyCall", .handler = &empty},
    {.name = "UnaryCall", .handler = &unary},
    {.name = "StreamingOutputCall", .server_streaming = true, .handler = &output},
    {.name = "StreamingInputCall", .client_streaming = true, .handler = &input},
    {.name = "FullDuplexCall",
        .client_streaming = true,
        .server_streaming = true,
        .handler = &duplex},
};
static const struct mr_rpc_service service = {
    "millrace.interop.TestService", methods, MR_ARRAY_LEN(methods)};

struct config {
    const char *listen;
};

static void push_signal(void *ctx, int number)
{
    (void)mr_inbox_push(ctx, &number);
}

int main(int argc, char **argv)
{
    static const struct mr_option options[] = {
        {.name = "listen",
            .type = MR_OPTION_TEXT,
            .value = "ADDR",
            .init = "127.0.0.1:0",
            .help = "where to listen: unix:/path or host:port",
            .at = offsetof(struct config, listen)},
    };
    static const struct mr_config_spec spec = {.program = "mr-interop-server",
        .summary = "serves TestService of interop.proto",
        .options = options,
        .options_count = MR_ARRAY_LEN(options)};
    struct config config = {0};
    mr_config_load(&spec, argc, argv, &config, NULL);
    mr_signal_block();

    struct mr_rpc_loop *loop = mr_rpc_loop_new();
    struct mr_inbox *inbox = mr_inbox_new(8, sizeof(int));
    mr_inbox_set_waiter(inbox, mr_rpc_loop_waiter(loop));
    struct mr_signals *signals = mr_signal_open(push_signal, inbox);
    struct mr_rpc_server *server = mr_rpc_server_new(loop, NULL);
    mr_rpc_server_add_service(server, &service, NULL);
    struct mr_error e;
    int port = 0;
    int err = mr_rpc_server_add_descriptors(server, mr_interop_descriptors(), &e);
    if (!err) err = mr_rpc_server_listen(server, config.listen, &port, &e);
    if (err) {
        (void)fprintf(stderr, "mr-interop-server: %s\n", e.text);
        return 1;
    }
    mr_rpc_server_start(server);
    (void)printf("listening %d\n", port);
    (void)fflush(stdout);
    int number = 0;
    while (!mr_inbox_wait(inbox, MR_NEVER, &number, 1))
        continue;
    mr_inbox_clear_waiter(inbox);
    mr_rpc_server_close(&server, MR_SECOND);
    mr_signal_close(&signals);
    mr_inbox_free(&inbox);
    mr_rpc_loop_free(&loop);
    return 0;
}
