/* The heap. Memory comes zeroed; running out of it is a crash, reaching a limit is an error that
 * the caller checks before it asks. */
#pragma once

#include "base/defs.h"

void *mr_alloc(size_t bytes);                               /* zeroed, never NULL */
void *mr_alloc_array(size_t count, size_t bytes);           /* checks the product */
void *mr_grow(void *p, size_t old_bytes, size_t new_bytes); /* realloc; the new part is zeroed */
void *mr_alloc_aligned(size_t bytes, size_t align);         /* zeroed; align a power of two */
void *mr_copy(const void *p, size_t bytes);
char *mr_copy_text(const char *text);                  /* with its NUL */
char *mr_format(const char *fmt, ...) MR_PRINTF(1, 2); /* like asprintf */
void mr_release(void *p);                              /* free; NULL is fine */

/* For MR_AUTO on any pointer from above: `MR_AUTO(mr_free_ptr) char *s = …;`. */
void mr_free_ptr(void *pointer_to_pointer);
