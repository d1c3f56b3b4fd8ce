/* A job file: JSON, with parameters that the command line may set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "host/config/config.h"

/* Reads the file ("-": stdin) and puts `name=value` settings into its "params" (a value that is
 * JSON keeps its type, anything else is a text). A setting that the file does not declare is
 * refused, naming those it does. `data` (may be NULL) is the text for "data": a path as the
 * cluster knows it (mr_client_data). */
int mr_jobfile_read(const char *path, const struct mr_texts *set, const char *data,
    struct mr_buf *out, struct mr_error *e);
