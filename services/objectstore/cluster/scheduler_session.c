/* The store's end of the stream StoreSession.Connect. */
#include "services/objectstore/cluster/scheduler_session.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "host/os/machine.h"
#include "rpc/client.h"
#include "rpc/util/pb.h"

#include <millrace/v1/session.pb-c.h>

#include <string.h>
#include <unistd.h>

#define HEARTBEAT_NS MR_SECOND /* interval of heartbeats until the scheduler sets another */
#define IDLE_BEATS 3           /* number of heartbeats in lease_ns while nothing changes */
#define RETRY_MIN_NS (100 * MR_MS)
#define RETRY_MAX_NS (2 * MR_SECOND)
#define OFFER_MAX 4096u
#define LOST_MAX 4096u
#define PERSISTING_MAX 64u /* limit of the list persisting_job in a heartbeat (session.proto) */

struct mr_scheduler_session {
    struct mr_service *sv;
    struct mr_rpc_channel *channel;
    struct mr_rpc_call *rpc; /* NULL: not connected */
    mr_duration heartbeat_ns;
    mr_duration lease_ns;
    uint32_t epoch;             /* the epoch that a scheduler sent last */
    uint64_t scheduler;         /* number of the scheduler's process that sent `epoch` */
    struct mr_store_stats told; /* what the last heartbeat said */
    bool told_full;
    mr_duration retry_ns;
    mr_time next; /* time of the next heartbeat, or of the next attempt to connect */
    uint64_t sequence;
    struct mr_ask ask;
    bool asking;
    mr_time next_offer;
    mr_object_id lost[LOST_MAX]; /* lost objects that the scheduler has not been told yet */
    uint32_t lost_count;
    bool closing;
    struct mr_pb_arena arena;
};

static void send(struct mr_scheduler_session *l, const Millrace__V1__StoreMessage *m)
{
    if (l->rpc) (void)mr_rpc_call_send_pb(l->rpc, &m->base);
}

static void each_id(
    struct mr_scheduler_session *l, const ProtobufCBinaryData *ids, size_t n, bool hold)
{
    /* key 0 stands for a job that only the scheduler knows */
    struct mr_store_holder job = {MR_HOLD_JOB, 0};
    for (size_t i = 0; i < n; i++) {
        mr_object_id id;
        if (mr_object_id_from_bytes(mr_str_of(ids[i].data, ids[i].len), &id)) continue;
        if (hold)
            mr_store_hold(l->sv->self, &id, 1, job);
        else
            mr_store_unhold(l->sv->self, &id, 1, job);
    }
}

/* Returns ids as bytes for a message, in the arena, which is cleared first. `stride`: bytes from
 * one id to the next. */
static ProtobufCBinaryData *ids_out(
    struct mr_scheduler_session *l, const mr_object_id *id, size_t stride, size_t n)
{
    mr_pb_arena_clear(&l->arena);
    ProtobufCBinaryData *out = mr_pb_arena_take(&l->arena, (n + 1) * sizeof *out);
    unsigned char *bytes = mr_pb_arena_take(&l->arena, n * 16 + 1);
    for (size_t i = 0; i < n; i++) {
        mr_object_id_to_bytes(
            *(const mr_object_id *)(const void *)((const char *)id + i * stride), bytes + i * 16);
        out[i] = (ProtobufCBinaryData){16, bytes + i * 16};
    }
    return out;
}

struct verification {
    struct mr_ask ask;
    struct mr_service *sv;
};

static void verified(struct mr_ask *ask)
{
    struct verification *x = MR_CONTAINER_OF(ask, struct verification, ask);
    struct mr_scheduler_session *l = x->sv->scheduler_session;
    if (l && l->rpc && ask->infos_count) {
        Millrace__V1__StoreMessage m = MILLRACE__V1__STORE_MESSAGE__INIT;
        m.n_lost = ask->infos_count;
        m.lost = ids_out(l, &ask->infos->id, sizeof *ask->infos, ask->infos_count);
        send(l, &m);
    }
    mr_release(ask->infos);
    mr_release(x);
}

/* Checks objects that the previous process of this store had. Those on its disk are here. Those in
 * its memory are lost; the scheduler is told at once, so that it need not wait for a lease to
 * end. */
static void verify(struct mr_scheduler_session *l, const ProtobufCBinaryData *ids, size_t n)
{
    if (!n) return;
    struct verification *x = mr_alloc(sizeof *x);
    x->sv = l->sv;
    x->ask.type = MR_ASK_MISSING;
    x->ask.done = verified;
    x->ask.infos = mr_alloc_array(n, sizeof *x->ask.infos);
    for (size_t i = 0; i < n; i++)
        if (!mr_object_id_from_bytes(
                mr_str_of(ids[i].data, ids[i].len), &x->ask.infos[x->ask.infos_count].id))
            x->ask.infos_count++;
    if (!mr_ostore_shell_ask(l->sv->sh, &x->ask)) return;
    /* the inbox is full: the scheduler repeats the ids in a new session */
    mr_release(x->ask.infos);
    mr_release(x);
    mr_rpc_call_cancel(l->rpc);
}

