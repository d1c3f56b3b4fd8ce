/* `millrace up`: a whole cluster on this machine, with nothing to configure. Redis, an object store
 * a node, the scheduler, the trainer, workers and the gateway are child processes; all state is in
 * one directory, all sockets but the gateway's are UNIX sockets in a 0700 directory beneath it.
 *
 *   DIR/lock       held while a cluster runs there
 *   DIR/secret     what the services show each other, made at the first start (mode 0600)
 *   DIR/tls/       with --tls, the CA and the certificate (cli/up_tls.c)
 *   DIR/run/       sockets
 *   DIR/log/       one file a process
 *   DIR/redis/     the journal (append-only file)
 *   DIR/node-0/    persisted and spilled objects of a node */
#include "base/alloc.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/http.h"
#include "cli/place.h"
#include "cli/rules.h"
#include "cli/supervisor.h"
#include "cli/up_grpc.h"
#include "cli/up_tls.h"
#include "host/clock.h"
#include "host/config.h"
#include "host/file.h"
#include "host/machine.h"
#include "rpc/guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOCKET_PATH_MAX 105 /* of sun_path's 108 */
#define SOCKET_LONGEST "/worker-63-1023.sock"
#define ARGS_MAX 256
#define LISTEN_QUEUE 512
#define READY_TIMEOUT (60 * MR_SECOND)
#define RENEW_EVERY ((mr_duration)86400 * MR_SECOND)

struct config {
    uint64_t nodes;
    uint64_t workers;
    uint64_t threads;
    uint64_t memory;
    const char *dir;
    struct mr_rules rules;
    const char *listen;
    struct mr_up_tls tls;
    struct mr_up_grpc grpc;
    struct mr_texts plugin;
    struct mr_texts resource;
    mr_duration lease;
    bool quiet;
};

static const struct mr_option options[] = {
    {.name = "nodes",
        .type = MR_OPTION_U64,
        .value = "N",
        .init = "1",
        .help = "nodes, each with an object store of its own",
        .at = offsetof(struct config, nodes),
        .min = 1,
        .max = 64},
    {.name = "workers",
        .type = MR_OPTION_U64,
        .value = "W",
        .help = "worker processes a node (default: one a core)",
        .at = offsetof(struct config, workers),
        .min = 1,
        .max = 1024},
    {.name = "threads",
        .type = MR_OPTION_U64,
        .value = "T",
        .init = "1",
        .help = "executor threads a worker",
        .at = offsetof(struct config, threads),
        .min = 1,
        .max = 1024},
    {.name = "memory",
        .type = MR_OPTION_BYTES,
        .value = "BYTES",
        .help = "shared memory a node for objects (default: half of what is there; at most 80 %)",
        .at = offsetof(struct config, memory),
        .min = 1 << 24,
        .max = (uint64_t)1 << 46},
    {.name = "dir",
        .env = "MILLRACE_DIR",
        .type = MR_OPTION_TEXT,
        .value = "DIR",
        .help = "where the state is kept (default: ~/.millrace/cluster)",
        .at = offsetof(struct config, dir)},
    {.name = "data-root",
        .env = "MILLRACE_DATA_ROOTS",
        .type = MR_OPTION_TEXTS,
        .value = "DIR",
        .help = "ops read files beneath it only, and never the cluster's own (default: here, or "
                "none with --token-file)",
        .at = offsetof(struct config, rules.data_root)},
    {.name = "listen",
        .env = "MILLRACE_LISTEN",
        .type = MR_OPTION_TEXT,
        .value = "HOST:PORT",
        .init = "127.0.0.1:8470",
        .help = "where the gateway serves HTTP; port 0 takes a free one",
        .at = offsetof(struct config, listen)},
    {.name = "token-file",
        .env = "MILLRACE_TOKEN_FILE",
        .type = MR_OPTION_TEXT,
        .value = "FILE",
        .help = "who may ask, one a line: TOKEN ROLE NAME (role: admin, user, reader); needed to "
                "listen on a public address",
        .at = offsetof(struct config, rules.token_file)},
    MR_UP_TLS_OPTIONS(offsetof(struct config, tls)),
    MR_UP_GRPC_OPTION(offsetof(struct config, grpc)),
    {.name = "allow-exec",
        .env = "MILLRACE_ALLOW_EXEC",
        .type = MR_OPTION_BOOL,
        .help =
            "let jobs run programs (the op exec): without --exec-user, whoever may submit a job "
            "can then do what you can, and read the cluster's secret and tokens",
        .at = offsetof(struct config, rules.allow_exec)},
    {.name = "exec-user",
        .env = "MILLRACE_EXEC_USER",
        .type = MR_OPTION_TEXT,
        .value = "NAME",
        .help = "run those programs as this user of the system; only where `up` is started as root",
        .at = offsetof(struct config, rules.exec_user)},
    {.name = "plugin",
        .type = MR_OPTION_TEXTS,
        .value = "FILE.so",
        .help = "load operators",
        .at = offsetof(struct config, plugin)},
    {.name = "resource",
        .type = MR_OPTION_TEXTS,
        .value = "NAME=AMOUNT",
        .help = "what each worker has, e.g. gpu=1",
        .at = offsetof(struct config, resource)},
    {.name = "lease",
        .type = MR_OPTION_DURATION,
        .value = "TIME",
        .init = "10s",
        .help = "silence after which a worker or store is lost",
        .at = offsetof(struct config, lease)},
    {.name = "quiet",
        .letter = 'q',
        .type = MR_OPTION_BOOL,
        .help = "say nothing but errors",
        .at = offsetof(struct config, quiet)},
};

