/* Converts JSON to a message in protobuf's wire format, guided by the message's descriptor. The
 * rules are those of proto3 JSON, but stricter: unknown and duplicate names, null, quoted numbers
 * for 32-bit fields, and numbers for enums are refused. One pass over the parsed document, with a
 * stack of fixed depth. */
#pragma once

#include "gateway/json/field.h"

/* Limit of bytes of a body that becomes one message. */
#define MR_JSON_BODY_BYTES_MAX ((size_t)4 << 20)

/* Appends the message to `wire`. A field that the path of the URL has set (`path_fields`) must not
 * be in the body as well. Errors name the field by its place in the document ("tasks[3].key"), or
 * line and column where the text is not JSON. */
int mr_json_to_wire(const ProtobufCMessageDescriptor *type, struct mr_str json,
    const struct mr_path_field *path_fields, size_t path_fields_count, struct mr_buf *wire,
    struct mr_error *e);
