/* Private to this folder: the state of the trainer's core. */
#pragma once

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "services/trainer/core/core.h"

#define CALLS_MAX 16   /* Starts and Stops of one session that wait for Redis */
#define PENDING_MAX 4  /* incomplete checkpoints */
#define SAMPLES_MAX 10 /* samples of the speed, 500 ms apart */
#define LATE_MAX (500 * MR_MS)

/*  MISSING ──▶ HERE ──▶ FINISHED
 *               │ ▲
 *               ▼ │
 *              LOST                 */
struct member {
    enum mr_training_role role;
    uint32_t index;
    enum mr_training_member_state state;
    uint64_t incarnation; /* the latest one; valid while HERE */
    mr_time heard, joined;
    /* Totals of ended incarnations; of the current one. */
    struct mr_training_counters before, now;
    uint64_t version;
    bool restored; /* an owner that has reached the session's restore epoch */
    bool exhausted, halted;
    enum mr_training_phase instructed; /* the phase of the last instruction */
    mr_object_id checkpoint;           /* the last checkpoint object that it reported */
    uint32_t losses;                   /* consecutive losses without a new version in between */
    uint64_t best_at_loss;
    struct {
        uint64_t ticket;
        mr_time until;
        uint32_t parties;
        uint32_t name_bytes;
        char name[MR_TRAINING_BARRIER_BYTES_MAX];
    } barrier;
    struct {
        uint64_t ticket;
        mr_time until;
        bool is_member; /* the role has the place; false: it only learns that it may end */
    } join;
    struct {
        uint64_t ticket;
        mr_time until;
    } rows;
    uint32_t task_bytes, address_bytes, node_bytes, socket_bytes;
    char task[MR_TRAINING_TASK_BYTES_MAX];
    char address[MR_ADDRESS_BYTES_MAX];
    char node[MR_KEY_BYTES_MAX];
    char socket[MR_TRAINING_SOCKET_BYTES_MAX];
};

struct checkpoint { /* complete or not */
    uint64_t version, wall_ns;
    uint32_t count; /* shards that have reported an object; 0: unused */
    mr_object_id *objects;
};

struct doomed {
    uint64_t version;
    uint32_t shard;
    mr_object_id object;
};

/* The graph prepares the data. If it fills the queue that the session trains from, it runs once
 * more, as the feed. */
enum which_job { JOB_GRAPH, JOB_ROLES, JOB_FEED, JOBS };

enum job_state { JOB_NONE, JOB_WANTED, JOB_ON, JOB_ENDED };

struct job {
    enum job_state state;
    mr_job_id id;
    bool may_exist; /* Submit was sent, and no answer has come */
    bool is_asked, is_polled, is_cancelling;
    bool cancel;
    enum mr_training_job_state outcome;
    mr_time next;
};

struct call { /* a call that waits for Redis */
    uint64_t ticket;
    enum mr_trainer_effect_type type;
    bool existed;
    bool in_write; /* the current write has what the call waits for */
    mr_time until;
};

struct entry_id { /* id of a stream entry: ms of Redis's clock, counter */
    uint64_t ms, n;
};

#define NOWHERE                                                                                    \
    (struct entry_id)                                                                              \
    {                                                                                              \
        UINT64_MAX, 0                                                                              \
    }

static inline bool is_newer(struct entry_id a, struct entry_id b)
{
    return a.ms > b.ms || (a.ms == b.ms && a.n > b.n);
}

struct durable { /* what Redis has: answers may show only this */
    enum mr_training_state state;
    enum mr_training_phase phase;
    uint32_t generation, restore_epoch;
    uint64_t incarnations, change;
    bool has_rows;
};

struct session {
    mr_training_id id;
    struct mr_training_document *document;
    uint64_t hash[2]; /* of the document's text */
    enum mr_training_state state;
    enum mr_training_phase phase;
    uint64_t created_ns, started_ns, ended_ns;
    mr_time since; /* time of the last state change */
    mr_time next;
    uint32_t generation, restore_epoch, restores;
    uint64_t incarnations, change;
    struct durable durable, writing;
    uint64_t write; /* sequence of the current write or delete; 0: none */
    bool is_dirty, is_born, is_known, is_forgotten, is_following;
    uint64_t forget_ticket;
    uint64_t version, version_best, version_seen;
    bool has_version;
    uint64_t steps_lost;
    struct job job[JOBS];                                /* by enum which_job */
    struct checkpoint checkpoints[MR_TRAINING_KEEP_MAX]; /* complete ones, oldest first */
    uint32_t checkpoints_count;
    struct checkpoint pending[PENDING_MAX];
    bool has_restore;
    uint64_t restore_version;
    struct doomed *doomed; /* room for the objects of all checkpoints, complete and pending */
    uint32_t doomed_count, doomed_max, doomed_written;
    mr_object_id model;
    /* Last entry seen of the own and of the threshold's channel; NOWHERE: not known yet. */
    struct entry_id seen[2];
    struct mr_nn_patience_state patience;
    struct call calls[CALLS_MAX];
    uint32_t calls_count;
    mr_time progress_at;
    bool has_progress;
    struct {
        mr_time at;
        uint64_t examples;
    } samples[SAMPLES_MAX];
    uint32_t samples_count;
    uint32_t reason_bytes, request_id_bytes, channel_bytes, score_bytes;
    char reason[MR_TRAINING_REASON_BYTES_MAX];
    char request_id[MR_TRAINING_REQUEST_ID_BYTES_MAX];
    char channel[MR_TRAINING_CHANNEL_BYTES_MAX];
    char score[MR_TRAINING_SCORE_BYTES_MAX];
    struct member *members;
    uint32_t members_count;
    bool has_rows; /* the row plan is decided */
    uint64_t *ranges;
    uint32_t *ranges_ends; /* end of each worker's ranges; NULL: the even split */
};

struct mr_trainer {
    struct mr_trainer_config config;
    mr_time now;
    uint64_t wall_ns;
    mr_time due;
    struct mr_trainer_effects *fx; /* of the current step */
    bool is_recovered, is_away;
    uint64_t sequence;
    uint32_t number;           /* last session number of this epoch */
    struct session **sessions; /* in order of id */
    uint32_t sessions_count, sessions_max;
    void *scratch; /* memory for parsing entries */
    size_t scratch_bytes;
};
