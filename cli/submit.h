/* What commands that submit a file share. */
#pragma once

#include "cli/client/client.h"

#include <stddef.h>

/* POST /v1/jobs; the answer's document has the job's id. `request_id` may be NULL. */
int mr_client_submit(const struct mr_client *c, struct mr_str body, const char *request_id,
    yyjson_doc **doc, struct mr_error *e);

struct mr_submit_options { /* the flags of commands that submit a file; first in their config */
    struct mr_client_options client;
    struct mr_texts set;
    const char *data;
    const char *out;
};

/* Rows for a command's table, the clients' own with them; `out_help` says what is written there. */
#define MR_SUBMIT_OPTIONS(out_help)                                                                \
    MR_CLIENT_OPTIONS,                                                                             \
        {.name = "set",                                                                            \
            .type = MR_OPTION_TEXTS,                                                               \
            .value = "NAME=VALUE",                                                                 \
            .help = "set a parameter of the file",                                                 \
            .at = offsetof(struct mr_submit_options, set)},                                        \
        {.name = "data",                                                                           \
            .type = MR_OPTION_TEXT,                                                                \
            .value = "DIR",                                                                        \
            .help = "the same as --set data=DIR; the cluster's path, unless `up` runs it here",    \
            .at = offsetof(struct mr_submit_options, data)},                                       \
    {                                                                                              \
        .name = "out", .letter = 'o', .type = MR_OPTION_TEXT, .value = "DIR", .help = out_help,    \
        .at = offsetof(struct mr_submit_options, out)                                              \
    }
