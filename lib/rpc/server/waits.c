/* millrace.v1.Waits: decodes EndWaitsRequest (field 1: waiter) and calls the server's function. */
#include "rpc/server/waits.h"

#include "base/protowire.h"

#define WAITER_BYTES_MAX 128

static void on_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    const struct mr_rpc_waits *waits = mr_rpc_call_context(call);
    struct mr_protowire_reader reader = mr_protowire_read(mr_rpc_message_str(m));
    struct mr_protowire_field f;
    struct mr_str waiter = mr_str_of("", 0);
    while (!mr_protowire_next(&reader, &f))
        if (f.number == 1 && f.type == MR_PROTOWIRE_BYTES) waiter = f.bytes;
    if (!waiter.n || waiter.n > WAITER_BYTES_MAX) {
        struct mr_error e;
        (void)mr_fail(&e, MR_EINVAL, "waiter: expected 1 to %d bytes", WAITER_BYTES_MAX);
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    waits->end(waits->ctx, waiter);
    (void)mr_rpc_call_reply(call, mr_str_of("", 0));
}

static const struct mr_rpc_handler handler = {.on_message = on_message};
static const struct mr_rpc_method methods[] = {{.name = "End", .handler = &handler}};
static const struct mr_rpc_service service = {
    .name = "millrace.v1.Waits", .methods = methods, .methods_count = MR_ARRAY_LEN(methods)};

void mr_rpc_server_add_waits(struct mr_rpc_server *server, struct mr_rpc_waits *waits)
{
    mr_rpc_server_add_service(server, &service, waits);
}

bool mr_rpc_waits_of(const struct mr_rpc_call *call, struct mr_str waiter)
{
    struct mr_str of_call;
    return mr_rpc_call_metadata(call, MR_RPC_WAITER, &of_call) && mr_str_eq(of_call, waiter);
}
