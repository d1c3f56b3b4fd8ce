/* Templates, in Redis and parsed in memory. One owner: the intake's thread. */
#pragma once

#include "base/buf.h"
#include "graph/template/template.h"
#include "store/meta/redis.h"

struct mr_templates;

struct mr_template_info { /* texts are loans until the next call */
    struct mr_str name;
    uint64_t installed_ns;
    uint64_t nbytes;
    uint64_t tasks;
    struct mr_str params; /* a name a line */
    struct mr_str json;
};

struct mr_templates *mr_templates_new(struct mr_redis *redis); /* borrowed */
void mr_templates_free(struct mr_templates **t);

/* `name` empty: the name in the text. MR_EEXIST: another text has the name. */
int mr_templates_install(struct mr_templates *t, struct mr_str name, struct mr_str text,
    bool replace, const struct mr_graph_catalogue *catalogue, struct mr_template_info *out,
    struct mr_error *e);
int mr_templates_get(struct mr_templates *t, struct mr_str name,
    const struct mr_graph_catalogue *catalogue, struct mr_template_info *out, struct mr_error *e);
/* Calls `fn` for each, by name. */
int mr_templates_list(struct mr_templates *t,
    void (*fn)(void *ctx, const struct mr_template_info *info), void *ctx, struct mr_error *e);
int mr_templates_delete(struct mr_templates *t, struct mr_str name, struct mr_error *e);
/* The graph of one, and a number that no other text nor shape of it has, with `given`
 * (graph/json_template.h) in the place of its parameters. */
int mr_templates_graph(struct mr_templates *t, struct mr_str name, struct mr_str given,
    const struct mr_graph_catalogue *catalogue, struct mr_graph **out, uint64_t *id,
    struct mr_error *e);
