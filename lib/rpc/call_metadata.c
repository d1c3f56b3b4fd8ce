/* Functions that read a call's metadata, peer, deadline and context, and that set how the call
 * reads messages. */
#include "rpc/core.h"

#include "base/assert.h"

mr_rpc_call_id mr_rpc_call_id_of(const struct mr_rpc_call *call)
{
    return call->id;
}

struct mr_rpc_server *mr_rpc_call_server(const struct mr_rpc_call *call)
{
    return call->server;
}

void mr_rpc_call_set_context(struct mr_rpc_call *call, void *context)
{
    call->context = context;
}

void *mr_rpc_call_context(const struct mr_rpc_call *call)
{
    return call->context;
}

struct mr_str mr_rpc_call_method(const struct mr_rpc_call *call)
{
    return mr_str_of(GRPC_SLICE_START_PTR(call->path), GRPC_SLICE_LENGTH(call->path));
}

mr_time mr_rpc_call_deadline(const struct mr_rpc_call *call)
{
    return call->deadline;
}

struct mr_str mr_rpc_call_peer(struct mr_rpc_call *call)
{
    if (!call->peer) call->peer = grpc_call_get_peer(call->grpc);
    if (strncmp(call->peer, "fd:", 3) == 0)
        /* The connection came from our own listener (server/unix_listener). */
        return MR_STR("unix:");
    return mr_str(call->peer);
}

static bool find(const grpc_metadata_array *a, struct mr_str name, struct mr_str *value)
{
    for (size_t i = 0; i < a->count; i++) {
        const grpc_metadata *m = &a->metadata[i];
        if (!mr_str_eq(name, mr_str_of(GRPC_SLICE_START_PTR(m->key), GRPC_SLICE_LENGTH(m->key))))
            continue;
        *value = mr_str_of(GRPC_SLICE_START_PTR(m->value), GRPC_SLICE_LENGTH(m->value));
        return true;
    }
    return false;
}

bool mr_rpc_call_metadata(const struct mr_rpc_call *call, const char *name, struct mr_str *value)
{
    return find(&call->metadata_in, mr_str(name), value) ||
           find(&call->trailing_in, mr_str(name), value);
}

void mr_rpc_call_set_auto_read(struct mr_rpc_call *call, bool on)
{
    call->auto_read = on;
    mr_rpc_call_pump(call);
}

void mr_rpc_call_read(struct mr_rpc_call *call)
{
    call->read_wanted = true;
    mr_rpc_call_pump(call);
}

void mr_rpc_call_defer_read(struct mr_rpc_call *call)
{
    call->defers_read = true;
}
