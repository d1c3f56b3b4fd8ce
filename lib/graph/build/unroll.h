/* Unrolls a loop (`repeat`) into a builder. The caller writes the body once, as the tasks of round
 * 0. Every other round is a copy with its own inputs. Knows no notation.
 *
 *   name[0].state     the state before round 0: a node for each carried name
 *   name[r].key       the body's tasks in round r
 *   name.state        the state after the last round; name.count: the number of rounds that ran */
#pragma once

#include "graph/build/builder.h"
#include "graph/loop.h"

struct mr_repeat_carry {
    struct mr_str name;
    uint32_t first; /* the node "name[0].carry" */
    uint32_t next;  /* the node whose value the next round gets; MR_NODE_NONE: not given */
};

struct mr_repeat {
    struct mr_str name;
    uint32_t rounds; /* at most */
    uint32_t from;   /* the first node of the body; all later nodes belong to it */
    struct mr_repeat_carry *carry;
    uint32_t carry_count;
    uint32_t until; /* the node of the condition; MR_NODE_NONE: all rounds run */
};

/* Checks name and rounds, and makes the nodes of the exits, so that other nodes can refer to them.
 */
int mr_repeat_declare(struct mr_builder *b, const struct mr_repeat *r, struct mr_error *e);
uint32_t mr_builder_nodes(const struct mr_builder *b); /* their number */
/* From now on nodes belong to the body of this loop, which is lent. NULL: the body is complete. */
void mr_builder_scope(struct mr_builder *b, const struct mr_repeat *r);
/* The node for the definition of a key. In a body it is the node of "name[0].key". */
int mr_builder_own(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e);
/* The node for a reference to a key. In a body, keys of the body hide keys of the job, and carried
 * names come next. */
int mr_builder_ref(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e);
/* Adds the copies of the body and defines the exits. */
int mr_builder_repeat(struct mr_builder *b, const struct mr_repeat *r, struct mr_error *e);

/* ---- for build.c ----------------------------------------------------------------------------- */

/* No node outside a loop may refer to a node of its body. */
int mr_builder_check_loops(const struct mr_builder *b, struct mr_error *e);
/* Sets the marks of all nodes of bodies: they are no targets unless the job names them. */
void mr_builder_mark_bodies(const struct mr_builder *b, unsigned char *marks);
/* Writes the loops into the finished graph. `rank`: each node's index in it. */
void mr_builder_gather_loops(struct mr_builder *b, const uint32_t *rank, struct mr_graph *g);
