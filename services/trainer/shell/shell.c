/* The loop of the trainer, and the order of opening and closing. */
#include "services/trainer/shell/shell.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/utf8.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "proto/methods.h"
#include "rpc/util/metrics.h"
#include "store/meta/keys.h"
#include "store/meta/scripts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH_MAX 64
#define INBOX_MAX 65536
#define SCRATCH_BYTES_MAX ((size_t)128 << 20)
/* When the gRPC loop has had no event for this time, all cancelled calls have ended. */
#define SETTLE_TIME (10 * MR_MS)
#define DRAIN_TIME (5 * MR_SECOND)
/* seconds from 1970 to 2026-01-01, when epochs begin */
#define EPOCH_BEGIN_S ((uint64_t)1767225600)
#define EPOCH_TICK (MR_SECOND / 8)

struct item {
    void (*run)(void *p);
    void *p;
};

static _Thread_local const struct mr_trainer_shell *own; /* set on the loop's thread */

void mr_trainer_post(struct mr_trainer_shell *t, void (*run)(void *p), void *p)
{
    struct item item = {run, p};
    if (own == t) { /* the loop's thread must not wait for itself */
        if (mr_inbox_push(t->inbox, &item) == MR_ELIMIT) mr_deferred_add(&t->later, run, p);
    } else {
        (void)mr_inbox_push_wait(t->inbox, &item, MR_NEVER);
    }
}

void *mr_trainer_request(struct mr_trainer_shell *t, struct mr_rpc_call *call,
    struct mr_rpc_message *m, const ProtobufCMessageDescriptor *type)
{
    struct mr_error e = {0};
    mr_pb_arena_clear(&t->scratch);
    void *request = mr_pb_unpack_request(type, mr_rpc_message_str(m), &t->scratch, &e);
    if (!request) (void)mr_rpc_call_fail(call, &e);
    return request;
}

void mr_trainer_fail(struct mr_rpc_call *call, int code, const char *fmt, ...)
{
    struct mr_error e = {0};
    char text[MR_ERROR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)mr_fail(&e, code, "%s", text);
    (void)mr_rpc_call_fail(call, &e);
}

int mr_trainer_check_name(const char *field, const char *name, size_t bytes_max, struct mr_error *e)
{
    if (mr_utf8_is_key(mr_str(name), bytes_max)) return MR_OK;
    return mr_fail(e, MR_EINVAL,
        "%s: \"%s\" is no name: 1 to %zu bytes of UTF-8 without control characters would be one",
        field, name, bytes_max);
}

/* ---- the loop ---------------------------------------------------------------------------------*/

static mr_time turn(struct mr_trainer_shell *t)
{
    mr_time now = mr_clock_now(), next = MR_NEVER;
    for (size_t i = 0; i < t->options.parts_count; i++) {
        const struct mr_trainer_part *part = t->options.parts[i];
        if (part->turn) next = MR_MIN(next, part->turn(t->parts[i], now));
    }
    if (t->scheduler)
        next = MR_MIN(next, mr_usage_report_turn(&t->usage_report, t->scheduler, now));
    return next;
}

static size_t take(struct mr_trainer_shell *t, mr_time deadline)
{
    struct item batch[BATCH_MAX];
    if (t->later.count) deadline = 0;
    size_t n = mr_inbox_wait(t->inbox, deadline, batch, MR_ARRAY_LEN(batch));
    for (size_t i = 0; i < n; i++)
        batch[i].run(batch[i].p);
    return n + mr_deferred_run(&t->later);
}

int mr_trainer_run(struct mr_trainer_shell *t)
{
    while (!t->is_stopping)
        (void)take(t, turn(t));
    mr_log(MR_INFO, "trainer.draining", "calls=%zu", mr_rpc_server_calls(t->server));
    t->is_draining = true;
    mr_rpc_server_drain(t->server);
    for (size_t i = 0; i < t->options.parts_count; i++)
        if (t->options.parts[i]->drain) t->options.parts[i]->drain(t->parts[i]);
    mr_time until = mr_time_after(mr_clock_now(), DRAIN_TIME);
    while (!mr_rpc_server_is_drained(t->server) && mr_clock_now() < until)
        (void)take(t, MR_MIN(turn(t), mr_time_after(mr_clock_now(), 20 * MR_MS)));
    return 0;
}

