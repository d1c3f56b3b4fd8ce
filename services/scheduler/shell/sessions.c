/* Knows which stream belongs to which worker or store, and nothing of tasks. A stream begins
 * nameless; its first message registers it, and the core answers by the note JOINED (with the slot)
 * or REFUSED. Batches leave when the stream takes them; until then they grow in the core's effects.
 * A batch that only lets go of things waits for company: nobody waits for it. Not for long where
 * these have bytes in a store.
 * A stream that ends is told to the core once, and only while it is still its slot's stream. */
#include "services/scheduler/shell/sessions.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "services/scheduler/base/catalogue.h"
#include "services/scheduler/telemetry/cluster_watch.h"
#include "services/scheduler/telemetry/logs.h"

#include <inttypes.h>
#include <stdio.h>

#define LAZY (10 * MR_MS)        /* what frees objects */
#define LAZY_SMALL (100 * MR_MS) /* and what does not: no more than MR_INLINE_BYTES_MAX each */
#define LAZY_ROWS_MAX 256

struct session {
    struct mr_list node; /* of all */
    struct mr_list lazy; /* of those with a batch that waits for company */
    mr_time lazy_since;
    struct mr_shell *sh;
    mr_rpc_call_id call;
    uint64_t number; /* never reused */
    bool is_store;
    bool has_registered; /* its first message came */
    bool has_joined;     /* the core took it: slot and incarnation hold */
    bool is_waiting;     /* a batch waits for on_writable */
    uint32_t slot;       /* of a worker; the store's number */
    uint64_t incarnation;
    uint64_t seen; /* sequence of a store's last heartbeat */
    struct mr_wire_tables tables;
    struct mr_session_facts facts;
    struct mr_store_facts store_facts;
    char *store_node; /* of a store, as the next two */
    uint64_t directory;
    uint32_t pid;
    char *texts; /* what facts points into */
};

struct mr_sessions {
    struct mr_shell *sh;
    struct mr_list all;
    struct mr_list lazy;
    mr_time lazy_due;        /* of one in it, or earlier */
    struct session **worker; /* by slot */
    struct session **store;  /* by number */
    uint64_t next;
};

struct mr_sessions *mr_sessions_new(struct mr_shell *sh)
{
    struct mr_sessions *s = mr_alloc(sizeof *s);
    s->sh = sh;
    mr_list_init(&s->all);
    mr_list_init(&s->lazy);
    s->lazy_due = MR_NEVER;
    s->worker = mr_alloc_array(sh->options.core.workers_max, sizeof *s->worker);
    s->store = mr_alloc_array((size_t)sh->options.core.stores_max + 1, sizeof *s->store);
    return s;
}

static void session_free(struct session *x)
{
    mr_list_remove(&x->node);
    mr_list_remove(&x->lazy);
    mr_wire_tables_fini(&x->tables);
    mr_release(x->texts);
    mr_release(x->store_node);
    mr_release(mr_unconst(x->facts.runtimes));
    mr_release(mr_unconst(x->facts.resources));
    mr_release(x);
}

void mr_sessions_free(struct mr_sessions **sp)
{
    struct mr_sessions *s = *sp;
    *sp = NULL;
    if (!s) return;
    MR_LIST_EACH(node, &s->all)
    session_free(MR_LIST_ITEM(node, struct session, node));
    mr_release(s->worker);
    mr_release(s->store);
    mr_release(s);
}

static struct session *session_of(const struct mr_rpc_call *call)
{
    return mr_rpc_call_context(call);
}

