/* What the processes of one node share in memory: the directory (written by the object store), a
 * pin page for each client (written by that client), and the head of each extent (written by the
 * client that owns the segment). An extent is a head and the value after it. A reader of any of
 * these treats it as untrusted bytes.
 *
 * The pin protocol keeps invariant I14 (docs/invariants.md). A reader writes the entry and its
 * generation into a slot of its pin page, and then checks that the entry is still sealed with this
 * generation. If so, it may read the bytes until it clears the slot. An evictor marks the entry and
 * then scans the slots of every page. All four accesses are sequentially consistent. The room of an
 * entry is reused only if no slot names the entry. This is the scheme of hazard pointers (Michael,
 * IEEE TPDS 2004), with generations. */
#pragma once

#include "base/id.h"

#include <assert.h>
#include <stdatomic.h>

#define MR_CATALOG_MAGIC 0x315249446d72726du
#define MR_PIN_MAGIC 0x314e49506d72726du
#define MR_EXTENT_MAGIC 0x315458456d72726du

/* Pins that a client can hold at the same time without a request to the store. */
#define MR_PIN_SLOTS 2048u
/* Size of the ring of the entries that the client has used last. The store reads the ring for its
 * LRU order. A power of two. */
#define MR_PIN_RECENT 1024u
#define MR_EXTENT_HEAD 64u                       /* bytes of the head before every value */
#define MR_SMALL_BYTES_MAX ((uint64_t)256 << 10) /* values up to this size are stored in slabs */
#define MR_ARENA_PAGE 4096u
/* Every segment number is below this limit. A store uses no number twice in its lifetime. */
#define MR_SEGMENTS_MAX 16777216u

/* States of a directory entry. A reader uses only SEALED entries; for an entry in any other state
 * it asks the store. */
enum mr_entry_state {
    MR_ENTRY_FREE,
    MR_ENTRY_SEALED,
    MR_ENTRY_EVICTING,
    MR_ENTRY_AWAY, /* the store has the object, but not in memory */
};

/* One object. `word` is generation << 32 | state. The other members change only while the state is
 * not SEALED. The generation grows each time the object leaves memory. */
struct mr_dir_entry {
    _Atomic uint64_t word;
    _Atomic uint64_t maker;
    _Atomic uint64_t number;
    _Atomic uint64_t offset; /* offset of the value in the segment */
    _Atomic uint64_t bytes;
    _Atomic uint32_t segment;
    uint32_t unused;
    uint64_t reserved[2];
};
static_assert(sizeof(struct mr_dir_entry) == 64, "an entry is a cache line");

/* The head of the directory. A table of `slots_count` slots follows, then a table of
 * `entries_count` entries. `slots_count` is a power of two. A slot is a uint32_t: 0 (empty),
 * MR_DIR_TOMBSTONE, or the number of an entry. Both tables begin at a multiple of 64 bytes. */
struct mr_dir_head {
    uint64_t magic;
    uint32_t version;
    uint32_t slots_count;
    uint32_t entries_count; /* entry 0 is never used */
    uint32_t unused;
    uint64_t node;
    /* 1 + the number of objects that may still be made; 0: the number is unknown. */
    _Atomic uint64_t objects_left;
    _Atomic uint64_t away; /* objects that are on disk and not in memory */
    uint64_t reserved[2];
};
static_assert(sizeof(struct mr_dir_head) == 64, "a head is a cache line");

#define MR_DIR_TOMBSTONE UINT32_MAX
#define MR_DIR_ENTRIES_MAX ((uint32_t)1 << 24)

struct mr_pin_page {
    uint64_t magic;
    uint32_t version;
    /* The slots from number `slots_used` on are free. `slots_used` never shrinks. */
    _Atomic uint32_t slots_used;
    _Atomic uint32_t recent_count;
    uint32_t unused[11];
    _Atomic uint64_t slots[MR_PIN_SLOTS]; /* entry << 32 | generation; 0: the slot is free */
    _Atomic uint32_t recent[MR_PIN_RECENT];
};
static_assert(offsetof(struct mr_pin_page, slots) == 64, "slots start on a cache line");

/* The head before each value. A store can rebuild its directory from the heads in its segments. */
struct mr_extent_head {
    uint64_t magic;
    uint64_t maker;
    uint64_t number;
    uint64_t bytes;
    uint64_t job;
    uint32_t task;
    uint32_t attempt;
    uint64_t reserved;
    uint64_t check; /* XXH3 of the members above */
};
static_assert(sizeof(struct mr_extent_head) == MR_EXTENT_HEAD, "the value stays 64-byte aligned");

static inline uint64_t mr_entry_word(uint32_t generation, enum mr_entry_state state)
{
    return (uint64_t)generation << 32 | (uint64_t)state;
}

static inline uint32_t mr_entry_generation(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static inline uint32_t mr_entry_state(uint64_t word)
{
    return (uint32_t)word;
}

static inline uint64_t mr_pin_word(uint32_t entry, uint32_t generation)
{
    return (uint64_t)entry << 32 | generation;
}

void mr_extent_head_fill(struct mr_extent_head *h, mr_object_id id, uint64_t bytes, mr_job_id job,
    uint32_t task, uint32_t attempt);
bool mr_extent_head_is_valid(const struct mr_extent_head *h);
