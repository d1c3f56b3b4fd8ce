/* Parses control messages between the object store and its clients, or the pages of shared memory
 * between them: the directory of objects, a client's page of pins, the head of a block of shared
 * memory. The first byte chooses the parser. */
#include "base/alloc.h"
#include "base/assert.h"
#include "store/arena/control.h"
#include "store/arena/catalog.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void seen(void *ctx, uint32_t entry)
{
    const struct mr_catalog *d = ctx;
    mr_assert(entry > 0);
    mr_assert(entry < d->entries_count);
}

static void try_message(const void *p, size_t n, bool to_store)
{
    struct mr_ctl_message m;
    if (mr_ctl_parse(p, n, to_store, &m, NULL)) return;
    size_t fixed = mr_ctl_fixed_bytes(m.type);
    size_t items = (size_t)m.count * mr_ctl_item_bytes(m.type);
    mr_assert(sizeof(struct mr_ctl_head) + fixed + items == n);
    unsigned sum = 0; /* reads all bytes that the parser has accepted */
    for (size_t i = 0; m.fixed && i < fixed; i++)
        sum += ((const unsigned char *)m.fixed)[i];
    for (size_t i = 0; m.items && i < items; i++)
        sum += ((const unsigned char *)m.items)[i];
    if (m.type == MR_CTL_GET) sum += (unsigned)strlen(((const struct mr_ctl_get *)m.fixed)->source);
    if (m.type == MR_CTL_HELLO)
        sum += (unsigned)strlen(((const struct mr_ctl_hello *)m.fixed)->name);
    mr_assert(sum < UINT32_MAX);
}

static void try_directory(const void *p, size_t n)
{
    size_t bytes = MR_MAX(n, sizeof(struct mr_dir_head));
    void *copy = mr_alloc_aligned(mr_align_up(bytes, 64), 64);
    memcpy(copy, p, n);
    struct mr_catalog d;
    struct mr_dir_place at;
    _Atomic uint64_t slot = 0;
    if (!mr_catalog_attach(&d, copy, n, NULL)) {
        for (uint64_t i = 0; i < 8; i++)
            (void)mr_catalog_pin(&d, (mr_object_id){i, i * i}, &slot, &at);
    }
    mr_release(copy);
}

static void try_page(const void *p, size_t n)
{
    uint32_t entries = 64;
    void *memory = mr_alloc_aligned(mr_catalog_bytes(entries), 64);
    struct mr_catalog d;
    mr_catalog_format(&d, memory, entries, (mr_node_id){1});
    struct mr_pin_page *page = mr_alloc_aligned(mr_align_up(sizeof *page, 64), 64);
    memcpy(page, p, MR_MIN(n, sizeof *page));
    uint32_t from = 3;
    mr_pin_page_scan(&d, page, seen, &d);
    mr_pin_page_recent(&d, page, &from, seen, &d);
    (void)mr_pin_page_is_valid(page);
    mr_release(page);
    mr_release(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1) return 0;
    size_t rest = n - 1;
    void *p = mr_alloc_aligned(mr_align_up(rest + 1, 64), 64);
    memcpy(p, data + 1, rest);
    switch (data[0] % 5) {
    case 0: try_message(p, rest, true); break;
    case 1: try_message(p, rest, false); break;
    case 2: try_directory(p, rest); break;
    case 3: try_page(p, rest); break;
    case 4:
        if (rest >= sizeof(struct mr_extent_head)) (void)mr_extent_head_is_valid(p);
        break;
    }
    mr_release(p);
    return 0;
}
