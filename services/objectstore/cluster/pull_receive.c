/* The receiving side of Pull. The gRPC thread receives chunks. An offload thread copies each chunk
 * into the object and checks its checksum while the chunk is in the processor's cache. The object
 * is sealed when the last chunk was checked. */
#include "services/objectstore/cluster/pull_receive.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "host/os/log.h"
#include "rpc/client.h"
#include "rpc/status.h"
#include "rpc/util/pb.h"
#include "services/objectstore/cluster/channels.h"
#include "services/objectstore/cluster/offload.h"
#include "services/objectstore/control/disk_threads.h"

#include <millrace/v1/objects.pb-c.h>

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#define ROOM_WAIT (30 * MR_SECOND)
#define PULL_TIMEOUT (3600 * MR_SECOND)
#define WINDOW 8u       /* limit of chunks of one pull that wait to be checked */
#define PULLS_MAX 6000u /* limit of pulls at the same time */
static_assert(
    PULLS_MAX * (WINDOW + 2) <= MR_OFFLOAD_JOBS_MAX, "the offload thread has room for every chunk");

struct pull {
    struct mr_service *sv;
    struct mr_rpc_call *rpc; /* NULL: the RPC has ended */
    mr_object_id id;
    char *source; /* address of a store that has the object; NULL: not yet found */
    int err;
    struct mr_error error;
    uint64_t bytes;
    struct mr_draft_ask ask;
    bool asked; /* a draft was asked for, and the answer has not come */
    bool has_draft;
    struct mr_rpc_message *waiting; /* the first chunk, while the draft is being made */
    /* used by the offload thread alone, until it has checked all chunks; then read by `finish` */
    struct checked {
        uint64_t at;
        bool complete;
        int err;
        struct mr_error error;
    } checked;
    _Atomic uint32_t unchecked; /* number of chunks that the offload thread is still to check */
    _Atomic bool paused;        /* the gRPC thread reads no chunk until half the window is free */
};

/* ---- a chunk ----------------------------------------------------------------------------------*/

struct cursor { /* a position in a message whose bytes are in several parts */
    const struct mr_str *parts;
    size_t count;
    size_t part;
    size_t at;
};

static bool take_byte(struct cursor *c, unsigned char *out)
{
    while (c->part < c->count && c->at == c->parts[c->part].n) {
        c->part++;
        c->at = 0;
    }
    if (c->part == c->count) return false;
    *out = (unsigned char)c->parts[c->part].p[c->at++];
    return true;
}

