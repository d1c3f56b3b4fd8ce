/* Loops of a graph. The graph has the body of a loop once for each possible round. How many rounds
 * run is decided while the job runs: the value of until[r] tells whether round r was the last.
 *
 *   round r of the body   the nodes with round_of == r; slot_of is the task's number in the body
 *   until[r]              the node whose value ends the loop after round r
 *   an exit: a state      A task `identity` with one input from each round. The task uses the input
 *                         from the last round that ran. The inputs until[0], until[1] … follow,
 *                         unless they are inputs of the task already.
 *   an exit: the count    A task `identity` with the inputs until[0], until[1] …, of which it uses
 *                         none. The task's value is the number of rounds that ran.
 *
 * A task of round r + 1 that depends on no other task of its round has until[r] as an input, though
 * its arguments do not refer to it. So no task of a round runs before the previous round has turned
 * out not to be the last. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"

/* The most rounds of one loop. An exit has up to two inputs for each round, and a task has at most
 * MR_TASK_INPUTS_MAX inputs. */
#define MR_LOOP_ROUNDS_MAX 32768
#define MR_LOOP_TASKS_MAX (1u << 20) /* the most tasks in the bodies of all rounds of one loop */
#define MR_LOOPS_MAX 64              /* the most loops of one job */
#define MR_LOOP_CARRY_MAX 64         /* the most values that a loop carries from round to round */
#define MR_LOOP_NAME_BYTES_MAX 64

struct mr_graph_loop {
    struct mr_str name;
    uint32_t rounds; /* rounds that may run at most; 2 or more */
    uint32_t exits_count;
    /* until[r]: the node whose value tells whether round r was the last; for r < rounds - 1 */
    const uint32_t *until;
    const uint32_t *exits;
};

/* True: the value of this exit is the number of rounds. False: its value is a state. */
static inline bool mr_graph_is_count(
    const struct mr_graph *g, const struct mr_graph_loop *l, uint32_t exit)
{
    return g->input_at[exit + 1] - g->input_at[exit] < l->rounds;
}

/* Returns the number of tasks in the rounds after round `round` of loop `loop`. */
uint32_t mr_graph_loop_tail(const struct mr_graph *g, uint32_t loop, uint32_t round);
/* Returns the loop whose body has this node, or MR_NODE_NONE. */
uint32_t mr_graph_loop_of(const struct mr_graph *g, uint32_t node);

/* The bytes of a graph (mr_graph_to_bytes) have two sections for loops. These functions write and
 * read the two sections. mr_graph_loops_read checks the structure described above, but not the
 * dependencies on until[r]. */
void mr_graph_loops_write(const struct mr_graph *g, struct mr_buf *out);
int mr_graph_loops_read(
    struct mr_str loops, struct mr_str slots, struct mr_graph *g, struct mr_error *e);
