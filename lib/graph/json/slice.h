/* Cuts the entries of a large job into slices, which are parsed one at a time: the parsed form of
 * the whole text never is in memory. Only boundaries are found here. The parser of a slice checks
 * its content, and the text is well formed if all slices are. Private to lib/graph/json. */
#pragma once

#include "base/str.h"

struct mr_json_slice {
    uint32_t at; /* in the text: `"key": value, …`, without the comma after it */
    uint32_t n;
    uint32_t keys_at; /* its keys are keys[keys_at .. keys_at + keys_count) */
    uint32_t keys_count;
    bool is_plain; /* simple: no escapes in the keys, no "for" in their values */
};

struct mr_json_slices {
    uint32_t from; /* the text between the braces of "tasks" or "dsk" */
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

/* False, with nothing to free: the text has another form and has to be parsed as a whole, which
 * also finds the text of an error. Of more than MR_TASKS_MAX keys it finds MR_TASKS_MAX + 1. A
 * slice ends at the first entry past `slice_bytes`. */
bool mr_json_slices_find(struct mr_str text, uint32_t slice_bytes, struct mr_json_slices *out);

/* For the first part of a text: where the entries begin, after the brace. 0: the text ends earlier,
 * or has another form. */
uint32_t mr_json_entries_at(struct mr_str text, bool *is_dsk);
/* Adds the complete entries from `*at` on, at most `entries_max`, and moves `*at` past the comma or
 * brace after the last one. True: it was the brace. A malformed entry never is complete. */
bool mr_json_slices_add(struct mr_str text, uint32_t *at, uint32_t entries_max,
    uint32_t slice_bytes, struct mr_json_slices *s);
void mr_json_slices_fini(struct mr_json_slices *s);