static bool take_varint(struct cursor *c, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned char byte;
        if (!take_byte(c, &byte)) return false;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

/* Copies `n` bytes to `out`, or skips them if `out` is NULL. False: the message has fewer bytes
 * left. */
static bool take_bytes(struct cursor *c, void *out, uint64_t n)
{
    char *to = out;
    while (n) {
        if (c->part == c->count) return false;
        size_t here = c->parts[c->part].n - c->at;
        size_t some = (size_t)MR_MIN((uint64_t)here, n);
        if (to && some) memcpy(to, c->parts[c->part].p + c->at, some);
        if (to) to += some;
        n -= some;
        c->at += some;
        if (c->at < c->parts[c->part].n) continue;
        c->part++;
        c->at = 0;
    }
    return true;
}

struct chunk {
    uint64_t offset;
    uint64_t checksum;
    uint64_t nbytes;
    uint64_t data_bytes;
    bool has_checksum;
};

/* Parses a PullChunk by hand, so that its data is copied only once: to `out`, or nowhere if `out`
 * is NULL. Fields may come in any order. False: the message is malformed, or has more data than
 * `room`. */
static bool read_chunk(struct mr_rpc_message *m, struct chunk *x, void *out, uint64_t room)
{
    struct cursor c = {0};
    c.count = mr_rpc_message_parts(m, &c.parts);
    uint64_t left = mr_rpc_message_bytes(m);
    *x = (struct chunk){0};
    uint64_t tag;
    unsigned char byte;
    struct cursor before = c;
    while (take_byte(&c, &byte)) {
        c = before;
        if (!take_varint(&c, &tag)) return false;
        uint64_t v = 0;
        if (tag == (1 << 3 | 0)) {
            if (!take_varint(&c, &x->offset)) return false;
        } else if (tag == (4 << 3 | 0)) {
            if (!take_varint(&c, &x->nbytes)) return false;
        } else if (tag == (3 << 3 | 1)) {
            if (!take_bytes(&c, &x->checksum, 8)) return false;
            x->has_checksum = true;
        } else if (tag == (2 << 3 | 2)) {
            if (!take_varint(&c, &v) || v > left || (out && v > room)) return false;
            if (!take_bytes(&c, out, v)) return false;
            x->data_bytes = v;
        } else {
            return false; /* an unknown field is an error, since all stores are of one version */
        }
        before = c;
    }
    return true;
}

/* ---- one pull: the gRPC thread takes chunks in, the offload thread copies and checks them -----*/

static void pull_free(struct pull *p)
{
    p->sv->pulls_receiving--;
    mr_rpc_message_free(&p->waiting);
    mr_release(p->source);
    mr_release(p);
}

static void finish(void *ctx)
{
    struct pull *p = ctx;
    if (p->checked.err) {
        p->err = p->checked.err;
        p->error = p->checked.error;
    }
    if (!p->err && !p->checked.complete)
        p->err = mr_fail(&p->error, MR_EAWAY, "the stream from %s ended early", p->source);
    if (p->has_draft && !p->err) {
        p->err = mr_store_seal_copy(p->sv->self, &p->ask.draft, &p->error);
    } else if (p->has_draft) {
        mr_store_abort(p->sv->self, &p->ask.draft);
    }
    if (p->err && p->source) {
        char id[MR_OBJECT_ID_TEXT_MAX];
        mr_object_id_format(p->id, id);
        mr_log(MR_WARN, "pull.failed", "object=%s source=%s what=\"%s\"", id, p->source,
            p->error.text);
    }
    if (p->err)
        mr_ostore_shell_post(p->sv->sh,
            &(struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = p->id, .err = p->err});
    pull_free(p);
}

static void stop(struct pull *p, int code, const char *what)
{
    if (!p->err) p->err = mr_fail(&p->error, code, "%s", what);
    if (p->rpc) mr_rpc_call_cancel(p->rpc);
}

static void check_chunk(struct pull *p, struct mr_rpc_message *m)
{
    struct checked *k = &p->checked;
    struct chunk x;
    unsigned char *to = (unsigned char *)p->ask.draft.p + k->at;
    uint64_t room = p->bytes - k->at;
    if (!read_chunk(m, &x, to, room) || x.offset != k->at || !x.data_bytes)
        k->err = mr_fail(&k->error, MR_EFORMAT, "a chunk is malformed or out of order");
    else if (!x.has_checksum || XXH3_64bits(to, x.data_bytes) != x.checksum)
        k->err = mr_fail(&k->error, MR_EFORMAT, "the checksum of a chunk does not match");
    if (k->err) return;
    k->at += x.data_bytes;
    k->complete = k->at == p->bytes;
}

static void check_failed(void *ctx)
{
    /* `stop` ends the call. `finish` replaces this error with the exact one, p->checked.error. */
    stop(ctx, MR_EFORMAT, "a chunk is damaged");
}

static void read_on(void *ctx)
{
    struct pull *p = ctx;
    if (p->rpc && !p->err) mr_rpc_call_read(p->rpc);
}

/* Copies and checks one chunk. Runs on the offload thread. */
static void check(void *ctx, void *message)
{
    struct pull *p = ctx;
    struct mr_rpc_message *m = message;
    if (!p->checked.err) {
        check_chunk(p, m);
        if (p->checked.err) mr_posts_add(p->sv->posts, check_failed, p);
    }
    mr_rpc_message_free(&m);
    uint32_t left = atomic_fetch_sub(&p->unchecked, 1) - 1;
    if (left <= WINDOW / 2 && atomic_exchange(&p->paused, false))
        mr_posts_add(p->sv->posts, read_on, p);
}

static void take_chunk(struct pull *p, struct mr_rpc_message *m)
{
    uint32_t n = atomic_fetch_add(&p->unchecked, 1) + 1;
    /* mr_offload_do fails if the offload thread is closed, or if too many jobs wait for it */
    if (mr_offload_do(p->sv->checker, check, p, m)) {
        atomic_fetch_sub(&p->unchecked, 1);
        mr_rpc_message_free(&m);
        stop(p, MR_EAWAY, "the store is stopping");
        return;
    }
    if (!p->rpc) return;
    if (n < WINDOW) {
        mr_rpc_call_read(p->rpc);
        return;
    }
    atomic_store(&p->paused, true);
    if (atomic_load(&p->unchecked) <= WINDOW / 2 && atomic_exchange(&p->paused, false))
        mr_rpc_call_read(p->rpc);
}

static void all_checked(void *ctx, void *unused)
{
    struct pull *p = ctx;
    (void)unused;
    mr_posts_add(p->sv->posts, finish, p);
}

/* Called when no more chunks will come. The pull is over when the offload thread has checked the
 * chunks that it was given. */
static void end(struct pull *p)
{
    if (mr_offload_do(p->sv->checker, all_checked, p, NULL)) finish(p);
}

static void draft_came(void *ctx)
{
    struct pull *p = ctx;
    p->asked = false;
    p->has_draft = !p->ask.err;
    if (p->ask.err && !p->err) {
        p->error = p->ask.error;
        p->err = p->ask.err;
    }
    /* The chunk is taken even if the RPC has ended: a small object has only this chunk. */
    if (!p->err) take_chunk(p, MR_STEAL(p->waiting));
    if (!p->rpc)
        end(p);
    else if (p->err)
        mr_rpc_call_cancel(p->rpc);
}

static void draft_done(struct mr_draft_ask *ask) /* on a fetcher thread */
{
    struct pull *p = ask->ctx;
    mr_posts_add(p->sv->posts, draft_came, p);
}

static void first_chunk(struct pull *p, struct mr_rpc_message *m)
{
    struct chunk x;
    if (!read_chunk(m, &x, NULL, 0) || !x.nbytes || x.nbytes > MR_OBJECT_BYTES_MAX) {
        stop(p, MR_EFORMAT, "the first chunk is malformed");
        return;
    }
    p->bytes = x.nbytes;
    p->waiting = mr_rpc_message_take(m);
    p->ask = (struct mr_draft_ask){
        .id = p->id, .bytes = p->bytes, .timeout = ROOM_WAIT, .done = draft_done, .ctx = p};
    p->asked = true;
    if (!mr_disk_draft(p->sv->sh->disk, &p->ask)) return;
    p->asked = false;
    stop(p, MR_ELIMIT, "too many objects are being pulled at once");
}

static void on_message(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct pull *p = mr_rpc_call_context(rpc);
    if (p->err) return;
    if (p->has_draft)
        take_chunk(p, mr_rpc_message_take(m));
    else if (!p->asked)
        first_chunk(p, m);
}

static void on_done(struct mr_rpc_call *rpc, const struct mr_rpc_status *status)
{
    struct pull *p = mr_rpc_call_context(rpc);
    struct mr_error e = {0};
    int err = mr_rpc_status_error(status, &e);
    if (!p->err && err) {
        p->err = err;
        p->error = e;
    }
    p->rpc = NULL;
    if (!p->asked) end(p); /* if a draft was asked for, draft_came calls `end` */
}

static const struct mr_rpc_handler handler = {.on_message = on_message, .on_done = on_done};

/* ---- the start --------------------------------------------------------------------------------*/

static void start(void *ctx)
{
    struct pull *p = ctx;
    if (p->sv->pulls_receiving++ >= PULLS_MAX) {
        p->err = mr_fail(&p->error, MR_ELIMIT, "%u objects are being pulled already", PULLS_MAX);
        finish(p);
        return;
    }
    if (!p->source) {
        p->err = MR_EAGAIN;
        finish(p);
        return;
    }
    struct mr_rpc_channel *channel = mr_channels_get(p->sv->channels, p->source);
    if (!channel) {
        p->err =
            mr_fail(&p->error, MR_EAWAY, "this store is stopping, or has too many connections");
        finish(p);
        return;
    }
    unsigned char id[16];
    mr_object_id_to_bytes(p->id, id);
    Millrace__V1__PullRequest request = MILLRACE__V1__PULL_REQUEST__INIT;
    request.id.len = sizeof id;
    request.id.data = id;
    struct mr_rpc_call_options options = {.timeout = PULL_TIMEOUT, .manual_read = true};
    p->rpc = mr_rpc_call_open(channel, "/millrace.v1.Objects/Pull", &handler, p, &options);
    (void)mr_rpc_call_send_pb(p->rpc, &request.base);
    (void)mr_rpc_call_half_close(p->rpc);
    mr_rpc_call_read(p->rpc);
}

/* Takes the directory's answer. Called on any thread. */
static void found(void *ctx, int err, const struct mr_place_record *record)
{
    struct pull *p = ctx;
    if (!err && record && !mr_str_eq(record->address, mr_str(p->sv->address)))
        p->source = mr_format("%.*s", MR_STR_ARG(record->address));
    mr_posts_add(p->sv->posts, start, p);
}

static void seek(void *ctx)
{
    struct pull *p = ctx;
    mr_names_find(p->sv->names, p->id, found, p);
}

void mr_pull_start(struct mr_service *sv, mr_object_id id, const char *source)
{
    struct pull *p = mr_alloc(sizeof *p);
    p->sv = sv;
    p->id = id;
    p->source = source ? mr_copy_text(source) : NULL;
    mr_posts_add(p->sv->posts, source ? start : seek, p);
}
