/* The directory in shared memory: lock-free lookup and pin for readers, changes by one writer.
 * While the writer changes the slot table, a reader may miss an entry. The reader then asks the
 * store, so a miss is harmless. A wrong hit is impossible: mr_catalog_pin checks the generation of
 * the entry after it has announced the pin. */
#include "store/arena/catalog.h"

#include "base/assert.h"
#include "base/limits.h"

#define PROBES_MAX 256u /* slots that a reader looks at before it asks the store */

static uint32_t slots_for(uint32_t entries_count)
{
    uint32_t n = 64;
    while (n < entries_count * 2)
        n *= 2;
    return n;
}

static uint64_t slots_offset(void)
{
    return sizeof(struct mr_dir_head);
}

static uint64_t entries_offset(uint32_t slots_count)
{
    return mr_align_up(slots_offset() + (uint64_t)slots_count * sizeof(uint32_t), 64);
}

uint64_t mr_catalog_bytes(uint32_t entries_count)
{
    uint64_t bytes = entries_offset(slots_for(entries_count)) +
                     (uint64_t)entries_count * sizeof(struct mr_dir_entry);
    return mr_align_up(bytes, MR_ARENA_PAGE);
}

static void place_tables(struct mr_catalog *d, void *p, uint32_t slots_count)
{
    d->head = p;
    d->slots = (_Atomic uint32_t *)(void *)((char *)p + slots_offset());
    d->entries = (struct mr_dir_entry *)(void *)((char *)p + entries_offset(slots_count));
    d->slots_mask = slots_count - 1;
    d->tombstones = 0;
}

void mr_catalog_format(struct mr_catalog *d, void *p, uint32_t entries_count, mr_node_id node)
{
    mr_assert(entries_count > 1);
    mr_assert(entries_count <= MR_DIR_ENTRIES_MAX);
    uint32_t slots_count = slots_for(entries_count);
    place_tables(d, p, slots_count);
    d->entries_count = entries_count;
    *d->head = (struct mr_dir_head){
        .magic = MR_CATALOG_MAGIC,
        .version = MR_LAYOUT_VERSION,
        .slots_count = slots_count,
        .entries_count = entries_count,
        .node = node.v,
    };
}

int mr_catalog_attach(struct mr_catalog *d, void *p, uint64_t bytes, struct mr_error *e)
{
    if (bytes < sizeof(struct mr_dir_head))
        return mr_fail(e, MR_EFORMAT, "object store: its directory is too short");
    struct mr_dir_head head = *(const struct mr_dir_head *)p;
    bool power = head.slots_count && !(head.slots_count & (head.slots_count - 1));
    if (head.magic != MR_CATALOG_MAGIC || head.version != MR_LAYOUT_VERSION || !power ||
        head.entries_count > MR_DIR_ENTRIES_MAX || head.slots_count > 4 * MR_DIR_ENTRIES_MAX)
        return mr_fail(e, MR_EFORMAT, "object store: its directory has another layout");
    uint64_t end = entries_offset(head.slots_count) +
                   (uint64_t)head.entries_count * sizeof(struct mr_dir_entry);
    if (end > bytes) return mr_fail(e, MR_EFORMAT, "object store: its directory is cut short");
    place_tables(d, p, head.slots_count);
    d->entries_count = head.entries_count;
    return MR_OK;
}

uint64_t mr_catalog_objects_left(const struct mr_catalog *d)
{
    return atomic_load_explicit(&d->head->objects_left, memory_order_relaxed) - 1;
}

void mr_catalog_set_objects_left(struct mr_catalog *d, uint64_t count)
{
    /* An equal number is not written, so the cache line stays valid in the readers' processors. */
    if (mr_catalog_objects_left(d) == count) return;
    atomic_store_explicit(&d->head->objects_left, count + 1, memory_order_relaxed);
}

uint64_t mr_catalog_away(const struct mr_catalog *d)
{
    return atomic_load_explicit(&d->head->away, memory_order_relaxed);
}

void mr_catalog_set_away(struct mr_catalog *d, uint64_t count)
{
    /* An equal number is not written, so the cache line stays valid in the readers' processors. */
    if (mr_catalog_away(d) == count) return;
    atomic_store_explicit(&d->head->away, count, memory_order_relaxed);
}

/* ---- reader ---------------------------------------------------------------------------------- */

