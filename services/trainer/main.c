/* The program mr-trainer: reads the command line, and runs the trainer with its parts, the services
 * Channels, Queues and Trainings (shell/shell.h). */
#include "base/buf.h"
#include "host/config/common_options.h"
#include "host/config/config.h"
#include "host/os/file.h"
#include "host/os/log.h"
#include "host/os/signal.h"
#include "rpc/tls.h"
#include "services/trainer/channel/service.h"
#include "services/trainer/queue/service.h"
#include "services/trainer/session/session.h"
#include "services/trainer/shell/shell.h"

#include <stdio.h>

struct config {
    struct mr_texts listen;
    const char *address;
    const char *redis;
    const char *redis_password_file;
    mr_duration redis_timeout;
    const char *scheduler;
    const char *store;
    const char *token_file;
    const char *secret_file;
    struct mr_texts allow_uid;
    struct mr_certificate_files tls;
};

#define AT(field) offsetof(struct config, field)
// clang-format off
static const struct mr_option options[] = {
    MR_OPTION_GRPC_LISTEN("MILLRACE_TRAINER_LISTEN", "127.0.0.1:8474", AT(listen)),
    {.name = "address", .env = "MILLRACE_TRAINER_ADDRESS", .type = MR_OPTION_TEXT, .value = "ADDR",
        .help = "the address that roles on all nodes reach it at; default: the last --listen",
        .at = AT(address)},
    MR_OPTION_REDIS(AT(redis)),
    MR_OPTION_REDIS_PASSWORD_FILE(AT(redis_password_file)),
    MR_OPTION_REDIS_TIMEOUT(AT(redis_timeout)),
    MR_OPTION_SCHEDULER(AT(scheduler),
        "the cluster's scheduler, which runs the roles; default: none, nothing can be trained"),
    {.name = "store", .env = "MILLRACE_STORE", .type = MR_OPTION_TEXT, .value = "ADDR",
        .help = "an object store's gRPC address; default: none, queues take no objects",
        .at = AT(store)},
    MR_OPTION_TOKEN_FILE(AT(token_file), MR_TOKEN_FILE_HELP("who may call")),
    MR_OPTION_SECRET_FILE(AT(secret_file),
        "the cluster's secret: shown to scheduler and store, and wanted from roles and from "
        "gateways that pass users on"),
    MR_OPTION_ALLOW_UID(AT(allow_uid)),
    MR_RPC_TLS_OPTIONS(AT(tls)),
};
// clang-format on

static const struct mr_config_spec spec = {.program = "mr-trainer",
    .summary = "Keeps channels and queues, and runs training sessions.",
    .examples = "  mr-trainer --listen unix:/run/m/trainer.sock --redis unix:/run/m/redis.sock \\\n"
                "    --scheduler unix:/run/m/scheduler.sock --store unix:/run/m/store.sock\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options)};

/* The parts are opened in this order: a part may use an earlier one. */
static const struct mr_trainer_part *const parts[] = {
    &mr_channels_part, &mr_queues_part, &mr_trainings_part};

static void on_signal(void *ctx, int number)
{
    mr_log(MR_INFO, "trainer.signal", "number=%d", number);
    mr_trainer_stop(ctx);
}

int main(int argc, char **argv)
{
    struct config c = {0};
    struct mr_error e = {0};
    mr_signal_block();
    mr_log_set_program("mr-trainer");
    mr_config_load(&spec, argc, argv, &c, NULL);
    struct mr_signals *signals = mr_signal_open(NULL, NULL);
    struct mr_buf password;
    mr_buf_init(&password, 4096);
    if (c.redis_password_file) {
        if (mr_file_read_secret(c.redis_password_file, &password, &e)) {
            (void)fprintf(stderr, "mr-trainer: --redis-password-file: %s\n", e.text);
            return 2;
        }
        mr_buf_add_byte(&password, 0);
    }
    struct mr_trainer_options o = {.redis = c.redis,
        .redis_password = password.n ? (const char *)password.p : NULL,
        .redis_timeout = c.redis_timeout,
        .scheduler = c.scheduler,
        .store = c.store,
        .address = c.address,
        .token_file = c.token_file,
        .secret_file = c.secret_file,
        .parts = parts,
        .parts_count = MR_ARRAY_LEN(parts)};
    if (mr_peer_rules_parse(&c.allow_uid, &o.peers, &e) || mr_rpc_tls_use(&c.tls, &e)) {
        (void)fprintf(stderr, "mr-trainer: %s\n", e.text);
        return 2;
    }
    struct mr_trainer_shell *t = NULL;
    int code = 1;
    if (mr_trainer_open(&o, c.listen.items, c.listen.count, &t, &e)) {
        (void)fprintf(stderr, "mr-trainer: %s\n", e.text);
    } else {
        mr_signal_hand(signals, on_signal, t);
        code = mr_trainer_run(t);
        mr_signal_close(&signals);
        mr_trainer_close(&t);
    }
    mr_buf_fini(&password);
    mr_config_fini(&spec, &c);
    return code;
}
