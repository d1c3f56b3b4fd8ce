/* Resolves what a graph refers to in the object stores: objects, names of objects, and results that
 * an earlier job persisted. */
#pragma once

#include "services/scheduler/submit/parse.h"
#include "store/meta/directory.h"

/* Fills in `resolved`, in the order of nodes. If a node refers to an object by a name, this name
 * must exist. A task need not run if the name under which it persists its result exists, and the
 * same definition made that object. Waits for Redis, once for all names and once for all
 * results. */
int mr_parser_resolve_names(
    struct mr_directory *directory, struct mr_parser_result *d, struct mr_error *e);
