/* mr-scheduler: reads the options and runs the shell. */
#include "base/limits.h"
#include "host/config/common_options.h"
#include "host/config/config.h"
#include "host/os/file.h"
#include "host/os/log.h"
#include "host/os/signal.h"
#include "host/os/reexec.h"
#include "rpc/tls.h"
#include "services/scheduler/submit/parser.h"
#include "services/scheduler/shell/shell.h"

#include <stdio.h>

/* jemalloc reads malloc_conf. A block of this size or more goes back to the kernel as soon as it is
 * freed, instead of after ten seconds: the memory that parsing a large graph took is needed for the
 * graph's tasks next. */
#define GIVEN_BACK_BYTES 262144
#define TEXT_OF(number) #number
#define CONF(bytes) "oversize_threshold:" TEXT_OF(bytes)
static_assert(MR_PARSER_PIECE_BYTES >= GIVEN_BACK_BYTES, "a piece of a body is such a block");
extern const char *malloc_conf;
__attribute__((visibility("default"))) const char *malloc_conf = CONF(GIVEN_BACK_BYTES);

struct config {
    struct mr_texts listen;
    const char *redis;
    const char *redis_password_file;
    const char *token_file;
    const char *secret_file;
    struct mr_texts allow_uid;
    struct mr_certificate_files tls;
    mr_duration redis_timeout;
    mr_duration heartbeat;
    mr_duration lease;
    mr_duration keep_jobs;
    uint64_t keep_jobs_max;
    uint64_t tasks_max;
    const char *dir;
    uint64_t trace_job_bytes;
    uint64_t trace_bytes;
    uint64_t trace_file_bytes;
    uint64_t reading_memory;
    mr_duration reading_idle;
    uint64_t events_kept;
};

#define AT(field) offsetof(struct config, field)
// clang-format off
static const struct mr_option options[] = {
    MR_OPTION_GRPC_LISTEN("MILLRACE_SCHEDULER_LISTEN", "127.0.0.1:8471", AT(listen)),
    MR_OPTION_REDIS(AT(redis)),
    MR_OPTION_REDIS_PASSWORD_FILE(AT(redis_password_file)),
    MR_OPTION_TOKEN_FILE(AT(token_file), MR_TOKEN_FILE_HELP("who may call")),
    MR_OPTION_SECRET_FILE(AT(secret_file),
        "the cluster's secret: workers and stores must show it, and gateways that pass users on"),
    MR_OPTION_ALLOW_UID(AT(allow_uid)),
    MR_RPC_TLS_OPTIONS(AT(tls)),
    MR_OPTION_REDIS_TIMEOUT(AT(redis_timeout)),
    {.name = "heartbeat", .type = MR_OPTION_DURATION, .value = "TIME", .init = "1s",
        .help = "how often workers and stores with work are heard; idle ones: a third of the lease",
        .at = AT(heartbeat)},
    {.name = "lease", .type = MR_OPTION_DURATION, .value = "TIME", .init = "10s",
        .help = "silence after which a worker or store is lost", .at = AT(lease)},
    {.name = "keep-jobs", .type = MR_OPTION_DURATION, .value = "TIME", .init = "24h",
        .help = "ended jobs are forgotten after this; 0 keeps them", .at = AT(keep_jobs)},
    {.name = "keep-jobs-max", .type = MR_OPTION_U64, .value = "N", .init = "1000",
        .help = "how many ended jobs are kept", .at = AT(keep_jobs_max), .min = 1, .max = 100000},
    {.name = "tasks-max", .type = MR_OPTION_U64, .value = "N", .init = "16000000",
        .help = "tasks over all jobs that are kept", .at = AT(tasks_max), .min = 1000, .max = 1000000000},
    {.name = "reading-memory", .env = "MILLRACE_READING_MEMORY", .type = MR_OPTION_BYTES, .value = "BYTES",
        .init = "2GiB", .help = "of jobs whose bodies are being read, in all; half of it for several of one user",
        .at = AT(reading_memory), .min = (uint64_t)1 << 20, .max = (uint64_t)1 << 40},
    {.name = "reading-idle", .env = "MILLRACE_READING_IDLE", .type = MR_OPTION_DURATION, .value = "TIME",
        .init = "60s", .help = "a submission that has sent no byte for this long is refused",
        .at = AT(reading_idle), .min = MR_MS, .max = 86400 * MR_SECOND},
    {.name = "events-kept", .env = "MILLRACE_EVENTS_KEPT", .type = MR_OPTION_U64, .value = "N", .init = "8192",
        .help = "events of the cluster that a stream can go back to", .at = AT(events_kept),
        .min = 16, .max = 1000000},
    {.name = "dir", .type = MR_OPTION_TEXT, .value = "DIR",
        .help = "state: traces past their caps go to DIR/trace (default: they are not recorded)", .at = AT(dir)},
    {.name = "trace-job-bytes", .env = "MILLRACE_TRACE_JOB_BYTES", .type = MR_OPTION_BYTES, .value = "BYTES",
        .init = "64MiB", .help = "of one job's trace in Redis", .at = AT(trace_job_bytes),
        .max = (uint64_t)1 << 40},
    {.name = "trace-bytes", .env = "MILLRACE_TRACE_BYTES", .type = MR_OPTION_BYTES, .value = "BYTES",
        .init = "256MiB", .help = "of all traces in Redis", .at = AT(trace_bytes), .max = (uint64_t)1 << 40},
    {.name = "trace-file-bytes", .env = "MILLRACE_TRACE_FILE_BYTES", .type = MR_OPTION_BYTES, .value = "BYTES",
        .init = "4GiB", .help = "of all traces in files", .at = AT(trace_file_bytes), .max = (uint64_t)1 << 50},
};
// clang-format on

