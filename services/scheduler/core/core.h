/* The scheduler's core: which task runs where, when, and what becomes of its value. A deterministic
 * state machine over dense task numbers; it knows jobs, graphs, workers, values and the journal,
 * and refuses to know sockets, messages, clocks and Redis. The shell feeds it events, performs its
 * effects, and asks the questions below between steps. One owner: the core thread.
 *
 * A task number is dense over all jobs and never leaves the process; outside a task is (job, index,
 * attempt). Two facts are kept apart: what a task is (enum mr_task_state) and where it was sent. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "services/scheduler/core/state/effect.h"
#include "services/scheduler/core/state/event.h"

enum mr_task_state { /* as TaskState of jobs.proto */
    MR_TASK_NONE,
    MR_TASK_WAITING,
    MR_TASK_READY,
    MR_TASK_RUNNING, /* ready, and sent to a worker */
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

enum mr_sched_record {   /* types of journal records; layouts in task/journal.c */
    MR_RECORD_EPOCH = 1, /* a scheduler began here, or took a higher epoch */
    MR_RECORD_GRAPH,     /* a piece of a job's graph */
    MR_RECORD_ACCEPTED,  /* the job's graph is whole */
    MR_RECORD_VALUES,    /* completions of targets and of impure tasks */
    MR_RECORD_ERRED,     /* a task failed for good */
    MR_RECORD_JOB_STATE, /* a job ended, or was retried */
    MR_RECORD_FORGOTTEN,
    MR_RECORD_WORKER, /* an incarnation was given out */
    MR_RECORD_WORKER_LOST,
    MR_RECORD_LOOP,  /* how far a loop is, or where it ended */
    MR_RECORD_STORE, /* a store registered */
};

struct mr_sched_config {
    uint32_t epoch; /* 1 + the highest known to the journal; grows with what others have seen */
    uint64_t incarnation; /* random; its upper half is the tag of ids given out: base/id.h */
    uint32_t tasks_max;   /* over all jobs, ended ones included */
    uint32_t jobs_max;
    uint32_t workers_max;
    uint32_t stores_max;        /* incarnations over the process's life */
    uint32_t ops_max;           /* names */
    uint32_t inline_blocks;     /* 32-byte blocks of the cache of small values */
    uint32_t failures_max;      /* stories of failed tasks that are kept */
    uint32_t scan_values;       /* looked at in one step when a store, or objects, are lost */
    uint64_t unacked_bytes_max; /* journal bytes out, past which dispatch pauses */
    mr_duration heartbeat;
    mr_duration lease;
    mr_duration queue;     /* measured work that a slot should have at hand */
    mr_duration acquit;    /* what runs long and has lived so long kills no worker */
    mr_duration keep_jobs; /* ended jobs are forgotten after this; 0: never */
    uint32_t keep_jobs_max;
};

struct mr_sched;

void mr_sched_config_default(struct mr_sched_config *c);
/* The arena is lent for the life of the core; its size for a config: mr_sched_arena_bytes. */
size_t mr_sched_arena_bytes(const struct mr_sched_config *c);
struct mr_sched *mr_sched_new(const struct mr_sched_config *c, struct mr_arena *arena);
void mr_sched_free(struct mr_sched **s); /* frees the graphs; the arena is its owner's */

void mr_sched_step(
    struct mr_sched *s, mr_time now, const struct mr_sched_event *ev, struct mr_sched_effects *fx);
mr_time mr_sched_deadline(const struct mr_sched *s); /* step with a tick by then, or MR_NEVER */
void mr_sched_check(const struct mr_sched *s);       /* asserts every invariant, O(state) */
/* For the simulator: what is left of jobs, in words; NULL: nothing. */
const char *mr_sched_leftover(const struct mr_sched *s);

/* The whole durable state as records appended to `out` (heads and payloads as in `journal`,
 * sequence 0); what the journal holds before it may be trimmed. */
void mr_sched_snapshot(const struct mr_sched *s, struct mr_buf *out);

#include "services/scheduler/core/query.h"
