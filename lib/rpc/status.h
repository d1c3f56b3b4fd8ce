/* Translates between struct mr_error and a gRPC status: code, sentence, google.rpc.Status details.
 */
#pragma once

#include "base/buf.h"
#include "rpc/rpc.h"

/* Makes the status of an error. The texts of the status point into `e` and `details`; `details` is
 * cleared first and may be NULL. Where several MR_E… codes have one gRPC code, the MR_E… code goes
 * into the details as google.rpc.ErrorInfo (reason "MR_ETOOBIG", domain "millrace"). */
struct mr_rpc_status mr_rpc_status_of(const struct mr_error *e, struct mr_buf *details);

/* Returns the error of a status: MR_OK for code 0, otherwise an MR_E… code. `e` (may be NULL)
 * receives the sentence of an error. */
int mr_rpc_status_error(const struct mr_rpc_status *status, struct mr_error *e);

/* Make the details, a google.rpc.Status: mr_rpc_details_begin writes its code and message, and each
 * mr_rpc_details_add appends one google.protobuf.Any. */
void mr_rpc_details_begin(struct mr_buf *b, int code, struct mr_str message);
void mr_rpc_details_add(struct mr_buf *b, struct mr_str type_url, struct mr_str value);
