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
 * The trainer publishes only what Redis has. It answers START, STOP and FORGET, admits a join, and
 * sends generation, phase and restore epoch in Join and Report, only after Redis has acknowledged
 * the record that has them. So a trainer that restarts from its records contradicts no earlier
 * answer, and no number is given twice. While Redis is away, roles run on as they are, and reports
 * get the last instruction again.
 *
 * Parameter servers own shards; under all-reduce the workers do (rank = index). A version is a
 * checkpoint when every shard's owner has reported an object of it, in one restore epoch. When an
 * owner is lost while parameters live there, the session is restored: restore_epoch + 1, and back
 * to the latest checkpoint, or to the initial values (`init` of the document). While stopping
 * under all-reduce only rank 0 counts, as all ranks have the same parameters.
 *
 * Which worker has which rows of the training data is decided once in a session. If all its
 * workers are on one node, the rows are split evenly; otherwise the first row plan of worker 0
 * decides. A replacement of a worker gets the rows of that worker, on any node.
 *
 * The core allocates when a session begins (as its document asks) and once for the rows, and
 * nothing per event. */
#pragma once

#include "services/trainer/core/effect.h"

#define MR_TRAINING_ID_TEXT_MAX 32
#define MR_TRAINING_TASK_BYTES_MAX 64
#define MR_TRAINING_SOCKET_BYTES_MAX 256
#define MR_TRAINING_REASON_BYTES_MAX 1024
#define MR_TRAINING_SCORE_BYTES_MAX 4096     /* a larger score is judged, not kept */
#define MR_TRAINING_ENTRY_BYTES_MAX 65536    /* of one channel entry */
#define MR_TRAINING_REQUEST_ID_BYTES_MAX 256 /* of Start */
#define MR_TRAINING_BARRIER_BYTES_MAX 128
#define MR_TRAINING_LOSSES_MAX 10 /* of one index without a new version: it fails */

struct mr_trainer_config {
    uint32_t epoch;         /* of the trainer: grows with each start, and is never used twice */
    uint32_t live_max;      /* sessions that have not ended */
    uint32_t ended_max;     /* kept; more are forgotten, the oldest first */
    size_t ended_bytes_max; /* of their documents, as well */
    mr_duration poll;       /* of jobs */
    mr_duration retry;      /* after the scheduler was away */
    mr_duration redis_wait; /* a call that waits longer for Redis is answered MR_EAWAY */
};

struct mr_trainer;

void mr_trainer_config_default(struct mr_trainer_config *c); /* epoch is to be set */
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
    MR_MEMBER_MISSING, /* never there yet */
    MR_MEMBER_HERE,
    MR_MEMBER_LOST,
    MR_MEMBER_FINISHED,
};

struct mr_training_checkpoint { /* objects: one a shard; a loan until the next step */
    uint64_t version;
    uint64_t wall_ns;
    const mr_object_id *objects;
    uint32_t objects_count; /* 0: there is none */
};

/* Texts are loans until the next step. */
struct mr_training_info {
    mr_training_id id;
    const struct mr_training_document *document; /* NULL: an ended one of an older release */
    enum mr_training_state state;
    struct mr_str reason;
    uint64_t created_ns, started_ns, ended_ns;
    struct mr_str request_id;
    struct mr_str channel;
    struct mr_str score_json;
    mr_object_id model_object;
    struct mr_training_counters counters;
    double examples_per_s;
    struct mr_training_checkpoint checkpoint; /* the latest */
    struct mr_training_checkpoint restore;    /* for JoinResponse.checkpoint */
    uint64_t version;
    uint64_t change; /* number of its latest event */
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
    uint64_t incarnation; /* 0: not there now */
    struct mr_str task, address, node, socket;
    struct mr_training_counters counters; /* over all its incarnations */
};

/* MR_ENOENT for an unknown or a forgotten session. What is not durable yet is not shown. */
int mr_trainer_info(const struct mr_trainer *t, mr_training_id id, struct mr_training_info *out);
/* As submitted; n = 0: there is no such session, or it has none. */
struct mr_str mr_trainer_document(const struct mr_trainer *t, mr_training_id id);
void mr_trainer_member(const struct mr_trainer *t, mr_training_id id, uint32_t member,
    struct mr_training_member_info *out);
/* Ranges (first row, count, and so on; none: of the even split) of training worker `index`: a loan
 * until the next step. False: not decided, or not durable. */
bool mr_trainer_rows(const struct mr_trainer *t, mr_training_id id, uint32_t index,
    const uint64_t **ranges, uint32_t *count);
/* Sessions, newest first: the newest before `before` (0: of all); 0 when there is none. */
mr_training_id mr_trainer_older(const struct mr_trainer *t, mr_training_id before);
uint32_t mr_trainer_count(const struct mr_trainer *t, enum mr_training_state state);

/* Environment of the exec role `member`: appends "NAME", 0, "value", 0 … to `out`. Addresses are
 * HOST:PORT; the chief's (worker 0's, else ps 0's) becomes MASTER_ADDR and MASTER_PORT. */
void mr_trainer_environment(
    const struct mr_trainer *t, mr_training_id id, uint32_t member, struct mr_buf *out);
