/* First fit over sorted spans for large objects. Slabs with a bitmap of free cells for small
 * objects, after Bonwick's slab allocator (USENIX Summer 1994). The hint of a slab is the first
 * word of the bitmap that may have a free cell. */
#include "store/arena/space.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <string.h>

struct mr_space_slab {
    struct mr_list node; /* on partial[class] while the slab has a free cell */
    uint32_t segment;
    uint32_t class;
    uint64_t offset;
    uint64_t bytes;
    uint32_t cells_count;
    uint32_t cells_used;
    /* Words of the bitmap below this index have no free cell. */
    uint32_t hint;
    uint64_t *free_cells;
};

/* Returns the size of a cell: four steps for each doubling from 256 bytes, so that at most a fifth
 * of a cell is wasted. The extent head is added, because most values have a round size. */
static uint32_t class_bytes(uint32_t class)
{
    uint32_t base = MR_SPACE_CELL_MIN << (class / 4);
    return base + base / 4 * (class % 4) + MR_EXTENT_HEAD;
}

static uint32_t class_of(uint64_t bytes)
{
    for (uint32_t c = 0; c < MR_SPACE_CLASSES; c++)
        if (class_bytes(c) >= bytes) return c;
    return MR_SPACE_CLASSES;
}

static bool is_small(uint64_t bytes)
{
    return bytes <= MR_SMALL_BYTES_MAX + MR_EXTENT_HEAD;
}

/* Returns the size of a slab. Slabs of small cells are smaller, so that a client whose objects have
 * many sizes does not reserve 4 MiB for each size. */
static uint64_t slab_bytes(const struct mr_space *s, uint32_t class)
{
    uint64_t cell = s->cells[class];
    uint64_t most = MR_MIN(mr_align_up(cell * 64, 65536), s->slab_bytes);
    return mr_align_up(most / cell * cell, MR_ARENA_PAGE);
}

void mr_space_init(struct mr_space *s, uint64_t bytes)
{
    *s = (struct mr_space){.slab_bytes = bytes};
    mr_assert(bytes >= 2 * MR_SMALL_BYTES_MAX);
    for (uint32_t c = 0; c < MR_SPACE_CLASSES; c++) {
        s->cells[c] = class_bytes(c);
        mr_list_init(&s->partial[c]);
    }
    mr_assert(class_of(MR_SMALL_BYTES_MAX + MR_EXTENT_HEAD) < MR_SPACE_CLASSES);
}

static void slab_free(struct mr_space_slab *slab)
{
    mr_release(slab->free_cells);
    mr_release(slab);
}

static void segment_free(struct mr_space_segment *g)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (g->spans[i].slab) slab_free(g->spans[i].slab);
    mr_release(g->spans);
    mr_release(g);
}