static void open_session(struct mr_rpc_call *call, bool is_store)
{
    struct mr_shell *sh = mr_shell_of(call);
    struct session *x = mr_alloc(sizeof *x);
    x->sh = sh;
    x->call = mr_rpc_call_id_of(call);
    x->number = ++sh->sessions->next;
    x->is_store = is_store;
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

/* Keeps what Workers shows and the core does not know: pid, address, runtimes, resources. */
static void keep_facts(
    struct session *x, const Millrace__V1__Register *m, const struct mr_sched_register *r)
{
    size_t bytes = strlen(m->address) + 1;
    for (size_t i = 0; i < m->n_runtimes; i++)
        bytes += strlen(m->runtimes[i]) + 1;
    for (uint32_t i = 0; i < r->resources_count; i++)
        bytes += r->resources[i].name.n;
    x->texts = mr_alloc(bytes);
    memcpy(x->texts, m->address, strlen(m->address) + 1);
    char *at = x->texts + strlen(m->address) + 1;
    const char **runtimes = mr_alloc_array(m->n_runtimes, sizeof *runtimes);
    struct mr_sched_resource *resources = mr_alloc_array(r->resources_count, sizeof *resources);
    for (size_t i = 0; i < m->n_runtimes; i++) {
        size_t n = strlen(m->runtimes[i]) + 1;
        memcpy(at, m->runtimes[i], n);
        runtimes[i] = at;
        at += n;
    }
    for (uint32_t i = 0; i < r->resources_count; i++) {
        struct mr_str name = r->resources[i].name;
        memcpy(at, name.p, name.n);
        resources[i] =
            (struct mr_sched_resource){mr_str_of(at, name.n), r->resources[i].amount_micro};
        at += name.n;
    }
    x->facts = (struct mr_session_facts){.pid = m->pid,
        .address = x->texts,
        .runtimes = runtimes,
        .runtimes_count = m->n_runtimes,
        .resources = resources,
        .resources_count = r->resources_count};
}

/* Whoever worked for a scheduler whose journal this one does not have: nothing that they hold for
 * its jobs is taken for a value of ours, and they are told to release it. */
static void tell_other_life(
    const struct mr_shell *sh, const char *who, uint64_t scheduler, uint32_t epoch)
{
    char quoted[MR_ERROR_TEXT_MAX];
    if (!scheduler || !mr_sched_is_lost_journal(sh->core, (uint32_t)(scheduler >> 32))) return;
    mr_log(MR_WARN, "session.other_life",
        "who=%s scheduler=%016" PRIx64 " epoch=%" PRIu32 " what=\"Redis came back without that "
        "scheduler's journal: what is held for its jobs is released\"",
        mr_log_quote(mr_str(who), quoted, sizeof quoted), scheduler, epoch);
}

static void worker_registers(
    struct session *x, struct mr_rpc_call *call, const Millrace__V1__Register *m)
{
    struct mr_error e = {0};
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_REGISTER};
    int err = mr_wire_register(x->sh, m, &ev.worker, &e);
    if (!err && x->has_registered) err = mr_fail(&e, MR_ESTATE, "a session registers once");
    if (err) {
        fail(call, &e);
        return;
    }
    x->has_registered = true;
    ev.worker.session = x->number;
    keep_facts(x, m, &ev.worker);
    for (size_t i = 0; i < m->n_ops; i++)
        mr_catalogue_add(x->sh, m->ops[i]);
    tell_other_life(x->sh, m->name, m->scheduler, m->epoch);
    mr_shell_step(x->sh, &ev);
}

static void on_worker_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct session *x = session_of(call);
    const Millrace__V1__WorkerMessage *m =
        mr_shell_request(x->sh, call, msg, &millrace__v1__worker_message__descriptor);
    if (!m) return;
    if (m->register_) {
        worker_registers(x, call, m->register_);
        return;
    }
    struct mr_error e = {0};
    struct mr_sched_event ev = {.type = MR_SCHED_WORKER_MESSAGE};
    ev.message.worker = x->slot;
    ev.message.incarnation = x->incarnation;
    int err = x->has_registered
                  ? mr_wire_message(x->sh, m, &ev.message, &e)
                  : mr_fail(&e, MR_ESTATE, "the first message of a session is register");
    if (err) {
        fail(call, &e);
        return;
    }
    if (!x->has_joined) return;
    if (m->n_logs || (m->completed && m->completed->n_failures)) mr_logs_message(x->sh, x->slot, m);
    mr_shell_step(x->sh, &ev);
    mr_logs_tell(x->sh);
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    struct session *x = session_of(call);
    struct mr_sessions *s = x->sh->sessions;
    struct session **slot = x->is_store ? s->store : s->worker;
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

