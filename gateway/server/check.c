/* Everything that is decided when the headers have come: which method a request is for, whether the
 * user may call it, the kind of its answer, and the fields that the body does not set. */
#include "gateway/server/internal.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/protowire.h"
#include "gateway/json/json_in.h"
#include "gateway/server/login.h"
#include "gateway/http/login_cookie.h"
#include "gateway/http/media.h"
#include "gateway/http/pages.h"

#include <stdlib.h>

#define HTTP_BODY_TYPE 1 /* number of the field google.api.HttpBody.content_type */
#define HTTP_BODY_DATA 2
#define OBJECT_OFFSET 4 /* GetObjectRequest */
#define OBJECT_BYTES_MAX 5

static const struct mr_token_holder everyone = {"local", MR_ROLE_ADMIN};

static struct mr_str header(const struct mr_request *r, const char *name)
{
    return mr_str(MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name));
}

/* ---- origin and user ------------------------------------------------------------------------- */

/* True: the request is a probe, which needs no check of the header Host. Orchestrators probe
 * /healthz of a container by its IP address, which --allow-host cannot list in advance. /healthz
 * changes nothing, and any page may read its answer. */
static bool is_probe(const struct mr_request *r, const char *method)
{
    bool is_read = !strcmp(method, "GET") || !strcmp(method, "HEAD");
    return is_read && !strcmp(r->target, "/healthz");
}

static int check_origin(struct mr_request *r, const char *method, struct mr_error *e)
{
    const struct mr_http *h = r->http;
    struct mr_str host = header(r, "Host");
    if (!host.p) return mr_fail(e, MR_EINVAL, "the header Host is missing");
    int err = MR_OK;
    if (!is_probe(r, method))
        err = mr_origin_check_host(host, (const char *const *)h->hosts, h->hosts_count, e);
    if (err) return err;
    return mr_origin_check(header(r, "Origin"), host, e);
}

static int check_token(struct mr_request *r, struct mr_error *e)
{
    r->user = everyone;
    bool is_open_to_all = r->answer_kind == MR_ANSWER_HEALTH ||
                          r->answer_kind == MR_ANSWER_OPENAPI || r->answer_kind == MR_ANSWER_FILE ||
                          mr_login_is_open(r);
    if (!r->http->options.tokens || is_open_to_all) return MR_OK;
    int err = mr_login_identity(r, e);
    if (err || !r->match.route) return err;
    /* The service checks the role, too. This check refuses a call before the client sends the
     * body. */
    enum mr_role wanted = mr_proto_method(r->match.route->method)->role;
    if (r->user.role >= wanted) return MR_OK;
    return mr_fail(e, MR_EPERM, "%s wants the role %s; \"%s\" is %s", r->match.route->path,
        mr_role_name(wanted), r->user.name, mr_role_name(r->user.role));
}

/* ---- which method ------------------------------------------------------------------------- */

static bool find_own(struct mr_request *r)
{
    static const struct {
        const char *path;
        enum mr_answer_kind kind;
    } own[] = {
        {"/healthz", MR_ANSWER_HEALTH},
        {"/metrics", MR_ANSWER_METRICS},
        {"/openapi.json", MR_ANSWER_OPENAPI},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(own); i++) {
        if (!mr_str_eq(r->uri.path, mr_str(own[i].path))) continue;
        r->answer_kind = own[i].kind;
        return true;
    }
    bool is_api = r->uri.path.n >= 4 && !memcmp(r->uri.path.p, "/v1/", 4);
    r->answer_kind = is_api ? MR_ANSWER_JSON : MR_ANSWER_FILE;
    return !is_api;
}

static int find(struct mr_request *r, const char *method, struct mr_error *e)
{
    int err = mr_uri_split(mr_str(r->target), &r->uri, e);
    if (err) return err;
    mr_uri_text_init(&r->text, r->uri.path.n + r->uri.query.n);
    r->is_head = !strcmp(method, "HEAD");
    bool is_known = !mr_http_verb_parse(r->is_head ? "GET" : method, &r->verb);
    if (mr_login_find(r)) {
        if (is_known && r->allow >> r->verb & 1) return MR_OK;
        return mr_fail(
            e, MR_EMETHOD, "%.32s is not possible here; the header Allow says what is", method);
    }
    if (find_own(r)) {
        if (is_known && r->verb == MR_HTTP_GET) return MR_OK;
        r->allow = 1u << MR_HTTP_GET;
        return mr_fail(e, MR_EMETHOD, "%.32s is not possible here; GET is", method);
    }
    size_t count;
    const struct mr_route *routes = mr_proto_routes(&count);
    err = mr_route_match(routes, count, is_known ? r->verb : MR_HTTP_GET, r->uri.path, &r->text,
        &r->match, &r->allow, e);
    if ((err && err != MR_EMETHOD) || is_known) return err;
    r->match.route = NULL;
    return mr_fail(
        e, MR_EMETHOD, "%.32s is not possible here; the header Allow says what is", method);
}

