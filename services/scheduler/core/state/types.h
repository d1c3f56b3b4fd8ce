/* States of tasks and jobs, types of journal records, and the configuration; shared by the core,
 * the shell and the simulator. */
#pragma once

#include "base/time.h"

enum mr_task_state { /* as TaskState of jobs.proto */
    MR_TASK_NONE,
    MR_TASK_WAITING,
    MR_TASK_READY,
    MR_TASK_RUNNING, /* READY, and sent to a worker */
    MR_TASK_DONE,
    MR_TASK_RELEASED,
    MR_TASK_ERRED,
    MR_TASK_CANCELLED,
    MR_TASK_STATES,
};

enum mr_job_state { /* as JobState of jobs.proto */
    MR_JOB_NONE,
    MR_JOB_PENDING,
    MR_JOB_RUNNING,
    MR_JOB_DONE,
    MR_JOB_FAILED,
    MR_JOB_CANCELLED,
};

enum mr_sched_record {   /* types of journal records; layouts: state/record.c */
    MR_RECORD_EPOCH = 1, /* a scheduler started or raised its epoch */
    MR_RECORD_GRAPH,     /* a piece of a job's graph */
    MR_RECORD_ACCEPTED,  /* the journal has the job's whole graph */
    MR_RECORD_VALUES,    /* values of targets and of impure tasks */
    MR_RECORD_ERRED,     /* a task failed for good */
    MR_RECORD_JOB_STATE, /* a job ended, or was retried */
    MR_RECORD_FORGOTTEN,
    MR_RECORD_WORKER, /* a worker registered */
    MR_RECORD_WORKER_LOST,
    MR_RECORD_LOOP,  /* the progress of a loop, or its last round */
    MR_RECORD_STORE, /* a store registered */
};

struct mr_sched_config {
    /* 1 + the highest epoch in the journal (task/epoch.c); raised above any epoch that workers or
     * stores report */
    uint32_t epoch;
    uint64_t incarnation; /* random; its upper half tags the ids of jobs and workers: base/id.h */
    uint32_t tasks_max;   /* limit of tasks of all jobs, including ended jobs */
    uint32_t jobs_max;
    uint32_t workers_max;
    uint32_t stores_max;    /* limit of store incarnations over the life of the process */
    uint32_t ops_max;       /* limit of operator names */
    uint32_t inline_blocks; /* number of 32-byte blocks in the cache of small values */
    uint32_t failures_max;  /* limit of failed tasks whose error texts are kept */
    /* limit of values that one step looks at when a store or objects are lost */
    uint32_t scan_values;
    /* dispatch pauses while more bytes of the journal than this are unacknowledged */
    uint64_t unacked_bytes_max;
    mr_duration heartbeat;
    mr_duration lease;
    /* estimated run time of the tasks that a worker should have queued, for each of its slots */
    mr_duration queue;
    /* a quarantined long-running task leaves quarantine when it has run for this long */
    mr_duration probation;
    mr_duration keep_jobs; /* ended jobs are forgotten after this; 0: never */
    uint32_t keep_jobs_max;
};

struct mr_sched;
