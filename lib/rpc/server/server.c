/* The gRPC server: its methods, arriving calls, health states and shutdown. call.c has the life of
 * a call after its arrival; address.c has the addresses. */
#include "rpc/server/internal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "host/clock.h"

#include <grpc/grpc_security.h>
#include <stdlib.h>

/* when the server stops: limit of the time to send the final statuses of its calls */
#define FAREWELL (MR_SECOND / 4)

struct mr_rpc_accept { /* one grpc_server_request_call that waits for a call */
    struct mr_rpc_tag tag;
    struct mr_rpc_server *server;
    grpc_call *call;
    grpc_call_details details;
    grpc_metadata_array metadata;
};

/* Converts a time to milliseconds, as an integer argument of gRPC. */
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

static grpc_server *make_server(const struct mr_rpc_server_options *o, size_t message_bytes_max)
{
    mr_duration keepalive = o->keepalive ? o->keepalive : 20 * MR_SECOND;
    mr_duration ping_min = o->ping_min ? o->ping_min : MR_SECOND;
    grpc_arg args[] = {
        int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)message_bytes_max),
        int_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, (int)message_bytes_max),
        int_arg(GRPC_ARG_MAX_METADATA_SIZE, 65536),
        int_arg(GRPC_ARG_MAX_CONCURRENT_STREAMS, 4096),
        int_arg(GRPC_ARG_ALLOW_REUSEPORT, 0),
        int_arg(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 20000),
        int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, arg_ms(keepalive)),
        int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000),
        int_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
        int_arg(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, arg_ms(ping_min)),
        int_arg(GRPC_ARG_ENABLE_CHANNELZ, 0),
        int_arg(GRPC_ARG_HTTP2_BDP_PROBE, !o->fixed_window),
        int_arg(
            GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, o->fixed_window ? MR_RPC_WINDOW_BYTES : 65535),
    };
    grpc_channel_args all = {MR_ARRAY_LEN(args), args};
    return grpc_server_create(&all, NULL);
}

static void shutdown_done(struct mr_rpc_tag *tag, bool ok)
{
    (void)ok;
    MR_CONTAINER_OF(tag, struct mr_rpc_server, shutdown_tag)->shut_down = true;
}

static void add_entry(struct mr_rpc_server *s, const struct mr_rpc_service *service,
    const struct mr_rpc_method *method, void *context, bool ours)
{
    size_t bytes = sizeof *s->entries;
    s->entries = mr_grow(s->entries, s->entries_count * bytes, (s->entries_count + 1) * bytes);
    struct mr_rpc_entry *entry = &s->entries[s->entries_count++];
    entry->path = mr_format("/%s/%s", service->name, method->name);
    entry->method = method;
    entry->context = context;
    entry->ours = ours;
}

static void add_service(
    struct mr_rpc_server *s, const struct mr_rpc_service *service, void *context, bool ours)
{
    mr_assert(!s->started);
    mr_assert(s->health_count <= MR_RPC_SERVICES_MAX);
    s->health[s->health_count].service = mr_copy_text(service->name);
    s->health[s->health_count++].serving = true;
    for (size_t i = 0; i < service->methods_count; i++)
        add_entry(s, service, &service->methods[i], context, ours);
}

struct mr_rpc_server *mr_rpc_server_new(
    struct mr_rpc_loop *loop, const struct mr_rpc_server_options *options)
{
    static const struct mr_rpc_server_options none;
    const struct mr_rpc_server_options *o = options ? options : &none;
    struct mr_rpc_server *s = mr_alloc(sizeof *s);
    s->loop = loop;
    s->message_bytes_max = o->message_bytes_max ? o->message_bytes_max : MR_MESSAGE_BYTES_MAX;
    mr_assert(s->message_bytes_max <= INT32_MAX);
    s->auth = o->auth;
    s->auth_ctx = o->auth_ctx;
    s->grpc = make_server(o, s->message_bytes_max);
    s->credentials = grpc_insecure_server_credentials_create();
    s->tls = o->tls;
    s->rules = o->peers;
    grpc_server_register_completion_queue(s->grpc, loop->cq, NULL);
    s->shutdown_tag.done = shutdown_done;
    mr_list_init(&s->calls);
    mr_list_init(&s->watches);
    loop->owners_count++;
    s->health[s->health_count].service = mr_copy_text("");
    s->health[s->health_count++].serving = true;
    add_service(s, &mr_rpc_health_service, NULL, true);
    add_service(s, &mr_rpc_reflection_service, NULL, true);
    add_service(s, &mr_rpc_reflection_alpha_service, NULL, true);
    mr_descriptors_init(&s->descriptors);
    int err = mr_descriptors_add(&s->descriptors, mr_rpc_own_descriptors(), NULL);
    mr_assert(!err);
    return s;
}

