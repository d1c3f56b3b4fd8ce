/* Protobuf's wire format, field by field. It serves the small messages that are read and written by
 * hand, and the gateway's translation between JSON and protobuf. All other messages go through
 * protobuf-c. Groups are not supported.
 *
 * The writing functions append to a buffer. A buffer past its ceiling drops the bytes and sets its
 * member `failed`. The caller asks mr_buf_status once, at the end. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define MR_PROTOWIRE_VARINT_MAX 10        /* bytes of the longest varint */
#define MR_PROTOWIRE_NUMBER_MAX 536870911 /* the largest field number */

enum mr_protowire_type {
    MR_PROTOWIRE_VARINT = 0,
    MR_PROTOWIRE_FIXED64 = 1,
    MR_PROTOWIRE_BYTES = 2,
    MR_PROTOWIRE_FIXED32 = 5,
};

/* ---- reading -------------------------------------------------------------------------------- */

struct mr_protowire_field {
    uint32_t number;
    uint32_t type;  /* enum mr_protowire_type */
    uint64_t value; /* the value of a numeric field */
    /* The content of a field of type BYTES; points into the reader's bytes. */
    struct mr_str bytes;
};

struct mr_protowire_reader {
    const unsigned char *p;
    size_t n;
    size_t at;
};

static inline struct mr_protowire_reader mr_protowire_read(struct mr_str s)
{
    return (struct mr_protowire_reader){(const unsigned char *)s.p, s.n, 0};
}

/* Reads a varint at `*p` and moves `*p` behind it. False: it does not end before `end`, or is
 * larger than 64 bits. */
static inline bool mr_protowire_take_varint(
    const unsigned char **p, const unsigned char *end, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        uint64_t byte = *(*p)++;
        if (shift == 63 && byte > 1) return false;
        v |= (byte & 127) << shift;
        if (byte < 128) {
            *out = v;
            return true;
        }
    }
    return false;
}

/* Reads the next field into `*out`. MR_ENOENT: there are no more fields. MR_EFORMAT: the bytes are
 * malformed, or the field is a group. */
int mr_protowire_next(struct mr_protowire_reader *r, struct mr_protowire_field *out);

/* ---- writing -------------------------------------------------------------------------------- */

/* Append a whole field: tag and value. */
void mr_protowire_add_varint(struct mr_buf *b, uint32_t number, uint64_t v);
void mr_protowire_add_bytes(struct mr_buf *b, uint32_t number, struct mr_str s);

/* Append a part of a field: the tag alone, or the value alone. */
void mr_protowire_tag(struct mr_buf *b, uint32_t number, enum mr_protowire_type type);
void mr_protowire_varint(struct mr_buf *b, uint64_t v);
void mr_protowire_fixed32(struct mr_buf *b, uint32_t v);
void mr_protowire_fixed64(struct mr_buf *b, uint64_t v);

/* Write a nested message. The bytes appended between mr_protowire_begin and mr_protowire_end are
 * its content. mr_protowire_end takes the number that mr_protowire_begin returned, and inserts the
 * length before the content. */
size_t mr_protowire_begin(struct mr_buf *b, uint32_t number);
void mr_protowire_end(struct mr_buf *b, size_t began);

/* Writes a varint into `out`, which has room for MR_PROTOWIRE_VARINT_MAX bytes, and returns the
 * number of bytes written. A caller uses this function where the bytes are not in a struct
 * mr_buf. */
size_t mr_protowire_put_varint(unsigned char *out, uint64_t v);
