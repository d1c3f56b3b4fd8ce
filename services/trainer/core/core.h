/* The core of the trainer: all training sessions, their members, phases, leases and stop rules. A
 * deterministic state machine without I/O, clock or threads. The shell (session/session.c) turns
 * calls, answers of the scheduler and of Redis, and entries of channels into events, and carries
 * out effects. A channel is a log of JSON entries in Redis.
 *
 *   PREPARING ──▶ FORMING ──▶ RUNNING ⇄ RECOVERING       every live state but RUNNING has a time
 *       └────────────┴──────────┴───┬───────┘            limit; past it, or on an error: FAILED
 *                                   ▼
 *             STOPPING: HALT ──▶ KEEP ──▶ EXIT ──▶ DONE
 *
 * Write-ahead: answers show a generation, phase or restore epoch only after Redis has acknowledged
 * the session's record with it. The answers to START, STOP and FORGET, and the admission of a role
 * (Join), wait for Redis, too. So a trainer that restarts from its records contradicts no earlier
 * answer, and gives out no incarnation number twice. While Redis is away, roles continue, and
 * reports get the last instruction again. The generation grows whenever a member comes or goes.
 *
 * Parameter servers own the shards of the parameters; under all-reduce the workers do (rank =
 * index). The version is the number of updates of the parameters so far. A checkpoint of a version
 * is complete when the owners of all shards have reported their objects of it in one restore epoch.
 * When an owner is lost with its parameters, the session is restored: restore_epoch grows, and
 * training continues from the latest checkpoint, or from the initial parameters (`init`). While the
 * session stops under all-reduce, only the loss of rank 0 matters, because all ranks have the same
 * parameters.
 *
 * Which worker has which rows of the training data is decided once in a session. If all workers are
 * on one node, the rows are split evenly; otherwise the first row plan of worker 0 decides. A
 * worker that replaces another one gets the same rows, on any node.
 *
 * The core allocates a session's memory when it makes the session, as much as the settings require,
 * and the memory of the row plan when the plan is decided. Later it allocates only buffers. */
#pragma once

#include "services/trainer/core/effect.h"

#define MR_TRAINING_ID_TEXT_MAX 32
#define MR_TRAINING_TASK_BYTES_MAX 64
#define MR_TRAINING_SOCKET_BYTES_MAX 256
#define MR_TRAINING_REASON_BYTES_MAX 1024
#define MR_TRAINING_SCORE_BYTES_MAX 4096     /* a larger score is judged, but not stored */
#define MR_TRAINING_ENTRY_BYTES_MAX 65536    /* limit of the size of one channel entry */
#define MR_TRAINING_REQUEST_ID_BYTES_MAX 256 /* limit of the request id of Start */
#define MR_TRAINING_BARRIER_BYTES_MAX 128
/* A session fails when one member was lost this often without a new version in between. */
#define MR_TRAINING_LOSSES_MAX 10

struct mr_trainer_config {
    /* number of this start of the trainer, the highest so far: so session ids never repeat */
    uint32_t epoch;
    uint32_t live_max;  /* limit of sessions that have not ended */
    uint32_t ended_max; /* limit of ended sessions; the oldest are forgotten */
    /* limit of the bytes of all ended sessions' documents; the oldest sessions are forgotten */
    size_t ended_bytes_max;
    mr_duration poll;       /* interval of the polls of a job */
    mr_duration retry;      /* pause after the scheduler did not answer */
    mr_duration redis_wait; /* a call that waits longer for Redis is answered MR_EAWAY */
};

struct mr_trainer;

/* Sets all members except the epoch. */
void mr_trainer_config_default(struct mr_trainer_config *c);
struct mr_trainer *mr_trainer_new(const struct mr_trainer_config *c);
void mr_trainer_free(struct mr_trainer **t);

void mr_trainer_step(struct mr_trainer *t, mr_time now, const struct mr_trainer_event *ev,
    struct mr_trainer_effects *fx);
