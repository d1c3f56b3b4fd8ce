/* JSON to a message in wire format, by its descriptor (proto3 JSON, stricter: unknown and duplicate
 * names, null, and numbers in quotes for 32-bit fields are refused). One pass over the parsed
 * document with a stack of fixed depth. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "gateway/http/route.h"

#define MR_JSON_BODY_BYTES_MAX ((size_t)4 << 20) /* one transcoded body */

/* Appends the message. `bound` fields were given in the path and must not come again. Errors name
 * the field by its path ("tasks[3].key") or line and column of malformed JSON. */
int mr_json_to_wire(const ProtobufCMessageDescriptor *type, struct mr_str json,
    const struct mr_bound *bound, size_t bound_count, struct mr_buf *wire, struct mr_error *e);
