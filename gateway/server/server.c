/* The callbacks of libmicrohttpd: the phases of a request, and when its connection is suspended.
 *
 *   headers ─▶ check ─▶ body ─▶ start ─▶ sleep ⇄ replies ─▶ answer (a stream goes on reading)
 *
 * A refused request is answered after its body if the body is short: the client then reads the
 * answer and can keep the connection. Otherwise the answer is sent at once. */
#include "gateway/server/internal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "gateway/json/json_in.h"
#include "gateway/server/login.h"
#include "gateway/http/login_cookie.h"
#include "host/clock.h"
#include "host/tls/server_certificate.h"

#include <stdlib.h>

/* The acceptor enforces --connections. libmicrohttpd divides its own limit among its threads, so
 * each thread gets some spare connections. */
#define CONNECTIONS_SPARE 64
/* If the body of a refused request has at most this many bytes, it is read before the answer is
 * sent. */
#define DRAIN_BYTES_MAX ((uint64_t)1 << 20)
#define JSON_BYTES_MAX ((size_t)256 << 20) /* limit of one message as JSON, in bytes */
#define ARENA_BYTES_MAX ((size_t)256 << 20)

void mr_request_move(struct mr_request *r, enum mr_request_phase to)
{
    mr_assert(to == r->phase + 1);
    r->phase = to;
}

/* ---- replies --------------------------------------------------------------------------------- */

bool mr_request_next(struct mr_request *r, struct mr_reply *reply)
{
    while (!r->is_over && mr_inbox_take(r->x->replies, reply, 1)) {
        if (reply->kind == MR_REPLY_END) r->is_over = true;
        if (reply->kind == MR_REPLY_TAKEN) {
            r->chunks_out--;
            continue;
        }
        if (reply->kind == MR_REPLY_OPENED) {
            r->is_open = true;
            continue;
        }
        return true;
    }
    return false;
}

void mr_request_use(struct mr_request *r)
{
    mr_bridge_post(r->http->options.bridge, MR_BRIDGE_CREDIT, r->x, NULL);
}

/* Suspends the connection until a reply comes. The order of the calls matters: resuming a
 * connection that is not suspended is undefined. */
void mr_request_sleep(struct mr_request *r)
{
    MHD_suspend_connection(r->connection);
    if (!mr_parker_park(&r->x->parker)) MHD_resume_connection(r->connection);
}

static void wake(void *connection)
{
    MHD_resume_connection(connection);
}

