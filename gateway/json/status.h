/* Errors as HTTP carries them: a google.rpc.Status in JSON. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* {"code":5,"message":"…","details":[…]}. `details` is a serialized google.rpc.Status or empty; of
 * its Any entries google.rpc.ErrorInfo is spelled out, others are given as type and base64. */
void mr_status_json(int code, struct mr_str message, struct mr_str details, struct mr_buf *out);
