/* What the parts around the cores cost in virtual time. The costs are measured from the times of a
 * recorded job, so they are those of its machines and its load. */
#pragma once

#include "virtual/whatif/job.h"

struct mr_whatif_line { /* a time that grows with a count: first_ns + count * each_ns */
    double first_ns, each_ns;
};

struct mr_whatif_costs {
    mr_duration begin_ns; /* from the submission until the scheduler has a graph to work on */
    mr_duration end_ns;   /* from the last completion until a client can know the job's end */
    /* the scheduler's thread is busy for this time for each completion and for each sent task */
    double decide_ns;
    /* a message with tasks, from the scheduler's decision until the worker's thread has it, if the
     * thread is not busy */
    double send_ns;
    /* completions, from the end of the last task until the scheduler has them; by tasks */
    struct mr_whatif_line report;
    /* from the arrival of a message until an idle executor begins one of its tasks; by tasks. The
     * worker's thread is busy for the part that grows with the tasks. */
    struct mr_whatif_line handoff;
    double local_ns; /* from the end of a task until an executor begins one that waited for it */
    double gap_ns;   /* between two tasks of an executor that has the next one already */
    /* an input from another node, by bytes */
    struct mr_whatif_line transfer;
    double scale; /* factor by which mr_whatif_calibrate has changed the costs */
    /* numbers of samples; 0: the cost is a constant of this program */
    uint32_t decide_samples, send_samples, report_samples, handoff_samples, local_samples,
        gap_samples, transfer_samples;
};

void mr_whatif_costs_measure(const struct mr_whatif_job *job, struct mr_whatif_costs *out);
