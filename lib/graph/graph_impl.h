/* What the files of this folder do to a graph that is being made. */
#pragma once

#include "graph/graph.h"

/* Computes dependents from inputs. */
void mr_graph_link(struct mr_graph *g);

bool mr_op_name_is_valid(struct mr_str op);
