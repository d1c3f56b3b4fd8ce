/* The operators of the cluster: the built-in ones, which this program has documented in itself, and
 * those that workers bring. Owned by the core thread; the intake is told of new names. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_page;
struct mr_registry;

struct mr_catalogue *mr_catalogue_new(void);
void mr_catalogue_free(struct mr_catalogue **c);
void mr_catalogue_add(struct mr_shell *sh, const Millrace__V1__OpDescriptor *op);

/* A page of them, sorted by name, as messages in the scratch arena; `name` empty: every one. */
Millrace__V1__OpInfo **mr_catalogue_list(
    struct mr_shell *sh, struct mr_str name, const struct mr_page *page, size_t *count, bool *more);
