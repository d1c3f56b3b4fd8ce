/* Knows which stream belongs to which worker or object store. Knows nothing of tasks. The first
 * message of a stream registers its peer, and the core answers with the note JOINED, which has the
 * slot, or REFUSED. The core hears once that a stream has ended, and only if the stream is still
 * the one of its slot. */
#include "services/scheduler/shell/sessions.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "services/scheduler/base/catalogue.h"
#include "services/scheduler/live/usage.h"
#include "services/scheduler/shell/session.h"
#include "services/scheduler/telemetry/trace.h"
#include "services/scheduler/shell/session_send.h"
#include "services/scheduler/telemetry/cluster_watch.h"
#include "services/scheduler/telemetry/logs.h"
#include "session/decode.h"

#include <inttypes.h>

struct mr_sessions *mr_sessions_new(struct mr_shell *sh)
{
    struct mr_sessions *s = mr_alloc(sizeof *s);
    s->sh = sh;
    mr_list_init(&s->all);
    mr_list_init(&s->lazy);
    s->lazy_due = MR_NEVER;
    mr_buf_init(&s->wire, MR_MESSAGE_BYTES_MAX);
    s->worker = mr_alloc_array(sh->options.core.workers_max, sizeof *s->worker);
    s->store = mr_alloc_array((size_t)sh->options.core.stores_max + 1, sizeof *s->store);
    return s;
}

static void session_free(struct mr_session *x)
{
    mr_list_remove(&x->node);
    mr_list_remove(&x->lazy);
    mr_sched_numbers_fini(&x->numbers);
    mr_session_facts_fini(&x->facts);
    mr_release(x->store_node);
    mr_release(x);
}

void mr_sessions_free(struct mr_sessions **sp)
{
    struct mr_sessions *s = *sp;
    *sp = NULL;
    if (!s) return;
    MR_LIST_EACH(node, &s->all)
    session_free(MR_LIST_ITEM(node, struct mr_session, node));
    mr_release(s->worker);
    mr_release(s->store);
    mr_buf_fini(&s->wire);
    mr_release(s);
}

static struct mr_session *session_of(const struct mr_rpc_call *call)
{
    return mr_rpc_call_context(call);
}

static void open_session(struct mr_rpc_call *call, bool is_store)
{
    struct mr_shell *sh = mr_shell_of(call);
    struct mr_session *x = mr_alloc(sizeof *x);
    x->sh = sh;
    x->call = mr_rpc_call_id_of(call);
    x->number = ++sh->sessions->next;
    x->is_store = is_store;
    x->numbers.with_addresses = true;
    mr_list_add_tail(&sh->sessions->all, &x->node);
    mr_list_init(&x->lazy);
    mr_rpc_call_set_context(call, x);
}

static void on_open_worker(struct mr_rpc_call *call)
{
    open_session(call, false);
}

static void on_open_store(struct mr_rpc_call *call)
{
    open_session(call, true);
}

static void fail(struct mr_rpc_call *call, const struct mr_error *e)
{
    char quoted[MR_ERROR_TEXT_MAX];
    mr_log(
        MR_WARN, "session.refused", "why=%s", mr_log_quote(mr_str(e->text), quoted, sizeof quoted));
    (void)mr_rpc_call_fail(call, e);
}

/* Logs a peer that worked for a scheduler whose journal this scheduler does not have. The values
 * that the peer holds for jobs of that scheduler belong to no job here, so the peer is told to
 * release them. */
static void log_other_life(
    const struct mr_shell *sh, struct mr_str who, uint64_t scheduler, uint32_t epoch)
{
    char quoted[MR_ERROR_TEXT_MAX];
    if (!scheduler || !mr_sched_is_lost_journal(sh->core, (uint32_t)(scheduler >> 32))) return;
    mr_log(MR_WARN, "session.other_life",
        "who=%s scheduler=%016" PRIx64 " epoch=%" PRIu32 " what=\"Redis came back without that "
        "scheduler's journal: what is held for its jobs is released\"",
        mr_log_quote(who, quoted, sizeof quoted), scheduler, epoch);
}

static void worker_registers(
    struct mr_session *x, struct mr_rpc_call *call, const struct mr_ws_register *r)
{
    struct mr_error e = {0};
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_REGISTER, .session = x->number, .worker = *r};
    if (x->has_registered) {
        (void)mr_fail(&e, MR_ESTATE, "a session registers once");
        fail(call, &e);
        return;
    }
    x->has_registered = true;
    mr_session_facts_init(&x->facts, r);
    for (uint32_t i = 0; i < r->ops_count; i++)
        mr_catalogue_add(x->sh, &r->ops[i]);
    log_other_life(x->sh, r->name, r->scheduler, r->epoch);
    mr_shell_step(x->sh, &ev);
}

