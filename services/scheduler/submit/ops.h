/* The operators that a graph may name, as one thread knows them: the built-in operators, and
 * foreign operators, which workers implement. Of foreign operators only the names are known
 * here. */
#pragma once

#include "graph/build/builder.h"
#include "ops/registry/registry.h"

#define MR_FOREIGN_OPS_MAX 65536

struct mr_parser_ops { /* the operators of one thread, which owns them */
    struct mr_registry *registry;
    struct mr_graph_catalogue builtin;
    char **foreign; /* sorted */
    uint32_t foreign_count;
    bool has_missed; /* the last graph named an unknown operator */
};

void mr_parser_ops_init(struct mr_parser_ops *o);
void mr_parser_ops_fini(struct mr_parser_ops *o);
/* Adds a foreign operator. Takes the name, and frees it if it is known already. */
void mr_parser_ops_add(struct mr_parser_ops *o, char *name);
/* Returns the catalogue for the graph builder. A look-up in it that fails sets has_missed. */
struct mr_graph_catalogue mr_parser_ops_catalogue(struct mr_parser_ops *const *o);