static int send_store(struct session *x, struct mr_rpc_call *call, struct mr_sched_store_batch *b);

/* Does it only let go of things, and few? */
static bool is_lazy(const struct mr_sched_batch *b)
{
    if (!b) return true;
    bool asks = b->has_registered || b->drain || b->values.count || b->tasks.count ||
                b->cancel.count || b->steal.count || b->fetch.count || b->leave.count;
    if (b->heard && !b->release.count && !b->forget_jobs.n) return false; /* with what? */
    return !asks && b->release.count + b->forget_jobs.n / sizeof(uint64_t) <= LAZY_ROWS_MAX;
}

/* Until when may it wait? */
static mr_time lazy_until(const struct session *x, const struct mr_sched_batch *b)
{
    bool is_small = b && !b->frees_objects && !b->forget_jobs.n;
    return mr_time_after(x->lazy_since, is_small ? LAZY_SMALL : LAZY);
}

/* Sends a worker's batch if its stream takes it; true: with tasks. */
static bool flush_worker(struct mr_shell *sh, uint32_t slot)
{
    struct session *x = sh->sessions->worker[slot];
    struct mr_sched_batch *b = sh->fx.worker[slot];
    if (!x || !b || b->session != x->number) return false;
    struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, x->call);
    if (!call) return false;
    if (!mr_rpc_call_is_writable(call)) {
        x->is_waiting = true;
        return false;
    }
    bool with_tasks = b->tasks.count > 0;
    mr_list_remove(&x->lazy);
    mr_pb_arena_clear(&sh->scratch);
    Millrace__V1__SchedulerMessage *m = mr_wire_batch(sh, b, &x->tables);
    if (m->registered) m->registered->time_ns = mr_clock_now();
    int err = mr_rpc_call_send_pb(call, &m->base);
    if (err && err != MR_ECANCELED) {
        mr_log(MR_ERROR, "session.send", "slot=%" PRIu32 " error=%s", slot, mr_err_name(err));
        mr_rpc_call_cancel(call);
    }
    mr_sched_batch_put(&sh->fx, &sh->fx.worker[slot]);
    return with_tasks;
}

static void flush_store(struct mr_shell *sh, uint32_t number)
{
    struct session *x = sh->sessions->store[number];
    struct mr_sched_store_batch *b = &sh->fx.store[number];
    if (!x || !b->is_dirty) return;
    struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, x->call);
    if (!call) return;
    if (!mr_rpc_call_is_writable(call)) {
        x->is_waiting = true;
        return;
    }
    if (send_store(x, call, b)) mr_rpc_call_cancel(call);
    mr_sched_store_batch_clear(b);
}

static ProtobufCBinaryData *ids_out(struct mr_shell *sh, const struct mr_buf *b, size_t *n)
{
    const mr_object_id *ids = (const void *)b->p;
    *n = b->n / sizeof *ids;
    ProtobufCBinaryData *out = mr_shell_take(sh, *n * sizeof *out);
    unsigned char *bytes = mr_shell_take(sh, *n * 16);
    for (size_t i = 0; i < *n; i++) {
        mr_object_id_to_bytes(ids[i], bytes + 16 * i);
        out[i] = (ProtobufCBinaryData){.len = 16, .data = bytes + 16 * i};
    }
    return out;
}

