/* Pull, the sending side: chunks of 1 MiB that are lent to gRPC, not copied, each with its
 * checksum. A helper thread makes the checksums a few chunks ahead, while this one sends. What is
 * sent stays pinned until the last chunk has left, which may be after the call. */
#include "base/alloc.h"
#include "base/limits.h"
#include "base/protowire.h"
#include "services/objectstore/control/disk_threads.h"
#include "services/objectstore/api/offload.h"
#include "services/objectstore/api/call.h"
#include "services/objectstore/api/checksum.h"

#include <string.h>
#include <xxhash.h>

#define PULL_WAIT (30 * MR_SECOND)
#define AHEAD 4u /* chunks hashed before they are sent: they are still in the cache then */

/* One count for the op, one for each chunk that is being sent or hashed. */
struct cargo {
    _Atomic uint32_t count;
    struct mr_store *self;
    struct mr_store_view view;
    struct mr_sums *sums;
    struct mr_op *op;     /* while it waits */
    _Atomic bool awaited; /* the op waits for the next sum */
};

#define PEEK_BYTES 4096u

struct giving {
    bool head; /* only the beginning is wanted */
    struct cargo *cargo;
    uint64_t at;
    uint64_t hashed; /* chunks asked for */
    bool first_sent;
    bool finished;
};

static void cargo_put(void *p)
{
    struct cargo *c = p;
    if (atomic_fetch_sub(&c->count, 1) != 1) return;
    mr_store_release(c->self, &c->view);
    mr_sums_put(&c->sums);
    mr_release(c);
}

static void giving_fini(struct mr_op *op)
{
    struct giving *g = op->more;
    if (g->cargo) cargo_put(g->cargo);
    mr_release(g);
}

static void on_open(struct mr_rpc_call *call)
{
    struct mr_op *op = mr_op_new(call);
    op->more = mr_alloc(sizeof(struct giving));
    op->fini = giving_fini;
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    mr_op_over(mr_op_of(call));
}

/* ---- sums, ahead ------------------------------------------------------------------------------*/

static void go_on(void *p)
{
    mr_op_end(p);
}

static void tell(struct cargo *c)
{
    if (atomic_exchange(&c->awaited, false)) mr_service_post(c->op->sv, go_on, c->op);
}

/* On the helper's thread. */
static void hash_chunk(void *p, void *q)
{
    struct cargo *c = p;
    mr_sums_make(c->sums, c->view.p, c->view.bytes, (uint64_t)(uintptr_t)q + 1);
    tell(c);
    cargo_put(c);
}

static void hash_ahead(struct mr_op *op, uint64_t chunk)
{
    struct giving *g = op->more;
    struct cargo *c = g->cargo;
    uint64_t until = MR_MIN(chunk + AHEAD, c->sums->chunks);
    g->hashed = MR_MAX(g->hashed, atomic_load(&c->sums->made));
    for (; g->hashed < until; g->hashed++) {
        atomic_fetch_add(&c->count, 1);
        if (mr_helper_do(op->sv->hasher, hash_chunk, c, (void *)(uintptr_t)g->hashed)) {
            atomic_fetch_sub(&c->count, 1);
            return;
        }
    }
}

static void send_chunks(struct mr_op *op);

/* Is the sum of this chunk there? If not, send_chunks comes again when it is. */
static bool has_sum(struct mr_op *op, uint64_t chunk)
{
    struct giving *g = op->more;
    struct cargo *c = g->cargo;
    if (atomic_load(&c->sums->made) > chunk) return true;
    if (g->hashed <= chunk) { /* the helper has too much to do: it takes no more now */
        mr_op_fail(op, MR_ELIMIT, "too many objects are being pulled from this store at once");
        return false;
    }
    mr_op_begin(op, send_chunks);
    c->op = op;
    atomic_store(&c->awaited, true);
    if (atomic_load(&c->sums->made) > chunk) tell(c); /* made in between */
    return false;
}

/* ---- wire: the small fields by hand, the big one lent ------------------------------------------
 */

