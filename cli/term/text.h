/* Texts on a terminal: their width, and how they are cut and wrapped. Widths are those of
 * wcwidth(3), which needs a UTF-8 LC_CTYPE (main sets it). */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdio.h>

/* Returns the width of the terminal behind `file`, at least 20. The width is the terminal's own, or
 * else that in the environment variable COLUMNS, or else 80. 0: `file` is not a terminal, so
 * nothing is cut. */
unsigned mr_text_columns(FILE *file);
/* Returns the width for a line that is overwritten in place. The width leaves room for "^C" and the
 * cursor. 0: `file` is not a terminal. */
unsigned mr_text_live_columns(FILE *file);

/* Returns the width of a text in columns. Unprintable characters and bytes that are not UTF-8 count
 * as the "?" that replaces them. */
unsigned mr_text_width(struct mr_str text);
/* Appends the text with unprintable characters replaced. */
void mr_text_add(struct mr_str text, struct mr_buf *out);
/* Append the text in at most `columns` columns (0: no limit). In a longer text "…" replaces the end
 * (truncated) or the middle (elided). */
void mr_text_add_truncated(struct mr_str text, unsigned columns, struct mr_buf *out);
void mr_text_add_elided(struct mr_str text, unsigned columns, struct mr_buf *out);
/* Appends the text with lines broken at spaces, so that they fit `columns` (0: no limit). The first
 * line begins at column `start`; a continued line is indented by `indent`. A word longer than a
 * line stays whole. */
void mr_text_add_wrapped(
    struct mr_str text, unsigned start, unsigned indent, unsigned columns, struct mr_buf *out);
/* Prints to stdout, wrapped to the width of its terminal. */
void mr_text_print(unsigned indent, const char *fmt, ...) MR_PRINTF(2, 3);
