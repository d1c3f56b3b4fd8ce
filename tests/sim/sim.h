/* The simulator's world: virtual time, dice, and models of all that the cores do not know - links,
 * processes, executors, stores, the journal, clients. The cores in it are the real ones. Everything
 * follows from the seed. A promise that is broken ends the program with the story (sim_fail). */
#pragma once

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/pack.h"
#include "base/rng.h"
#include "services/scheduler/core.h"
#include "services/worker/core.h"

#include <inttypes.h>
#include <string.h>

#define NONE UINT32_MAX
#define PROCS_MAX 512
#define NAMES_MAX 8
#define NODES_MAX 3
#define SPECS_MAX 16
#define SESSIONS_MAX 4096
#define STORES_MAX 48
#define GPU 1000000u

enum sim_event {
    EV_SCHED_TURN,
    EV_SCHED_START,
    EV_UP,          /* a worker's message reaches the scheduler; a: session */
    EV_UP_END,      /* the scheduler sees the stream's end */
    EV_DOWN,        /* a: session */
    EV_DOWN_END,    /* the worker sees it; c: revoked */
    EV_CONNECT,     /* a: process */
    EV_WAKE,        /* a: process: its deadline */
    EV_EXEC,        /* a: process, c: serial of the run */
    EV_FETCHED,     /* a: process, b: value, c: serial << 32 | node */
    EV_ACK,         /* c: records */
    EV_STORES,      /* heartbeats of all stores */
    EV_PROC_START,  /* a: name */
    EV_STORE_START, /* a: node */
    EV_SUBMIT,      /* a: spec */
    EV_CLIENT,
    EV_FAULT,
};

enum sim_plant { /* bugs in the glue that the checks must catch */
    PLANT_NONE,
    PLANT_RELEASE, /* releases are lost */
    PLANT_VALUE,   /* a value brought to a worker is lost */
    PLANT_GIVEN,   /* what a worker gives back is not told */
    PLANT_JOURNAL, /* acknowledged records are lost with a crash */
    PLANT_ATTEMPT, /* a second attempt makes another value */
    PLANT_ACCEPT,  /* a completion is believed though it is another task's */
};

enum sim_op {
    OP_SMALL,
    OP_MEDIUM,
    OP_LARGE,
    OP_REF,
    OP_LONG,
    OP_DICE,
    OP_FLAKY,
    OP_BAD,
    OP_POISON,
    OP_SLOW,
    OP_STUBBORN,
    OP_RARE,
    OPS
};

struct sim_chunk {
    struct sim_chunk *next;
};

struct sim_msg {
    struct sim_chunk *chunks;
    bool is_register;
    struct mr_ws_down down;
    struct mr_sched_message up;
    struct mr_sched_register reg;
};

struct sim_ev {
    mr_time at;
    uint64_t order;
    enum sim_event kind;
    uint32_t a, b;
    uint64_t c;
    struct sim_msg *msg;
};

struct sim_session {
    uint32_t proc;
    uint32_t life;       /* of the scheduler */
    bool is_up, is_down; /* open as the scheduler, the worker sees it */
    bool has_registered, has_joined, is_waiting;
    uint32_t slot;
    uint64_t incarnation;
    mr_time last_up, last_down; /* messages do not overtake each other */
    uint32_t flying_up, flying_down;
    uint32_t op_of[64], ops, store_of[STORES_MAX + 2], stores; /* numbers of the session's tables */
};

struct sim_run { /* a strand at an executor */
    struct sim_run *next_run;
    struct mr_strand *strand;
    uint32_t id, slot, count, next, reported;
    bool running, stopped;
    uint64_t serial;
    mr_time started;
    uint64_t value[MR_STRAND_ITEMS_MAX];
    unsigned char *pack[MR_STRAND_ITEMS_MAX];
    bool stop[MR_STRAND_ITEMS_MAX];
};

struct sim_pin {
    uint32_t serial;
    uint64_t object; /* 0: free */
};

struct sim_proc {
    bool is_alive;
    mr_time asleep_until;
    uint32_t name, node, session, slots;
    uint64_t store;
    struct mr_worker *w;
    struct mr_worker_effects fx;
    struct sim_run *runs;
    struct sim_pin pins[256];
    uint64_t wake_order; /* of the wake that counts */
    mr_time wake_at;
    uint64_t held_bytes; /* as last told */
    uint32_t queued;
    bool has_told;
};

struct sim_copy {
    uint64_t store;
    bool made, held;
    uint32_t pins;
};

struct sim_object {
    uint64_t value;
    uint64_t bytes;
    struct sim_copy copy[NODES_MAX + 1];
};

enum sim_fate { FATE_OK, FATE_MAY, FATE_MUST };

struct sim_task { /* what the world saw of one node of a job */
    uint64_t expect, seen, seen_losses;
    bool has_seen, is_tainted;
    enum sim_fate fate;
    uint32_t deaths, runs;
    uint32_t guard_life; /* finished, and known to be, in this life: must not start again */
    uint64_t guard_losses;
    uint32_t run_life;
};

struct sim_job { /* one accepted by a scheduler, maybe without our knowing */
    uint64_t id;
    uint32_t spec;
    struct sim_task *task;
    enum mr_job_state final;
    bool was_cancelled, was_retried, has_wants;
};

struct sim_spec {
    struct mr_graph *graph;
    bool is_accepted;
    uint32_t asked_life; /* scheduler's life in which it was submitted */
    uint64_t id;
    mr_duration cancel_after;
    bool wants_retry;
};

