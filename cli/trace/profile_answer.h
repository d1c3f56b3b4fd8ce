/* The profile of a job: the gateway's ProfileResponse, or the same document made without a cluster.
 */
#pragma once

#include "cli/client/client.h"
#include "cli/trace/offline.h"

struct mr_profile_source {
    const struct mr_client_options *client;
    const struct mr_offline_options *offline;
};

/* `job`: the id of a job, or of a training. `steps_max`: largest number of steps of
 * the critical path. */
int mr_profile_answer(const struct mr_profile_source *source, const char *job, uint32_t steps_max,
    yyjson_doc **out, struct mr_error *e);

#define MR_PROFILE_CLASSES_MAX 64u /* a newer cluster may have more classes than this program */

struct mr_class_time {
    const char *name; /* lent by the document */
    double seconds;
};

/* Stores each class of the member `classes` of `from` whose time is not 0, the longest time first.
 * Returns how many. */
size_t mr_profile_classes(yyjson_val *from, struct mr_class_time out[MR_PROFILE_CLASSES_MAX]);
