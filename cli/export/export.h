/* Turns the spans of a job into a file for a trace viewer. The file has a slice for each span, on a
 * row of the span's slot. It also has arrows from tasks to the consumers of their values, and
 * curves. The caller passes the spans in the order of their ends. No I/O: the bytes go to a
 * function of the caller. Memory is bounded by the number of slots, operators and nodes of the
 * graph, not by the number of spans. One thread. */
#pragma once

#include "cli/export/format.h"

struct mr_export;

struct mr_export_config {
    const struct mr_export_format *format;
    struct mr_export_about about;
    /* NULL: the file has no arrows, and no curve of the bytes of needed values. Borrowed until
     * mr_export_close. */
    const struct mr_export_edges *edges;
    int (*write)(void *ctx, struct mr_str bytes);
    void *ctx;
};

/* `config` is copied; the texts in it are lent until mr_export_close. */
struct mr_export *mr_export_open(const struct mr_export_config *config);
/* Takes the next span. Returns the first error of `write`; the caller then calls mr_export_close.
 */
int mr_export_span(struct mr_export *x, const struct mr_export_span *span);
/* Writes the curves and the rest of the file, and frees the export. Returns the first error of
 * `write`. */
int mr_export_close(struct mr_export **x);
