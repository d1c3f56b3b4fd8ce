/* Cuts the entries of a large job into slices that are parsed one at a time, so that the parsed
 * form of the whole never has to be in memory at once. Finds boundaries only: what stands between
 * them is checked by whoever parses it, and the pieces together are well formed if each of them is.
 */
#pragma once

#include "base/str.h"

struct mr_json_slice {
    uint32_t at; /* in the text: `"key": value, …`, without the comma behind */
    uint32_t n;
    uint32_t keys_at; /* its keys are keys[keys_at .. keys_at + keys_count) */
    uint32_t keys_count;
    bool is_plain; /* its keys stand as they are: no escapes in them, no "for" in their values */
};

struct mr_json_split {
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

/* False, with nothing to free, when the text is not what it looks like: parse it whole then, which
 * also finds the words for what is wrong. Of more than MR_TASKS_MAX keys, one more is found. Slices
 * end at the first entry past `slice_bytes`. */
bool mr_json_split(struct mr_str text, uint32_t slice_bytes, struct mr_json_split *out);

/* The same for a text that is not all there yet. Where the entries begin, behind the brace; 0: the
 * text does not reach so far, or is not what it looks like. */
uint32_t mr_json_entries_at(struct mr_str text, bool *is_dsk);
/* Adds the entries from `*at` on that are whole, at most so many, and moves `*at` behind the comma
 * or brace after the last of them. True: that was the brace. What is no entry is never whole. */
bool mr_json_cut(struct mr_str text, uint32_t *at, uint32_t entries_max, uint32_t slice_bytes,
    struct mr_json_split *s);
void mr_json_split_fini(struct mr_json_split *s);
