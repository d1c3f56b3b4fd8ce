/* Space inside the segments that one writer owns: slabs of equal cells for small objects, extents
 * for large ones. Pure bookkeeping over offsets: it never touches the memory itself, so that
 * freshly granted pages are not faulted by it, and first fit keeps reusing the pages that are.
 *
 * Not thread-safe; its owner locks. */
#pragma once

#include "base/err.h"
#include "base/list.h"
#include "store/arena/layout.h"

#define MR_SPACE_CLASSES 44u
#define MR_SPACE_CELL_MIN 256u

struct mr_space_slab;

struct mr_space_span {
    uint64_t offset;
    uint64_t bytes;
    struct mr_space_slab *slab; /* the slab that lies here, or NULL */
    bool used;
};

/* Spans cover the segment without gap, in order; two free ones never touch. */
struct mr_space_segment {
    uint32_t number;
    uint64_t bytes;
    uint64_t free_max; /* no free span is larger; may be too high */
    uint32_t spans_used;
    uint32_t count;
    uint32_t room;
    struct mr_space_span *spans;
};

struct mr_space {
    uint64_t slab_bytes; /* at most; small cells get smaller slabs */
    struct mr_space_segment **segments;
    uint32_t segments_count;
    uint32_t segments_room;
    uint32_t cells[MR_SPACE_CLASSES];             /* bytes of a cell */
    struct mr_list partial[MR_SPACE_CLASSES];     /* slabs with a free cell */
    struct mr_space_slab *kept[MR_SPACE_CLASSES]; /* one empty slab a class, against churn */
    uint64_t committed_bytes;                     /* of all segments */
    uint64_t taken_bytes;                         /* given out, rounding included */
};

struct mr_room {
    uint32_t segment;
    uint64_t offset;
    uint64_t bytes; /* at least what was asked for */
};

void mr_space_init(struct mr_space *s, uint64_t slab_bytes);
void mr_space_fini(struct mr_space *s);

void mr_space_add(struct mr_space *s, uint32_t segment, uint64_t bytes);

/* False: no segment has it; the caller asks for another of at least mr_space_wants(bytes). */
bool mr_space_take(struct mr_space *s, uint64_t bytes, struct mr_room *out);
uint64_t mr_space_wants(const struct mr_space *s, uint64_t bytes);

/* Takes a room back. MR_EINVAL for what was not given out like this. */
int mr_space_give(struct mr_space *s, const struct mr_room *room);

/* Forgets one empty segment, if there is one, and says its number. */
bool mr_space_drop_empty(struct mr_space *s, uint32_t *segment);

void mr_space_check(const struct mr_space *s); /* asserts every invariant */
