#include "graph/text_arena.h"

#include "base/alloc.h"

#define BLOCK_BYTES 4096

struct mr_text_arena_block {
    struct mr_text_arena_block *next;
    size_t bytes;
    size_t room;
    _Alignas(16) unsigned char content[];
};

void mr_text_arena_fini(struct mr_text_arena *p)
{
    while (p->blocks) {
        struct mr_text_arena_block *next = p->blocks->next;
        mr_release(p->blocks);
        p->blocks = next;
    }
    p->bytes = 0;
}

void *mr_text_arena_take(struct mr_text_arena *p, size_t bytes)
{
    size_t n = (size_t)mr_align_up(bytes, 16);
    struct mr_text_arena_block *b = p->blocks;
    if (!b || b->room - b->bytes < n) {
        size_t room = MR_MAX(n, MR_MAX((size_t)BLOCK_BYTES, p->bytes / 4));
        b = mr_alloc(sizeof *b + room);
        b->room = room;
        b->next = p->blocks;
        p->blocks = b;
        p->bytes += sizeof *b + room;
    }
    void *at = b->content + b->bytes;
    b->bytes += n;
    return at;
}

struct mr_str mr_text_arena_copy(struct mr_text_arena *p, struct mr_str s)
{
    if (!s.n) return (struct mr_str){0};
    char *at = mr_text_arena_take(p, s.n);
    memcpy(at, s.p, s.n);
    return mr_str_of(at, s.n);
}
