/* The sending side of Pull: chunks of 1 MiB, each with its checksum. gRPC sends the chunks from
 * shared memory without a copy. An offload thread computes checksums a few chunks ahead. The object
 * stays pinned until gRPC has sent the last chunk, which may be after the end of the call. */
#include "services/objectstore/cluster/pull_send.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/protowire.h"
#include "base/unconst.h"
#include "services/objectstore/call/call.h"
#include "services/objectstore/cluster/checksum.h"
#include "services/objectstore/cluster/offload.h"
#include "services/objectstore/control/disk_threads.h"

#include <string.h>
#include <xxhash.h>

#define PULL_WAIT (30 * MR_SECOND)
/* Limit of chunks that are hashed ahead: few enough that they are still in the processor's cache
 * when they are sent. */
#define AHEAD 4u

/* The pinned object. It has one reference for the call, and one for each chunk that is being sent
 * or hashed. */
struct cargo {
    _Atomic uint32_t count;
    struct mr_store *self;
    struct mr_store_view view;
    struct mr_checksums *checksums;
    struct mr_ostore_call *call; /* valid while `awaited` */
    _Atomic bool awaited;        /* the call waits for the next checksum */
};

#define PEEK_BYTES 4096u

struct sending {
    bool head; /* the request asks for the first bytes only */
    struct cargo *cargo;
    uint64_t at;
    uint64_t hashed; /* number of chunks that the offload thread has been given */
    bool first_sent;
    bool finished;
};

static void cargo_put(void *p)
{
    struct cargo *c = p;
    if (atomic_fetch_sub(&c->count, 1) != 1) return;
    mr_store_release(c->self, &c->view);
    mr_checksums_put(&c->checksums);
    mr_release(c);
}

static void sending_fini(struct mr_ostore_call *call)
{
    struct sending *g = call->more;
    if (g->cargo) cargo_put(g->cargo);
    mr_release(g);
}

static void on_open(struct mr_rpc_call *rpc)
{
    struct mr_ostore_call *call = mr_ostore_call_new(rpc);
    call->more = mr_alloc(sizeof(struct sending));
    call->fini = sending_fini;
}

static void on_done(struct mr_rpc_call *rpc, const struct mr_rpc_status *status)
{
    (void)status;
    mr_ostore_call_over(mr_ostore_call_of(rpc));
}

/* ---- checksums, ahead -------------------------------------------------------------------------*/

static void tell(struct cargo *c)
{
    if (atomic_exchange(&c->awaited, false)) mr_ostore_call_end_soon(c->call);
}

/* Computes the checksum of one chunk. Runs on the offload thread. `q`: where the checksum goes. */
static void hash_chunk(void *p, void *q)
{
    struct cargo *c = p;
    const uint64_t *sum = q;
    uint64_t chunk = (uint64_t)(sum - c->checksums->sum);
    mr_checksums_make(c->checksums, c->view.p, c->view.bytes, chunk + 1);
    tell(c);
    cargo_put(c);
}

static void hash_ahead(struct mr_ostore_call *call, uint64_t chunk)
{
    struct sending *g = call->more;
    struct cargo *c = g->cargo;
    uint64_t until = MR_MIN(chunk + AHEAD, c->checksums->chunks);
    g->hashed = MR_MAX(g->hashed, atomic_load(&c->checksums->made));
    for (; g->hashed < until; g->hashed++) {
        atomic_fetch_add(&c->count, 1);
        if (mr_offload_do(call->sv->hasher, hash_chunk, c, &c->checksums->sum[g->hashed])) {
            atomic_fetch_sub(&c->count, 1);
            return;
        }
    }
}

static void send_chunks(struct mr_ostore_call *call);

/* True: the checksum of this chunk is computed. False: send_chunks runs again later, or the call
 * was failed. */
static bool has_sum(struct mr_ostore_call *call, uint64_t chunk)
{
    struct sending *g = call->more;
    struct cargo *c = g->cargo;
    if (atomic_load(&c->checksums->made) > chunk) return true;
    if (g->hashed <= chunk) { /* the offload thread did not take the job, since it has too many */
        mr_ostore_call_fail(
            call, MR_ELIMIT, "too many objects are being pulled from this store at once");
        return false;
    }
    mr_ostore_call_begin(call, send_chunks);
    c->call = call;
    atomic_store(&c->awaited, true);
    /* If the checksum became ready before `awaited` was set, the offload thread has not continued
     * the call. */
    if (atomic_load(&c->checksums->made) > chunk) tell(c);
    return false;
}

/* ---- a PullChunk: the small fields are encoded by hand, the data is lent ----------------------*/

