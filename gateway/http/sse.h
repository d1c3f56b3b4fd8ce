/* Server-sent events (html.spec.whatwg.org, 9.2). */
#pragma once

#include "base/buf.h"

/* Writes one event; `id` and `type` may be empty. Line ends in `id` and `type` are dropped; `data`
 * may have any number of lines. */
void mr_sse_event(struct mr_buf *out, struct mr_str id, const char *type, struct mr_str data);
/* Writes the field `retry`: how long a browser waits before it reconnects to a broken stream. */
void mr_sse_hello(struct mr_buf *out);
/* Writes a comment, which clients ignore. It makes a broken connection fail on both ends. */
void mr_sse_heartbeat(struct mr_buf *out);
