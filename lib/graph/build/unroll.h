/* `repeat`: writes the rounds of a loop into a builder. The body stands there once, as the tasks of
 * round 0; every other round is a copy of them with inputs of its own. Knows nothing of notations.
 *
 *   name[0].state     what the round begins with: a node for each carried name ("first")
 *   name[r].key       the body's tasks in round r
 *   name.state        what the last round left; name.count: how many rounds there were */
#pragma once

#include "graph/build/builder.h"
#include "graph/loop.h"

struct mr_repeat_carry {
    struct mr_str name;
    uint32_t first; /* the node "name[0].carry" */
    uint32_t next;  /* what the next round begins with: any node; MR_NODE_NONE: not said */
};

struct mr_repeat {
    struct mr_str name;
    uint32_t rounds; /* at most */
    uint32_t from;   /* the body's nodes are from here on, with keys that start as they should */
    struct mr_repeat_carry *carry;
    uint32_t carry_count;
    uint32_t until; /* any node; MR_NODE_NONE: all rounds come */
};

/* Checks name and rounds, and makes the nodes of the exits, so that others can refer to them. */
int mr_repeat_declare(struct mr_builder *b, const struct mr_repeat *r, struct mr_error *e);
uint32_t mr_builder_nodes(const struct mr_builder *b); /* so many there are */
/* From now on the body of a loop is written (lent), or NULL: no more. */
void mr_builder_scope(struct mr_builder *b, const struct mr_repeat *r);
/* The node of a key that is defined here: of "name[0].key" in a body. */
int mr_builder_own(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e);
/* The node that a reference means: in a body its keys come first, then what is carried. */
int mr_builder_ref(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e);
int mr_builder_repeat(struct mr_builder *b, const struct mr_repeat *r, struct mr_error *e);
