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

int mr_segment_map(int fd, uint64_t bytes, bool writable, void **out, struct mr_error *e);
void mr_segment_unmap(void *p, uint64_t bytes);
