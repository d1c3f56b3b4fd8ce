/* What a graph names outside itself: stored objects, names, and results that exist already. */
#pragma once

#include "services/scheduler/submit/parse.h"
#include "store/meta/directory.h"

/* Fills in what stands for nodes of the graph, in the order of nodes. A name must exist; the name
 * under which a task persists may exist already, made by the same definition: then the task need
 * not run. Waits for Redis, once for all names and once for all results. */
int mr_parser_resolve_names(
    struct mr_directory *directory, struct mr_parser_result *d, struct mr_error *e);
