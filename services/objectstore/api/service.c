/* The gRPC side of the store: opens its parts, runs the loop of the gRPC thread, and closes the
 * parts. Gives the control thread its callbacks. */
#include "services/objectstore/api/service.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "proto/methods.h"
#include "services/objectstore/api/convert.h"
#include "services/objectstore/api/internal.h"
#include "services/objectstore/cluster/channels.h"
#include "services/objectstore/cluster/checksum.h"
#include "services/objectstore/cluster/directory_entries.h"
#include "services/objectstore/cluster/offload.h"
#include "services/objectstore/cluster/pull_receive.h"
#include "services/objectstore/cluster/scheduler_session.h"

#include <string.h>

/* the first bytes of each body, which do not count against the limit of uploads */
#define UPLOAD_FREE_BYTES 65536
#define DRAIN_NS (5 * MR_SECOND)

/* ---- what other threads call ------------------------------------------------------------------*/

static void completions_wait(void *ctx)
{
    struct mr_service *sv = ctx;
    mr_rpc_loop_wake(sv->loop);
}

static void run_answer(void *p)
{
    struct mr_ask *ask = p;
    ask->done(ask);
}

static void on_answer(void *ctx, struct mr_ask *ask)
{
    struct mr_service *sv = ctx;
    mr_posts_add(sv->posts, run_answer, ask);
}

static void on_pull(void *ctx, mr_object_id id, const char *source)
{
    mr_pull_start(ctx, id, source);
}

static void on_lost(void *ctx, mr_object_id id)
{
    mr_scheduler_session_lost(ctx, id);
}

static void on_unplace(void *ctx, mr_object_id id)
{
    struct mr_service *sv = ctx;
    mr_places_remove(sv, id, mr_str(sv->config.node));
}

static void on_names_here(void *ctx)
{
    struct mr_service *sv = ctx;
    mr_places_look(sv->places);
}

/* Sets the address that other processes use. Port 0 is replaced by the port that the system
 * chose. */
static void set_address(struct mr_service *sv, const char *listened, int port)
{
    size_t n = strlen(listened);
    mr_release(sv->address);
    if (strncmp(listened, "unix:", 5) != 0 && n > 2 && !strcmp(listened + n - 2, ":0"))
        sv->address = mr_format("%.*s:%d", (int)(n - 2), listened, port);
    else
        sv->address = mr_copy_text(listened);
}

static int listen_all(struct mr_service *sv, struct mr_error *e)
{
    const struct mr_texts *l = sv->config.listen;
    for (size_t i = 0; i < l->count; i++) {
        int port = 0;
        int err = mr_rpc_auth_listen(sv->auth, sv->server, l->items[i], &port, e);
        if (err) return err;
        set_address(sv, l->items[i], port);
        mr_log(MR_INFO, "objectstore.listening", "address=%s", sv->address);
    }
    if (sv->config.advertise) set_address(sv, sv->config.advertise, 0);
    return MR_OK;
}

/* ---- open, run, close -------------------------------------------------------------------------*/

int mr_service_open(struct mr_ostore_shell *sh, const struct mr_service_config *config,
    struct mr_service **out, struct mr_error *e)
{
    struct mr_service *sv = mr_alloc(sizeof *sv);
    sv->sh = sh;
    sv->config = *config;
    sv->stats = mr_stats_new();
    sv->loop = mr_rpc_loop_new();
    sv->posts = mr_posts_new(sv->loop);
    mr_list_init(&sv->leases);
    mr_list_init(&sv->persisting);
    sv->uploads = mr_allowance_new(sh->config.memory_bytes, UPLOAD_FREE_BYTES);
    const struct mr_rpc_auth_options access = {.token_file = config->token_file,
        .secret_file = config->secret_file,
        .role_of = mr_proto_role,
        .callers_of = mr_proto_callers};
    int err = mr_rpc_auth_new(&access, &sv->auth, e);
    struct mr_rpc_server_options options = {.peers = sh->config.peers,
        .auth = err ? NULL : mr_rpc_auth_callback(sv->auth),
        .auth_ctx = sv->auth};
    sv->server = mr_rpc_server_new(sv->loop, &options);
    mr_rpc_server_add_service(sv->server, &mr_objects_service, sv);
    mr_rpc_server_add_service(sv->server, &mr_metrics_service, sv);
    if (!err) err = mr_rpc_server_add_descriptors(sv->server, mr_proto_descriptor_set(), e);
    if (!err) err = listen_all(sv, e);
    sv->places = mr_places_new(sv);
    struct mr_names_config names = {.dir = config->dir,
        .redis = config->redis,
        .password = config->redis_password,
        .here = on_names_here,
        .ctx = sv};
    if (!err) err = mr_names_open(&names, &sv->names, e);
    if (err) {
        mr_service_close(&sv);
        return err;
    }
    sv->channels = mr_channels_new(sv->loop, sv->auth);
    sv->checksums = mr_checksums_cache_new();
    sh->address = sv->address;
    sh->answer = on_answer;
    sh->pull = on_pull;
    sh->lost = on_lost;
    sh->unplace = on_unplace;
    sh->answer_ctx = sv;
    *out = sv;
    return MR_OK;
}