static int send_chunk(struct mr_op *op, uint64_t sum, size_t n)
{
    struct giving *g = op->more;
    unsigned char head[64];
    size_t at = 0;
    head[at++] = 1 << 3 | 0; /* offset */
    at += mr_protowire_put_varint(head + at, g->at);
    head[at++] = 3 << 3 | 1; /* checksum */
    memcpy(head + at, &sum, sizeof sum);
    at += sizeof sum;
    if (!g->first_sent) {
        head[at++] = 4 << 3 | 0; /* nbytes */
        at += mr_protowire_put_varint(head + at, g->cargo->view.bytes);
    }
    head[at++] = 2 << 3 | 2; /* data: last, so that it is one run */
    at += mr_protowire_put_varint(head + at, n);
    g->first_sent = true;
    atomic_fetch_add(&g->cargo->count, 1);
    struct mr_rpc_part parts[2] = {
        {.bytes = mr_str_of(head, at)},
        {.bytes = {(const char *)g->cargo->view.p + g->at, n},
            .release = cargo_put,
            .ctx = g->cargo},
    };
    return mr_rpc_call_send_parts(op->call, parts, 2);
}

static void send_chunks(struct mr_op *op)
{
    struct giving *g = op->more;
    uint64_t bytes = g->cargo->view.bytes;
    while (g->at < bytes && mr_rpc_call_is_writable(op->call)) {
        uint64_t chunk = g->at / MR_CHUNK_BYTES;
        hash_ahead(op, chunk);
        if (!has_sum(op, chunk)) return;
        size_t n = (size_t)MR_MIN(bytes - g->at, (uint64_t)MR_CHUNK_BYTES);
        if (send_chunk(op, g->cargo->sums->sum[chunk], n)) return; /* over: on_done follows */
        g->at += n;
    }
    if (g->at < bytes || g->finished) return;
    g->finished = true;
    op->sv->pulls_served++;
    (void)mr_rpc_call_finish_ok(op->call);
}

/* The beginning of an object: nobody has to bring the rest of it into memory for that. */
static void send_head(struct mr_op *op, const void *p, size_t n, uint64_t bytes)
{
    Millrace__V1__PullChunk chunk = MILLRACE__V1__PULL_CHUNK__INIT;
    chunk.data.data = (uint8_t *)(uintptr_t)p;
    chunk.data.len = n;
    chunk.checksum = XXH3_64bits(p, n);
    chunk.nbytes = bytes;
    op->sv->pulls_served++;
    (void)mr_rpc_call_reply_pb(op->call, &chunk.base);
}

static bool peek(struct mr_op *op)
{
    unsigned char bytes[PEEK_BYTES];
    uint64_t n, whole;
    if (mr_disk_peek(op->sv->sh->disk, op->id, bytes, sizeof bytes, &n, &whole, NULL)) return false;
    send_head(op, bytes, (size_t)n, whole);
    return true;
}

/* ---- the call ---------------------------------------------------------------------------------*/

static void viewed(struct mr_op *op)
{
    struct giving *g = op->more;
    if (op->err) {
        mr_op_fail_error(op);
        return;
    }
    if (g->head) {
        send_head(
            op, op->view.p, (size_t)MR_MIN(op->view.bytes, (uint64_t)PEEK_BYTES), op->view.bytes);
        return;
    }
    struct cargo *c = mr_alloc(sizeof *c);
    atomic_store(&c->count, 1);
    c->self = op->sv->self;
    c->view = op->view;
    c->sums = mr_sums_get(op->sv->sums, op->id, c->view.bytes);
    op->view = (struct mr_store_view){.id = op->id};
    g->cargo = c;
    if (g->at > c->view.bytes || g->at % MR_CHUNK_BYTES)
        mr_op_fail(op, MR_ERANGE, "offset: not a multiple of 1 MiB within the object");
    else
        send_chunks(op);
}

static void on_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_op *op = mr_op_of(call);
    struct giving *g = op->more;
    const Millrace__V1__PullRequest *r =
        mr_op_request(op, m, &millrace__v1__pull_request__descriptor);
    if (!r) return;
    if (mr_object_id_from_bytes(mr_str_of(r->id.data, r->id.len), &op->id)) {
        mr_op_fail(op, MR_EINVAL, "id: %zu bytes, not 16", r->id.len);
        return;
    }
    g->at = r->offset;
    g->head = r->head;
    if (g->head && g->at) {
        mr_op_fail(op, MR_EINVAL, "offset: the beginning of an object is at 0");
        return;
    }
    if (g->head && peek(op)) return;
    mr_op_get(op, NULL, PULL_WAIT, viewed);
}

static void on_writable(struct mr_rpc_call *call)
{
    struct mr_op *op = mr_op_of(call);
    struct giving *g = op->more;
    if (g->cargo && !op->open) send_chunks(op);
}

const struct mr_rpc_handler mr_pull_handler = {
    .on_open = on_open, .on_message = on_message, .on_writable = on_writable, .on_done = on_done};
