/* A cache of a template's graphs, so that not every instance is built from the document. A
 * parameter that is only used as an argument, or inside one, changes no key, no edge and no count.
 * The cache keeps a graph with markers as the values of such parameters. An instance is then a copy
 * of the graph with values in place of the markers. The cache finds these parameters by trial:
 * apart from the markers, the graph with markers must equal the graph with values. */
#pragma once

#include "graph/json/build.h"

#define MR_INSTANCE_PARAMS_MAX 64

struct mr_instance_cache;

/* Returns a cache for the template whose document is `root`. NULL: the template cannot be cached.
 * The caller keeps `root` alive until mr_instance_cache_free. */
struct mr_instance_cache *mr_instance_cache_new(yyjson_val *root);
void mr_instance_cache_free(struct mr_instance_cache **k);
size_t mr_instance_cache_bytes(const struct mr_instance_cache *k);
void mr_instance_cache_drop(struct mr_instance_cache *k); /* frees all cached graphs */

/* Returns the instance with these parameters (an object, or NULL for the defaults), and sets
 * `*shape` to its hash (mr_graph_shape). NULL: the caller has to build the graph from the
 * document. */
struct mr_graph *mr_instance_cache_get(
    struct mr_instance_cache *k, yyjson_val *given, uint64_t *shape);
/* To be called when the caller has built `g` from the document. The first call keeps nothing. The
 * second call finds which parameters can have markers, and keeps a graph. A later call compares the
 * parameters that cannot have markers, and keeps a graph if the previous call had the same values
 * for them. */
void mr_instance_cache_learn(struct mr_instance_cache *k, yyjson_val *given,
    const struct mr_graph *g, size_t text_bytes, const struct mr_graph_catalogue *catalogue);
