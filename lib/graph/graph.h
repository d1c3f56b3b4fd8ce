/* A job's graph in memory: columns over its nodes in canonical order. Knows nothing of workers,
 * states or time. A graph comes from a builder (graph/builder.h), from JSON (graph/json.h) or from
 * its own bytes (graph/bytes.h); after that it does not change, but for the lazy index of its keys
 * and the hashes of what stands outside it.
 *
 * Canonical order: culled to the targets, ordered depth first so that values die early, and
 * topological: every input's index is below its node's. A node's index is its position. */
#pragma once

#include "base/id.h"
#include "base/index.h"
#include "base/str.h"
#include "base/time.h"
#include "graph/text_arena.h"

enum mr_node_kind {
    MR_NODE_TASK,
    MR_NODE_LITERAL, /* args: the value, packed */
    MR_NODE_OBJECT,  /* args: EXT_OBJECT, a stored object's id */
    MR_NODE_NAME,    /* args: text, the name of a stored object */
    MR_NODE_ALIAS,   /* args: text, a key that another job of the namespace defines */
};

#define MR_NODE_NONE UINT32_MAX

typedef struct {
    uint64_t hi;
    uint64_t lo;
} mr_graph_hash; /* of a definition: what a key's value depends on */

enum { /* which options of a task were given; the others are zero */
    MR_OPTION_RETRIES = 1 << 0,
    MR_OPTION_PRIORITY = 1 << 1,
    MR_OPTION_TIMEOUT = 1 << 2,
    MR_OPTION_WORKERS = 1 << 3,
    MR_OPTION_ALLOW_OTHER_WORKERS = 1 << 4,
    MR_OPTION_RESOURCES = 1 << 5,
    MR_OPTION_PURE = 1 << 6,
    MR_OPTION_PERSIST = 1 << 7,
    MR_OPTION_LONG_RUNNING = 1 << 8,
    MR_OPTION_ALL = (1 << 9) - 1,
};

struct mr_graph_resource {
    struct mr_str name;
    uint64_t amount_micro; /* millionths: gpu=0.5 is 500000 */
};

struct mr_task_options {
    uint32_t given; /* MR_OPTION_… */
    uint32_t retries;
    int32_t priority;    /* larger runs sooner; -100..100 (MR_PRIORITY_MAX), as a job's */
    mr_duration timeout; /* ns, 0: none */
    bool allow_other_workers;
    bool pure; /* true unless given as false; read it through mr_graph_is_pure */
    bool persist;
    bool long_running;
    struct mr_str persist_name; /* empty: persisted under no name */
    const struct mr_str *workers;
    uint32_t workers_count;
    uint32_t resources_count;
    const struct mr_graph_resource *resources;
};
enum mr_on_error { MR_ON_ERROR_STOP, MR_ON_ERROR_CONTINUE };

struct mr_graph_label {
    struct mr_str name;
    struct mr_str value;
};

struct mr_job_options {
    struct mr_str name;
    struct mr_str name_space; /* empty: the job's own */
    struct mr_str request_id; /* empty: none */
    struct mr_str params;     /* pack: map of the job's parameters as used; empty: none */
    const struct mr_graph_label *labels;
    uint32_t labels_count;
    int32_t priority;
    mr_duration deadline; /* ns from acceptance, 0: none */
    enum mr_on_error on_error;
    bool unfused; /* "fuse": false: every task is run and reported by itself */
};

struct mr_graph_loop;

struct mr_graph {
    uint32_t nodes_count;
    uint32_t tasks_count;   /* nodes of kind TASK */
    uint32_t defined_count; /* nodes before the cull */
    uint32_t culled_count;  /* nodes_count + culled_count == defined_count */
    unsigned char *kind;    /* enum mr_node_kind */
    uint16_t *op;           /* index in ops[]; 0 for what is not a task */
    uint32_t *key_at;       /* nodes_count + 1 offsets into keys */
    char *keys;
    uint32_t *args_of; /* index in args_at: tasks with equal arguments may share them */
    uint32_t *args_at; /* args_count + 1 offsets into args */
    unsigned char *args;
    uint32_t args_count;
    uint32_t *input_at;     /* nodes_count + 1 */
    uint32_t *inputs;       /* of a node, by slot; each once */
    uint32_t *dependent_at; /* nodes_count + 1 */
    uint32_t *dependents;   /* of a node, ascending */
    mr_graph_hash *hash;    /* NULL: nobody asks (mr_graph_wants_hashes) */
    uint32_t *option_of;    /* index in options[], MR_NODE_NONE for none; NULL: nobody has any */
    struct mr_task_options *options;
    uint32_t options_count;
    uint32_t ops_count;
    struct mr_str *ops;
    uint32_t *targets; /* in the order asked, each once */
    uint32_t targets_count;
    uint32_t *culled_key_at; /* culled_count + 1 */
    char *culled_keys;
    struct mr_job_options job;

    struct mr_graph_loop *loops;       /* those with a condition; graph/loop.h */
    uint32_t loops_count, slots_count; /* slots: tasks of all loops' bodies */
    uint32_t *slot_of;  /* which of these, MR_NODE_NONE for none; NULL: there is no loop */
    uint32_t *round_of; /* of those that have a slot */

    struct mr_pool text;    /* what options[], ops[] and job point into */
    struct mr_index by_key; /* made by the first mr_graph_find; culled keys follow the nodes */
    bool has_by_key;
};

void mr_graph_free(struct mr_graph **g);

/* Loans until the graph is freed. */
struct mr_str mr_graph_key(const struct mr_graph *g, uint32_t node);
struct mr_str mr_graph_op(const struct mr_graph *g, uint32_t node); /* empty if not a task */
bool mr_graph_is_pure(const struct mr_graph *g, uint32_t node);
mr_object_id mr_graph_object(const struct mr_graph *g, uint32_t node); /* of kind OBJECT */
struct mr_str mr_graph_text(const struct mr_graph *g, uint32_t node);  /* of kind NAME, ALIAS */

/* Definition hashes of nodes that stand for something outside (NAME, ALIAS) start as a hash of
 * the text; who knows what it resolves to sets it and then computes those of all tasks anew. */
void mr_graph_set_hash(struct mr_graph *g, uint32_t node, mr_graph_hash hash);
void mr_graph_rehash(struct mr_graph *g);
/* Does anybody compare definitions? Other graphs come without; mr_graph_rehash makes them. */
bool mr_graph_wants_hashes(const struct mr_graph *g);
size_t mr_graph_bytes_held(const struct mr_graph *g);
void mr_graph_check(const struct mr_graph *g); /* asserts every invariant, O(nodes + inputs) */

static inline bool mr_graph_hash_eq(mr_graph_hash a, mr_graph_hash b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

#include "graph/node.h" /* its arguments, inputs, dependents, options */
