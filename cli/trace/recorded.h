/* A finished job as predictions need it (virtual/whatif/job.h), made from its graph and its spans.
 * A task gets the times of its last attempt that succeeded. */
#pragma once

#include "services/scheduler/history/history.h"
#include "virtual/whatif/job.h"

struct mr_recorded {
    struct mr_whatif_job job;           /* its arrays belong to this struct */
    struct mr_trace_names ops, workers; /* a task has indexes in these */
    uint32_t *inputs, *node;
    uint32_t inputs_room;
    uint64_t spans_count; /* spans that mr_recorded_spans has read */
    uint64_t restricted;  /* tasks that name workers or ask for resources */
};

struct mr_recorded_times { /* of the job, as its profile has them */
    uint32_t slots;
    uint32_t processors; /* of each node; 0: not known */
    mr_time submitted, over;
};

void mr_recorded_init(struct mr_recorded *r);
void mr_recorded_fini(struct mr_recorded *r);

/* Sets the number of tasks, none of which has run. To be called once, before the functions below.
 */
void mr_recorded_tasks(struct mr_recorded *r, uint32_t count);
/* Adds an input of a task. All inputs of one task are added one after another. */
void mr_recorded_input(struct mr_recorded *r, uint32_t task, uint32_t input);
/* Takes a span. Its op_id and worker_id are indexes in r->ops and r->workers. */
void mr_recorded_span(struct mr_recorded *r, const struct mr_trace_span *s);

/* Reads the tasks and their inputs from the graph in the journal. */
int mr_recorded_graph(
    struct mr_recorded *r, struct mr_history *h, mr_job_id job, struct mr_error *e);
/* Reads the spans. May be called again, when more spans have been written. */
int mr_recorded_spans(struct mr_recorded *r, struct mr_history *h, mr_job_id job,
    uint64_t *not_recorded, struct mr_error *e);

/* Completes r->job after all inputs and spans. MR_ENOENT: no task of the job has run. */
int mr_recorded_finish(
    struct mr_recorded *r, const struct mr_recorded_times *times, struct mr_error *e);
