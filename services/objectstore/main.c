/* mr-objectstore: reads the options, starts the threads of the store, and ends them in order. Each
 * node has one such process. */
#include "base/alloc.h"
#include "host/config/common_options.h"
#include "host/config/config.h"
#include "host/os/file.h"
#include "host/os/log.h"
#include "host/os/machine.h"
#include "host/os/signal.h"
#include "host/thread.h"
#include "rpc/tls.h"
#include "services/objectstore/api/service.h"
#include "services/objectstore/control/disk_threads.h"
#include "services/objectstore/control/local_client.h"
#include "services/objectstore/disk/directory_lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define MEMORY_MIN ((uint64_t)16 << 20)

/* Limit of the time in which objects that jobs and names hold are written to --dir at the end.
 * `millrace up` waits a minute for the end of this process. */
#define DRAIN_TIMEOUT (45 * MR_SECOND)

struct config {
    struct mr_texts listen;
    const char *advertise;
    const char *socket;
    uint64_t memory;
    uint64_t objects;
    mr_duration claim_time;
    const char *dir;
    uint64_t directory; /* number of the directory `dir`, from mr_claim_directory; 0: none */
    const char *redis;
    const char *redis_password_file;
    const char *scheduler;
    const char *node;
    const char *token_file;
    const char *secret_file;
    struct mr_texts allow_uid;
    struct mr_certificate_files tls;
};

#define AT(field) offsetof(struct config, field)
// clang-format off
static const struct mr_option options[] = {
    {.name = "listen", .env = "MILLRACE_STORE_LISTEN", .type = MR_OPTION_TEXTS, .value = "ADDR",
        .help = "serve gRPC at unix:PATH or HOST:PORT", .at = AT(listen), .required = true},
    {.name = "advertise", .env = "MILLRACE_STORE_ADVERTISE", .type = MR_OPTION_TEXT, .value = "ADDR",
        .help = "the address other nodes reach it at; default: the last --listen", .at = AT(advertise)},
    {.name = "socket", .env = "MILLRACE_STORE_SOCKET", .type = MR_OPTION_TEXT, .value = "PATH",
        .help = "UNIX socket for the clients of this node", .at = AT(socket), .required = true},
    {.name = "memory", .env = "MILLRACE_STORE_MEMORY", .type = MR_OPTION_BYTES, .value = "BYTES",
        .help = "shared memory to use at most, and never more than 80 % of what there is; default: 40 %",
        .at = AT(memory)},
    {.name = "objects", .type = MR_OPTION_U64, .value = "N", .init = "1048576",
        .help = "objects to keep at most", .at = AT(objects), .min = 16, .max = 16777216},
    {.name = "claim-time", .env = "MILLRACE_STORE_CLAIM_TIME", .type = MR_OPTION_DURATION, .value = "TIME",
        .init = "60s", .help = "how long an object whose holder may be lost, or an unused copy, is kept",
        .at = AT(claim_time), .min = MR_SECOND, .max = 86400 * MR_SECOND},
    {.name = "dir", .env = "MILLRACE_STORE_DIR", .type = MR_OPTION_TEXT, .value = "DIR",
        .help = "write persisted and spilled objects here; default: none are written", .at = AT(dir)},
    MR_OPTION_REDIS_IF_ANY(AT(redis),
        "the cluster's Redis, at unix:PATH or HOST:PORT; default: names are known on this node only"),
    MR_OPTION_REDIS_PASSWORD_FILE(AT(redis_password_file)),
    MR_OPTION_SCHEDULER(AT(scheduler), "the cluster's scheduler"),
    MR_OPTION_NODE(AT(node), "the node's name in listings"),
    MR_OPTION_TOKEN_FILE(AT(token_file), MR_TOKEN_FILE_HELP("who may call")),
    MR_OPTION_SECRET_FILE(AT(secret_file),
        "the cluster's secret: shown to the scheduler and other stores, and wanted from workers, "
        "stores, and gateways that pass users on"),
    MR_OPTION_ALLOW_UID(AT(allow_uid)),
    MR_RPC_TLS_OPTIONS(AT(tls)),
};
// clang-format on

static const struct mr_config_spec spec = {
    .program = "mr-objectstore",
    .summary = "Keeps the objects of a node in shared memory.",
    .examples = "  mr-objectstore --listen unix:/run/m/store.sock --socket /run/m/store.ctl "
                "--dir /var/lib/millrace\n"
                "  mr-objectstore --listen 127.0.0.1:7071 --socket store.ctl --memory 4GiB",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
};

static int fail(const struct mr_error *e)
{
    mr_log(MR_ERROR, "start.failed", "what=\"%s\"", e->text);
    fprintf(stderr, "mr-objectstore: %s\n", e->text);
    return 1;
}

