#include "base/arena.h"

#include "base/assert.h"

#include <sys/mman.h>

void mr_arena_init(struct mr_arena *a, size_t bytes_max)
{
    size_t bytes = (size_t)mr_align_up(bytes_max, 4096);
    void *p = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) MR_PANIC("no address space for %zu bytes", bytes);
    *a = (struct mr_arena){.base = p, .bytes_max = bytes};
}

void mr_arena_fini(struct mr_arena *a)
{
    if (a->base) (void)munmap(a->base, a->bytes_max);
    *a = (struct mr_arena){0};
}

void *mr_arena_take(struct mr_arena *a, size_t bytes, size_t align)
{
    size_t at = (size_t)mr_align_up(a->bytes, align);
    mr_assert(bytes <= a->bytes_max && at <= a->bytes_max - bytes);
    a->bytes = at + bytes;
    return a->base ? a->base + at : NULL;
}
