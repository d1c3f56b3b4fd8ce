/* A hash index with open addressing. The items live in the caller's memory and have uint32_t
 * numbers. The index finds the number of an item by a 64-bit hash and a comparison function of the
 * caller. Collisions are resolved by linear probing. Deletion is by backward shift (Knuth, TAOCP
 * vol. 3, 6.4). At most 3/4 of the slots are full. A slot has 8 bytes: the upper 32 bits of the
 * hash, and the item's number. No result depends on the order of the slots. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>

#define MR_INDEX_NONE UINT32_MAX

struct mr_index_slot {
    uint32_t hash; /* upper 32 bits of the item's hash */
    uint32_t item; /* MR_INDEX_NONE: the slot is free */
};

struct mr_index {
    struct mr_index_slot *slots;
    uint32_t mask;  /* the number of slots, a power of two, minus 1 */
    uint32_t count; /* items in the index */
    uint32_t count_max;
};

typedef bool (*mr_index_eq)(const void *ctx, uint32_t item, const void *key);
typedef uint64_t (*mr_index_hash)(const void *ctx, uint32_t item);

/* Makes an index with room for at least `count_max` items. */
void mr_index_init(struct mr_index *x, uint32_t count_max);
void mr_index_fini(struct mr_index *x);

/* Returns the number of the item that equals `key`, or MR_INDEX_NONE. */
uint32_t mr_index_find(
    const struct mr_index *x, uint64_t hash, mr_index_eq eq, const void *ctx, const void *key);

/* Adds an item that is not yet in the index. A full index doubles its size, and calls `rehash` for
 * the hash of every item. `rehash` is NULL for an index that must not grow: adding an item to such
 * an index when it is full fails an assertion. */
void mr_index_add(
    struct mr_index *x, uint64_t hash, uint32_t item, mr_index_hash rehash, const void *ctx);

/* Removes the item with this number and returns true. False: the index does not have the item. */
bool mr_index_remove(struct mr_index *x, uint64_t hash, uint32_t item);
