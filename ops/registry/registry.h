/* All operators of a process by name: the built-in operators and those of plug-ins. One thread
 * fills the registry at start; any thread may read it afterwards. The registry holds descriptors
 * and does not know how a call runs. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "graph/build/builder.h"
#include "ops/op.h"
#include "store/object/tensor.h"

struct mr_registry;

struct mr_registry *mr_registry_new(void); /* makes a registry with all built-in operators */
void mr_registry_free(struct mr_registry **r);

/* Loads a plug-in and adds its operators. The library stays loaded until the process ends.
 * MR_ENOENT: the library cannot be loaded. MR_EFORMAT: the library is not a plug-in, has another
 * ABI, or has a bad descriptor. MR_EEXIST: the name of an operator is taken. */
int mr_registry_load_plugin(struct mr_registry *r, const char *path, struct mr_error *e);
int mr_registry_add(struct mr_registry *r, const struct mr_op_desc *op, struct mr_error *e);

/* Returns the descriptor with this name, which lives as long as the registry. NULL: no operator has
 * this name. */
const struct mr_op_desc *mr_registry_find(const struct mr_registry *r, struct mr_str name);
uint32_t mr_registry_count(const struct mr_registry *r);
const struct mr_op_desc *mr_registry_at(
    const struct mr_registry *r, uint32_t i); /* operators are sorted by name */

/* Returns the view of the registry that the check of a graph uses; it lives as long as the
 * registry. */
struct mr_graph_catalogue mr_registry_catalogue(const struct mr_registry *r);
