/* gRPC calls of an executor to object stores: read the header of an object on another node, persist
 * an object, name an object. A call blocks the executor's thread. */
#include "services/worker/exec/internal.h"

#include "base/limits.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "millrace/v1/objects.pb-c.h"
#include "rpc/util/pb.h"
#include "rpc/status.h"
#include "rpc/util/sync.h"

#define CALL_TIMEOUT (60 * MR_SECOND)
/* how long the store may take to hear of an object that was just sealed */
#define KNOWN_TIMEOUT (2 * MR_SECOND)

static int client_close(struct mr_rpc_client **c)
{
    if (*c) mr_rpc_client_close(c);
    return MR_OK;
}

static void client_done(struct mr_rpc_client **c)
{
    (void)client_close(c);
}

static int pull_first(struct mr_rpc_client *client, mr_object_id id, struct mr_stop stop,
    struct mr_buf *out, struct mr_error *e)
{
    unsigned char bytes[16];
    mr_object_id_to_bytes(id, bytes);
    Millrace__V1__PullRequest request = MILLRACE__V1__PULL_REQUEST__INIT;
    request.id.data = bytes;
    request.id.len = sizeof bytes;
    request.head = true;
    struct mr_buf wire;
    mr_buf_init(&wire, 256);
    mr_pb_pack(&request.base, &wire);
    const struct mr_rpc_call_options call_options = {.stop = stop};
    struct mr_rpc_stream *stream =
        mr_rpc_stream_open(client, "/millrace.v1.Objects/Pull", &call_options);
    (void)mr_rpc_stream_send(stream, mr_buf_str(&wire));
    (void)mr_rpc_stream_half_close(stream);
    mr_buf_fini(&wire);
    struct mr_rpc_message *m = NULL;
    int err = mr_rpc_stream_read(stream, mr_time_after(mr_clock_now(), CALL_TIMEOUT), &m, e);
    if (!err) {
        struct mr_pb_arena a;
        mr_pb_arena_init(&a, MR_CHUNK_BYTES * 4);
        const Millrace__V1__PullChunk *c =
            mr_pb_unpack(&millrace__v1__pull_chunk__descriptor, mr_rpc_message_str(m), &a, e);
        struct mr_value_header h;
        if (!c || c->data.len < sizeof h) {
            err = mr_fail(e, MR_EFORMAT, "the store sent no header of the object");
        } else {
            memcpy(&h, c->data.data, sizeof h);
            mr_buf_add(out, c->data.data, MR_MIN((size_t)h.header_bytes, c->data.len));
        }
        mr_pb_arena_fini(&a);
        mr_rpc_message_free(&m);
    }
    mr_rpc_stream_close(&stream);
    return err;
}

int mr_remote_header(const char *address, const struct mr_credential *credential, mr_object_id id,
    struct mr_stop stop, struct mr_buf *out, struct mr_error *e)
{
    struct mr_rpc_channel_options options = {.credential = credential};
    MR_AUTO(client_done) struct mr_rpc_client *client = mr_rpc_client_open(address, &options);
    return pull_first(client, id, stop, out, e);
}

static int call(struct mr_rpc_client *client, const char *method, const ProtobufCMessage *request,
    struct mr_stop stop, struct mr_error *e)
{
    struct mr_buf wire;
    mr_buf_init(&wire, MR_CHUNK_BYTES);
    mr_pb_pack(request, &wire);
    struct mr_rpc_call_options options = {.timeout = CALL_TIMEOUT, .one_reply = true, .stop = stop};
    int err = mr_rpc_call_sync(client, method, mr_buf_str(&wire), &options, NULL, e);
    mr_buf_fini(&wire);
    return err;
}

int mr_remote_persist(const struct mr_executor_env *env, mr_object_id id,
    const struct mr_strand_item *item, struct mr_stop stop, struct mr_error *e)
{
    struct mr_rpc_channel_options options = {.credential = env->credential};
    char text[MR_OBJECT_ID_TEXT_MAX], name[MR_KEY_BYTES_MAX + 1];
    mr_object_id_format(id, text);
    MR_AUTO(client_done)
    struct mr_rpc_client *client = mr_rpc_client_open(env->store_address, &options);
    Millrace__V1__PersistRequest persist = MILLRACE__V1__PERSIST_REQUEST__INIT;
    persist.id = text;
    mr_time until = mr_time_after(mr_clock_now(), KNOWN_TIMEOUT);
    int err;
    while (
        (err = call(client, "/millrace.v1.Objects/Persist", &persist.base, stop, e)) == MR_ENOENT) {
        if (mr_stop_is_set(stop)) return mr_fail(e, MR_ECANCELED, "given up");
        if (mr_clock_now() >= until) break;
        mr_clock_sleep(MR_MS);
    }
    if (err || !item->persist_name.n) return err;
    memcpy(name, item->persist_name.p, item->persist_name.n);
    name[item->persist_name.n] = 0;
    Millrace__V1__NameRequest request = MILLRACE__V1__NAME_REQUEST__INIT;
    request.name = name;
    request.object = text;
    request.replace = true;
    request.definition.data = mr_unconst(item->definition.p);
    request.definition.len = item->definition.n;
    return call(client, "/millrace.v1.Objects/Name", &request.base, stop, e);
}