/* Runs what other threads have posted, and continues the calls whose answers have come. A continued
 * call may ask again and get its answer at once, so the turn goes on until no answer is left. */
static void turn(void *ctx)
{
    struct mr_service *sv = ctx;
    for (size_t n = 1; n;) {
        n = mr_posts_run(sv->posts);
        n += mr_ostore_calls_got(sv);
    }
}

int mr_service_run(struct mr_service *sv, struct mr_store *self, struct mr_error *e)
{
    (void)e;
    sv->self = self;
    mr_store_set_notify(self, completions_wait, sv);
    sv->converter = mr_converter_open(sv);
    sv->hasher = mr_offload_open("hasher");
    sv->checker = mr_offload_open("checker");
    mr_rpc_loop_set_turn(sv->loop, turn, sv);
    mr_name_walk_start(sv);
    mr_rpc_server_start(sv->server);
    sv->scheduler_session = mr_scheduler_session_open(sv);
    while (!atomic_load(&sv->stopping)) {
        mr_time now = mr_clock_now();
        mr_time leases = mr_leases_end(sv, now);
        mr_time session = mr_scheduler_session_turn(sv->scheduler_session, now);
        mr_time names = mr_name_walk_turn(sv, now);
        mr_time places = mr_places_turn(sv->places, now);
        mr_time next = MR_MIN(MR_MIN(leases, session), MR_MIN(names, places));
        (void)mr_rpc_loop_run(sv->loop, next);
    }
    mr_log(MR_INFO, "objectstore.draining", "calls=%zu", mr_rpc_server_calls(sv->server));
    mr_scheduler_session_close(&sv->scheduler_session);
    mr_channels_close(&sv->channels);
    mr_rpc_server_close(&sv->server, DRAIN_NS); /* runs the loop and `turn` while calls end */
    mr_converter_close(&sv->converter);
    mr_offload_close(&sv->hasher);
    mr_offload_close(&sv->checker);
    mr_posts_close(sv->posts);
    (void)mr_leases_end(sv, MR_NEVER);
    turn(sv); /* frees the calls whose RPC has ended */
    mr_name_walk_stop(sv);
    sv->self = NULL;
    return MR_OK;
}

void mr_service_stop(struct mr_service *sv)
{
    atomic_store(&sv->stopping, true);
    mr_rpc_loop_wake(sv->loop);
}

void mr_service_close(struct mr_service **psv)
{
    struct mr_service *sv = MR_STEAL(*psv);
    if (!sv) return;
    mr_channels_close(&sv->channels);
    if (sv->server) mr_rpc_server_close(&sv->server, 0);
    mr_names_close(&sv->names);
    mr_places_free(&sv->places);
    mr_checksums_cache_free(&sv->checksums);
    mr_rpc_loop_free(&sv->loop);
    mr_posts_free(&sv->posts);
    mr_stats_free(&sv->stats);
    mr_release(sv->address);
    mr_rpc_auth_free(&sv->auth);
    mr_allowance_free(&sv->uploads);
    mr_release(sv);
}
