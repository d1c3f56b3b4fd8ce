#include "base/index.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <string.h>

/* Returns the slot where the search for an item begins. `hash` is the upper half of the item's
 * hash. Each slot stores this half, so mr_index_remove needs no hash function of the caller when it
 * moves items. */
static uint32_t home_of(const struct mr_index *x, uint32_t hash)
{
    return (hash * 0x9e3779b1u) & x->mask;
}

static void slots_make(struct mr_index *x, uint32_t slots)
{
    x->slots = mr_alloc_array(slots, sizeof *x->slots);
    memset(x->slots, 0xff, slots * sizeof *x->slots); /* sets each item to MR_INDEX_NONE */
    x->mask = slots - 1;
    x->count_max = slots - slots / 4;
}

void mr_index_init(struct mr_index *x, uint32_t count_max)
{
    uint32_t slots = 8;
    mr_assert(count_max <= 1u << 30);
    while (slots - slots / 4 < count_max)
        slots *= 2;
    x->count = 0;
    slots_make(x, slots);
}

void mr_index_fini(struct mr_index *x)
{
    mr_release(x->slots);
    *x = (struct mr_index){0};
}

uint32_t mr_index_find(
    const struct mr_index *x, uint64_t hash, mr_index_eq eq, const void *ctx, const void *key)
{
    uint32_t upper = (uint32_t)(hash >> 32);
    for (uint32_t i = home_of(x, upper);; i = (i + 1) & x->mask) {
        const struct mr_index_slot *s = &x->slots[i];
        if (s->item == MR_INDEX_NONE) return MR_INDEX_NONE;
        if (s->hash == upper && eq(ctx, s->item, key)) return s->item;
    }
}

static void place(struct mr_index *x, uint32_t upper, uint32_t item)
{
    uint32_t i = home_of(x, upper);
    while (x->slots[i].item != MR_INDEX_NONE)
        i = (i + 1) & x->mask;
    x->slots[i] = (struct mr_index_slot){upper, item};
}

void mr_index_add(
    struct mr_index *x, uint64_t hash, uint32_t item, mr_index_hash rehash, const void *ctx)
{
    mr_assert(item != MR_INDEX_NONE);
    if (x->count >= x->count_max) {
        mr_assert(rehash); /* an index of fixed size must not overflow */
        struct mr_index_slot *old = x->slots;
        uint32_t slots = x->mask + 1;
        slots_make(x, slots * 2);
        for (uint32_t i = 0; i < slots; i++)
            if (old[i].item != MR_INDEX_NONE)
                place(x, (uint32_t)(rehash(ctx, old[i].item) >> 32), old[i].item);
        mr_release(old);
    }
    place(x, (uint32_t)(hash >> 32), item);
    x->count++;
}

bool mr_index_remove(struct mr_index *x, uint64_t hash, uint32_t item)
{
    uint32_t i = home_of(x, (uint32_t)(hash >> 32));
    while (x->slots[i].item != item) {
        if (x->slots[i].item == MR_INDEX_NONE) return false;
        i = (i + 1) & x->mask;
    }
    /* Deletion by backward shift: an item that stands behind the free slot, because its own slots
     * were taken, moves into the free slot. The slot that the item leaves is then the free slot. */
    for (uint32_t j = i;;) {
        j = (j + 1) & x->mask;
        if (x->slots[j].item == MR_INDEX_NONE) break;
        uint32_t home = home_of(x, x->slots[j].hash);
        if (((j - home) & x->mask) >= ((j - i) & x->mask)) {
            x->slots[i] = x->slots[j];
            i = j;
        }
    }
    x->slots[i].item = MR_INDEX_NONE;
    x->count--;
    return true;
}
