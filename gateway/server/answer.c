/* Answers that are complete before they are sent, and the start of streams. */
#include "gateway/server/internal.h"

#include "base/alloc.h"
#include "base/unconst.h"
#include "gateway/http/gzip.h"
#include "gateway/json/json_out.h"
#include "gateway/http/media.h"
#include "gateway/http/pages.h"
#include "gateway/http/sse.h"
#include "gateway/json/status.h"
#include "millrace/v1/cluster.pb-c.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#define TOKEN_BYTES_MAX 4096
#define STREAM_BLOCK_BYTES ((size_t)64 << 10)

enum MHD_Result mr_answer_queue(
    struct mr_request *r, unsigned status, const char *type, struct MHD_Response **response)
{
    struct MHD_Response *m = *response;
    (void)MHD_add_response_header(m, "Content-Type", type);
    (void)MHD_add_response_header(m, "X-Content-Type-Options", "nosniff");
    /* While this gateway stops, the client's next request should reach the next gateway, so this
     * connection is closed. */
    if (mr_flag_is_set(&r->http->quiescing) || r->refused)
        (void)MHD_add_response_header(m, "Connection", "close");
    if (r->answer_kind != MR_ANSWER_FILE) /* static.c sets Cache-Control itself */
        (void)MHD_add_response_header(
            m, "Cache-Control", r->may_be_kept ? "private, no-cache" : "no-store");
    enum MHD_Result done = MHD_queue_response(r->connection, status, m);
    MHD_destroy_response(m);
    *response = NULL;
    r->answered = true;
    r->status = status;
    return done;
}

/* Moves the bytes of `b` into a response. */
static struct MHD_Response *response_of(struct mr_buf *b)
{
    size_t n = b->n;
    void *bytes = b->p ? b->p : mr_alloc(1);
    *b = (struct mr_buf){.bytes_max = b->bytes_max};
    return MHD_create_response_from_buffer_with_free_callback(n, bytes, mr_release);
}

struct MHD_Response *mr_answer_gzip(struct mr_str bytes)
{
    struct mr_buf packed;
    mr_buf_init(&packed, MR_GZIP_BYTES_MAX);
    if (!mr_gzip(bytes, &packed)) return NULL;
    struct MHD_Response *m = response_of(&packed);
    (void)MHD_add_response_header(m, "Content-Encoding", "gzip");
    return m;
}

static bool takes_gzip(const struct mr_request *r)
{
    return mr_media_takes(
        mr_str(MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Accept-Encoding")),
        "gzip");
}

/* Moves the bytes of `b` into a response, compressed if the client accepts gzip. */
static struct MHD_Response *text_response(const struct mr_request *r, struct mr_buf *b)
{
    struct MHD_Response *m = takes_gzip(r) ? mr_answer_gzip(mr_buf_str(b)) : NULL;
    if (m)
        mr_buf_clear(b);
    else
        m = response_of(b);
    (void)MHD_add_response_header(m, "Vary", "Accept-Encoding");
    return m;
}

enum MHD_Result mr_answer_openapi(struct mr_request *r)
{
    struct mr_str all = mr_proto_openapi();
    struct MHD_Response *m = NULL;
    bool is_packed = takes_gzip(r);
    char tag[40];
    (void)snprintf(tag, sizeof tag, "\"%016" PRIx64 "%s\"", XXH3_64bits(all.p, all.n),
        is_packed ? "-gzip" : "");
    const char *known =
        MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "If-None-Match");
    bool is_known = mr_etag_is_known(mr_str(known), tag);
    if (is_packed && !is_known) m = mr_answer_gzip(all);
    if (!m)
        m = MHD_create_response_from_buffer(
            is_known ? 0 : all.n, mr_unconst(all.p), MHD_RESPMEM_PERSISTENT);
    (void)MHD_add_response_header(m, "ETag", tag);
    (void)MHD_add_response_header(m, "Vary", "Accept-Encoding");
    r->may_be_kept = true;
    return mr_answer_queue(r, is_known ? 304 : 200, "application/json", &m);
}

