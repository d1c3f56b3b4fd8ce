/* Reads a finished job for `millrace whatif`: its spans, its graph and its profile. They come from
 * the cluster, or with --offline from Redis and the scheduler's files. */
#pragma once

#include "cli/client/client.h"
#include "cli/trace/offline.h"
#include "cli/trace/recorded.h"
#include "virtual/whatif/whatif.h"

struct mr_whatif_reading {
    struct mr_whatif_job job; /* its arrays are those of `recorded` */
    struct mr_recorded recorded;
    struct mr_index keys; /* online: nodes of the graph by key */
    yyjson_doc *graph;    /* online: the answer of the API's method Graph; `key` points into it */
    struct mr_str *key;
    yyjson_doc *profile; /* the answer of the API's method Profile */
    uint64_t not_recorded;
    uint64_t restricted; /* tasks that name workers or ask for resources */
};

int mr_whatif_read(const struct mr_client_options *client, const struct mr_offline_options *offline,
    const char *job, struct mr_whatif_reading *out, struct mr_error *e);
void mr_whatif_reading_fini(struct mr_whatif_reading *r);
