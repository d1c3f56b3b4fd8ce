/* A column of numbers, and its compact form in a section of a graph's bytes (columns.h). In the
 * compact form every number has as many bytes as the largest number needs. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

enum mr_int_column_form {
    /* Each number has the full width of its column. The forms 1, 2 and 3 have no names: each number
     * has 1, 2 or 3 bytes, little endian. */
    MR_INT_COLUMN_FULL,
    MR_INT_COLUMN_SAME = 4, /* all numbers are equal: the section has one number of full width */
};

/* A column in memory: numbers, or offsets whose differences are the numbers (one offset more than
 * numbers). The numbers may be in two arrays, `p` and `more`. */
struct mr_int_column {
    const void *p;
    const uint32_t *more; /* the second array; NULL: none */
    uint32_t count, more_count;
    unsigned char bytes; /* of one number: 1, 2 or 4 */
    bool is_offsets;     /* `p` has offsets of type uint32_t */
    uint32_t form;       /* form in the section; set by mr_int_column_choose */
};

void mr_int_column_choose(struct mr_int_column *c);
uint64_t mr_int_column_bytes(const struct mr_int_column *c);

#define MR_INT_COLUMN_SOME 1024
/* Writes MR_INT_COLUMN_SOME numbers of the column, from index `from` on, and fewer only at the end
 * of the array `p` or `more`. Returns the count of these numbers; `*n`: count of the written bytes.
 * In the form SAME, only the call with `from` 0 writes bytes, which are one number. `out` has room
 * for 4 * MR_INT_COLUMN_SOME + 4 bytes. */
uint32_t mr_int_column_write(
    const struct mr_int_column *c, uint32_t from, unsigned char *out, size_t *n);

/* Reads `count` numbers from a section and writes them with `bytes` bytes each. False: the section
 * does not have the size that the form and the count demand. */
bool mr_int_column_read(
    struct mr_str section, uint32_t form, uint64_t count, unsigned bytes, unsigned char *out);
