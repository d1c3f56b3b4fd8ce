/* A message to JSON, by its descriptor: original names, every plain field also when it is zero,
 * messages and members of a oneof only when they are there, 64-bit integers as texts, bytes as
 * base64, enums as names, fields that hold a value (mr_proto_value_field_find) as that value. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "proto/methods.h"

/* Appends. MR_ELIMIT when it nests deeper than MR_DEPTH_MAX; `out` is then to be dropped. */
int mr_json_from_message(const ProtobufCMessage *m, struct mr_buf *out);

void mr_json_text(
    struct mr_buf *out, struct mr_str s);        /* quoted; what is not UTF-8 becomes U+FFFD */
void mr_json_real(struct mr_buf *out, double v); /* shortest form that reads back the same */
