/* What processes of one node see of each other in shared memory: the directory (written by the
 * store), a pin page per client (written by that client), and the head of every extent (written by
 * the segment's one writer). Whoever reads a page treats it as bytes from outside.
 *
 * The pin protocol, which keeps I14: a reader that has written (entry,
 * generation) into its page and afterwards still finds the entry sealed with that generation
 * may read the bytes until it clears the slot. An evictor marks the entry and then scans every
 * page (all four are sequentially consistent); only an entry that no page names may be reused. */
#pragma once

#include "base/id.h"

#include <assert.h>
#include <stdatomic.h>

#define MR_CATALOG_MAGIC 0x315249446d72726du
#define MR_PIN_MAGIC 0x314e49506d72726du
#define MR_EXTENT_MAGIC 0x315458456d72726du

#define MR_PIN_SLOTS 2048u  /* pins one client can hold without a round trip */
#define MR_PIN_RECENT 1024u /* a ring of entries it used, for the store's LRU; a power of two */
#define MR_EXTENT_HEAD 64u  /* bytes before every value */
#define MR_SMALL_BYTES_MAX ((uint64_t)256 << 10) /* values up to this live in slabs */
#define MR_ARENA_PAGE 4096u
#define MR_SEGMENTS_MAX 16777216u /* numbers of segments in the life of a store */

/* States of a directory entry as readers see them: only SEALED counts, anything else means "ask the
 * store". */
enum mr_entry_state {
    MR_ENTRY_FREE,
    MR_ENTRY_SEALED,
    MR_ENTRY_EVICTING,
    MR_ENTRY_AWAY, /* known, but not in memory */
};

/* One object. `word` is generation << 32 | state; the rest is only written while `word` is not
 * SEALED, and the generation grows each time an entry leaves memory. */
struct mr_dir_entry {
    _Atomic uint64_t word;
    _Atomic uint64_t maker;
    _Atomic uint64_t number;
    _Atomic uint64_t offset; /* of the value in the segment */
    _Atomic uint64_t bytes;
    _Atomic uint32_t segment;
    uint32_t unused;
    uint64_t reserved[2];
};
static_assert(sizeof(struct mr_dir_entry) == 64, "an entry is a cache line");

/* Followed by `slots_count` u32 slots (a power of two; 0 empty, MR_DIR_GONE a grave, else an entry
 * number from 1) and `entries_count` entries, each table at the next multiple of 64 bytes. */
struct mr_dir_head {
    uint64_t magic;
    uint32_t version;
    uint32_t slots_count;
    uint32_t entries_count; /* entry 0 is never used */
    uint32_t unused;
    uint64_t node;
    _Atomic uint64_t objects_left; /* 1 + how many more writers may make; 0: not told */
    _Atomic uint64_t away;         /* objects that are on disk only */
    uint64_t reserved[2];
};
static_assert(sizeof(struct mr_dir_head) == 64, "a head is a cache line");

#define MR_DIR_GONE UINT32_MAX
#define MR_DIR_ENTRIES_MAX ((uint32_t)1 << 24)

struct mr_pin_page {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t slots_used; /* slots below this may be set; never shrinks */
    _Atomic uint32_t recent_count;
    uint32_t unused[11];
    _Atomic uint64_t slots[MR_PIN_SLOTS]; /* entry << 32 | generation; 0 free */
    _Atomic uint32_t recent[MR_PIN_RECENT];
};
static_assert(offsetof(struct mr_pin_page, slots) == 64, "slots start on a cache line");

/* Before each value, so that a store can rebuild its directory from segments it is handed. */
struct mr_extent_head {
    uint64_t magic;
    uint64_t maker;
    uint64_t number;
    uint64_t bytes;
    uint64_t job;
    uint32_t task;
    uint32_t attempt;
    uint64_t reserved;
    uint64_t check; /* XXH3 of what stands before it */
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
