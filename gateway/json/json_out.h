/* Converts a protobuf message to JSON, guided by its descriptor. Fields have the names of the proto
 * file. A scalar field is always written, also when it is zero; a message or a member of a oneof
 * only when it is set. 64-bit integers and bytes (base64) become strings, enums their names. A
 * bytes field that holds a value in millrace's encoding becomes that value
 * (mr_proto_value_field_find). */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "proto/methods.h"

/* Appends the message. MR_ELIMIT: the message nests deeper than MR_DEPTH_MAX, and the text that was
 * appended to `out` is not a whole document. */
int mr_json_from_message(const ProtobufCMessage *m, struct mr_buf *out);

/* Appends `s` in quotes. Bytes that are not UTF-8 become U+FFFD. */
void mr_json_text(struct mr_buf *out, struct mr_str s);
/* Writes the shortest text that reads back as the same number. */
void mr_json_real(struct mr_buf *out, double v);
