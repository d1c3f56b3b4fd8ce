/* Sends the core's batches to workers and stores. A batch is sent when the receiver's stream takes
 * messages; until then the batch grows in the core's effects. A worker's batch is lazy if it only
 * releases a few values or forgets jobs. A lazy batch waits for more rows, at most LAZY if it frees
 * objects in a store, otherwise at most LAZY_SMALL. */
#include "services/scheduler/shell/session_send.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "services/scheduler/shell/session.h"
#include "session/encode.h"

#include <inttypes.h>

#define LAZY (10 * MR_MS) /* longest wait of a lazy batch that frees objects */
/* longest wait of other lazy batches, which free small values only */
#define LAZY_SMALL (100 * MR_MS)
#define LAZY_ROWS_MAX 256
/* limit of the bytes of a message that is copied; the buffer of a larger message is given away */
#define SMALL 512
/* Estimated bytes of one task, input, value or release in a message. The bytes of arguments and of
 * inline values are counted separately. */
#define ROW_BYTES 6

static void *take(void *arena, size_t bytes)
{
    return mr_pb_arena_take(arena, bytes);
}

/* True: there is no batch, or the batch only releases values, and few of them. No process waits for
 * such a batch. False: the batch asks the worker for something, or it answers a heartbeat and has
 * no releases to send with the answer. */
static bool is_lazy(const struct mr_sched_batch *b)
{
    if (!b) return true;
    bool asks = b->has_registered || b->drain || b->values.count || b->tasks.count ||
                b->cancel.count || b->steal.count || b->fetch.count || b->leave.count;
    /* a batch without releases is sent at once if it answers a heartbeat */
    if (b->heard && !b->release.count) return false;
    return !asks && b->release.count <= LAZY_ROWS_MAX;
}

/* Returns the time until which a lazy batch may wait. */
static mr_time lazy_until(const struct mr_session *x, const struct mr_sched_batch *b)
{
    bool is_small = b && !b->frees_objects;
    return mr_time_after(x->lazy_since, is_small ? LAZY_SMALL : LAZY);
}

/* Encodes and sends a worker's batch. The buffer of a large message is given to the network, which
 * spares a copy. The buffer is sized beforehand, so that it seldom has to grow. */
static int send_worker(
    struct mr_session *x, struct mr_rpc_call *call, const struct mr_sched_batch *b)
{
    struct mr_shell *sh = x->sh;
    struct mr_buf *wire = &sh->sessions->wire;
    const struct mr_ws_memory memory = {take, &sh->scratch, sh->scratch.bytes_max};
    struct mr_ws_down m;
    mr_pb_arena_clear(&sh->scratch);
    mr_buf_clear(wire);
    mr_sched_batch_message(sh->core, b, &x->numbers, &memory, &m);
    x->numbers.registered.time_ns = mr_clock_now();
    x->numbers.registered.cluster_id = mr_str(sh->cluster_id);
    mr_buf_reserve(wire, SMALL + m.tasks.args.n + m.values.inlined.n +
                             ROW_BYTES * ((size_t)m.tasks.count + m.tasks.inputs_total +
                                             m.values.count + m.release.count));
    mr_ws_encode_down(&m, wire);
    if (mr_buf_status(wire)) return MR_ETOOBIG;
    if (wire->n <= SMALL) return mr_rpc_call_send(call, mr_buf_str(wire));
    struct mr_rpc_part part = {mr_buf_str(wire), mr_release, wire->p};
    mr_buf_init(wire, MR_MESSAGE_BYTES_MAX);
    return mr_rpc_call_send_parts(call, &part, 1);
}

/* Sends a worker's batch if the stream takes messages. True: the batch had tasks. */
static bool flush_worker(struct mr_shell *sh, uint32_t slot)
{
    struct mr_session *x = sh->sessions->worker[slot];
    struct mr_sched_batch *b = sh->fx.worker[slot];
    if (!x || !b || b->session != x->number) return false;
    struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, x->call);
    if (!call) return false;
    if (!mr_rpc_call_is_writable(call)) {
        x->is_waiting = true;
        return false;
    }
    bool with_tasks = b->tasks.count > 0;
    if (with_tasks) mr_receipts_sent(&x->receipts, mr_clock_now());
    mr_list_remove(&x->lazy);
    int err = send_worker(x, call, b);
    if (err && err != MR_ECANCELED) {
        mr_log(MR_ERROR, "session.send", "slot=%" PRIu32 " error=%s", slot, mr_err_name(err));
        mr_rpc_call_cancel(call);
    }
    mr_sched_batch_put(&sh->fx, &sh->fx.worker[slot]);
    return with_tasks;
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

static int send_store(
    struct mr_session *x, struct mr_rpc_call *call, struct mr_sched_store_batch *b)
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

static void flush_store(struct mr_shell *sh, uint32_t number)
{
    struct mr_session *x = sh->sessions->store[number];
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

void mr_session_flush(struct mr_session *x)
{
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
        struct mr_session *x = s->worker[workers[i]];
        if (!x || mr_list_is_linked(&x->lazy)) continue;
        x->lazy_since = now;
        mr_list_add_tail(&s->lazy, &x->lazy);
    }
    MR_LIST_EACH(node, &s->lazy)
    {
        struct mr_session *x = MR_LIST_ITEM(node, struct mr_session, lazy);
        if (is_lazy(sh->fx.worker[x->slot])) continue;
        mr_list_remove(node);
        with_tasks = flush_worker(sh, x->slot) || with_tasks;
    }
    MR_LIST_EACH(node, &s->lazy)
    {
        struct mr_session *x = MR_LIST_ITEM(node, struct mr_session, lazy);
        mr_time until = lazy_until(x, sh->fx.worker[x->slot]);
        /* tasks go first: lazy batches follow when the shell's loop comes here again */
        if (with_tasks || until > now) {
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
