/* The ops that a graph may name, as one thread knows them: those built in, and foreign ones, which
 * workers bring and of which only the name is known here. */
#pragma once

#include "graph/build/builder.h"
#include "ops/registry/registry.h"

#define MR_FOREIGN_OPS_MAX 65536

struct mr_parser_ops { /* of one thread */
    struct mr_registry *registry;
    struct mr_graph_catalogue builtin;
    char **foreign; /* sorted */
    uint32_t foreign_count;
    bool has_missed; /* an op of the graph in hand is unknown */
};

void mr_parser_ops_init(struct mr_parser_ops *o);
void mr_parser_ops_fini(struct mr_parser_ops *o);
/* Takes the name, which may be known already. */
void mr_parser_ops_add(struct mr_parser_ops *o, char *name);
/* For the builder; it notes what it misses. */
struct mr_graph_catalogue mr_parser_ops_catalogue(struct mr_parser_ops *const *o);
