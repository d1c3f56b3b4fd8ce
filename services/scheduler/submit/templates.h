/* Templates: stored in Redis, and a cache of parsed ones. Owned by one parser thread. */
#pragma once

#include "base/buf.h"
#include "graph/template/template.h"
#include "store/meta/redis.h"

struct mr_templates;

/* A template. The texts are borrowed: they are valid until the next call of a function of this
 * header, or in mr_templates_list until `fn` returns. */
struct mr_template_info {
    struct mr_str name;
    uint64_t installed_ns;
    uint64_t nbytes;
    uint64_t tasks;
    struct mr_str params; /* names of the parameters, one a line */
    struct mr_str json;
};

/* Borrows `redis`. */
struct mr_templates *mr_templates_new(struct mr_redis *redis);
void mr_templates_free(struct mr_templates **t);

/* Installs a template. If `name` is empty, the template gets the name in its text. MR_EEXIST: a
 * template of this name has another text, and `replace` is false. */
int mr_templates_install(struct mr_templates *t, struct mr_str name, struct mr_str text,
    bool replace, const struct mr_graph_catalogue *catalogue, struct mr_template_info *out,
    struct mr_error *e);
int mr_templates_get(struct mr_templates *t, struct mr_str name,
    const struct mr_graph_catalogue *catalogue, struct mr_template_info *out, struct mr_error *e);
/* Calls `fn` for each template, in the order of names. */
int mr_templates_list(struct mr_templates *t,
    void (*fn)(void *ctx, const struct mr_template_info *info), void *ctx, struct mr_error *e);
int mr_templates_delete(struct mr_templates *t, struct mr_str name, struct mr_error *e);
/* Makes the template's graph, with the values `given` for its parameters
 * (graph/template/template.h). `*id` becomes a number for the pair of the template's text and the
 * graph's shape; no other pair has the same number. */
int mr_templates_graph(struct mr_templates *t, struct mr_str name, struct mr_str given,
    const struct mr_graph_catalogue *catalogue, struct mr_graph **out, uint64_t *id,
    struct mr_error *e);