static bool load_place(struct mr_dir_entry *x, mr_object_id id, struct mr_dir_place *out)
{
    uint64_t word = atomic_load_explicit(&x->word, memory_order_acquire);
    if (mr_entry_state(word) != MR_ENTRY_SEALED) return false;
    if (atomic_load_explicit(&x->maker, memory_order_relaxed) != id.maker) return false;
    if (atomic_load_explicit(&x->number, memory_order_relaxed) != id.number) return false;
    out->generation = mr_entry_generation(word);
    out->segment = atomic_load_explicit(&x->segment, memory_order_relaxed);
    out->offset = atomic_load_explicit(&x->offset, memory_order_relaxed);
    out->bytes = atomic_load_explicit(&x->bytes, memory_order_relaxed);
    return true;
}

static bool find_place(const struct mr_catalog *d, mr_object_id id, struct mr_dir_place *out)
{
    uint32_t at = (uint32_t)mr_object_id_hash(id) & d->slots_mask;
    for (uint32_t probes = 0; probes < PROBES_MAX; probes++, at = (at + 1) & d->slots_mask) {
        uint32_t entry = atomic_load_explicit(&d->slots[at], memory_order_acquire);
        if (entry == 0) return false;
        if (entry >= d->entries_count) continue; /* the slot is a tombstone, or damaged */
        if (!load_place(&d->entries[entry], id, out)) continue;
        out->entry = entry;
        return true;
    }
    return false;
}

bool mr_catalog_is_here(const struct mr_catalog *d, mr_object_id id)
{
    struct mr_dir_place at;
    return find_place(d, id, &at);
}

bool mr_catalog_pin(
    const struct mr_catalog *d, mr_object_id id, _Atomic uint64_t *slot, struct mr_dir_place *out)
{
    if (!find_place(d, id, out)) return false;
    /* The reader announces the pin and then reads the entry's word; an evictor marks the entry and
     * then scans the pins. All four accesses are sequentially consistent, so the reader sees the
     * mark or the evictor sees the pin. If the entry is still sealed with the same generation,
     * nothing that was read above has changed. */
    atomic_store(slot, mr_pin_word(out->entry, out->generation));
    uint64_t word = atomic_load(&d->entries[out->entry].word);
    if (word == mr_entry_word(out->generation, MR_ENTRY_SEALED)) return true;
    atomic_store_explicit(slot, 0, memory_order_release);
    return false;
}

/* ---- writer ---------------------------------------------------------------------------------- */

static mr_object_id entry_id(const struct mr_catalog *d, uint32_t entry)
{
    return (mr_object_id){atomic_load_explicit(&d->entries[entry].maker, memory_order_relaxed),
        atomic_load_explicit(&d->entries[entry].number, memory_order_relaxed)};
}

static void insert_slot(struct mr_catalog *d, uint32_t entry)
{
    uint32_t at = (uint32_t)mr_object_id_hash(entry_id(d, entry)) & d->slots_mask;
    for (;; at = (at + 1) & d->slots_mask) {
        uint32_t old = atomic_load_explicit(&d->slots[at], memory_order_relaxed);
        if (old != 0 && old != MR_DIR_TOMBSTONE) continue;
        if (old == MR_DIR_TOMBSTONE) d->tombstones--;
        atomic_store_explicit(&d->slots[at], entry, memory_order_release);
        return;
    }
}

/* Builds the slot table anew, when a quarter of the slots are tombstones, which make unsuccessful
 * lookups long. A reader that looks meanwhile may miss an entry and then asks the store. */
static void rebuild_slots(struct mr_catalog *d)
{
    for (uint32_t i = 0; i <= d->slots_mask; i++)
        atomic_store_explicit(&d->slots[i], 0, memory_order_relaxed);
    d->tombstones = 0;
    for (uint32_t i = 1; i < d->entries_count; i++)
        if (mr_entry_state(d->entries[i].word) != MR_ENTRY_FREE) insert_slot(d, i);
}

void mr_catalog_add(struct mr_catalog *d, uint32_t entry, mr_object_id id)
{
    mr_assert(entry > 0);
    mr_assert(entry < d->entries_count);
    struct mr_dir_entry *x = &d->entries[entry];
    uint64_t word = atomic_load_explicit(&x->word, memory_order_relaxed);
    mr_assert(mr_entry_state(word) == MR_ENTRY_FREE);
    atomic_store_explicit(&x->maker, id.maker, memory_order_relaxed);
    atomic_store_explicit(&x->number, id.number, memory_order_relaxed);
    atomic_store_explicit(&x->word, mr_entry_word(mr_entry_generation(word) + 1, MR_ENTRY_AWAY),
        memory_order_release);
    if (d->tombstones > d->slots_mask / 4) {
        rebuild_slots(d); /* the rebuild inserts the new entry too */
        return;
    }
    insert_slot(d, entry);
}

