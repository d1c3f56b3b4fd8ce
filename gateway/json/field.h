/* One field of a protobuf message: it is found by name, and its scalar value is written in wire
 * format. The values in an HTTP request pass through this file: those of the query and of headers,
 * and, by json_in.c, those of the body. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "proto/methods.h"

/* A field of a request message whose value stands in the path of the URL. */
struct mr_path_field {
    const char *field;
    struct mr_str value; /* the value, percent-decoded */
};

/* Finds a field by its name in the proto file or by its lowerCamelCase name. NULL: there is no such
 * field. */
const ProtobufCFieldDescriptor *mr_field_find(
    const ProtobufCMessageDescriptor *type, struct mr_str name);

/* Parses `text`, and appends the field's tag and value to `wire`. In `text` an enum value is its
 * name, a bool is true, false, 1 or 0, and bytes are in base64. The error text of MR_EINVAL names
 * the field. */
int mr_field_from_text(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *f,
    struct mr_str text, struct mr_buf *wire, struct mr_error *e);

struct mr_number {
    enum { MR_NUMBER_INT, MR_NUMBER_UINT, MR_NUMBER_REAL } kind;
    int64_t i;
    uint64_t u;
    double real;
};
/* Appends a number after checking it against the field's type and the bounds that the proto file
 * declares. `tag` false: only the value, for an element of a packed field. */
int mr_field_from_number(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *f,
    struct mr_number v, bool tag, struct mr_buf *wire, struct mr_error *e);

/* Appends the value that a JSON string stands for: a string, bytes, the name of an enum value, or a
 * 64-bit number. */
int mr_field_from_quoted(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *f,
    struct mr_str text, bool tag, struct mr_buf *wire, struct mr_error *e);

void mr_field_bool(const ProtobufCFieldDescriptor *f, bool v, bool tag, struct mr_buf *wire);

bool mr_field_is_number(const ProtobufCFieldDescriptor *f); /* true for integers and floats */
/* True for a 64-bit integer, which is a string in JSON. */
bool mr_field_is_64(const ProtobufCFieldDescriptor *f);
