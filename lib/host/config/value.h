/* Parses numbers, sizes, durations and booleans as people write them in option values. */
#pragma once

#include "base/str.h"
#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

/* Parse a value of one kind. MR_EINVAL: the text is not a value of this kind, or is out of
 * range. */
int mr_config_parse_u64(struct mr_str text, uint64_t *out); /* "12", "1_000" */
/* For example "512", "64KiB", "1.5GB". */
int mr_config_parse_bytes(struct mr_str text, uint64_t *out);
int mr_config_parse_duration(struct mr_str text, mr_duration *out); /* "250us", "1.5s", "5m" */
int mr_config_parse_bool(struct mr_str text, bool *out); /* for example "yes", "no", "true", "0" */
