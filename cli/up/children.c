/* The processes of a cluster on this machine, and their flags. */
#include "cli/up/internal.h"

#include "base/alloc.h"
#include "cli/client/paths.h"
#include "host/os/file.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ARGS_MAX 256

struct args {
    char *argv[ARGS_MAX];
    size_t count;
};

static void arg(struct args *a, const char *fmt, ...) MR_PRINTF(2, 3);

static void arg(struct args *a, const char *fmt, ...)
{
    char text[PATH_MAX + 64];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (a->count < ARGS_MAX - 1) a->argv[a->count++] = mr_copy_text(text);
}

static void arg_program(struct args *a, const char *name)
{
    MR_AUTO(mr_free_ptr) char *path = mr_file_beside_program(name);
    arg(a, "%s", path);
}

/* Adds the flags for TLS. Without a CA only the gateway uses TLS (HTTPS). */
static void arg_tls(const struct mr_up *u, struct args *a, bool is_gateway)
{
    const struct mr_certificate_files *f = &u->config.tls.files;
    if (!f->cert || (!f->ca && !is_gateway)) return;
    arg(a, "--tls-cert=%s", f->cert);
    arg(a, "--tls-key=%s", f->key);
    if (f->ca) arg(a, "--tls-ca=%s", f->ca);
}

/* Adds the flags for authentication: TLS, the cluster's secret, the tokens of users. */
static void arg_access(const struct mr_up *u, struct args *a, bool is_gateway)
{
    arg_tls(u, a, is_gateway);
    arg(a, "--secret-file=%s/secret", u->dir);
    if (u->config.rules.token_file) arg(a, "--token-file=%s", u->config.rules.token_file);
}

/* Adds the flag for the TCP address of a service. Must be called before the flag for the UNIX
 * socket is added, because a service announces its last --listen to the others. */
static void arg_grpc(const struct mr_up *u, struct args *a, enum mr_up_grpc_service service)
{
    char address[MR_UP_GRPC_TEXT_MAX];
    if (mr_up_grpc_address(&u->config.grpc, service, address)) arg(a, "--listen=%s", address);
}

static int start(
    struct mr_up *u, const char *name, struct args *a, mr_duration grace, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *log = mr_format("%s/log/%s.log", u->dir, name);
    const struct mr_child_spec child = {.name = name,
        .argv = (const char *const *)a->argv,
        .log_path = log,
        .stop_grace = grace,
        .runs_user_code = strncmp(name, "worker-", 7) == 0,
        .listen_fd = strcmp(name, "gateway") == 0 ? u->listen_fd : 0};
    int err = mr_supervisor_start(u->supervisor, &child, e);
    for (size_t i = 0; i < a->count; i++)
        mr_release(a->argv[i]);
    return err;
}

static int start_redis(struct mr_up *u, struct mr_error *e)
{
    struct args a = {0};
    MR_AUTO(mr_free_ptr) char *program = mr_paths_command("redis-server");
    if (!program)
        return mr_fail(
            e, MR_ENOENT, "redis-server is not installed (apt-get install redis-server)");
    arg(&a, "%s", program);
    static const char *const fixed[] = {"--port", "0", "--save", "", "--appendonly", "yes",
        "--appendfsync", "everysec", "--maxmemory-policy", "noeviction", "--hz", "1", "--daemonize",
        "no", "--unixsocketperm", "700", "--aof-load-truncated", "yes", "--always-show-logo", "no"};
    for (size_t i = 0; i < MR_ARRAY_LEN(fixed); i++)
        arg(&a, "%s", fixed[i]);
    arg(&a, "--unixsocket");
    arg(&a, "%s/redis.sock", u->run);
    arg(&a, "--dir");
    arg(&a, "%s/redis", u->dir);
    return start(u, "redis", &a, 20 * MR_SECOND, e);
}

static int start_store(struct mr_up *u, uint64_t node, struct mr_error *e)
{
    struct args a = {0};
    char name[64];
    (void)snprintf(name, sizeof name, "objectstore-%" PRIu64, node);
    arg_program(&a, "mr-objectstore");
    arg(&a, "--node=node-%" PRIu64, node);
    if (!node) arg_grpc(u, &a, MR_UP_GRPC_STORE);
    arg(&a, "--listen=unix:%s/store-%" PRIu64 ".sock", u->run, node);
    arg(&a, "--socket=%s/arena-%" PRIu64 ".sock", u->run, node);
    arg(&a, "--dir=%s/node-%" PRIu64, u->dir, node);
    arg(&a, "--memory=%" PRIu64, u->config.memory);
    arg(&a, "--scheduler=%s", u->scheduler);
    arg(&a, "--redis=%s", u->redis);
    arg_access(u, &a, false);
    return start(u, name, &a, 60 * MR_SECOND, e);
}

