/* A job's JSON that is parsed once and becomes many graphs, each with parameters of its own. From
 * the second on, what is equal in them is kept as a graph (graph/json_kept.h). */
#pragma once

#include "graph/json/json.h"

struct mr_json_template;

/* The text is copied. It is not checked to be a job: mr_json_template_graph does that. */
int mr_json_template_new(struct mr_str text, struct mr_json_template **out, struct mr_error *e);
void mr_json_template_free(struct mr_json_template **t);

/* `given`: empty, or {"params": {…}}: values for parameters of the template, of the kind of their
 * defaults (a default of null takes any). `shape` (NULL: not asked for): equal for graphs of equal
 * nodes and edges. */
int mr_json_template_graph(struct mr_json_template *t, struct mr_str given,
    const struct mr_graph_catalogue *catalogue, struct mr_graph **out, uint64_t *shape,
    struct mr_error *e);
/* What is kept besides the text, and to let go of it. */
size_t mr_json_template_kept_bytes(const struct mr_json_template *t);
void mr_json_template_drop(struct mr_json_template *t);
/* Names of its parameters, one a line. */
void mr_json_template_params(const struct mr_json_template *t, struct mr_buf *out);
