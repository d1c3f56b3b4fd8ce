/* The simulator's world. The scheduler's core and the workers' cores are the real ones. Everything
 * around the cores is simulated: time, links, processes, executors, stores, the journal, clients.
 * The seed determines everything. If a check fails, sim_fail prints the last events and ends the
 * program. A *life* of the scheduler goes from a start to the next crash. */
#pragma once

#include "base/buf.h"
#include "tests/sim/parts.h"

struct mr_json_template;
struct sim_places;

struct sim_pin {
    uint32_t serial;
    uint64_t object; /* number of the object; 0: the entry is free */
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
    /* member `order`, a serial number, of the planned event EV_WAKE; an EV_WAKE with another number
     * is out of date */
    uint64_t wake_order;
    mr_time wake_at;
    /* `held_bytes` and `queued`: what the worker's last heartbeat reported */
    uint64_t held_bytes;
    uint32_t queued;
    bool has_told;
    /* the first Register has to report which tasks ran when the process before this one died */
    bool has_suspects;
};

struct sim_copy {
    uint64_t store;
    uint32_t maker; /* number of the process that made the object, plus 1 */
    /* made: the maker says that a job holds the object; held: the scheduler says so */
    bool made, held;
    bool is_unvouched, is_offered, is_persisted;
    mr_time offered_at;
    uint32_t pins;
};

struct sim_store { /* the store of a node */
    uint64_t id;   /* incarnation of the store; 0: the node has no store now */
    uint64_t dead; /* incarnation of the store that this node had before */
    bool is_up;    /* the store's stream to the scheduler is open, in `life` and `session` */
    uint32_t life, session;
    mr_time last_down;
};

struct sim_object {
    uint64_t value;
    uint64_t bytes;
    struct sim_copy copy[NODES_MAX + 1];
};

/* A task with the fate OK must succeed, one with MAY may fail, and one with MUST must fail. */
enum sim_fate { FATE_OK, FATE_MAY, FATE_MUST };

enum sim_guard { GUARD_NONE, GUARD_WORKER = 1, GUARD_INLINE = 2, GUARD_OBJECT = 4 };

struct sim_task { /* what the simulator expects and has seen of one node of a job */
    uint64_t expect, seen, seen_losses;
    bool has_seen, is_tainted, is_target;
    enum sim_fate fate, own; /* own: the fate by its operator alone, without its inputs */
    uint32_t deaths, runs;
    /* Used by guard.c. `guard` (bits of enum sim_guard): why the task must not start again in the
     * life `guard_life`. */
    uint32_t guard, guard_life, guard_session;
    uint64_t guard_losses, guard_stores, guard_held, guard_object;
    uint32_t sent_life, sent_session, sent_attempt, start_life;
    /* Life in which the value was read back from the journal, but the scheduler's cache of inline
     * values may have had no room for it. */
    uint32_t roomless_life;
    /* life in which the value was read back, but the store in its record did not have its object */
    uint32_t gone_life;
    /* Life in which a value that refers to its inputs was read back. The task of this row made that
     * value, or is an ancestor of the task that made it. */
    uint32_t referred_life;
};

#define LOOPS_SEEN 4

struct sim_job { /* a job that a scheduler accepted, perhaps without an answer to the client */
    uint64_t id;
    uint32_t spec;
    struct sim_task *task;
    enum mr_job_state final;
    /* for each loop, as the journal has it: last round + 1, or 0 if the loop goes on */
    uint32_t ends[LOOPS_SEEN];
    bool was_cancelled, was_retried;
    bool may_be_gone; /* the job was forgotten, or is about to be */
    bool is_lost;     /* the job was lost when Redis came back empty or from an older copy */
    bool is_formed;   /* all roles (tasks of OP_ROLE) of the job have run at the same time */
};

/* a job that a client is to submit */
struct sim_spec {
    struct mr_graph *graph;
    /* For an instance of a template: the graph made without the template; else NULL. */
    struct mr_graph *same;
    uint64_t template; /* id of the template in the submission event; 0: none */
    uint32_t number_1; /* index of the template in sim.templates, plus 1 */
    bool is_accepted;
    uint32_t asked_life; /* life of the scheduler in which the job was submitted */
    uint64_t id;
    mr_duration cancel_after;
    bool wants_retry;
    /* number of times that the submission was put off, because no running task could be the job's
     * parent */
    uint32_t waits;
    bool is_given_up; /* the job was refused too often because of keys of other jobs */
    uint32_t refusals;
    mr_duration forget_after;
    /* When the job was submitted, keys of other jobs were a reason to refuse it: with MR_EEXIST
     * (may_clash) or with MR_ENOENT (may_miss). */
    bool may_clash, may_miss;
};

