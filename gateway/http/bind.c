/* The fields of a request message come from the path, the query, headers and a JSON body of the
 * HTTP request. Each field is appended to the message in wire format. */
#include "gateway/http/bind.h"

#include "base/assert.h"
#include "base/protowire.h"
#include "gateway/json/field.h"
#include "gateway/json/json_in.h"

#define FIELDS_MAX 64

static const ProtobufCMessageDescriptor *request_of(const struct mr_match *m)
{
    return mr_proto_method(m->route->method)->request;
}

static uint64_t bit_of(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *f)
{
    mr_assert(type->n_fields <= FIELDS_MAX);
    return (uint64_t)1 << (f - type->fields);
}

static const ProtobufCFieldDescriptor *named(
    const ProtobufCMessageDescriptor *type, const char *name)
{
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(type, name);
    mr_assert(f); /* cannot be NULL: proto/gen has checked the name */
    return f;
}

static int bind_query(
    const struct mr_bind_input *in, uint64_t *seen, struct mr_buf *wire, struct mr_error *e)
{
    const struct mr_route *r = in->match->route;
    const ProtobufCMessageDescriptor *type = request_of(in->match);
    bool in_body = r->body && !strcmp(r->body, "*");
    struct mr_str rest = in->query, name, value;
    for (;;) {
        int err = mr_uri_query_next(&rest, in->text, &name, &value, e);
        if (err == MR_ENOENT) return MR_OK;
        if (err) return err;
        const ProtobufCFieldDescriptor *f = mr_field_find(type, name);
        if (!f || (r->body && !strcmp(r->body, f->name)))
            return mr_fail(e, MR_EINVAL, "the query has \"%.*s\", which is not a parameter of %s",
                (int)MR_MIN(name.n, (size_t)64), name.p, r->path);
        uint64_t bit = bit_of(type, f);
        /* The field of `{name=**}` may come in the query, even if the body has all other fields. */
        const struct mr_route_segment *last = mr_route_rest(r);
        bool left_out = last && !strcmp(last->text, f->name);
        if (in_body && !left_out)
            return mr_fail(e, MR_EINVAL, "%s belongs in the body, not in the query", f->name);
        if ((*seen & bit) && f->label != PROTOBUF_C_LABEL_REPEATED)
            return mr_fail(e, MR_EINVAL, "%s is given twice", f->name);
        err = mr_field_from_text(type, f, value, wire, e);
        if (err) return err;
        *seen |= bit;
    }
}

int mr_bind_fields(const struct mr_bind_input *in, struct mr_buf *wire, struct mr_error *e)
{
    const struct mr_match *m = in->match;
    const ProtobufCMessageDescriptor *type = request_of(m);
    uint64_t seen = 0;
    for (size_t i = 0; i < m->path_fields_count; i++) {
        const ProtobufCFieldDescriptor *f = named(type, m->path_fields[i].field);
        mr_protowire_add_bytes(wire, f->id, m->path_fields[i].value);
        seen |= bit_of(type, f);
    }
    int err = bind_query(in, &seen, wire, e);
    if (err) return err;

    const struct mr_route_segment *last = mr_route_rest(m->route);
    if (last && !(seen & bit_of(type, named(type, last->text))))
        return mr_fail(e, MR_EINVAL,
            "%s is missing: it belongs at the end of the path, or in the "
            "query as ?%s=",
            last->text, last->text);

    for (size_t i = 0; m->route->headers[i].field; i++) {
        if (!in->headers[i].value.p || !in->headers[i].value.n) continue;
        const ProtobufCFieldDescriptor *f = named(type, m->route->headers[i].field);
        /* A browser that reconnects sends the id of the last event in Last-Event-ID. The query is
         * the same as at the first connection, so an id in the query is older. */
        bool is_newer = !strcmp(m->route->headers[i].header, "Last-Event-ID");
        if ((seen & bit_of(type, f)) && !is_newer) continue;
        err = mr_field_from_text(type, f, in->headers[i].value, wire, e);
        if (err) return err;
    }
    return MR_OK;
}

int mr_bind_body(
    const struct mr_match *match, struct mr_str body, struct mr_buf *wire, struct mr_error *e)
{
    const struct mr_route *r = match->route;
    const ProtobufCMessageDescriptor *type = request_of(match);
    if (body.n == 0) return MR_OK;
    if (!r->body) return mr_fail(e, MR_EINVAL, "%s takes no body", r->path);
    if (!strcmp(r->body, "*"))
        return mr_json_to_wire(type, body, match->path_fields, match->path_fields_count, wire, e);
    const ProtobufCFieldDescriptor *f = named(type, r->body);
    size_t began = mr_protowire_begin(wire, f->id);
    int err = mr_json_to_wire(f->descriptor, body, NULL, 0, wire, e);
    mr_protowire_end(wire, began);
    return err;
}
