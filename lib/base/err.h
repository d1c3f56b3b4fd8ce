/* An error with its sentence, and what the table of codes (err_code.h) says of a code. */
#pragma once

#include "base/defs.h"
#include "base/err_code.h"

#define MR_ERROR_TEXT_MAX 1000 /* bytes, with the NUL */

/* An error with its sentence. Callers give one (or NULL when they do not care for words); callees
 * fill it through mr_fail. The text is valid UTF-8 without control characters. */
struct mr_error {
    int code;
    char text[MR_ERROR_TEXT_MAX];
};

/* Writes code and sentence into `e` (may be NULL) and returns `code`:
 * `return mr_fail(e, MR_EINVAL, "key \"%s\": unknown op \"%s\"", key, op);`. What is not printable
 * UTF-8 in the finished text is escaped; a text that is too long is cut at a character. */
int mr_fail(struct mr_error *e, int code, const char *fmt, ...) MR_PRINTF(3, 4);

const char *mr_err_name(int code);  /* "MR_EINVAL" */
const char *mr_err_words(int code); /* "invalid argument" */
int mr_err_grpc(int code);          /* google.rpc.Code, 0 for MR_OK */
int mr_err_http(int code);          /* HTTP status, 200 for MR_OK */
int mr_err_from_grpc(
    int grpc_status); /* nearest of ours; MR_EUNKNOWN for what is not in the table */
const char *mr_err_grpc_name(int grpc_status); /* "INVALID_ARGUMENT" */
