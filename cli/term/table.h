/* Tables that fit the width of a terminal: long keys lose their middle, optional columns are left
 * out, and sentences are wrapped. Numbers are never cut. Without a terminal nothing is cut. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum mr_column_kind {
    MR_COLUMN_WORD,     /* left-aligned, never cut */
    MR_COLUMN_NUMBER,   /* right-aligned, never cut; a unit is part of it */
    MR_COLUMN_KEY,      /* left-aligned; "…" replaces the middle of a long one */
    MR_COLUMN_SENTENCE, /* the last one: wrapped */
};

struct mr_column {
    const char *title; /* NULL in all columns: no heading */
    enum mr_column_kind kind;
    bool is_optional; /* left out, the last first, before keys become too short to read */
};

#define MR_COLUMNS_MAX 16

struct mr_table; /* owned by one thread */

/* `columns` is lent until mr_table_free. */
struct mr_table *mr_table_new(const struct mr_column *columns, size_t count);
void mr_table_free(struct mr_table **table);

/* Adds the next cell; a row is complete with its last column. */
void mr_table_add(struct mr_table *t, const char *fmt, ...) MR_PRINTF(2, 3);
/* Appends the rows that were added and drops them. The first call also writes the heading. `width`
 * is that of the terminal; 0: no limit. Later rows keep the column widths where they fit. */
void mr_table_write(struct mr_table *t, unsigned width, struct mr_buf *out);
void mr_table_print(struct mr_table *t); /* the same to stdout, with the width of its terminal */
