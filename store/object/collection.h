/* Collections: many values that together are one: the partitions of a distributed array, table or
 * list. An entry names the partition's object, or carries a small one inline, and says which part
 * of the whole it is. Knows nothing of where objects lie. */
#pragma once

#include "store/object/value.h"

#define MR_COLLECTION_PARTS_MAX 1048576
#define MR_COLLECTION_GRID 0xffu /* cut along more than one axis */

struct mr_collection_layout { /* the start of meta */
    uint32_t count;
    uint8_t kind; /* enum mr_value_kind of the whole: tensor, table, pack (a list) */
    uint8_t axis; /* cut along this one, in order; or MR_COLLECTION_GRID */
    uint16_t reserved;
    uint64_t divisions_offset; /* from the extent's start; 0: none */
    uint64_t divisions_bytes;
    uint64_t reserved2;
};

struct mr_collection_part_layout { /* count of them follow, each with u64 start[ndim], shape[ndim]
                                    */
    uint64_t maker;                /* object id; none when inline */
    uint64_t number;
    uint64_t nbytes;        /* of the part's extent */
    uint64_t inline_offset; /* from the extent's start; 0: not inline */
    uint32_t inline_bytes;
    uint8_t kind; /* of the part */
    uint8_t dtype;
    uint16_t reserved;
};

struct mr_collection {
    enum mr_value_kind kind;
    enum mr_dtype dtype; /* of a collection of tensors */
    uint8_t axis;
    unsigned ndim;
    const uint64_t *shape; /* of the whole; borrowed from the value passed to open */
    uint32_t count;
    struct mr_str divisions; /* a pack: list of count + 1 bounds of a sorted table; empty: none */
    const struct mr_value *value;
};

struct mr_collection_part {
    mr_object_id id; /* none: inline_pack holds the part */
    uint64_t nbytes;
    enum mr_value_kind kind;
    enum mr_dtype dtype;
    uint64_t start[MR_TENSOR_DIMS_MAX]; /* of its first element in the whole */
    uint64_t shape[MR_TENSOR_DIMS_MAX]; /* along the axes of the whole */
    struct mr_str inline_pack;
};

/* `*out` borrows `v` and its extent. */
int mr_collection_open(const struct mr_value *v, struct mr_collection *out, struct mr_error *e);
/* Part `i`, its entry checked: MR_EFORMAT. */
int mr_collection_part(
    const struct mr_collection *c, uint32_t i, struct mr_collection_part *out, struct mr_error *e);

struct mr_collection_spec {
    enum mr_value_kind kind;
    enum mr_dtype dtype; /* of tensors; else MR_DTYPE_NONE */
    uint8_t axis;
    unsigned ndim;
    const uint64_t *shape;
    const struct mr_collection_part *parts;
    uint32_t count;
    struct mr_str divisions;
};

/* 0: no such collection: too many parts or axes, a part with neither id nor inline pack, … */
uint64_t mr_collection_bytes(const struct mr_collection_spec *s);
void mr_collection_build(void *extent, const struct mr_collection_spec *s); /* all of it */