static void add_allow(const struct mr_request *r, struct MHD_Response *m)
{
    char list[64] = "";
    size_t n = 0;
    for (int v = MR_HTTP_GET; v <= MR_HTTP_PATCH; v++)
        if (r->allow >> v & 1)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "",
                v == MR_HTTP_GET ? "GET, HEAD" : mr_http_verb_name((enum mr_http_verb)v));
    (void)MHD_add_response_header(m, "Allow", list);
}

static enum MHD_Result answer_status(
    struct mr_request *r, int err, int grpc, struct mr_str text, struct mr_str details)
{
    mr_buf_clear(&r->out);
    mr_status_json(grpc, text, details, &r->out);
    mr_buf_add_byte(&r->out, '\n');
    unsigned status = r->refused ? r->refused : (unsigned)mr_err_http(err);
    struct MHD_Response *m = response_of(&r->out);
    if (status == 405) add_allow(r, m);
    if (status == 401) (void)MHD_add_response_header(m, "WWW-Authenticate", "Bearer");
    if (status == 503 || status == 429) (void)MHD_add_response_header(m, "Retry-After", "1");
    return mr_answer_queue(r, status, "application/json", &m);
}

enum MHD_Result mr_answer_error(struct mr_request *r)
{
    int err = r->error.code;
    return answer_status(r, err, mr_err_grpc(err), mr_str(r->error.text), mr_str_of(NULL, 0));
}

enum MHD_Result mr_answer_refused(
    struct mr_request *r, unsigned status, const char *header, const char *value)
{
    int grpc = mr_err_grpc(r->error.code);
    mr_buf_clear(&r->out);
    mr_status_json(grpc, mr_str(r->error.text), mr_str_of(NULL, 0), &r->out);
    mr_buf_add_byte(&r->out, '\n');
    struct MHD_Response *m = response_of(&r->out);
    (void)MHD_add_response_header(m, header, value);
    return mr_answer_queue(r, status, "application/json", &m);
}

static enum MHD_Result answer_outcome(struct mr_request *r)
{
    const struct mr_exchange *x = r->x;
    return answer_status(r, x->error, x->grpc_code, mr_buf_str(&x->text), mr_buf_str(&x->details));
}

static enum MHD_Result answer_health(struct mr_request *r, const Millrace__V1__InfoResponse *info)
{
    /* If there is no `info`, the call has failed, and this is the sentence of its error. */
    const struct mr_buf *why = &r->x->text;
    MR_AUTO(mr_free_ptr)
    char *away = mr_format(
        "the scheduler does not answer%s%.*s", why->n ? ": " : "", MR_STR_ARG(mr_buf_str(why)));
    const char *reason = away;
    bool is_stopping = mr_flag_is_set(&r->http->quiescing);
    const char *trouble =
        is_stopping ? "the gateway is stopping" : mr_acceptor_pause_reason(r->http->acceptor);
    bool ready = info && info->ready && !trouble;
    if (info) reason = info->not_ready[0] ? info->not_ready : "the cluster is starting";
    if (trouble) reason = trouble;
    mr_buf_printf(&r->out, "{\"ready\":%s", ready ? "true" : "false");
    if (!ready) {
        mr_buf_add_text(&r->out, ",\"reason\":");
        mr_json_text(&r->out, mr_str(reason));
    }
    mr_buf_add_text(&r->out, "}\n");
    struct MHD_Response *m = response_of(&r->out);
    return mr_answer_queue(r, ready ? 200 : 503, "application/json", &m);
}

