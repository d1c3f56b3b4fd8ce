/* struct mr_error: an error code with a sentence for the user. Functions that look a code up in the
 * table of error codes (err_code.h). */
#pragma once

#include "base/defs.h"
#include "base/err_code.h"

#define MR_ERROR_TEXT_MAX 1000 /* bytes, including the NUL */

/* An error code with a sentence. The caller provides the struct, or NULL if it does not want the
 * sentence; the called function fills it with mr_fail. The text is valid UTF-8 without control
 * characters. */
struct mr_error {
    int code;
    char text[MR_ERROR_TEXT_MAX];
};

/* Writes the code and the formatted sentence into `e` (may be NULL) and returns `code`: `return
 * mr_fail(e, MR_EINVAL, "key \"%s\": unknown op \"%s\"", key, op);`. Bytes of the sentence that are
 * not printable UTF-8 are escaped. A sentence that is too long is cut between two characters. */
int mr_fail(struct mr_error *e, int code, const char *fmt, ...) MR_PRINTF(3, 4);

const char *mr_err_name(int code);  /* for example "MR_EINVAL" */
const char *mr_err_words(int code); /* for example "invalid argument" */
int mr_err_grpc(int code);          /* the number of google.rpc.Code; 0: MR_OK */
int mr_err_http(int code);          /* the HTTP status; 200: MR_OK */
int mr_err_from_grpc(
    int grpc_status); /* our code for a gRPC status; MR_EUNKNOWN if the table has none */
