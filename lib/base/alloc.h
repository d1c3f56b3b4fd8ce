/* Allocation on the heap. New memory is zeroed. Running out of memory is a panic. If a peer chooses
 * a size, the caller compares the size with a limit before the allocation. */
#pragma once

#include "base/defs.h"

void *mr_alloc(size_t bytes);                     /* never returns NULL; the memory is zeroed */
void *mr_alloc_array(size_t count, size_t bytes); /* panics if count * bytes overflows */
/* Resizes a block as realloc does, and zeroes the added bytes. */
void *mr_grow(void *p, size_t old_bytes, size_t new_bytes);
/* The memory is zeroed; `align` is a power of two. */
void *mr_alloc_aligned(size_t bytes, size_t align);
void *mr_copy(const void *p, size_t bytes);
/* Copies a C string with its terminating NUL, as strdup does. */
char *mr_copy_text(const char *text);
/* Formats into new memory, as asprintf does. */
char *mr_format(const char *fmt, ...) MR_PRINTF(1, 2);
void mr_release(void *p); /* frees a block, as free does; `p` may be NULL */

/* Cleanup function for MR_AUTO on a pointer that a function above has returned:
 * `MR_AUTO(mr_free_ptr) char *s = …;`. */
void mr_free_ptr(void *pointer_to_pointer);
