/* Knows varints, tags and lengths of protobuf, and nothing of what they mean. */
#include "rpc/wire.h"

static int read_varint(struct mr_wire_reader *r, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && r->at < r->n; shift += 7) {
        unsigned char b = r->p[r->at++];
        if (shift == 63 && b > 1) return MR_EFORMAT;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b & 0x80) continue;
        *out = v;
        return MR_OK;
    }
    return MR_EFORMAT;
}

static int read_fixed(struct mr_wire_reader *r, size_t bytes, uint64_t *out)
{
    if (r->n - r->at < bytes) return MR_EFORMAT;
    uint64_t v = 0;
    for (size_t i = bytes; i > 0; i--)
        v = v << 8 | r->p[r->at + i - 1];
    r->at += bytes;
    *out = v;
    return MR_OK;
}

int mr_wire_next(struct mr_wire_reader *r, struct mr_wire_field *out)
{
    if (r->at >= r->n) return MR_ENOENT;
    uint64_t tag = 0;
    int err = read_varint(r, &tag);
    if (err) return err;
    if (tag >> 3 == 0 || tag >> 3 > 536870911) return MR_EFORMAT;
    *out = (struct mr_wire_field){.number = (uint32_t)(tag >> 3), .type = (uint32_t)(tag & 7)};
    if (out->type == MR_WIRE_VARINT) return read_varint(r, &out->value);
    if (out->type == MR_WIRE_FIXED64) return read_fixed(r, 8, &out->value);
    if (out->type == MR_WIRE_FIXED32) return read_fixed(r, 4, &out->value);
    if (out->type != MR_WIRE_BYTES) return MR_EFORMAT;
    uint64_t n = 0;
    err = read_varint(r, &n);
    if (err) return err;
    if (n > r->n - r->at) return MR_EFORMAT;
    out->bytes = mr_str_of(r->p + r->at, (size_t)n);
    r->at += (size_t)n;
    return MR_OK;
}

void mr_wire_varint(struct mr_buf *b, uint64_t v)
{
    while (v >= 0x80) {
        mr_buf_add_byte(b, (unsigned char)(v | 0x80));
        v >>= 7;
    }
    mr_buf_add_byte(b, (unsigned char)v);
}

void mr_wire_add_varint(struct mr_buf *b, uint32_t number, uint64_t v)
{
    mr_wire_varint(b, (uint64_t)number << 3 | MR_WIRE_VARINT);
    mr_wire_varint(b, v);
}

void mr_wire_add_bytes(struct mr_buf *b, uint32_t number, struct mr_str s)
{
    mr_wire_varint(b, (uint64_t)number << 3 | MR_WIRE_BYTES);
    mr_wire_varint(b, s.n);
    mr_buf_add_str(b, s);
}
