/* Makes the answer of the API's method Profile from Redis and the scheduler's files, without a
 * running cluster. */
#pragma once

#include "cli/trace/offline.h"

#include <yyjson.h>

int mr_profile_offline(const struct mr_offline_options *o, const char *job, uint32_t steps_max,
    yyjson_doc **out, struct mr_error *e);
