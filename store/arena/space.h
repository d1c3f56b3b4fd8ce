/* Allocates rooms in the segments that one client owns: cells of slabs for small objects, spans for
 * large ones. All cells of a slab have one size; each size is a class. This allocator works on
 * offsets and never touches the memory. So it causes no page faults, and first fit reuses pages
 * that are populated already. Not thread-safe: the caller holds a lock. */
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
    struct mr_space_slab *slab; /* the slab in this span, or NULL */
    bool used;
};

/* The spans cover the segment in order and without gaps. Two free spans are never neighbours. */
struct mr_space_segment {
    uint32_t number;
    uint64_t bytes;
    uint64_t free_max; /* an upper bound of the size of the largest free span */
    uint32_t spans_used;
    uint32_t count;
    uint32_t room;
    struct mr_space_span *spans;
};

struct mr_space {
    /* The largest size of a slab. Slabs of small cells are smaller. */
    uint64_t slab_bytes;
    struct mr_space_segment **segments;
    uint32_t segments_count;
    uint32_t segments_room;
    uint32_t cells[MR_SPACE_CLASSES];         /* bytes of a cell */
    struct mr_list partial[MR_SPACE_CLASSES]; /* the slabs that have a free cell */
    /* One empty slab of each class is kept. Otherwise a client that makes and frees one object
     * after another would make and free a slab for each object. */
    struct mr_space_slab *kept[MR_SPACE_CLASSES];
    uint64_t committed_bytes; /* size of all segments */
    uint64_t taken_bytes;     /* size of all rooms that are given out */
};

struct mr_room {
    uint32_t segment;
    uint64_t offset;
    uint64_t bytes; /* at least the bytes that were asked for */
};

void mr_space_init(struct mr_space *s, uint64_t slab_bytes);
void mr_space_fini(struct mr_space *s);

void mr_space_add(struct mr_space *s, uint32_t segment, uint64_t bytes);

/* Takes a room for `bytes` bytes and sets `*out` to it. False: no segment has enough space; the
 * caller adds a segment of at least mr_space_wants(bytes) bytes and tries again. */
bool mr_space_take(struct mr_space *s, uint64_t bytes, struct mr_room *out);
uint64_t mr_space_wants(const struct mr_space *s, uint64_t bytes);

/* Gives a room back. MR_EINVAL: the room was not given out. */
int mr_space_give(struct mr_space *s, const struct mr_room *room);

/* Removes one empty segment and sets `*segment` to its number. False: no segment is empty. */
bool mr_space_drop_empty(struct mr_space *s, uint32_t *segment);

void mr_space_check(const struct mr_space *s); /* asserts every invariant */
