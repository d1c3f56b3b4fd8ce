/* `millrace dashboard`: prints the URL of the dashboard of the cluster that runs. With --offline,
 * it serves the dashboard of a cluster that does not run any more. For that purpose it copies the
 * cluster's records and traces to a directory that is removed with this process. Redis, the
 * scheduler, the trainer and the gateway run with the copy. There is no worker and no object store,
 * so no task runs and no result can be fetched. The dead cluster's directory is not changed. */
#include "base/alloc.h"
#include "cli/client/exit_code.h"
#include "cli/client/http.h"
#include "cli/client/paths.h"
#include "cli/up/internal.h"
#include "cli/up/up.h"
#include "host/clock.h"
#include "host/config/common_options.h"
#include "host/os/file.h"
#include "host/os/process_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define DIR_KIND "millrace-past"
/* The scheduler reads the records of all jobs before it answers. */
#define READY_TIMEOUT (10 * 60 * MR_SECOND)

struct dashboard_config {
    bool offline;
    const char *dir;
    const char *listen;
    const char *token_file;
    bool quiet;
};

static const struct mr_option options[] = {
    {.name = "offline",
        .type = MR_OPTION_BOOL,
        .help = "serve the dashboard of a cluster that does not run any more, until Ctrl-C",
        .at = offsetof(struct dashboard_config, offline)},
    {.name = "dir",
        .env = "MILLRACE_DIR",
        .type = MR_OPTION_TEXT,
        .value = "DIR",
        .help = "with --offline: the cluster's directory (default: that of the last `up`)",
        .at = offsetof(struct dashboard_config, dir),
        .only_with = "offline",
        .without_arguments = true},
    {.name = "listen",
        .type = MR_OPTION_TEXT,
        .value = "HOST:PORT",
        .init = "127.0.0.1:0",
        .help = "with --offline: address of the dashboard; port 0 takes a free port",
        .at = offsetof(struct dashboard_config, listen),
        .only_with = "offline"},
    MR_OPTION_TOKEN_FILE(offsetof(struct dashboard_config, token_file),
        MR_TOKEN_FILE_HELP("with --offline: users and their tokens"), .only_with = "offline"),
    {.name = "quiet",
        .letter = 'q',
        .type = MR_OPTION_BOOL,
        .help = "print the URL only",
        .at = offsetof(struct dashboard_config, quiet)},
};

