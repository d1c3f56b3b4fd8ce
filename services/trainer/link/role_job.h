/* Builds the jobs of a session in the scheduler's notation: the graph that prepares the data, the
 * same graph when it feeds a queue, and the roles as tasks. All have the namespace
 * `training-<session>`, so a role refers to the data by key. Pure. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

#define MR_ROLE_JOB_BYTES_MAX ((size_t)64 << 20)
#define MR_ROLE_JOB_ROLES_MAX 1024 /* roles of one kind */

struct mr_role_job_spec {
    struct mr_str document; /* with defaults and parameters (mr_training_document_json) */
    struct mr_str session;  /* "t1-7" */
    struct mr_str trainer;  /* address that the roles call */
    /* Names of the cluster's workers, to which roles are assigned in turn. */
    const struct mr_str *workers;
    uint32_t workers_count; /* 0: the scheduler chooses */
};

/* Each function appends the body of a Jobs.Submit. MR_EINVAL: `e` names the field of the
 * document. */
int mr_role_job_graph(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e);
/* The graph once more, when it fills the queue while the session trains. */
int mr_role_job_feed(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e);
int mr_role_job_roles(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e);
