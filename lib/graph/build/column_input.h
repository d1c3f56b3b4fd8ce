/* Nodes as columns into a builder, all at once: what is plain and right takes a walk over each
 * column instead of calls for each node. Knows no words: what is not right makes it say no, and
 * whoever asked then takes the node by node way, which finds the sentence. */
#pragma once

#include "graph/build/builder.h"

#include <stdbool.h>

/* Numbers in `inputs` count all nodes of the builder, also those that are still to come. */
struct mr_bulk {
    uint32_t count;
    struct mr_str keys; /* end to end, as the arguments */
    struct mr_str args;
    const uint32_t *key_bytes;
    const uint32_t *op; /* index in ops and 1; 0: a literal */
    const uint32_t *args_bytes;
    const uint32_t *inputs_count;
    const uint32_t *inputs;
    size_t inputs_all;
};

struct mr_bulk_op {
    struct mr_str name;
    uint32_t number_1; /* the builder's number and 1, once it was used */
};

/* Appends nodes, defined and numbered as they stand. False: something is not right, and the builder
 * is fit for nothing but to be freed. */
bool mr_builder_add_bulk(
    struct mr_builder *b, const struct mr_bulk *c, struct mr_bulk_op *ops, uint32_t ops_count);
/* Nodes without a definition, numbered as their keys stand. MR_EFORMAT without words: a key is
 * none, or is there already, and the builder is fit for nothing; MR_ELIMIT. */
int mr_builder_add_keys(struct mr_builder *b, struct mr_str keys, const uint32_t *key_bytes,
    uint32_t count, struct mr_error *e);
/* Defines nodes that are there, from `first` on, out of columns that are known to be right: op is
 * the builder's number of it and 1. Only limits can be met. */
int mr_builder_define_bulk(
    struct mr_builder *b, const struct mr_bulk *c, uint32_t first, struct mr_error *e);
/* After the last: does every input exist? */
bool mr_builder_bulk_is_whole(const struct mr_builder *b);
/* Nodes first … first + count - 1 are targets. */
bool mr_builder_target_all(struct mr_builder *b, uint32_t first, uint32_t count);