static void on_message(struct mr_rpc_call *rpc, struct mr_rpc_message *msg)
{
    struct mr_scheduler_session *l = mr_rpc_call_context(rpc);
    mr_pb_arena_clear(&l->arena);
    const Millrace__V1__StoreCommand *m = mr_pb_unpack(
        &millrace__v1__store_command__descriptor, mr_rpc_message_str(msg), &l->arena, NULL);
    if (!m) return;
    l->retry_ns = RETRY_MIN_NS;
    if (m->heartbeat_ns) l->heartbeat_ns = MR_MAX(m->heartbeat_ns, (uint64_t)(10 * MR_MS));
    if (m->heartbeat_ns) l->lease_ns = m->lease_ns;
    if (m->scheduler) {
        l->epoch = m->epoch;
        l->scheduler = m->scheduler;
    }
    each_id(l, m->hold, m->n_hold, true);
    each_id(l, m->claimed, m->n_claimed, true);
    each_id(l, m->verify, m->n_verify, true);
    verify(l, m->verify, m->n_verify);
    /* `unhold` comes last, because a job may have ended since the other lists were made */
    each_id(l, m->unhold, m->n_unhold, false);
}

static void on_done(struct mr_rpc_call *rpc, const struct mr_rpc_status *status)
{
    struct mr_scheduler_session *l = mr_rpc_call_context(rpc);
    l->rpc = NULL;
    if (l->closing) return;
    mr_log(MR_WARN, "scheduler.away", "code=%d what=\"%.*s\"", status->code,
        MR_STR_ARG(status->message));
    l->next = mr_clock_now() + l->retry_ns;
    l->retry_ns = MR_MIN(l->retry_ns * 2, RETRY_MAX_NS);
}

static const struct mr_rpc_handler handler = {.on_message = on_message, .on_done = on_done};

static void connect_now(struct mr_scheduler_session *l)
{
    l->rpc = mr_rpc_call_open(l->channel, "/millrace.v1.StoreSession/Connect", &handler, l, NULL);
    const struct mr_ostore_shell *sh = l->sv->sh;
    Millrace__V1__StoreRegister r = MILLRACE__V1__STORE_REGISTER__INIT;
    r.protocol_version = MR_PROTOCOL_VERSION;
    r.layout_version = MR_LAYOUT_VERSION;
    r.node = mr_unconst(l->sv->config.node);
    r.id = sh->welcome.node;
    r.address = mr_unconst(l->sv->address);
    r.socket = mr_unconst(sh->config.socket_path);
    r.memory_bytes = sh->config.memory_bytes;
    r.pid = (uint32_t)getpid();
    r.directory = l->sv->config.directory;
    r.epoch = l->epoch;
    r.scheduler = l->scheduler;
    Millrace__V1__StoreMessage m = MILLRACE__V1__STORE_MESSAGE__INIT;
    m.register_ = &r;
    send(l, &m);
    l->next_offer = 0;
    mr_ostore_shell_post(l->sv->sh, &(struct mr_ostore_event){.type = MR_OE_ASK_AGAIN});
}

static void tell_lost(struct mr_scheduler_session *l)
{
    if (!l->lost_count || !l->rpc) return;
    Millrace__V1__StoreMessage m = MILLRACE__V1__STORE_MESSAGE__INIT;
    m.n_lost = l->lost_count;
    m.lost = ids_out(l, l->lost, sizeof *l->lost, l->lost_count);
    send(l, &m);
    l->lost_count = 0;
}

static bool is_over(struct mr_scheduler_session *l)
{
    bool over = l->closing;
    l->asking = false;
    if (over) mr_release(l);
    return over;
}

static void offer(struct mr_ask *ask)
{
    struct mr_scheduler_session *l = ask->ctx;
    struct mr_ostore_info *infos = ask->infos;
    size_t n = ask->infos_count;
    if (!is_over(l) && n && l->rpc) {
        Millrace__V1__StoreMessage m = MILLRACE__V1__STORE_MESSAGE__INIT;
        m.n_unheld = n;
        m.unheld = ids_out(l, &infos->id, sizeof *infos, n);
        send(l, &m);
    }
    mr_release(infos);
}

/* Adds to the heartbeat the bytes that wait to be written, summed by job. The sums are in the
 * arena, which is cleared first. */
static void tell_persisting(struct mr_scheduler_session *l, Millrace__V1__StoreHeartbeat *h)
{
    mr_pb_arena_clear(&l->arena);
    h->persisting_job = mr_pb_arena_take(&l->arena, PERSISTING_MAX * sizeof *h->persisting_job);
    h->persisting_bytes = mr_pb_arena_take(&l->arena, PERSISTING_MAX * sizeof *h->persisting_bytes);
    size_t n = 0;
    MR_LIST_EACH(node, &l->sv->persisting)
    {
        const struct mr_persisting *p = MR_LIST_ITEM(node, struct mr_persisting, node);
        size_t i = 0;
        while (i < n && h->persisting_job[i] != p->job.v)
            i++;
        if (!p->job.v || !p->bytes || i == PERSISTING_MAX) continue;
        if (i == n) h->persisting_bytes[n++] = 0;
        h->persisting_job[i] = p->job.v;
        h->persisting_bytes[i] += p->bytes;
    }
    h->n_persisting_job = h->n_persisting_bytes = n;
}