const struct mr_config_spec mr_up_spec = {.program = "millrace up",
    .summary = "Starts a whole cluster on this machine and keeps it running until Ctrl-C.",
    .examples = "  millrace up\n"
                "  millrace up --workers 4 --threads 1 --data-root /data\n"
                "  millrace up --nodes 2 --dir /tmp/two-nodes --listen 127.0.0.1:0\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options)};

struct up {
    struct config config;
    char *dir;
    char *run;  /* sockets */
    char *home; /* of this user's clusters */
    char *redis;
    char *scheduler;
    char *trainer;
    char host[256];
    int port;
    int lock_fd;
    int listen_fd; /* the gateway's, which outlives it; 0: it opens its own */
    struct mr_supervisor *supervisor;
    struct mr_buf paths; /* char *: owned texts that the configuration points to */
};

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
    MR_AUTO(mr_free_ptr) char *path = mr_place_program(name);
    arg(a, "%s", path);
}

/* Without a CA there is HTTPS, and no TLS between the services. */
static void arg_tls(const struct up *u, struct args *a, bool is_gateway)
{
    const struct mr_certificate_files *f = &u->config.tls.files;
    if (!f->cert || (!f->ca && !is_gateway)) return;
    arg(a, "--tls-cert=%s", f->cert);
    arg(a, "--tls-key=%s", f->key);
    if (f->ca) arg(a, "--tls-ca=%s", f->ca);
}

/* Who may call this service, and what it shows the others. */
static void arg_access(const struct up *u, struct args *a, bool is_gateway)
{
    arg_tls(u, a, is_gateway);
    arg(a, "--secret-file=%s/secret", u->dir);
    if (u->config.rules.token_file) arg(a, "--token-file=%s", u->config.rules.token_file);
}

/* Before --listen of its UNIX socket: the last one is what it is known by. */
static void arg_grpc(const struct up *u, struct args *a, enum mr_up_grpc_service service)
{
    char address[MR_UP_GRPC_TEXT_MAX];
    if (mr_up_grpc_address(&u->config.grpc, service, address)) arg(a, "--listen=%s", address);
}

static int start(
    struct up *u, const char *name, struct args *a, mr_duration grace, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *log = mr_format("%s/log/%s.log", u->dir, name);
    const struct mr_child_spec child = {.name = name,
        .argv = (const char *const *)a->argv,
        .log_path = log,
        .stop_grace = grace,
        .runs_foreign = strncmp(name, "worker-", 7) == 0,
        .listen_fd = strcmp(name, "gateway") == 0 ? u->listen_fd : 0};
    int err = mr_supervisor_start(u->supervisor, &child, e);
    for (size_t i = 0; i < a->count; i++)
        mr_release(a->argv[i]);
    return err;
}