static void *take(void *arena, size_t bytes)
{
    return mr_pb_arena_take(arena, bytes);
}

static void on_worker_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_session *x = session_of(call);
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_MESSAGE, .slot = x->slot, .incarnation = x->incarnation};
    const struct mr_ws_up *m = &ev.message;
    struct mr_error e = {0};
    mr_pb_arena_clear(&x->sh->scratch);
    /* The decoded message may take at most half of the scratch arena. */
    const struct mr_ws_memory memory = {take, &x->sh->scratch, x->sh->scratch.bytes_max / 2};
    int err = mr_ws_decode_up(mr_rpc_message_str(msg), &memory, &ev.message, &e);
    if (!err && !m->reg && !x->has_registered)
        err = mr_fail(&e, MR_ESTATE, "the first message of a session is register");
    if (err) {
        fail(call, &e);
        return;
    }
    if (m->reg) {
        worker_registers(x, call, m->reg);
        return;
    }
    if (!x->has_joined) return;
    if (m->paused_until_ns)
        mr_trace_worker_paused(x->sh, x->slot, m->paused_from_ns, m->paused_until_ns);
    mr_receipts_received(&x->receipts, m->received_first, m->received_ns, m->received_count,
        mr_sched_clock_offset(x->sh->core, x->slot));
    if (m->logs_count || m->completed.failures_count) mr_logs_message(x->sh, x->slot, m);
    if (m->heartbeat) mr_usage_worker(x->sh, x->slot, m->heartbeat);
    mr_shell_step(x->sh, &ev);
    mr_logs_tell(x->sh);
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    struct mr_session *x = session_of(call);
    struct mr_sessions *s = x->sh->sessions;
    struct mr_session **slot = x->is_store ? s->store : s->worker;
    if (x->has_joined && slot[x->slot] == x) {
        slot[x->slot] = NULL;
        struct mr_sched_event ev = {
            .type = x->is_store ? MR_SCHED_STORE_CLOSED : MR_SCHED_WORKER_CLOSED};
        ev.slot = x->slot;
        ev.incarnation = x->incarnation;
        ev.store.store = x->incarnation;
        mr_shell_step(x->sh, &ev);
        mr_cluster_watch_dirty(x->sh);
    }
    session_free(x);
}

static void on_writable(struct mr_rpc_call *call)
{
    struct mr_session *x = session_of(call);
    if (!x->is_waiting || !x->has_joined) return;
    x->is_waiting = false;
    mr_session_flush(x);
}

static struct mr_session *find(struct mr_sessions *s, uint64_t number)
{
    MR_LIST_EACH(node, &s->all)
    {
        struct mr_session *x = MR_LIST_ITEM(node, struct mr_session, node);
        if (x->number == number) return x;
    }
    return NULL;
}

static void join(struct mr_shell *sh, struct mr_session *x, const struct mr_sched_note *n)
{
    struct mr_session **slot =
        x->is_store ? &sh->sessions->store[n->slot] : &sh->sessions->worker[n->slot];
    /* the worker or store came back before the end of its old stream was noticed */
    if (*slot && *slot != x) {
        struct mr_rpc_call *old = mr_rpc_call_find(sh->loop, (*slot)->call);
        (*slot)->has_joined = false;
        mr_list_remove(&(*slot)->lazy);
        if (old) mr_rpc_call_cancel(old);
    }
    *slot = x;
    x->has_joined = true;
    x->slot = n->slot;
    x->incarnation = n->incarnation;
    if (x->is_store)
        mr_usage_store_joined(sh, n->slot, x->store_facts.memory_bytes);
    else
        mr_usage_worker_joined(sh, n->slot);
    mr_log(MR_INFO, x->is_store ? "store.joined" : "worker.joined",
        "slot=%" PRIu32 " incarnation=%016" PRIx64, n->slot, n->incarnation);
}

static void end(
    struct mr_shell *sh, struct mr_session *x, const struct mr_sched_note *n, struct mr_str text)
{
    struct mr_rpc_call *call = x ? mr_rpc_call_find(sh->loop, x->call) : NULL;
    struct mr_error e = {0};
    if (!call) return;
    (void)mr_fail(&e, n->code, "%.*s", MR_STR_ARG(text));
    fail(call, &e);
}

