/* Encodes and decodes varints, tags and lengths of protobuf's wire format. The meaning of the
 * fields is the caller's. */
#include "base/protowire.h"

#include <string.h>

/* ---- reading -------------------------------------------------------------------------------- */

static int read_varint(struct mr_protowire_reader *r, uint64_t *out)
{
    const unsigned char *p = r->p + r->at;
    bool ok = mr_protowire_take_varint(&p, r->p + r->n, out);
    r->at = (size_t)(p - r->p);
    return ok ? MR_OK : MR_EFORMAT;
}

static int read_fixed(struct mr_protowire_reader *r, size_t bytes, uint64_t *out)
{
    if (r->n - r->at < bytes) return MR_EFORMAT;
    uint64_t v = 0;
    for (size_t i = bytes; i > 0; i--)
        v = v << 8 | r->p[r->at + i - 1];
    r->at += bytes;
    *out = v;
    return MR_OK;
}

int mr_protowire_next(struct mr_protowire_reader *r, struct mr_protowire_field *out)
{
    if (r->at >= r->n) return MR_ENOENT;
    uint64_t tag = 0;
    int err = read_varint(r, &tag);
    if (err) return err;
    if (tag >> 3 == 0 || tag >> 3 > MR_PROTOWIRE_NUMBER_MAX) return MR_EFORMAT;
    *out = (struct mr_protowire_field){.number = (uint32_t)(tag >> 3), .type = (uint32_t)(tag & 7)};
    if (out->type == MR_PROTOWIRE_VARINT) return read_varint(r, &out->value);
    if (out->type == MR_PROTOWIRE_FIXED64) return read_fixed(r, 8, &out->value);
    if (out->type == MR_PROTOWIRE_FIXED32) return read_fixed(r, 4, &out->value);
    if (out->type != MR_PROTOWIRE_BYTES) return MR_EFORMAT;
    uint64_t n = 0;
    err = read_varint(r, &n);
    if (err) return err;
    if (n > r->n - r->at) return MR_EFORMAT;
    out->bytes = mr_str_of(r->p + r->at, (size_t)n);
    r->at += (size_t)n;
    return MR_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

size_t mr_protowire_put_varint(unsigned char *out, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        out[n++] = (unsigned char)(v | 0x80);
    out[n++] = (unsigned char)v;
    return n;
}

void mr_protowire_varint(struct mr_buf *b, uint64_t v)
{
    unsigned char bytes[MR_PROTOWIRE_VARINT_MAX];
    mr_buf_add(b, bytes, mr_protowire_put_varint(bytes, v));
}

static void add_fixed(struct mr_buf *b, size_t bytes, uint64_t v)
{
    for (size_t i = 0; i < bytes; i++)
        mr_buf_add_byte(b, (unsigned char)(v >> (8 * i)));
}

void mr_protowire_fixed32(struct mr_buf *b, uint32_t v)
{
    add_fixed(b, 4, v);
}

void mr_protowire_fixed64(struct mr_buf *b, uint64_t v)
{
    add_fixed(b, 8, v);
}

void mr_protowire_tag(struct mr_buf *b, uint32_t number, enum mr_protowire_type type)
{
    mr_protowire_varint(b, (uint64_t)number << 3 | (uint64_t)type);
}

void mr_protowire_add_varint(struct mr_buf *b, uint32_t number, uint64_t v)
{
    mr_protowire_tag(b, number, MR_PROTOWIRE_VARINT);
    mr_protowire_varint(b, v);
}

void mr_protowire_add_bytes(struct mr_buf *b, uint32_t number, struct mr_str s)
{
    mr_protowire_tag(b, number, MR_PROTOWIRE_BYTES);
    mr_protowire_varint(b, s.n);
    mr_buf_add_str(b, s);
}

size_t mr_protowire_begin(struct mr_buf *b, uint32_t number)
{
    mr_protowire_tag(b, number, MR_PROTOWIRE_BYTES);
    return b->n;
}

void mr_protowire_end(struct mr_buf *b, size_t began)
{
    /* If an append was dropped, `began` may lie behind the end of the buffer. */
    if (b->failed) return;
    size_t n = b->n - began;
    unsigned char length[MR_PROTOWIRE_VARINT_MAX];
    size_t length_n = mr_protowire_put_varint(length, n);
    if (!mr_buf_extend(b, length_n)) return;
    memmove(b->p + began + length_n, b->p + began, n);
    memcpy(b->p + began, length, length_n);
}
