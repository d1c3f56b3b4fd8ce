/* Shared memory as the kernel gives it: memfds, their seals, their mappings. Knows sizes and
 * rights; refuses to know what lies inside. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* A memfd of `bytes`, mode 0400, not yet sealed, close-on-exec. MR_EIO in words. */
int mr_segment_make(const char *name, uint64_t bytes, int *fd, struct mr_error *e);

/* From here on nobody can map it for writing who has not already, nor change its size. */
int mr_segment_seal(int fd, struct mr_error *e);

/* What another process handed us: is it a memfd of at least `bytes_min` bytes that can neither
 * shrink (so that reading never faults) nor, with `written`, be mapped for writing again? Its size
 * in `*bytes`. MR_EPERM names the missing seal. */
int mr_segment_check(int fd, uint64_t bytes_min, bool written, uint64_t *bytes, struct mr_error *e);

#define MR_HUGE_BYTES ((uint64_t)2 << 20) /* a huge page, on machines that have them */

/* What is as large as a huge page or larger begins at a multiple of one. */
int mr_segment_map(int fd, uint64_t bytes, bool writable, void **out, struct mr_error *e);
void mr_segment_unmap(void *p, uint64_t bytes);

/* Gives pages to [from, to) of our own mapping of `bytes` bytes before they are written for the
 * first time, many at once: with `*huge` huge ones, also a little around it, as long as they come
 * cheap (else it becomes false), and ordinary ones for the rest. What is there stays as it is.
 * Returns the end of what has pages now. When it cannot give any nothing is lost: who writes faults
 * each one in. */
uint64_t mr_segment_warm(void *p, uint64_t bytes, uint64_t from, uint64_t to, bool *huge);