static int start_redis(struct up *u, struct mr_error *e)
{
    struct args a = {0};
    MR_AUTO(mr_free_ptr) char *program = mr_place_in_path("redis-server");
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

static int start_store(struct up *u, uint64_t node, struct mr_error *e)
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

static int start_scheduler(struct up *u, struct mr_error *e)
{
    struct args a = {0};
    arg_program(&a, "mr-scheduler");
    arg_grpc(u, &a, MR_UP_GRPC_SCHEDULER);
    arg(&a, "--listen=%s", u->scheduler);
    arg(&a, "--redis=%s", u->redis);
    arg(&a, "--lease=%" PRIu64 "ms", u->config.lease / MR_MS);
    arg(&a, "--dir=%s", u->dir);
    arg_access(u, &a, false);
    return start(u, "scheduler", &a, 10 * MR_SECOND, e);
}

static int start_trainer(struct up *u, struct mr_error *e)
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

static int start_worker(struct up *u, uint64_t node, uint64_t i, struct mr_error *e)
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

static int start_gateway(struct up *u, struct mr_error *e)
{
    struct args a = {0};
    arg_program(&a, "mr-gateway");
    arg(&a, "--listen=%s:%d", u->host, u->port);
    arg(&a, "--scheduler=%s", u->scheduler);
    arg(&a, "--trainer=%s", u->trainer);
    for (uint64_t i = 0; i < u->config.nodes; i++)
        arg(&a, "--store=unix:%s/store-%" PRIu64 ".sock", u->run, i);
    arg_access(u, &a, true);
    return start(u, "gateway", &a, 10 * MR_SECOND, e);
}

static int start_all(struct up *u, struct mr_error *e)
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

/* ---- before the start ------------------------------------------------------------------------ */

static int absolute(struct up *u, const char **path, struct mr_error *e)
{
    char *full = realpath(*path, NULL);
    if (!full)
        return mr_fail(
            e, MR_ENOENT, "--data-root, --plugin or --token-file: %s: %s", *path, strerror(errno));
    mr_buf_add(&u->paths, &full, sizeof full);
    *path = full;
    return MR_OK;
}

static int settle_paths(struct up *u, struct mr_error *e)
{
    static const char *here[] = {"."};
    struct config *c = &u->config;
    struct mr_texts *roots = &c->rules.data_root;
    if (!roots->count && !c->rules.token_file)
        *roots = (struct mr_texts){mr_copy(here, sizeof here), 1};
    int err = MR_OK;
    for (size_t i = 0; i < roots->count && !err; i++)
        err = absolute(u, &roots->items[i], e);
    for (size_t i = 0; i < c->plugin.count && !err; i++)
        err = absolute(u, &c->plugin.items[i], e);
    if (!err && c->rules.token_file) err = absolute(u, &c->rules.token_file, e);
    return err;
}

static int make_dirs(struct up *u, struct mr_error *e)
{
    static const char *const below[] = {"run", "log", "redis"};
    u->home = mr_place_home();
    MR_AUTO(mr_free_ptr)
    char *wanted = u->config.dir ? mr_copy_text(u->config.dir) : mr_format("%s/cluster", u->home);
    int err = mr_file_make_dirs(wanted, 0700, e);
    if (err) return err;
    u->dir = realpath(wanted, NULL);
    if (!u->dir) return mr_fail(e, MR_EIO, "--dir: %s: %s", wanted, strerror(errno));
    u->run = mr_format("%s/run", u->dir);
    if (strchr(u->run, ','))
        return mr_fail(e, MR_EINVAL,
            "--dir: %s has a comma, which the address of a socket cannot have", u->dir);
    if (strlen(u->run) + strlen(SOCKET_LONGEST) > SOCKET_PATH_MAX)
        return mr_fail(e, MR_EINVAL,
            "--dir: %s is too long for the path of a socket (at most %d bytes)", u->dir,
            (int)(SOCKET_PATH_MAX - strlen("/run" SOCKET_LONGEST)));
    for (size_t i = 0; i < MR_ARRAY_LEN(below) && !err; i++) {
        MR_AUTO(mr_free_ptr) char *path = mr_format("%s/%s", u->dir, below[i]);
        err = mr_file_make_dirs(path, 0700, e);
    }
    for (uint64_t i = 0; i < u->config.nodes && !err; i++) {
        MR_AUTO(mr_free_ptr) char *path = mr_format("%s/node-%" PRIu64, u->dir, i);
        err = mr_file_make_dirs(path, 0700, e);
    }
    if (!err && chmod(u->run, 0700)) /* it may be from before, or somebody's idea */
        return mr_fail(e, MR_EIO, "--dir: %s: cannot set mode 0700: %s", u->run, strerror(errno));
    return err;
}

static int take_lock(struct up *u, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/lock", u->dir);
    u->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (u->lock_fd < 0) return mr_fail(e, MR_EIO, "%s: %s", path, strerror(errno));
    if (flock(u->lock_fd, LOCK_EX | LOCK_NB)) {
        char pid[32] = "";
        ssize_t n = read(u->lock_fd, pid, sizeof pid - 1);
        pid[n > 1 ? n - 1 : 0] = 0; /* without its newline */
        return mr_fail(e, MR_EEXIST,
            "a cluster runs in %s already (process %.20s): stop it, or give another --dir", u->dir,
            pid);
    }
    char pid[32];
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(u->lock_fd, 0) || pwrite(u->lock_fd, pid, (size_t)n, 0) != n)
        return mr_fail(e, MR_EIO, "%s: %s", path, strerror(errno));
    return MR_OK;
}

