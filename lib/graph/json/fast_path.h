/* The fast path for slices of simple entries: tasks with numbers, texts and references as
 * arguments, and values that are numbers. Threads read such slices into columns; the columns are
 * then added to the builder in the order of the text. Private to lib/graph/json. */
#pragma once

#include "graph/json/entries.h"

struct mr_json_fast_path;

/* Makes a fast path for the entries of the job `j`. The job must have no parameters. */
struct mr_json_fast_path *mr_json_fast_path_new(const struct mr_json *j);
void mr_json_fast_path_free(struct mr_json_fast_path **p);
uint32_t mr_json_fast_path_room(
    const struct mr_json_fast_path *p); /* returns the number of slices that one call may read */
/* Reads slices. The keys of their entries must have nodes already; `has_all` is true if the keys of
 * all other slices have nodes, too. A slice that refers to a key without a node is not simple. In
 * "dsk" (Dask's notation) a text may be a key. With `has_all`, a text that is no key is a literal.
 * Without `has_all` such a text may be a later key, so the slice is not simple. */
void mr_json_fast_path_read(
    struct mr_json_fast_path *p, const struct mr_json_piece *pieces, uint32_t count, bool has_all);
/* The same as mr_json_fast_path_read with `has_all` false. One thread calls `other` before it reads
 * slices. */
void mr_json_fast_path_read_beside(struct mr_json_fast_path *p, const struct mr_json_piece *pieces,
    uint32_t count, void (*other)(void *ctx), void *ctx);
/* True: the slice is not simple because the job's builder does not know the operator `*op` yet.
 * False: the slice is simple, or another reason makes it not simple. */
bool mr_json_fast_path_misses(const struct mr_json_fast_path *p, uint32_t slice, struct mr_str *op);
/* Defines the nodes of a slice and sets `*taken`. `*taken` false: the slice is not simple, and
 * nothing was done. */
int mr_json_fast_path_add(struct mr_json_fast_path *p, uint32_t slice, bool *taken);
