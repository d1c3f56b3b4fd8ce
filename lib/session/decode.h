/* Decodes messages of the gRPC stream WorkerSession from protobuf, driven by the tables of
 * fields.h. Fields that are not in a table are skipped. Texts and byte strings of the result point
 * into the message. Arrays of the result are in the memory that the caller gives. The columns of
 * the result belong together: the decoder compares their lengths, then calls mr_ws_down_check or
 * mr_ws_up_check. */
#pragma once

#include "session/down.h"
#include "session/memory.h"
#include "session/up.h"

/* Decode a message into `*out`. MR_EFORMAT: the bytes are malformed, or columns do not belong
 * together. MR_ELIMIT: the message needs more than m->bytes_max. mr_ws_decode_up also returns the
 * errors of mr_ws_up_check. */
int mr_ws_decode_down(
    struct mr_str bytes, const struct mr_ws_memory *m, struct mr_ws_down *out, struct mr_error *e);
int mr_ws_decode_up(
    struct mr_str bytes, const struct mr_ws_memory *m, struct mr_ws_up *out, struct mr_error *e);