static int send_store(struct session *x, struct mr_rpc_call *call, struct mr_sched_store_batch *b)
{
    struct mr_shell *sh = x->sh;
    mr_pb_arena_clear(&sh->scratch);
    Millrace__V1__StoreCommand m = MILLRACE__V1__STORE_COMMAND__INIT;
    if (b->has_registered) {
        m.heartbeat_ns = sh->options.core.heartbeat;
        m.lease_ns = sh->options.core.lease;
        m.epoch = mr_sched_epoch(sh->core);
        m.scheduler = sh->options.core.incarnation;
    }
    m.hold = ids_out(sh, &b->hold, &m.n_hold);
    m.unhold = ids_out(sh, &b->unhold, &m.n_unhold);
    m.claimed = ids_out(sh, &b->claimed, &m.n_claimed);
    m.verify = ids_out(sh, &b->verify, &m.n_verify);
    m.heard = x->seen;
    return mr_rpc_call_send_pb(call, &m.base);
}

static void on_writable(struct mr_rpc_call *call)
{
    struct session *x = session_of(call);
    if (!x->is_waiting || !x->has_joined) return;
    x->is_waiting = false;
    if (x->is_store)
        flush_store(x->sh, x->slot);
    else
        (void)flush_worker(x->sh, x->slot);
}

bool mr_sessions_flush(struct mr_shell *sh)
{
    struct mr_sessions *s = sh->sessions;
    bool with_tasks = false;
    const uint32_t *workers = (const void *)sh->fx.dirty_workers.p;
    const uint32_t *stores = (const void *)sh->fx.dirty_stores.p;
    mr_time now = mr_clock_now();
    s->lazy_due = MR_NEVER;
    for (size_t i = 0; i < sh->fx.dirty_workers.n / sizeof *workers; i++) {
        struct session *x = s->worker[workers[i]];
        if (!x || mr_list_is_linked(&x->lazy)) continue;
        x->lazy_since = now;
        mr_list_add_tail(&s->lazy, &x->lazy);
    }
    MR_LIST_EACH(node, &s->lazy)
    {
        struct session *x = MR_LIST_ITEM(node, struct session, lazy);
        if (is_lazy(sh->fx.worker[x->slot])) continue;
        mr_list_remove(node);
        with_tasks = flush_worker(sh, x->slot) || with_tasks;
    }
    MR_LIST_EACH(node, &s->lazy)
    {
        struct session *x = MR_LIST_ITEM(node, struct session, lazy);
        mr_time until = lazy_until(x, sh->fx.worker[x->slot]);
        if (with_tasks || until > now) { /* tasks first; these in the next turn */
            s->lazy_due = MR_MIN(s->lazy_due, until);
            continue;
        }
        mr_list_remove(node);
        (void)flush_worker(sh, x->slot);
    }
    for (size_t i = 0; i < sh->fx.dirty_stores.n / sizeof *stores; i++)
        flush_store(sh, stores[i]);
    return with_tasks;
}

mr_time mr_sessions_deadline(const struct mr_shell *sh)
{
    return sh->sessions->lazy_due;
}

static struct session *find(struct mr_sessions *s, uint64_t number)
{
    MR_LIST_EACH(node, &s->all)
    {
        struct session *x = MR_LIST_ITEM(node, struct session, node);
        if (x->number == number) return x;
    }
    return NULL;
}

static void join(struct mr_shell *sh, struct session *x, const struct mr_sched_note *n)
{
    struct session **slot =
        x->is_store ? &sh->sessions->store[n->slot] : &sh->sessions->worker[n->slot];
    if (*slot && *slot != x) { /* the same worker came back before its old stream was seen to end */
        struct mr_rpc_call *old = mr_rpc_call_find(sh->loop, (*slot)->call);
        (*slot)->has_joined = false;
        mr_list_remove(&(*slot)->lazy);
        if (old) mr_rpc_call_cancel(old);
    }
    *slot = x;
    x->has_joined = true;
    x->slot = n->slot;
    x->incarnation = n->incarnation;
    mr_log(MR_INFO, x->is_store ? "store.joined" : "worker.joined",
        "slot=%" PRIu32 " incarnation=%016" PRIx64, n->slot, n->incarnation);
}

