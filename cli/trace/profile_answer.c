#include "cli/trace/profile_answer.h"

#include "base/alloc.h"
#include "cli/trace/profile_offline.h"

#include <inttypes.h>

int mr_profile_answer(const struct mr_profile_source *source, const char *job, uint32_t steps_max,
    yyjson_doc **out, struct mr_error *e)
{
    if (mr_offline_is_wanted(source->offline))
        return mr_profile_offline(source->offline, job, steps_max, out, e);
    struct mr_client c = {0};
    MR_AUTO(mr_free_ptr) char *escaped = mr_http_escape(mr_str(job));
    int err = mr_client_open(source->client, &c, e);
    if (!err)
        err = mr_client_call(&c, "GET", (struct mr_str){0}, out, e,
            "/v1/%s/%s/profile?steps_max=%" PRIu32, *job == 't' ? "trainings" : "jobs", escaped,
            steps_max);
    mr_client_fini(&c);
    return err;
}
