/* The layout of values. A value is one contiguous, self-describing byte string, its extent, with
 * the same bytes in memory, in files and in messages. An extent is little endian and starts at a
 * multiple of 64:
 *
 *   struct mr_value_header     64 bytes
 *   u64 shape[ndim]            tensor; table: {rows, columns}; model: {number of parameters};
 *                              collection: the shape of all parts together
 *   i64 strides[ndim]          tensor only, in bytes
 *   data, meta                 each at a multiple of 64; by kind:
 *
 * | kind       | data                            | meta                                       |
 * | tensor     | elements                        | -                                          |
 * | table      | Arrow buffers, 64-byte aligned  | column descriptors (table.h)               |
 * | pack       | one pack: a scalar or JSON      | -                                          |
 * | bytes      | the bytes                       | -                                          |
 * | model      | its parameters, f32 in one axis | a pack that says what model it is          |
 * | collection | inline packs and extents        | entries (collection.h)                     |
 *
 * A pack is one item of MessagePack (base/pack.h). Writers fill gaps with zeros, so equal values
 * are equal bytes. Every reader calls mr_value_check first, which treats the bytes as untrusted. */
#pragma once

#include "base/buf.h"
#include "base/pack.h"
#include "store/object/tensor.h"

#define MR_VALUE_ALIGN 64
#define MR_VALUE_MAGIC 0x3156524du /* the characters "MRV1" */

enum mr_value_kind { /* the numbers are part of the format of values and must never change */
    MR_VALUE_NONE = 0,
    MR_VALUE_TENSOR = 1,
    MR_VALUE_TABLE = 2,
    MR_VALUE_PACK = 3,
    MR_VALUE_BYTES = 4,
    MR_VALUE_MODEL = 5,
    MR_VALUE_COLLECTION = 6,
};

enum { /* flags of a header; other flags are refused */
    /* The value was made from generated data, because no data set was given (operator
     * digits.load). */
    MR_VALUE_DRAWN = 1 << 0,
};

struct mr_value_header {
    uint32_t magic;
    uint16_t layout_version; /* MR_LAYOUT_VERSION */
    uint8_t kind;            /* enum mr_value_kind */
    uint8_t dtype;           /* element type of a tensor, a model or a collection of tensors;
                              * otherwise 0 */
    uint8_t ndim;
    uint8_t reserved;      /* must be 0 */
    uint16_t header_bytes; /* bytes of the header with the shape and the strides */
    uint32_t flags;        /* MR_VALUE_DRAWN or 0 */
    /* Bytes of the extent including the header, without padding at the end. */
    uint64_t nbytes;
    uint64_t data_offset;
    uint64_t data_bytes;
    uint64_t meta_offset; /* 0 if meta_bytes is 0 */
    uint64_t meta_bytes;
    uint64_t checksum; /* XXH3-64 of header_bytes bytes, with this field set to 0 */
};

/* A checked view of a value. All pointers point into the extent. Only a value of kind MR_VALUE_PACK
 * may have no extent, as inside messages. Then `extent` is NULL, `data` points to the pack, and
 * nbytes is the size that the extent would have. */
struct mr_value {
    enum mr_value_kind kind;
    bool is_drawn;
    const unsigned char *extent;
    uint64_t nbytes;
    const unsigned char *data;
    uint64_t data_bytes;
    const unsigned char *meta;
    uint64_t meta_bytes;
    /* All members are set for a tensor. Only dtype, ndim and shape are set for a table, a model or
     * a collection. */
    struct mr_tensor tensor;
};

/* Allocates the memory of a result: `bytes` bytes aligned to 64, or NULL if there is no room, which
 * the caller reports as MR_ELIMIT. If the caller fails later, the owner of the allocator frees the
 * memory. */
struct mr_value_alloc {
    void *(*alloc)(void *ctx, uint64_t bytes);
    void *ctx;
};
/* Allocates from the heap, for tests and clients. `ctx` is a pointer to the `void *` that receives
 * the memory; free it with mr_release. */
