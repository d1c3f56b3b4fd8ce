/* Resolves what a graph refers to in the object stores: objects, names of objects, and results that
 * an earlier job persisted. */
#pragma once

#include "services/scheduler/submit/parse.h"
#include "store/meta/directory.h"

/* Fills in d->resolved: the objects of nodes, in the order of nodes. If a node refers to an object
 * by a name, this name must exist. A task with a persist_name need not run if a persisted object
 * has this name already, and the definition hash of that object equals the task's. Waits for Redis,
 * once for all names and once for all results. */
int mr_parser_resolve_names(
    struct mr_directory *directory, struct mr_parser_result *d, struct mr_error *e);
