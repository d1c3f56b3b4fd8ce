/* Builds the jobs of a session in the scheduler's JSON notation: the graph that prepares the data,
 * the same graph when it feeds a queue, and the roles as tasks. All have the namespace
 * `training-<session>`, so a role refers to the data by key. The functions do no I/O. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

#define MR_ROLE_JOB_BYTES_MAX ((size_t)64 << 20)
#define MR_ROLE_JOB_ROLES_MAX 1024 /* limit of the roles of one kind */

struct mr_role_job_spec {
    /* the document that describes the session, with defaults and parameters filled in
     * (mr_training_document_json) */
    struct mr_str document;
    struct mr_str session; /* the session's id, such as "t1-7" */
    struct mr_str trainer; /* address that the roles call */
    /* Names of the cluster's workers. Roles are assigned to them in turn. */
    const struct mr_str *workers;
    uint32_t workers_count; /* 0: the scheduler chooses the workers */
};

/* Each function appends the body of a request Jobs.Submit to `out`. MR_EINVAL: a field of
 * spec->document is wrong, and `e` names the field. */
int mr_role_job_graph(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e);
/* Makes the job of the graph's second run, which fills the queue while the session trains. */
int mr_role_job_feed(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e);
int mr_role_job_roles(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e);
