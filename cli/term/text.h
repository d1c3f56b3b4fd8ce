/* Texts as a terminal shows them: how many columns they take, cut or wrapped to those there are.
 * Widths are those of wcwidth(3), which wants LC_CTYPE to be of UTF-8 (main sets it). */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdio.h>

/* The columns of the terminal that `file` is, from 20 on: what it says, else COLUMNS, else 80.
 * 0: no terminal, so nothing is to be cut. */
unsigned mr_text_columns(FILE *file);
/* The same for a line that is written again and again: less some for "^C" and the cursor. */
unsigned mr_text_live_columns(FILE *file);

/* Columns that the text takes. What is no printable UTF-8 takes one, and is shown as "?". */
unsigned mr_text_width(struct mr_str text);
/* Appends the text, what is not printable replaced. */
void mr_text_add(struct mr_str text, struct mr_buf *out);
/* The same in at most `columns` of them: what is too long loses its end, or its middle, to "…".
 * 0: whole. */
void mr_text_add_start(struct mr_str text, unsigned columns, struct mr_buf *out);
void mr_text_add_ends(struct mr_str text, unsigned columns, struct mr_buf *out);
/* Breaks lines at spaces, so that they end at `columns` (0: as they are). The first one begins at
 * `start`, what follows a break is indented by `indent`. A word longer than a line stays whole. */
void mr_text_add_wrapped(
    struct mr_str text, unsigned start, unsigned indent, unsigned columns, struct mr_buf *out);
/* Prints to stdout, wrapped to its terminal. */
void mr_text_print(unsigned indent, const char *fmt, ...) MR_PRINTF(2, 3);
