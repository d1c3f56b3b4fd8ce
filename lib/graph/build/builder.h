/* Collects the nodes of a graph in any order, then checks, culls, orders and hashes them. Used by
 * the JSON parser, the protobuf translation, the reader of column streams and tests. Knows nothing
 * of any notation. Node numbers here are the builder's own (order of first mention); the finished
 * graph has its own.
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

struct mr_graph_param {
    struct mr_str name;
    bool required;
};

/* What the check knows of an op. Parameters can be given by position or by name. */
struct mr_graph_op_info {
    const struct mr_graph_param *params; /* a loan until the build returns */
    uint32_t params_count;
    bool any_positional; /* more positional arguments than params */
    bool any_named;      /* named ones that are not in params */
};

/* Which ops exist. Called from the building thread only. */
struct mr_graph_catalogue {
    bool (*find)(const void *ctx, struct mr_str op, struct mr_graph_op_info *out);
    /* The i-th name, for "did you mean"; an empty one ends. May be NULL. */
    struct mr_str (*name_at)(const void *ctx, uint32_t i);
    const void *ctx;
};

struct mr_builder;

struct mr_builder *mr_builder_new(void);
void mr_builder_free(struct mr_builder **b);
/* Until the build returns. */
void mr_builder_lend_parallel(struct mr_builder *b, const struct mr_graph_parallel *parallel);

/* The node of a key, made undefined if it is new. MR_EINVAL for what cannot be a key. */
int mr_builder_node(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e);
uint32_t mr_builder_find(const struct mr_builder *b, struct mr_str key); /* or MR_NODE_NONE */
bool mr_builder_is_defined(const struct mr_builder *b, uint32_t node);
struct mr_str mr_builder_key(const struct mr_builder *b, uint32_t node); /* until the next node */
/* A new node named after `parent`: "parent#0", "parent#1" …, the first that is free. */
int mr_builder_node_under(
    struct mr_builder *b, uint32_t parent, uint32_t *node, struct mr_error *e);

/* Definitions: each node takes one. Packs are copied and must be valid (mr_pack_check). */
int mr_builder_literal(struct mr_builder *b, uint32_t node, struct mr_str pack, struct mr_error *e);
int mr_builder_object(struct mr_builder *b, uint32_t node, mr_object_id id, struct mr_error *e);
int mr_builder_name(struct mr_builder *b, uint32_t node, struct mr_str name, struct mr_error *e);
int mr_builder_alias(struct mr_builder *b, uint32_t node, struct mr_error *e); /* of its own key */
/* The node, shared by all who ask, of a stored object or name without a key of its own. */
int mr_builder_object_node(
    struct mr_builder *b, mr_object_id id, uint32_t *node, struct mr_error *e);
int mr_builder_name_node(
    struct mr_builder *b, struct mr_str name, uint32_t *node, struct mr_error *e);

/* A task: its arguments are written between the two calls into mr_builder_args as graph/args.h
 * lays them out. Tasks nest up to MR_DEPTH_MAX: the innermost open one takes what is written. */
int mr_builder_task(struct mr_builder *b, uint32_t node, struct mr_str op, struct mr_error *e);
struct mr_buf *mr_builder_args(struct mr_builder *b);
int mr_builder_input(struct mr_builder *b, uint32_t node, struct mr_error *e);
/* The slot of `node` among the open task's inputs, for who writes whole packs. */
int mr_builder_slot(struct mr_builder *b, uint32_t node, uint32_t *slot, struct mr_error *e);
int mr_builder_task_end(struct mr_builder *b, struct mr_error *e);

/* A value with references in it, written likewise but as one item: it becomes a literal when it
 * turns out to have none, and the task `identity` of it otherwise. */
int mr_builder_value(struct mr_builder *b, uint32_t node, struct mr_error *e);
int mr_builder_value_end(struct mr_builder *b, struct mr_error *e);

/* Options and the job's options are copied; limits are checked here. */
int mr_builder_options(
    struct mr_builder *b, uint32_t node, const struct mr_task_options *o, struct mr_error *e);
int mr_builder_job(struct mr_builder *b, const struct mr_job_options *job, struct mr_error *e);
/* None at all: every node that no other needs is a target. */
int mr_builder_target(struct mr_builder *b, uint32_t node, struct mr_error *e);

/* Checks, culls, orders, hashes. Takes the builder. An undefined node is an alias to another job's
 * key if the job has a namespace, and an error otherwise. */
int mr_graph_build(struct mr_builder **b, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);
