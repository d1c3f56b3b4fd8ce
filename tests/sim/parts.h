/* What happens in the simulated world: events, messages on their way, streams, strands that run. */
#pragma once

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/pack.h"
#include "base/rng.h"
#include "services/scheduler/core/batch_message.h"
#include "services/scheduler/core/core.h"
#include "services/worker/core/core.h"

#define NONE UINT32_MAX
#define PROCS_MAX 512
#define NAMES_MAX 8
#define NODES_MAX 3
#define SPECS_MAX 16
#define TEMPLATES 4 /* the last one for instances after the faults */
#define AGAIN_MAX 5 /* more instances, one after another, when faults are over */
#define SESSIONS_MAX 4096
#define STORES_MAX 48
#define STORE_BYTES ((uint64_t)48 << 20)
#define OBJECT_SCALE 8 /* so that the disk takes longer than some tasks */
#define SUSPECTS_MAX 80
#define SHARED_MAX 16
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
    EV_STORE_CONNECT,
    EV_STORE_DOWN, /* a: node, b: session: the scheduler's message reaches the store */
    EV_SUBMIT,     /* a: spec */
    EV_CLIENT,     /* a: spec, b: enum sim_wish */
    EV_FORGET,     /* every job, until all are */
    EV_FAULT,
};

enum sim_plant { /* bugs in the glue that the checks must catch */
    PLANT_NONE,
    PLANT_RELEASE, /* releases are lost */
    PLANT_VALUE,   /* a value brought to a worker is lost */
    PLANT_DONE,    /* some completions are lost */
    PLANT_JOURNAL, /* acknowledged records are lost with a crash */
    PLANT_ATTEMPT, /* a second attempt makes another value */
    PLANT_HOLDING, /* a worker that returns does not say what it holds */
    PLANT_RECORD,  /* records of values are not read back */
    PLANT_UNHOLD,  /* stores do not hear that a job lets go */
    PLANT_ORPHAN,  /* stores do not offer what dead workers left */
    PLANT_SUSPECT, /* a dead worker's running tasks are told wrong */
    PLANT_NAME,    /* a name leads to another's object */
    PLANT_USES,    /* a worker is told that every value has just one use */
    PLANT_EARLY,   /* a worker is told of one use less than there are */
    PLANT_CUT,     /* an executor says that it kept an item of a cut strand, and runs it never */
    PLANT_LOOP,    /* where a loop ended is not read back, but that it went on */
    PLANT_OTHER,   /* what a task has made is told as made for another instance of its template */
    PLANT_CORE,    /* none: it is in a core that was linked */
    PLANTS
};

enum sim_wish { WISH_CANCEL, WISH_RETRY, WISH_FORGET };

enum sim_op {
    OP_SMALL,
    OP_MEDIUM,
    OP_LARGE,
    OP_REF,
    OP_ROLE,
    OP_IDENTITY, /* what comes out of loops */
    OP_UNTIL,    /* 0 or 1 */
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
    struct mr_ws_down down;
    struct mr_ws_up up;
    const mr_object_id *hold, *unhold, *claimed, *verify; /* to a store */
    uint32_t hold_count, unhold_count, claimed_count, verify_count;
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
    struct mr_sched_numbers numbers;
};

struct sim_journal {
    struct mr_sched_record_head *heads;
    unsigned char **records;
    uint32_t count, room, acked;
    uint64_t base;      /* sequence of the record before the first */
    uint64_t core_last; /* the core's own number of its newest record */
    bool has_snapshot;  /* one is on its way: */
    uint64_t snapshot_first, snapshot_last;
    uint32_t epoch;           /* in the cluster's hash */
    bool is_away, is_amnesic; /* Redis was emptied, and has not everything again */
};

struct sim_shared { /* a definition that jobs have in common */
    enum sim_op op;
    int64_t arg;
    uint32_t in[2], inputs, needs;
    bool is_odd; /* has two variants */
    bool has_name;
    uint64_t value;      /* of variant 0, once some job defines it */
    mr_object_id object; /* under its name: */
    uint64_t bytes;
    mr_graph_hash definition;
};

struct sim_suspects { /* what ran when a worker's last process died */
    uint32_t count;
    struct mr_ws_run run[SUSPECTS_MAX];
    uint32_t index[SUSPECTS_MAX], attempt[SUSPECTS_MAX];
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
    uint32_t uses[MR_STRAND_ITEMS_MAX]; /* of values that are in no store, for the strand alone */
    uint32_t locals;
};
