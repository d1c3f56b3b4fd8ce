/* Server-Sent Events (html.spec.whatwg.org, 9.2). */
#pragma once

#include "base/buf.h"

/* One event; `id` and `type` may be empty. A line end in id or type is dropped; data may have any.
 */
void mr_sse_event(struct mr_buf *out, struct mr_str id, const char *type, struct mr_str data);
void mr_sse_hello(struct mr_buf *out);     /* how soon to come back when the stream breaks */
void mr_sse_heartbeat(struct mr_buf *out); /* a comment, so that both ends notice a dead peer */
