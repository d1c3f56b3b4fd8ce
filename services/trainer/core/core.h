/* The core of the trainer: all training sessions, their members, phases, leases and stop rules. A
 * deterministic state machine without I/O, clock or threads. The shell (session/session.c) turns
 * calls, answers of the scheduler and of Redis, and channel entries into events, and carries out
 * effects.
 *
 *   PREPARING ──▶ FORMING ──▶ RUNNING ⇄ RECOVERING       every state but RUNNING has a bound;
 *       └────────────┴──────────┴───┬───────┘            past it, and on any failure: FAILED
 *                                   ▼
 *             STOPPING: HALT ──▶ KEEP ──▶ EXIT ──▶ DONE
 *
 * The trainer publishes only what Redis has (write-ahead). It answers START, STOP and FORGET,
 * admits a Join, and sends generation, phase and restore epoch in Join and Report only after Redis
 * has acknowledged a record with them. So a trainer that restarts from its records contradicts no
 * earlier answer, and no number is given twice. While Redis is away, roles continue, and reports
 * get the last instruction again.
 *
 * Parameter servers own shards; under all-reduce the workers do (rank = index). A version is a
 * complete checkpoint when the owners of all shards have reported an object of it, in one restore
 * epoch. When an owner is lost with its parameters, the session is restored: restore_epoch grows,
 * and training continues from the latest checkpoint, or from the initial parameters (`init`). While
 * the session stops under all-reduce, only the loss of rank 0 matters, because all ranks have the
 * same parameters.
 *
 * Which worker has which rows of the training data is decided once in a session. If all workers are
 * on one node, the rows are split evenly; otherwise the first row plan of worker 0 decides. A
 * worker that replaces another one gets the same rows, on any node.
 *
 * The core allocates memory when a session begins, by its document, and once for the rows. Other
 * events allocate nothing. */
#pragma once

#include "services/trainer/core/effect.h"

#define MR_TRAINING_ID_TEXT_MAX 32
#define MR_TRAINING_TASK_BYTES_MAX 64
#define MR_TRAINING_SOCKET_BYTES_MAX 256
#define MR_TRAINING_REASON_BYTES_MAX 1024
#define MR_TRAINING_SCORE_BYTES_MAX 4096     /* a larger score is judged, but not stored */
#define MR_TRAINING_ENTRY_BYTES_MAX 65536    /* of one channel entry */
#define MR_TRAINING_REQUEST_ID_BYTES_MAX 256 /* of Start */
#define MR_TRAINING_BARRIER_BYTES_MAX 128
/* Losses of one member without a new version: then the session fails. */
#define MR_TRAINING_LOSSES_MAX 10

struct mr_trainer_config {
    /* Number of this start of the trainer; grows, and is never used twice. */
    uint32_t epoch;
    uint32_t live_max;      /* sessions that have not ended */
    uint32_t ended_max;     /* ended sessions that are kept; the oldest are forgotten */
    size_t ended_bytes_max; /* bytes of their documents; the same */
    mr_duration poll;       /* interval of questions about jobs */
    mr_duration retry;      /* pause after the scheduler did not answer */
    mr_duration redis_wait; /* a call that waits longer for Redis is answered MR_EAWAY */
};

struct mr_trainer;

void mr_trainer_config_default(struct mr_trainer_config *c); /* all but the epoch */
struct mr_trainer *mr_trainer_new(const struct mr_trainer_config *c);
void mr_trainer_free(struct mr_trainer **t);

void mr_trainer_step(struct mr_trainer *t, mr_time now, const struct mr_trainer_event *ev,
    struct mr_trainer_effects *fx);
mr_time mr_trainer_deadline(const struct mr_trainer *t); /* step with a tick by then, or MR_NEVER */
void mr_trainer_check(const struct mr_trainer *t);       /* asserts every invariant, O(state) */

void mr_trainer_id_format(mr_training_id id, char out[MR_TRAINING_ID_TEXT_MAX]);
int mr_trainer_id_parse(struct mr_str text, mr_training_id *out); /* MR_EINVAL */

/* ---- what is shown --------------------------------------------------------------------------- */

enum mr_training_member_state {
    MR_MEMBER_MISSING, /* has not joined yet */
    MR_MEMBER_HERE,
    MR_MEMBER_LOST,
    MR_MEMBER_FINISHED,
};

struct mr_training_checkpoint { /* one object for each shard; they are a loan until the next
                                 * step */
    uint64_t version;
    uint64_t wall_ns;
    const mr_object_id *objects;
    uint32_t objects_count; /* 0: no checkpoint */
};

/* Texts are loans until the next step. */
struct mr_training_info {
    mr_training_id id;
    const struct mr_training_document *document; /* NULL: an ended session of an older release */
    enum mr_training_state state;
    struct mr_str reason;
    uint64_t created_ns, started_ns, ended_ns;
    struct mr_str request_id;
    struct mr_str channel;
    struct mr_str score_json;
    mr_object_id model_object;
    struct mr_training_counters counters;
    double examples_per_s;
    struct mr_training_checkpoint checkpoint; /* the latest complete one */
    /* JoinResponse.checkpoint: where training continues. */
    struct mr_training_checkpoint restore;
    uint64_t version;
    uint64_t change; /* number of the session's latest change */
    uint32_t generation;
    uint32_t restore_epoch;
    uint32_t restores;
    mr_job_id graph_job, role_job; /* 0: none */
    uint32_t members_count;        /* in order: ps, worker, scorer */
};

struct mr_training_member_info {
    enum mr_training_role role;
    uint32_t index;
    enum mr_training_member_state state;
    uint64_t incarnation; /* 0: the member is not here now */
    struct mr_str task, address, node, socket;
    struct mr_training_counters counters; /* totals over all incarnations */
};

/* MR_ENOENT: the session is unknown or forgotten. Shows only what Redis has. */
int mr_trainer_info(const struct mr_trainer *t, mr_training_id id, struct mr_training_info *out);
/* The document as submitted. n = 0: there is no such session, or it has no document. */
struct mr_str mr_trainer_document(const struct mr_trainer *t, mr_training_id id);
void mr_trainer_member(const struct mr_trainer *t, mr_training_id id, uint32_t member,
    struct mr_training_member_info *out);
/* The rows of training worker `index`: pairs of first row and count, a loan until the next step; no
 * pairs: those of the even split. False: the plan is not decided, or Redis does not have it yet. */
bool mr_trainer_rows(const struct mr_trainer *t, mr_training_id id, uint32_t index,
    const uint64_t **ranges, uint32_t *count);
/* Lists sessions, newest first: the newest one before `before` (0: of all); 0: there is none. */
mr_training_id mr_trainer_older(const struct mr_trainer *t, mr_training_id before);
uint32_t mr_trainer_count(const struct mr_trainer *t, enum mr_training_state state);

/* Appends the environment of a foreign role: "NAME", 0, "value", 0 … Addresses are HOST:PORT. That
 * of the chief (worker 0, or ps 0 without workers) becomes MASTER_ADDR and MASTER_PORT. */
void mr_trainer_environment(
    const struct mr_trainer *t, mr_training_id id, uint32_t member, struct mr_buf *out);
