/* The gRPC thread: its loop, messages from other threads, and authentication. */
#include "services/objectstore/api/service.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "proto/methods.h"
#include "services/objectstore/api/convert.h"
#include "services/objectstore/api/offload.h"
#include "services/objectstore/api/scheduler_session.h"
#include "services/objectstore/api/call.h"
#include "services/objectstore/api/directory_entries.h"
#include "services/objectstore/api/pull_receive.h"
#include "services/objectstore/api/checksum.h"

#include <pthread.h>
#include <string.h>

#define INBOX_ITEMS 65536u
#define UPLOAD_FREE_BYTES 65536 /* of each body: these do not count */
#define DRAIN_NS (5 * MR_SECOND)
#define WALK_AGAIN (200 * MR_MS)
#define NAMES_PAGE 1000u

struct item {
    void (*run)(void *p);
    void *p;
};

/* ---- what others post -------------------------------------------------------------------------*/

static _Thread_local struct mr_service *own; /* on the gRPC thread: its service */

void mr_service_post(struct mr_service *sv, void (*run)(void *p), void *p)
{
    struct item item = {run, p};
    if (own == sv) { /* never waits for itself */
        if (mr_inbox_push(sv->inbox, &item) == MR_ELIMIT) mr_deferred_add(&sv->later, run, p);
    } else if (mr_inbox_push_wait(sv->inbox, &item, MR_NEVER)) {
        return; /* closed: the loop has ended */
    }
    mr_rpc_loop_wake(sv->loop);
}

static void end_get(struct mr_ostore_call *call, const struct mr_store_completion *done)
{
    call->err = done->err;
    call->view = done->view;
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(call->id, id);
    const char *why = call->err == MR_ETIMEOUT ? "did not come in the time allowed"
                      : call->err == MR_ELOST  ? "was deleted, or its copy is lost"
                      : call->err == MR_EAWAY  ? "lies in a store that does not answer"
                                               : "cannot be had";
    if (call->err) (void)mr_fail(&call->error, call->err, "object %s %s", id, why);
    mr_ostore_call_end(call);
}

/* One round over all that others left here; what it runs may leave more, which nobody announces. */
static size_t take_round(struct mr_service *sv)
{
    struct item items[64];
    size_t n = mr_inbox_take(sv->inbox, items, MR_ARRAY_LEN(items));
    for (size_t i = 0; i < n; i++)
        items[i].run(items[i].p);
    n += mr_deferred_run(&sv->later);
    struct mr_store_completion done[64];
    size_t gets = sv->self ? mr_store_completions(sv->self, done, MR_ARRAY_LEN(done)) : 0;
    for (size_t i = 0; i < gets; i++)
        end_get((struct mr_ostore_call *)(uintptr_t)done[i].token, &done[i]);
    return n + gets;
}

static void turn(void *ctx)
{
    while (take_round(ctx))
        ;
}

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
    mr_service_post(ctx, run_answer, ask);
}

