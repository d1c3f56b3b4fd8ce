/* How long the parts around the cores of scheduler and workers take in virtual time. The costs are
 * measured from the times of a recorded job, so they hold for that job's machines and load. */
#pragma once

#include "virtual/whatif/job.h"

struct mr_whatif_line { /* a time that grows with a count: first_ns + count * each_ns */
    double first_ns, each_ns;
};

struct mr_whatif_costs {
    mr_duration begin_ns; /* from the submission until the scheduler has a graph to work on */
    mr_duration end_ns;   /* from the last completion until a client can know the job's end */
    /* work of the scheduler's thread for a task: half when the scheduler sends the task, half when
     * it takes the completion */
    double decide_ns;
    /* from the scheduler's decision until the worker's thread has the message with the tasks, if
     * this thread is not busy */
    double send_ns;
    /* from the end of the last task in a report until the scheduler has it; `count`: tasks. The
     * part that grows with `count` is work of the worker's thread. */
    struct mr_whatif_line report;
    /* from the arrival of a message until an idle executor begins one of its tasks; `count`: its
     * tasks. The part that grows with `count` is work of the worker's thread. */
    struct mr_whatif_line handoff;
    /* from the end of a task until an idle executor begins a task that waited for its value */
    double local_ns;
    /* time to wake an idle slot that the recorded workers have learned. They give a slot of its own
     * only to tasks that take a few times as long. Not scaled. */
    double learned_ns;
    double gap_ns; /* work of an executor from the end of a task until it begins the next one */
    /* fetching an input from another node; `count`: bytes */
    struct mr_whatif_line transfer;
    /* What mr_whatif_calibrate has found: a factor by which it has changed the costs, and the share
     * of a node's processors that the replayed threads get. Redis, the gateway, threads for I/O and
     * other programs have the rest. */
    double scale, share;
    /* numbers of samples; 0: the cost is a constant of costs.c */
    uint32_t decide_samples, send_samples, report_samples, handoff_samples, local_samples,
        gap_samples, transfer_samples;
};

void mr_whatif_costs_measure(const struct mr_whatif_job *job, struct mr_whatif_costs *out);
