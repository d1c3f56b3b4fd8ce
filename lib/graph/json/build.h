/* Builds graphs from a parsed JSON document: many from one document, each with its own values for
 * the job's parameters. Only for templates (graph/template/); other callers use json.h. */
#pragma once

#include "graph/build/build.h"
#include "graph/json/parsed.h"

struct mr_json_source {
    yyjson_val *root; /* root of the job's document */
    /* An object with values of parameters, which replace the defaults. NULL: no values. */
    yyjson_val *given;
    bool is_any_kind; /* a given value may have another type than the default */
    /* Bytes of the document and of the given values; a bound for the graph depends on the sum. */
    size_t text_bytes;
};

int mr_json_build(const struct mr_json_source *from, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);