struct sim {
    uint64_t seed;
    struct mr_rng rng;
    mr_time now;
    uint64_t order, steps;
    uint64_t digest; /* digest of all that has happened (digest.c) */
    struct sim_ev *heap;
    uint32_t heap_count, heap_room;
    bool trace;
    uint32_t check_every;
    enum sim_plant plant;
    bool has_loops;     /* three of four jobs have loops */
    bool has_templates; /* three of four jobs are instances of templates */
    bool has_roles;     /* some jobs have roles: tasks of OP_ROLE that wait until all of them run */
    /* workers die in the middle of strands (lists of tasks that one executor runs) */
    bool has_tears;
    bool has_fair; /* when faults are over, a small job is submitted beside a large one */
    uint32_t fair_many, fair_one;
    uint64_t fair_sent, fair_most;
    bool fair_is_sent;
    bool has_stores;    /* stores die often, and tasks that use them fail */
    mr_time store_died; /* time of the last death of a store */
    bool is_steady;     /* a run of schedules.c: no dice, and every delay is fixed */
    struct sim_figures {
        uint64_t end_ns;     /* virtual time from the first submission to the end of the last job */
        uint64_t jobs_ns;    /* virtual times from submission to end, added up over the jobs */
        uint64_t starts;     /* tasks started, also those that start again */
        uint64_t messages;   /* messages between the scheduler and workers */
        uint64_t wire_bytes; /* of these messages */
        uint64_t journal_bytes;
        uint64_t stored_bytes; /* bytes of objects that were made in stores */
        uint64_t moved_bytes;  /* bytes of objects that were fetched from another node */
    } figures;
    bool has_rewinds; /* Redis comes back empty or from an older copy while the scheduler is down */
    uint64_t tears, draws;
    uint32_t faults_mask;
    bool calm;         /* the faults have ended */
    uint64_t losses;   /* deaths, sleeps, retirements, broken streams, rewinds and lost objects */
    uint64_t given_up; /* number of workers, dead or not, whose lease ran out */
    uint64_t revived;  /* number of submissions and retries that may need released keys again */
    /* number of times that the scheduler did not learn in time which tasks ran when a worker
     * died */
    uint64_t guesses;
    /* last life whose replay of the journal lost a value: the scheduler's cache of inline values
     * had no room for the value, or the value's object is gone */
    uint32_t roomless_life;

    struct mr_arena arena;
    struct mr_sched_config config;
    struct mr_sched *sched; /* NULL: the scheduler is down */
    struct mr_sched_effects fx;
    uint32_t life;
    bool in_turn;
    mr_time turn_at; /* time of the next planned turn; turn_order is the `order` of its event */
    uint64_t turn_order, busy_turns;
    struct sim_journal journal;
    /* The journal as the present or last scheduler found it at its start. */
    struct sim_journal copy;
    uint32_t session_of[64]; /* session of the worker in each slot of the scheduler's table */

    struct sim_session sessions[SESSIONS_MAX];
    uint32_t sessions_count;
    struct sim_proc procs[PROCS_MAX];
    uint32_t procs_count;
    uint32_t proc_of[NAMES_MAX]; /* process by worker name; NONE: not running */
    uint32_t names, nodes;
    struct sim_store store[NODES_MAX];
    struct sim_suspects suspects[NAMES_MAX];
    struct sim_shared shared[SHARED_MAX];
    uint32_t shared_count, odd;
    uint64_t stores_count, beats;
    struct sim_object *objects;
    uint64_t objects_count, objects_room;
    uint64_t serial;
    struct sim_spec specs[SPECS_MAX + AGAIN_MAX];
    uint32_t specs_count;
    struct mr_json_template *templates[TEMPLATES];
    struct mr_buf template_rest[TEMPLATES]; /* for each template, its JSON text after "params" */
    /* processes to which tasks of the last template in `templates` were sent (templates.c) */
    struct sim_places *places;
    struct sim_job jobs[8 * SPECS_MAX];
    uint32_t jobs_count;
    bool is_forgetting;

    struct sim_counts {
        uint64_t steps, starts, deaths, crashes, disconnects, sleeps, stores, jobs_done,
            jobs_failed, jobs_cancelled, refused, stolen, recomputed, adopted, children, moves,
            squeezes, refused_jobs, retired, used_up, cuts, torn, lost_locals, cached, repaired,
            scored, roots_held, instances, ends_read, rounds_read, rewinds, lost_jobs, raised,
            store_failures, fair;
    } count;
};
