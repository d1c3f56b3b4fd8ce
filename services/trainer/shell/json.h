/* Checks JSON that clients send: channel entries, queue items and scores. */
#pragma once

#include "base/err.h"

#include <stddef.h>

#define MR_TRAINER_JSON_BYTES_MAX ((size_t)64 << 10)

/* Checks that the text is JSON of at most MR_TRAINER_JSON_BYTES_MAX bytes. MR_EINVAL: it is no
 * JSON. MR_ETOOBIG: it is longer. `e` names `field`. */
int mr_trainer_check_json(const char *field, const char *text, struct mr_error *e);
