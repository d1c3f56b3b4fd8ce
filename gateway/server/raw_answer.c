/* The start of an answer whose bytes a service chooses: a result of a job, or an object. The first
 * piece decides whether the answer is 304, a part, complete, or a stream. */
#include "gateway/server/internal.h"

#include "base/alloc.h"
#include "base/protowire.h"
#include "base/unconst.h"
#include "gateway/http/gzip.h"
#include "gateway/http/media.h"
#include "gateway/http/range.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#define STREAM_BLOCK_BYTES ((size_t)64 << 10)
#define ETAG_BYTES_MAX 80

/* Field numbers of google.api.HttpBody, google.protobuf.Any and millrace.v1.BodyPart. */
enum { BODY_TYPE = 1, BODY_EXTENSIONS = 3, ANY_VALUE = 2 };
enum { PART_OBJECT = 1, PART_NBYTES = 2, PART_OFFSET = 3 };

struct first {
    char type[200];
    char etag[ETAG_BYTES_MAX]; /* "": the ETag is not known */
    uint64_t total;            /* bytes of the whole value in the format `type` */
    uint64_t offset;           /* where the service's bytes begin in the value */
    bool is_sized;             /* true: `total` is known */
    bool is_whole;             /* true: no piece follows */
};

static struct mr_str bytes_field(struct mr_str message, uint32_t number)
{
    struct mr_protowire_reader reader = mr_protowire_read(message);
    struct mr_protowire_field f;
    while (!mr_protowire_next(&reader, &f))
        if (f.number == number && f.type == MR_PROTOWIRE_BYTES) return f.bytes;
    return mr_str_of("", 0);
}

static uint64_t number_field(struct mr_str message, uint32_t number)
{
    struct mr_protowire_reader reader = mr_protowire_read(message);
    struct mr_protowire_field f;
    while (!mr_protowire_next(&reader, &f))
        if (f.number == number && f.type == MR_PROTOWIRE_VARINT) return f.value;
    return 0;
}

static void read_type(struct mr_str message, struct first *f)
{
    struct mr_str type = bytes_field(message, BODY_TYPE);
    bool is_clean = type.n > 0 && type.n < sizeof f->type;
    for (size_t i = 0; i < type.n; i++)
        if ((unsigned char)type.p[i] < ' ' || (unsigned char)type.p[i] > '~') is_clean = false;
    (void)snprintf(f->type, sizeof f->type, "%.*s", is_clean ? (int)type.n : 24,
        is_clean ? type.p : "application/octet-stream");
}

/* Reads the first message. The ETag of an object is its id and a hash of the format, because
 * objects never change. The ETag of a value without an object is a hash of its bytes, if all bytes
 * are here. */
static void read_first(const struct mr_request *r, struct first *f)
{
    struct mr_str message = mr_rpc_message_str(r->raw_message);
    /* The BodyPart of the message describes the whole value. If the query asks for some bytes only
     * (is_piece), the whole value is not the answer, and `part` stays empty. */
    struct mr_str part = mr_str_of("", 0);
    if (!r->is_piece) part = bytes_field(bytes_field(message, BODY_EXTENSIONS), ANY_VALUE);
    struct mr_str object = bytes_field(part, PART_OBJECT);
    read_type(message, f);
    f->etag[0] = 0;
    f->is_whole = r->has_held && r->held.kind == MR_REPLY_END && !r->x->error;
    f->is_sized = part.n || f->is_whole;
    f->total = part.n ? number_field(part, PART_NBYTES) : r->raw.n;
    f->offset = number_field(part, PART_OFFSET);
    uint32_t format = (uint32_t)XXH3_64bits(f->type, strlen(f->type));
    if (object.n == 32)
        (void)snprintf(f->etag, sizeof f->etag, "\"%.32s-%08" PRIx32 "\"", object.p, format);
    else if (f->is_whole)
        (void)snprintf(f->etag, sizeof f->etag, "\"%016" PRIx64 "-%08" PRIx32 "\"",
            XXH3_64bits(r->raw.p, r->raw.n), format);
}

