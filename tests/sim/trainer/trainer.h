/* Declarations that the parts of sim_trainer share: their world, and the functions that report a
 * broken rule. */
#pragma once

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "services/trainer/core/core.h"

#include <stdio.h>
#include <stdlib.h>

#define TICK (10 * MR_MS)
#define SESSIONS 3
#define MEMBERS 8
#define PROCS 1024
#define TICKETS 65536
#define WRITES 1024
#define CUTS 4096
#define WALL 1700000000000000000u

enum kind { K_START, K_STOP, K_JOIN, K_REPORT, K_BARRIER, K_FORGET };

struct proc { /* one attempt of one role, as the scheduler runs it */
    bool alive, joined, finished, exhausted, kept;
    uint32_t session, member, attempt;
    uint64_t incarnation, version, steps, ticket;
    uint32_t generation, restore_epoch;
    enum mr_training_phase phase;
    mr_time next, silent_until;
    uint64_t cut_version;
    mr_object_id cut, model;
};

struct ticket {
    enum kind kind;
    uint32_t proc, session;
    bool answered, dropped;
};

/* a record on its way to Redis */
struct write {
    uint64_t sequence;
    uint32_t session;
    bool is_delete;
    char *p;
    size_t n;
    mr_time at;
};

/* one object of a checkpoint; a role has reported this object */
struct cut {
    uint32_t session, shard, restore_epoch;
    uint64_t version;
    mr_object_id object;
    bool erased;
};

/* one session: its document, its record in Redis, its jobs, and what the core has told its roles */
struct plan {
    mr_training_id id;
    char document[1024];
    char *record;
    size_t record_bytes;
    uint32_t counts[4];
    uint32_t members, shards;
    bool started, accepted, ended, is_exec, fails;
    enum mr_training_state end;
    uint32_t generation, restore_epoch, rank;
    /* When the job of the graph ends; when the job of the roles was submitted. */
    mr_time graph_at, roles_at;
    bool has_graph_job, has_roles_job, cancelled;
    uint32_t attempts[MEMBERS];
    /* By incarnation: 1 plus the number of the process that got the incarnation; 0: none. */
    uint64_t told_to[4096];
    mr_time start_at;
    uint64_t latest[MEMBERS]; /* by member: the latest incarnation that the core gave it */
    /* By member: restore epoch in which the member joined as an owner of parameters. */
    uint32_t worked_in[MEMBERS];
};

extern struct trainer_world {
    uint64_t seed;
    struct mr_rng rng;
    mr_time now;
    bool trace, calm;
    struct mr_trainer *core;
    struct mr_trainer_effects fx;
    struct mr_trainer_config config;
    bool redis_away, scheduler_away;
    mr_time redis_back, scheduler_back, core_back;
    struct plan plans[SESSIONS];
    struct proc procs[PROCS];
    uint32_t procs_count;
    struct ticket tickets[TICKETS];
    uint64_t tickets_count;
    struct write writes[WRITES];
    uint32_t writes_count;
    struct cut cuts[CUTS];
    uint32_t cuts_count;
    uint64_t digest; /* hash of all effects of the core, in their order */
    uint64_t objects, steps, crashes, kills, done, failed, restores;
    struct mr_trainer_event later[4096]; /* events that reach the core later */
    mr_time later_at[4096];
    uint32_t later_count;
} w;

#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) ts_fail(#x);                                                                     \
    } while (0)
#define SAY(...)                                                                                   \
    do {                                                                                           \
        if (w.trace) {                                                                             \
            (void)printf("%8.3f ", (double)w.now / 1e9);                                           \
            (void)printf(__VA_ARGS__);                                                             \
            (void)printf("\n");                                                                    \
        }                                                                                          \
    } while (0)

static inline uint64_t below(uint64_t n)
{
    return mr_rng_below(&w.rng, n);
}

static inline bool chance(uint64_t of)
{
    return below(of) == 0;
}

_Noreturn void ts_fail(const char *what);
uint64_t ts_ticket(enum kind kind, uint32_t proc, uint32_t session);
struct plan *ts_plan_of(mr_training_id id);
void ts_role_of(const struct plan *p, uint32_t member, struct mr_trainer_event *ev);
bool ts_is_owner(const struct plan *p, const struct mr_trainer_event *ev);

/* Functions of told.c. ts_step gives the core an event, and performs and checks the effects.
 * ts_later does the same at a later time. */
void ts_step(struct mr_trainer_event *ev);
void ts_later(struct mr_trainer_event ev, mr_duration most);

/* Functions of roles.c. */
void ts_role_turn(struct proc *r);
void ts_scheduler_turn(struct plan *p);
