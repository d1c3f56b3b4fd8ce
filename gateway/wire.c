/* Writing protobuf's wire format. */
#include "gateway/wire.h"

#define VARINT_BYTES_MAX 10

static size_t put_varint(unsigned char out[VARINT_BYTES_MAX], uint64_t v)
{
    size_t n = 0;
    while (v >= 0x80) {
        out[n++] = (unsigned char)(v | 0x80);
        v >>= 7;
    }
    out[n++] = (unsigned char)v;
    return n;
}

void mr_wire_tag(struct mr_buf *b, uint32_t field, enum mr_wire_type type)
{
    mr_wire_varint(b, (uint64_t)field << 3 | (uint64_t)type);
}

void mr_wire_fixed32(struct mr_buf *b, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        mr_buf_add_byte(b, (unsigned char)(v >> (8 * i)));
}

void mr_wire_fixed64(struct mr_buf *b, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        mr_buf_add_byte(b, (unsigned char)(v >> (8 * i)));
}

size_t mr_wire_begin(struct mr_buf *b, uint32_t field)
{
    mr_wire_tag(b, field, MR_WIRE_BYTES);
    return b->n;
}

void mr_wire_end(struct mr_buf *b, size_t began)
{
    if (b->failed) return; /* offsets mean nothing any more */
    size_t n = b->n - began;
    unsigned char length[VARINT_BYTES_MAX];
    size_t length_n = put_varint(length, n);
    if (!mr_buf_extend(b, length_n)) return;
    memmove(b->p + began + length_n, b->p + began, n);
    memcpy(b->p + began, length, length_n);
}
