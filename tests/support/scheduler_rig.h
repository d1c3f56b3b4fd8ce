/* The rig: a scheduler's core in a test, and everything around the core, simulated. The rig has
 * clients with jobs in JSON, workers, object stores that keep track of their holders, and a journal
 * that the core reads back after a restart. The rig keeps all effects of the core for the test to
 * look at. After every step the core checks all invariants. */
#pragma once

#include "services/scheduler/core/core.h"

#define RIG_TEST(name) cmocka_unit_test_teardown(name, rig_teardown)
#define RIG_WORKERS 8
#define RIG_STORES 6

enum rig_said {
    SAID_TASK,
    SAID_CANCEL,
    SAID_RELEASE,
    SAID_STEAL,
    SAID_FETCH,
    SAID_ADOPT,
    SAID_KEEP,
    SAID_VALUE,
    SAID_LEAVE,
};

struct rig_row { /* one entry of a message to a worker: a task, a release, a cancel … */
    enum rig_said said;
    uint32_t slot;
    uint64_t job;
    uint32_t index, attempt;
    bool alone, long_running;
    uint64_t timeout_ns;
    bool persist;
};

struct rig_worker {
    uint32_t slot;
    uint64_t incarnation, session;
    bool was_refused, was_closed, was_drained;
};

struct rig_hold {
    mr_object_id object;
    uint32_t store, count;
};

struct rig {
    struct mr_sched_config c;
    struct mr_arena arena;
    struct mr_sched *s;
    struct mr_sched_effects fx;
    mr_time now;
    bool acks;             /* each step of rig_turn acknowledges all records */
    struct mr_buf journal; /* records, as in mr_sched_effects.journal */
    uint64_t sequence, acked;
    struct rig_row *rows;
    uint32_t rows_count, rows_room;
    struct mr_buf notes; /* struct mr_sched_note: what the core told its shell since the last
                          * start */
    struct mr_buf spans; /* struct mr_sched_span: all spans of the core, also before a restart */
    char *texts[4096];   /* texts[i]: the text of note i of `notes` */
    uint32_t notes_count;
    struct rig_worker last; /* the worker that registered last */
    struct rig_hold holds[1024];
    uint32_t holds_count;
    uint64_t ticket, session, objects;
    /* code of the core's latest reply to a client or refusal of a worker, whichever came last */
    int code;
    char text[1100];
    uint64_t object_bytes; /* bytes of each object that workers make from now on; 0: 100,000 */
    uint64_t store_memory; /* of each store that registers from now on; 0: 1 GiB */
    /* True: a new store of a node has the objects of the node's last store, on disk. */
    bool has_disk;
    mr_object_id missing[1024]; /* objects that the core asked a new store to verify, and that the
                                 * store lacks */
    uint32_t missing_count, missing_store;
    struct mr_str says;  /* the value in the next completion; "": the task's key */
    uint64_t steps_work; /* the largest number of steps that one call of rig_turn needed */
    uint64_t first;      /* id of the job that rig_new runs before the jobs of the test; 0: none */
    /* Called with each batch of messages to a worker before the rig takes the batch; may be
     * NULL. */
    void (*on_batch)(struct rig *r, uint32_t slot, const struct mr_sched_batch *b);
};

/* A worker to register. Zeros: one slot, all operators of scheduler_rig_play.c but "rare", 1 TiB of
 * memory, no store. */
struct rig_spec {
    const char *name, *node;
    uint32_t slots;
    const char *ops; /* names of the worker's operators, separated by spaces */
    const char *resource;
    double amount;
    uint64_t memory, store;
};

struct rig *rig_new(void);       /* runs a first job; one rig at a time; freed by rig_teardown */
struct rig *rig_new_empty(void); /* as rig_new, but runs no first job */
struct rig *rig_new_with(const struct mr_sched_config *c);
int rig_teardown(void **state);
void rig_config(struct mr_sched_config *c); /* a config with small limits */
void rig_step(struct rig *r, struct mr_sched_event *ev);
void rig_turn(struct rig *r);                   /* steps the core until it has nothing to do */
void rig_pass(struct rig *r, mr_duration time); /* lets time pass, with a step at each deadline */
/* Restarts the core from the acknowledged records. */
void rig_crash(struct rig *r);
void rig_compact(struct rig *r); /* replaces the journal by a snapshot */
void rig_ack(struct rig *r);
const char *rig_leftover(struct rig *r); /* forgets the first job and returns mr_sched_leftover */

