/* A hash table with open addressing that numbers texts (intern.h). */
#include "graph/intern.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/id.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Allocates the slots, and writes to each page immediately. A page that is read before it is
 * written is mapped twice, and the second mapping interrupts all other threads (TLB shootdown). */
static void slots_make(struct mr_intern *t, uint32_t slots)
{
    t->slots = mr_alloc_aligned(slots * sizeof *t->slots, 64);
    t->mask = slots - 1;
}

void mr_intern_init(struct mr_intern *t, uint32_t count_hint)
{
    uint32_t slots = 64;
    mr_assert(count_hint <= 1u << 28);
    while (slots - slots / 3 <= count_hint)
        slots *= 2;
    *t = (struct mr_intern){.room = slots, .text_room = (size_t)slots * 8};
    t->at = mr_alloc_array((size_t)t->room + 1, sizeof *t->at);
    t->text = mr_alloc(t->text_room);
    slots_make(t, slots);
    /* The seed is made of an address, so that a client cannot prepare a million keys that collide.
     * No result depends on the order of the slots. */
    t->seed = mr_hash_u64((uint64_t)(uintptr_t)t->slots);
}

void mr_intern_fini(struct mr_intern *t)
{
    mr_release(t->text);
    mr_release(t->at);
    mr_release(t->slots);
    *t = (struct mr_intern){0};
}

uint32_t mr_intern_hash(const struct mr_intern *t, struct mr_str s)
{
    return (uint32_t)(XXH3_64bits_withSeed(s.p, s.n, t->seed) >> 32);
}

static void place(struct mr_intern *t, uint64_t slot)
{
    uint32_t i = (uint32_t)(slot >> 32) & t->mask;
    while (t->slots[i])
        i = (i + 1) & t->mask;
    t->slots[i] = slot;
}

static void grow_slots(struct mr_intern *t)
{
    uint64_t *old = t->slots;
    uint32_t n = t->mask + 1;
    slots_make(t, n * 2);
    for (uint32_t i = 0; i < n; i++)
        if (old[i]) place(t, old[i]);
    mr_release(old);
}

static void room_for(struct mr_intern *t, size_t texts, size_t bytes)
{
    if (t->room - t->count < texts) {
        uint32_t room = MR_MAX(t->room * 2, t->count + (uint32_t)texts);
        size_t n = ((size_t)room + 1) * sizeof *t->at;
        /* The new part is not zeroed, so pages that are never touched are not committed. */
        t->at = mr_grow(t->at, n, n);
        t->room = room;
    }
    if (t->text_room - t->text_bytes < bytes) {
        size_t room = t->text_room * 2 + bytes;
        t->text = mr_grow(t->text, room, room);
        t->text_room = room;
    }
}

uint32_t mr_intern_add(struct mr_intern *t, struct mr_str s, uint32_t hash)
{
    mr_assert(t->text_bytes + s.n < UINT32_MAX);
    if (t->count >= t->mask - t->mask / 3) grow_slots(t);
    room_for(t, 1, s.n);
    if (s.n) memcpy(t->text + t->text_bytes, s.p, s.n);
    t->text_bytes += s.n;
    uint32_t item = t->count++;
    t->at[item + 1] = (uint32_t)t->text_bytes;
    place(t, (uint64_t)hash << 32 | (item + 1));
    return item;
}

/* The number of texts in one batch: the slot of each text is prefetched while the next texts are
 * hashed. */
#define AT_ONCE 32

/* Finds a slot for text `item`, which has already been copied into `text`, and fills the slot.
 * False: an equal text has a slot already. */
static bool place_new(struct mr_intern *t, uint32_t item, uint32_t hash)
{
    for (uint32_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        uint64_t slot = t->slots[i];
        if (!slot) {
            t->slots[i] = (uint64_t)hash << 32 | (item + 1);
            return true;
        }
        if ((uint32_t)(slot >> 32) != hash) continue;
        if (mr_str_eq(mr_intern_text(t, (uint32_t)slot - 1), mr_intern_text(t, item))) return false;
    }
}

bool mr_intern_add_all(
    struct mr_intern *t, const char *texts, const uint32_t *bytes, uint32_t count)
{
    size_t all = 0;
    for (uint32_t i = 0; i < count; i++)
        all += bytes[i];
    mr_assert(t->text_bytes + all < UINT32_MAX);
    while ((uint64_t)t->count + count > t->mask - t->mask / 3)
        grow_slots(t);
    room_for(t, count, all);
    if (all) memcpy(t->text + t->text_bytes, texts, all);
    for (uint32_t done = 0; done < count; done += AT_ONCE) {
        uint32_t hash[AT_ONCE], n = MR_MIN(count - done, (uint32_t)AT_ONCE), item = t->count;
        for (uint32_t i = 0; i < n; i++) {
            t->text_bytes += bytes[done + i];
            t->at[item + i + 1] = (uint32_t)t->text_bytes;
            hash[i] = mr_intern_hash(t, mr_intern_text(t, item + i));
            __builtin_prefetch(&t->slots[hash[i] & t->mask], 1);
        }
        t->count += n;
        for (uint32_t i = 0; i < n; i++)
            if (!place_new(t, item + i, hash[i])) return false;
    }
    return true;
}
