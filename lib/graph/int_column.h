/* Columns of numbers in as few bytes as the largest of them needs: the form of a section in
 * columns.h. Knows nothing of what the numbers mean. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

enum mr_narrow_form {
    MR_NARROW_FULL,     /* 1 to 3: so many bytes each, little endian */
    MR_NARROW_SAME = 4, /* one number of the full width: all are like it */
};

/* A column in memory: numbers, or the differences of offsets (one more than there are numbers),
 * which may stand in two arrays. */
struct mr_narrow {
    const void *p;
    const uint32_t *more;
    uint32_t count, more_count;
    unsigned char bytes; /* of a number: 1, 2, 4 */
    bool is_offsets;     /* of u32 */
    uint32_t form;       /* mr_narrow_choose */
};

void mr_narrow_choose(struct mr_narrow *c);
uint64_t mr_narrow_bytes(const struct mr_narrow *c);

#define MR_NARROW_SOME 1024
/* Writes some from number `from` on, fewer than MR_NARROW_SOME only at the end of an array; `out`
 * has room for four bytes of each and four more. Says how many, and in `n` the bytes. */
uint32_t mr_narrow_write(const struct mr_narrow *c, uint32_t from, unsigned char *out, size_t *n);

/* Back: `count` numbers of `bytes` bytes; false: the section is not of the size for it. */
bool mr_narrow_read(
    struct mr_str section, uint32_t form, uint64_t count, unsigned bytes, unsigned char *out);
