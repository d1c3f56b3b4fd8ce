/* The operators of the cluster with their documentation: the built-in operators, and foreign
 * operators, which only workers implement. The parser threads are told the names of new foreign
 * operators. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_page;
struct mr_registry;

struct mr_catalogue *mr_catalogue_new(void);
void mr_catalogue_free(struct mr_catalogue **c);
void mr_catalogue_add(struct mr_shell *sh, const struct mr_ws_operator *op);

/* Returns a page of the operators, sorted by name, in the scratch arena. `name`: the only operator
 * to return; empty: all operators. */
Millrace__V1__OpInfo **mr_catalogue_list(
    struct mr_shell *sh, struct mr_str name, const struct mr_page *page, size_t *count, bool *more);
