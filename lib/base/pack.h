/* Packed values: MessagePack (github.com/msgpack/msgpack, specification of 2017). Literals and
 * arguments of tasks, small values inside messages, and the payloads of scalar and JSON objects are
 * packed values. Integers keep int64_t and uint64_t exactly. Floats are written as 64 bits; 32 bits
 * are read too. Keys of maps are texts. There are three extension types:
 *
 * - 1, an input slot: uint32_t, big endian. Only in arguments: "the n-th input of this task".
 * - 2, a value: the bytes of a whole value in the layout of store/object/value.h.
 * - 3, an object id: 16 bytes, big endian. The value stays in an object store.
 *
 * The writing functions choose the shortest form of each item, so equal values are equal bytes. The
 * entries of a map keep the order in which they were written. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

enum mr_pack_type {
    MR_PACK_NIL,
    MR_PACK_BOOL,
    MR_PACK_INT,  /* fits into int64_t */
    MR_PACK_UINT, /* above INT64_MAX */
    MR_PACK_FLOAT,
    MR_PACK_TEXT, /* UTF-8 */
    MR_PACK_BYTES,
    MR_PACK_LIST, /* `count` items follow */
    MR_PACK_MAP,  /* `count` pairs follow: a text and an item */
    MR_PACK_EXT,
};

enum {
    MR_PACK_EXT_INPUT = 1,
    MR_PACK_EXT_VALUE = 2,
    MR_PACK_EXT_OBJECT = 3,
};

struct mr_pack_item {
    enum mr_pack_type type;
    union {
        bool boolean;
        int64_t i;
        uint64_t u;
        double f;
        uint32_t count;
    };
    /* The content of a TEXT, BYTES or EXT item; points into the reader's bytes. */
    struct mr_str bytes;
    int8_t ext;
};

/* The position of a reader in packed bytes. The items of a list or a map follow its head one by
 * one. */
struct mr_pack_reader {
    const unsigned char *p;
    size_t n;
    size_t at;
};

static inline struct mr_pack_reader mr_pack_read(struct mr_str bytes)
{
    return (struct mr_pack_reader){(const unsigned char *)bytes.p, bytes.n, 0};
}

static inline bool mr_pack_at_end(const struct mr_pack_reader *r)
{
    return r->at >= r->n;
}

/* Reads the next item into `*out`. MR_EFORMAT: the bytes are malformed or at their end. */
int mr_pack_next(struct mr_pack_reader *r, struct mr_pack_item *out);
/* Skips one item with all that it contains, and sets `*out` (may be NULL) to its bytes. MR_EFORMAT:
 * the bytes are malformed. */
int mr_pack_skip(struct mr_pack_reader *r, struct mr_str *out);

/* Checks that the bytes are exactly one well-formed item: texts are UTF-8, keys of maps are texts,
 * and the nesting is at most MR_DEPTH_MAX. Each extension has one of the three types above. An
 * input slot has 4 bytes and an object id 16. The bytes of a value are not checked. Input slots
 * must be below `inputs_max`; 0: no input slot is allowed. MR_ELIMIT: the nesting is too deep.
 * MR_EFORMAT: any other rule is broken. */
int mr_pack_check(struct mr_str bytes, uint32_t inputs_max, struct mr_error *e);

void mr_pack_nil(struct mr_buf *b);
void mr_pack_bool(struct mr_buf *b, bool v);
void mr_pack_int(struct mr_buf *b, int64_t v);
void mr_pack_uint(struct mr_buf *b, uint64_t v);
void mr_pack_float(struct mr_buf *b, double v);
void mr_pack_text(struct mr_buf *b, struct mr_str s);
void mr_pack_bytes(struct mr_buf *b, struct mr_str s);
/* Writes the head of a list; the caller then writes `count` items. */
void mr_pack_list(struct mr_buf *b, uint32_t count);
/* Writes the head of a map; the caller then writes `count` pairs of a key and an item. */
void mr_pack_map(struct mr_buf *b, uint32_t count);
void mr_pack_ext(struct mr_buf *b, int8_t type, struct mr_str data);
void mr_pack_input(struct mr_buf *b, uint32_t slot);
void mr_pack_object(struct mr_buf *b, mr_object_id id);

/* Returns the input slot of an item of type MR_PACK_EXT_INPUT, and MR_INDEX_NONE (UINT32_MAX) for
 * any other item. */
uint32_t mr_pack_input_slot(const struct mr_pack_item *item);