static enum MHD_Result answer_message(struct mr_request *r, struct mr_str bytes)
{
    mr_pb_arena_clear(&r->arena);
    ProtobufCMessage *m = mr_pb_unpack(r->x->method->response, bytes, &r->arena, &r->error);
    struct mr_buf token;
    mr_buf_init(&token, TOKEN_BYTES_MAX);
    if (m && r->x->of_one_store)
        mr_pages_next((Millrace__V1__ListObjectsResponse *)(void *)m, r->x->store,
            r->x->stores_count, &token);
    bool is_shown = m && !mr_json_from_message(m, &r->out) && !mr_buf_status(&r->out);
    mr_buf_fini(&token);
    if (!is_shown) {
        (void)mr_fail(&r->error, MR_EINTERNAL, "the service's answer cannot be shown as JSON");
        return mr_answer_error(r);
    }
    mr_buf_add_byte(&r->out, '\n');
    struct MHD_Response *response = text_response(r, &r->out);
    if (r->x->is_cut) (void)MHD_add_response_header(response, "Retry-After", "1");
    return mr_answer_queue(r, 200, "application/json", &response);
}

static enum MHD_Result answer_stream(struct mr_request *r, const char *type)
{
    struct MHD_Response *m = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, mr_stream_read, r, NULL);
    if (r->answer_kind == MR_ANSWER_EVENTS) {
        mr_sse_hello(&r->out);
        (void)MHD_add_response_header(m, "X-Accel-Buffering", "no");
    }
    if (r->answer_kind == MR_ANSWER_COLLECTED) {
        mr_collect_init(&r->collect);
        mr_collect_begin(&r->out);
    }
    return mr_answer_queue(r, 200, type, &m);
}

static const char *stream_type(enum mr_answer_kind kind)
{
    if (kind == MR_ANSWER_EVENTS) return "text/event-stream";
    return kind == MR_ANSWER_LINES ? "application/x-ndjson" : "application/json";
}

static enum MHD_Result answer_ended(struct mr_request *r)
{
    if (r->answer_kind == MR_ANSWER_HEALTH) return answer_health(r, NULL);
    /* The gateway stops. A browser reconnects after a stream that ends, but not after an error
     * status, so the answer is a stream without events. */
    if (r->answer_kind == MR_ANSWER_EVENTS && r->x->is_shutdown)
        return answer_stream(r, stream_type(r->answer_kind));
    /* An EventSource hides any answer but 200 from its page, so a gap in the events is reported as
     * an event. */
    if (r->answer_kind == MR_ANSWER_EVENTS && r->x->error == MR_ERANGE)
        return answer_stream(r, stream_type(r->answer_kind));
    if (r->x->error) return answer_outcome(r);
    if (r->answer_kind == MR_ANSWER_METRICS) {
        struct MHD_Response *m = text_response(r, &r->x->text);
        return mr_answer_queue(r, 200, "text/plain; version=0.0.4; charset=utf-8", &m);
    }
    if (r->answer_kind ==
        /* The status 204 tells the browser not to reconnect, because no event will follow. */
        MR_ANSWER_EVENTS) {
        struct MHD_Response *m = response_of(&r->out);
        return mr_answer_queue(r, 204, "text/event-stream", &m);
    }
    if (r->answer_kind == MR_ANSWER_LINES || r->answer_kind == MR_ANSWER_COLLECTED)
        return answer_stream(r, stream_type(r->answer_kind));
    if (r->answer_kind == MR_ANSWER_RAW) return answer_stream(r, "application/octet-stream");
    (void)mr_fail(&r->error, MR_EINTERNAL, "the service gave no answer");
    return mr_answer_error(r);
}

enum MHD_Result mr_answer(struct mr_request *r)
{
    if (r->raw_message) return mr_answer_raw(r);
    if (!r->has_held)
        return r->is_over ? answer_ended(r) : answer_stream(r, stream_type(r->answer_kind));
    if (r->held.kind == MR_REPLY_END) return answer_ended(r);
    struct mr_str bytes = mr_rpc_message_str(r->held.message);
    if (r->answer_kind == MR_ANSWER_JSON) return answer_message(r, bytes);
    if (r->answer_kind == MR_ANSWER_HEALTH)
        return answer_health(
            r, mr_pb_unpack(&millrace__v1__info_response__descriptor, bytes, &r->arena, NULL));
    return answer_stream(r, stream_type(r->answer_kind));
}
