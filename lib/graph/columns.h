/* The bytes of a graph, split into sections and checked section by section. For bytes/bytes.c and
 * bytes/from_client.c.
 *
 * All numbers are little endian. The bytes begin with "mrgraph" and a NUL, u32 version, u32 number
 * of sections. Each section follows in this order: u32 its number, u32 its form, u64 bytes, the
 * bytes. At the end is a u64: XXH3 of everything before it, or 0 for "not computed", which only
 * clients may send.
 *
 *   1 head      u32 nodes, u32 culled keys, u32 arguments, u32 option sets, u32 ops, u32 targets
 *   2 kind      u8 per node: enum mr_node_kind
 *   3 op        u16 per node: index in ops; 0 if it is not a task
 *   4 key_n     u16 per node, then u16 per culled key: length
 *   5 keys      the keys, then the culled keys, end to end
 *   6 args_of   u32 per node: index of its arguments
 *   7 args_n    u32 per index of section 6: bytes of these arguments
 *   8 args      the arguments (args.h), end to end
 *   9 input_n   u32 per node: how many inputs
 *  10 inputs    u32 each: the inputs of each node, as its arguments number them, end to end
 *  11 option_of u32 per node: index of its option set, 2^32-1 for none; empty: no node has options
 *  12 options   each a map (options_pack.h)
 *  13 ops       each a text in MessagePack
 *  14 targets   u32 each: a node
 *  15 job       a map (options_pack.h)
 * Version 2 has two more sections, for loops:
 *  16 loops     each: u32 rounds, u32 number of exits, u32 bytes of its name; then u32 each: for
 *               each round but the last, the node that decides whether it is the last (until[r] in
 *               loop.h); the exits; then the name
 *  17 slots     u32 per node: which task of the loops' bodies it is, 2^32-1 for a node outside
 *               loops; the same number in each round; then u32 per node: its round
 *
 * Version 3, with or without loops, stores sections 2 to 4, 6, 7, 9 to 11 and 14 in a form of
 * int_column.h. All other sections, and all of versions 1 and 2, have form 0. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define MR_COLUMNS_VERSION 1
#define MR_COLUMNS_VERSION_LOOPS 2
#define MR_COLUMNS_VERSION_COMPACT 3
#define MR_COLUMNS_MAGIC "mrgraph"

enum mr_column {
    MR_COLUMN_HEAD = 1,
    MR_COLUMN_KIND,
    MR_COLUMN_OP,
    MR_COLUMN_KEY_N,
    MR_COLUMN_KEYS,
    MR_COLUMN_ARGS_OF,
    MR_COLUMN_ARGS_N,
    MR_COLUMN_ARGS,
    MR_COLUMN_INPUT_N,
    MR_COLUMN_INPUTS,
    MR_COLUMN_OPTION_OF,
    MR_COLUMN_OPTIONS,
    MR_COLUMN_OPS,
    MR_COLUMN_TARGETS,
    MR_COLUMN_JOB,
    MR_COLUMNS_END,
    MR_COLUMN_LOOPS = MR_COLUMNS_END,
    MR_COLUMN_SLOTS,
    MR_COLUMNS_ALL,
};

struct mr_columns {
    uint32_t nodes_count;
    uint32_t culled_count;
    uint32_t args_count;
    uint32_t options_count;
    uint32_t ops_count;
    uint32_t targets_count;
    uint32_t inputs_count;
    /* The bytes of each section. A section that is absent has no bytes. Sections 16 and 17 are
     * absent if the graph has no loops. */
    struct mr_str at[MR_COLUMNS_ALL];
    uint32_t form[MR_COLUMNS_ALL];
    unsigned char *widened; /* the compact columns in full width; owned */
};

/* Finds and checks the sections: their number and order, their sizes, and all limits on counts.
 * Numbers of kinds, operators, arguments, options, inputs and targets are in range. Lengths add up.
 * Keys are valid. Arguments are well formed and refer only to inputs that the node has. A node that
 * is not a task has the arguments of its kind. No node has an input twice. Not checked: whether two
 * keys are equal, and the order of the nodes. With `needs_checksum`, the checksum 0 is refused,
 * too. MR_EFORMAT or MR_ELIMIT: a check has failed. mr_columns_fini is needed also after a
 * failure. */
int mr_columns_read(
    struct mr_str bytes, bool needs_checksum, struct mr_columns *out, struct mr_error *e);

void mr_columns_fini(struct mr_columns *c);

/* Returns the i-th number of a column. The numbers need not be aligned. */
static inline uint32_t mr_column_u32(struct mr_str column, uint32_t i)
{
    uint32_t v = 0;
    memcpy(&v, column.p + (size_t)i * sizeof v, sizeof v);
    return v;
}

static inline uint16_t mr_column_u16(struct mr_str column, uint32_t i)
{
    uint16_t v = 0;
    memcpy(&v, column.p + (size_t)i * sizeof v, sizeof v);
    return v;
}
