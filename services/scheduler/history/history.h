/* Reads a job without the scheduler: its graph from the journal, its trace from Redis and files.
 * Writes nothing, so a scheduler may run meanwhile. */
#pragma once

#include "graph/graph.h"
#include "services/scheduler/history/job_account.h"
#include "services/scheduler/history/timeline_page.h"

struct mr_history;

struct mr_history_config {
    const char *redis;    /* "unix:PATH" or "HOST:PORT" */
    const char *password; /* NULL: none */
    const char *dir;      /* the scheduler's --dir; NULL: trace files are not read */
};

/* Connects to Redis. Fails with MR_EAWAY if Redis does not answer within two seconds. */
int mr_history_open(
    const struct mr_history_config *config, struct mr_history **out, struct mr_error *e);
void mr_history_close(struct mr_history **h);
/* Returns where the traces are. Valid until the close. */
struct mr_trace_source mr_history_source(const struct mr_history *h);

/* Reads the job's graph. MR_ENOENT: the journal has no such job. */
int mr_history_graph(
    struct mr_history *h, mr_job_id job, struct mr_graph **out, struct mr_error *e);
/* Reads the job's spans into `out` and then calls mr_trace_gather_finish(out). The caller has told
 * mr_trace_gather_init(out, …) which spans it wants. `*not_recorded`: number of spans that were
 * dropped. MR_ENOENT: there is no trace of the job. */
int mr_history_trace(struct mr_history *h, mr_job_id job, struct mr_trace_gather *out,
    uint64_t *not_recorded, struct mr_error *e);
struct mr_history_visit { /* as for mr_trace_read */
    mr_trace_wants_fn wants;
    mr_trace_span_fn fn;
    void *ctx;
};

/* Calls visit->fn for each span of the job, in the order in which the scheduler recorded the ends.
 * Memory is bounded by one block. `*not_recorded`: number of spans that were dropped. MR_ENOENT:
 * there is no trace of the job. */
int mr_history_spans(struct mr_history *h, mr_job_id job, const struct mr_history_visit *visit,
    uint64_t *not_recorded, struct mr_error *e);
/* Reads the account of the job. If the job was not over when its last span was written, the account
 * ends there. MR_ENOENT: there is no trace of the job. */
int mr_history_account(struct mr_history *h, mr_job_id job, uint32_t steps_max,
    struct mr_job_account *out, struct mr_error *e);
