/* The inside of the JSON parser: entries as programs mostly write them, read straight from the text
 * into columns. What is unusual - escapes, other letters than ASCII, fractions, options - is left
 * to who parses the slice first (fast_path.h); what is read here means the same there. */
#pragma once

#include "graph/json/entries.h"

#define MR_JSON_PLAIN_INPUTS_MAX 64 /* of one entry; who has more is not plain */
#define MR_JSON_PLAIN_LISTS_MAX 8   /* in each other */

struct mr_json_ref { /* in an argument: the key of a node, to be found */
    uint32_t hash;
    uint32_t at, n;   /* in the text */
    uint32_t pack_at; /* in the arguments */
    uint32_t entry;
    uint32_t node;
};

struct mr_json_columns { /* the nodes of one slice */
    uint32_t count, inputs_all, room, inputs_room;
    uint32_t *op; /* the builder's number and 1; 0: a literal */
    uint32_t *args_bytes, *inputs_count, *inputs;
    struct mr_buf args;
    struct mr_json_ref *refs;
    uint32_t refs_count, refs_room;
    bool misses_op; /* it is the first that has this one: */
    char op_text[MR_OP_NAME_BYTES_MAX];
    size_t op_bytes;
};

enum mr_json_direct {
    MR_JSON_DIRECT,
    MR_JSON_UNUSUAL, /* nothing is known */
    MR_JSON_MISSES,  /* an op or a key is not there (yet) */
};

/* An op that tasks before had; otherwise it is noted. */
bool mr_json_columns_op(
    const struct mr_json *j, struct mr_json_columns *c, struct mr_str name, uint32_t *op);
/* The slot of a node among the inputs of the entry that began at `from`; false: they are too many.
 */
bool mr_json_columns_input(struct mr_json_columns *c, uint32_t from, uint32_t node, uint32_t *slot);
/* There is room for all entries; the builder is only looked into. */
enum mr_json_direct mr_json_read_direct(const struct mr_json *j, const struct mr_json_piece *piece,
    bool has_all, struct mr_json_columns *c);
