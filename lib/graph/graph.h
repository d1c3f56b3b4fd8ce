/* A job's graph in memory: columns over its nodes in canonical order. It has no workers, states or
 * times. A graph comes from a builder (graph/build/builder.h), from JSON (graph/json/json.h) or
 * from bytes (graph/bytes/bytes.h). Afterwards only the lazy index of keys and the hashes change.
 *
 * Canonical order: it has only the nodes that the targets need; the other nodes are culled. Every
 * node comes after its inputs. The order is depth first, so that values are released early. */
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
} mr_graph_hash; /* of a node's definition: operator, arguments, inputs' definitions, purity */

enum { /* bits of `given`: the options that the task sets; all other options are zero */
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
    uint32_t given; /* the options that are set: bits MR_OPTION_… */
    uint32_t retries;
    int32_t priority; /* -100 to 100 (MR_PRIORITY_MAX), like a job's priority; larger runs sooner */
    mr_duration timeout; /* in ns; 0: no timeout */
    bool allow_other_workers;
    bool pure; /* valid with MR_OPTION_PURE; otherwise mr_graph_is_pure has the default */
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
    struct mr_str name_space; /* empty: the job has a namespace of its own */
    struct mr_str request_id; /* empty: no request id */
    struct mr_str params;     /* MessagePack: a map of parameters and their values; empty: none */
    const struct mr_graph_label *labels;
    uint32_t labels_count;
    int32_t priority;
    mr_duration deadline; /* ns after the job was accepted; 0: no deadline */
    enum mr_on_error on_error;
    bool unfused; /* "fuse": false: each task is run and reported on its own */
};

struct mr_graph_loop;

struct mr_graph {
    uint32_t nodes_count;
    uint32_t tasks_count;   /* nodes of kind TASK */
    uint32_t defined_count; /* nodes that were submitted, before culling */
    uint32_t culled_count;  /* nodes_count + culled_count == defined_count */
    unsigned char *kind;    /* by node: enum mr_node_kind */
    uint16_t *op;           /* by node: index in ops[]; 0 for a node that is not a task */
    uint32_t *key_at;       /* offsets into keys; nodes_count + 1 of them */
    char *keys;
    uint32_t *args_of; /* by node: index in args_at; nodes may share equal arguments */
    uint32_t *args_at; /* offsets into args; args_count + 1 of them */
    unsigned char *args;
    uint32_t args_count;
    uint32_t *input_at;     /* offsets into inputs; nodes_count + 1 of them */
    uint32_t *inputs;       /* the inputs of each node, as its arguments number them; none twice */
    uint32_t *dependent_at; /* offsets into dependents; nodes_count + 1 of them */
    uint32_t *dependents;   /* the dependents of each node, ascending */
    mr_graph_hash *hash;    /* by node; NULL: hashes are not needed (mr_graph_wants_hashes) */
    uint32_t *option_of;    /* by node: index in options[], or MR_NODE_NONE; NULL: no options */
    struct mr_task_options *options;
    uint32_t options_count;
    uint32_t ops_count;
    struct mr_str *ops;
    uint32_t *targets; /* in the order of the request; no node twice */
    uint32_t targets_count;
    uint32_t *culled_key_at; /* offsets into culled_keys; culled_count + 1 of them */
    char *culled_keys;
    struct mr_job_options job;

    struct mr_graph_loop *loops;       /* loops with a condition (graph/loop.h) */
    uint32_t loops_count, slots_count; /* slots_count: tasks in the bodies of all loops */
    uint32_t *slot_of;  /* by node: its slot, or MR_NODE_NONE; NULL: there is no loop */
    uint32_t *round_of; /* by node: its round of the loop (loop.h); only for nodes with a slot */

    struct mr_text_arena text; /* memory of the texts in options[], ops[] and job */
    struct mr_index by_key;    /* kept nodes, then culled keys; made by the first mr_graph_find */
    bool has_by_key;
};

void mr_graph_free(struct mr_graph **g);

/* The returned texts are lent until the graph is freed. */
struct mr_str mr_graph_key(const struct mr_graph *g, uint32_t node);
struct mr_str mr_graph_op(const struct mr_graph *g, uint32_t node); /* empty: not a task */
bool mr_graph_is_pure(const struct mr_graph *g, uint32_t node);
mr_object_id mr_graph_object(const struct mr_graph *g, uint32_t node); /* kind OBJECT only */
struct mr_str mr_graph_text(const struct mr_graph *g, uint32_t node);  /* kinds NAME and ALIAS */

/* mr_graph_set_hash sets the hash of a node that is not a task. The hash of a NAME is at first a
 * hash of its text; the scheduler sets it to the id of the named object. mr_graph_rehash then
 * recomputes the hashes of all tasks. */
void mr_graph_set_hash(struct mr_graph *g, uint32_t node, mr_graph_hash hash);
void mr_graph_rehash(struct mr_graph *g);
/* True: the job's tasks are compared with those of other jobs by their hashes. Otherwise the graph
 * has no hashes until mr_graph_rehash is called. */
bool mr_graph_wants_hashes(const struct mr_graph *g);
size_t mr_graph_bytes_held(const struct mr_graph *g);
void mr_graph_check(const struct mr_graph *g); /* asserts every invariant in O(nodes + inputs) */
void mr_graph_link(struct mr_graph *g); /* for builders: computes the dependents from the inputs */

static inline bool mr_graph_hash_eq(mr_graph_hash a, mr_graph_hash b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

#include "graph/node.h" /* for the arguments, inputs, dependents and options of a node */
