/* Checks JSON that clients send: channel entries, queue items and scores. */
#pragma once

#include "base/err.h"

#include <stddef.h>

#define MR_TRAINER_JSON_BYTES_MAX ((size_t)64 << 10)

/* The text must be JSON of at most MR_TRAINER_JSON_BYTES_MAX bytes. MR_EINVAL, MR_ETOOBIG; `e`
 * names `field`. */
int mr_trainer_check_json(const char *field, const char *text, struct mr_error *e);
