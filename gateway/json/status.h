/* Errors as HTTP carries them: a google.rpc.Status in JSON. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Appends {"code":5,"message":"…","details":[…]}. `details` is a serialized google.rpc.Status, or
 * empty. An ErrorInfo among its details is written with its fields. Any other detail is written as
 * its type and its bytes in base64. */
void mr_status_json(int code, struct mr_str message, struct mr_str details, struct mr_buf *out);