static struct mr_session *find_store(const struct mr_sessions *s, uint64_t incarnation)
{
    MR_LIST_EACH(node, &s->all)
    {
        struct mr_session *x = MR_LIST_ITEM(node, struct mr_session, node);
        if (x->is_store && x->has_registered && x->incarnation == incarnation) return x;
    }
    return NULL;
}

void mr_sessions_note(struct mr_shell *sh, const struct mr_sched_note *n, struct mr_str text)
{
    struct mr_sessions *s = sh->sessions;
    struct mr_session *x = NULL;
    struct mr_sched_note lost;
    switch (n->type) {
    case MR_NOTE_WORKER_JOINED:
        x = find(s, n->session);
        if (x) join(sh, x, n);
        return;
    case MR_NOTE_WORKER_REFUSED: end(sh, find(s, n->session), n, text); return;
    case MR_NOTE_WORKER_CLOSE:
        x = s->worker[n->slot];
        if (x && x->incarnation == n->incarnation) end(sh, x, n, text);
        return;
    case MR_NOTE_STORE_JOINED:
        x = find_store(s, n->incarnation);
        if (x) join(sh, x, n);
        return;
    case MR_NOTE_STORE_LOST:
        mr_log(MR_WARN, n->code == MR_EEXIST ? "store.replaced" : "store.lost",
            "number=%" PRIu32 " incarnation=%016" PRIx64 " why=\"%.*s\"", n->slot, n->incarnation,
            MR_STR_ARG(text));
        lost = (struct mr_sched_note){
            .code = MR_EAWAY}; /* a store that is still alive registers again */
        end(sh, find_store(s, n->incarnation), &lost, text);
        return;
    case MR_NOTE_REPLY:
    case MR_NOTE_JOB_STATE:
    case MR_NOTE_JOB_PROGRESS:
    case MR_NOTE_TARGETS_READY:
    case MR_NOTE_TARGET_BYTES:
    case MR_NOTE_TARGET_FAILED:
    case MR_NOTE_JOB_FORGOTTEN: return;
    }
}

void mr_sessions_receipts(struct mr_shell *sh)
{
    struct mr_sched_span *spans = (void *)sh->fx.spans.p;
    const struct mr_sched_span *last = NULL; /* the span for which receipts were searched last */
    for (size_t i = 0; i < sh->fx.spans.n / sizeof *spans; i++) {
        struct mr_sched_span *p = &spans[i];
        const struct mr_session *x = sh->sessions->worker[p->worker];
        if (!x || !p->sent || !p->started) continue;
        bool is_same = last && last->worker == p->worker && last->sent == p->sent;
        p->received = is_same ? last->received : mr_receipts_find(&x->receipts, p->sent);
        last = p;
    }
}

bool mr_sessions_facts(const struct mr_shell *sh, uint32_t slot, struct mr_session_facts *out)
{
    if (slot >= sh->options.core.workers_max || !sh->sessions->worker[slot]) return false;
    *out = sh->sessions->worker[slot]->facts;
    return true;
}

bool mr_sessions_store_facts(const struct mr_shell *sh, uint32_t store, struct mr_store_facts *out)
{
    if (store > sh->options.core.stores_max || !sh->sessions->store[store]) return false;
    *out = sh->sessions->store[store]->store_facts;
    return true;
}

uint64_t mr_sessions_persisting(const struct mr_shell *sh, mr_job_id job)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i <= sh->options.core.stores_max; i++) {
        const struct mr_session *x = sh->sessions->store[i];
        if (x) bytes += mr_store_facts_persisting(&x->store_facts, job);
    }
    return bytes;
}

/* ---- stores --------------------------------------------------------------------------------- */

/* A node has one object store. Returns the session of another store on the node of the store that
 * registers. NULL: there is no other store, or the other store has the same directory. Only one
 * process uses a directory at a time, so the other store has died, and the store that registers
 * takes its place. */
static const struct mr_session *rival(
    const struct mr_session *x, const Millrace__V1__StoreRegister *m)
{
    const struct mr_sessions *s = x->sh->sessions;
    MR_LIST_EACH(node, &s->all)
    {
        const struct mr_session *o = MR_LIST_ITEM(node, struct mr_session, node);
        if (o == x || !o->is_store || !o->store_node || o->incarnation == m->id) continue;
        bool is_same = m->directory && o->directory == m->directory;
        if (!is_same && !strcmp(o->store_node, m->node)) return o;
    }
    return NULL;
}

