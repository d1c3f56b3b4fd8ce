/* The simulator's world: virtual time, dice, and models of all that the cores do not know - links,
 * processes, executors, stores, the journal, clients. The cores in it are the real ones. Everything
 * follows from the seed. A promise that is broken ends the program with the story (sim_fail). */
#pragma once

#include "base/buf.h"
#include "tests/sim/parts.h"

struct mr_json_template;
struct sim_places;

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
    bool has_suspects; /* to be told when it registers first */
};

struct sim_copy {
    uint64_t store;
    uint32_t maker;  /* process + 1 */
    bool made, held; /* its job holds it, says its maker, says the scheduler */
    bool is_unvouched, is_offered, is_persisted;
    mr_time offered_at;
    uint32_t pins;
};

struct sim_store { /* of a node */
    uint64_t id;   /* incarnation, 0: none */
    uint64_t dead; /* the one before */
    bool is_up;    /* its stream, of this life of the scheduler: */
    uint32_t life, session;
    mr_time last_down;
};

struct sim_object {
    uint64_t value;
    uint64_t bytes;
    struct sim_copy copy[NODES_MAX + 1];
};

enum sim_fate { FATE_OK, FATE_MAY, FATE_MUST };

enum sim_guard { GUARD_NONE, GUARD_WORKER = 1, GUARD_INLINE = 2, GUARD_OBJECT = 4 };

struct sim_task { /* what the world saw of one node of a job */
    uint64_t expect, seen, seen_losses;
    bool has_seen, is_tainted, is_target;
    enum sim_fate fate, own; /* own: of its op alone, whatever its inputs do */
    uint32_t deaths, runs;
    /* guard.c: finished, and known to be, in this life: must not start again */
    uint32_t guard, guard_life, guard_session;
    uint64_t guard_losses, guard_stores, guard_held, guard_object;
    uint32_t sent_life, sent_session, sent_attempt, start_life;
    uint32_t roomless_life; /* read back in it, with a value that may have found no room */
    uint32_t gone_life;     /* read back in it, and its object is gone */
    uint32_t referred_life; /* a value that was read back in it refers to it, at any distance */
};

#define LOOPS_SEEN 4

struct sim_job { /* one accepted by a scheduler, maybe without our knowing */
    uint64_t id;
    uint32_t spec;
    struct sim_task *task;
    enum mr_job_state final;
    uint32_t ends[LOOPS_SEEN]; /* of its loops, as the journal has them: the last round + 1 */
    bool was_cancelled, was_retried;
    bool may_be_gone; /* forgotten, or about to be */
    bool is_lost;     /* with a Redis that came back from an older copy */
    bool is_formed;   /* its roles ran all at once */
};

struct sim_spec {
    struct mr_graph *graph;
    struct mr_graph *same; /* of a template's instance: made without the template; or NULL */
    uint64_t template;     /* 0: none; as the scheduler is told */
    uint32_t number_1;     /* of it, and 1 */
    bool is_accepted;
    uint32_t asked_life; /* scheduler's life in which it was submitted */
    uint64_t id;
    mr_duration cancel_after;
    bool wants_retry;
    uint32_t waits;   /* for a parent */
    bool is_given_up; /* refused for the keys of others, again and again */
    uint32_t refusals;
    mr_duration forget_after;
    bool may_clash, may_miss; /* when it was submitted: the keys of others were in the way */
};

struct sim {
    uint64_t seed;
    struct mr_rng rng;
    mr_time now;
    uint64_t order, steps;
    uint64_t digest; /* of all that happened so far: digest.c */
    struct sim_ev *heap;
    uint32_t heap_count, heap_room;
    bool trace;
    uint32_t check_every;
    enum sim_plant plant;
    bool has_loops;     /* three jobs in four are loops */
    bool has_templates; /* three jobs in four are instances of templates */
    bool has_roles;     /* gangs of tasks that end together */
    bool has_tears;     /* workers are lost in the middle of strands */
    bool has_fair;      /* a small job comes beside a large one, when faults are over */
    uint32_t fair_many, fair_one;
    uint64_t fair_sent, fair_most;
    bool fair_is_sent;
    bool has_stores;    /* stores die often, and fail what runs just then */
    mr_time store_died; /* the last one */
    bool has_rewinds;   /* Redis comes back empty, or older, when the scheduler is dead */
    uint64_t tears, draws;
    uint32_t faults_mask;
    mr_time faults_end;
    bool calm;              /* no faults any more */
    uint64_t losses;        /* of processes, links, objects */
    uint64_t given_up;      /* workers, dead or not, whose lease ran out */
    uint64_t revived;       /* released keys that a job asked for */
    uint64_t guesses;       /* deaths of workers of which the scheduler cannot know what ran */
    uint32_t roomless_life; /* a value that was read back found no room in it */

    struct mr_arena arena;
    struct mr_sched_config config;
    struct mr_sched *sched; /* NULL: it is down */
    struct mr_sched_effects fx;
    uint32_t life;
    mr_time life_start;
    bool in_turn;
    mr_time turn_at; /* of the next turn that is planned, its event: */
    uint64_t turn_order, busy_turns;
    struct sim_journal journal;
    struct sim_journal copy; /* of it, as the scheduler that is there, or died last, found it */
    uint32_t session_of[64]; /* by slot */

    struct sim_session sessions[SESSIONS_MAX];
    uint32_t sessions_count;
    struct sim_proc procs[PROCS_MAX];
    uint32_t procs_count;
    uint32_t proc_of[NAMES_MAX]; /* or NONE */
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
    struct mr_buf template_rest[TEMPLATES]; /* their texts behind the parameters */
    struct sim_places *places;              /* of the last template's tasks: templates.c */
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
