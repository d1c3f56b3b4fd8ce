/* What the .proto files say and protobuf-c does not keep: the methods with their streaming flags,
 * the HTTP routes, which messages are map entries, the descriptor set, the OpenAPI document. All of
 * it is generated from the descriptor set (proto/gen/); there is no second copy of any of it. */
#pragma once

#include "base/role.h"
#include "base/service.h"
#include "millrace/v1/method_ids.h"

#include <protobuf-c/protobuf-c.h>

struct mr_proto_method {
    const char *path;    /* "/millrace.v1.Jobs/Get" */
    const char *service; /* "millrace.v1.Jobs" */
    const char *name;    /* "Get" */
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
    bool client_streaming;
    bool server_streaming;
    enum mr_role role; /* that it wants of its caller */
    unsigned callers;  /* 1 << MR_SERVICE_…: which services call it by themselves */
};

/* By enum mr_method_id; MR_METHOD_COUNT of them. */
const struct mr_proto_method *mr_proto_method(enum mr_method_id id);
const struct mr_proto_method *mr_proto_method_find(struct mr_str path); /* NULL: none */
/* What a call of "/package.Service/Method" wants. Methods that are not in the table are gRPC's own
 * (health, reflection), which only look. */
enum mr_role mr_proto_role(struct mr_str path);
/* Which services call it by themselves, as bits 1 << MR_SERVICE_…: a service with a secret of its
 * own may call nothing else. */
unsigned mr_proto_callers(struct mr_str path);

/* Does this message stand for one entry of a map field (field 1 the key, field 2 the value)? A
 * repeated field of such messages is a map. */
bool mr_proto_is_map_entry(const ProtobufCMessageDescriptor *type);

enum mr_http_verb {
    MR_HTTP_GET,
    MR_HTTP_PUT,
    MR_HTTP_POST,
    MR_HTTP_DELETE,
    MR_HTTP_PATCH,
};

enum mr_proto_backend {
    MR_BACKEND_SCHEDULER,
    MR_BACKEND_OBJECTSTORE,
    MR_BACKEND_TRAINER,
};

struct mr_route_segment {
    const char *text; /* literal text, or the name of the field that is bound */
    bool is_field;    /* binds */
    bool rest;        /* binds the rest of the path: `{name=**}`; after it come literals only */
};

struct mr_route_header {
    const char *field;  /* NULL: the end of the list */
    const char *header; /* fills it, when neither path, query nor body does */
};

struct mr_route {
    enum mr_http_verb verb;
    enum mr_method_id method;
    enum mr_proto_backend backend;
    const char *path; /* as annotated: "/v1/jobs/{id}:cancel" */
    const struct mr_route_segment *segments;
    unsigned segments_count;
    const struct mr_route_header *headers; /* ends with a NULL field */
    const char *action;                    /* what follows the colon at the end; NULL: nothing */
    const char *body;                      /* field, "*", or NULL */
    bool raw_request;                      /* the body field is a google.api.HttpBody */
    bool raw_response;                     /* the response is a google.api.HttpBody */
};

const struct mr_route *mr_proto_routes(size_t *count);

/* The least and the greatest value that HTTP accepts for a number of a request. */
struct mr_proto_bound {
    const ProtobufCMessageDescriptor *message;
    const char *field;
    double min, max;
};
const struct mr_proto_bound *mr_proto_bound_find(
    const ProtobufCMessageDescriptor *message, const char *field); /* NULL: none */

/* A bytes field that holds a value as a pack: over HTTP the value stands there, under this name.
 * NULL: it is just bytes. */
struct mr_proto_value_field {
    const ProtobufCMessageDescriptor *message;
    const char *field;
    const char *shown;
};
const char *mr_proto_value_field_find(const ProtobufCMessageDescriptor *message, const char *field);

/* A serialized google.protobuf.FileDescriptorSet of everything, without comments. */
struct mr_str mr_proto_descriptor_set(void);
struct mr_str mr_proto_openapi(void); /* the text of openapi.json */