static int start_scheduler(struct mr_up *u, struct mr_error *e)
{
    struct args a = {0};
    arg_program(&a, "mr-scheduler");
    arg_grpc(u, &a, MR_UP_GRPC_SCHEDULER);
    arg(&a, "--listen=%s", u->scheduler);
    arg(&a, "--redis=%s", u->redis);
    arg(&a, "--lease=%" PRIu64 "ms", u->config.lease / MR_MS);
    arg(&a, "--dir=%s", u->dir);
    if (!u->config.workers) { /* dashboard.c: all that is recorded is shown */
        arg(&a, "--keep-jobs=0");
        arg(&a, "--keep-jobs-max=100000");
    }
    arg_access(u, &a, false);
    return start(u, "scheduler", &a, 10 * MR_SECOND, e);
}

static int start_trainer(struct mr_up *u, struct mr_error *e)
{
    struct args a = {0};
    arg_program(&a, "mr-trainer");
    arg_grpc(u, &a, MR_UP_GRPC_TRAINER);
    arg(&a, "--listen=%s", u->trainer);
    arg(&a, "--redis=%s", u->redis);
    arg(&a, "--scheduler=%s", u->scheduler);
    arg(&a, "--store=unix:%s/store-0.sock", u->run);
    arg_access(u, &a, false);
    return start(u, "trainer", &a, 10 * MR_SECOND, e);
}

static int start_worker(struct mr_up *u, uint64_t node, uint64_t i, struct mr_error *e)
{
    struct args a = {0};
    char name[64];
    (void)snprintf(name, sizeof name, "worker-%" PRIu64 "-%" PRIu64, node, i);
    arg_program(&a, "mr-worker");
    arg(&a, "--name=%s", name);
    arg(&a, "--node=node-%" PRIu64, node);
    arg(&a, "--scheduler=%s", u->scheduler);
    arg(&a, "--trainer=%s", u->trainer);
    arg(&a, "--store=%s/arena-%" PRIu64 ".sock", u->run, node);
    arg(&a, "--store-address=unix:%s/store-%" PRIu64 ".sock", u->run, node);
    arg(&a, "--listen=unix:%s/%s.sock", u->run, name);
    arg(&a, "--threads=%" PRIu64, u->config.threads);
    uint64_t before = (node * u->config.workers + i) * u->config.threads;
    arg(&a, "--processor=%" PRIu64, before % 4096);
    arg_access(u, &a, false);
    arg(&a, "--dir=%s/node-%" PRIu64, u->dir, node);
    const struct mr_rules *rules = &u->config.rules;
    arg(&a, "--deny-path=%s", u->dir);
    arg(&a, "--deny-path=%s", u->home);
    if (u->config.tls.files.key) arg(&a, "--deny-path=%s", u->config.tls.files.key);
    if (rules->allow_exec) arg(&a, "--allow-exec");
    if (rules->exec_user) arg(&a, "--exec-user=%s", rules->exec_user);
    for (size_t k = 0; k < rules->data_root.count; k++)
        arg(&a, "--data-root=%s", rules->data_root.items[k]);
    for (size_t k = 0; k < u->config.plugin.count; k++)
        arg(&a, "--plugin=%s", u->config.plugin.items[k]);
    for (size_t k = 0; k < u->config.resource.count; k++)
        arg(&a, "--resource=%s", u->config.resource.items[k]);
    return start(u, name, &a, 15 * MR_SECOND, e);
}

static int start_gateway(struct mr_up *u, struct mr_error *e)
{
    struct args a = {0};
    arg_program(&a, "mr-gateway");
    arg(&a, "--listen=%s:%d", u->host, u->port);
    arg(&a, "--scheduler=%s", u->scheduler);
    arg(&a, "--trainer=%s", u->trainer);
    for (uint64_t i = 0; i < u->config.nodes; i++)
        arg(&a, "--store=unix:%s/store-%" PRIu64 ".sock", u->run, i);
    MR_AUTO(mr_free_ptr) char *dashboard = mr_paths_dashboard();
    if (dashboard) arg(&a, "--dashboard=%s", dashboard);
    arg_access(u, &a, true);
    return start(u, "gateway", &a, 10 * MR_SECOND, e);
}

int mr_up_start_all(struct mr_up *u, struct mr_error *e)
{
    int err = start_redis(u, e);
    for (uint64_t n = 0; n < u->config.nodes && !err; n++)
        err = start_store(u, n, e);
    if (!err) err = start_scheduler(u, e);
    if (!err) err = start_trainer(u, e);
    for (uint64_t n = 0; n < u->config.nodes && !err; n++)
        for (uint64_t i = 0; i < u->config.workers && !err; i++)
            err = start_worker(u, n, i, e);
    return err ? err : start_gateway(u, e);
}
