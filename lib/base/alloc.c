#include "base/alloc.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *mr_alloc_aligned(size_t bytes, size_t align)
{
    size_t rounded = (size_t)mr_align_up(bytes ? bytes : 1, align);
    void *p = aligned_alloc(align, rounded);
    if (!p) MR_PANIC("out of memory: %zu bytes", rounded);
    memset(p, 0, rounded);
    return p;
}

/* For a size from CLEARED_MIN to CLEARED_MAX, jemalloc's calloc returns the pages of a freed block
 * to the kernel and takes new ones: this costs a system call, and a page fault for each page.
 * Clearing the same pages with memset takes about a microsecond. */
#define CLEARED_MIN ((size_t)8 << 10)
#define CLEARED_MAX ((size_t)128 << 10)

void *mr_alloc(size_t bytes)
{
    /* GCC would turn a malloc followed by a memset into calloc. mr_alloc_aligned calls neither
     * malloc nor calloc. */
    if (bytes >= CLEARED_MIN && bytes <= CLEARED_MAX)
        return mr_alloc_aligned(bytes, _Alignof(max_align_t));
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) MR_PANIC("out of memory: %zu bytes", bytes);
    return p;
}

void *mr_alloc_array(size_t count, size_t bytes)
{
    size_t total = 0;
    if (__builtin_mul_overflow(count, bytes, &total))
        MR_PANIC("size overflow: %zu × %zu", count, bytes);
    return mr_alloc(total);
}

void *mr_grow(void *p, size_t old_bytes, size_t new_bytes)
{
    char *q = realloc(p, new_bytes ? new_bytes : 1);
    if (!q) MR_PANIC("out of memory: %zu bytes", new_bytes);
    if (new_bytes > old_bytes) memset(q + old_bytes, 0, new_bytes - old_bytes);
    return q;
}

void *mr_copy(const void *p, size_t bytes)
{
    void *q = mr_alloc(bytes);
    if (bytes) memcpy(q, p, bytes);
    return q;
}

char *mr_copy_text(const char *text)
{
    return mr_copy(text, strlen(text) + 1);
}

char *mr_format(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) MR_PANIC("bad format: %s", fmt);
    char *s = mr_alloc((size_t)n + 1);
    (void)vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

void mr_release(void *p)
{
    free(p);
}

void mr_free_ptr(void *pointer_to_pointer)
{
    void *p = NULL;
    memcpy(&p, pointer_to_pointer, sizeof p);
    free(p);
    memset(pointer_to_pointer, 0, sizeof p);
}