void mr_space_fini(struct mr_space *s)
{
    for (uint32_t i = 0; i < s->segments_count; i++)
        segment_free(s->segments[i]);
    mr_release(s->segments);
    *s = (struct mr_space){0};
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void span_insert(struct mr_space_segment *g, uint32_t at, struct mr_space_span span)
{
    if (g->count == g->room) {
        uint32_t room = g->room ? g->room * 2 : 8;
        g->spans = mr_grow(g->spans, g->room * sizeof *g->spans, room * sizeof *g->spans);
        g->room = room;
    }
    memmove(&g->spans[at + 1], &g->spans[at], (g->count - at) * sizeof *g->spans);
    g->spans[at] = span;
    g->count++;
}

static void span_erase(struct mr_space_segment *g, uint32_t at)
{
    g->count--;
    memmove(&g->spans[at], &g->spans[at + 1], (g->count - at) * sizeof *g->spans);
}

/* Returns the index of the span that begins at `offset`, or of the last span before it. */
static uint32_t span_at(const struct mr_space_segment *g, uint64_t offset)
{
    uint32_t low = 0;
    uint32_t high = g->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (g->spans[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static struct mr_space_segment *segment_of(const struct mr_space *s, uint32_t number)
{
    for (uint32_t i = 0; i < s->segments_count; i++)
        if (s->segments[i]->number == number) return s->segments[i];
    return NULL;
}

void mr_space_add(struct mr_space *s, uint32_t segment, uint64_t bytes)
{
    mr_assert(!segment_of(s, segment));
    struct mr_space_segment *g = mr_alloc(sizeof *g);
    *g = (struct mr_space_segment){.number = segment, .bytes = bytes, .free_max = bytes};
    span_insert(g, 0, (struct mr_space_span){.bytes = bytes});
    if (s->segments_count == s->segments_room) {
        uint32_t room = s->segments_room ? s->segments_room * 2 : 8;
        s->segments =
            mr_grow(s->segments, s->segments_room * sizeof(void *), room * sizeof(void *));
        s->segments_room = room;
    }
    s->segments[s->segments_count++] = g;
    s->committed_bytes += bytes;
}

static bool take_in(
    struct mr_space_segment *g, uint64_t bytes, struct mr_space_slab *slab, uint64_t *offset)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        struct mr_space_span *x = &g->spans[i];
        if (x->used) continue;
        if (x->bytes < bytes) {
            largest = MR_MAX(largest, x->bytes);
            continue;
        }
        struct mr_space_span rest = {.offset = x->offset + bytes, .bytes = x->bytes - bytes};
        x->bytes = bytes;
        x->used = true;
        x->slab = slab;
        *offset = x->offset;
        if (rest.bytes) span_insert(g, i + 1, rest);
        g->spans_used++;
        return true;
    }
    g->free_max = largest;
    return false;
}

static bool take_below(struct mr_space *s, uint64_t bytes, uint64_t segment_bytes_max,
    struct mr_space_slab *slab, struct mr_room *out)
{
    for (uint32_t i = 0; i < s->segments_count; i++) {
        struct mr_space_segment *g = s->segments[i];
        if (g->bytes > segment_bytes_max || g->free_max < bytes) continue;
        if (!take_in(g, bytes, slab, &out->offset)) continue;
        out->segment = g->number;
        out->bytes = bytes;
        s->taken_bytes += bytes;
        return true;
    }
    return false;
}

/* Takes a span. Small pieces go to ordinary segments first, so that a slab does not split the room
 * of a huge object. */
static bool take_span(
    struct mr_space *s, uint64_t bytes, struct mr_space_slab *slab, struct mr_room *out)
{
    if (bytes <= s->slab_bytes && take_below(s, bytes, s->slab_bytes * 16, slab, out)) return true;
    return take_below(s, bytes, UINT64_MAX, slab, out);
}

static void give_span(struct mr_space *s, struct mr_space_segment *g, uint32_t at)
{
    struct mr_space_span *x = &g->spans[at];
    s->taken_bytes -= x->bytes;
    x->used = false;
    x->slab = NULL;
    g->spans_used--;
    if (at + 1 < g->count && !g->spans[at + 1].used) {
        g->spans[at].bytes += g->spans[at + 1].bytes;
        span_erase(g, at + 1);
    }
    if (at > 0 && !g->spans[at - 1].used) {
        g->spans[at - 1].bytes += g->spans[at].bytes;
        span_erase(g, at);
        at--;
    }
    g->free_max = MR_MAX(g->free_max, g->spans[at].bytes);
}

/* ---- slabs ----------------------------------------------------------------------------------- */

static struct mr_space_slab *slab_new(struct mr_space *s, uint32_t class)
{
    struct mr_space_slab *slab = mr_alloc(sizeof *slab);
    struct mr_room room;
    if (!take_span(s, slab_bytes(s, class), slab, &room)) {
        mr_release(slab);
        return NULL;
    }
    uint32_t cells = (uint32_t)(room.bytes / s->cells[class]);
    uint32_t words = (cells + 63) / 64;
    *slab = (struct mr_space_slab){
        .segment = room.segment,
        .class = class,
        .offset = room.offset,
        .bytes = room.bytes,
        .cells_count = cells,
        .free_cells = mr_alloc_array(words, sizeof(uint64_t)),
    };
    memset(slab->free_cells, 0xff, words * sizeof(uint64_t));
    if (cells % 64) slab->free_cells[words - 1] = ((uint64_t)1 << cells % 64) - 1;
    mr_list_add_head(&s->partial[class], &slab->node);
    return slab;
}

static void slab_give_back(struct mr_space *s, struct mr_space_slab *slab)
{
    struct mr_space_segment *g = segment_of(s, slab->segment);
    mr_list_remove(&slab->node);
    if (s->kept[slab->class] == slab) s->kept[slab->class] = NULL;
    give_span(s, g, span_at(g, slab->offset));
    slab_free(slab);
}

static bool take_cell(struct mr_space *s, uint32_t class, struct mr_room *out)
{
    struct mr_space_slab *slab =
        mr_list_is_empty(&s->partial[class])
            ? slab_new(s, class)
            : MR_LIST_ITEM(s->partial[class].next, struct mr_space_slab, node);
    if (!slab) return false;
    if (s->kept[class] == slab) s->kept[class] = NULL;
    uint32_t word = slab->hint;
    while (!slab->free_cells[word])
        word++;
    uint32_t bit = (uint32_t)__builtin_ctzll(slab->free_cells[word]);
    slab->free_cells[word] &= slab->free_cells[word] - 1;
    slab->hint = word;
    slab->cells_used++;
    if (slab->cells_used == slab->cells_count) mr_list_remove(&slab->node);
    *out = (struct mr_room){slab->segment,
        slab->offset + (uint64_t)(word * 64 + bit) * s->cells[class], s->cells[class]};
    return true;
}

static int give_cell(struct mr_space *s, struct mr_space_slab *slab, const struct mr_room *room)
{
    uint64_t within = room->offset - slab->offset;
    uint32_t cell_bytes = s->cells[slab->class];
    uint64_t cell = within / cell_bytes;
    if (within % cell_bytes || cell >= slab->cells_count || room->bytes != cell_bytes)
        return MR_EINVAL;
    uint64_t bit = (uint64_t)1 << cell % 64;
    if (slab->free_cells[cell / 64] & bit) return MR_EINVAL; /* the cell is free already */
    slab->free_cells[cell / 64] |= bit;
    slab->hint = MR_MIN(slab->hint, (uint32_t)(cell / 64));
    if (slab->cells_used == slab->cells_count)
        mr_list_add_tail(&s->partial[slab->class], &slab->node);
    slab->cells_used--;
    if (slab->cells_used) return MR_OK;
    if (s->kept[slab->class])
        slab_give_back(s, slab);
    else
        s->kept[slab->class] = slab;
    return MR_OK;
}

/* ---- rooms: cells or spans ------------------------------------------------------------------- */

bool mr_space_take(struct mr_space *s, uint64_t bytes, struct mr_room *out)
{
    if (is_small(bytes)) return take_cell(s, class_of(bytes), out);
    return take_span(s, mr_align_up(bytes, MR_ARENA_PAGE), NULL, out);
}

uint64_t mr_space_wants(const struct mr_space *s, uint64_t bytes)
{
    if (is_small(bytes)) return slab_bytes(s, class_of(bytes));
    return mr_align_up(bytes, MR_ARENA_PAGE);
}

int mr_space_give(struct mr_space *s, const struct mr_room *room)
{
    struct mr_space_segment *g = segment_of(s, room->segment);
    if (!g || room->offset >= g->bytes) return MR_EINVAL;
    uint32_t at = span_at(g, room->offset);
    struct mr_space_span *x = &g->spans[at];
    if (!x->used) return MR_EINVAL;
    if (x->slab) return give_cell(s, x->slab, room);
    if (x->offset != room->offset || x->bytes != room->bytes) return MR_EINVAL;
    give_span(s, g, at);
    return MR_OK;
}

bool mr_space_drop_empty(struct mr_space *s, uint32_t *segment)
{
    for (uint32_t c = 0; c < MR_SPACE_CLASSES; c++)
        if (s->kept[c]) slab_give_back(s, s->kept[c]);
    for (uint32_t i = 0; i < s->segments_count; i++) {
        struct mr_space_segment *g = s->segments[i];
        if (g->spans_used) continue;
        *segment = g->number;
        s->committed_bytes -= g->bytes;
        segment_free(g);
        s->segments[i] = s->segments[--s->segments_count];
        return true;
    }
    return false;
}

static void check_slab(const struct mr_space *s, const struct mr_space_slab *slab)
{
    uint32_t free_count = 0;
    for (uint32_t w = 0; w < (slab->cells_count + 63) / 64; w++) {
        free_count += (uint32_t)__builtin_popcountll(slab->free_cells[w]);
        mr_assert(w >= slab->hint || !slab->free_cells[w]);
    }
    mr_assert(free_count + slab->cells_used == slab->cells_count);
    mr_assert(mr_list_is_linked(&slab->node) == (free_count > 0));
    mr_assert(slab->cells_used || s->kept[slab->class] == slab);
}

void mr_space_check(const struct mr_space *s)
{
    uint64_t taken = 0;
    uint64_t committed = 0;
    for (uint32_t i = 0; i < s->segments_count; i++) {
        const struct mr_space_segment *g = s->segments[i];
        uint64_t end = 0;
        uint32_t used = 0;
        for (uint32_t k = 0; k < g->count; k++) {
            const struct mr_space_span *x = &g->spans[k];
            mr_assert(x->offset == end);
            mr_assert(x->bytes > 0);
            mr_assert(x->used || x->bytes <= g->free_max);
            mr_assert(x->used || k == 0 || g->spans[k - 1].used);
            mr_assert(x->used || !x->slab);
            if (x->slab) check_slab(s, x->slab);
            if (x->used) taken += x->bytes;
            used += x->used;
            end += x->bytes;
        }
        mr_assert(end == g->bytes);
        mr_assert(used == g->spans_used);
        committed += g->bytes;
    }
    mr_assert(taken == s->taken_bytes);
    mr_assert(committed == s->committed_bytes);
}