const struct mr_config_spec mr_dashboard_spec = {.program = "millrace dashboard",
    .summary =
        "Prints the URL of the dashboard, or serves the dashboard of a cluster that does not run "
        "any more.",
    .usage = "[flags] [DIR]",
    .examples = "  millrace dashboard\n"
                "  millrace dashboard --offline\n"
                "  millrace dashboard --offline ~/.millrace/cluster\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_max = 1};

/* Locks the directory until the end of the process, so that no cluster starts there while it is
 * copied. Fails with MR_EEXIST if a cluster runs there. */
static int lock(const char *dir, const char *url, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/lock", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return MR_OK; /* the directory may be a copy without the lock */
    bool runs = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    if (!runs) return MR_OK;
    (void)close(fd);
    return mr_fail(e, MR_EEXIST, "a cluster runs in %s: its dashboard is at %s", dir,
        *url ? url : "the URL that `up` has printed");
}

static int copy(
    const char *dir, const char *part, const char *to, bool is_needed, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *from = mr_format("%s/%s", dir, part);
    MR_AUTO(mr_free_ptr) char *target = mr_format("%s/%s", to, part);
    int err = mr_file_copy_tree(from, target, e);
    return err == MR_ENOENT && !is_needed ? MR_OK : err;
}

/* Waits until the gateway lists jobs, and returns MR_SUPERVISOR_TIMEOUT. Other results are those of
 * mr_supervisor_run, and say why the wait has failed. */
static enum mr_supervisor_event wait_for_jobs(struct mr_up *u, const char *url, struct mr_error *e)
{
    mr_time until = mr_time_after(mr_clock_now(), READY_TIMEOUT);
    MR_AUTO(mr_free_ptr) char *jobs = mr_format("%s/v1/jobs?page_size=1", url);
    while (mr_clock_now() < until) {
        struct mr_buf body;
        int status = 0;
        mr_buf_init(&body, 1 << 20);
        int err = mr_http_get(jobs, 2 * MR_SECOND, &body, &status, NULL);
        mr_buf_fini(&body);
        if (!err && (status == 200 || status == 401)) return MR_SUPERVISOR_TIMEOUT;
        enum mr_supervisor_event ev =
            mr_supervisor_run(u->supervisor, mr_clock_now() + 50 * MR_MS, e);
        if (ev != MR_SUPERVISOR_TIMEOUT) return ev;
    }
    (void)mr_fail(e, MR_ETIMEOUT, "the gateway did not list jobs within 10 minutes");
    return MR_SUPERVISOR_GAVE_UP;
}

static int serve(struct mr_up *u, const char *dir, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *url = mr_format("http://%s:%d", u->host, u->port);
    (void)setenv("MILLRACE_SUPERVISED", "1", 1);
    u->supervisor = mr_supervisor_new();
    u->config.nodes = u->config.workers = 0;
    int err = mr_up_start_all(u, e);
    enum mr_supervisor_event ev = err ? MR_SUPERVISOR_GAVE_UP : wait_for_jobs(u, url, e);
    if (ev == MR_SUPERVISOR_TIMEOUT) {
        (void)printf("%s/\n", url);
        if (!u->config.quiet)
            (void)fprintf(stderr,
                "the page shows what the cluster in %s has recorded; Ctrl-C ends it\n", dir);
        (void)fflush(stdout);
        mr_supervisor_end_startup(u->supervisor);
    }
    while (ev == MR_SUPERVISOR_TIMEOUT)
        ev = mr_supervisor_run(u->supervisor, MR_NEVER, e);
    if (u->listen_fd) (void)close(u->listen_fd);
    u->listen_fd = 0;
    mr_supervisor_stop(u->supervisor);
    return ev == MR_SUPERVISOR_STOP ? MR_OK : MR_EABORTED;
}

static int run_offline(const struct dashboard_config *k, const char *dir, struct mr_error *e)
{
    struct mr_process_dir own = {0};
    struct mr_up u = {.lock_fd = -1};
    (void)mr_process_dir_sweep("/tmp", DIR_KIND);
    int err = mr_process_dir_open(&own, "/tmp", DIR_KIND, e);
    if (!err) err = copy(dir, "redis", own.path, true, e);
    if (!err) err = copy(dir, "trace", own.path, false, e);
    u.config = (struct mr_up_config){.nodes = 1,
        .workers = 1,
        .threads = 1,
        .dir = own.path,
        .rules = {.token_file = k->token_file},
        .listen = k->listen,
        .lease = 10 * MR_SECOND,
        .quiet = k->quiet};
    mr_buf_init(&u.paths, 1 << 20);
    if (!err) err = mr_up_prepare(&u, e);
    if (!err) err = serve(&u, dir, e);
    mr_texts_fini(&u.config.rules.data_root);
    mr_up_fini(&u);
    mr_process_dir_close(&own);
    return err;
}

int mr_command_dashboard(int argc, char **argv)
{
    struct dashboard_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_last_cluster last = {0};
    mr_config_load(&mr_dashboard_spec, argc, argv, &k, &rest);
    if (rest.count && !k.offline) {
        (void)fprintf(stderr,
            "millrace dashboard: \"%s\" has no effect without --offline, which serves the "
            "dashboard of a cluster that does not run any more\n",
            rest.items[0]);
        mr_texts_fini(&rest);
        return MR_EXIT_USAGE;
    }
    int err = mr_last_cluster_read(&last, &e);
    const char *dir = rest.count ? rest.items[0] : k.dir ? k.dir : err ? NULL : last.directory;
    if (!err && !k.offline) (void)printf("%s/\n", last.url);
    if (k.offline && dir) {
        err = lock(dir, last.url ? last.url : "", &e);
        if (!err) err = run_offline(&k, dir, &e);
    }
    if (err) (void)fprintf(stderr, "millrace dashboard: %s\n", e.text);
    mr_last_cluster_fini(&last);
    mr_texts_fini(&rest);
    mr_config_fini(&mr_dashboard_spec, &k);
    return err ? MR_EXIT_FAILED : MR_EXIT_OK;
}
