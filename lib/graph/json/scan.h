/* Scans the most common forms of entries straight from the text into columns, without a JSON
 * parser. Escapes, characters outside ASCII, fractions and options are left to fast_path.h, which
 * parses the slice first. Both give the same result. Private to lib/graph/json. */
#pragma once

#include "graph/json/entries.h"

#define MR_JSON_FAST_INPUTS_MAX 64 /* an entry with more inputs is not simple */
#define MR_JSON_FAST_LISTS_MAX 8   /* nesting depth */

struct mr_json_ref { /* a key in an argument, whose node has to be looked up */
    uint32_t hash;
    uint32_t at, n;   /* in the text */
    uint32_t pack_at; /* in the arguments */
    uint32_t entry;
    uint32_t node;
};

struct mr_json_columns { /* the nodes of one slice */
    uint32_t count, inputs_all, room, inputs_room;
    uint32_t *op; /* the builder's number plus 1; 0: a literal */
    uint32_t *args_bytes, *inputs_count, *inputs;
    struct mr_buf args;
    struct mr_json_ref *refs;
    uint32_t refs_count, refs_room;
    bool misses_op; /* no earlier task has the operator in op_text */
    char op_text[MR_OP_NAME_BYTES_MAX];
    size_t op_bytes;
};

enum mr_json_scan_result {
    MR_JSON_SCANNED,
    MR_JSON_UNUSUAL, /* the slice has to be parsed */
    MR_JSON_MISSES,  /* an operator or a key is not known yet */
};

/* The operator's number; false: no earlier task has it, and it is noted in `c`. */
bool mr_json_columns_op(
    const struct mr_json *j, struct mr_json_columns *c, struct mr_str name, uint32_t *op);
/* The number of a node among the inputs of the entry that begins at `from`; false: there are too
 * many.
 */
bool mr_json_columns_input(struct mr_json_columns *c, uint32_t from, uint32_t node, uint32_t *slot);
/* `c` has room for all entries. The builder is only read. */
enum mr_json_scan_result mr_json_scan(const struct mr_json *j, const struct mr_json_piece *piece,
    bool has_all, struct mr_json_columns *c);