static void set_state(
    struct mr_catalog *d, uint32_t entry, enum mr_entry_state from, enum mr_entry_state to)
{
    struct mr_dir_entry *x = &d->entries[entry];
    uint64_t word = atomic_load_explicit(&x->word, memory_order_relaxed);
    mr_assert(mr_entry_state(word) == from);
    atomic_store(&x->word, mr_entry_word(mr_entry_generation(word), to));
}

void mr_catalog_publish(
    struct mr_catalog *d, uint32_t entry, uint32_t segment, uint64_t offset, uint64_t bytes)
{
    struct mr_dir_entry *x = &d->entries[entry];
    atomic_store_explicit(&x->segment, segment, memory_order_relaxed);
    atomic_store_explicit(&x->offset, offset, memory_order_relaxed);
    atomic_store_explicit(&x->bytes, bytes, memory_order_relaxed);
    set_state(d, entry, MR_ENTRY_AWAY, MR_ENTRY_SEALED);
}

void mr_catalog_mark(struct mr_catalog *d, uint32_t entry)
{
    /* The mark must come before any scan of pins. */
    set_state(d, entry, MR_ENTRY_SEALED, MR_ENTRY_EVICTING);
}

void mr_catalog_back_off(struct mr_catalog *d, uint32_t entry)
{
    set_state(d, entry, MR_ENTRY_EVICTING, MR_ENTRY_SEALED);
}

void mr_catalog_commit(struct mr_catalog *d, uint32_t entry)
{
    struct mr_dir_entry *x = &d->entries[entry];
    uint64_t word = atomic_load_explicit(&x->word, memory_order_relaxed);
    mr_assert(mr_entry_state(word) == MR_ENTRY_EVICTING);
    atomic_store_explicit(&x->word, mr_entry_word(mr_entry_generation(word) + 1, MR_ENTRY_AWAY),
        memory_order_release);
}

void mr_catalog_remove(struct mr_catalog *d, uint32_t entry)
{
    uint32_t at = (uint32_t)mr_object_id_hash(entry_id(d, entry)) & d->slots_mask;
    while (atomic_load_explicit(&d->slots[at], memory_order_relaxed) != entry)
        at = (at + 1) & d->slots_mask;
    uint32_t next = (at + 1) & d->slots_mask;
    bool last = atomic_load_explicit(&d->slots[next], memory_order_relaxed) == 0;
    atomic_store_explicit(&d->slots[at], last ? 0 : MR_DIR_TOMBSTONE, memory_order_release);
    if (!last) d->tombstones++;
    set_state(d, entry, MR_ENTRY_AWAY, MR_ENTRY_FREE);
}

static uint32_t generation_of(const struct mr_catalog *d, uint32_t entry)
{
    return mr_entry_generation(atomic_load_explicit(&d->entries[entry].word, memory_order_relaxed));
}

/* ---- pin pages ------------------------------------------------------------------------------- */

void mr_pin_page_format(struct mr_pin_page *page)
{
    page->magic = MR_PIN_MAGIC;
    page->version = MR_LAYOUT_VERSION;
}

bool mr_pin_page_is_valid(const struct mr_pin_page *page)
{
    return page->magic == MR_PIN_MAGIC && page->version == MR_LAYOUT_VERSION;
}

void mr_pin_page_scan(
    const struct mr_catalog *d, const struct mr_pin_page *page, mr_pin_seen seen, void *ctx)
{
    uint32_t used = atomic_load(&page->slots_used);
    used = MR_MIN(used, MR_PIN_SLOTS);
    for (uint32_t i = 0; i < used; i++) {
        uint64_t pin = atomic_load(&page->slots[i]);
        uint32_t entry = (uint32_t)(pin >> 32);
        if (entry == 0 || entry >= d->entries_count) continue;
        if (generation_of(d, entry) == (uint32_t)pin) seen(ctx, entry);
    }
}

void mr_pin_page_recent(const struct mr_catalog *d, const struct mr_pin_page *page, uint32_t *from,
    mr_pin_seen seen, void *ctx)
{
    uint32_t to = atomic_load_explicit(&page->recent_count, memory_order_acquire);
    uint32_t n = MR_MIN(to - *from, MR_PIN_RECENT);
    for (uint32_t i = to - n; i != to; i++) {
        uint32_t entry =
            atomic_load_explicit(&page->recent[i & (MR_PIN_RECENT - 1)], memory_order_relaxed);
        if (entry > 0 && entry < d->entries_count) seen(ctx, entry);
    }
    *from = to;
}
