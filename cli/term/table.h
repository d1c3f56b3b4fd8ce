/* Tables that fit the width of a terminal: long keys lose their middle, optional columns are left
 * out, and sentences are wrapped. Numbers are never cut. Without a terminal nothing is cut. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum mr_column_kind {
    MR_COLUMN_WORD,     /* left-aligned, never cut */
    MR_COLUMN_NUMBER,   /* right-aligned, never cut; a unit belongs to the number */
    MR_COLUMN_KEY,      /* left-aligned; "…" replaces the middle of a long key */
    MR_COLUMN_SENTENCE, /* wrapped; only the last column may have this kind */
};

struct mr_column {
    const char *title; /* NULL in all columns: the table has no heading */
    enum mr_column_kind kind;
    /* True: the column is left out before keys become too short to read. The last such column goes
     * first. */
    bool is_optional;
};

#define MR_COLUMNS_MAX 16

struct mr_table; /* a table is owned by one thread */

/* Makes a table; `columns` is lent until mr_table_free. */
struct mr_table *mr_table_new(const struct mr_column *columns, size_t count);
void mr_table_free(struct mr_table **table);

/* Adds the next cell. The cell of the last column completes the row. */
void mr_table_add(struct mr_table *t, const char *fmt, ...) MR_PRINTF(2, 3);
/* Appends the rows that were added, and drops them from the table. The first call also writes the
 * heading. `width` is the terminal's; 0: no limit. Later rows keep the column widths if they
 * fit. */
void mr_table_write(struct mr_table *t, unsigned width, struct mr_buf *out);
/* Prints the rows to stdout, with the width of its terminal. */
void mr_table_print(struct mr_table *t);