static void on_pull(void *ctx, mr_object_id id, const char *source)
{
    struct mr_service *sv = ctx;
    mr_pull_receiver_post(sv->pull_receiver, id, source);
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

/* ---- pins that outlive their call -------------------------------------------------------------*/

struct lease {
    struct mr_list node;
    struct mr_store_view view;
    mr_time until;
};

void mr_lease_view(struct mr_service *sv, struct mr_store_view *view, mr_duration d)
{
    struct lease *l = mr_alloc(sizeof *l);
    l->view = *view;
    l->until = mr_time_after(mr_clock_now(), d);
    *view = (struct mr_store_view){.id = view->id};
    mr_list_add_tail(&sv->leases, &l->node);
}

static mr_time end_leases(struct mr_service *sv, mr_time now)
{
    mr_time next = MR_NEVER;
    MR_LIST_EACH(node, &sv->leases)
    {
        struct lease *l = MR_LIST_ITEM(node, struct lease, node);
        if (l->until > now) {
            next = MR_MIN(next, l->until);
            continue;
        }
        mr_list_remove(node);
        mr_store_release(sv->self, &l->view);
        mr_release(l);
    }
    return next;
}

/* The address for other processes: with the port that the system chose in place of port 0. */
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

/* ---- life -------------------------------------------------------------------------------------*/

int mr_service_open(struct mr_ostore_shell *sh, const struct mr_service_config *config,
    struct mr_service **out, struct mr_error *e)
{
    struct mr_service *sv = mr_alloc(sizeof *sv);
    sv->sh = sh;
    sv->config = *config;
    sv->stats = mr_stats_new();
    sv->loop = mr_rpc_loop_new();
    sv->inbox = mr_inbox_new(INBOX_ITEMS, sizeof(struct item));
    own = sv;
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
    sv->pull_receiver = mr_pull_receiver_open(sv);
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

struct name_walk {
    struct mr_service *sv;
    char *after;
};

struct noted {
    struct mr_service *sv;
    char *name;
    mr_object_id object;
    bool may_be_stale; /* of this node, and not on disk: the object may have died with the store */
    struct mr_ask ask;
};

static void noted_free(struct noted *n)
{
    mr_release(n->ask.infos);
    mr_release(n->name);
    mr_release(n);
}

static void ignore_name(void *ctx, int err, const struct mr_name_record *record)
{
    (void)ctx;
    (void)err;
    (void)record;
}

static void note_looked_up(struct mr_ask *ask)
{
    struct noted *n = ask->ctx;
    if (ask->err) mr_names_remove(n->sv->names, mr_str(n->name), n->object, ignore_name, NULL);
    noted_free(n);
}

static void note_name(void *p)
{
    struct noted *n = p;
    mr_names_note(n->sv->names, mr_name_key(mr_str(n->name)), mr_str(n->name));
    n->ask = (struct mr_ask){
        .type = MR_ASK_STAT, .ev = {.id = n->object}, .done = note_looked_up, .ctx = n};
    if (!n->may_be_stale || mr_ostore_shell_ask(n->sv->sh, &n->ask)) noted_free(n);
}

static void take_name(struct mr_service *sv, const struct mr_name_record *r)
{
    struct noted *n = mr_alloc(sizeof *n);
    n->sv = sv;
    n->name = mr_format("%.*s", MR_STR_ARG(r->name));
    n->object = r->object;
    n->may_be_stale = !r->durable && mr_str_eq(r->node, mr_str(sv->config.node));
    mr_service_post(sv, note_name, n);
    mr_ostore_shell_post(sv->sh,
        &(struct mr_ostore_event){
            .type = MR_OE_HOLD, .id = r->object, .holder = {MR_HOLD_NAME, mr_name_key(r->name)}});
}

static void walk_names(void *p);

/* The directory was away: the walk goes on a little later. */
static void walk_later(void *p)
{
    struct name_walk *walk = p;
    walk->sv->walk = walk;
    walk->sv->walk_at = mr_time_after(mr_clock_now(), WALK_AGAIN);
}

/* What names hold is known; without a scheduler there is nobody else to claim what lay on the disk.
 */
static void all_named(void *p)
{
    struct mr_service *sv = p;
    sv->names_walked = true;
    if (!sv->config.scheduler)
        mr_ostore_shell_post(sv->sh, &(struct mr_ostore_event){.type = MR_OE_OFFERED});
}

/* A name holds its object also after a restart. On any thread. */
static void names_page(
    void *ctx, int err, const struct mr_name_record *records, size_t count, bool more)
{
    struct name_walk *walk = ctx;
    for (size_t i = 0; i < count && !err; i++)
        take_name(walk->sv, &records[i]);
    if (err == MR_EAWAY) {
        mr_service_post(walk->sv, walk_later, walk);
        return;
    }
    mr_release(walk->after);
    walk->after = NULL;
    if (!err && !(more && count)) mr_service_post(walk->sv, all_named, walk->sv);
    if (!err && more && count) {
        walk->after = mr_format("%.*s", MR_STR_ARG(records[count - 1].name));
        mr_service_post(walk->sv, walk_names, walk);
        return;
    }
    mr_release(walk);
}

static void walk_names(void *p)
{
    struct name_walk *walk = p;
    mr_names_list(walk->sv->names, MR_STR(""), walk->after ? mr_str(walk->after) : MR_STR(""),
        NAMES_PAGE, names_page, walk);
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
    struct name_walk *walk = mr_alloc(sizeof *walk);
    walk->sv = sv;
    walk_names(walk);
    mr_rpc_server_start(sv->server);
    sv->scheduler_session = mr_scheduler_session_open(sv);
    while (!atomic_load(&sv->stopping)) {
        mr_time now = mr_clock_now();
        mr_time next =
            MR_MIN(end_leases(sv, now), mr_scheduler_session_turn(sv->scheduler_session, now));
        if (sv->walk && sv->walk_at <= now) walk_names(MR_STEAL(sv->walk));
        if (sv->walk) next = MR_MIN(next, sv->walk_at);
        next = MR_MIN(next, mr_places_turn(sv->places, now));
        (void)mr_rpc_loop_run(sv->loop, next);
    }
    mr_log(MR_INFO, "objectstore.draining", "calls=%zu", mr_rpc_server_calls(sv->server));
    mr_scheduler_session_close(&sv->scheduler_session);
    mr_pull_receiver_close(&sv->pull_receiver);
    mr_rpc_server_close(&sv->server, DRAIN_NS); /* the turn goes on meanwhile */
    mr_converter_close(&sv->converter);
    mr_offload_close(&sv->hasher);
    mr_offload_close(&sv->checker);
    mr_inbox_close(sv->inbox);
    (void)end_leases(sv, MR_NEVER);
    turn(sv); /* ends calls whose call is over */
    if (sv->walk) mr_release(sv->walk->after);
    mr_release(sv->walk);
    sv->walk = NULL;
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
    mr_pull_receiver_close(&sv->pull_receiver);
    if (sv->server) mr_rpc_server_close(&sv->server, 0);
    mr_names_close(&sv->names);
    mr_places_free(&sv->places);
    mr_checksums_cache_free(&sv->checksums);
    mr_rpc_loop_free(&sv->loop);
    mr_inbox_free(&sv->inbox);
    mr_deferred_fini(&sv->later);
    mr_stats_free(&sv->stats);
    mr_release(sv->address);
    mr_rpc_auth_free(&sv->auth);
    mr_allowance_free(&sv->uploads);
    mr_release(sv);
    own = NULL;
}