static int send_chunk(struct mr_ostore_call *call, uint64_t sum, size_t n)
{
    struct sending *g = call->more;
    unsigned char head[64];
    size_t at = 0;
    head[at++] = 1 << 3 | 0; /* key of the field `offset` */
    at += mr_protowire_put_varint(head + at, g->at);
    head[at++] = 3 << 3 | 1; /* key of the field `checksum` */
    memcpy(head + at, &sum, sizeof sum);
    at += sizeof sum;
    if (!g->first_sent) {
        head[at++] = 4 << 3 | 0; /* key of the field `nbytes` */
        at += mr_protowire_put_varint(head + at, g->cargo->view.bytes);
    }
    head[at++] = 2 << 3 | 2; /* key of the last field, `data` */
    at += mr_protowire_put_varint(head + at, n);
    g->first_sent = true;
    atomic_fetch_add(&g->cargo->count, 1);
    struct mr_rpc_part parts[2] = {
        {.bytes = mr_str_of(head, at)},
        {.bytes = {(const char *)g->cargo->view.p + g->at, n},
            .release = cargo_put,
            .ctx = g->cargo},
    };
    return mr_rpc_call_send_parts(call->rpc, parts, 2);
}

static void send_chunks(struct mr_ostore_call *call)
{
    struct sending *g = call->more;
    uint64_t bytes = g->cargo->view.bytes;
    while (g->at < bytes && mr_rpc_call_is_writable(call->rpc)) {
        uint64_t chunk = g->at / MR_CHUNK_BYTES;
        hash_ahead(call, chunk);
        if (!has_sum(call, chunk)) return;
        size_t n = (size_t)MR_MIN(bytes - g->at, (uint64_t)MR_CHUNK_BYTES);
        if (send_chunk(call, g->cargo->checksums->sum[chunk], n))
            return; /* the call is over, and on_done follows */
        g->at += n;
    }
    if (g->at < bytes || g->finished) return;
    g->finished = true;
    call->sv->pulls_served++;
    (void)mr_rpc_call_finish_ok(call->rpc);
}

/* Replies to a request for the first bytes. An object on disk is not restored for such a
 * request. */
static void send_head(struct mr_ostore_call *call, const void *p, size_t n, uint64_t bytes)
{
    Millrace__V1__PullChunk chunk = MILLRACE__V1__PULL_CHUNK__INIT;
    chunk.data.data = mr_unconst(p);
    chunk.data.len = n;
    chunk.checksum = XXH3_64bits(p, n);
    chunk.nbytes = bytes;
    call->sv->pulls_served++;
    mr_ostore_call_reply(call, &chunk.base);
}

static bool peek(struct mr_ostore_call *call)
{
    unsigned char bytes[PEEK_BYTES];
    struct mr_object_start start = {.p = bytes, .room = sizeof bytes};
    if (mr_disk_peek(call->sv->sh->disk, call->id, &start, NULL)) return false;
    send_head(call, bytes, (size_t)start.n, start.bytes);
    return true;
}

/* ---- the call ---------------------------------------------------------------------------------*/

static void viewed(struct mr_ostore_call *call)
{
    struct sending *g = call->more;
    if (call->err) {
        mr_ostore_call_fail_error(call);
        return;
    }
    if (g->head) {
        send_head(call, call->view.p, (size_t)MR_MIN(call->view.bytes, (uint64_t)PEEK_BYTES),
            call->view.bytes);
        return;
    }
    struct cargo *c = mr_alloc(sizeof *c);
    atomic_store(&c->count, 1);
    c->self = call->sv->self;
    c->view = call->view;
    c->checksums = mr_checksums_get(call->sv->checksums, call->id, c->view.bytes);
    call->view = (struct mr_store_view){.id = call->id};
    g->cargo = c;
    if (g->at > c->view.bytes || g->at % MR_CHUNK_BYTES)
        mr_ostore_call_fail(call, MR_ERANGE, "offset: not a multiple of 1 MiB within the object");
    else
        send_chunks(call);
}

static void on_message(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    struct sending *g = call->more;
    const Millrace__V1__PullRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__pull_request__descriptor);
    if (!r) return;
    if (mr_object_id_from_bytes(mr_str_of(r->id.data, r->id.len), &call->id)) {
        mr_ostore_call_fail(call, MR_EINVAL, "id: %zu bytes, not 16", r->id.len);
        return;
    }
    g->at = r->offset;
    g->head = r->head;
    if (g->head && g->at) {
        mr_ostore_call_fail(call, MR_EINVAL, "offset: must be 0 with head");
        return;
    }
    if (g->head && peek(call)) return;
    mr_ostore_call_get(call, NULL, PULL_WAIT, viewed);
}

static void on_writable(struct mr_rpc_call *rpc)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    struct sending *g = call->more;
    if (g->cargo && !call->open) send_chunks(call);
}

const struct mr_rpc_handler mr_pull_handler = {
    .on_open = on_open, .on_message = on_message, .on_writable = on_writable, .on_done = on_done};
