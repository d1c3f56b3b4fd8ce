/* Private to cli/export: the arguments of a slice, which both formats write beside the name and the
 * times. */
#pragma once

#include "cli/export/format.h"

enum mr_export_note {
    MR_EXPORT_NOTE_ATTEMPT,
    MR_EXPORT_NOTE_QUEUED,
    MR_EXPORT_NOTE_CPU,
    MR_EXPORT_NOTE_BYTES,
    MR_EXPORT_NOTE_PARTS, /* the first of the span's parts (enum mr_export_part) */
    MR_EXPORT_NOTES = MR_EXPORT_NOTE_PARTS + MR_EXPORT_PARTS,
};

/* Returns the name of an argument that is a number. */
const char *mr_export_note_name(unsigned note);
/* Returns the number; 0: the slice does not get this argument. */
uint64_t mr_export_note_value(const struct mr_export_span *span, unsigned note);
/* Returns the outcome without its prefix, for example "LOST"; "": the attempt succeeded. */
struct mr_str mr_export_outcome(const struct mr_export_span *span);
/* Returns why the scheduler held the task back, for example "MEMORY"; "": it did not. */
struct mr_str mr_export_held(const struct mr_export_span *span);
