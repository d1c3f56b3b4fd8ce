/* Each client has an event loop (loop.h) of its own. A blocking function runs this loop until the
 * function can return. */
#include "rpc/util/sync.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "rpc/core.h"
#include "rpc/status.h"

#define LEAVES_AT_ONCE_BYTES ((size_t)64 << 10)
#define INCOMING_MAX 64 /* messages that are read before the caller asks for them */

struct mr_rpc_client {
    struct mr_rpc_loop *loop;
    struct mr_rpc_channel *channel;
};

struct kept {
    struct mr_str name, value;
    char *bytes;
};

struct mr_rpc_stream {
    struct mr_rpc_client *client;
    struct mr_rpc_call *call; /* NULL: the call is over */
    struct mr_stop stop;
    struct mr_rpc_message *incoming[INCOMING_MAX];
    uint32_t head, count;
    struct mr_rpc_status status;
    char *message;
    char *details;
    struct kept *metadata; /* metadata from the server, copied when the call ends */
    size_t metadata_count;
};

struct mr_rpc_client *mr_rpc_client_open(
    const char *address, const struct mr_rpc_channel_options *options)
{
    struct mr_rpc_client *c = mr_alloc(sizeof *c);
    c->loop = mr_rpc_loop_new();
    mr_rpc_loop_be_eager(c->loop, true);
    c->channel = mr_rpc_channel_open(c->loop, address, options);
    return c;
}

void mr_rpc_client_close(struct mr_rpc_client **client)
{
    if (!*client) return;
    struct mr_rpc_client *c = MR_STEAL(*client);
    mr_rpc_channel_close(&c->channel);
    mr_rpc_loop_free(&c->loop);
    mr_release(c);
}

static void add_incoming(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_rpc_stream *s = mr_rpc_call_context(call);
    mr_assert(s->count < INCOMING_MAX);
    s->incoming[(s->head + s->count++) % INCOMING_MAX] = mr_rpc_message_take(m);
    if (s->count < INCOMING_MAX / 2) mr_rpc_call_read(call);
}

static struct mr_str keep(char **copy, struct mr_str s)
{
    *copy = mr_copy(s.p, s.n);
    return mr_str_of(*copy, s.n);
}

static struct mr_str str_of_slice(const grpc_slice *s)
{
    return mr_str_of(GRPC_SLICE_START_PTR(*s), GRPC_SLICE_LENGTH(*s));
}

static void keep_metadata(struct mr_rpc_stream *s, const grpc_metadata_array *a)
{
    size_t bytes = sizeof *s->metadata;
    size_t count = s->metadata_count + a->count;
    s->metadata = mr_grow(s->metadata, s->metadata_count * bytes, count * bytes);
    for (size_t i = 0; i < a->count; i++) {
        struct mr_str name = str_of_slice(&a->metadata[i].key);
        struct mr_str value = str_of_slice(&a->metadata[i].value);
        struct kept *k = &s->metadata[s->metadata_count++];
        k->bytes = mr_alloc(name.n + value.n);
        if (name.n) memcpy(k->bytes, name.p, name.n);
        if (value.n) memcpy(k->bytes + name.n, value.p, value.n);
        k->name = mr_str_of(k->bytes, name.n);
        k->value = mr_str_of(k->bytes + name.n, value.n);
    }
}

static void record_end(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct mr_rpc_stream *s = mr_rpc_call_context(call);
    s->call = NULL;
    s->status.code = status->code;
    s->status.message = keep(&s->message, status->message);
    s->status.details = keep(&s->details, status->details);
    keep_metadata(s, &call->metadata_in);
    keep_metadata(s, &call->trailing_in);
}

struct mr_rpc_stream *mr_rpc_stream_open(
    struct mr_rpc_client *client, const char *method, const struct mr_rpc_call_options *options)
{
    static const struct mr_rpc_handler handler = {
        .on_message = add_incoming, .on_done = record_end};
    struct mr_rpc_stream *s = mr_alloc(sizeof *s);
    s->client = client;
    struct mr_rpc_call_options o = {0};
    if (options) o = *options;
    o.manual_read = !o.one_reply;
    s->stop = o.stop;
    s->call = mr_rpc_call_open(client->channel, method, &handler, s, &o);
    mr_rpc_call_read(s->call);
    return s;
}

/* Runs the loop until an event or `deadline`. Cancels the call when `stop` is set. */
static void run_loop(struct mr_rpc_stream *s, mr_time deadline)
{
    if (s->stop.is_set) deadline = MR_MIN(deadline, mr_time_after(mr_clock_now(), MR_STOP_LOOK));
    (void)mr_rpc_loop_run(s->client->loop, deadline);
    if (s->call && mr_stop_is_set(s->stop)) mr_rpc_call_cancel(s->call);
}

void mr_rpc_client_wait(struct mr_rpc_client *client, mr_time deadline)
{
    (void)mr_rpc_loop_run(client->loop, deadline);
}

void mr_rpc_client_wake(struct mr_rpc_client *client)
{
    mr_rpc_loop_wake(client->loop);
}

