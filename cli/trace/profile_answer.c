#include "cli/trace/profile_answer.h"

#include "base/alloc.h"
#include "cli/trace/profile_offline.h"

#include <inttypes.h>
#include <stdlib.h>

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

static int by_time(const void *a, const void *b)
{
    const struct mr_class_time *x = a, *y = b;
    return x->seconds > y->seconds ? -1 : x->seconds < y->seconds;
}

size_t mr_profile_classes(yyjson_val *from, struct mr_class_time out[MR_PROFILE_CLASSES_MAX])
{
    size_t at = 0, max = 0, n = 0;
    yyjson_val *classes = yyjson_obj_get(from, "classes"), *key = NULL, *value = NULL;
    yyjson_obj_foreach(classes, at, max, key, value)
    {
        const char *name = yyjson_get_str(key);
        double time = (double)mr_json_get_u64(classes, name) / 1e9;
        if (time > 0 && n < MR_PROFILE_CLASSES_MAX) out[n++] = (struct mr_class_time){name, time};
    }
    qsort(out, n, sizeof *out, by_time);
    return n;
}