struct sim {
    uint64_t seed;
    struct mr_rng rng;
    mr_time now;
    uint64_t order, steps;
    struct sim_ev *heap;
    uint32_t heap_count, heap_room;
    bool trace;
    uint32_t check_every;
    enum sim_plant plant;
    uint32_t faults_mask;
    mr_time faults_end;
    bool calm;       /* no faults any more */
    uint64_t losses; /* of processes, links, objects */

    struct mr_arena arena;
    struct mr_sched_config config;
    struct mr_sched *sched; /* NULL: it is down */
    struct mr_sched_effects fx;
    uint32_t life;
    mr_time life_start;
    bool turn_pending;
    struct mr_sched_record_head *heads; /* the journal */
    unsigned char **records;
    uint32_t records_count, records_room, records_acked;
    uint64_t journal_base; /* sequence of the record before the first */
    bool journal_away;
    uint32_t session_of[64]; /* by slot */

    struct sim_session sessions[SESSIONS_MAX];
    uint32_t sessions_count;
    struct sim_proc procs[PROCS_MAX];
    uint32_t procs_count;
    uint32_t proc_of[NAMES_MAX]; /* or NONE */
    uint32_t names, nodes;
    uint64_t store_of[NODES_MAX]; /* incarnation on the node, 0: none */
    uint64_t stores_count;
    struct sim_object *objects;
    uint64_t objects_count, objects_room;
    uint64_t serial;
    struct sim_spec specs[SPECS_MAX];
    uint32_t specs_count;
    struct sim_job jobs[4 * SPECS_MAX];
    uint32_t jobs_count;
    bool is_forgetting;

    struct {
        uint64_t starts, deaths, crashes, disconnects, sleeps, stores, jobs_done, jobs_failed,
            jobs_cancelled, refused, stolen, recomputed, adopted;
    } count;
};

extern struct sim *sim_current;

/* world.c */
void sim_push(struct sim *s, mr_duration after, struct sim_ev ev);
bool sim_pop(struct sim *s, struct sim_ev *out);
void sim_say(struct sim *s, const char *fmt, ...) MR_PRINTF(2, 3); /* kept: the last ones */
MR_NORETURN void sim_fail(struct sim *s, const char *fmt, ...) MR_PRINTF(2, 3);
void sim_story(const char *what);
uint64_t sim_below(struct sim *s, uint64_t n);
bool sim_chance(struct sim *s, uint32_t in);
void *sim_keep(struct sim_msg *m, const void *p, size_t n);
void sim_msg_free(struct sim_msg **m);

/* graphs.c */
extern const char *const sim_ops[OPS];
void sim_spec_make(struct sim *s, uint32_t spec);
struct sim_job *sim_job_of(struct sim *s, uint64_t id);
uint64_t sim_value(enum sim_op op, struct mr_str args, const uint64_t *in, uint32_t n);
uint64_t sim_value_of_pack(struct mr_str pack);

/* sched.c, journal.c */
void sim_sched_start(struct sim *s);
void sim_sched_crash(struct sim *s);
void sim_sched_step(struct sim *s, struct mr_sched_event *ev);
void sim_sched_turn(struct sim *s);
void sim_up(struct sim *s, uint32_t session, struct sim_msg *m);
void sim_up_end(struct sim *s, uint32_t session);
void sim_flush(struct sim *s, uint32_t slot);
void sim_journal_take(struct sim *s);
void sim_journal_replay(struct sim *s);
void sim_journal_lose_tail(struct sim *s);
void sim_journal_compact(struct sim *s);
void sim_journal_ack(struct sim *s, uint64_t upto);

/* wire.c */
struct sim_msg *sim_wire_down(struct sim *s, struct sim_session *x, const struct mr_sched_batch *b);
struct sim_msg *sim_wire_up(struct sim *s, const struct sim_proc *p, const struct mr_ws_up *up);

/* proc.c, exec.c */
void sim_proc_start(struct sim *s, uint32_t name);
void sim_proc_kill(struct sim *s, uint32_t proc);
void sim_proc_step(struct sim *s, struct sim_proc *p, const struct mr_worker_event *ev);
void sim_proc_turn(struct sim *s, struct sim_proc *p);
void sim_session_cut(struct sim *s, uint32_t session, bool lose);
void sim_exec_give(struct sim *s, struct sim_proc *p, struct mr_strand *strand);
void sim_exec_take(struct sim *s, struct sim_proc *p, uint32_t strand, uint32_t keep);
void sim_exec_stop(struct sim *s, struct sim_proc *p, uint32_t strand, uint32_t at);
void sim_exec_end(struct sim *s, struct sim_proc *p, uint32_t slot, uint64_t serial);
void sim_exec_drop(struct sim *s, struct sim_proc *p);

/* stores.c */
void sim_store_start(struct sim *s, uint32_t node);
void sim_store_lose(struct sim *s, uint32_t node);
void sim_stores_beat(struct sim *s);
uint64_t sim_object_make(struct sim *s, uint64_t store, uint64_t value, uint64_t bytes);
bool sim_object_has(struct sim *s, uint64_t number, uint64_t store);
void sim_object_change(struct sim *s, uint64_t number, uint64_t store, int made, int held, int pin);
void sim_object_lose(struct sim *s);

/* client.c */
void sim_client_submit(struct sim *s, uint32_t spec);
void sim_client_note(struct sim *s, const struct mr_sched_note *n);
void sim_client_act_on(struct sim *s, uint32_t spec, bool retry);
void sim_client_forget(struct sim *s);
bool sim_client_is_content(struct sim *s);
void sim_client_complain(struct sim *s);
void sim_client_values(struct sim *s, bool want, bool anew);

/* faults.c */
void sim_fault(struct sim *s);
void sim_calm(struct sim *s);
