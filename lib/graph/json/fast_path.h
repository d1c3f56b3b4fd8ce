/* The fast path for slices of simple entries: tasks with numbers, texts and references as
 * arguments, and values that are numbers. Threads read such slices into columns; the columns are
 * then added to the builder in the order of the text. Private to lib/graph/json. */
#pragma once

#include "graph/json/entries.h"

struct mr_json_fast_path;

/* Only for a text without parameters. */
struct mr_json_fast_path *mr_json_fast_path_new(const struct mr_json *j);
void mr_json_fast_path_free(struct mr_json_fast_path **p);
uint32_t mr_json_fast_path_room(
    const struct mr_json_fast_path *p); /* slices that one call may read */
/* Reads slices whose keys have nodes. `has_all`: the keys of all other slices have nodes, too.
 * Otherwise a slice that refers to an unknown key, or in dsk has any unknown text, is not simple.
 */
void mr_json_fast_path_read(
    struct mr_json_fast_path *p, const struct mr_json_piece *pieces, uint32_t count, bool has_all);
/* The same before all keys are known, while one thread first calls `other`. */
void mr_json_fast_path_read_beside(struct mr_json_fast_path *p, const struct mr_json_piece *pieces,
    uint32_t count, void (*other)(void *ctx), void *ctx);
/* The operator because of which a slice is not simple: no earlier task has it. False: there is
 * another reason. */
bool mr_json_fast_path_misses(const struct mr_json_fast_path *p, uint32_t slice, struct mr_str *op);
/* Defines the nodes of a slice. *taken false: the slice is not simple, and nothing was done. */
int mr_json_fast_path_add(struct mr_json_fast_path *p, uint32_t slice, bool *taken);
