/* A job's JSON that is parsed once and becomes many graphs with different parameters. From the
 * second graph on, instance_cache.h avoids building the equal parts again. */
#pragma once

#include "graph/json/json.h"

struct mr_json_template;

/* Copies the text and parses it. Only mr_json_template_graph checks whether the text is a valid
 * job. */
int mr_json_template_new(struct mr_str text, struct mr_json_template **out, struct mr_error *e);
void mr_json_template_free(struct mr_json_template **t);

/* Makes a graph. `given` is empty or {"params": {…}} with values for the template's parameters. A
 * value has the type of the parameter's default; a default of null allows any type. `shape` (may be
 * NULL) is equal for graphs with equal nodes and edges. */
int mr_json_template_graph(struct mr_json_template *t, struct mr_str given,
    const struct mr_graph_catalogue *catalogue, struct mr_graph **out, uint64_t *shape,
    struct mr_error *e);
/* mr_json_template_cached_bytes returns the size of the cached graphs, without the JSON of the
 * template. mr_json_template_drop empties the cache. */
size_t mr_json_template_cached_bytes(const struct mr_json_template *t);
void mr_json_template_drop(struct mr_json_template *t);
/* Appends the names of the parameters, each followed by a newline. */
void mr_json_template_params(const struct mr_json_template *t, struct mr_buf *out);
