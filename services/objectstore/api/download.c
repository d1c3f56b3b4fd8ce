/* The method Get: sends an object in a format, in pieces of 1 MiB. gRPC sends the bytes of the
 * value from shared memory without a copy. The object stays pinned until gRPC has sent the last
 * piece, which may be after the end of the call. */
#include "services/objectstore/api/internal.h"

#include "base/alloc.h"
#include "base/protowire.h"
#include "services/objectstore/api/convert.h"
#include "services/objectstore/call/lookup.h"

#include <math.h>
#include <string.h>

#define FETCH_WAIT (60 * MR_SECOND)
#define WAIT_SECONDS_MAX 3600.0

/* The pinned object and its pieces. `count` counts the references to this struct: one for the
 * call, and one for each piece that gRPC sends. gRPC drops its references on any thread. */
struct cargo {
    _Atomic uint32_t count;
    struct mr_store *self;
    struct mr_store_view view;
    struct mr_format_job job;
};

struct download {
    struct cargo *cargo;
    char *accept;
    char *name;
    double wait_s;
    /* first byte that the client asks for, in the bytes of the format; negative: counted from the
     * end */
    int64_t offset;
    uint64_t bytes_max;
    size_t piece;   /* index of the next piece to send */
    uint64_t at;    /* in piece number `piece`, the position of the next byte to send */
    uint64_t total; /* bytes of the value in its format */
    uint64_t from;  /* offset of the reply's first byte in the `total` bytes */
    uint64_t left;  /* number of bytes that are still to be sent */
    bool first_sent;
    bool is_over;
};

static void cargo_put(void *p)
{
    struct cargo *c = p;
    if (atomic_fetch_sub(&c->count, 1) != 1) return;
    mr_store_release(c->self, &c->view);
    mr_format_job_fini(&c->job);
    mr_release(c);
}

static void download_fini(struct mr_ostore_call *call)
{
    struct download *d = call->more;
    if (d->cargo) cargo_put(d->cargo);
    mr_release(d->accept);
    mr_release(d->name);
    mr_release(d);
}

static void on_open(struct mr_rpc_call *rpc)
{
    struct mr_ostore_call *call = mr_ostore_call_new(rpc);
    call->more = mr_alloc(sizeof(struct download));
    call->fini = download_fini;
}

static void on_done(struct mr_rpc_call *rpc, const struct mr_rpc_status *status)
{
    (void)status;
    mr_ostore_call_over(mr_ostore_call_of(rpc));
}

static struct cargo *load(struct mr_ostore_call *call)
{
    struct download *d = call->more;
    struct cargo *c = mr_alloc(sizeof *c);
    atomic_store(&c->count, 1);
    c->self = call->sv->self;
    c->view = call->view;
    call->view = (struct mr_store_view){.id = call->id};
    d->cargo = c;
    return c;
}

/* ---- HttpBody: the small fields are encoded by hand, the data is lent -------------------------*/

static int send_lent(struct mr_ostore_call *call, const unsigned char *head, size_t head_bytes,
    const char *data, size_t n)
{
    struct download *d = call->more;
    atomic_fetch_add(&d->cargo->count, 1);
    struct mr_rpc_part parts[2] = {
        {.bytes = mr_str_of(head, head_bytes)},
        {.bytes = {data, n}, .release = cargo_put, .ctx = d->cargo},
    };
    return mr_rpc_call_send_parts(call->rpc, parts, 2);
}

/* ---- Get --------------------------------------------------------------------------------------*/

/* Writes field 3 of HttpBody, a google.protobuf.Any with a BodyPart. Returns the bytes written. */
static size_t put_part(const struct mr_ostore_call *call, unsigned char *out)
{
    static const char url[] = "type.googleapis.com/millrace.v1.BodyPart";
    const struct download *d = call->more;
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(call->id, id);
    struct mr_buf part, any;
    mr_buf_init(&part, 128);
    mr_buf_init(&any, 256);
    mr_protowire_add_bytes(&part, 1, mr_str(id));
    mr_protowire_add_varint(&part, 2, d->total);
    mr_protowire_add_varint(&part, 3, d->from);
    mr_protowire_add_bytes(&any, 1, mr_str(url));
    mr_protowire_add_bytes(&any, 2, mr_buf_str(&part));
    size_t at = 0;
    out[at++] = 3 << 3 | 2;
    at += mr_protowire_put_varint(out + at, any.n);
    memcpy(out + at, any.p, any.n);
    at += any.n;
    mr_buf_fini(&part);
    mr_buf_fini(&any);
    return at;
}

static int send_body(struct mr_ostore_call *call, const char *data, size_t n)
{
    struct download *d = call->more;
    unsigned char head[384];
    size_t at = 0;
    /* fields 1 (content_type) and 3 (a BodyPart) of HttpBody stand only in the first message */
    if (!d->first_sent) {
        size_t mime = strlen(d->cargo->job.mime);
        head[at++] = 1 << 3 | 2;
        at += mr_protowire_put_varint(head + at, mime);
        memcpy(head + at, d->cargo->job.mime, mime);
        at += mime;
        at += put_part(call, head + at);
    }
    head[at++] = 2 << 3 | 2;
    at += mr_protowire_put_varint(head + at, n);
    d->first_sent = true;
    return send_lent(call, head, at, data, n);
}