static int connection_fd(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static void set_fd_timeout(struct mr_request *r, mr_duration d)
{
    int fd = connection_fd(r->connection);
    if (fd < 0) return;
    mr_fd_deadlines_set(r->http->options.fd_deadlines, fd, d == MR_NEVER ? d : mr_clock_now() + d);
}

static struct mr_socket *socket_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Bytes that an upload holds in memory, roughly. */
#define UPLOAD_BYTES (2 * MR_CHUNK_GATHER_BYTES)

/* ---- the body -------------------------------------------------------------------------------- */

static bool is_started(const struct mr_request *r)
{
    return r->phase >= MR_REQUEST_STARTED;
}

static void flush_upload(struct mr_request *r, bool more)
{
    if (!is_started(r)) {
        mr_request_start(r, more);
        return;
    }
    if (r->body.n) {
        struct mr_buf piece = r->body;
        mr_buf_init(&r->body, MR_CHUNK_GATHER_BYTES);
        struct mr_chunk *c = mr_chunk_new(r->match.route, &piece.p, piece.n);
        r->chunks_out++;
        mr_bridge_post(r->http->options.bridge, MR_BRIDGE_CHUNK, r->x, c);
        set_fd_timeout(r, MR_BODY_TIMEOUT);
    }
    if (!more) mr_bridge_post(r->http->options.bridge, MR_BRIDGE_HALF_CLOSE, r->x, NULL);
}

/* Takes replies from the queue up to the first one that begins or ends the answer. This reply is
 * held in r->held. Each MR_REPLY_TAKEN before it says that gRPC has sent one piece of the body, so
 * there is room for another piece. */
static void look(struct mr_request *r)
{
    if (is_started(r) && !r->has_held) r->has_held = mr_request_next(r, &r->held);
}

/* Counts memory for more of the body. False: the allowance is used up, and r->error says so. */
static bool may_read(struct mr_request *r, size_t bytes)
{
    struct mr_str user = mr_str(r->user.name[0] ? r->user.name : "local");
    return !mr_allowance_add(r->http->options.allowance, &r->hold, user, bytes, &r->error);
}

static void take_upload(struct mr_request *r, const char *p, size_t *n)
{
    while (*n) {
        look(r);
        /* The request was answered early, so the rest of the body is dropped. */
        if (r->has_held || r->is_over) {
            *n = 0;
            return;
        }
        if (r->chunks_out >= MR_EXCHANGE_CHUNKS) {
            mr_request_sleep(r);
            return;
        }
        size_t room = MR_CHUNK_GATHER_BYTES - r->body.n;
        size_t taken = MR_MIN(*n, room);
        if (r->hold.bytes < UPLOAD_BYTES && !may_read(r, taken)) {
            *n = 0;
            return;
        }
        mr_buf_add(&r->body, p, taken);
        p += taken;
        *n -= taken;
        r->body_bytes += taken;
        uint64_t bytes_max = mr_request_body_bytes_max(r->match.route);
        if (r->body_bytes > bytes_max) {
            (void)mr_fail(&r->error, MR_ETOOBIG, "the body is larger than %llu bytes",
                (unsigned long long)bytes_max);
            *n = 0;
            return;
        }
        if (r->body.n == MR_CHUNK_GATHER_BYTES) flush_upload(r, true);
    }
}

static enum MHD_Result take_body(struct mr_request *r, const char *p, size_t *n)
{
    /* The request is refused. Its body is still read, and dropped, before the answer is sent,
     * because a client that still sends might not read the answer. */
    if (r->error.code) {
        r->body_bytes += *n;
        *n = 0;
        return r->body_bytes > 64 * DRAIN_BYTES_MAX ? MHD_NO : MHD_YES;
    }
    if (r->match.route && r->match.route->raw_request) {
        take_upload(r, p, n);
        return MHD_YES;
    }
    if (may_read(r, *n)) mr_buf_add(&r->body, p, *n);
    if (mr_buf_status(&r->body))
        (void)mr_fail(
            &r->error, MR_ETOOBIG, "the body is larger than %zu bytes", r->body.bytes_max);
    *n = 0;
    return MHD_YES;
}

/* ---- the phases ------------------------------------------------------------------------------ */

/* True: the framing of the request or of its body was refused. */
static bool look_for_refusal(struct mr_request *r)
{
    const struct mr_framing *f = &socket_of(r->connection)->filter.framing;
    if (!mr_framing_is_refused(f, r->ordinal)) return false;
    bool is_large = f->status == 414 || f->status == 431;
    int code = is_large ? MR_ETOOBIG : f->status >= 500 ? MR_EUNIMPL : MR_EINVAL;
    r->refused = (unsigned)f->status;
    (void)mr_fail(&r->error, code, "%s", f->why);
    return true;
}

static enum MHD_Result begin(
    struct mr_request *r, struct MHD_Connection *connection, const char *method)
{
    mr_request_move(r, MR_REQUEST_BODY);
    r->connection = connection;
    struct mr_socket *s = socket_of(connection);
    s->unbegun = NULL;
    r->ordinal = ++s->begun;
    if (s->filter.framing.heads < r->ordinal) /* libmicrohttpd has read bytes without the filter */
        (void)mr_fail(
            &r->error, MR_EINTERNAL, "the request was read without the check of its framing");
    else if (!look_for_refusal(r))
        mr_request_check(r, method);
    if (r->x) {
        r->x->wake = wake;
        r->x->wake_ctx = connection;
        r->x->fd = connection_fd(connection);
    }
    bool is_raw = r->match.route && r->match.route->raw_request;
    mr_buf_init(&r->body, is_raw                 ? MR_CHUNK_GATHER_BYTES
                          : mr_login_is_asked(r) ? MR_LOGIN_BODY_BYTES_MAX
                                                 : MR_JSON_BODY_BYTES_MAX);
    set_fd_timeout(r, MR_BODY_TIMEOUT);
    if (!r->error.code) return MHD_YES;

    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    bool is_long = length && strtoull(length, NULL, 10) > DRAIN_BYTES_MAX;
    bool asks = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Expect") != NULL;
    return is_long || asks ? mr_answer_error(r) : MHD_YES;
}

/* Keeps the first piece of a raw answer until a second piece or the end comes. If the first piece
 * is the whole answer, it is sent with Content-Length. */
static void hold_first(struct mr_request *r)
{
    if (r->answer_kind != MR_ANSWER_RAW || !r->has_held || r->raw_message) return;
    if (r->held.kind != MR_REPLY_MESSAGE) return;
    mr_stream_take_raw(r, &r->held.message);
    r->has_held = false;
    look(r);
}

/* Handles the complete request. Also called when the suspended connection is resumed. */
static enum MHD_Result finish(struct mr_request *r)
{
    set_fd_timeout(r, MR_NEVER); /* from now on the client waits for the gateway */
    (void)look_for_refusal(r);
    if (r->error.code) return mr_answer_error(r);
    if (r->answer_kind == MR_ANSWER_OPENAPI) return mr_answer_openapi(r);
    if (r->answer_kind == MR_ANSWER_FILE) return mr_static_answer(r);
    if (mr_login_is_asked(r)) return mr_login_answer(r);

    look(r);
    if (!is_started(r)) {
        mr_request_start(r, false);
        if (r->error.code) return mr_answer_error(r);
        mr_request_move(r, MR_REQUEST_SENT);
    } else if (r->phase != MR_REQUEST_SENT && (r->chunks_out < MR_EXCHANGE_CHUNKS || !r->body.n)) {
        flush_upload(r, false);
        set_fd_timeout(r, MR_NEVER);
        mr_request_move(r, MR_REQUEST_SENT);
    }
    look(r);
    hold_first(r);
    bool can_answer = r->has_held || r->is_over ||
                      (r->is_open && r->x->is_stream && r->answer_kind != MR_ANSWER_RAW);
    if (can_answer) return mr_answer(r);
    mr_request_sleep(r);
    return MHD_YES;
}

static enum MHD_Result on_request(void *http, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_bytes, void **state)
{
    (void)http, (void)url, (void)version;
    struct mr_request *r = *state;
    if (r->answered) return MHD_YES;
    if (r->phase == MR_REQUEST_TARGET) return begin(r, connection, method);
    if (*upload_bytes) return take_body(r, upload, upload_bytes);
    return finish(r);
}

/* ---- beginnings and ends --------------------------------------------------------------------- */

static void free_request(struct mr_request *r)
{
    if (!r) return;
    if (r->has_held) mr_rpc_message_free(&r->held.message);
    mr_rpc_message_free(&r->raw_message);
    mr_collect_fini(&r->collect);
    mr_pb_arena_fini(&r->arena);
    mr_buf_fini(&r->out);
    mr_buf_fini(&r->body);
    mr_allowance_drop(r->http->options.allowance, &r->hold);
    mr_uri_text_fini(&r->text);
    mr_release(r->target);
    mr_release(r);
}

/* Cuts the query off, so that libmicrohttpd does not split it into a list in the connection's
 * memory. With 2,000 names that memory is full, not even an error can be answered, and the client
 * waits forever. The gateway reads the query from its own copy. `target` is const, but it points
 * into the connection's buffer, which is writable memory. */
static void hide_query(const char *target)
{
    char *query = strchr((char *)mr_unconst(target), '?');
    if (query) query[1] = 0;
}

/* libmicrohttpd does not call on_completed for a request whose headers never become complete. Such
 * a request is freed by the connection's next request, or with the connection. */
static void *on_target(void *http, const char *target, struct MHD_Connection *connection)
{
    struct mr_request *r = mr_alloc(sizeof *r);
    struct mr_socket *s = socket_of(connection);
    free_request(s->unbegun);
    s->unbegun = r;
    r->http = http;
    r->target = mr_copy_text(target);
    mr_buf_init(&r->out, JSON_BYTES_MAX);
    mr_pb_arena_init(&r->arena, ARENA_BYTES_MAX);
    hide_query(target);
    return r;
}

/* Notes that the first request was answered or that the connection is closed, so that
 * mr_bridge_drain does not wait for this connection. */
static void mark_old(const struct mr_http *h, struct mr_socket *s)
{
    if (s->is_new) mr_gauge_add(h->unanswered, -1);
    s->is_new = false;
}

static void count(struct mr_request *r, enum MHD_RequestTerminationCode why)
{
    unsigned class = why == MHD_REQUEST_TERMINATED_COMPLETED_OK ? r->status / 100 : 0;
    mr_counter_add(r->http->requests[class < 6 ? class : 0], 1);
}

static void on_completed(void *http, struct MHD_Connection *connection, void **state,
    enum MHD_RequestTerminationCode why)
{
    struct mr_request *r = *state;
    *state = NULL;
    mark_old(http, socket_of(connection));
    if (!r) return;
    socket_of(connection)->unbegun = NULL;
    if (r->connection) set_fd_timeout(r, MR_KEEP_ALIVE_TIMEOUT);
    count(r, why);
    if (is_started(r))
        mr_bridge_post(r->http->options.bridge, MR_BRIDGE_LEAVE, r->x, NULL);
    else
        mr_exchange_free(&r->x);
    free_request(r);
}

static void count_address(
    const struct mr_http *h, struct mr_socket *s, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct mr_str key = info ? mr_accept_key(info->client_addr) : mr_str_of(NULL, 0);
    if (!key.n) return;
    memcpy(s->key, key.p, key.n);
    s->key_n = key.n;
    mr_quota_add(h->quota, key);
}

static void on_connection(void *http, struct MHD_Connection *connection, void **socket,
    enum MHD_ConnectionNotificationCode what)
{
    struct mr_http *h = http;
    int fd = connection_fd(connection);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        mr_gauge_add(h->connections, 1);
        mr_fd_deadlines_set(h->options.fd_deadlines, fd, mr_clock_now() + MR_HEADERS_TIMEOUT);
        struct mr_socket *s = *socket = mr_alloc(sizeof *s);
        s->is_new = true; /* take_connection has counted the connection as new */
        count_address(h, s, connection);
        if (!mr_framing_filter_add(&s->filter, fd, h->options.is_https))
            (void)shutdown(fd, SHUT_RDWR);
        bool is_unix = !h->port;
        if (is_unix && !mr_peer_may_enter(&h->options.peers, fd, h->options.listen))
            (void)shutdown(
                /* libmicrohttpd reads the end of the stream and closes the connection */
                fd, SHUT_RDWR);
    } else {
        struct mr_socket *s = *socket;
        mark_old(h, s);
        free_request(s->unbegun);
        mr_framing_filter_remove(&s->filter, fd);
        if (s->key_n) mr_quota_remove(h->quota, mr_str_of(s->key, s->key_n));
        mr_release(s);
        mr_gauge_add(h->connections, -1);
        mr_fd_deadlines_forget(h->options.fd_deadlines, fd);
    }
}

static size_t leave_escaped(void *http, struct MHD_Connection *connection, char *text)
{
    (void)http, (void)connection;
    return strlen(text); /* nothing is decoded here: mr_uri_decode decodes each piece once */
}

struct MHD_Daemon *mr_daemon_start(struct mr_http *h, struct mr_error *e)
{
    const struct mr_http_options *o = &h->options;
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
    if (o->is_https) flags |= MHD_USE_TLS;
    struct MHD_Daemon *d = MHD_start_daemon(flags, 0, NULL, NULL, on_request, h,
        MHD_OPTION_THREAD_POOL_SIZE, o->threads, MHD_OPTION_CONNECTION_LIMIT,
        o->connections_max + o->threads * CONNECTIONS_SPARE, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(o->idle / MR_SECOND), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)MR_HTTP_CONNECTION_BYTES, MHD_OPTION_URI_LOG_CALLBACK, on_target, h,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        h, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, h,
        o->is_https ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END, mr_server_certificate_pick,
        MHD_OPTION_END);
    if (!d)
        (void)mr_fail(e, MR_EIO, "the HTTP server does not start%s",
            o->is_https ? " with TLS (--tls-cert, --tls-key)" : "");
    return d;
}
