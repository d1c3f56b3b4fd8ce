/* Adds many nodes to a builder at once, from columns. A column is an array with the same member of
 * each node, such as the operator. Each column takes one pass, and no node takes a call of its own.
 * Most of these functions write no error text. After an error without a text the caller adds the
 * nodes one by one instead, and the call that fails writes the text. */
#pragma once

#include "graph/build/builder.h"

#include <stdbool.h>

/* Columns of nodes. `inputs` has node numbers of the builder; a number may also be that of a node
 * that is added later. */
struct mr_node_columns {
    uint32_t count;
    struct mr_str keys; /* the keys, end to end; the arguments are stored in the same way */
    struct mr_str args;
    const uint32_t *key_bytes;
    const uint32_t *op; /* by node: index in `ops`, plus 1; 0: a literal */
    const uint32_t *args_bytes;
    const uint32_t *inputs_count;
    const uint32_t *inputs;
    size_t inputs_all;
};

struct mr_node_op {
    struct mr_str name;
    /* the builder's number of the operator, plus 1; 0: the builder was not asked for it yet */
    uint32_t number_1;
};

/* Appends the nodes of `c`, with their definitions, in the order of the columns. False: there is an
 * error, and the builder can only be freed. */
bool mr_builder_add_columns(struct mr_builder *b, const struct mr_node_columns *c,
    struct mr_node_op *ops, uint32_t ops_count);
/* Appends undefined nodes in the order of `keys`. MR_EFORMAT, without an error text: a key is
 * invalid or exists already. MR_ELIMIT: there are too many nodes or bytes of keys. After an error
 * the builder can only be freed. */
int mr_builder_add_keys(struct mr_builder *b, struct mr_str keys, const uint32_t *key_bytes,
    uint32_t count, struct mr_error *e);
/* Defines existing nodes, from node number `first` on. The caller has checked the columns, and `op`
 * is the builder's number of the operator plus 1. The only possible error is a limit. */
int mr_builder_define_columns(
    struct mr_builder *b, const struct mr_node_columns *c, uint32_t first, struct mr_error *e);
/* Called after the last columns. True: every input is a node of the builder. False: an input does
 * not exist. */
bool mr_builder_columns_are_complete(const struct mr_builder *b);
/* The nodes with numbers `first` to `first` + `count` - 1 become targets of the job. False: the job
 * would have too many targets. */
bool mr_builder_target_all(struct mr_builder *b, uint32_t first, uint32_t count);
