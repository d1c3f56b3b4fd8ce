/* Shared memory segments: memfds, their seals and mappings. The content of a segment is the
 * caller's. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* Makes a memfd of `bytes` bytes with mode 0400, close-on-exec and not yet sealed. MR_EIO: the text
 * of `e` tells which call failed and why. */
int mr_segment_make(const char *name, uint64_t bytes, int *fd, struct mr_error *e);

/* Seals a memfd: no process can change its size or make a new writable mapping any more. Existing
 * mappings stay writable. */
int mr_segment_seal(int fd, struct mr_error *e);

/* Checks a descriptor from another process. It must be a memfd of at least `bytes_min` bytes that
 * cannot shrink, so that reading never raises SIGBUS. With `written`, it must also be impossible to
 * map it for writing again. `*bytes` receives its size. MR_EPERM: the text of `e` names the
 * missing seal. */
int mr_segment_check(int fd, uint64_t bytes_min, bool written, uint64_t *bytes, struct mr_error *e);

#define MR_HUGE_BYTES ((uint64_t)2 << 20) /* a huge page on x86-64 and arm64 */

/* Maps the descriptor. A mapping of at least a huge page begins at a multiple of a huge page. */
int mr_segment_map(int fd, uint64_t bytes, bool writable, void **out, struct mr_error *e);
void mr_segment_unmap(void *p, uint64_t bytes);

/* Populates the pages of [from, to) in this process's mapping of `bytes` bytes, before they are
 * written for the first time. If `*huge` is true, the function makes huge pages, which may reach
 * beyond the range. When huge pages take too long, it sets `*huge` to false and makes ordinary
 * pages for the rest. Existing pages keep their content. Returns the end of the populated range. A
 * failure is harmless: the pages then fault one by one when they are written. */
uint64_t mr_segment_warm(void *p, uint64_t bytes, uint64_t from, uint64_t to, bool *huge);
