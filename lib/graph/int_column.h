/* A column of numbers with as few bytes for each number as the largest needs: the compact form of a
 * section in columns.h. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

enum mr_int_column_form {
    MR_INT_COLUMN_FULL,     /* the full width; 1 to 3: so many bytes each, little endian */
    MR_INT_COLUMN_SAME = 4, /* one number of the full width, which all numbers equal */
};

/* A column in memory: numbers, or the differences of offsets (one more offset than numbers). The
 * numbers may be in two arrays. */
struct mr_int_column {
    const void *p;
    const uint32_t *more; /* the second array */
    uint32_t count, more_count;
    unsigned char bytes; /* of a number: 1, 2, 4 */
    bool is_offsets;     /* p has u32 offsets */
    uint32_t form;       /* set by mr_int_column_choose */
};

void mr_int_column_choose(struct mr_int_column *c);
uint64_t mr_int_column_bytes(const struct mr_int_column *c);

#define MR_INT_COLUMN_SOME 1024
/* Writes numbers from number `from` on and returns how many; *n: their bytes. They are fewer than
 * MR_INT_COLUMN_SOME only at the end of an array. `out` has room for four bytes of each number, and
 * four more. */
uint32_t mr_int_column_write(
    const struct mr_int_column *c, uint32_t from, unsigned char *out, size_t *n);

/* Reads `count` numbers of `bytes` bytes; false: the section has another size. */
bool mr_int_column_read(
    struct mr_str section, uint32_t form, uint64_t count, unsigned bytes, unsigned char *out);
