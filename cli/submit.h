#pragma once

#include "cli/client.h"

/* POST /v1/jobs; the answer's document has the job's id. `request_id` may be NULL. */
int mr_client_submit(const struct mr_client *c, struct mr_str body, const char *request_id,
    yyjson_doc **doc, struct mr_error *e);
