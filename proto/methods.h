/* Tables that are generated from the .proto files (proto/gen/), for facts that protobuf-c does not
 * keep: methods with their streaming flags, HTTP routes, which messages are map entries, the
 * descriptor set, and the OpenAPI document. */
#pragma once

#include "base/role.h"
#include "base/service.h"
#include "millrace/v1/method_ids.h"

#include <protobuf-c/protobuf-c.h>

struct mr_proto_method {
    const char *path;    /* for example "/millrace.v1.Jobs/Get" */
    const char *service; /* for example "millrace.v1.Jobs" */
    const char *name;    /* "Get" */
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
    bool client_streaming;
    bool server_streaming;
    enum mr_role role; /* the role that a caller needs */
    /* The services that call the method for themselves and not for a user: bits 1 <<
     * MR_SERVICE_…. */
    unsigned callers;
};

/* Returns a method by its id, which is below MR_METHOD_COUNT. */
const struct mr_proto_method *mr_proto_method(enum mr_method_id id);
/* Finds a method by its path. NULL: there is no such method. */
const struct mr_proto_method *mr_proto_method_find(struct mr_str path);
/* Returns the role that a call of "/package.Service/Method" needs. Methods that are not in the
 * table belong to gRPC itself (health, reflection), and need the role of a reader. */
enum mr_role mr_proto_role(struct mr_str path);
/* Returns the services that call the method at `path` for themselves, as bits 1 << MR_SERVICE_…. A
 * service with a secret of its own may call only methods that have its bit. A method that is not in
 * the table has the bits of all services. */
unsigned mr_proto_callers(struct mr_str path);

/* True: a message of this type stands for one entry of a map field (field 1 is the key, field 2 the
 * value), so a repeated field of this type is a map. False: it is any other type. */
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
    const char *text; /* literal text, or the name of the field to which the segment is bound */
    bool is_field;    /* true: the segment is bound to a field */
    /* True: the field gets the rest of the path, as in `{name=**}`. Only literals may follow. */
    bool rest;
};

struct mr_route_header {
    const char *field; /* NULL: the end of the list */
    /* This header sets the field if path, query and body do not. The header Last-Event-ID is an
     * exception: it takes precedence over the query. */
    const char *header;
};

struct mr_route {
    enum mr_http_verb verb;
    enum mr_method_id method;
    enum mr_proto_backend backend;
    const char *path; /* the path of the annotation, for example "/v1/jobs/{id}:cancel" */
    const struct mr_route_segment *segments;
    unsigned segments_count;
    const struct mr_route_header *headers; /* in the last element the member `field` is NULL */
    /* The text after the colon at the end of the path. NULL: the path has none. */
    const char *action;
    /* Name of the field that is the body. "*": the whole request is the body. NULL: no body. */
    const char *body;
    bool raw_request;  /* true: the field of the body is a google.api.HttpBody */
    bool raw_response; /* true: the response is a google.api.HttpBody */
};

const struct mr_route *mr_proto_routes(size_t *count);

/* The least and the greatest value that HTTP accepts for a number in a request. */
struct mr_proto_bound {
    const ProtobufCMessageDescriptor *message;
    const char *field;
    double min, max;
};
/* Returns the bounds of a field. NULL: the field has no bounds. */
const struct mr_proto_bound *mr_proto_bound_find(
    const ProtobufCMessageDescriptor *message, const char *field);

/* A bytes field that holds a value as a pack. Over HTTP the value itself has the name `shown`. */
struct mr_proto_value_field {
    const ProtobufCMessageDescriptor *message;
    const char *field;
    const char *shown;
};
/* Returns the name `shown` of a field that holds a value. NULL: the field holds no value. */
const char *mr_proto_value_field_find(const ProtobufCMessageDescriptor *message, const char *field);

/* Returns a serialized google.protobuf.FileDescriptorSet of all files, without comments. */
struct mr_str mr_proto_descriptor_set(void);
struct mr_str mr_proto_openapi(void); /* the text of openapi.json */
