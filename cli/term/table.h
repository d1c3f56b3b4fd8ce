/* Tables for people. On a terminal they fit its width: keys lose their middle, columns that one can
 * do without are left out, and sentences are wrapped. Numbers are never cut, and nothing is where
 * the output is no terminal. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum mr_column_kind {
    MR_COLUMN_WORD,     /* to the left, never cut */
    MR_COLUMN_NUMBER,   /* to the right, never cut; with its unit, where it has one */
    MR_COLUMN_KEY,      /* to the left; "…" stands for its middle where it is too long */
    MR_COLUMN_SENTENCE, /* the last one: wrapped */
};

struct mr_column {
    const char *title; /* NULL in all of them: no heading */
    enum mr_column_kind kind;
    bool may_miss; /* left out, the last first, where keys would be cut to stumps */
};

#define MR_COLUMNS_MAX 16

struct mr_table; /* owned by one thread */

/* `columns` is lent for good: a static table. */
struct mr_table *mr_table_new(const struct mr_column *columns, size_t count);
void mr_table_free(struct mr_table **table);

/* The next cell; rows follow from their number. */
void mr_table_add(struct mr_table *t, const char *fmt, ...) MR_PRINTF(2, 3);
/* Appends the rows there are, for `width` columns (0: as wide as they are), and forgets them.
 * Before the first ones stands the heading. What comes later is lined up with what was written as
 * far as it fits. */
void mr_table_write(struct mr_table *t, unsigned width, struct mr_buf *out);
void mr_table_print(struct mr_table *t); /* the same to stdout, for its terminal */