static void stop(void *p)
{
    struct mr_trainer_shell *t = p;
    t->is_stopping = true;
}

void mr_trainer_stop(struct mr_trainer_shell *t)
{
    mr_trainer_post(t, stop, t);
}

/* ---- life -------------------------------------------------------------------------------------*/

static void on_redis(void *ctx, bool here, const char *why)
{
    (void)ctx;
    if (here)
        mr_log(MR_INFO, "redis.connected", "why=\"%s\"", why);
    else
        mr_log(MR_WARN, "redis.away", "why=\"%s\"", why);
}

static uint64_t ticks_now(void)
{
    uint64_t now = mr_clock_wall();
    uint64_t ticks =
        now > EPOCH_BEGIN_S * MR_SECOND ? (now - EPOCH_BEGIN_S * MR_SECOND) / EPOCH_TICK : 0;
    return MR_MIN(ticks + 1, (uint64_t)UINT32_MAX - (1u << 20));
}

/* Takes an epoch that no trainer had before, even if Redis has lost its data. The epoch is at least
 * the number of eighths of a second since 2026. A session id begins with the epoch, so session ids
 * are ordered by time. */
static int take_epoch(struct mr_trainer_shell *t, struct mr_error *e)
{
    char least[24];
    (void)snprintf(least, sizeof least, "%" PRIu64, ticks_now());
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_script_trainer_epoch(), MR_STR("1"),
        MR_STR(MR_META_PREFIX MR_META_TRAINER_EPOCH), mr_str(least)};
    struct mr_reply *reply = NULL;
    int err = mr_redis_call(t->redis, MR_ARRAY_LEN(argv), argv, &reply, e);
    if (err) return err;
    t->epoch = (uint32_t)mr_reply_int(reply);
    mr_reply_free(&reply);
    return MR_OK;
}

/* If this trainer's epoch equals ticks_now(), waits until ticks_now() is larger, so that the next
 * trainer takes a later epoch, even if Redis is empty by then. */
static void outlast_tick(const struct mr_trainer_shell *t)
{
    if (t->epoch == ticks_now()) mr_clock_sleep(EPOCH_TICK - mr_clock_wall() % EPOCH_TICK);
}

static int open_redis(struct mr_trainer_shell *t, struct mr_error *e)
{
    const struct mr_redis_config config = {
        .address = t->options.redis, .password = t->options.redis_password, .on_state = on_redis};
    int err = mr_redis_open(&config, &t->redis, e);
    if (!err && mr_redis_wait(t->redis, t->options.redis_timeout))
        err = mr_fail(e, MR_EAWAY, "Redis at %s does not answer", t->options.redis);
    return err ? err : take_epoch(t, e);
}

/* Sets the address for other processes. Port 0 is replaced by the port that the system has
 * chosen. */
static void set_address(struct mr_trainer_shell *t, const char *listened, int port)
{
    size_t n = strlen(listened);
    mr_release(t->address);
    if (strncmp(listened, "unix:", 5) != 0 && n > 2 && !strcmp(listened + n - 2, ":0"))
        t->address = mr_format("%.*s:%d", (int)(n - 2), listened, port);
    else
        t->address = mr_copy_text(listened);
}

static void end_waits(void *ctx, struct mr_str waiter)
{
    struct mr_trainer_shell *t = ctx;
    for (size_t i = 0; i < t->options.parts_count; i++)
        if (t->options.parts[i]->end_waits) t->options.parts[i]->end_waits(t->parts[i], waiter);
}

static int listen_all(
    struct mr_trainer_shell *t, const char *const *listen, size_t count, struct mr_error *e)
{
    int err = mr_rpc_server_add_descriptors(t->server, mr_proto_descriptor_set(), e);
    for (size_t i = 0; i < count && !err; i++) {
        int port = 0;
        err = mr_rpc_auth_listen(t->auth, t->server, listen[i], &port, e);
        if (err) return err;
        set_address(t, listen[i], port);
        mr_log(MR_INFO, "trainer.listening", "address=%s", t->address);
    }
    if (t->options.address) set_address(t, t->options.address, 0);
    return err;
}