void mr_rpc_server_add_service(
    struct mr_rpc_server *server, const struct mr_rpc_service *service, void *context)
{
    add_service(server, service, context, false);
}

int mr_rpc_server_add_descriptors(
    struct mr_rpc_server *server, struct mr_str descriptor_set, struct mr_error *e)
{
    return mr_descriptors_add(&server->descriptors, descriptor_set, e);
}

/* ---- arriving calls ------------------------------------------------------------------------- */

static const struct mr_rpc_entry *find_entry(const struct mr_rpc_server *s, struct mr_str path)
{
    uint32_t low = 0, high = s->entries_count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        int c = mr_str_cmp(mr_str(s->entries[mid].path), path);
        if (c == 0) return &s->entries[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

static void close_done(struct mr_rpc_tag *tag, bool ok)
{
    (void)ok;
    struct mr_rpc_call *call = mr_rpc_call_returned(tag, MR_RPC_BATCH_CLOSE);
    bool was_live = !mr_rpc_state_is_over(&call->state);
    bool tell = call->cancelled && was_live && call->state.sending == MR_RPC_SENDING;
    if (was_live) mr_rpc_life_move(&call->state, MR_RPC_MUTED);
    mr_rpc_call_drop_queue(call);
    if (tell && call->handler->on_cancelled) call->handler->on_cancelled(call);
    mr_rpc_call_end_if_over(call);
}

static void call_freed(struct mr_rpc_call *call)
{
    if (!call->ours) call->server->calls_count--;
}

static void refuse_unknown(struct mr_rpc_call *call)
{
    struct mr_error e;
    struct mr_str path = mr_rpc_call_method(call);
    (void)mr_fail(&e, MR_EUNIMPL, "unknown method \"%.*s\"", MR_STR_ARG(path));
    (void)mr_rpc_call_fail(call, &e);
}

static void begin(struct mr_rpc_call *call, const struct mr_rpc_entry *entry)
{
    struct mr_rpc_server *s = call->server;
    if (s->draining && !entry->ours) {
        struct mr_error e;
        (void)mr_fail(&e, MR_EAWAY, "the server is shutting down");
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    if (s->auth && !entry->method->without_token) {
        struct mr_error e = {0};
        if (s->auth(s->auth_ctx, call, &e)) {
            (void)mr_rpc_call_fail(call, &e);
            return;
        }
    }
    call->handler = entry->method->handler;
    mr_rpc_receiving_move(&call->state, MR_RPC_READING);
    if (call->handler->on_open) call->handler->on_open(call);
    mr_rpc_call_pump(call);
}

static void arm(struct mr_rpc_accept *a);

static void arrived(struct mr_rpc_tag *tag, bool ok)
{
    struct mr_rpc_accept *a = MR_CONTAINER_OF(tag, struct mr_rpc_accept, tag);
    struct mr_rpc_server *s = a->server;
    if (!ok) { /* false: the server is shutting down */
        grpc_call_details_destroy(&a->details);
        grpc_metadata_array_destroy(&a->metadata);
        s->accepts_count--;
        return;
    }
    struct mr_rpc_call *call = mr_rpc_call_new(s->loop, a->call);
    call->server = s;
    call->on_freed = call_freed;
    call->path = grpc_slice_ref(a->details.method);
    call->deadline = mr_rpc_time(a->details.deadline);
    call->metadata_in = a->metadata;
    call->tags[MR_RPC_BATCH_CLOSE].done = close_done;
    mr_list_add_tail(&s->calls, &call->owner_node);
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    op.data.recv_close_on_server.cancelled = &call->cancelled;
    mr_rpc_call_batch(call, &op, 1, MR_RPC_BATCH_CLOSE);
    grpc_call_details_destroy(&a->details);
    arm(a);

    const struct mr_rpc_entry *entry = find_entry(s, mr_rpc_call_method(call));
    call->ours = entry && entry->ours;
    if (!call->ours) s->calls_count++;
    if (!entry) {
        refuse_unknown(call);
        return;
    }
    call->method = entry->method;
    call->context = entry->context;
    call->auto_read = !entry->method->manual_read;
    begin(call, entry);
}

static void arm(struct mr_rpc_accept *a)
{
    struct mr_rpc_server *s = a->server;
    a->tag.done = arrived;
    grpc_call_details_init(&a->details);
    grpc_metadata_array_init(&a->metadata);
    grpc_call_error err = grpc_server_request_call(
        s->grpc, &a->call, &a->details, &a->metadata, s->loop->cq, s->loop->cq, &a->tag);
    mr_assert(err == GRPC_CALL_OK);
}

static int by_path(const void *a, const void *b)
{
    const struct mr_rpc_entry *x = a, *y = b;
    return strcmp(x->path, y->path);
}

void mr_rpc_server_start(struct mr_rpc_server *s)
{
    mr_assert(!s->started);
    s->started = true;
    qsort(s->entries, s->entries_count, sizeof *s->entries, by_path);
    grpc_server_start(s->grpc);
    s->accepts = mr_alloc_array(MR_RPC_ACCEPTS, sizeof *s->accepts);
    for (uint32_t i = 0; i < MR_RPC_ACCEPTS; i++) {
        s->accepts[i].server = s;
        s->accepts_count++;
        arm(&s->accepts[i]);
    }
    mr_rpc_server_start_unix_listeners(s);
}

/* ---- health and the end --------------------------------------------------------------------- */

void mr_rpc_server_set_serving(struct mr_rpc_server *s, const char *service, bool serving)
{
    for (uint32_t i = 0; i < s->health_count; i++)
        if (strcmp(s->health[i].service, service) == 0)
            s->health[i].serving = serving && !s->draining;
    mr_rpc_health_changed(s);
}

/* Begins the drain, but not gRPC's own shutdown, which would end new calls with CANCELLED. Callers
 * should get UNAVAILABLE and the reason, so mr_rpc_server_close starts gRPC's shutdown later. */
void mr_rpc_server_drain(struct mr_rpc_server *s)
{
    if (s->draining) return;
    s->draining = true;
    for (uint32_t i = 0; i < s->health_count; i++)
        s->health[i].serving = false;
    mr_rpc_health_changed(s);
    static const struct mr_rpc_status away = {
        GRPC_STATUS_UNAVAILABLE, MR_STR_INIT("the server is shutting down"), {0}};
    MR_LIST_EACH(node, &s->calls)
    {
        struct mr_rpc_call *call = MR_LIST_ITEM(node, struct mr_rpc_call, owner_node);
        if (call->ours) (void)mr_rpc_call_finish(call, &away);
    }
}

bool mr_rpc_server_is_drained(const struct mr_rpc_server *s)
{
    return s->draining && mr_list_is_empty(&s->calls);
}

size_t mr_rpc_server_calls(const struct mr_rpc_server *s)
{
    return s->calls_count;
}

static void cancel_all(struct mr_rpc_server *s)
{
    grpc_server_cancel_all_calls(s->grpc);
}

/* Ends all calls with UNAVAILABLE, so that callers may try again; gRPC alone would end them with
 * CANCELLED. */
static void end_all(struct mr_rpc_server *s)
{
    static const struct mr_rpc_status away = {
        GRPC_STATUS_UNAVAILABLE, MR_STR_INIT("the server has stopped; try again"), {0}};
    MR_LIST_EACH(node, &s->calls)
    {
        struct mr_rpc_call *call = MR_LIST_ITEM(node, struct mr_rpc_call, owner_node);
        if (!mr_rpc_call_finish(call, &away)) mr_rpc_call_drop_queue(call);
    }
    mr_time until = mr_time_after(mr_clock_now(), FAREWELL);
    while (!mr_rpc_server_is_drained(s) && mr_clock_now() < until)
        (void)mr_rpc_loop_run(s->loop, until);
}

void mr_rpc_server_close(struct mr_rpc_server **server, mr_duration grace)
{
    if (!*server) return;
    struct mr_rpc_server *s = MR_STEAL(*server);
    mr_rpc_server_drain(s);
    mr_time until = mr_time_after(mr_clock_now(), grace);
    while (!mr_rpc_server_is_drained(s) && mr_clock_now() < until)
        (void)mr_rpc_loop_run(s->loop, until);
    end_all(s);
    mr_rpc_server_close_unix_listeners(s);
    grpc_server_shutdown_and_notify(s->grpc, s->loop->cq, &s->shutdown_tag);
    cancel_all(s);
    while (!s->shut_down || s->accepts_count || !mr_rpc_server_is_drained(s))
        (void)mr_rpc_loop_run(s->loop, MR_NEVER);
    grpc_server_destroy(s->grpc);
    grpc_server_credentials_release(s->credentials);
    for (uint32_t i = 0; i < s->entries_count; i++)
        mr_release(s->entries[i].path);
    for (uint32_t i = 0; i < s->health_count; i++)
        mr_release(s->health[i].service);
    mr_descriptors_fini(&s->descriptors);
    mr_release(s->entries);
    mr_release(s->accepts);
    s->loop->owners_count--;
    mr_release(s);
}
