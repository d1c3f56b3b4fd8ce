/* The program mr-gateway: options, certificates and secrets, and the order of start and stop. */
#include "base/alloc.h"
#include "gateway/server/server.h"
#include "host/clock.h"
#include "host/config/common_options.h"
#include "host/config/config.h"
#include "host/os/file.h"
#include "host/os/log.h"
#include "host/tls/server_certificate.h"
#include "host/os/signal.h"
#include "rpc/tls.h"
#include "rpc/util/token_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct config {
    const char *listen;
    const char *scheduler;
    const char *trainer;
    struct mr_texts stores;
    const char *dashboard;
    const char *token_file;
    const char *secret_file;
    /* Certificate and key for HTTPS, and the CA for calls to the services (--tls-ca). */
    struct mr_certificate_files tls;
    /* Certificate and key for calls to the services. If they are not given but --tls-ca is, those
     * calls use the certificate and key for HTTPS. */
    struct mr_certificate_files cluster;
    const char *port_file;
    struct mr_texts allow_uid;
    struct mr_texts hosts;
    uint64_t connections;
    uint64_t connections_each;
    uint64_t threads;
    mr_duration idle;
    mr_duration grace;
    uint64_t reading_memory;
};

/* --reading-memory does not count the first SMALL_BODY_BYTES bytes of each request body. */
#define SMALL_BODY_BYTES 65536

#define AT(member) offsetof(struct config, member)

/* clang-format off */
static const struct mr_option options[] = {
    {.name = "listen", .env = "MILLRACE_LISTEN", .type = MR_OPTION_TEXT, .value = "ADDR",
        .init = "127.0.0.1:8470", .help = "where to listen: HOST:PORT or unix:PATH", .at = AT(listen)},
    MR_OPTION_SCHEDULER(AT(scheduler), "the scheduler: HOST:PORT or unix:PATH", .required = true),
    MR_OPTION_TRAINER(AT(trainer),
        "the trainer: HOST:PORT or unix:PATH; default: none, no channels, queues and trainings"),
    {.name = "store", .env = "MILLRACE_STORE", .type = MR_OPTION_TEXTS, .value = "ADDR",
        .help = "an object store; default: the scheduler is asked for the addresses", .at = AT(stores)},
    {.name = "dashboard", .env = "MILLRACE_DASHBOARD", .type = MR_OPTION_TEXT, .value = "DIR",
        .help = "serve the files of this directory at /", .at = AT(dashboard)},
    MR_OPTION_TOKEN_FILE(AT(token_file), MR_TOKEN_FILE_HELP("users and their tokens")),
    MR_OPTION_SECRET_FILE(AT(secret_file),
        "the cluster's secret, sent to the services with each call: their --secret-file"),
    MR_OPTION_ALLOW_UID(AT(allow_uid)),
    {.name = "allow-host", .env = "MILLRACE_ALLOW_HOST", .type = MR_OPTION_TEXTS, .value = "NAME",
        .help = "another name that is allowed in the header Host", .at = AT(hosts)},
    MR_OPTION_TLS_CERT(AT(tls.cert),
        "serve HTTPS with this certificate (PEM); with --tls-ca also the client certificate for the services"),
    MR_OPTION_TLS_KEY(AT(tls.key)),
    MR_OPTION_TLS_CA(AT(tls.ca),
        "call the services over TLS and trust this CA of the cluster (PEM): their --tls-ca"),
    {.name = "cluster-cert", .env = "MILLRACE_CLUSTER_CERT", .type = MR_OPTION_TEXT, .value = "FILE",
        .help = "the client certificate for the services, instead of --tls-cert (PEM)", .at = AT(cluster.cert)},
    {.name = "cluster-key", .env = "MILLRACE_CLUSTER_KEY", .type = MR_OPTION_TEXT, .value = "FILE",
        .help = "its key (PEM), in a file of mode 0600", .at = AT(cluster.key)},
    {.name = "port-file", .env = "MILLRACE_PORT_FILE", .type = MR_OPTION_TEXT, .value = "FILE",
        .help = "write the port to this file once the gateway listens", .at = AT(port_file)},
    {.name = "connections", .env = "MILLRACE_CONNECTIONS", .type = MR_OPTION_U64, .value = "N",
        .init = "4096", .help = "open connections, at most", .at = AT(connections),
        .min = 1, .max = 65536},
    {.name = "connections-per-address", .env = "MILLRACE_CONNECTIONS_PER_ADDRESS",
        .type = MR_OPTION_U64, .value = "N", .init = "512",
        .help = "open connections from one client address, at most; 0: no limit. Loopback and UNIX "
                "sockets have no limit",
        .at = AT(connections_each), .max = 65536},
    {.name = "threads", .env = "MILLRACE_GATEWAY_THREADS", .type = MR_OPTION_U64, .value = "N",
        .init = "4", .help = "HTTP threads", .at = AT(threads), .min = 2, .max = 64},
    {.name = "idle", .env = "MILLRACE_IDLE", .type = MR_OPTION_DURATION, .value = "TIME",
        .init = "30s", .help = "close a connection that moves no byte for this long",
        .at = AT(idle), .min = 1000000000, .max = 3600000000000},
    {.name = "reading-memory", .env = "MILLRACE_GATEWAY_READING_MEMORY", .type = MR_OPTION_BYTES,
        .value = "BYTES", .init = "512MiB",
        .help = "memory for request bodies that are being read; the requests of one user get half of it",
        .at = AT(reading_memory), .min = 65536, .max = (uint64_t)1 << 40},
    {.name = "grace", .env = "MILLRACE_GRACE", .type = MR_OPTION_DURATION, .value = "TIME",
        .init = "5s", .help = "on SIGTERM: let running requests finish for this long", .at = AT(grace)},
};
/* clang-format on */