/* Returns the job's id, or 0 if the job was refused. Then `code` and `text` of the rig say why. */
uint64_t rig_submit(struct rig *r, const char *json);
uint64_t rig_submit_with(struct rig *r, const char *json, const struct mr_sched_submit *more);
/* Returns the code of the reply, or 1 if there is no reply yet. */
int rig_ask(struct rig *r, enum mr_sched_event_type type, uint64_t job);
void rig_want(struct rig *r, uint64_t job, const char *key);
uint32_t rig_index(struct rig *r, uint64_t job, const char *key);
enum mr_task_state rig_state(struct rig *r, uint64_t job, const char *key);
/* Returns the state of the job, or MR_JOB_NONE if the core has forgotten the job. */
enum mr_job_state rig_job(struct rig *r, uint64_t job);
struct mr_sched_task_info rig_task(struct rig *r, uint64_t job, const char *key);
struct mr_sched_value rig_value(struct rig *r, uint64_t job, const char *key, char out[64]);

struct rig_worker rig_join(struct rig *r, const struct rig_spec *spec);
/* Registers a worker. `more` has what the worker reports besides `spec`: incarnation, epoch, held
 * values, queued tasks, and suspects. Suspects are the tasks that ran when the last process with
 * this name crashed. `more` is NULL for a new worker. `slot` of the result is UINT32_MAX if the
 * core refused the worker. */
struct rig_worker rig_join_as(
    struct rig *r, const struct rig_spec *spec, const struct mr_ws_register *more);
void rig_close(struct rig *r, struct rig_worker w);
void rig_message(struct rig *r, struct rig_worker w, struct mr_ws_up *m);
void rig_heartbeat(struct rig *r, struct rig_worker w);
/* Lets the worker, whose name is "a" or "one", run one task of operator f and one of g. Each takes
 * a millisecond. Then the core knows the run times of both operators. */
void rig_warm(struct rig *r, struct rig_worker w);

/* The functions below send a worker's report on one task. They name the attempt that was last sent
 * to the worker; rig_done_as names `attempt`. */
void rig_done(struct rig *r, struct rig_worker w, uint64_t job, const char *key);
void rig_done_bytes(
    struct rig *r, struct rig_worker w, uint64_t job, const char *key, uint32_t bytes);
void rig_done_value(
    struct rig *r, struct rig_worker w, uint64_t job, const char *key, struct mr_str value);
mr_object_id rig_done_object(struct rig *r, struct rig_worker w, uint64_t job, const char *key);
void rig_done_as(struct rig *r, struct rig_worker w, uint64_t job, const char *key,
    uint32_t attempt, enum mr_outcome outcome, mr_object_id object, uint32_t bytes,
    mr_duration took);
void rig_end(
    struct rig *r, struct rig_worker w, uint64_t job, const char *key, enum mr_outcome outcome);
enum rig_told { TOLD_GIVEN, TOLD_STARTED, TOLD_UNKNOWN, TOLD_LEFT_SLOT };
void rig_tell(
    struct rig *r, struct rig_worker w, enum rig_told what, uint64_t job, const char *key);

/* Returns the last attempt of the task that was sent to `w` since the last rig_forget_rows, or 0 if
 * no attempt was sent. */
uint32_t rig_sent(const struct rig *r, struct rig_worker w, uint64_t job, uint32_t index);
uint32_t rig_attempt(struct rig *r, struct rig_worker w, uint64_t job, const char *key);
uint32_t rig_count(struct rig *r, enum rig_said said, struct rig_worker w, uint64_t job,
    const char *key); /* a NULL key counts rows of all tasks of the job */
const struct rig_row *rig_row(struct rig *r, enum rig_said said, uint64_t job, const char *key);
/* Returns the number of notes of `type` about the job. */
uint32_t rig_notes(const struct rig *r, enum mr_sched_note_type type, uint64_t job);
void rig_forget_rows(struct rig *r);

void rig_store(struct rig *r, uint64_t store, const char *node);
void rig_store_close(struct rig *r, uint64_t store);
void rig_object_lost(struct rig *r, uint64_t store, mr_object_id id);
bool rig_is_held(const struct rig *r, mr_object_id id);
uint32_t rig_held(const struct rig *r); /* counts an object once for each store */
