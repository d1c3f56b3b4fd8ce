/* Encodes messages of the gRPC stream WorkerSession as protobuf, driven by the tables of
 * fields.h. */
#pragma once

#include "base/buf.h"
#include "session/down.h"
#include "session/up.h"

/* Append the message to `out`. The caller then asks mr_buf_status. A text that is not UTF-8, or has
 * a NUL, is escaped. */
void mr_ws_encode_down(const struct mr_ws_down *from, struct mr_buf *out);
void mr_ws_encode_up(const struct mr_ws_up *from, struct mr_buf *out);
