#include "base/arena.h"

#include "base/assert.h"

#include <sys/mman.h>

#define SMALL_BYTES ((size_t)4 << 20)
#define HUGE_BYTES ((size_t)2 << 20)

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

/* Of an array that has grown large the kernel may back the rest with huge pages: a walk that jumps
 * about in it misses less, and it is committed in fewer steps. Small states stay small. */
static void hint_large(unsigned char *p, size_t bytes)
{
    if (bytes < SMALL_BYTES + HUGE_BYTES) return;
    uintptr_t from = (uintptr_t)mr_align_up((uintptr_t)p + SMALL_BYTES, HUGE_BYTES);
    uintptr_t to = ((uintptr_t)p + bytes) / HUGE_BYTES * HUGE_BYTES;
    if (from < to) (void)madvise((void *)from, to - from, MADV_HUGEPAGE); /* it may refuse */
}

void *mr_arena_take(struct mr_arena *a, size_t bytes, size_t align)
{
    size_t at = (size_t)mr_align_up(a->bytes, align);
    mr_assert(bytes <= a->bytes_max && at <= a->bytes_max - bytes);
    a->bytes = at + bytes;
    hint_large(a->base + at, bytes);
    return a->base + at;
}
