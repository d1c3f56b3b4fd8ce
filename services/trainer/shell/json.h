/* The check of JSON that callers send as a value: of a channel entry, a queue item or a score. */
#pragma once

#include "base/err.h"

#include <stddef.h>

#define MR_TRAINER_JSON_BYTES_MAX ((size_t)64 << 10)

/* JSON of at most MR_TRAINER_JSON_BYTES_MAX bytes; errors name `field`. MR_EINVAL, MR_ETOOBIG. */
int mr_trainer_check_json(const char *field, const char *text, struct mr_error *e);
