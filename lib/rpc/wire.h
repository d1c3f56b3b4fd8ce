/* Protobuf's wire format, field by field, for the few small messages that lib/rpc itself speaks
 * (status details, health, reflection, descriptors). Everything else goes through protobuf-c. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

enum mr_wire_type {
    MR_WIRE_VARINT = 0,
    MR_WIRE_FIXED64 = 1,
    MR_WIRE_BYTES = 2,
    MR_WIRE_FIXED32 = 5,
};

struct mr_wire_field {
    uint32_t number;
    uint32_t type;       /* enum mr_wire_type */
    uint64_t value;      /* of the numeric ones */
    struct mr_str bytes; /* of BYTES: borrowed */
};

struct mr_wire_reader {
    const unsigned char *p;
    size_t n;
    size_t at;
};

static inline struct mr_wire_reader mr_wire_read(struct mr_str s)
{
    return (struct mr_wire_reader){(const unsigned char *)s.p, s.n, 0};
}

/* MR_OK, MR_ENOENT at the end, MR_EFORMAT (groups included). */
int mr_wire_next(struct mr_wire_reader *r, struct mr_wire_field *out);

void mr_wire_varint(struct mr_buf *b, uint64_t v);
void mr_wire_add_varint(struct mr_buf *b, uint32_t number, uint64_t v);
void mr_wire_add_bytes(struct mr_buf *b, uint32_t number, struct mr_str s);
