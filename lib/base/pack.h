/* Packed values: MessagePack (github.com/msgpack/msgpack, spec of 2017), which every language
 * reads. Literals and arguments of tasks, small values inside messages, and the payload of a scalar
 * or JSON object are packs. Integers keep i64/u64 exactly, floats are f64 (or f32 when read from
 * others), map keys are strings. Three extension types are ours: 1  input slot: u32, big endian -
 * in arguments only: "the n-th input of this task" 2  value extent: a whole value in the layout of
 * store/object/value.h (a small tensor, bytes …) 3  object id: 16 bytes, big endian - a value that
 * stays in an object store What a writer writes here is always the shortest form, so equal values
 * are equal bytes (map entries keep the order they were written in). */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

enum mr_pack_type {
    MR_PACK_NIL,
    MR_PACK_BOOL,
    MR_PACK_INT,  /* fits int64_t */
    MR_PACK_UINT, /* above INT64_MAX */
    MR_PACK_FLOAT,
    MR_PACK_TEXT, /* UTF-8 */
    MR_PACK_BYTES,
    MR_PACK_LIST, /* count items follow */
    MR_PACK_MAP,  /* count pairs follow: a text, then an item */
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
    struct mr_str bytes; /* of TEXT, BYTES, EXT: borrowed from the reader's bytes */
    int8_t ext;
};

/* Reads one item after another; containers are not entered by themselves, their items follow. */
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

int mr_pack_next(struct mr_pack_reader *r, struct mr_pack_item *out); /* MR_EFORMAT */
/* Skips one whole item with all it contains; its bytes in `*out` (may be NULL). */
int mr_pack_skip(struct mr_pack_reader *r, struct mr_str *out);

/* Is this exactly one well-formed item: UTF-8 texts, text map keys, depth at most MR_DEPTH_MAX,
 * extensions only of our types and lengths? `inputs_max`: input slots below it are allowed (0:
 * none). */
int mr_pack_check(struct mr_str bytes, uint32_t inputs_max, struct mr_error *e);

void mr_pack_nil(struct mr_buf *b);
void mr_pack_bool(struct mr_buf *b, bool v);
void mr_pack_int(struct mr_buf *b, int64_t v);
void mr_pack_uint(struct mr_buf *b, uint64_t v);
void mr_pack_float(struct mr_buf *b, double v);
void mr_pack_text(struct mr_buf *b, struct mr_str s);
void mr_pack_bytes(struct mr_buf *b, struct mr_str s);
void mr_pack_list(struct mr_buf *b, uint32_t count); /* then the items */
void mr_pack_map(struct mr_buf *b, uint32_t count);  /* then the pairs */
void mr_pack_ext(struct mr_buf *b, int8_t type, struct mr_str data);
void mr_pack_input(struct mr_buf *b, uint32_t slot);
void mr_pack_object(struct mr_buf *b, mr_object_id id);

/* The slot of an item of type EXT_INPUT, MR_INDEX_NONE (UINT32_MAX) for any other. */
uint32_t mr_pack_input_slot(const struct mr_pack_item *item);
