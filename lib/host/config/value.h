/* Parses numbers, sizes, durations and booleans as people write them in option values. */
#pragma once

#include "base/str.h"
#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

/* MR_EINVAL: the text is not a value of this kind, or out of range. */
int mr_config_parse_u64(struct mr_str text, uint64_t *out);         /* "12", "1_000" */
int mr_config_parse_bytes(struct mr_str text, uint64_t *out);       /* "512", "64KiB", "1.5GB" */
int mr_config_parse_duration(struct mr_str text, mr_duration *out); /* "250us", "1.5s", "5m" */
int mr_config_parse_bool(struct mr_str text, bool *out);            /* "yes", "no", "true", "0" */
