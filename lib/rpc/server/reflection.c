/* grpc.reflection.v1 and v1alpha, which have the same messages under two names. The contract is
 * proto/grpc/reflection/v1/reflection.proto. A request for an unknown name is answered by an error
 * message inside the stream; the stream goes on. */
#include "rpc/server/reflection_answer.h"
#include "rpc/server/internal.h"

static void info_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    const struct mr_rpc_server *s = mr_rpc_call_server(call);
    struct mr_str services[MR_RPC_SERVICES_MAX + 1];
    size_t count = 0;
    /* Begins at 1, because health[0] is the server as a whole. */
    for (uint32_t i = 1; i < s->health_count; i++)
        services[count++] = mr_str(s->health[i].service);
    struct mr_buf out;
    mr_buf_init(&out, MR_MESSAGE_BYTES_MAX);
    int err = mr_reflection_answer(&s->descriptors, services, count, mr_rpc_message_str(m), &out);
    if (!err) err = mr_rpc_call_send(call, mr_buf_str(&out));
    mr_buf_fini(&out);
    if (!err) return;
    struct mr_error e;
    (void)mr_fail(&e, err,
        err == MR_EFORMAT ? "malformed ServerReflectionRequest" : "the answer is too large");
    (void)mr_rpc_call_fail(call, &e);
}

static void info_half_close(struct mr_rpc_call *call)
{
    (void)mr_rpc_call_finish_ok(call);
}

static const struct mr_rpc_handler info = {
    .on_message = info_message, .on_half_close = info_half_close};

static const struct mr_rpc_method methods[] = {
    {.name = "ServerReflectionInfo",
        .client_streaming = true,
        .server_streaming = true,
        .handler = &info},
};

const struct mr_rpc_service mr_rpc_reflection_service = {
    "grpc.reflection.v1.ServerReflection", methods, MR_ARRAY_LEN(methods)};
const struct mr_rpc_service mr_rpc_reflection_alpha_service = {
    "grpc.reflection.v1alpha.ServerReflection", methods, MR_ARRAY_LEN(methods)};