/* True: the request asks for the results of a job. These come as a stream that ends, unlike a
 * stream of events. */
static bool is_collected(const struct mr_request *r)
{
    return r->match.route && r->match.route->method == MR_METHOD_JOBS_RESULTS;
}

static int choose_answer(struct mr_request *r, struct mr_error *e)
{
    static const char *const json[] = {"application/json"};
    static const char *const events[] = {"text/event-stream", "application/x-ndjson"};
    static const char *const all[] = {
        "application/json", "text/event-stream", "application/x-ndjson"};
    static const enum mr_answer_kind all_kinds[] = {
        MR_ANSWER_COLLECTED, MR_ANSWER_EVENTS, MR_ANSWER_LINES};

    const struct mr_proto_method *m = mr_proto_method(r->match.route->method);
    /* For a raw response (google.api.HttpBody) the service chooses the content type. */
    if (r->match.route->raw_response) {
        r->answer_kind = MR_ANSWER_RAW;
        return MR_OK;
    }
    struct mr_str accept = header(r, "Accept");
    if (!m->server_streaming) {
        r->answer_kind = MR_ANSWER_JSON;
        if (mr_media_pick(accept, json, 1) >= 0) return MR_OK;
        return mr_fail(e, MR_EACCEPT, "the answer is application/json, which Accept excludes");
    }
    int picked = is_collected(r) ? mr_media_pick(accept, all, MR_ARRAY_LEN(all))
                                 : mr_media_pick(accept, events, MR_ARRAY_LEN(events));
    if (picked < 0)
        return mr_fail(e, MR_EACCEPT,
            "the answer can be %stext/event-stream or "
            "application/x-ndjson, and Accept excludes them",
            is_collected(r) ? "application/json, " : "");
    r->answer_kind = is_collected(r) ? all_kinds[picked] : all_kinds[picked + 1];
    return MR_OK;
}

/* ---- the body to come --------------------------------------------------------------------- */

static bool has_body(const struct mr_request *r, uint64_t *bytes, bool *is_known)
{
    struct mr_str length = header(r, "Content-Length");
    *is_known = length.p != NULL;
    *bytes = length.p ? strtoull(length.p, NULL, 10) : 0;
    return *bytes > 0 || header(r, "Transfer-Encoding").p != NULL;
}

/* True: the body is JSON that goes to its service unread: a graph, or the document of a
 * training. */
static bool is_document(const struct mr_route *route)
{
    return route->method == MR_METHOD_JOBS_SUBMIT || route->method == MR_METHOD_TRAININGS_START;
}

uint64_t mr_request_body_bytes_max(const struct mr_route *route)
{
    if (!route->raw_request) return MR_JSON_BODY_BYTES_MAX;
    if (route->method == MR_METHOD_TRAININGS_START) return MR_TRAINING_BODY_BYTES_MAX;
    return route->method == MR_METHOD_JOBS_SUBMIT ? MR_JOB_BODY_BYTES_MAX : MR_OBJECT_BYTES_MAX;
}

static int check_type(struct mr_request *r, struct mr_error *e)
{
    static const char *const forms[] = {
        "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"};
    const struct mr_route *route = r->match.route;
    struct mr_str type = r->content_type;
    bool wants_json = !route->raw_request || is_document(route);
    if (wants_json && mr_media_is(type, "application/json")) return MR_OK;
    if (wants_json)
        return mr_fail(e, MR_EMEDIA,
            "the body is %s%.*s%s; send JSON with the header "
            "\"Content-Type: application/json\"",
            type.n ? "\"" : "of no type", (int)MR_MIN(type.n, (size_t)100), type.n ? type.p : "",
            type.n ? "\"" : "");
    if (!type.n)
        return mr_fail(e, MR_EMEDIA,
            "the header Content-Type is missing: it says how to read the "
            "body, e.g. application/x-npy");
    for (size_t i = 0; i < MR_ARRAY_LEN(forms); i++)
        if (mr_media_is(type, forms[i]))
            return mr_fail(e, MR_EMEDIA,
                "%s is not accepted as Content-Type; say what the body is, e.g. "
                "application/x-npy, application/octet-stream or, of a text, "
                "application/vnd.millrace.text",
                forms[i]);
    return MR_OK;
}

