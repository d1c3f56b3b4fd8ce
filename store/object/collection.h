/* Collections: one value that consists of many parts, such as the partitions of a distributed
 * array, table or list. An entry for each part names the part's object, or contains a small part
 * inline, and says which region of the whole the part covers. This file does not know where the
 * objects are stored. The extent of a value is its bytes (value.h). */
#pragma once

#include "store/object/value.h"

#define MR_COLLECTION_PARTS_MAX 1048576
/* A value of `axis`: the whole is cut along more than one axis. */
#define MR_COLLECTION_GRID 0xffu

struct mr_collection_layout { /* the head of a collection, at the start of meta */
    uint32_t count;
    uint8_t kind; /* enum mr_value_kind of the whole: tensor, table or pack (a list) */
    /* The parts are slices along this axis, in order. MR_COLLECTION_GRID: along several axes. */
    uint8_t axis;
    uint16_t reserved;
    uint64_t divisions_offset; /* from the start of the extent; 0: there are no divisions */
    uint64_t divisions_bytes;
    uint64_t reserved2;
};

/* The entry of one part. uint64_t start[ndim] and uint64_t shape[ndim] follow each entry. */
struct mr_collection_part_layout {
    uint64_t maker; /* half of the id of the part's object; 0 for an inline part */
    uint64_t number;
    uint64_t nbytes;        /* bytes of the part's extent */
    uint64_t inline_offset; /* from the start of the extent; 0: the part is not inline */
    uint32_t inline_bytes;
    uint8_t kind; /* enum mr_value_kind of the part */
    uint8_t dtype;
    uint16_t reserved;
};

struct mr_collection {
    enum mr_value_kind kind;
    enum mr_dtype dtype; /* the element type if the parts are tensors */
    uint8_t axis;
    unsigned ndim;
    const uint64_t *shape; /* shape of the whole; borrowed from the value */
    uint32_t count;
    /* A list of count + 1 bounds of the parts of a sorted table, encoded as a pack
     * (docs/values.md). Empty: there are no bounds. */
    struct mr_str divisions;
    const struct mr_value *value;
};

struct mr_collection_part {
    mr_object_id id; /* id of the part's object; zero: the part is in inline_pack */
    uint64_t nbytes;
    enum mr_value_kind kind;
    enum mr_dtype dtype;
    uint64_t start[MR_TENSOR_DIMS_MAX]; /* where the part begins in the whole, along each axis */
    uint64_t shape[MR_TENSOR_DIMS_MAX]; /* the part's length along each axis of the whole */
    struct mr_str inline_pack;
};

/* Opens a collection. `*out` borrows `v` and its extent. */
int mr_collection_open(const struct mr_value *v, struct mr_collection *out, struct mr_error *e);
/* Reads the entry of part `i`. MR_ERANGE: there is no such part. MR_EFORMAT: the entry is
 * malformed. */
int mr_collection_part(
    const struct mr_collection *c, uint32_t i, struct mr_collection_part *out, struct mr_error *e);

struct mr_collection_spec {
    enum mr_value_kind kind;
    enum mr_dtype dtype; /* the element type of tensors; otherwise MR_DTYPE_NONE */
    uint8_t axis;
    unsigned ndim;
    const uint64_t *shape;
    const struct mr_collection_part *parts;
    uint32_t count;
    struct mr_str divisions;
};

/* Returns the size of the collection's extent in bytes. 0: a collection like this is not allowed,
 * for example because it has too many parts or axes, or a part has neither an id nor an inline
 * pack. */
uint64_t mr_collection_bytes(const struct mr_collection_spec *s);
/* Writes the whole extent, which has mr_collection_bytes bytes. */
void mr_collection_build(void *extent, const struct mr_collection_spec *s);
