/* Private to this folder: the state of the trainer's core. An owner is a member that has a shard of
 * the parameters. The version is the number of updates of the parameters so far. A restore epoch
 * begins when the session goes back to a checkpoint. */
#pragma once

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "services/trainer/core/core.h"

#define CALLS_MAX 16   /* limit of the Starts and Stops of one session that wait for Redis */
#define PENDING_MAX 4  /* limit of incomplete checkpoints of one session */
#define SAMPLES_MAX 10 /* number of samples of the speed; they are 500 ms apart */
#define LATE_MAX (500 * MR_MS)

/* The states of a member:
 *
 *  MISSING ──▶ HERE ◀──▶ FINISHED
 *               │ ▲
 *               ▼ │
 *              LOST                 */
struct member {
    enum mr_training_role role;
    uint32_t index;
    enum mr_training_member_state state;
    uint64_t incarnation; /* number of the latest incarnation, which is valid while HERE */
    mr_time heard, joined;
    /* `before`: totals of ended incarnations; `now`: counters of the present one */
    struct mr_training_counters before, now;
    uint64_t version;
    bool restored; /* the member is an owner and has reached the session's restore epoch */
    bool exhausted, halted;
    enum mr_training_phase instructed; /* the phase that the member was told last */
    mr_object_id checkpoint;           /* the checkpoint object that the member reported last */
    uint32_t losses;       /* how often the member was lost since the session last made progress */
    uint64_t best_at_loss; /* the session's highest version when the member was lost last */
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
        /* true: the role takes the member's place; false: the role only learns that it may end */
        bool is_member;
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

struct checkpoint { /* a checkpoint, complete or not */
    uint64_t version, wall_ns;
    uint32_t count; /* number of shards that have reported an object; 0: the struct is not used */
    mr_object_id *objects;
};

struct doomed {
    uint64_t version;
    uint32_t shard;
    mr_object_id object;
};

/* The jobs of a session. JOB_GRAPH runs the document's graph, which prepares the data. If the graph
 * fills the queue that the session trains from, it runs a second time, as JOB_FEED, while the
 * session trains. The tasks of JOB_ROLES are the members of the session. */
enum which_job { JOB_GRAPH, JOB_ROLES, JOB_FEED, JOBS };

enum job_state { JOB_NONE, JOB_WANTED, JOB_ON, JOB_ENDED };

struct job {
    enum job_state state;
    mr_job_id id;
    bool may_exist; /* Submit was sent, and no answer has come yet */
    bool is_asked, is_polled, is_cancelling;
    bool cancel;
    enum mr_training_job_state outcome; /* as the scheduler reported it */
    mr_time next;
};

struct call { /* a call that waits for Redis */
    uint64_t ticket;
    enum mr_trainer_effect_type type;
    bool existed;
    /* true: the call is answered when Redis acknowledges the record that is being written */
    bool in_write;
    mr_time until;
};

struct entry_id { /* id of a stream's entry: milliseconds of Redis's clock, and a counter */
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

struct durable { /* what Redis has: answers may show no more than this */
    enum mr_training_state state;
    enum mr_training_phase phase;
    uint32_t generation, restore_epoch;
    uint64_t incarnations, change;
    bool has_rows;
};

struct session {
    mr_training_id id;
    struct mr_training_document *document;
    uint64_t hash[2]; /* hash of the document's text */
    enum mr_training_state state;
    enum mr_training_phase phase;
    uint64_t created_ns, started_ns, ended_ns;
    mr_time since; /* time of the last state change */
    mr_time next;
    uint32_t generation, restore_epoch, restores;
    uint64_t incarnations, change;
    struct durable durable, writing;
    uint64_t write; /* sequence of the running write or delete; 0: none */
    bool is_dirty, is_known, is_forgotten, is_following;
    uint64_t forget_ticket;
    uint64_t version, version_best, version_seen;
    bool has_version;
    uint64_t steps_lost;
    struct job job[JOBS]; /* by enum which_job */
    /* complete checkpoints, the oldest first */
    struct checkpoint checkpoints[MR_TRAINING_KEEP_MAX];
    uint32_t checkpoints_count;
    struct checkpoint pending[PENDING_MAX];
    bool has_restore;
    uint64_t restore_version;
    struct doomed *doomed; /* room for the objects of all checkpoints, complete and pending */
    uint32_t doomed_count, doomed_max, doomed_written;
    mr_object_id model;
    /* A channel is a log of JSON entries in Redis. Here are the ids of the last entries that were
     * seen: of the session's own channel [0] and of the threshold's channel [1]. NOWHERE: not known
     * yet. */
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
    bool has_rows;    /* the row plan is decided */
    uint64_t *ranges; /* ranges of rows, as in struct mr_training_rows */
    /* for each worker, how many ranges it and the workers before it have; NULL: the rows are split
     * evenly */
    uint32_t *ranges_ends;
};

struct mr_trainer {
    struct mr_trainer_config config;
    mr_time now;
    uint64_t wall_ns;
    mr_time due;
    struct mr_trainer_effects *fx; /* effects of the running step */
    bool is_recovered, is_away;
    uint64_t sequence;
    uint32_t number;           /* number of the last session that this process made */
    struct session **sessions; /* in order of id */
    uint32_t sessions_count, sessions_max;
    void *scratch; /* memory to parse one entry of a channel (a log in Redis) */
    size_t scratch_bytes;
};