void *mr_value_heap_alloc(void *ctx, uint64_t bytes);

/* Checks that the bytes are a value. Reads the header, the column layouts and the collection's
 * entries, but not the data. `bytes` may have padding after the value. MR_EFORMAT: the bytes are no
 * value. MR_ELIMIT: the value exceeds a limit. MR_EINVAL: the address is not aligned. MR_ESTATE:
 * the value has another layout version. */
int mr_value_check(struct mr_str bytes, struct mr_value *out, struct mr_error *e);
/* Like mr_value_check, but also reads the data that can be wrong: offsets of texts, UTF-8, bools,
 * packs. It suits values from other machines. It costs a pass over such data. */
int mr_value_check_deep(struct mr_str bytes, struct mr_value *out, struct mr_error *e);

/* For tensors, bytes, packs and models there are a size function and a builder. The size function
 * returns the size of the extent; 0: the extent would exceed MR_OBJECT_BYTES_MAX or is not allowed.
 * The builder writes the header into `extent` and returns the address for the data, so that a
 * result is made where it stays. `extent` must have the size that the size function returned and be
 * aligned to 64; it need not be zeroed. */
uint64_t mr_tensor_bytes(enum mr_dtype dtype, unsigned ndim, const uint64_t *shape);
void *mr_tensor_build(void *extent, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape);
uint64_t mr_value_bytes_size(uint64_t data_bytes);
void *mr_value_bytes_build(void *extent, uint64_t data_bytes);
uint64_t mr_value_pack_size(uint64_t pack_bytes);
void *mr_value_pack_build(void *extent, uint64_t pack_bytes);
/* Size and builder of a model: `count` parameters, and `meta`, a pack that describes the model and
 * is copied. lib/nn defines its content (model_value.h). */
uint64_t mr_value_model_size(uint64_t count, struct mr_str meta);
float *mr_value_model_build(void *extent, uint64_t count, struct mr_str meta);

/* Sets MR_VALUE_DRAWN in a header that was just written. Does nothing if the header is not
 * valid. */
void mr_value_mark_drawn(void *extent);
/* True: the extent has the flag MR_VALUE_DRAWN. `extent` may be the header alone.
 * mr_value_pack_is_drawn takes a pack of extension type MR_PACK_EXT_VALUE, which contains an
 * extent. Nothing else is checked. */
bool mr_value_is_drawn(struct mr_str extent);
bool mr_value_pack_is_drawn(struct mr_str pack);

/* Allocate and build in one call. MR_ELIMIT: the allocator has no room, or a value like this is not
 * allowed. */
int mr_tensor_new(const struct mr_value_alloc *a, enum mr_dtype dtype, unsigned ndim,
    const uint64_t *shape, void **data_out, struct mr_error *e);
int mr_value_put_bytes(const struct mr_value_alloc *a, struct mr_str bytes, struct mr_error *e);
/* Stores a pack as a value. A pack of extension type MR_PACK_EXT_VALUE contains an extent; only
 * this extent is stored. */
int mr_value_put_pack(const struct mr_value_alloc *a, struct mr_str pack, struct mr_error *e);

/* Reads a pack as a value. The caller has checked the pack with mr_pack_check. A pack of extension
 * type MR_PACK_EXT_VALUE becomes the value whose extent the pack contains. An extent that is not
 * aligned is copied through `a` (with `a` NULL: MR_EINVAL). Any other pack becomes a value of kind
 * MR_VALUE_PACK, which borrows the bytes. */
int mr_value_from_pack(
    struct mr_str pack, const struct mr_value_alloc *a, struct mr_value *out, struct mr_error *e);
/* Appends the value as a pack, the opposite of mr_value_from_pack. MR_ETOOBIG, with nothing
 * written: the pack would be longer than MR_INLINE_VALUE_BYTES_MAX. */
int mr_value_to_pack(const struct mr_value *v, struct mr_buf *out);

/* Returns for example "tensor", "table", "json", "bytes". */
const char *mr_value_kind_name(enum mr_value_kind kind);
