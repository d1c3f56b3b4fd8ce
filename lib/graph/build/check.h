/* Checks the tasks of a builder: whether their operators exist, and whether the arguments fit the
 * parameters. */
#pragma once

#include "graph/build/builder.h"

int mr_builder_check(
    const struct mr_builder *b, const struct mr_graph_catalogue *c, struct mr_error *e);
