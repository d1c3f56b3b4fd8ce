/* The answer of Profile, made from Redis and the scheduler's files instead of asking the cluster.
 */
#pragma once

#include "cli/trace/offline.h"

#include <yyjson.h>

int mr_profile_offline(const struct mr_offline_options *o, const char *job, uint32_t steps_max,
    yyjson_doc **out, struct mr_error *e);
