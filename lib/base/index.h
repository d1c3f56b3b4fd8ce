/* An open-addressing hash index: finds items, which live elsewhere and are known by a u32, by a
 * 64-bit hash and the caller's idea of equality. Linear probing, deletion by backward shift, at
 * most 3/4 full, 8 bytes a slot (u32 of the hash, u32 of the item). Nothing here depends on the
 * order of slots. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>

#define MR_INDEX_NONE UINT32_MAX

struct mr_index_slot {
    uint32_t hash; /* upper half of the item's hash */
    uint32_t item; /* MR_INDEX_NONE: free */
};

struct mr_index {
    struct mr_index_slot *slots;
    uint32_t mask;  /* slots - 1, slots a power of two */
    uint32_t count; /* items */
    uint32_t count_max;
};

typedef bool (*mr_index_eq)(const void *ctx, uint32_t item, const void *key);
typedef uint64_t (*mr_index_hash)(const void *ctx, uint32_t item);

/* A fixed index never grows: adding past count_max is an assertion. */
void mr_index_init(struct mr_index *x, uint32_t count_max);
void mr_index_fini(struct mr_index *x);

/* The item that equals `key`, or MR_INDEX_NONE. */
uint32_t mr_index_find(
    const struct mr_index *x, uint64_t hash, mr_index_eq eq, const void *ctx, const void *key);

/* Adds an item that is not in yet. When the index is full it doubles, by rehashing every item with
 * `rehash`; with rehash == NULL it is fixed. */
void mr_index_add(
    struct mr_index *x, uint64_t hash, uint32_t item, mr_index_hash rehash, const void *ctx);

/* Removes `item` (by its number); false if it is not in. */
bool mr_index_remove(struct mr_index *x, uint64_t hash, uint32_t item);
