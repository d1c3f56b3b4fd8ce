/* The members of a builder. Private to the parts of lib/graph that fill a builder, check it and
 * turn it into a graph. */
#pragma once

#include "base/limits.h"
#include "graph/build/builder.h"
#include "graph/intern.h"
#include "graph/suggest.h"
#include "graph/text_arena.h"

/* Number of entries in each of two caches, of recent arguments and of recent option sets; a power
 * of two. */
#define MR_BUILDER_CACHE 1024
#define MR_BUILDER_INPUTS_MAX ((uint32_t)1 << 26) /* references to inputs in all tasks of a job */
/* The value in kind[] of a node without a definition; a defined node has 1 + enum mr_node_kind. */
#define MR_NODE_UNDEFINED 0

/* A task whose arguments are being written. A few inputs are searched linearly; more inputs are
 * searched in a hash table. */
struct mr_open_task {
    uint32_t node;
    bool is_value; /* the node becomes a literal if no input was added */
    struct mr_buf args;
    uint32_t *inputs;
    uint32_t count;
    uint32_t room;
    /* The hash table; NULL: there are only a few inputs. Each entry has node + 1 in its upper half
     * and the input's number in its lower half. */
    uint64_t *seen;
    uint32_t seen_slots;
    /* The first number that mr_builder_node_under tries in the key of the next nested task. */
    uint32_t under_next;
};

/* A loop in the builder. A slot is the number of a task in the body. In round r > 0, slot k is the
 * node clones + (r - 1) * slots + k. */
struct mr_builder_loop {
    struct mr_str name;
    uint32_t rounds;
    uint32_t slots;
    uint32_t *body; /* by slot: the task of round 0 */
    uint32_t clones;
    uint32_t *inside; /* all nodes of round 0: tasks and values */
    uint32_t inside_count;
    uint32_t until;  /* slot of the condition; MR_NODE_NONE: no condition */
    uint32_t *exits; /* the nodes with the results of the loop */
    uint32_t exits_count;
};

static inline uint32_t mr_builder_loop_node(
    const struct mr_builder_loop *l, uint32_t slot, uint32_t round)
{
    return round ? l->clones + (round - 1) * l->slots + slot : l->body[slot];
}

struct mr_repeat;

struct mr_builder {
    struct mr_intern keys;
    struct mr_intern ops;
    uint32_t last_op;
    uint32_t nodes_max;
    uint32_t nodes_room;
    uint32_t nodes_clear; /* nodes below this one have kind and input_count initialized */
    unsigned char *kind;
    uint16_t *op;
    uint32_t *args_of;
    uint32_t *input_at;
    uint32_t *input_count;
    uint32_t *option_of; /* NULL until a node has options */

    uint32_t *inputs;
    uint32_t inputs_count;
    uint32_t inputs_room;
    /* The largest node number in the lists of inputs that mr_builder_add_columns has added. */
    uint32_t input_most;

    struct mr_buf args;
    /* Bytes of the arguments and options of all nodes, counted before equal ones are shared. */
    size_t written;
    uint32_t *args_at;
    uint32_t args_count;
    uint32_t args_room;
    struct {
        uint64_t hash;
        uint32_t index_1; /* index of the arguments or options, plus 1; 0: a free entry */
    } args_cache[MR_BUILDER_CACHE], options_cache[MR_BUILDER_CACHE];

    struct mr_task_options *options;
    struct mr_str *options_pack; /* options[i] in MessagePack: equal sets have equal bytes */
    uint32_t options_count;
    uint32_t options_room;
    struct mr_buf options_scratch;
    struct mr_text_arena text;

    uint32_t *targets;
    uint32_t targets_count;
    uint32_t targets_room;
    struct mr_job_options job;

    struct mr_open_task open[MR_DEPTH_MAX];
    uint32_t open_count;
    /* All references to one object id, or to one name of an object, share a node. `shared` has the
     * definitions of these nodes. */
    struct mr_intern shared;
    uint32_t *shared_node; /* these nodes, by number of the definition in `shared` */
    uint32_t shared_room;
    struct mr_builder_loop *loops;
    uint32_t loops_count;
    const struct mr_repeat *scope;            /* the loop whose body is being written; NULL: none */
    const struct mr_graph_parallel *parallel; /* lends threads for large graphs; NULL: none */
};

static inline enum mr_node_kind mr_builder_kind(const struct mr_builder *b, uint32_t node)
{
    return (enum mr_node_kind)(b->kind[node] - 1);
}

static inline struct mr_str mr_builder_args_text(const struct mr_builder *b, uint32_t args)
{
    return mr_str_of(b->args.p + b->args_at[args], b->args_at[args + 1] - b->args_at[args]);
}

/* Sets bounds before the first node is added: on the number of nodes, and on the bytes of all
 * arguments, of all keys, and of all options. The bytes are counted after equal arguments and
 * options are shared; before this, twice as many bytes may be written. Without bounds a short
 * document with "for" could ask for any amount of memory. */
void mr_builder_limit(struct mr_builder *b, uint32_t nodes_max, size_t bytes_max);

/* Counts bytes of arguments or options that were written, and compares the sum with the bound.
 * MR_ELIMIT: the sum is larger. */
int mr_builder_wrote(struct mr_builder *b, uint32_t node, size_t bytes, struct mr_error *e);

/* Reserves memory for this many nodes, before the first node is added. */
void mr_builder_reserve(struct mr_builder *b, uint32_t nodes);

/* Grow the columns for a caller that adds many items at once. mr_builder_nodes_room grows the
 * columns of nodes to `nodes` nodes in total. mr_builder_inputs_room and mr_builder_targets_room
 * make room for `more` items and return the address of this room; the caller then adds to
 * inputs_count or targets_count. */
void mr_builder_nodes_room(struct mr_builder *b, uint32_t nodes);
uint32_t *mr_builder_inputs_room(struct mr_builder *b, uint32_t more);
uint32_t *mr_builder_targets_room(struct mr_builder *b, uint32_t more);
/* Sets `*number` to the number of an operator; a new operator gets a new number. */
int mr_builder_op(struct mr_builder *b, struct mr_str op, uint16_t *number, struct mr_error *e);
/* Sets the arguments of a node. The node shares the arguments of a recent node if they are
 * equal. */
int mr_builder_args_add(
    struct mr_builder *b, uint32_t node, struct mr_str bytes, struct mr_error *e);
