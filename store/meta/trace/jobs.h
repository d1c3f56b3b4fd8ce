/* Private to log.c: the jobs with traces, by id, with their counts. log.h explains blocks and
 * entries. */
#pragma once

#include "store/meta/trace/parts.h"

struct mr_trace_job {
    mr_job_id id;
    struct mr_trace_counts counts;
    uint32_t waiting; /* number of the job's queued entries that have a block of spans */
    /* True: an entry without a block is queued, and will carry the job's counts. */
    bool counts_waiting;
    bool told; /* Redis has the job's counts */
    /* Used while the counts of all jobs are read from Redis again. True: Redis has this job. */
    bool seen;
};

struct mr_trace_jobs {
    /* Jobs, ascending by id. Pointers are valid until the next add or remove. */
    struct mr_trace_job *items;
    uint32_t count, room;
};

struct mr_trace_job *mr_trace_jobs_find(const struct mr_trace_jobs *t, mr_job_id id);
/* Adds the job, or returns the existing one. */
struct mr_trace_job *mr_trace_jobs_add(struct mr_trace_jobs *t, mr_job_id id);
void mr_trace_jobs_remove(struct mr_trace_jobs *t, struct mr_trace_job *j);
/* Stores the ids of the segments of samples, or of those of events, ascending, at most `max`.
 * Returns how many segments there are. */
uint32_t mr_trace_jobs_segments(
    const struct mr_trace_jobs *t, bool samples, mr_job_id *out, uint32_t max);
void mr_trace_jobs_fini(struct mr_trace_jobs *t);