static void store_registers(
    struct mr_session *x, struct mr_rpc_call *call, const Millrace__V1__StoreRegister *m)
{
    struct mr_error e = {0};
    int err = MR_OK;
    if (m->protocol_version != MR_PROTOCOL_VERSION || m->layout_version != MR_LAYOUT_VERSION)
        err = mr_fail(&e, MR_ESTATE,
            "store of node \"%s\" speaks protocol %u with value layout %u, this scheduler %d with %d",
            m->node, m->protocol_version, m->layout_version, MR_PROTOCOL_VERSION,
            MR_LAYOUT_VERSION);
    if (!err && (!m->id || x->has_registered))
        err = mr_fail(&e, MR_EINVAL, "a store registers once, with an id");
    const struct mr_session *other = err ? NULL : rival(x, m);
    if (other)
        err = mr_fail(&e, MR_ESTATE,
            "node \"%s\" has an object store already (pid %u), which is connected: a node has one; "
            "stop that one, or give this one another --node",
            m->node, other->pid);
    if (err) {
        fail(call, &e);
        return;
    }
    x->has_registered = true;
    x->store_node = mr_copy_text(m->node);
    x->directory = m->directory;
    x->pid = m->pid;
    x->incarnation = m->id;
    x->store_facts.memory_bytes = m->memory_bytes;
    struct mr_sched_event ev = {.type = MR_SCHED_STORE_REGISTER};
    ev.store = (struct mr_sched_store){.store = m->id,
        .node = mr_str(m->node),
        .address = mr_str(m->address),
        .memory_bytes = m->memory_bytes,
        .epoch = m->epoch,
        .scheduler = m->scheduler};
    log_other_life(x->sh, mr_str(m->node), m->scheduler, m->epoch);
    mr_shell_step(x->sh, &ev);
}

static void objects_event(
    struct mr_session *x, enum mr_sched_event_type type, const ProtobufCBinaryData *ids, size_t n)
{
    mr_object_id *out = mr_shell_take(x->sh, n * sizeof *out);
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (mr_object_id_from_bytes(mr_str_of(ids[i].data, ids[i].len), &out[count]) == MR_OK)
            count++;
    if (!count) return;
    struct mr_sched_event ev = {.type = type};
    ev.objects = (struct mr_sched_objects){.store = x->incarnation, .ids = out, .count = count};
    mr_shell_step(x->sh, &ev);
}

static void on_store_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_session *x = session_of(call);
    const Millrace__V1__StoreMessage *m =
        mr_shell_request(x->sh, call, msg, &millrace__v1__store_message__descriptor);
    if (!m) return;
    if (m->register_) store_registers(x, call, m->register_);
    if (!x->has_registered) return;
    if (m->heartbeat) {
        x->seen = m->heartbeat->sequence;
        mr_store_facts_heard(&x->store_facts, m->heartbeat);
        if (x->has_joined) mr_usage_store(x->sh, x->slot, m->heartbeat);
    }
    struct mr_sched_event ev = {.type = MR_SCHED_STORE_HEARD};
    ev.store.store = x->incarnation;
    ev.store.disk_full = mr_str(x->store_facts.disk_full);
    mr_shell_step(x->sh, &ev);
    objects_event(x, MR_SCHED_OBJECTS_LOST, m->lost, m->n_lost);
    objects_event(x, MR_SCHED_OBJECTS_UNHELD, m->unheld, m->n_unheld);
}

static void on_half_close(struct mr_rpc_call *call)
{
    (void)mr_rpc_call_finish_ok(call);
}

static const struct mr_rpc_handler worker_handler = {.on_open = on_open_worker,
    .on_message = on_worker_message,
    .on_half_close = on_half_close,
    .on_writable = on_writable,
    .on_done = on_done};
static const struct mr_rpc_handler store_handler = {.on_open = on_open_store,
    .on_message = on_store_message,
    .on_half_close = on_half_close,
    .on_writable = on_writable,
    .on_done = on_done};

static const struct mr_rpc_method worker_methods[] = {{.name = "Connect",
    .client_streaming = true,
    .server_streaming = true,
    .handler = &worker_handler}};
static const struct mr_rpc_method store_methods[] = {{.name = "Connect",
    .client_streaming = true,
    .server_streaming = true,
    .handler = &store_handler}};

const struct mr_rpc_service mr_worker_session_service = {.name = "millrace.v1.WorkerSession",
    .methods = worker_methods,
    .methods_count = MR_ARRAY_LEN(worker_methods)};
const struct mr_rpc_service mr_store_session_service = {.name = "millrace.v1.StoreSession",
    .methods = store_methods,
    .methods_count = MR_ARRAY_LEN(store_methods)};
