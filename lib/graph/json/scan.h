/* Scans entries of the JSON objects "tasks" and "dsk" (the tasks of a job) straight from the text
 * into columns, without a JSON parser. Only the most common forms are scanned. Entries with
 * escapes, characters outside ASCII, fractions or options are left to fast_path.h, which parses the
 * slice first. Both ways give the same result. Private to lib/graph/json. */
#pragma once

#include "graph/json/entries.h"

/* Limit of the inputs of one entry. A slice with an entry of more inputs does not take the fast
 * path (fast_path.h). */
#define MR_JSON_FAST_INPUTS_MAX 64
#define MR_JSON_FAST_LISTS_MAX 8 /* how deep lists may nest in an entry */

struct mr_json_ref { /* a key in an argument, whose node has to be looked up */
    uint32_t hash;
    uint32_t at, n; /* place of the key in the text */
    /* Offset in mr_json_columns.args of the item EXT_INPUT (graph/args.h), which stands for the
     * value of the node. */
    uint32_t pack_at;
    uint32_t entry;
    uint32_t node;
};

struct mr_json_columns { /* the nodes of one slice */
    uint32_t count, inputs_all, room, inputs_room;
    uint32_t *op; /* the number that mr_json_columns_op finds, plus 1; 0: a literal */
    uint32_t *args_bytes, *inputs_count, *inputs;
    struct mr_buf args;
    struct mr_json_ref *refs;
    uint32_t refs_count, refs_room;
    /* True: the slice uses the operator op_text, which the job's builder does not know yet. */
    bool misses_op;
    char op_text[MR_OP_NAME_BYTES_MAX];
    size_t op_bytes;
};

enum mr_json_scan_result {
    MR_JSON_SCANNED,
    MR_JSON_UNUSUAL, /* the slice has to be parsed by fast_path.h */
    MR_JSON_MISSES,  /* the slice has an operator or a key that is not known yet */
};

/* Sets `*op` to the number of the operator `name` in the job's builder, j->b. False: the builder
 * does not know the operator yet. A name that is not too long is then in c->op_text. */
bool mr_json_columns_op(
    const struct mr_json *j, struct mr_json_columns *c, struct mr_str name, uint32_t *op);
/* Sets `*slot` to the position of `node` among the inputs of an entry, and adds `node` to them if
 * it is missing. `from` is the index of the entry's first input in c->inputs. False: the entry has
 * too many inputs. */
bool mr_json_columns_input(struct mr_json_columns *c, uint32_t from, uint32_t node, uint32_t *slot);
/* Scans one slice into `c`, which has room for all entries of the slice. `has_all` has the same
 * meaning as for mr_json_fast_path_read. The job's builder, j->b, is not changed. */
enum mr_json_scan_result mr_json_scan(const struct mr_json *j, const struct mr_json_piece *piece,
    bool has_all, struct mr_json_columns *c);