/* Raises the limit of open descriptors: the process has an open descriptor for every segment. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void on_signal(void *ctx, int number)
{
    mr_log(MR_INFO, "objectstore.signal", "number=%d", number);
    mr_service_stop(ctx);
}

static int serve(const struct config *c, struct mr_ostore_shell *sh, struct mr_signals *signals,
    const char *password, struct mr_error *e)
{
    struct mr_disk *disk = NULL;
    int err = mr_disk_open(sh, c->dir, &disk, e);
    if (err) return err;
    sh->disk = disk;
    mr_disk_recover(disk);
    struct mr_service_config service_config = {
        .listen = &c->listen,
        .advertise = c->advertise,
        .node = c->node,
        .dir = c->dir,
        .directory = c->directory,
        .redis = c->redis,
        .redis_password = password,
        .scheduler = c->scheduler,
        .token_file = c->token_file,
        .secret_file = c->secret_file,
    };
    struct mr_service *service = NULL;
    int self_socket = -1;
    err = mr_ostore_shell_connect(sh, &self_socket, e);
    if (!err) err = mr_service_open(sh, &service_config, &service, e);
    struct mr_thread *control = NULL;
    struct mr_store *self = NULL;
    if (!err) {
        control = mr_thread_start("control", mr_ostore_shell_run, sh);
        err = mr_store_open_socket(self_socket, "store", true, &self, e);
    }
    if (!err) {
        mr_disk_start(disk, self);
        mr_signal_hand(signals, on_signal, service);
        err = mr_service_run(service, self, e); /* returns after mr_service_stop */
        mr_signal_close(&signals);
        if (c->dir && !mr_ostore_shell_drain(sh, DRAIN_TIMEOUT))
            mr_log(MR_WARN, "drain.late", "dir=%s", c->dir);
    }
    mr_ostore_shell_stop(sh);
    mr_thread_join(&control);
    mr_ostore_shell_end_asks(sh);
    /* the disk threads and the gRPC side are clients of the store: this ends their waits */
    mr_local_clients_close(sh);
    mr_disk_stop(disk);
    mr_store_stop(self);
    /* closed after the threads that post to the gRPC thread have ended */
    mr_service_close(&service);
    mr_store_close(&self);
    mr_disk_close(&disk);
    return err;
}

int main(int argc, char **argv)
{
    mr_signal_block();
    mr_log_set_program("mr-objectstore");
    struct config c = {0};
    mr_config_load(&spec, argc, argv, &c, NULL);
    struct mr_signals *signals = mr_signal_open(NULL, NULL);
    raise_descriptors();
    struct mr_error e;
    struct mr_machine machine;
    mr_machine_read(&machine);
    uint64_t memory = mr_machine_share(&machine, c.memory);
    if (memory < MEMORY_MIN) {
        (void)mr_fail(&e, MR_EINVAL,
            "--memory: %" PRIu64 " bytes are too few; at least %" PRIu64 " are needed", memory,
            MEMORY_MIN);
        return fail(&e);
    }
    struct mr_ostore_shell_config shell_config = {
        .socket_path = c.socket,
        .node = c.node,
        .memory_bytes = memory,
        .group = machine.group,
        .objects_max = (uint32_t)c.objects,
        .dir = c.dir,
        .claim_time = c.claim_time,
    };
    if (mr_peer_rules_parse(&c.allow_uid, &shell_config.peers, &e)) return fail(&e);
    if (mr_rpc_tls_use(&c.tls, &e)) return fail(&e);
    struct mr_buf password;
    mr_buf_init(&password, 4096);
    if (c.redis_password_file && mr_file_read_secret(c.redis_password_file, &password, &e))
        return fail(&e);
    mr_buf_add_byte(&password, 0);
    struct mr_claim *claim = NULL;
    if (c.dir && mr_claim_take(c.dir, c.node, &claim, &e)) return fail(&e);
    c.directory = mr_claim_directory(claim);
    struct mr_ostore_shell *sh = NULL;
    if (mr_ostore_shell_open(&shell_config, &sh, &e)) return fail(&e);
    mr_log(MR_INFO, "objectstore.started", "node=%s memory=%" PRIu64 " socket=%s dir=%s", c.node,
        memory, c.socket, c.dir ? c.dir : "-");
    int err = serve(&c, sh, signals, c.redis_password_file ? (const char *)password.p : NULL, &e);
    mr_buf_fini(&password);
    mr_ostore_shell_close(&sh);
    /* dropped last: another store may then lock the directory and use it */
    mr_claim_drop(&claim);
    mr_config_fini(&spec, &c);
    if (err) return fail(&e);
    mr_log(MR_INFO, "objectstore.stopped", "node=%s", c.node);
    return 0;
}
