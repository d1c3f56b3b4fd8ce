/* Messages of WorkerSession from bytes: protobuf's, driven by the tables of fields.h. Fields that
 * are not in a table are skipped. Texts and bytes of the result point into the message, arrays into
 * the memory that the caller gives. The columns of the result belong together: the decoder compares
 * their lengths, then asks mr_ws_down_check or mr_ws_up_check. */
#pragma once

#include "session/down.h"
#include "session/memory.h"
#include "session/up.h"

/* MR_EFORMAT: the bytes are no such message, or columns do not belong together. MR_ELIMIT: the
 * message needs more than m->bytes_max. Of mr_ws_decode_up also what mr_ws_up_check returns. */
int mr_ws_decode_down(
    struct mr_str bytes, const struct mr_ws_memory *m, struct mr_ws_down *out, struct mr_error *e);
int mr_ws_decode_up(
    struct mr_str bytes, const struct mr_ws_memory *m, struct mr_ws_up *out, struct mr_error *e);
