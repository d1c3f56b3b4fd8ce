/* The jobs of a session as the scheduler reads them: the graph that prepares its data, the same
 * graph as it feeds a queue, and the tasks that are its roles. Knows the notations of both
 * documents; asks nobody and decides nothing. All have the namespace `training-<session>`, so a
 * role refers to the data by key. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

#define MR_ROLE_JOB_BYTES_MAX ((size_t)64 << 20)
#define MR_ROLE_JOB_ROLES_MAX 1024 /* of one kind */

struct mr_role_job_spec {
    struct mr_str document; /* of the session, with defaults filled in and parameters put in */
    struct mr_str session;  /* "t1-7" */
    struct mr_str trainer;  /* address that the roles call */
    const struct mr_str *workers; /* names in the cluster: roles go round them */
    uint32_t workers_count;       /* 0: the scheduler chooses */
};

/* The body of Jobs.Submit, appended. MR_EINVAL names the field of the document that is wrong. */
int mr_role_job_graph(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e);
/* Training from a queue beside a graph: the graph, which fills the queue while the session trains.
 */
int mr_role_job_feed(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e);
int mr_role_job_roles(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e);
