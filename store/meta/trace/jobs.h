/* The jobs that a log of traces knows, by id, with their counts. For log.c's own files only.
 */
#pragma once

#include "store/meta/trace/parts.h"

struct mr_trace_job {
    mr_job_id id;
    struct mr_trace_counts counts;
    uint32_t waiting;    /* entries with a block */
    bool counts_waiting; /* an entry without one */
    bool told;           /* Redis has had its counts */
    bool seen;           /* by the load that is under way */
};

struct mr_trace_jobs {
    struct mr_trace_job *items; /* ascending by id; pointers hold until the next add or remove */
    uint32_t count, room;
};

struct mr_trace_job *mr_trace_jobs_find(const struct mr_trace_jobs *t, mr_job_id id);
struct mr_trace_job *mr_trace_jobs_add(struct mr_trace_jobs *t, mr_job_id id); /* or finds it */
void mr_trace_jobs_remove(struct mr_trace_jobs *t, struct mr_trace_job *j);
void mr_trace_jobs_fini(struct mr_trace_jobs *t);
