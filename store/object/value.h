/* The layout of values: one contiguous, self-describing extent that is the same bytes in memory, on
 * disk and on the wire. Little endian, starting at a multiple of 64:
 *
 *   struct mr_value_header     64 bytes
 *   u64 shape[ndim]            tensor, table {rows, columns}, collection: of the whole
 *   i64 strides[ndim]          tensor only, in bytes
 *   data, meta                 each at a multiple of 64: what the kind says
 *
 * | kind       | data                            | meta                                       |
 * | tensor     | elements                        | -                                          |
 * | table      | Arrow buffers, each at 64       | column descriptors (table.h)               |
 * | pack       | one pack: a scalar or JSON      | -                                          |
 * | bytes      | the bytes                       | -                                          |
 * | model      | its parameters, f32 in one axis | a pack that says what model it is          |
 * | collection | inline packs and extents        | entries (collection.h)                     |
 *
 * Writers fill gaps with zeros, so equal values are equal bytes. Every reader goes through
 * mr_value_check, which believes nothing. Knows nothing of stores, processes or files. */
#pragma once

#include "base/buf.h"
#include "base/pack.h"
#include "store/object/tensor.h"

#define MR_VALUE_ALIGN 64
#define MR_VALUE_MAGIC 0x3156524du /* "MRV1" */

enum mr_value_kind { /* part of the layout: never change one */
    MR_VALUE_NONE = 0,
    MR_VALUE_TENSOR = 1,
    MR_VALUE_TABLE = 2,
    MR_VALUE_PACK = 3,
    MR_VALUE_BYTES = 4,
    MR_VALUE_MODEL = 5,
    MR_VALUE_COLLECTION = 6,
};

enum {                       /* of a header; any other is refused */
    MR_VALUE_DRAWN = 1 << 0, /* made of data that was drawn as none was given (digits.load) */
};

struct mr_value_header {
    uint32_t magic;
    uint16_t layout_version; /* MR_LAYOUT_VERSION */
    uint8_t kind;            /* enum mr_value_kind */
    uint8_t dtype;           /* of a tensor, and of a collection of tensors; else 0 */
    uint8_t ndim;
    uint8_t reserved;      /* 0 */
    uint16_t header_bytes; /* with shape and strides */
    uint32_t flags;        /* MR_VALUE_DRAWN */
    uint64_t nbytes;       /* of the extent, header included, padding at the end not */
    uint64_t data_offset;
    uint64_t data_bytes;
    uint64_t meta_offset; /* 0 with meta_bytes 0 */
    uint64_t meta_bytes;
    uint64_t checksum; /* XXH3-64 of header_bytes bytes, this field as 0 */
};

/* A checked view of a value; all pointers are borrowed from the extent. A pack may also stand on
 * its own, as inside messages: then `extent` is NULL and nbytes is what its extent would take. */
struct mr_value {
    enum mr_value_kind kind;
    bool is_drawn;
    const unsigned char *extent;
    uint64_t nbytes;
    const unsigned char *data;
    uint64_t data_bytes;
    const unsigned char *meta;
    uint64_t meta_bytes;
    struct mr_tensor tensor; /* tensor: all of it; table, collection: dtype, ndim and shape */
};

/* Where results go: 64-byte aligned memory for one extent of `bytes`, or NULL when there is no
 * room (the caller then reports MR_ELIMIT). What was allocated and not finished stays the
 * allocator's to take back. */
struct mr_value_alloc {
    void *(*alloc)(void *ctx, uint64_t bytes);
    void *ctx;
};
/* From the heap, for tests and clients: ctx is a `void *` that receives the memory, to mr_release.
 */
void *mr_value_heap_alloc(void *ctx, uint64_t bytes);

/* Is this a value? Costs the size of header, column descriptors and collection entries, not of the
 * data. `bytes` may be longer than the value (padding). MR_EFORMAT, MR_ELIMIT, MR_EINVAL (not
 * aligned), MR_ESTATE (another layout version). */
int mr_value_check(struct mr_str bytes, struct mr_value *out, struct mr_error *e);
/* The same, and all that data can get wrong: offsets of texts, UTF-8, bools, packs. For what came
 * from outside the node; costs a pass over such data. */
int mr_value_check_deep(struct mr_str bytes, struct mr_value *out, struct mr_error *e);

/* Extent sizes (0: over MR_OBJECT_BYTES_MAX or no such shape), and builders that write the header
 * in place and return where the data goes, so that results are made where they stay. `extent` has
 * the size's bytes, 64-byte aligned, not necessarily zeroed. */
uint64_t mr_tensor_bytes(enum mr_dtype dtype, unsigned ndim, const uint64_t *shape);
void *mr_tensor_build(void *extent, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape);
uint64_t mr_value_bytes_size(uint64_t data_bytes);
void *mr_value_bytes_build(void *extent, uint64_t data_bytes);
uint64_t mr_value_pack_size(uint64_t pack_bytes);
void *mr_value_pack_build(void *extent, uint64_t pack_bytes);
/* `meta` is a pack, copied; what it says is lib/nn's (model_value.h). */
uint64_t mr_value_model_size(uint64_t count, struct mr_str meta);
float *mr_value_model_build(void *extent, uint64_t count, struct mr_str meta);

/* Sets MR_VALUE_DRAWN in a header that was just written; what is none stays as it is. */
void mr_value_mark_drawn(void *extent);
/* Whether an extent, of which the header may be all that is there, or a pack that is a whole extent
 * (extension 2) has that flag. Believes what it sees. */
bool mr_value_is_drawn(struct mr_str extent);
bool mr_value_pack_is_drawn(struct mr_str pack);

/* All at once. MR_ELIMIT when the allocator has no room or the value may not exist. */
int mr_tensor_new(const struct mr_value_alloc *a, enum mr_dtype dtype, unsigned ndim,
    const uint64_t *shape, void **data_out, struct mr_error *e);
int mr_value_put_bytes(const struct mr_value_alloc *a, struct mr_str bytes, struct mr_error *e);
/* A pack that is a whole extent (extension 2) becomes that value. */
int mr_value_put_pack(const struct mr_value_alloc *a, struct mr_str pack, struct mr_error *e);

/* A pack as a value. Extension 2 is the value inside it, copied through `a` when it does not lie
 * aligned (`a` NULL: MR_EINVAL instead); anything else is a pack on its own, borrowed. The pack is
 * one item (mr_pack_check). */
int mr_value_from_pack(
    struct mr_str pack, const struct mr_value_alloc *a, struct mr_value *out, struct mr_error *e);
/* A value as a pack: what from_pack turns back. MR_ETOOBIG, and nothing written, when it would be
 * longer than MR_INLINE_VALUE_BYTES_MAX. */
int mr_value_to_pack(const struct mr_value *v, struct mr_buf *out);

/* "f32[60000,784] 179.4 MiB", "table[891 rows, 12 columns] 80.1 KiB", "int 42": for people. */
#define MR_VALUE_SUMMARY_MAX 512
void mr_value_summary(const struct mr_value *v, char out[MR_VALUE_SUMMARY_MAX]);
const char *mr_value_kind_name(enum mr_value_kind kind); /* "tensor", "table", "json", "bytes" … */
