/* A job's graph in memory: columns over its nodes in canonical order. It has no workers, states or
 * times. A graph comes from a builder (graph/build/builder.h), from JSON (graph/json/json.h) or
 * from bytes (graph/bytes/bytes.h). Afterwards only the lazy index of keys and the hashes change.
 *
 * Canonical order: only nodes that the targets need, depth first, so that values are released
 * early, and topological, so that every input has a smaller index than its node. */
#pragma once

#include "base/id.h"
#include "base/index.h"
#include "base/str.h"
#include "base/time.h"
#include "graph/text_arena.h"

enum mr_node_kind {
    MR_NODE_TASK,
    MR_NODE_LITERAL, /* args: the value in MessagePack */
    MR_NODE_OBJECT,  /* args: EXT_OBJECT, a stored object's id */
    MR_NODE_NAME,    /* args: a text, the name of a stored object */
    MR_NODE_ALIAS,   /* args: a text, a key that another job of the namespace defines */
};

#define MR_NODE_NONE UINT32_MAX

typedef struct {
    uint64_t hi;
    uint64_t lo;
} mr_graph_hash; /* of a definition: all that a key's value depends on */

enum { /* the options of a task that were given; the others are zero */
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
    int32_t priority;    /* larger runs sooner; -100 to 100 (MR_PRIORITY_MAX), as a job's */
    mr_duration timeout; /* ns, 0: none */
    bool allow_other_workers;
    bool pure; /* only if given: mr_graph_is_pure has the default */
    bool persist;
    bool long_running;
    struct mr_str persist_name; /* empty: persisted without a name */
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
    struct mr_str params;     /* MessagePack: a map of the parameters as used; empty: none */
    const struct mr_graph_label *labels;
    uint32_t labels_count;
    int32_t priority;
    mr_duration deadline; /* ns from acceptance; 0: none */
    enum mr_on_error on_error;
    bool unfused; /* "fuse": false: each task is run and reported on its own */
};

struct mr_graph_loop;

struct mr_graph {
    uint32_t nodes_count;
    uint32_t tasks_count;   /* nodes of kind TASK */
    uint32_t defined_count; /* nodes before culling */
    uint32_t culled_count;  /* nodes_count + culled_count == defined_count */
    unsigned char *kind;    /* enum mr_node_kind */
    uint16_t *op;           /* index in ops[]; 0: not a task */
    uint32_t *key_at;       /* nodes_count + 1 offsets into keys */
    char *keys;
    uint32_t *args_of; /* index in args_at; tasks may share equal arguments */
    uint32_t *args_at; /* args_count + 1 offsets into args */
    unsigned char *args;
    uint32_t args_count;
    uint32_t *input_at;     /* nodes_count + 1 */
    uint32_t *inputs;       /* of a node, by number of the input; each once */
    uint32_t *dependent_at; /* nodes_count + 1 */
    uint32_t *dependents;   /* of a node, ascending */
    mr_graph_hash *hash;    /* NULL: not needed (mr_graph_wants_hashes) */
    uint32_t *option_of;    /* index in options[], MR_NODE_NONE: none; NULL: no node has any */
    struct mr_task_options *options;
    uint32_t options_count;
    uint32_t ops_count;
    struct mr_str *ops;
    uint32_t *targets; /* in the order of the request, each once */
    uint32_t targets_count;
    uint32_t *culled_key_at; /* culled_count + 1 */
    char *culled_keys;
    struct mr_job_options job;

    struct mr_graph_loop *loops;       /* with a condition (graph/loop.h) */
    uint32_t loops_count, slots_count; /* slots: the tasks of all loops' bodies */
    uint32_t *slot_of;  /* the slot of a node, MR_NODE_NONE: none; NULL: there is no loop */
    uint32_t *round_of; /* the round of a node with a slot */

    struct mr_text_arena text; /* options[], ops[] and job point into it */
    struct mr_index by_key;    /* nodes, then culled keys; made by the first mr_graph_find */
    bool has_by_key;
};

void mr_graph_free(struct mr_graph **g);

/* Texts are lent until the graph is freed. */
struct mr_str mr_graph_key(const struct mr_graph *g, uint32_t node);
struct mr_str mr_graph_op(const struct mr_graph *g, uint32_t node); /* empty: not a task */
bool mr_graph_is_pure(const struct mr_graph *g, uint32_t node);
mr_object_id mr_graph_object(const struct mr_graph *g, uint32_t node); /* of kind OBJECT */
struct mr_str mr_graph_text(const struct mr_graph *g, uint32_t node);  /* of kind NAME, ALIAS */

/* The hash of a NAME or an ALIAS is at first a hash of its text. When the caller has resolved it,
 * it sets the hash of the definition, and then recomputes the hashes of all tasks. */
void mr_graph_set_hash(struct mr_graph *g, uint32_t node, mr_graph_hash hash);
void mr_graph_rehash(struct mr_graph *g);
/* Are definitions compared with other jobs'? Other graphs have no hashes before mr_graph_rehash. */
bool mr_graph_wants_hashes(const struct mr_graph *g);
size_t mr_graph_bytes_held(const struct mr_graph *g);
void mr_graph_check(const struct mr_graph *g); /* asserts every invariant, O(nodes + inputs) */
void mr_graph_link(struct mr_graph *g);        /* for builders: computes dependents from inputs */

static inline bool mr_graph_hash_eq(mr_graph_hash a, mr_graph_hash b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

#include "graph/node.h" /* arguments, inputs, dependents, options of a node */
