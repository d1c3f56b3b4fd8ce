/* The classes of a slot's time. At each moment a slot is in exactly one class. */
#pragma once

#include <stdbool.h>

enum mr_account_class {
    /* The slot runs a task. */
    MR_ACCOUNT_COMPUTE,   /* the operator uses the processor */
    MR_ACCOUNT_PREEMPTED, /* the task could run, but the kernel ran another thread */
    MR_ACCOUNT_BLOCKED,   /* the operator waits: page faults, locks, files, sleep */
    MR_ACCOUNT_INPUT,     /* inputs are mapped or decoded */
    MR_ACCOUNT_OUTPUT,    /* the result is encoded or stored */
    MR_ACCOUNT_FEED,      /* a training role fetches batches */
    MR_ACCOUNT_PULL,      /* a training role fetches parameters */
    MR_ACCOUNT_PUSH,      /* a training role sends gradients */
    MR_ACCOUNT_WAIT,      /* a training role waits for other roles */

    /* The slot runs no task, because … */
    MR_ACCOUNT_NO_WORK, /* no client has submitted any work */
    /* every job is over, and the next job comes from a client that had submitted one before */
    MR_ACCOUNT_CLIENT,
    MR_ACCOUNT_DEPENDENCY, /* the next task needs the result of a task that runs */
    /* The next task needs the result of a task T. T stands in the queue of another slot, or T runs.
     * If T runs: this slot's last task had T's job and operator and ended after T had begun. */
    MR_ACCOUNT_IMBALANCE,
    MR_ACCOUNT_REPORT,   /* a completion is on its way from a worker to the scheduler */
    MR_ACCOUNT_DECIDE,   /* a task is ready, and the scheduler has not placed it yet */
    MR_ACCOUNT_SEND,     /* a task is on its way from the scheduler to the worker */
    MR_ACCOUNT_HANDOFF,  /* the worker has all that the task needs, and wakes an executor */
    MR_ACCOUNT_TRANSFER, /* an input comes from another worker or node */
    /* not so: the slot runs a task, which waits until an input is read back from disk */
    MR_ACCOUNT_RESTORE,
    /* memory is short: the scheduler holds tasks back, or a task that runs waits for room in the
     * store for its result */
    MR_ACCOUNT_MEMORY,
    MR_ACCOUNT_JOURNAL,    /* the job waits until Redis has its record */
    MR_ACCOUNT_RESTRICTED, /* no worker that may run the task has what the task asks for */
    MR_ACCOUNT_START_UP,   /* the worker's process starts */
    MR_ACCOUNT_STOPPED,    /* the worker was lost, paused or drained */
    MR_ACCOUNT_UNKNOWN,    /* the trace lacks the times that would tell */
    MR_ACCOUNT_CLASSES,
};

/* Returns the name of a class, as it stands in answers of the API: "compute", "no_work" … */
const char *mr_account_class_name(enum mr_account_class class);
/* Returns whether a slot of this class runs a task. */
bool mr_account_class_is_busy(enum mr_account_class class);
