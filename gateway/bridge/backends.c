/* Every object store answers requests for the objects of all stores, so requests go to one store
 * until this store fails. */
#include "gateway/bridge/backends.h"

#include "base/alloc.h"
#include "host/os/log.h"
#include "millrace/v1/cluster.pb-c.h"
#include "rpc/loop.h"
#include "rpc/util/pb.h"

#define ASK_TIMEOUT (2 * MR_SECOND)
#define INFO_BYTES_MAX ((size_t)4 << 20)

struct mr_backends {
    struct mr_rpc_loop *loop;
    struct mr_secret_file *secrets; /* NULL: the calls carry no secret */
    struct mr_rpc_channel *scheduler;
    struct mr_rpc_channel *trainer; /* NULL: the gateway has no trainer */
    struct mr_rpc_channel *stores[MR_BACKEND_STORES_MAX];
    size_t stores_count;
    struct mr_rpc_channel *workers[MR_BACKEND_WORKERS_MAX];
    size_t workers_count;
    size_t store; /* index of the store that requests go to */
    /* True: the options name no store, so the scheduler is asked for the stores' addresses. */
    bool asks;
    mr_rpc_call_id asking;
};

static struct mr_rpc_channel *open_channel(
    struct mr_backends *b, const char *address, enum mr_service_kind to)
{
    const struct mr_rpc_channel_options options = {
        .credential = mr_secret_file_credential(b->secrets, to)};
    return mr_rpc_channel_open(b->loop, address, &options);
}

static void add_store(struct mr_backends *b, const char *address)
{
    for (size_t i = 0; i < b->stores_count; i++)
        if (!strcmp(mr_rpc_channel_address(b->stores[i]), address)) return;
    if (b->stores_count == MR_BACKEND_STORES_MAX || !address[0]) return;
    b->stores[b->stores_count++] = open_channel(b, address, MR_SERVICE_OBJECTSTORE);
}

static bool is_named(const Millrace__V1__InfoResponse *info, const char *address)
{
    for (size_t i = 0; i < info->n_store; i++)
        if (!strcmp(info->store[i]->address, address)) return true;
    return false;
}

static void take_stores(struct mr_backends *b, const Millrace__V1__InfoResponse *info)
{
    for (size_t i = 0; i < b->stores_count;) {
        if (is_named(info, mr_rpc_channel_address(b->stores[i]))) {
            i++;
            continue;
        }
        mr_rpc_channel_close(&b->stores[i]);
        b->stores[i] = b->stores[--b->stores_count];
    }
    for (size_t i = 0; i < info->n_store; i++)
        add_store(b, info->store[i]->address);
    b->store = 0;
}

static void on_info(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct mr_backends *b = ctx;
    b->asking.v = 0;
    if (status->code || !reply) return;
    struct mr_pb_arena arena;
    mr_pb_arena_init(&arena, INFO_BYTES_MAX);
    const Millrace__V1__InfoResponse *info = mr_pb_unpack(
        &millrace__v1__info_response__descriptor, mr_rpc_message_str(reply), &arena, NULL);
    if (info) take_stores(b, info);
    mr_pb_arena_fini(&arena);
}

static void ask(struct mr_backends *b)
{
    if (!b->asks || b->asking.v) return;
    struct mr_rpc_call_options options = {.timeout = ASK_TIMEOUT, .one_reply = true};
    b->asking = mr_rpc_unary(b->scheduler, mr_proto_method(MR_METHOD_CLUSTER_INFO)->path,
        mr_str_of("", 0), &options, on_info, b);
}

struct mr_backends *mr_backends_new(struct mr_rpc_loop *loop, const char *scheduler,
    const char *trainer, const char *const *stores, size_t stores_count,
    struct mr_secret_file *secrets)
{
    struct mr_backends *b = mr_alloc(sizeof *b);
    b->loop = loop;
    b->secrets = secrets;
    b->scheduler = open_channel(b, scheduler, MR_SERVICE_SCHEDULER);
    if (trainer) b->trainer = open_channel(b, trainer, MR_SERVICE_TRAINER);
    b->asks = stores_count == 0;
    for (size_t i = 0; i < stores_count; i++)
        add_store(b, stores[i]);
    ask(b);
    return b;
}

struct mr_rpc_channel *mr_backends_worker(struct mr_backends *b, const char *address)
{
    for (size_t i = 0; i < b->workers_count; i++)
        if (!strcmp(mr_rpc_channel_address(b->workers[i]), address)) return b->workers[i];
    return NULL;
}

void mr_backends_set_workers(struct mr_backends *b, const char *const *addresses, size_t count)
{
    for (size_t i = 0; i < b->workers_count;) {
        const char *address = mr_rpc_channel_address(b->workers[i]);
        size_t at = 0;
        while (at < count && strcmp(addresses[at], address) != 0)
            at++;
        if (at < count) {
            i++;
            continue;
        }
        mr_rpc_channel_close(&b->workers[i]);
        b->workers[i] = b->workers[--b->workers_count];
    }
    for (size_t i = 0; i < count && b->workers_count < MR_BACKEND_WORKERS_MAX; i++)
        if (addresses[i][0] && !mr_backends_worker(b, addresses[i]))
            b->workers[b->workers_count++] = open_channel(b, addresses[i], MR_SERVICE_WORKER);
}

void mr_backends_free(struct mr_backends **backends)
{
    struct mr_backends *b = *backends;
    if (!b) return;
    for (size_t i = 0; i < b->stores_count; i++)
        mr_rpc_channel_close(&b->stores[i]);
    mr_backends_set_workers(b, NULL, 0);
    mr_rpc_channel_close(&b->trainer);
    mr_rpc_channel_close(&b->scheduler);
    /* The callback of the call `asking` uses `b`, so the loop runs until this call has ended. */
    while (b->asking.v)
        (void)mr_rpc_loop_run(b->loop, MR_NEVER);
    mr_release(b);
    *backends = NULL;
}

struct mr_rpc_channel *mr_backends_pick(struct mr_backends *b, enum mr_proto_backend backend)
{
    if (backend == MR_BACKEND_TRAINER) return b->trainer;
    if (backend != MR_BACKEND_OBJECTSTORE) return b->scheduler;
    if (!b->stores_count) ask(b);
    return b->stores_count ? b->stores[b->store % b->stores_count] : NULL;
}

struct mr_rpc_channel *mr_backends_store(struct mr_backends *b, uint32_t n)
{
    if (!b->stores_count) ask(b);
    return n < b->stores_count ? b->stores[n] : NULL;
}

size_t mr_backends_stores_count(const struct mr_backends *b)
{
    return b->stores_count;
}

void mr_backends_away(struct mr_backends *b, enum mr_proto_backend backend)
{
    if (backend != MR_BACKEND_OBJECTSTORE) return;
    b->store++;
    ask(b);
}

size_t mr_backends_count(const struct mr_backends *b)
{
    return 1 + b->stores_count + (b->trainer ? 1 : 0);
}

struct mr_rpc_channel *mr_backends_at(const struct mr_backends *b, size_t i)
{
    if (i == 0) return b->scheduler;
    return i <= b->stores_count ? b->stores[i - 1] : b->trainer;
}