/* The cluster's secret: 256 random bits. One that is there is kept, as running services know it. */
static int settle_secret(const struct up *u, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/secret", u->dir);
    if (access(path, F_OK) == 0) return MR_OK; /* each service looks at its mode and words */
    unsigned char bytes[32];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return mr_fail(e, MR_EIO, "getrandom: %s", strerror(errno));
    char text[2 * sizeof bytes + 2];
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[2 * sizeof bytes] = '\n';
    text[2 * sizeof bytes + 1] = 0;
    return mr_file_write(path, mr_str(text), 0600, e);
}

/* Splits --listen, and listens there for the gateway: while one gateway makes way for the next,
 * connections wait in this socket's queue. Port 0 becomes one that is free now. The gateway refuses
 * what it may not. */
static int settle_listen(struct up *u, struct mr_error *e)
{
    const char *colon = strrchr(u->config.listen, ':');
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : -1;
    size_t n = colon ? (size_t)(colon - u->config.listen) : 0;
    if (!colon || !n || n >= sizeof u->host || *end || end == colon + 1 || port < 0 || port > 65535)
        return mr_fail(e, MR_EINVAL, "--listen: \"%s\" is not HOST:PORT", u->config.listen);
    memcpy(u->host, u->config.listen, n);
    u->port = (int)port;
    struct sockaddr_in at = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bool is_v4 =
        inet_pton(AF_INET, u->host, &at.sin_addr) == 1 || strcmp(u->host, "localhost") == 0;
    if (!u->config.rules.token_file && mr_rpc_address_is_public(u->config.listen))
        return mr_fail(e, MR_EPERM,
            "--listen: others can reach \"%s\", so --token-file is wanted (or an address on "
            "loopback, e.g. 127.0.0.1:8470)",
            u->config.listen);
    if (!is_v4) return MR_OK; /* the gateway will say */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    socklen_t size = sizeof at;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int err = bind(fd, (struct sockaddr *)&at, size) ? errno : 0;
    if (!err && getsockname(fd, (struct sockaddr *)&at, &size) == 0) u->port = ntohs(at.sin_port);
    if (!err && listen(fd, LISTEN_QUEUE)) err = errno;
    u->listen_fd = err ? 0 : fd;
    if (err) (void)close(fd);
    if (err)
        return mr_fail(e, MR_EEXIST,
            "--listen: %s: %s (another cluster? --listen %s:0 takes a free port)", u->config.listen,
            strerror(err), u->host);
    return MR_OK;
}

static void remove_sockets(const struct up *u)
{
    static const char *const names[] = {"redis.sock", "scheduler.sock", "trainer.sock"};
    for (size_t i = 0; i < MR_ARRAY_LEN(names); i++) {
        MR_AUTO(mr_free_ptr) char *path = mr_format("%s/%s", u->run, names[i]);
        (void)unlink(path);
    }
}

static int check_rules(const struct up *u, struct mr_error *e)
{
    char home[PATH_MAX];
    const char *const denied[] = {u->dir, realpath(u->home, home) ? home : u->home, NULL};
    return mr_rules_check(&u->config.rules, denied, e);
}

static int prepare(struct up *u, struct mr_error *e)
{
    struct config *c = &u->config;
    struct mr_machine machine;
    mr_machine_read(&machine);
    if (!c->workers) c->workers = machine.cpus;
    /* what is said is what the stores take: together at most 80 % of what there is */
    uint64_t most = mr_machine_share(&machine, UINT64_MAX) / c->nodes;
    c->memory = MR_MIN(c->memory ? c->memory : machine.memory_bytes / 2 / c->nodes, most);
    int err = settle_paths(u, e);
    if (!err) err = make_dirs(u, e);
    if (!err) err = check_rules(u, e);
    if (!err) err = take_lock(u, e);
    if (!err) err = settle_secret(u, e);
    if (!err) err = settle_listen(u, e);
    if (!err) err = mr_up_grpc_settle(&c->grpc, c->rules.token_file != NULL, &c->tls.files, e);
    if (c->grpc.host[0]) mr_up_tls_name(&c->tls, c->grpc.host);
    if (!err) err = mr_up_tls_settle(&c->tls, u->dir, u->host, e);
    if (err) return err;
    remove_sockets(u);
    u->redis = mr_format("unix:%s/redis.sock", u->run);
    u->scheduler = mr_format("unix:%s/scheduler.sock", u->run);
    u->trainer = mr_format("unix:%s/trainer.sock", u->run);
    return MR_OK;
}

