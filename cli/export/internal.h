/* Private to cli/export: what both formats write beside a span's name and times. */
#pragma once

#include "cli/export/format.h"

enum mr_export_note {
    MR_EXPORT_NOTE_ATTEMPT,
    MR_EXPORT_NOTE_QUEUED,
    MR_EXPORT_NOTE_CPU,
    MR_EXPORT_NOTE_BYTES,
    MR_EXPORT_NOTE_PARTS, /* here begin the parts of the span (span.h) */
    MR_EXPORT_NOTES = MR_EXPORT_NOTE_PARTS + MR_EXPORT_PARTS,
};

/* Returns the name of a number that a slice has as an argument. */
const char *mr_export_note_name(unsigned note);
/* Returns the number; 0: it is left out. */
uint64_t mr_export_note_value(const struct mr_export_span *span, unsigned note);
/* Return the outcome or the cause in short, for example "lost"; "": the attempt succeeded, or was
 * not held. */
struct mr_str mr_export_outcome(const struct mr_export_span *span);
struct mr_str mr_export_held(const struct mr_export_span *span);