/* Returns the time by which the core wants a tick; MR_NEVER: the core needs no tick. */
mr_time mr_trainer_deadline(const struct mr_trainer *t);
/* Asserts every invariant, in time proportional to the state's size. */
void mr_trainer_check(const struct mr_trainer *t);

void mr_trainer_id_format(mr_training_id id, char out[MR_TRAINING_ID_TEXT_MAX]);
/* Parses an id. MR_EINVAL: the text is no id. */
int mr_trainer_id_parse(struct mr_str text, mr_training_id *out);

/* ---- what is shown --------------------------------------------------------------------------- */

enum mr_training_member_state {
    MR_MEMBER_MISSING, /* the member has not joined yet */
    MR_MEMBER_HERE,
    MR_MEMBER_LOST,
    MR_MEMBER_FINISHED,
};

struct mr_training_checkpoint { /* one object for each shard; lent until the next step */
    uint64_t version;
    uint64_t wall_ns;
    const mr_object_id *objects;
    uint32_t objects_count; /* 0: no checkpoint */
};

/* A session. Its texts are lent until the next step. */
struct mr_training_info {
    mr_training_id id;
    /* NULL: this release cannot read the session's record or document */
    const struct mr_training_document *document;
    enum mr_training_state state;
    struct mr_str reason;
    uint64_t created_ns, started_ns, ended_ns;
    struct mr_str request_id;
    struct mr_str channel;
    struct mr_str score_json;
    mr_object_id model_object;
    struct mr_training_counters counters;
    double examples_per_s;
    struct mr_training_checkpoint checkpoint; /* the latest complete checkpoint */
    /* the checkpoint from which training continues (JoinResponse.checkpoint) */
    struct mr_training_checkpoint restore;
    uint64_t version;
    uint64_t change; /* number of the session's latest change */
    uint32_t generation;
    uint32_t restore_epoch;
    uint32_t restores;
    mr_job_id graph_job, role_job; /* 0: none */
    uint32_t members_count;        /* members in the order ps, worker, scorer */
};

struct mr_training_member_info {
    enum mr_training_role role;
    uint32_t index;
    enum mr_training_member_state state;
    uint64_t incarnation; /* 0: no process has this role now, or Redis does not know it yet */
    struct mr_str task, address, node, socket;
    struct mr_training_counters counters; /* totals over all incarnations */
};

/* Describes a session. `state`, `change`, `generation` and `restore_epoch` are those that Redis
 * has; `counters`, `version` and `score_json` are the latest. MR_ENOENT: the session is unknown or
 * forgotten, or Redis does not have it yet. */
int mr_trainer_info(const struct mr_trainer *t, mr_training_id id, struct mr_training_info *out);
/* Returns the document as it was submitted. n = 0: there is no such session, or it has no
 * document. */
struct mr_str mr_trainer_document(const struct mr_trainer *t, mr_training_id id);
void mr_trainer_member(const struct mr_trainer *t, mr_training_id id, uint32_t member,
    struct mr_training_member_info *out);
/* Finds the rows of training worker `index`. `*ranges`: pairs of first row and count, lent until
 * the next step; no pairs: the rows are split evenly. False: it is not decided how the rows are
 * divided, or Redis does not have the decision yet. */
bool mr_trainer_rows(const struct mr_trainer *t, mr_training_id id, uint32_t index,
    const uint64_t **ranges, uint32_t *count);
/* Returns the newest session that is older than `before` (0: the newest of all); 0: there is none.
 * Repeated calls list the sessions, the newest first. */
mr_training_id mr_trainer_older(const struct mr_trainer *t, mr_training_id before);
uint32_t mr_trainer_count(const struct mr_trainer *t, enum mr_training_state state);

/* Appends the environment variables of a role that is a foreign program: "NAME", 0, "value", 0 …
 * Appends nothing for other roles. Addresses are HOST:PORT. A worker gets the address of worker 0
 * as MASTER_ADDR and MASTER_PORT. */
void mr_trainer_environment(
    const struct mr_trainer *t, mr_training_id id, uint32_t member, struct mr_buf *out);
