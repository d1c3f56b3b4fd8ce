/* grpc.health.v1: Check answers once; Watch sends the state and each change. The contract is
 * proto/grpc/health/v1/health.proto. */
#include "rpc/server/internal.h"

#include "base/alloc.h"
#include "base/protowire.h"

enum { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

#define NAME_BYTES_MAX 1024

struct watch {
    struct mr_list node;
    struct mr_rpc_call *call;
    char *service;
    int told; /* the last state that was sent to the caller; 0: none was sent */
};

static int state_of(const struct mr_rpc_server *s, struct mr_str service)
{
    for (uint32_t i = 0; i < s->health_count; i++)
        if (mr_str_eq(service, mr_str(s->health[i].service)))
            return s->health[i].serving ? SERVING : NOT_SERVING;
    return SERVICE_UNKNOWN;
}

/* Sets `*service` to field 1 of HealthCheckRequest. False: the bytes are malformed or the name is
 * too long, and the call was answered with an error. */
static bool read_service(struct mr_rpc_call *call, struct mr_rpc_message *m, struct mr_str *service)
{
    *service = mr_str_of("", 0);
    struct mr_error e;
    struct mr_protowire_reader r = mr_protowire_read(mr_rpc_message_str(m));
    struct mr_protowire_field f;
    int err = mr_protowire_next(&r, &f);
    for (; !err; err = mr_protowire_next(&r, &f))
        if (f.number == 1 && f.type == MR_PROTOWIRE_BYTES) *service = f.bytes;
    if (err == MR_ENOENT && service->n <= NAME_BYTES_MAX) return true;
    (void)mr_fail(&e, MR_EINVAL, "malformed HealthCheckRequest");
    (void)mr_rpc_call_fail(call, &e);
    return false;
}

static struct mr_str encode(int state, unsigned char out[2])
{
    out[0] = 1 << 3; /* field 1, varint */
    out[1] = (unsigned char)state;
    return mr_str_of(out, 2);
}

static void check_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_str service;
    if (!read_service(call, m, &service)) return;
    int state = state_of(mr_rpc_call_server(call), service);
    if (state == SERVICE_UNKNOWN) {
        struct mr_error e;
        (void)mr_fail(&e, MR_ENOENT, "unknown service \"%.*s\"", MR_STR_ARG(service));
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    unsigned char bytes[2];
    (void)mr_rpc_call_reply(call, encode(state, bytes));
}

static void tell(struct watch *w)
{
    int state = state_of(mr_rpc_call_server(w->call), mr_str(w->service));
    if (state == w->told) return;
    unsigned char bytes[2];
    if (!mr_rpc_call_send(w->call, encode(state, bytes))) w->told = state;
}

static void watch_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_str service;
    if (!read_service(call, m, &service)) return;
    struct watch *w = mr_alloc(sizeof *w);
    w->call = call;
    w->service = mr_alloc(service.n + 1);
    if (service.n) memcpy(w->service, service.p, service.n);
    mr_list_add_tail(&mr_rpc_call_server(call)->watches, &w->node);
    mr_rpc_call_set_context(call, w);
    tell(w);
}

static void watch_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    struct watch *w = mr_rpc_call_context(call);
    if (!w) return;
    mr_list_remove(&w->node);
    mr_release(w->service);
    mr_release(w);
}

void mr_rpc_health_changed(struct mr_rpc_server *server)
{
    MR_LIST_EACH(node, &server->watches)
    {
        tell(MR_LIST_ITEM(node, struct watch, node));
    }
}

static const struct mr_rpc_handler check = {.on_message = check_message};
static const struct mr_rpc_handler watch = {.on_message = watch_message, .on_done = watch_done};

static const struct mr_rpc_method methods[] = {
    {.name = "Check", .without_token = true, .handler = &check},
    {.name = "Watch", .server_streaming = true, .without_token = true, .handler = &watch},
};

const struct mr_rpc_service mr_rpc_health_service = {
    "grpc.health.v1.Health", methods, MR_ARRAY_LEN(methods)};
