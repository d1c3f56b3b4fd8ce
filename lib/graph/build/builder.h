/* Collects the nodes of a graph in any order; mr_graph_build then makes the graph. The JSON parser,
 * the protobuf translation, the reader of column streams and tests use a builder, so a builder does
 * not depend on any notation. The builder numbers nodes in the order of first mention; the finished
 * graph has other numbers.
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
/* Sets the thread pool of the build; `parallel` is lent until the build returns. */
void mr_builder_set_parallel(struct mr_builder *b, const struct mr_graph_parallel *parallel);

/* Sets `*node` to the node of a key, which is made if no node has this key yet. A new node is
 * undefined. MR_EINVAL: the text is not a valid key. MR_ELIMIT: there are too many nodes or bytes
 * of keys. */
int mr_builder_node(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e);
/* Returns the node of a key. MR_NODE_NONE: no node has this key. */
uint32_t mr_builder_find(const struct mr_builder *b, struct mr_str key);
bool mr_builder_is_defined(const struct mr_builder *b, uint32_t node);
/* The returned text is lent until the next node is added. */
struct mr_str mr_builder_key(const struct mr_builder *b, uint32_t node);
/* Makes a node with the first free key of "parent#0", "parent#1" … */
int mr_builder_node_under(
    struct mr_builder *b, uint32_t parent, uint32_t *node, struct mr_error *e);

/* Define a node as a literal, a stored object, a name or an alias. A node takes one definition.
 * MessagePack is copied and must be valid (mr_pack_check). */
int mr_builder_literal(struct mr_builder *b, uint32_t node, struct mr_str pack, struct mr_error *e);
int mr_builder_object(struct mr_builder *b, uint32_t node, mr_object_id id, struct mr_error *e);
int mr_builder_name(struct mr_builder *b, uint32_t node, struct mr_str name, struct mr_error *e);
int mr_builder_alias(struct mr_builder *b, uint32_t node,
    struct mr_error *e); /* refers to another job's node of the same key */
/* A job may refer to a stored object or a name without a key for it. Set `*node` to the node of
 * this object or name. The first reference makes the node, and all later ones share it. */
int mr_builder_object_node(
    struct mr_builder *b, mr_object_id id, uint32_t *node, struct mr_error *e);
int mr_builder_name_node(
    struct mr_builder *b, struct mr_str name, uint32_t *node, struct mr_error *e);

bool mr_op_name_is_valid(struct mr_str op);
/* Define a node as a task. Between mr_builder_task and mr_builder_task_end, the caller writes the
 * arguments into mr_builder_args in the form of graph/args.h. Tasks nest up to MR_DEPTH_MAX; the
 * arguments belong to the innermost open task. */
int mr_builder_task(struct mr_builder *b, uint32_t node, struct mr_str op, struct mr_error *e);
struct mr_buf *mr_builder_args(struct mr_builder *b);
int mr_builder_input(struct mr_builder *b, uint32_t node, struct mr_error *e);
/* Sets `*slot` to the number of `node` among the inputs of the open task, for callers that write
 * the arguments as a whole. */
int mr_builder_slot(struct mr_builder *b, uint32_t node, uint32_t *slot, struct mr_error *e);
int mr_builder_task_end(struct mr_builder *b, struct mr_error *e);

/* Define a node as a value that may contain references. Between mr_builder_value and
 * mr_builder_value_end, the caller writes the value like one argument of a task. A value without
 * references becomes a literal. A value with references becomes a task `identity` with the value as
 * argument. */
int mr_builder_value(struct mr_builder *b, uint32_t node, struct mr_error *e);
int mr_builder_value_end(struct mr_builder *b, struct mr_error *e);

/* Makes a node a target of the job. If the job has no target in the end, every node that is not an
 * input of another node becomes a target. */
int mr_builder_target(struct mr_builder *b, uint32_t node, struct mr_error *e);

#include "graph/build/build.h"   /* for mr_graph_build */
#include "graph/build/options.h" /* for mr_builder_options and mr_builder_job */