static int check_login_body(struct mr_request *r, uint64_t bytes, struct mr_error *e)
{
    if (bytes > MR_LOGIN_BODY_BYTES_MAX)
        return mr_fail(e, MR_ETOOBIG, "the body has %llu bytes; at most %d are accepted",
            (unsigned long long)bytes, MR_LOGIN_BODY_BYTES_MAX);
    if (mr_media_is(header(r, "Content-Type"), "application/json")) return MR_OK;
    return mr_fail(e, MR_EMEDIA, "send JSON with the header \"Content-Type: application/json\"");
}

static int check_body(struct mr_request *r, struct mr_error *e)
{
    uint64_t bytes;
    bool is_known;
    bool there = has_body(r, &bytes, &is_known);
    const struct mr_route *route = r->match.route;
    if (there && r->answer_kind == MR_ANSWER_LOGIN && r->verb == MR_HTTP_POST)
        return check_login_body(r, bytes, e);
    if (there && (!route || !route->body))
        return mr_fail(e, MR_EINVAL, "%s takes no body", route ? route->path : "this address");
    if (!route || (!there && !route->raw_request)) return MR_OK;
    r->content_type = header(r, "Content-Type");
    uint64_t max = mr_request_body_bytes_max(route);
    if (is_known && bytes > max)
        return mr_fail(e, MR_ETOOBIG, "the body has %llu bytes; at most %llu are accepted",
            (unsigned long long)bytes, (unsigned long long)max);
    if (is_document(route) && !there)
        return mr_fail(e, MR_EINVAL, "the body is empty; it has to be %s in JSON",
            route->method == MR_METHOD_JOBS_SUBMIT ? "a graph" : "the description of a training");
    return check_type(r, e);
}

static int bind_headers(struct mr_request *r, struct mr_error *e)
{
    struct mr_bind_header headers[MR_BIND_HEADERS_MAX] = {{{0}}};
    const struct mr_route_header *wanted = r->match.route->headers;
    for (size_t i = 0; wanted[i].field && i < MR_BIND_HEADERS_MAX; i++) {
        headers[i].value = header(r, wanted[i].header);
        /* A media range that accepts every type means the same as an absent header. */
        if (!strcmp(wanted[i].field, "accept") && mr_str_eq(headers[i].value, MR_STR("*/*")))
            headers[i].value = mr_str_of(NULL, 0);
    }
    struct mr_bind_input in = {&r->match, r->uri.query, headers, &r->text};
    return mr_bind_fields(&in, &r->x->request, e);
}

static bool names_bytes(const struct mr_buf *get_object)
{
    struct mr_protowire_reader reader = mr_protowire_read(mr_buf_str(get_object));
    struct mr_protowire_field f;
    while (!mr_protowire_next(&reader, &f))
        if ((f.number == OBJECT_OFFSET || f.number == OBJECT_BYTES_MAX) && f.value) return true;
    return false;
}

/* Reads the header Range. The object store receives the range, too, so that it sends no other
 * bytes. With the header If-Range the store does not receive it, because If-Range has to be
 * compared with the store's first message. */
static void read_range(struct mr_request *r)
{
    struct mr_str range = header(r, "Range");
    r->has_range =
        r->answer_kind == MR_ANSWER_RAW && !r->is_head && mr_range_parse(range, &r->range);
    bool is_object = r->match.route && r->match.route->method == MR_METHOD_OBJECTS_GET;
    r->is_piece = is_object && names_bytes(&r->x->request);
    if (!r->has_range || !is_object || r->is_piece) return;
    if (header(r, "If-Range").p || r->range.from > INT64_MAX) return;
    uint64_t from = r->range.from;
    uint64_t zigzag = r->range.is_suffix && from ? 2 * from - 1 : 2 * from;
    if (r->range.is_suffix && !from) return;
    mr_protowire_add_varint(&r->x->request, OBJECT_OFFSET, zigzag);
    if (!r->range.is_suffix && r->range.to != UINT64_MAX)
        mr_protowire_add_varint(&r->x->request, OBJECT_BYTES_MAX, r->range.to - from + 1);
}

/* Returns the number of the request's field `wait_s`. 0: the request has no such field. */
static uint32_t wait_field(const struct mr_proto_method *m)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field_by_name(m->request, "wait_s");
    return f && f->type == PROTOBUF_C_TYPE_DOUBLE ? f->id : 0;
}

