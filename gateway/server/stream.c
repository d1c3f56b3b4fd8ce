/* The callback by which libmicrohttpd fetches the bytes of a stream. It turns replies into bytes as
 * fast as the client reads, and suspends the connection while there are no replies. For a slow
 * client a newer progress event replaces an older one. */
#include "gateway/server/internal.h"

#include "base/alloc.h"
#include "base/protowire.h"
#include "gateway/json/json_out.h"
#include "gateway/http/sse.h"
#include "gateway/json/status.h"
#include "millrace/v1/channels.pb-c.h"

#define CHANNEL_ENTRY (&millrace__v1__channel_entry__descriptor)
/* An id that is lower than the ids of all entries of a channel. */
#define BEGINNING "0-0"

static struct mr_str event_id(const ProtobufCMessage *m)
{
    static const char *const names[] = {"event_id", "id"};
    for (size_t i = 0; i < MR_ARRAY_LEN(names); i++) {
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field_by_name(m->descriptor, names[i]);
        if (!f || f->type != PROTOBUF_C_TYPE_STRING || f->label == PROTOBUF_C_LABEL_REPEATED)
            continue;
        return mr_str(*(char *const *)(const void *)((const char *)m + f->offset));
    }
    return mr_str_of("", 0);
}

static void write_json(struct mr_request *r, const ProtobufCMessage *m, struct mr_buf *json)
{
    if (m->descriptor == &millrace__v1__result_item__descriptor)
        mr_collect_one((const Millrace__V1__ResultItem *)(const void *)m, json);
    else
        (void)mr_json_from_message(m, json);
    r->is_broken = mr_buf_status(json) != MR_OK;
}

static void write_event(struct mr_request *r, const ProtobufCMessage *m)
{
    struct mr_str id = event_id(m);
    /* A progress event has no id. It is dropped if another message is queued behind it. */
    if (!id.n && !r->has_held) {
        struct mr_reply next;
        if (mr_request_next(r, &next)) {
            r->held = next;
            r->has_held = true;
            if (next.kind == MR_REPLY_MESSAGE &&
                m->descriptor != &millrace__v1__result_item__descriptor)
                return;
        }
    }
    struct mr_buf json;
    mr_buf_init(&json, r->out.bytes_max);
    write_json(r, m, &json);
    mr_sse_event(&r->out, id, NULL, mr_buf_str(&json));
    mr_buf_fini(&json);
}

static void write_message(struct mr_request *r, struct mr_str bytes)
{
    mr_pb_arena_clear(&r->arena);
    const ProtobufCMessage *m = mr_pb_unpack(r->x->method->response, bytes, &r->arena, NULL);
    if (!m) {
        r->is_broken = true;
        return;
    }
    if (r->answer_kind == MR_ANSWER_EVENTS) {
        write_event(r, m);
    } else if (r->answer_kind == MR_ANSWER_COLLECTED) {
        mr_collect_add(&r->collect, (const Millrace__V1__ResultItem *)(const void *)m, &r->out);
    } else {
        write_json(r, m, &r->out);
        mr_buf_add_byte(&r->out, '\n');
    }
    if (mr_buf_status(&r->out)) r->is_broken = true;
}

static void write_end(struct mr_request *r)
{
    const struct mr_exchange *x = r->x;
    r->is_finished = true;
    struct mr_buf status;
    mr_buf_init(&status, (size_t)1 << 20);
    if (x->error)
        mr_status_json(x->grpc_code, mr_buf_str(&x->text), mr_buf_str(&x->details), &status);
    if (r->answer_kind == MR_ANSWER_COLLECTED) {
        mr_collect_end(&r->collect, mr_buf_str(&status), &r->out);
        mr_buf_add_byte(&r->out, '\n');
    } else if (r->answer_kind == MR_ANSWER_EVENTS && x->is_shutdown) {
        /* Without an error event the client reconnects and resumes. */
        mr_sse_heartbeat(&r->out);
    } else if (r->answer_kind == MR_ANSWER_EVENTS && x->error) {
        /* If is_gap, entries of a channel were deleted before the client read them. The error event
         * then has the id BEGINNING, so a client that reconnects starts at the oldest entry. */
        bool is_gap = x->error == MR_ERANGE && x->method->response == CHANNEL_ENTRY;
        mr_sse_event(
            &r->out, is_gap ? MR_STR(BEGINNING) : mr_str_of("", 0), "error", mr_buf_str(&status));
    } else if (x->error) {
        /* An incomplete answer must not look complete, so the connection is broken. */
        r->is_broken = true;
    }
    mr_buf_fini(&status);
}

void mr_stream_take_raw(struct mr_request *r, struct mr_rpc_message **message)
{
    struct mr_rpc_message *m = MR_STEAL(*message);
    struct mr_protowire_reader reader = mr_protowire_read(mr_rpc_message_str(m));
    struct mr_protowire_field f;
    r->raw = mr_str_of("", 0);
    while (!mr_protowire_next(&reader, &f))
        if (f.number == 2 && f.type == MR_PROTOWIRE_BYTES) r->raw = f.bytes;
    r->raw_message = m;
}

static void take(struct mr_request *r, struct mr_reply *reply)
{
    switch (reply->kind) {
    case MR_REPLY_MESSAGE:
        if (r->answer_kind == MR_ANSWER_RAW) {
            mr_stream_take_raw(r, &reply->message);
            return;
        }
        write_message(r, mr_rpc_message_str(reply->message));
        mr_rpc_message_free(&reply->message);
        mr_request_use(r);
        return;
    case MR_REPLY_HEARTBEAT:
        mr_sse_heartbeat(&r->out);
        mr_request_use(r);
        return;
    case MR_REPLY_END: write_end(r); return;
    case MR_REPLY_OPENED:
    case MR_REPLY_TAKEN: return;
    }
}

static size_t give(struct mr_request *r, char *to, size_t bytes_max)
{
    if (r->raw_message) {
        size_t skip = (size_t)MR_MIN(r->raw_skip, (uint64_t)r->raw.n);
        r->raw = mr_str_of(r->raw.p + skip, r->raw.n - skip);
        r->raw_skip -= skip;
        size_t n = MR_MIN(bytes_max, r->raw.n);
        if (n) memcpy(to, r->raw.p, n);
        r->raw = mr_str_of(r->raw.p + n, r->raw.n - n);
        if (r->raw.n == 0) {
            mr_rpc_message_free(&r->raw_message);
            mr_request_use(r);
        }
        return n;
    }
    size_t n = MR_MIN(bytes_max, r->out.n - r->out_at);
    if (n) memcpy(to, r->out.p + r->out_at, n);
    r->out_at += n;
    if (r->out_at == r->out.n) {
        mr_buf_clear(&r->out);
        r->out_at = 0;
    }
    return n;
}

ssize_t mr_stream_read(void *request, uint64_t at, char *to, size_t bytes_max)
{
    (void)at;
    struct mr_request *r = request;
    for (;;) {
        if (r->is_broken) return MHD_CONTENT_READER_END_WITH_ERROR;
        if (r->raw_message || r->out.n > r->out_at) {
            size_t n = give(r, to, bytes_max);
            if (n) return (ssize_t)n;
        }
        if (r->is_finished) return MHD_CONTENT_READER_END_OF_STREAM;
        struct mr_reply reply;
        if (r->has_held) {
            reply = r->held;
            r->has_held = false;
        } else if (!mr_request_next(r, &reply)) {
            mr_request_sleep(r);
            return 0;
        }
        take(r, &reply);
    }
}