static void end(
    struct mr_shell *sh, struct session *x, const struct mr_sched_note *n, struct mr_str text)
{
    struct mr_rpc_call *call = x ? mr_rpc_call_find(sh->loop, x->call) : NULL;
    struct mr_error e = {0};
    if (!call) return;
    (void)mr_fail(&e, n->code, "%.*s", MR_STR_ARG(text));
    fail(call, &e);
}

static struct session *find_store(const struct mr_sessions *s, uint64_t incarnation)
{
    MR_LIST_EACH(node, &s->all)
    {
        struct session *x = MR_LIST_ITEM(node, struct session, node);
        if (x->is_store && x->has_registered && x->incarnation == incarnation) return x;
    }
    return NULL;
}

void mr_sessions_note(struct mr_shell *sh, const struct mr_sched_note *n, struct mr_str text)
{
    struct mr_sessions *s = sh->sessions;
    struct session *x = NULL;
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
        lost = (struct mr_sched_note){.code = MR_EAWAY}; /* if it lives, it registers again */
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
        const struct session *x = sh->sessions->store[i];
        for (size_t k = 0; x && k < x->store_facts.persisting_count; k++)
            if (x->store_facts.persisting[k].job == job.v)
                bytes += x->store_facts.persisting[k].bytes;
    }
    return bytes;
}

/* ---- stores --------------------------------------------------------------------------------- */

/* A node has one store. The same directory, and one that does not answer any more, are of one that
 * died: it is replaced. */
static const struct session *rival(const struct session *x, const Millrace__V1__StoreRegister *m)
{
    const struct mr_sessions *s = x->sh->sessions;
    MR_LIST_EACH(node, &s->all)
    {
        const struct session *o = MR_LIST_ITEM(node, struct session, node);
        if (o == x || !o->is_store || !o->store_node || o->incarnation == m->id) continue;
        bool is_same = m->directory && o->directory == m->directory;
        if (!is_same && !strcmp(o->store_node, m->node)) return o;
    }
    return NULL;
}

static void store_registers(
    struct session *x, struct mr_rpc_call *call, const Millrace__V1__StoreRegister *m)
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
    const struct session *other = err ? NULL : rival(x, m);
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
    tell_other_life(x->sh, m->node, m->scheduler, m->epoch);
    mr_shell_step(x->sh, &ev);
}

static void objects_event(
    struct session *x, enum mr_sched_event_type type, const ProtobufCBinaryData *ids, size_t n)
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

static void take_persisting(struct mr_store_facts *f, const Millrace__V1__StoreHeartbeat *m)
{
    size_t n = MR_MIN(m->n_persisting_job, m->n_persisting_bytes);
    f->persisting_count = MR_MIN(n, (size_t)MR_PERSISTING_MAX);
    for (size_t i = 0; i < f->persisting_count; i++) {
        f->persisting[i].job = m->persisting_job[i];
        f->persisting[i].bytes = m->persisting_bytes[i];
    }
}

static void on_store_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct session *x = session_of(call);
    const Millrace__V1__StoreMessage *m =
        mr_shell_request(x->sh, call, msg, &millrace__v1__store_message__descriptor);
    if (!m) return;
    if (m->register_) store_registers(x, call, m->register_);
    if (!x->has_registered) return;
    if (m->heartbeat) {
        x->seen = m->heartbeat->sequence;
        x->store_facts.used_bytes = m->heartbeat->used_bytes;
        x->store_facts.spilled_bytes = m->heartbeat->spilled_bytes;
        x->store_facts.objects = m->heartbeat->objects;
        (void)snprintf(x->store_facts.disk_full, sizeof x->store_facts.disk_full, "%s",
            m->heartbeat->disk_full);
        take_persisting(&x->store_facts, m->heartbeat);
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