static mr_duration timeout_of(const struct mr_request *r)
{
    const struct mr_proto_method *m = mr_proto_method(r->match.route->method);
    if (m->server_streaming || m->client_streaming) return 0;
    return r->x->wait_field ? 3660 * MR_SECOND : 60 * MR_SECOND;
}

static uint32_t text_field(const ProtobufCMessageDescriptor *type, const char *name)
{
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(type, name);
    bool is_text = f && f->type == PROTOBUF_C_TYPE_STRING && f->label != PROTOBUF_C_LABEL_REPEATED;
    return is_text ? f->id : 0;
}

static void prepare_resume(struct mr_exchange *x)
{
    uint32_t id = text_field(x->method->response, "event_id");
    x->event_field = id ? id : text_field(x->method->response, "id");
    x->has_states = x->is_stream && !x->method->request->n_fields;
    x->resume_field = x->event_field ? text_field(x->method->request, "last_event_id") : 0;
}

static void prepare(struct mr_request *r)
{
    struct mr_exchange *x = r->x;
    const struct mr_route *route = r->match.route;
    x->backend = route ? route->backend : MR_BACKEND_SCHEDULER;
    x->method = mr_proto_method(route ? route->method : MR_METHOD_CLUSTER_INFO);
    x->is_stream = x->method->server_streaming;
    x->is_metrics = r->answer_kind == MR_ANSWER_METRICS;
    x->is_events = r->answer_kind == MR_ANSWER_EVENTS ||
                   (r->answer_kind == MR_ANSWER_LINES && !is_collected(r));
    x->wants_heartbeats = r->answer_kind == MR_ANSWER_EVENTS;
    x->wait_field = wait_field(x->method);
    x->may_repeat = route && route->verb == MR_HTTP_GET && x->wait_field;
    x->timeout = route ? timeout_of(r) : 2 * MR_SECOND;
    x->user = r->user;
    if (r->answer_kind == MR_ANSWER_EVENTS) prepare_resume(x);
}

void mr_request_check(struct mr_request *r, const char *method)
{
    struct mr_error *e = &r->error;
    int err = check_origin(r, method, e);
    if (!err) err = find(r, method, e);
    if (!err) err = check_token(r, e);
    if (!err) err = check_body(r, e);
    bool is_own = r->answer_kind == MR_ANSWER_OPENAPI || r->answer_kind == MR_ANSWER_FILE ||
                  mr_login_is_asked(r);
    if (err || is_own) return;
    if (r->match.route) err = choose_answer(r, e);
    if (err) return;
    r->x = mr_exchange_new();
    prepare(r);
    if (r->match.route) err = bind_headers(r, e);
    if (!err) read_range(r);
    if (!err && r->match.route && r->match.route->method == MR_METHOD_OBJECTS_LIST) {
        r->x->of_one_store = true;
        r->x->store = mr_pages_begin(&r->x->request);
    }
    if (!err && r->match.route && r->match.route->method == MR_METHOD_JOBS_RESULTS) {
        const ProtobufCFieldDescriptor *json = protobuf_c_message_descriptor_get_field_by_name(
            r->x->method->request, "json"); /* over HTTP the answers are always JSON */
        mr_protowire_add_varint(&r->x->request, json->id, 1);
    }
}

void mr_request_start(struct mr_request *r, bool more)
{
    struct mr_exchange *x = r->x;
    const struct mr_route *route = r->match.route;
    int err = MR_OK;
    if (route && route->raw_request) {
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field_by_name(x->method->request, route->body);
        size_t began = mr_protowire_begin(&x->request, f->id);
        mr_protowire_add_bytes(&x->request, HTTP_BODY_TYPE, r->content_type);
        mr_protowire_add_bytes(&x->request, HTTP_BODY_DATA, mr_buf_str(&r->body));
        mr_protowire_end(&x->request, began);
    } else if (route) {
        err = mr_bind_body(&r->match, mr_buf_str(&r->body), &x->request, &r->error);
    }
    if (!err && mr_buf_status(&x->request))
        err = mr_fail(
            &r->error, MR_ETOOBIG, "the request is larger than %zu bytes", x->request.bytes_max);
    mr_buf_clear(&r->body);
    if (err) return;
    x->more = more;
    mr_request_move(r, MR_REQUEST_STARTED);
    mr_bridge_post(r->http->options.bridge, MR_BRIDGE_START, x, NULL);
}