static void parts_release(const struct mr_rpc_part *parts, size_t parts_count)
{
    for (size_t i = 0; i < parts_count; i++)
        if (parts[i].release) parts[i].release(parts[i].ctx);
}

int mr_rpc_stream_send_parts(
    struct mr_rpc_stream *s, const struct mr_rpc_part *parts, size_t parts_count)
{
    while (s->call && !mr_rpc_call_is_writable(s->call) && mr_rpc_call_queued_bytes(s->call))
        run_loop(s, MR_NEVER);
    if (!s->call) {
        parts_release(parts, parts_count);
        return MR_ECANCELED;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < parts_count; i++)
        bytes += parts[i].bytes.n;
    int err = mr_rpc_call_send_parts(s->call, parts, parts_count);
    /* A large message is sent at once, while the caller makes the next message. */
    if (!err && bytes >= LEAVES_AT_ONCE_BYTES) (void)mr_rpc_loop_run(s->client->loop, 0);
    return err;
}

int mr_rpc_stream_send(struct mr_rpc_stream *s, struct mr_str bytes)
{
    const struct mr_rpc_part part = {.bytes = bytes};
    return mr_rpc_stream_send_parts(s, &part, 1);
}

bool mr_rpc_stream_is_sending(const struct mr_rpc_stream *s)
{
    if (!s->call) return false;
    return s->call->queue.count || mr_rpc_call_has_batch(s->call, MR_RPC_BATCH_SEND);
}

int mr_rpc_stream_half_close(struct mr_rpc_stream *s)
{
    if (!s->call) return MR_ECANCELED;
    return mr_rpc_call_half_close(s->call);
}

int mr_rpc_stream_read(
    struct mr_rpc_stream *s, mr_time deadline, struct mr_rpc_message **out, struct mr_error *e)
{
    while (!s->count && s->call) {
        if (deadline != MR_NEVER && mr_clock_now() >= deadline)
            return mr_fail(e, MR_ETIMEOUT, "no message came in time");
        run_loop(s, deadline);
    }
    if (s->count) {
        *out = MR_STEAL(s->incoming[s->head]);
        s->head = (s->head + 1) % INCOMING_MAX;
        s->count--;
        if (s->call) mr_rpc_call_read(s->call);
        return MR_OK;
    }
    int err = mr_rpc_status_error(&s->status, e);
    return err ? err : MR_ENOENT;
}

const struct mr_rpc_status *mr_rpc_stream_status(const struct mr_rpc_stream *s)
{
    return &s->status;
}

bool mr_rpc_stream_metadata(const struct mr_rpc_stream *s, const char *name, struct mr_str *value)
{
    if (s->call) return mr_rpc_call_metadata(s->call, name, value);
    for (size_t i = 0; i < s->metadata_count; i++) {
        if (!mr_str_eq(s->metadata[i].name, mr_str(name))) continue;
        *value = s->metadata[i].value;
        return true;
    }
    return false;
}

void mr_rpc_stream_cancel(struct mr_rpc_stream *s)
{
    if (s->call) mr_rpc_call_cancel(s->call);
}

void mr_rpc_stream_close(struct mr_rpc_stream **stream)
{
    if (!*stream) return;
    struct mr_rpc_stream *s = MR_STEAL(*stream);
    if (s->call) mr_rpc_call_cancel(s->call);
    while (s->call)
        (void)mr_rpc_loop_run(s->client->loop, MR_NEVER);
    for (uint32_t i = 0; i < s->count; i++)
        mr_rpc_message_free(&s->incoming[(s->head + i) % INCOMING_MAX]);
    for (size_t i = 0; i < s->metadata_count; i++)
        mr_release(s->metadata[i].bytes);
    mr_release(s->metadata);
    mr_release(s->message);
    mr_release(s->details);
    mr_release(s);
}

int mr_rpc_call_sync(struct mr_rpc_client *client, const char *method, struct mr_str request,
    const struct mr_rpc_call_options *options, struct mr_buf *reply, struct mr_error *e)
{
    struct mr_rpc_call_options o = {0};
    if (options) o = *options;
    o.one_reply = true;
    struct mr_rpc_stream *s = mr_rpc_stream_open(client, method, &o);
    int err = mr_rpc_stream_send(s, request);
    if (err) {
        (void)mr_fail(e, err, "the request of %zu bytes cannot be sent: at most %zu may be",
            request.n, MR_MESSAGE_BYTES_MAX);
    } else {
        (void)mr_rpc_stream_half_close(s);
        struct mr_rpc_message *m = NULL;
        err = mr_rpc_stream_read(s, MR_NEVER, &m, e);
        if (!err && reply) mr_buf_add_str(reply, mr_rpc_message_str(m));
        mr_rpc_message_free(&m);
    }
    while (!err && s->call)
        run_loop(s, MR_NEVER);
    if (!err) err = mr_rpc_status_error(&s->status, e);
    if (!err && reply && mr_buf_status(reply))
        err = mr_fail(e, MR_ETOOBIG, "the reply is larger than the %zu bytes there is room for",
            reply->bytes_max);
    mr_rpc_stream_close(&s);
    return err;
}
