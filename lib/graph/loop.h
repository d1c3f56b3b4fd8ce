/* Loops of a graph: bodies that stand in it once for every round that may come. Which rounds come
 * is found out while the job runs: `until` of a round says whether it was the last.
 *
 *   round r of the body                nodes with round_of == r; slot_of says which one of the body
 *   until[r]                           the node whose value ends the loop after round r
 *   exits: a state                     a task `identity` with an input of each round, of which it
 *                                      takes that of the last round that came, and no other; then
 *                                      until[0], until[1] … unless these are its inputs already
 *   exits: the count                   a task `identity` with the inputs until[0], until[1] …,
 *                                      of which it takes none: its value is the number of rounds
 *
 * Every task of round r + 1 that no other of its round comes before has until[r] among its inputs,
 * though its arguments do not name it: so nothing of a round is done before the round before it
 * was found not to be the last. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"

#define MR_LOOP_ROUNDS_MAX 32768     /* an exit has two inputs a round */
#define MR_LOOP_TASKS_MAX (1u << 20) /* rounds x tasks of a body */
#define MR_LOOPS_MAX 64              /* of one job */
#define MR_LOOP_CARRY_MAX 64         /* values carried from round to round */
#define MR_LOOP_NAME_BYTES_MAX 64

struct mr_graph_loop {
    struct mr_str name;
    uint32_t rounds; /* at most so many; 2 or more */
    uint32_t exits_count;
    const uint32_t *until; /* rounds - 1 nodes */
    const uint32_t *exits;
};

/* Is this exit the count of the rounds? Else it is a state. */
static inline bool mr_graph_is_count(
    const struct mr_graph *g, const struct mr_graph_loop *l, uint32_t exit)
{
    return g->input_at[exit + 1] - g->input_at[exit] < l->rounds;
}

/* Tasks of the rounds after round `round` of loop `loop`. */
uint32_t mr_graph_loop_tail(const struct mr_graph *g, uint32_t loop, uint32_t round);
/* The loop that a node is in the body of, or MR_NODE_NONE. */
uint32_t mr_graph_loop_of(const struct mr_graph *g, uint32_t node);

/* As sections of mr_graph_to_bytes. The reader checks all that is said above but the gates. */
void mr_graph_loops_write(const struct mr_graph *g, struct mr_buf *out);
int mr_graph_loops_read(
    struct mr_str loops, struct mr_str slots, struct mr_graph *g, struct mr_error *e);