static void send_pieces(struct mr_ostore_call *call)
{
    struct download *d = call->more;
    const struct mr_format_job *job = &d->cargo->job;
    while (d->left && d->piece < job->pieces_count && mr_rpc_call_is_writable(call->rpc)) {
        const struct mr_piece *p = &job->pieces[d->piece];
        const char *base = p->owned ? (const char *)job->text.p : d->cargo->view.p;
        const char *from = base + p->at + d->at;
        size_t n = (size_t)MR_MIN(MR_MIN(p->n - d->at, MR_CHUNK_BYTES), d->left);
        if (send_body(call, from, n)) return; /* the call is over, and on_done follows */
        d->at += n;
        d->left -= n;
        if (d->at < p->n) continue;
        d->piece++;
        d->at = 0;
    }
    if (d->left && d->piece < job->pieces_count) return;
    if (!d->first_sent && send_body(call, "", 0)) return;
    call->sv->gets++;
    d->is_over = true; /* on_writable may still be called */
    (void)mr_rpc_call_finish_ok(call->rpc);
}

/* Moves to the first byte that the request asks for. */
static void seek(struct download *d)
{
    const struct mr_format_job *job = &d->cargo->job;
    for (size_t i = 0; i < job->pieces_count; i++)
        d->total += job->pieces[i].n;
    uint64_t back = d->offset < 0 ? -(uint64_t)d->offset : 0;
    d->from = back ? d->total - MR_MIN(back, d->total) : MR_MIN((uint64_t)d->offset, d->total);
    d->left = d->total - d->from;
    if (d->bytes_max) d->left = MR_MIN(d->left, d->bytes_max);
    d->at = d->from;
    while (d->piece < job->pieces_count && d->at >= job->pieces[d->piece].n)
        d->at -= job->pieces[d->piece++].n;
}

static void exported(struct mr_ostore_call *call)
{
    if (call->err) {
        mr_ostore_call_fail_error(call);
        return;
    }
    seek(call->more);
    send_pieces(call);
}

static void get_viewed(struct mr_ostore_call *call)
{
    struct download *d = call->more;
    if (call->err) {
        mr_ostore_call_fail_error(call);
        return;
    }
    struct cargo *c = load(call);
    c->job.call = call;
    c->job.view = &c->view;
    c->job.accept = mr_str(d->accept);
    mr_converter_do(call->sv->converter, &c->job, exported);
}

static mr_duration wait_of(const struct download *d, mr_duration least)
{
    mr_duration wait = (mr_duration)(d->wait_s * 1e9);
    return MR_MAX(wait, least);
}

static void get_found(struct mr_ostore_call *call)
{
    struct download *d = call->more;
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(call->id, id);
    if (call->place.n && !mr_str_eq(call->place, mr_str(call->sv->address)))
        mr_ostore_call_get(call, call->place.p, wait_of(d, FETCH_WAIT), get_viewed);
    else if (d->wait_s > 0)
        mr_ostore_call_get(call, NULL, wait_of(d, 0), get_viewed);
    else
        mr_ostore_call_fail_unknown(call);
}

static void get_looked(struct mr_ostore_call *call)
{
    if (!call->err)
        mr_ostore_call_get(call, NULL, wait_of(call->more, FETCH_WAIT), get_viewed);
    else
        mr_ostore_call_find(call, get_found);
}

static void get_resolved(struct mr_ostore_call *call)
{
    struct download *d = call->more;
    if (call->err) {
        mr_ostore_call_fail(call, call->err, "id: no object has the name \"%s\"", d->name);
        return;
    }
    call->id = call->names[0].object;
    struct mr_str address = call->names[0].address;
    bool remote = address.n && !mr_str_eq(address, mr_str(call->sv->address));
    if (remote)
        mr_ostore_call_get(call, address.p, wait_of(d, FETCH_WAIT), get_viewed);
    else
        mr_ostore_call_stat(call, get_looked);
}

static void on_get(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    struct download *d = call->more;
    const Millrace__V1__GetObjectRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__get_object_request__descriptor);
    if (!r) return;
    if (!(r->wait_s >= 0 && r->wait_s <= WAIT_SECONDS_MAX)) {
        mr_ostore_call_fail(
            call, MR_EINVAL, "wait_s: %g is not between 0 and %g", r->wait_s, WAIT_SECONDS_MAX);
        return;
    }
    d->accept = mr_copy_text(r->accept);
    d->wait_s = r->wait_s;
    d->offset = r->offset;
    d->bytes_max = r->bytes_max;
    if (!strncmp(r->id, "name:", 5)) {
        if (!mr_ostore_call_check_name(call, "id", r->id + 5)) return;
        d->name = mr_copy_text(r->id + 5);
        mr_ostore_call_resolve(call, mr_str(d->name), get_resolved);
    } else if (mr_ostore_call_parse_id(call, "id", r->id)) {
        mr_ostore_call_stat(call, get_looked);
    }
}

static void on_writable(struct mr_rpc_call *rpc)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    struct download *d = call->more;
    if (!d->cargo || call->open || d->is_over) return;
    send_pieces(call);
}

const struct mr_rpc_handler mr_get_handler = {
    .on_open = on_open, .on_message = on_get, .on_writable = on_writable, .on_done = on_done};
