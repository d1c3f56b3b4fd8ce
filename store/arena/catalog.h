/* The directory in shared memory, which lists a node's objects, and the pages in which readers
 * announce their pins. The object store writes the directory, on one thread. Readers are other
 * processes and take no lock. */
#pragma once

#include "base/err.h"
#include "store/arena/layout.h"

/* ---- reader and writer: a mapped directory --------------------------------------------------- */

struct mr_catalog {
    struct mr_dir_head *head;
    _Atomic uint32_t *slots;
    struct mr_dir_entry *entries;
    /* Private copies of the sizes. The originals are in shared memory, where another process could
     * change them. */
    uint32_t slots_mask;
    uint32_t entries_count;
    uint32_t tombstones; /* tombstones among the slots; counted by the writer */
};

uint64_t mr_catalog_bytes(uint32_t entries_count);

/* For the writer: formats `p`, which is zeroed memory of mr_catalog_bytes(entries_count). */
void mr_catalog_format(struct mr_catalog *d, void *p, uint32_t entries_count, mr_node_id node);
/* For a reader: checks a mapped directory and fills `d`. MR_EFORMAT: the directory has another
 * layout, or its tables do not lie within `bytes`. */
int mr_catalog_attach(struct mr_catalog *d, void *p, uint64_t bytes, struct mr_error *e);

/* ---- reader ---------------------------------------------------------------------------------- */

struct mr_dir_place {
    uint32_t entry;
    uint32_t generation;
    uint32_t segment;
    uint64_t offset;
    uint64_t bytes;
};

/* Pins object `id`: announces the pin in `slot`, a word of the reader's pin page, and checks that
 * the object is still there. True: the bytes at `*out` stay until `slot` is set to 0. False: `slot`
 * is 0, and the reader has to ask the store. */
bool mr_catalog_pin(
    const struct mr_catalog *d, mr_object_id id, _Atomic uint64_t *slot, struct mr_dir_place *out);

/* Returns how many more objects the store accepts, as of its last update. UINT64_MAX: the store has
 * not given a number. */
uint64_t mr_catalog_objects_left(const struct mr_catalog *d);

/* True: the object is in memory. False: it is not, or the reader has to ask the store. The answer
 * may be out of date at once. */
bool mr_catalog_is_here(const struct mr_catalog *d, mr_object_id id);
/* Returns the number of objects that are on disk and not in memory. */
uint64_t mr_catalog_away(const struct mr_catalog *d);

/* ---- writer ---------------------------------------------------------------------------------- */

/* Adds an object in the free entry `entry`, which the caller chooses. The object is AWAY (not in
 * memory) until it is published. */
void mr_catalog_add(struct mr_catalog *d, uint32_t entry, mr_object_id id);
void mr_catalog_publish(
    struct mr_catalog *d, uint32_t entry, uint32_t segment, uint64_t offset, uint64_t bytes);
/* Eviction in three steps: the writer marks entries, scans all pins once for all marked entries,
 * and then commits each entry or, if it is pinned, backs off. After a commit the entry is AWAY and
 * its generation has grown. */
void mr_catalog_mark(struct mr_catalog *d, uint32_t entry);
void mr_catalog_back_off(struct mr_catalog *d, uint32_t entry);
void mr_catalog_commit(struct mr_catalog *d, uint32_t entry);
/* Frees an entry whose object is AWAY. */
void mr_catalog_remove(struct mr_catalog *d, uint32_t entry);
void mr_catalog_set_objects_left(struct mr_catalog *d, uint64_t count);
void mr_catalog_set_away(struct mr_catalog *d, uint64_t count);

/* ---- pin pages ------------------------------------------------------------------------------- */

void mr_pin_page_format(struct mr_pin_page *page);
bool mr_pin_page_is_valid(const struct mr_pin_page *page);

typedef void (*mr_pin_seen)(void *ctx, uint32_t entry);
/* Calls `seen` for each pin whose entry still has the generation that the pin names. An eviction
 * calls mr_catalog_mark first. Another process writes the page, so every number in it is
 * checked. */
void mr_pin_page_scan(
    const struct mr_catalog *d, const struct mr_pin_page *page, mr_pin_seen seen, void *ctx);
/* Calls `seen` for each entry that the page's process has used since `*from`, at most MR_PIN_RECENT
 * of them, and updates `*from`, a count that the caller keeps. */
void mr_pin_page_recent(const struct mr_catalog *d, const struct mr_pin_page *page, uint32_t *from,
    mr_pin_seen seen, void *ctx);
