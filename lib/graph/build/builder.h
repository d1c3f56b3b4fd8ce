/* Collects the nodes of a graph in any order; mr_graph_build then makes the graph. Used by the JSON
 * parser, the protobuf translation, the reader of column streams and tests, so it knows no
 * notation. The builder numbers nodes in the order of first mention; the finished graph has other
 * numbers.
 *
 *   uint32_t x, y;
 *   mr_builder_node(b, MR_STR("x"), &x, e);
 *   mr_builder_literal(b, x, pack, e);
 *   mr_builder_node(b, MR_STR("y"), &y, e);
 *   mr_builder_task(b, y, MR_STR("inc"), e);
 *   mr_pack_list(mr_builder_args(b), 1);
 *   mr_builder_input(b, x, e);             writes the input slot into the arguments
 *   mr_builder_task_end(b, e);
 *   mr_builder_target(b, y, e);
 *   err = mr_graph_build(&b, &catalogue, &graph, e); */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"
#include "graph/parallel.h"

struct mr_builder;

struct mr_builder *mr_builder_new(void);
void mr_builder_free(struct mr_builder **b);
/* Lends threads until the build returns. */
void mr_builder_set_parallel(struct mr_builder *b, const struct mr_graph_parallel *parallel);

/* The node of a key; a new one is undefined. MR_EINVAL: the text is not a valid key. */
int mr_builder_node(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e);
uint32_t mr_builder_find(const struct mr_builder *b, struct mr_str key); /* or MR_NODE_NONE */
bool mr_builder_is_defined(const struct mr_builder *b, uint32_t node);
struct mr_str mr_builder_key(const struct mr_builder *b, uint32_t node); /* until the next node */
/* A new node with the first free key of "parent#0", "parent#1" … */
int mr_builder_node_under(
    struct mr_builder *b, uint32_t parent, uint32_t *node, struct mr_error *e);

/* Definitions: each node takes one. MessagePack is copied and must be valid (mr_pack_check). */
int mr_builder_literal(struct mr_builder *b, uint32_t node, struct mr_str pack, struct mr_error *e);
int mr_builder_object(struct mr_builder *b, uint32_t node, mr_object_id id, struct mr_error *e);
int mr_builder_name(struct mr_builder *b, uint32_t node, struct mr_str name, struct mr_error *e);
int mr_builder_alias(struct mr_builder *b, uint32_t node,
    struct mr_error *e); /* to another job's node of the same key */
/* The node of a stored object or name that has no key in the job; all references share it. */
int mr_builder_object_node(
    struct mr_builder *b, mr_object_id id, uint32_t *node, struct mr_error *e);
int mr_builder_name_node(
    struct mr_builder *b, struct mr_str name, uint32_t *node, struct mr_error *e);

bool mr_op_name_is_valid(struct mr_str op);
/* A task. Between these two calls its arguments are written into mr_builder_args in the form of
 * graph/args.h. Tasks nest up to MR_DEPTH_MAX; arguments belong to the innermost open task. */
int mr_builder_task(struct mr_builder *b, uint32_t node, struct mr_str op, struct mr_error *e);
struct mr_buf *mr_builder_args(struct mr_builder *b);
int mr_builder_input(struct mr_builder *b, uint32_t node, struct mr_error *e);
/* The number of `node` among the open task's inputs, for callers that write arguments as a whole.
 */
int mr_builder_slot(struct mr_builder *b, uint32_t node, uint32_t *slot, struct mr_error *e);
int mr_builder_task_end(struct mr_builder *b, struct mr_error *e);

/* A value that may have references, written in the same way as one item. Without references it
 * becomes a literal, otherwise the task `identity` with the value as argument. */
int mr_builder_value(struct mr_builder *b, uint32_t node, struct mr_error *e);
int mr_builder_value_end(struct mr_builder *b, struct mr_error *e);

/* Without any target, every node that is no other node's input is a target. */
int mr_builder_target(struct mr_builder *b, uint32_t node, struct mr_error *e);

#include "graph/build/build.h"   /* mr_graph_build */
#include "graph/build/options.h" /* mr_builder_options, mr_builder_job */
