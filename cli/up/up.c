/* `millrace up`: a whole cluster on this machine without configuration. Redis, an object store for
 * each node, the scheduler, the trainer, workers and the gateway are child processes. All state is
 * in one directory. Services listen at UNIX sockets in a subdirectory of mode 0700; only the
 * gateway, and with --grpc three services, listen at TCP ports.
 *
 *   DIR/lock       held while a cluster runs there
 *   DIR/secret     the secret of the cluster's services, made at the first start (mode 0600)
 *   DIR/tls/       with --tls, the CA and the certificate (cli/up/tls.c)
 *   DIR/run/       sockets
 *   DIR/log/       one file for each process
 *   DIR/redis/     the journal (append-only file)
 *   DIR/node-0/    persisted and spilled objects of a node */
#include "cli/up/up.h"

#include "base/alloc.h"
#include "base/unconst.h"
#include "base/units.h"
#include "cli/client/exit_code.h"
#include "cli/client/http.h"
#include "cli/client/paths.h"
#include "cli/up/internal.h"
#include "host/clock.h"
#include "host/config/common_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READY_TIMEOUT (60 * MR_SECOND)
#define RENEW_EVERY ((mr_duration)86400 * MR_SECOND)

static const struct mr_option options[] = {
    {.name = "nodes",
        .type = MR_OPTION_U64,
        .value = "N",
        .init = "1",
        .help = "number of nodes, each with an object store",
        .at = offsetof(struct mr_up_config, nodes),
        .min = 1,
        .max = 64},
    {.name = "workers",
        .type = MR_OPTION_U64,
        .value = "W",
        .help = "worker processes on each node (default: one for each core)",
        .at = offsetof(struct mr_up_config, workers),
        .min = 1,
        .max = 1024},
    {.name = "threads",
        .type = MR_OPTION_U64,
        .value = "T",
        .init = "1",
        .help = "executor threads of each worker",
        .at = offsetof(struct mr_up_config, threads),
        .min = 1,
        .max = 1024},
    {.name = "memory",
        .type = MR_OPTION_BYTES,
        .value = "BYTES",
        .help =
            "shared memory of each node for objects (default: half of the machine's memory, shared by the "
            "nodes; at most 80 %)",
        .at = offsetof(struct mr_up_config, memory),
        .min = 1 << 24,
        .max = (uint64_t)1 << 46},
    {.name = "dir",
        .env = "MILLRACE_DIR",
        .type = MR_OPTION_TEXT,
        .value = "DIR",
        .help = "directory of all state (default: ~/.millrace/cluster)",
        .at = offsetof(struct mr_up_config, dir)},
    {.name = "data-root",
        .env = "MILLRACE_DATA_ROOTS",
        .type = MR_OPTION_TEXTS,
        .value = "DIR",
        .help = "operators read only files beneath it, and never the cluster's own (default: the "
                "current directory, or none with --token-file)",
        .at = offsetof(struct mr_up_config, rules.data_root)},
    {.name = "listen",
        .env = "MILLRACE_LISTEN",
        .type = MR_OPTION_TEXT,
        .value = "HOST:PORT",
        .init = "127.0.0.1:8470",
        .help = "address of the gateway's HTTP; port 0 takes a free port",
        .at = offsetof(struct mr_up_config, listen)},
    MR_OPTION_TOKEN_FILE(offsetof(struct mr_up_config, rules.token_file),
        MR_TOKEN_FILE_HELP("users and their tokens")),
    MR_UP_TLS_OPTIONS(offsetof(struct mr_up_config, tls)),
    MR_UP_GRPC_OPTION(offsetof(struct mr_up_config, grpc)),
    {.name = "allow-exec",
        .env = "MILLRACE_ALLOW_EXEC",
        .type = MR_OPTION_BOOL,
        .help =
            "let jobs run programs (the operator exec): without --exec-user, everyone who may submit a job "
            "can then do what you can, and read the cluster's secret and tokens",
        .at = offsetof(struct mr_up_config, rules.allow_exec)},
    {.name = "exec-user",
        .env = "MILLRACE_EXEC_USER",
        .type = MR_OPTION_TEXT,
        .value = "NAME",
        .help = "run those programs as this user of the system; `up` has to be started as root",
        .at = offsetof(struct mr_up_config, rules.exec_user)},
    {.name = "plugin",
        .type = MR_OPTION_TEXTS,
        .value = "FILE.so",
        .help = "load the operators of this plug-in",
        .at = offsetof(struct mr_up_config, plugin)},
    {.name = "resource",
        .type = MR_OPTION_TEXTS,
        .value = "NAME=AMOUNT",
        .help = "a resource that each worker has, e.g. gpu=1",
        .at = offsetof(struct mr_up_config, resource)},
    {.name = "lease",
        .type = MR_OPTION_DURATION,
        .value = "TIME",
        .init = "10s",
        .help = "a worker or store that is silent for this long is lost",
        .at = offsetof(struct mr_up_config, lease)},
    {.name = "quiet",
        .letter = 'q',
        .type = MR_OPTION_BOOL,
        .help = "print nothing but errors",
        .at = offsetof(struct mr_up_config, quiet)},
};

