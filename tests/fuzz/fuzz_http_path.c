/* Takes a request target and, after a line end, the value of a header. The target is split, matched
 * with a route and decoded; then target and header are bound to fields of the request. Accepted
 * fields must give a message of the method's request type. */
#include "base/assert.h"
#include "gateway/http/bind.h"
#include "rpc/util/pb.h"

#define BYTES_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void bind_and_read(
    const struct mr_match *m, struct mr_str query, struct mr_str header, struct mr_uri_text *text)
{
    struct mr_bind_header headers[MR_BIND_HEADERS_MAX] = {{{0}}};
    headers[0].value = headers[1].value = header;
    struct mr_bind_input in = {m, query, headers, text};
    struct mr_buf wire;
    struct mr_error e;
    struct mr_pb_arena arena;
    mr_buf_init(&wire, BYTES_MAX);
    mr_pb_arena_init(&arena, BYTES_MAX * 64);
    int err = mr_bind_fields(&in, &wire, &e);
    mr_assert(!err || e.text[0]);
    if (!err)
        mr_assert(mr_pb_unpack(
            mr_proto_method(m->route->method)->request, mr_buf_str(&wire), &arena, &e));
    mr_pb_arena_fini(&arena);
    mr_buf_fini(&wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 65536) return 0;
    struct mr_str target = mr_str_of(data, size), header = mr_str_of("", 0);
    const char *line = size ? memchr(target.p, '\n', size) : NULL;
    if (line) {
        header = mr_str_of(line + 1, size - (size_t)(line - target.p) - 1);
        target.n = (size_t)(line - target.p);
    }
    struct mr_uri uri;
    if (mr_uri_split(target, &uri, NULL)) return 0;
    size_t count;
    const struct mr_route *routes = mr_proto_routes(&count);
    for (int verb = MR_HTTP_GET; verb <= MR_HTTP_PATCH; verb++) {
        struct mr_uri_text text;
        struct mr_match m;
        struct mr_error e;
        unsigned verbs;
        mr_uri_text_init(&text, target.n);
        if (!mr_route_match(
                routes, count, (enum mr_http_verb)verb, uri.path, &text, &m, &verbs, &e))
            bind_and_read(&m, uri.query, header, &text);
        else
            mr_assert(e.text[0]);
        mr_uri_text_fini(&text);
    }
    return 0;
}
