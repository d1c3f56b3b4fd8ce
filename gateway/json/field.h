/* One field of a message: found by name, and its scalar value turned into wire bytes from a text
 * (path, query, header). Every field that HTTP fills passes through here or json_in.c. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "proto/methods.h"

/* By the original name or the lowerCamelCase one; NULL: none. */
const ProtobufCFieldDescriptor *mr_field_find(
    const ProtobufCMessageDescriptor *type, struct mr_str name);

/* Appends tag and value. Enums by name or number, bools as true/false/1/0, bytes as base64.
 * MR_EINVAL names the field. */
int mr_field_from_text(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *f,
    struct mr_str text, struct mr_buf *wire, struct mr_error *e);

/* A number that is already one, checked against the field's type and bounds. `tag`: write it. */
struct mr_number {
    enum { MR_NUMBER_INT, MR_NUMBER_UINT, MR_NUMBER_REAL } kind;
    int64_t i;
    uint64_t u;
    double real;
};
int mr_field_from_number(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *f,
    struct mr_number v, bool tag, struct mr_buf *wire, struct mr_error *e);

/* Text as string, bytes, enum name or 64-bit number: what JSON writes between quotes. */
int mr_field_from_quoted(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *f,
    struct mr_str text, bool tag, struct mr_buf *wire, struct mr_error *e);

void mr_field_bool(const ProtobufCFieldDescriptor *f, bool v, bool tag, struct mr_buf *wire);

bool mr_field_is_number(const ProtobufCFieldDescriptor *f); /* integers and floats */
bool mr_field_is_64(const ProtobufCFieldDescriptor *f);     /* a text in JSON */
