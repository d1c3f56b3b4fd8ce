#include "cli/trace/offline.h"

#include "base/alloc.h"
#include "cli/client/paths.h"
#include "cli/trace/redis_copy.h"
#include "host/os/file.h"

bool mr_offline_is_wanted(const struct mr_offline_options *o)
{
    return o->offline || o->redis;
}

int mr_offline_open(const struct mr_offline_options *o, const char *job_text, mr_job_id *job,
    struct mr_history **out, struct mr_error *e)
{
    struct mr_last_cluster last = {0};
    struct mr_buf password;
    int err = mr_job_id_parse(mr_str(job_text), job);
    if (err) return mr_fail(e, err, "\"%.64s\" is no job id (they look like j1kq07ab-7)", job_text);
    if (!o->dir && !o->redis) err = mr_last_cluster_read(&last, e);
    const char *dir = o->dir ? o->dir : last.directory;
    MR_AUTO(mr_free_ptr) char *redis = dir ? mr_format("unix:%s/run/redis.sock", dir) : NULL;
    const char *address = o->redis ? o->redis : redis;
    if (!err && !o->redis && !mr_redis_copy_is_alive(dir))
        err = mr_redis_copy_start(dir, &address, e);
    mr_buf_init(&password, 4096);
    if (!err && o->redis_password_file) {
        err = mr_file_read_secret(o->redis_password_file, &password, e);
        mr_buf_add_byte(&password, 0);
    }
    const struct mr_history_config config = {
        .redis = address, .password = password.n ? (const char *)password.p : NULL, .dir = dir};
    if (!err) err = mr_history_open(&config, out, e);
    mr_buf_fini(&password);
    mr_last_cluster_fini(&last);
    return err;
}