static void open_channels(struct mr_trainer_shell *t)
{
    const struct mr_rpc_channel_options to_scheduler = {
        .credential = mr_rpc_auth_credential(t->auth, MR_SERVICE_SCHEDULER)};
    const struct mr_rpc_channel_options to_store = {
        .credential = mr_rpc_auth_credential(t->auth, MR_SERVICE_OBJECTSTORE)};
    mr_usage_report_init(&t->usage_report, "trainer");
    if (t->options.scheduler)
        t->scheduler = mr_rpc_channel_open(t->loop, t->options.scheduler, &to_scheduler);
    if (t->options.store) t->store = mr_rpc_channel_open(t->loop, t->options.store, &to_store);
}

static int open_parts(struct mr_trainer_shell *t, struct mr_error *e)
{
    mr_assert(t->options.parts_count <= MR_ARRAY_LEN(t->parts));
    for (size_t i = 0; i < t->options.parts_count; i++) {
        const struct mr_trainer_part *part = t->options.parts[i];
        int err = part->open(t, &t->parts[i], e);
        if (err) return err;
        mr_rpc_server_add_service(t->server, part->service, t->parts[i]);
    }
    return MR_OK;
}

int mr_trainer_open(const struct mr_trainer_options *options, const char *const *listen,
    size_t listen_count, struct mr_trainer_shell **out, struct mr_error *e)
{
    MR_AUTO(mr_trainer_close) struct mr_trainer_shell *t = mr_alloc(sizeof *t);
    own = t;
    t->options = *options;
    t->stats = mr_stats_new();
    t->loop = mr_rpc_loop_new();
    t->inbox = mr_inbox_new(INBOX_MAX, sizeof(struct item));
    mr_inbox_set_waiter(t->inbox, mr_rpc_loop_waiter(t->loop));
    mr_pb_arena_init(&t->scratch, SCRATCH_BYTES_MAX);
    const struct mr_rpc_auth_options access = {.token_file = options->token_file,
        .secret_file = options->secret_file,
        .role_of = mr_proto_role,
        .callers_of = mr_proto_callers};
    int err = mr_rpc_auth_new(&access, &t->auth, e);
    if (!err) err = open_redis(t, e);
    if (err) return err;
    open_channels(t);
    const struct mr_rpc_server_options server = {.fixed_window = true,
        .peers = options->peers,
        .auth = mr_rpc_auth_callback(t->auth),
        .auth_ctx = t->auth};
    t->server = mr_rpc_server_new(t->loop, &server);
    err = listen_all(t, listen, listen_count, e);
    if (!err) err = open_parts(t, e);
    if (err) return err;
    t->waits = (struct mr_rpc_waits){end_waits, t};
    mr_rpc_server_add_waits(t->server, &t->waits);
    mr_rpc_server_add_metrics(t->server, t->stats);
    outlast_tick(t);
    mr_rpc_server_start(t->server);
    mr_log(MR_INFO, "trainer.started", "epoch=%" PRIu32, t->epoch);
    *out = MR_STEAL(t);
    return MR_OK;
}

void mr_trainer_settle(struct mr_trainer_shell *t)
{
    while (take(t, 0) || mr_rpc_loop_run(t->loop, mr_time_after(mr_clock_now(), SETTLE_TIME)))
        ;
}

void mr_trainer_close(struct mr_trainer_shell **tp)
{
    struct mr_trainer_shell *t = MR_STEAL(*tp);
    if (!t) return;
    if (t->server) mr_rpc_server_close(&t->server, 0);
    mr_rpc_channel_close(&t->store);
    mr_rpc_channel_close(&t->scheduler);
    mr_redis_close(&t->redis); /* when this returns, all commands have had their answers */
    mr_trainer_settle(t);
    for (size_t i = t->options.parts_count; i-- > 0;)
        if (t->parts[i]) t->options.parts[i]->close(&t->parts[i]);
    mr_deferred_fini(&t->later);
    mr_pb_arena_fini(&t->scratch);
    mr_inbox_clear_waiter(t->inbox);
    mr_inbox_free(&t->inbox);
    mr_rpc_loop_free(&t->loop);
    mr_rpc_auth_free(&t->auth);
    mr_stats_free(&t->stats);
    mr_release(t->address);
    mr_release(t);
    own = NULL;
}