static const struct mr_config_spec spec = {.program = "mr-scheduler",
    .summary = "Decides which task runs where, and remembers every accepted job.",
    .examples =
        "  mr-scheduler --listen unix:/run/millrace/scheduler.sock --redis unix:/run/millrace/redis.sock\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options)};

static void on_signal(void *ctx, int number)
{
    (void)mr_shell_push(
        ctx, (struct mr_shell_message){.kind = MR_SHELL_SIGNAL, .n = (uint64_t)number});
}

static void on_continue(void *ctx, mr_time at)
{
    (void)mr_shell_push(ctx, (struct mr_shell_message){.kind = MR_SHELL_CONTINUED, .n = at});
}

int main(int argc, char **argv)
{
    struct config config = {0};
    struct mr_error e = {0};
    mr_reexec_with(
        /* a thread of OpenBLAS would receive the SIGTERM that is sent to this process */
        argv, "OPENBLAS_NUM_THREADS", "1");
    mr_signal_block();
    mr_log_set_program("mr-scheduler");
    mr_config_load(&spec, argc, argv, &config, NULL);
    struct mr_signals *signals = mr_signal_open(NULL, NULL);
    struct mr_buf password;
    mr_buf_init(&password, 4096);
    if (config.redis_password_file) {
        if (mr_file_read_secret(config.redis_password_file, &password, &e)) {
            (void)fprintf(stderr, "mr-scheduler: --redis-password-file: %s\n", e.text);
            return 2;
        }
        mr_buf_add_byte(&password, 0);
    }
    struct mr_scheduler_options o = {.redis = config.redis,
        .redis_timeout = config.redis_timeout,
        .redis_password = password.n ? (const char *)password.p : NULL,
        .redis_password_file = config.redis_password_file,
        .token_file = config.token_file,
        .secret_file = config.secret_file};
    if (mr_peer_rules_parse(&config.allow_uid, &o.peers, &e) || mr_rpc_tls_use(&config.tls, &e)) {
        (void)fprintf(stderr, "mr-scheduler: %s\n", e.text);
        return 2;
    }
    o.dir = config.dir;
    o.trace_job_bytes = config.trace_job_bytes;
    o.trace_bytes = config.trace_bytes;
    o.trace_file_bytes = config.trace_file_bytes;
    o.reading_bytes = config.reading_memory;
    o.reading_idle = config.reading_idle;
    o.events_kept = (uint32_t)config.events_kept;
    mr_sched_config_default(&o.core);
    o.core.heartbeat = config.heartbeat;
    o.core.lease = config.lease;
    o.core.keep_jobs = config.keep_jobs;
    o.core.keep_jobs_max = (uint32_t)config.keep_jobs_max;
    o.core.tasks_max = (uint32_t)config.tasks_max;
    struct mr_shell *sh = NULL;
    if (mr_shell_open(&o, config.listen.items, config.listen.count, &sh, &e)) {
        (void)fprintf(stderr, "mr-scheduler: %s\n", e.text);
        return 1;
    }
    mr_signal_hand(signals, on_signal, sh);
    mr_signal_on_continue(signals, on_continue, sh);
    int code = mr_shell_run(sh);
    mr_signal_close(&signals);
    mr_shell_close(&sh);
    mr_buf_fini(&password);
    mr_config_fini(&spec, &config);
    return code;
}