/* ---- while it runs --------------------------------------------------------------------------- */

/* Asks the gateway until a job could run. The last reason stays in `e`. */
static enum mr_supervisor_event wait_ready(struct up *u, const char *url, struct mr_error *e)
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
        if (ready && access(u->trainer + strlen("unix:"), F_OK)) { /* jobs would run without it */
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

static void greet(const struct up *u, const char *url)
{
    char memory[MR_BYTES_TEXT_MAX];
    const struct config *c = &u->config;
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
    mr_rules_say(&c->rules, stdout);
    (void)printf(
        "  state and logs in %s; Ctrl-C stops it, and `up` on the same directory finds its jobs again\n",
        u->dir);
    if (c->tls.own)
        (void)printf("  its CA is %s: commands here know it, others are to be told "
                     "(MILLRACE_TLS_CA, curl --cacert)\n",
            c->tls.files.ca);
    if (fflush(stdout)) (void)freopen("/dev/null", "w", stdout); /* a cluster outlives its reader */
}

/* Until the end; certificates that end before are renewed on the way. */
static enum mr_supervisor_event serve(struct up *u, struct mr_error *e)
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

static int run(struct up *u, struct mr_error *e)
{
    const char *scheme = mr_up_tls_is_on(&u->config.tls) ? "https" : "http";
    MR_AUTO(mr_free_ptr) char *url = mr_format("%s://%s:%d", scheme, u->host, u->port);
    (void)setenv("MILLRACE_SUPERVISED", "1", 1);
    (void)setenv("OPENBLAS_NUM_THREADS", "1", 0); /* the slots are the parallelism */
    u->supervisor = mr_supervisor_new();
    int err = start_all(u, e);
    enum mr_supervisor_event ev = err ? MR_SUPERVISOR_GAVE_UP : wait_ready(u, url, e);
    if (ev == MR_SUPERVISOR_TIMEOUT) {
        const struct mr_place_cluster last = {.url = url,
            .ca = (char *)(uintptr_t)u->config.tls.files.ca,
            .scheduler = u->scheduler,
            .directory = u->dir};
        (void)mr_place_write_last(&last, NULL); /* only a convenience for the next command */
        if (!u->config.quiet) greet(u, url);
        mr_supervisor_settle(u->supervisor);
        ev = serve(u, e);
    }
    if (ev == MR_SUPERVISOR_STOP && !u->config.quiet)
        (void)fprintf(stderr, "stopping: results are written to %s\n", u->dir);
    if (u->listen_fd) (void)close(u->listen_fd); /* no gateway comes after this one */
    u->listen_fd = 0;
    mr_supervisor_stop(u->supervisor);
    return ev == MR_SUPERVISOR_STOP ? MR_OK : MR_EABORTED;
}

int mr_command_up(int argc, char **argv)
{
    struct up u = {.lock_fd = -1};
    struct mr_error e = {0};
    mr_config_load(&mr_up_spec, argc, argv, &u.config, NULL);
    mr_buf_init(&u.paths, 1 << 20);
    int err = prepare(&u, &e);
    if (!err) err = run(&u, &e);
    if (err) (void)fprintf(stderr, "millrace up: %s\n", e.text);
    mr_supervisor_free(&u.supervisor);
    if (u.listen_fd) (void)close(u.listen_fd);
    if (u.lock_fd >= 0) (void)close(u.lock_fd);
    for (size_t i = 0; i < u.paths.n / sizeof(char *); i++)
        free(((char **)(void *)u.paths.p)[i]);
    mr_buf_fini(&u.paths);
    free(u.dir);
    mr_release(u.run);
    mr_release(u.home);
    mr_release(u.redis);
    mr_release(u.scheduler);
    mr_release(u.trainer);
    mr_up_tls_fini(&u.config.tls);
    mr_config_fini(&mr_up_spec, &u.config);
    return err ? MR_EXIT_FAILED : MR_EXIT_OK;
}
