/* Parts of the simulated world: events, messages on their way, streams, the journal, running
 * strands. A strand is a list of tasks that one executor runs in order. A template is a job's text
 * that is installed once; the jobs that are made from it are its instances. The comment of an event
 * says what the members `a`, `b` and `c` of struct sim_ev hold. */
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
/* number of templates; the last one is for instances that run after the faults */
#define TEMPLATES 4
/* number of instances of a template that run one after another when faults are over */
#define AGAIN_MAX 5
#define SESSIONS_MAX 4096
#define STORES_MAX 48
#define STORE_BYTES ((uint64_t)48 << 20)
/* factor of the sizes of objects; with it, writing an object to disk takes longer than some
 * tasks */
#define OBJECT_SCALE 8
#define SUSPECTS_MAX 80
#define SHARED_MAX 16
#define GPU 1000000u

enum sim_event {
    EV_SCHED_TURN,
    EV_SCHED_START,
    EV_UP,          /* a worker's message reaches the scheduler; a: session */
    EV_UP_END,      /* the scheduler sees the end of a stream; a: session */
    EV_DOWN,        /* a message of the scheduler reaches the worker; a: session */
    EV_DOWN_END,    /* the worker sees the end of a stream; a: session; c: the worker was revoked */
    EV_CONNECT,     /* a worker opens a stream; a: process */
    EV_WAKE,        /* a worker's deadline; a: process */
    EV_EXEC,        /* an executor acts; a: process; c: serial of the running item, or 0: the
                     * executor of slot b looks for work */
    EV_FETCHED,     /* a fetch ends; a: process, b: value, c: the fetch's serial << 32 | object */
    EV_ACK,         /* the journal acknowledges records up to number c; a: life of the scheduler */
    EV_STORES,      /* all stores send heartbeats */
    EV_PROC_START,  /* a worker's process starts; a: number that is the worker's name */
    EV_STORE_START, /* a store's process starts; a: node */
    EV_STORE_CONNECT,
    EV_STORE_DOWN, /* a message of the scheduler reaches a store; a: node, b: session */
    EV_SUBMIT,     /* a client submits a job; a: spec */
    EV_CLIENT,     /* a client sends a request; a: spec, b: enum sim_wish */
    EV_FORGET,     /* clients ask to forget all jobs; comes again while a job is left */
    EV_FAULT,
};

enum sim_plant { /* bugs planted in the simulation's own parts, which the checks must find */
    PLANT_NONE,
    PLANT_RELEASE, /* a worker is not told which values to release */
    PLANT_VALUE,   /* a worker does not get a value that it was sent */
    PLANT_DONE,    /* the scheduler does not get some completions */
    PLANT_JOURNAL, /* a crash loses acknowledged records */
    PLANT_ATTEMPT, /* a second attempt gives another value */
    PLANT_HOLDING, /* a returning worker does not report the values that it holds */
    PLANT_RECORD,  /* the scheduler does not read records of values from the journal */
    PLANT_UNHOLD,  /* stores are not told that a job releases an object */
    PLANT_ORPHAN,  /* stores do not offer objects whose makers died */
    PLANT_SUSPECT, /* the report of which tasks ran when a worker died names other tasks */
    PLANT_NAME,    /* a name leads to the wrong object */
    PLANT_USES,    /* a worker is told that every value has just one use */
    PLANT_EARLY,   /* if a value has several uses, a worker is told that it has one less */
    /* An executor reports that it keeps an item of a cut strand, and never runs the item. */
    PLANT_CUT,
    /* when the journal is read, the record of a loop's end says that the loop went on */
    PLANT_LOOP,
    PLANT_OTHER, /* a result is reported under the id of another job of the same template */
    PLANT_CORE,  /* no bug here: the bug is in the core that was linked */
    PLANTS
};

enum sim_wish { WISH_CANCEL, WISH_RETRY, WISH_FORGET };

enum sim_op {
    OP_SMALL,
    OP_MEDIUM,
    OP_LARGE,
    OP_REF,
    OP_ROLE,
    OP_IDENTITY, /* gives the result of a loop: a state, or the number of rounds that ran */
    OP_UNTIL,    /* gives 0 or 1: whether a loop ends */
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
    uint32_t life; /* life of the scheduler in which the stream was opened */
    /* is_up: the scheduler sees the stream as open; is_down: the worker does */
    bool is_up, is_down;
    bool has_registered, has_joined, is_waiting;
    uint32_t slot;
    uint64_t incarnation;
    /* Arrival time of the last message in each direction. The next message arrives no earlier. */
    mr_time last_up, last_down;
    uint32_t flying_up, flying_down;
    struct mr_sched_numbers numbers;
};

struct sim_journal {
    struct mr_sched_record_head *heads;
    unsigned char **records;
    uint32_t count, room, acked;
    uint64_t base;      /* sequence of the record before records[0] */
    uint64_t core_last; /* the core's own number of the newest record */
    /* True: a snapshot is being written: the records from snapshot_first to snapshot_last. */
    bool has_snapshot;
    uint64_t snapshot_first, snapshot_last;
    uint32_t epoch; /* the epoch that the cluster's hash in Redis has */
    /* is_amnesic: Redis was emptied, and does not have everything again yet. */
    bool is_away, is_amnesic;
};

struct sim_shared { /* a key that several jobs define */
    enum sim_op op;
    int64_t arg;
    uint32_t in[2], inputs, needs;
    bool is_odd; /* the key has a second definition, variant 1 */
    bool has_name;
    uint64_t value;      /* the key's value, set when a job defines the key; unused if is_odd */
    mr_object_id object; /* the object that the name leads to; 0: none */
    uint64_t bytes;
    mr_graph_hash definition;
};

struct sim_suspects { /* tasks that ran when the last process of a worker died */
    uint32_t count;
    struct mr_ws_run run[SUSPECTS_MAX];
    uint32_t index[SUSPECTS_MAX], attempt[SUSPECTS_MAX];
};

struct sim_run { /* a strand that an executor has */
    struct sim_run *next_run;
    struct mr_strand *strand;
    uint32_t id, slot, count, next, reported;
    bool running, stopped;
    uint64_t serial;
    mr_time started;
    uint64_t value[MR_STRAND_ITEMS_MAX];
    unsigned char *pack[MR_STRAND_ITEMS_MAX];
    bool stop[MR_STRAND_ITEMS_MAX];
    /* for each item whose value is in no store: number of uses in the strand that are left */
    uint32_t uses[MR_STRAND_ITEMS_MAX];
    uint32_t locals;
};
