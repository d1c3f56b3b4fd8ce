/* The table of error codes: each code with its gRPC status, its HTTP status and its words. Codes
 * are negative, so `if (err) return err;` works for every function. Plug-ins include this header,
 * so this header declares constants and no functions. */
#pragma once

/*        name         value  gRPC  HTTP  words */
#define MR_ERRORS(X)                                                                               \
    X(MR_ECANCELED, -1, 1, 499, "cancelled")                                                       \
    X(MR_EUNKNOWN, -2, 2, 500, "unknown error")                                                    \
    X(MR_EINVAL, -3, 3, 400, "invalid argument")                                                   \
    X(MR_ETIMEOUT, -4, 4, 504, "deadline exceeded")                                                \
    X(MR_ENOENT, -5, 5, 404, "not found")                                                          \
    X(MR_EEXIST, -6, 6, 409, "already exists")                                                     \
    X(MR_EPERM, -7, 7, 403, "permission denied")                                                   \
    X(MR_ELIMIT, -8, 8, 429, "resource exhausted")                                                 \
    X(MR_ESTATE, -9, 9, 400, "failed precondition")                                                \
    X(MR_EABORTED, -10, 10, 409, "aborted")                                                        \
    X(MR_ERANGE, -11, 11, 400, "out of range")                                                     \
    X(MR_EUNIMPL, -12, 12, 501, "unimplemented")                                                   \
    X(MR_EINTERNAL, -13, 13, 500, "internal error")                                                \
    X(MR_EAWAY, -14, 14, 503, "unavailable")                                                       \
    X(MR_ELOST, -15, 15, 500, "data loss")                                                         \
    X(MR_EAUTH, -16, 16, 401, "unauthenticated")                                                   \
    X(MR_ETOOBIG, -17, 8, 413, "too large")                                                        \
    X(MR_EMEDIA, -18, 3, 415, "unsupported media type")                                            \
    X(MR_EACCEPT, -19, 3, 406, "not acceptable")                                                   \
    X(MR_EMETHOD, -20, 12, 405, "method not allowed")                                              \
    X(MR_EFORMAT, -21, 3, 400, "malformed data")                                                   \
    X(MR_EIO, -22, 14, 503, "input/output error")                                                  \
    X(MR_EAGAIN, -23, 14, 503, "try again")                                                        \
    X(MR_EDISKFULL, -24, 8, 507, "no space left on the disk")

enum {
    MR_OK = 0,
#define MR_ROW(name, value, grpc, http, words) name = value,
    MR_ERRORS(MR_ROW)
#undef MR_ROW
};