const struct mr_config_spec mr_up_spec = {.program = "millrace up",
    .summary = "Starts a whole cluster on this machine and keeps it running until Ctrl-C.",
    .examples = "  millrace up\n"
                "  millrace up --workers 4 --threads 1 --data-root /data\n"
                "  millrace up --nodes 2 --dir /tmp/two-nodes --listen 127.0.0.1:0\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options)};

/* Asks the gateway again and again until the cluster is ready to run jobs. Meanwhile the supervisor
 * runs. Returns MR_SUPERVISOR_TIMEOUT when the cluster is ready. MR_SUPERVISOR_GAVE_UP: the cluster
 * was not ready within READY_TIMEOUT, or the supervisor gave up; `e` has the reason.
 * MR_SUPERVISOR_STOP: a signal came. */
static enum mr_supervisor_event wait_ready(struct mr_up *u, const char *url, struct mr_error *e)
{
    mr_time until = mr_clock_now() + READY_TIMEOUT;
    MR_AUTO(mr_free_ptr) char *health = mr_format("%s/healthz", url);
    while (mr_clock_now() < until) {
        struct mr_buf body;
        int status = 0;
        mr_buf_init(&body, 65536);
        int err = mr_http_get(health, 2 * MR_SECOND, &body, &status, NULL);
        bool ready = !err && status == 200;
        if (!err && !ready)
            (void)mr_fail(e, MR_ETIMEOUT, "the cluster is not ready after %d s: %.*s",
                (int)(READY_TIMEOUT / MR_SECOND), MR_STR_ARG(mr_buf_str(&body)));
        mr_buf_fini(&body);
        if (ready && access(u->trainer + strlen("unix:"),
                         /* The gateway is ready even without a trainer. */
                         F_OK)) {
            ready = false;
            (void)mr_fail(e, MR_ETIMEOUT, "the trainer does not serve; see %s/log", u->dir);
        }
        if (ready) return MR_SUPERVISOR_TIMEOUT;
        enum mr_supervisor_event ev =
            mr_supervisor_run(u->supervisor, mr_clock_now() + 50 * MR_MS, e);
        if (ev != MR_SUPERVISOR_TIMEOUT) return ev;
    }
    if (!e->code) (void)mr_fail(e, MR_ETIMEOUT, "the gateway does not answer; see %s/log", u->dir);
    return MR_SUPERVISOR_GAVE_UP;
}

static void greet(const struct mr_up *u, const char *url)
{
    char memory[MR_BYTES_TEXT_MAX];
    const struct mr_up_config *c = &u->config;
    mr_bytes_text(c->memory, memory);
    (void)printf("millrace is up: %s\n"
                 "  %" PRIu64 " node(s) with %s of shared memory, %" PRIu64
                 " worker(s) a node with %" PRIu64 " thread(s)\n",
        url, c->nodes, memory, c->workers, c->threads);
    const char *word = c->tls.files.ca ? "gRPC with TLS" : "gRPC";
    if (c->grpc.port)
        (void)printf("  %s: scheduler %s:%d, object store %s:%d, trainer %s:%d\n", word,
            c->grpc.host, c->grpc.port + MR_UP_GRPC_SCHEDULER, c->grpc.host,
            c->grpc.port + MR_UP_GRPC_STORE, c->grpc.host, c->grpc.port + MR_UP_GRPC_TRAINER);
    mr_rules_print(&c->rules, stdout);
    (void)printf(
        "  state and logs in %s; Ctrl-C stops it, and `up` on the same directory finds its jobs again\n",
        u->dir);
    if (c->tls.own)
        (void)printf("  its CA is %s: commands on this machine use it; other clients need it "
                     "(MILLRACE_TLS_CA, curl --cacert)\n",
            c->tls.files.ca);
    if (fflush(stdout))
        (void)freopen(
            /* The cluster runs on after the reader of stdout has ended. */
            "/dev/null", "w", stdout);
}

/* Runs the cluster until it ends, and renews certificates. */
static enum mr_supervisor_event serve(struct mr_up *u, struct mr_error *e)
{
    enum mr_supervisor_event ev = MR_SUPERVISOR_TIMEOUT;
    while (ev == MR_SUPERVISOR_TIMEOUT) {
        ev = mr_supervisor_run(u->supervisor, mr_clock_now() + RENEW_EVERY, e);
        struct mr_error why = {0};
        if (ev == MR_SUPERVISOR_TIMEOUT && mr_up_tls_renew(&u->config.tls, &why))
            (void)fprintf(stderr, "millrace up: no new certificate: %s\n", why.text);
    }
    return ev;
}

static int run(struct mr_up *u, struct mr_error *e)
{
    const char *scheme = mr_up_tls_is_on(&u->config.tls) ? "https" : "http";
    MR_AUTO(mr_free_ptr) char *url = mr_format("%s://%s:%d", scheme, u->host, u->port);
    (void)setenv("MILLRACE_SUPERVISED", "1", 1);
    (void)setenv("OPENBLAS_NUM_THREADS", "1", 0); /* the workers' threads use all cores already */
    u->supervisor = mr_supervisor_new();
    int err = mr_up_start_all(u, e);
    enum mr_supervisor_event ev = err ? MR_SUPERVISOR_GAVE_UP : wait_ready(u, url, e);
    if (ev == MR_SUPERVISOR_TIMEOUT) {
        const struct mr_last_cluster last = {.url = url,
            .ca = mr_unconst(u->config.tls.files.ca),
            .scheduler = u->scheduler,
            .directory = u->dir};
        /* The error is ignored: without the file, commands need --url. */
        (void)mr_last_cluster_write(&last, NULL);
        if (!u->config.quiet) greet(u, url);
        mr_supervisor_end_startup(u->supervisor);
        ev = serve(u, e);
    }
    if (ev == MR_SUPERVISOR_STOP && !u->config.quiet)
        (void)fprintf(stderr, "stopping: results are written to %s\n", u->dir);
    /* The gateway has its own copy of this socket, and will not be started again. */
    if (u->listen_fd) (void)close(u->listen_fd);
    u->listen_fd = 0;
    mr_supervisor_stop(u->supervisor);
    return ev == MR_SUPERVISOR_STOP ? MR_OK : MR_EABORTED;
}

void mr_up_fini(struct mr_up *u)
{
    mr_supervisor_free(&u->supervisor);
    if (u->listen_fd) (void)close(u->listen_fd);
    if (u->lock_fd >= 0) (void)close(u->lock_fd);
    for (size_t i = 0; i < u->paths.n / sizeof(char *); i++)
        free(((char **)(void *)u->paths.p)[i]);
    mr_buf_fini(&u->paths);
    free(u->dir);
    mr_release(u->run);
    mr_release(u->home);
    mr_release(u->redis);
    mr_release(u->scheduler);
    mr_release(u->trainer);
    mr_up_tls_fini(&u->config.tls);
}

int mr_command_up(int argc, char **argv)
{
    struct mr_up u = {.lock_fd = -1};
    struct mr_error e = {0};
    mr_config_load(&mr_up_spec, argc, argv, &u.config, NULL);
    mr_buf_init(&u.paths, 1 << 20);
    int err = mr_up_prepare(&u, &e);
    if (!err) err = run(&u, &e);
    if (err) (void)fprintf(stderr, "millrace up: %s\n", e.text);
    mr_up_fini(&u);
    mr_config_fini(&mr_up_spec, &u.config);
    return err ? MR_EXIT_FAILED : MR_EXIT_OK;
}
