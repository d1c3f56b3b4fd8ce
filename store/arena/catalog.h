/* The directory of a node's objects in shared memory, from both sides, and the pin pages. The store
 * owns the writer's side (one thread); readers are lock-free and in other processes. */
#pragma once

#include "base/err.h"
#include "store/arena/layout.h"

/* ---- both sides: a directory mapped somewhere -------------------------------------------------*/

struct mr_catalog {
    struct mr_dir_head *head;
    _Atomic uint32_t *slots;
    struct mr_dir_entry *entries;
    uint32_t slots_mask; /* copies: the shared ones are not believed twice */
    uint32_t entries_count;
    uint32_t graves; /* writer only */
};

uint64_t mr_catalog_bytes(uint32_t entries_count);

/* The writer formats zeroed memory of mr_catalog_bytes(entries_count). */
void mr_catalog_format(struct mr_catalog *d, void *p, uint32_t entries_count, mr_node_id node);
/* A reader takes what it was given: MR_EFORMAT if the tables do not lie within `bytes`. */
int mr_catalog_attach(struct mr_catalog *d, void *p, uint64_t bytes, struct mr_error *e);

/* ---- reader -----------------------------------------------------------------------------------*/

struct mr_dir_place {
    uint32_t entry;
    uint32_t generation;
    uint32_t segment;
    uint64_t offset;
    uint64_t bytes;
};

/* Announces a pin of object `id` in `slot` and confirms it. True: the place is pinned until `slot`
 * is set to 0. False: `slot` is 0 again, the store must be asked. */
bool mr_catalog_pin(
    const struct mr_catalog *d, mr_object_id id, _Atomic uint64_t *slot, struct mr_dir_place *out);

/* How many more objects may be made, as the store said last; UINT64_MAX: it did not say. */
uint64_t mr_catalog_objects_left(const struct mr_catalog *d);

bool mr_catalog_is_here(const struct mr_catalog *d, mr_object_id id); /* in memory, just now */
uint64_t mr_catalog_away(const struct mr_catalog *d); /* how many the store has on disk only */

/* ---- writer -----------------------------------------------------------------------------------*/

/* Entry numbers are given by the caller; `entry` is free. The object is AWAY until published. */
void mr_catalog_add(struct mr_catalog *d, uint32_t entry, mr_object_id id);
void mr_catalog_publish(
    struct mr_catalog *d, uint32_t entry, uint32_t segment, uint64_t offset, uint64_t bytes);
/* One eviction: mark, (one scan for many), then commit or back off. Committed, the
 * generation has grown and the entry is AWAY. */
void mr_catalog_mark(struct mr_catalog *d, uint32_t entry);
void mr_catalog_back_off(struct mr_catalog *d, uint32_t entry);
void mr_catalog_commit(struct mr_catalog *d, uint32_t entry);
void mr_catalog_remove(struct mr_catalog *d, uint32_t entry); /* from AWAY; entry is free */
void mr_catalog_set_objects_left(struct mr_catalog *d, uint64_t count);
void mr_catalog_set_away(struct mr_catalog *d, uint64_t count);
uint32_t mr_catalog_generation(const struct mr_catalog *d, uint32_t entry);

/* ---- pin pages --------------------------------------------------------------------------------*/

void mr_pin_page_format(struct mr_pin_page *page);
bool mr_pin_page_is_valid(const struct mr_pin_page *page);

/* After mr_catalog_mark: calls back for every pin that names
 * an entry of the directory with its present generation. A page may say anything. */
typedef void (*mr_pin_seen)(void *ctx, uint32_t entry);
void mr_pin_page_scan(
    const struct mr_catalog *d, const struct mr_pin_page *page, mr_pin_seen seen, void *ctx);
/* Entries used since `*from` (a count, kept by the caller), at most MR_PIN_RECENT of them. */
void mr_pin_page_recent(const struct mr_catalog *d, const struct mr_pin_page *page, uint32_t *from,
    mr_pin_seen seen, void *ctx);