static struct mr_str header(const struct mr_request *r, const char *name)
{
    return mr_str(MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name));
}

static bool is_compressible(const struct mr_request *r, const struct first *f)
{
    return f->is_whole && mr_media_is(mr_str(f->type), "application/json") &&
           mr_media_takes(header(r, "Accept-Encoding"), "gzip");
}

/* Makes a response with `n` bytes of the value from byte `from` on. */
static struct MHD_Response *part_of(
    struct mr_request *r, const struct first *f, uint64_t from, uint64_t n)
{
    uint64_t skip = from - f->offset;
    if (f->is_whole && skip <= r->raw.n && n <= r->raw.n - skip)
        return MHD_create_response_from_buffer(
            (size_t)n, mr_unconst(r->raw.p + skip), MHD_RESPMEM_MUST_COPY);
    if (!n) return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    r->raw_skip = skip;
    return MHD_create_response_from_callback(n, STREAM_BLOCK_BYTES, mr_stream_read, r, NULL);
}

static enum MHD_Result answer(
    struct mr_request *r, const struct first *f, unsigned status, struct MHD_Response *m)
{
    if (f->etag[0]) (void)MHD_add_response_header(m, "ETag", f->etag);
    if (f->is_sized) (void)MHD_add_response_header(m, "Accept-Ranges", "bytes");
    (void)MHD_add_response_header(m, "Vary", "Accept, Accept-Encoding");
    r->may_be_kept = f->etag[0] != 0;
    return mr_answer_queue(r, status, f->type, &m);
}

static enum MHD_Result answer_no_part(struct mr_request *r, const struct first *f)
{
    char text[64];
    (void)snprintf(text, sizeof text, "bytes */%" PRIu64, f->total);
    (void)mr_fail(&r->error, MR_ERANGE,
        "the header Range begins after the last of %" PRIu64 " bytes", f->total);
    return mr_answer_refused(r, 416, "Content-Range", text);
}

static enum MHD_Result answer_part(struct mr_request *r, const struct first *f)
{
    uint64_t from, n;
    char text[80];
    if (!mr_range_within(&r->range, f->total, &from, &n) || from < f->offset)
        return answer_no_part(r, f);
    (void)snprintf(
        text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from, from + n - 1, f->total);
    struct MHD_Response *m = part_of(r, f, from, n);
    (void)MHD_add_response_header(m, "Content-Range", text);
    return answer(r, f, 206, m);
}

static enum MHD_Result answer_packed(struct mr_request *r, const struct first *f)
{
    struct MHD_Response *m = mr_answer_gzip(r->raw);
    if (!m) return answer(r, f, 200, part_of(r, f, 0, f->total));
    struct first packed = *f;
    (void)snprintf(
        packed.etag, sizeof packed.etag, "%.*s-gzip\"", (int)strlen(f->etag) - 1, f->etag);
    return answer(r, &packed, 200, m);
}

enum MHD_Result mr_answer_raw(struct mr_request *r)
{
    struct first f;
    read_first(r, &f);
    char packed[ETAG_BYTES_MAX + 8];
    (void)snprintf(
        packed, sizeof packed, "%.*s-gzip\"", (int)strlen(f.etag) - (f.etag[0] != 0), f.etag);
    struct mr_str known = header(r, "If-None-Match");
    if (f.etag[0] && (mr_etag_is_known(known, f.etag) || mr_etag_is_known(known, packed)))
        return answer(r, &f, 304, MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
    struct mr_str unchanged = header(r, "If-Range");
    bool is_part =
        r->has_range && f.is_sized && (!unchanged.p || mr_str_eq(unchanged, mr_str(f.etag)));
    if (is_part) return answer_part(r, &f);
    if (is_compressible(r, &f)) return answer_packed(r, &f);
    if (f.is_sized) return answer(r, &f, 200, part_of(r, &f, 0, f.total));
    struct MHD_Response *m = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, mr_stream_read, r, NULL);
    return answer(r, &f, 200, m);
}