static const struct mr_config_spec spec = {
    .program = "mr-gateway",
    .summary = "HTTP and JSON in, gRPC out: the REST interface of a millrace cluster.",
    .examples =
        "  mr-gateway --scheduler unix:/run/millrace/scheduler.sock\n"
        "  mr-gateway --listen 0.0.0.0:8470 --token-file tokens --scheduler 10.0.0.5:8471\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
};

MR_NORETURN static void fail(const char *flag, const struct mr_error *e)
{
    (void)fprintf(stderr, "mr-gateway: %s%s%s\n", flag, flag[0] ? ": " : "", e->text);
    exit(1);
}

static void on_signal(void *bridge, int number)
{
    mr_log(MR_INFO, "gateway.stop", "signal=%d", number);
    mr_bridge_stop(bridge);
}

static void write_port(const char *path, int port)
{
    if (!path) return;
    char text[16];
    struct mr_error e;
    (void)snprintf(text, sizeof text, "%d\n", port);
    if (mr_file_write(path, mr_str(text), 0644, &e)) fail("--port-file", &e);
}

/* Sets up TLS. HTTPS uses --tls-cert. Calls to the services use TLS if --tls-ca or a certificate of
 * the cluster is given, and plain TCP otherwise. Their client certificate is --cluster-cert, or
 * else --tls-cert. */
static int settle_tls(const struct config *c, struct mr_error *e)
{
    struct mr_certificate_files https = c->tls;
    struct mr_certificate_files services = c->cluster;
    bool has_own = mr_certificate_is_given(services.cert) || mr_certificate_is_given(services.key);
    https.ca = NULL; /* any CA may have signed the certificate for HTTPS */
    int err = mr_certificate_check(&https, e);
    if (!err && mr_certificate_is_given(https.cert)) err = mr_server_certificate_open(&https, e);
    if (err) return err;
    if (!has_own && !mr_certificate_is_given(c->tls.ca)) return MR_OK;
    if (has_own)
        services.kind = "cluster";
    else
        services = c->tls;
    services.ca = c->tls.ca;
    return mr_rpc_tls_use(&services, e);
}

/* Raises the limit of descriptors, because each connection needs one. The usual soft limit of 1,024
 * exists for programs that use select(2). */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void serve(const struct config *c, struct mr_http_options *o, struct mr_secret_file *secrets)
{
    struct mr_bridge_options b = {.scheduler = c->scheduler,
        .trainer = c->trainer,
        .stores = c->stores.items,
        .stores_count = c->stores.count,
        .secrets = secrets,
        .fd_deadlines = o->fd_deadlines,
        .stats = o->stats,
        .exchanges_max = o->connections_max};
    struct mr_bridge *bridge = mr_bridge_new(&b);
    struct mr_signals *signals = mr_signal_open(on_signal, bridge);
    struct mr_http *http;
    struct mr_error e;
    o->bridge = bridge;
    if (mr_http_open(o, &http, &e)) fail("", &e);
    write_port(c->port_file, mr_http_port(http));
    mr_log(MR_INFO, "gateway.ready", "listen=%s port=%d scheduler=%s", c->listen,
        mr_http_port(http), c->scheduler);
    mr_bridge_run(bridge);

    mr_http_quiesce(http);
    mr_bridge_drain(bridge, mr_clock_now() + c->grace, mr_http_unanswered(http));
    mr_http_close(&http);
    mr_signal_close(&signals);
    mr_bridge_free(&bridge);
    mr_log(MR_INFO, "gateway.stopped", "listen=%s", c->listen);
}

int main(int argc, char **argv)
{
    mr_signal_block();
    struct config c = {0};
    mr_config_load(&spec, argc, argv, &c, NULL);
    mr_log_set_program("mr-gateway");
    raise_descriptors();
    struct mr_error e;
    if (settle_tls(&c, &e)) fail("", &e);
    struct mr_token_file *tokens = NULL;
    struct mr_secret_file *secrets = NULL;
    struct mr_peer_rules peers;
    if (c.secret_file && mr_secret_file_open(c.secret_file, &secrets, &e)) fail("", &e);
    if (c.token_file && mr_token_file_open(c.token_file, NULL, &tokens, &e)) fail("", &e);
    if (mr_peer_rules_parse(&c.allow_uid, &peers, &e)) fail("", &e);
    struct mr_fd_deadlines *fd_deadlines = mr_fd_deadlines_new();
    struct mr_stats *stats = mr_stats_new();
    struct mr_allowance *allowance = mr_allowance_new(c.reading_memory, SMALL_BODY_BYTES);
    struct mr_http_options o = {.listen = c.listen,
        .hosts = c.hosts.items,
        .hosts_count = c.hosts.count,
        .tokens = tokens,
        .peers = peers,
        .dashboard = c.dashboard,
        .is_https = mr_certificate_is_given(c.tls.cert),
        .connections_max = (uint32_t)c.connections,
        .connections_each_max = (uint32_t)c.connections_each,
        .threads = (uint32_t)c.threads,
        .idle = c.idle,
        .allowance = allowance,
        .fd_deadlines = fd_deadlines,
        .stats = stats};
    serve(&c, &o, secrets);
    mr_server_certificate_close();
    mr_stats_free(&stats);
    mr_fd_deadlines_free(&fd_deadlines);
    mr_allowance_free(&allowance);
    mr_token_file_free(&tokens);
    mr_secret_file_free(&secrets);
    mr_config_fini(&spec, &c);
    return 0;
}
