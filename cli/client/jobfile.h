/* A job file: JSON, with parameters that the command line may set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "host/config/config.h"

/* Reads the file ("-": stdin) and puts the `name=value` pairs of `set` into its "params". A value
 * that is JSON keeps its type; any other value becomes a string. A name that the file does not
 * declare in "params" is refused, and the error lists the declared names. `data` is the value of
 * the parameter "data" (mr_client_data); NULL: the parameter is not set. */
int mr_jobfile_read(const char *path, const struct mr_texts *set, const char *data,
    struct mr_buf *out, struct mr_error *e);