/* Sets what the process has used since its start. */
static void usage_fill(Millrace__V1__StoreHeartbeat *h)
{
    struct mr_rpc_traffic traffic = mr_rpc_traffic();
    h->cpu_ns = mr_clock_process_cpu();
    h->received_bytes = traffic.received;
    h->sent_bytes = traffic.sent;
    h->resident_bytes = mr_machine_resident();
}

static void beat(struct mr_ask *ask)
{
    struct mr_scheduler_session *l = ask->ctx;
    struct mr_store_stats stats = ask->stats;
    bool is_full = ask->disk.is_full;
    if (is_over(l)) return;
    bool is_quiet = l->told.object_bytes == stats.object_bytes &&
                    l->told.spilled_bytes == stats.spilled_bytes &&
                    l->told.objects == stats.objects && l->told_full == is_full &&
                    mr_list_is_empty(&l->sv->persisting);
    if (is_quiet && l->rpc)
        l->next += MR_MAX(l->lease_ns / IDLE_BEATS, l->heartbeat_ns) - l->heartbeat_ns;
    l->told = stats;
    l->told_full = is_full;
    Millrace__V1__StoreHeartbeat h = MILLRACE__V1__STORE_HEARTBEAT__INIT;
    h.sequence = ++l->sequence;
    h.used_bytes = stats.object_bytes;
    h.spilled_bytes = stats.spilled_bytes;
    h.objects = stats.objects;
    h.written_bytes = stats.written_bytes;
    usage_fill(&h);
    tell_persisting(l, &h);
    if (is_full) h.disk_full = mr_unconst(l->sv->config.dir);
    Millrace__V1__StoreMessage m = MILLRACE__V1__STORE_MESSAGE__INIT;
    m.heartbeat = &h;
    send(l, &m);
    tell_lost(l);
    mr_time now = mr_clock_now();
    if (!l->rpc || !l->sv->names_walked || now < l->next_offer) return;
    /* half of claim_time, so that the scheduler is asked twice within it */
    l->next_offer = now + l->sv->sh->config.claim_time / 2;
    l->ask = (struct mr_ask){.type = MR_ASK_OFFER, .n_max = OFFER_MAX, .done = offer, .ctx = l};
    l->asking = !mr_ostore_shell_ask(l->sv->sh, &l->ask);
}

struct lost {
    struct mr_service *sv;
    mr_object_id id;
};

static void take_lost(void *p)
{
    struct lost *x = p;
    struct mr_scheduler_session *l = x->sv->scheduler_session;
    if (l && l->lost_count < LOST_MAX) l->lost[l->lost_count++] = x->id;
    if (l) tell_lost(l);
    mr_release(x);
}

void mr_scheduler_session_lost(struct mr_service *sv, mr_object_id id)
{
    if (!sv->config.scheduler) return;
    struct lost *x = mr_alloc(sizeof *x);
    *x = (struct lost){sv, id};
    mr_posts_add(sv->posts, take_lost, x);
}

struct mr_scheduler_session *mr_scheduler_session_open(struct mr_service *sv)
{
    if (!sv->config.scheduler) return NULL;
    struct mr_scheduler_session *l = mr_alloc(sizeof *l);
    l->sv = sv;
    l->heartbeat_ns = HEARTBEAT_NS;
    l->retry_ns = RETRY_MIN_NS;
    mr_pb_arena_init(&l->arena, (size_t)64 << 20);
    struct mr_rpc_channel_options options = {
        .credential = mr_rpc_auth_credential(sv->auth, MR_SERVICE_SCHEDULER)};
    l->channel = mr_rpc_channel_open(sv->loop, sv->config.scheduler, &options);
    return l;
}

void mr_scheduler_session_close(struct mr_scheduler_session **pl)
{
    struct mr_scheduler_session *l = MR_STEAL(*pl);
    if (!l) return;
    l->closing = true;
    if (l->rpc) (void)mr_rpc_call_half_close(l->rpc);
    mr_rpc_channel_close(&l->channel);
    while (l->rpc)
        (void)mr_rpc_loop_run(l->sv->loop, mr_clock_now() + MR_MS);
    mr_pb_arena_fini(&l->arena);
    if (!l->asking) mr_release(l);
}

mr_time mr_scheduler_session_turn(struct mr_scheduler_session *l, mr_time now)
{
    if (!l) return MR_NEVER;
    if (now < l->next) return l->next;
    if (!l->rpc) connect_now(l);
    l->next = now + l->heartbeat_ns;
    if (!l->asking) {
        l->ask = (struct mr_ask){.type = MR_ASK_STATS, .done = beat, .ctx = l};
        l->asking = !mr_ostore_shell_ask(l->sv->sh, &l->ask);
    }
    return l->next;
}

struct mr_rpc_channel *mr_scheduler_session_channel(struct mr_scheduler_session *l)
{
    return l ? l->channel : NULL;
}
