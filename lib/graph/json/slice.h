/* Cuts the entries of a large job into slices, which are parsed one at a time, so the parsed form
 * of the whole text is never in memory. Only boundaries are found here. The parser of a slice
 * checks the content of the slice. Private to lib/graph/json. */
#pragma once

#include "base/str.h"

struct mr_json_slice {
    /* Place of the slice in the text: `"key": value, …`, without the comma after it. */
    uint32_t at;
    uint32_t n;
    uint32_t keys_at; /* its keys are keys[keys_at .. keys_at + keys_count) */
    uint32_t keys_count;
    /* True: no key has an escape, and no entry has a "for". */
    bool is_plain;
};

struct mr_json_slices {
    uint32_t from; /* where the text between the braces of "tasks" or "dsk" begins */
    uint32_t to;
    struct mr_json_slice *slices;
    uint32_t slices_count;
    uint32_t slices_room;
    struct mr_json_span {
        uint32_t at;
        uint32_t n;
    } * keys;
    uint32_t keys_count;
    uint32_t keys_room;
};

/* Finds the slices of a whole text. False, with nothing to free: the text is too long or malformed,
 * or has no entries. The caller then parses the text as a whole, and the parser reports the error
 * if there is one. If the text has more than MR_TASKS_MAX keys, finds MR_TASKS_MAX + 1 of them. A
 * slice ends with the first entry that ends `slice_bytes` or more after the slice's begin. */
bool mr_json_slices_find(struct mr_str text, uint32_t slice_bytes, struct mr_json_slices *out);

/* Takes the first part of a text, and returns the position after the opening brace of the entries.
 * Sets `*is_dsk` to true if the entries are those of "dsk". 0: the brace is not in this part, or
 * the text is malformed or has no entries. */
uint32_t mr_json_entries_at(struct mr_str text, bool *is_dsk);
/* Adds the complete entries from `*at` on, at most `entries_max`, and moves `*at` past the comma or
 * the brace after the last of these entries. True: a brace followed, so there are no more entries.
 * A malformed entry is never complete. */
bool mr_json_slices_add(struct mr_str text, uint32_t *at, uint32_t entries_max,
    uint32_t slice_bytes, struct mr_json_slices *s);
void mr_json_slices_fini(struct mr_json_slices *s);
