/* Allocation on the heap. New memory is zeroed. Running out of memory is a panic. A size that a
 * peer chooses is compared with a limit by the caller before it allocates. */
#pragma once

#include "base/defs.h"

void *mr_alloc(size_t bytes);                     /* zeroed, never NULL */
void *mr_alloc_array(size_t count, size_t bytes); /* panics if count * bytes overflows */
/* realloc; the added bytes are zeroed. */
void *mr_grow(void *p, size_t old_bytes, size_t new_bytes);
void *mr_alloc_aligned(size_t bytes, size_t align); /* zeroed; `align` is a power of two */
void *mr_copy(const void *p, size_t bytes);
char *mr_copy_text(const char *text);                  /* strdup: copies the terminating NUL too */
char *mr_format(const char *fmt, ...) MR_PRINTF(1, 2); /* asprintf: formats into new memory */
void mr_release(void *p);                              /* free; `p` may be NULL */

/* Cleanup function for MR_AUTO on a pointer that a function above has returned:
 * `MR_AUTO(mr_free_ptr) char *s = …;`. */
void mr_free_ptr(void *pointer_to_pointer);
