/* The events of the trainer's core. Pointers inside an event are lent for the step, except
 * `document`, which the core takes. Every event carries the wall-clock time. The comment of each
 * type lists the members of struct mr_trainer_event that it uses.
 *
 * A ticket is the shell's number of a call that waits. It is never 0 and never used twice. Exactly
 * one effect answers a ticket, unless the event GONE comes first. */
#pragma once

#include "base/id.h"
#include "base/time.h"
#include "services/trainer/document/document.h"

typedef struct {
    uint64_t v;
} mr_training_id; /* epoch << 32 | number; as a text "t<epoch>-<number>" */

enum mr_training_state { /* values of trainings.proto */
    MR_TRAINING_PREPARING = 1,
    MR_TRAINING_FORMING,
    MR_TRAINING_RUNNING,
    MR_TRAINING_RECOVERING,
    MR_TRAINING_STOPPING,
    MR_TRAINING_DONE,
    MR_TRAINING_FAILED,
};

enum mr_training_phase { /* values of trainings.proto */
    MR_TRAINING_RUN = 1,
    MR_TRAINING_HALT,
    /* the saver (the scorer, or worker 0 if there is no scorer) saves the model; all other members
     * are in the phase HALT meanwhile */
    MR_TRAINING_KEEP,
    MR_TRAINING_EXIT,
};

struct mr_training_counters { /* the same quantities as in TrainingCounters of trainings.proto */
    uint64_t steps, examples;
    uint64_t epoch; /* epoch that the member has reached, over all its incarnations */
    double loss, accuracy;
    double pull_s, push_s, wait_s, compute_s, feed_s;
    uint64_t gradients_stale, gradients_lost, steps_lost, gradients_applied;
    uint64_t moved_parts, moved_bytes;
};

struct mr_training_join {
    /* "j1kq07ab-7/0/1": job, index, attempt. The join is refused if the task is not of the
     * session's job, or if a later attempt of the task has joined. */
    struct mr_str task;
    struct mr_str address;
    struct mr_str node;
    struct mr_str socket;
};

struct mr_training_report {
    uint32_t generation;
    uint32_t restore_epoch;
    struct mr_training_counters counters;
    uint64_t version;
    bool exhausted;
    bool finished;
    struct mr_str failure;
    uint64_t checkpoint_version;    /* version of `checkpoint_object` */
    mr_object_id checkpoint_object; /* no id: there is no new checkpoint */
    mr_object_id model_object;      /* only from the saver (see MR_TRAINING_KEEP) */
    struct mr_str score_json;       /* only from the saver */
};

/* limit of the number of ranges that all workers of a session have together */
#define MR_TRAINING_RANGES_MAX 65536

/* The rows of the training data that each worker has (RowPlan of trainings.proto). */
struct mr_training_rows {
    bool decides;           /* true: this is a plan; false: a worker only asks for its rows */
    const uint64_t *ranges; /* first, count, first, count …, for one worker after another */
    const uint32_t *ends;   /* for each worker, how many ranges it and the workers before it have */
    uint32_t workers;       /* 0: the rows are split evenly */
};

/* The state of a job, as the scheduler reports it. */
enum mr_training_job_state {
    MR_TRAINING_JOB_GOES_ON, /* the job is pending or running */
    MR_TRAINING_JOB_DONE,
    MR_TRAINING_JOB_FAILED,    /* text: the reason */
    MR_TRAINING_JOB_CANCELLED, /* text: the reason */
    MR_TRAINING_JOB_UNKNOWN,   /* NOT_FOUND: the scheduler does not know the job */
    MR_TRAINING_JOB_AWAY,      /* the scheduler did not answer; the core asks again */
};

enum mr_trainer_event_type {
    MR_TE_TICK,
    MR_TE_START,  /* ticket; text: the request id ("": none); document: taken */
    MR_TE_STOP,   /* ticket, session, abandon; text: the reason */
    MR_TE_FORGET, /* ticket, session */
    MR_TE_JOIN,   /* ticket, session, role, index, join, wait */
    /* ticket, session, role, index, incarnation, parties, wait; text: the barrier's name */
    MR_TE_BARRIER,
    MR_TE_REPORT, /* ticket, session, role, index, incarnation, report */
    MR_TE_ROWS,   /* ticket, session, role, index, incarnation, rows, wait */
    MR_TE_GONE,   /* ticket: the caller has cancelled the call, which gets no answer any more */
    MR_TE_ENTRY,  /* channel, entry, text: the next entry of a channel that a session follows */
    /* the answer to MR_TX_LOCATE. channel, entry: the last entry ("": there is none) */
    MR_TE_LOCATED,
    /* Answers to effects: */
    /* session, roles, feed, job; or err and text. After MR_EAWAY, MR_EAGAIN and MR_ETIMEOUT the
     * core asks again; other errors are final */
    MR_TE_JOB_SUBMITTED,
    MR_TE_JOB_STATE, /* the answer to MR_TX_JOB_POLL. session, roles, feed, job_state, text */
    /* session, roles, feed, err. After MR_EAWAY, MR_EAGAIN and MR_ETIMEOUT the core asks again;
     * after any other result there is no job left to cancel */
    MR_TE_JOB_CANCELLED,
    MR_TE_REDIS_ACKED, /* sequence: Redis has all WRITEs and DELETEs up to this one */
    MR_TE_REDIS_AWAY,  /* writes that were not acknowledged may be lost */
    MR_TE_REDIS_BACK,  /* Redis is connected again: the core repeats its writes */
    /* Events at the start: */
    MR_TE_RECORD,    /* session; text: the record; document: taken; NULL: it is invalid */
    MR_TE_RECOVERED, /* all records were read. Only RECORD events come before this one */
};

struct mr_trainer_event {
    enum mr_trainer_event_type type;
    uint64_t wall_ns; /* ns since 1970 */
    uint64_t ticket;
    mr_training_id session;
    enum mr_training_role role;
    uint32_t index;
    uint64_t incarnation;
    uint64_t sequence;
    mr_duration wait;
    uint32_t parties;
    int err;
    bool abandon;
    /* Which job of the session the event is about. `roles` true: the job of the roles. `feed` true:
     * the job that feeds the queue. Both false: the job that makes the data (`graph` in
     * docs/training.md). */
    bool roles;
    bool feed;
    enum mr_training_job_state job_state;
    mr_job_id job;
    struct mr_str text;
    struct mr_str channel;
    struct mr_str entry; /* id of an entry of `channel`, such as "1700000000000-0" */
    struct mr_training_document *document;
    struct mr_training_join join;
    struct mr_training_report report;
    struct mr_training_rows rows;
};
