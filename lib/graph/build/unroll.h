/* Unrolls a loop (`repeat`) into a builder. The caller writes the body once, as the tasks of round
 * 0. Every other round is a copy with its own inputs. The nodes get these keys:
 *   name[0].state   the state before round 0: a node for each carried name
 *   name[r].key     the body's tasks in round r
 *   name.state      the state after the last round; name.count: the number of rounds that ran */
#pragma once

#include "graph/build/builder.h"
#include "graph/loop.h"

struct mr_repeat_carry {
    struct mr_str name;
    uint32_t first; /* the node "name[0].carry": the value before round 0 */
    /* The node whose value the next round gets; MR_NODE_NONE: the node is not known yet. */
    uint32_t next;
};

struct mr_repeat {
    struct mr_str name;
    uint32_t rounds; /* rounds that run at most */
    uint32_t from;   /* the first node of the body; all later nodes belong to the body */
    struct mr_repeat_carry *carry;
    uint32_t carry_count;
    uint32_t until; /* the node of the condition; MR_NODE_NONE: all rounds run */
};

/* Checks the name and the number of rounds. Makes the nodes of the loop's results, so that other
 * nodes can refer to them. */
int mr_repeat_declare(struct mr_builder *b, const struct mr_repeat *r, struct mr_error *e);
uint32_t mr_builder_nodes(const struct mr_builder *b); /* returns the number of nodes */
/* Opens or closes a scope: nodes that are made after this call belong to the body of loop `r`,
 * which is lent until the scope is closed. NULL closes the scope. */
void mr_builder_scope(struct mr_builder *b, const struct mr_repeat *r);
/* Sets `*node` to the node for the definition of a key. Inside a body this is the node of
 * "name[0].key". */
int mr_builder_own(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e);
/* Sets `*node` to the node for a reference to a key. Inside a body, keys of the body come first,
 * then carried names, then keys of the job. */
int mr_builder_ref(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e);
/* Adds the copies of the body for all later rounds, and defines the nodes of the loop's results. */
int mr_builder_repeat(struct mr_builder *b, const struct mr_repeat *r, struct mr_error *e);

/* ---- for build.c ----------------------------------------------------------------------------- */

/* Checks that no node outside a loop refers to a node of the loop's body. */
int mr_builder_check_loops(const struct mr_builder *b, struct mr_error *e);
/* Sets marks[n] to 1 for each node n in the body of a loop. These nodes are targets only if the job
 * names them. */
void mr_builder_mark_bodies(const struct mr_builder *b, unsigned char *marks);
/* Writes the loops of the builder into the finished graph `g`. rank[n] is the index in `g` of the
 * builder's node n; MR_NODE_NONE: `g` does not have the node. */
void mr_builder_gather_loops(struct mr_builder *b, const uint32_t *rank, struct mr_graph *g);
