/* What a template keeps of its last graphs, so that the next one need not be read from its text. A
 * parameter that only stands as a whole argument, or in one, changes no key, no edge and no count:
 * a graph with markers in its places is kept, and an instance is a copy of its columns with values
 * in place of the markers. Which parameters those are is found by trying: what a graph with markers
 * is, but for the markers, must be what the graph with values was. */
#pragma once

#include "graph/json/internal.h"

#define MR_JSON_KEPT_PARAMS_MAX 64

struct mr_json_kept;

/* `root`: of the template, as long as this lives. NULL: nothing of it can be kept. */
struct mr_json_kept *mr_json_kept_new(yyjson_val *root);
void mr_json_kept_free(struct mr_json_kept **k);
size_t mr_json_kept_bytes(const struct mr_json_kept *k);
void mr_json_kept_drop(struct mr_json_kept *k); /* what it keeps; it will keep anew */

/* The instance with these parameters (an object, or NULL), or NULL: it is to be read. */
struct mr_graph *mr_json_kept_graph(struct mr_json_kept *k, yyjson_val *given, uint64_t *shape);
/* That one was read: from the second on of a kind, it is kept. */
void mr_json_kept_learn(struct mr_json_kept *k, yyjson_val *given, const struct mr_graph *g,
    size_t text_bytes, const struct mr_graph_catalogue *catalogue);
