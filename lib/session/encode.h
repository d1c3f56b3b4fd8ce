/* Messages of WorkerSession as bytes: protobuf's, driven by the tables of fields.h. */
#pragma once

#include "base/buf.h"
#include "session/down.h"
#include "session/up.h"

/* Appends the message; the caller asks mr_buf_status. A text that is not UTF-8 is escaped. */
void mr_ws_encode_down(const struct mr_ws_down *from, struct mr_buf *out);
void mr_ws_encode_up(const struct mr_ws_up *from, struct mr_buf *out);
