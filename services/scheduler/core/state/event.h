/* The core's events. An event lends its pointers for the step, except `graph`, which the core
 * takes. Messages of workers: lib/session. Each event has the wall clock's time, which the core
 * uses only for dates that users read. */
#pragma once

#include "graph/graph.h"
#include "session/up.h"

/* The task that submits the job. The task must be running. It gives its slot back, because it may
 * wait for the job. */
struct mr_sched_parent {
    mr_job_id job; /* 0: none */
    uint32_t index;
    uint32_t attempt;
};

/* A value that exists before the job runs: a stored object, an object found by its name, or a
 * result that the same definition persisted earlier. */
struct mr_sched_resolved {
    uint32_t index;
    mr_object_id object;
    uint64_t bytes;
    uint64_t store; /* incarnation of a store that has the object; 0: unknown */
};

struct mr_sched_submit {
    uint64_t ticket, template; /* `template`: the number of the job's template, 0: none */
    struct mr_graph *graph;    /* the core takes ownership */
    /* The graph as bytes (mr_graph_to_bytes). The core writes them if `graph_bytes` is empty and
     * piece_bytes is 0. */
    struct mr_str graph_bytes;
    /* Not 0: `graph_bytes` is empty, because the shell keeps the graph's bytes in pieces (struct
     * mr_sched_record_head). piece_bytes is the sum of their sizes. */
    uint64_t piece_bytes;
    mr_graph_hash body_hash; /* a known request id with another body is refused: ALREADY_EXISTS */
    const struct mr_sched_resolved *resolved; /* ascending by index */
    uint32_t resolved_count;
    /* when the job of `parent` fails or is cancelled, this job is cancelled */
    struct mr_sched_parent parent;
};

struct mr_sched_store {
    uint64_t store; /* incarnation */
    struct mr_str node, address;
    uint64_t memory_bytes;
    struct mr_str disk_full; /* STORE_HEARD: the directory whose disk is full; empty: none */
    uint32_t epoch;          /* as in mr_ws_register */
    uint64_t scheduler;
};

struct mr_sched_objects {
    uint64_t store;
    const mr_object_id *ids;
    uint32_t count;
};

enum mr_sched_event_type {
    MR_SCHED_TICK,
    MR_SCHED_SUBMIT,          /* uses `submit` */
    MR_SCHED_CANCEL,          /* job, ticket, text (the reason) */
    MR_SCHED_RETRY,           /* job, ticket */
    MR_SCHED_FORGET,          /* job, ticket */
    MR_SCHED_WANT,            /* job, index: a client wants the value of this node */
    MR_SCHED_WORKER_REGISTER, /* session, worker */
    /* slot, incarnation, message. The core ignores the message if the worker in this slot has
     * another incarnation. */
    MR_SCHED_WORKER_MESSAGE,
    MR_SCHED_WORKER_CLOSED,  /* slot, incarnation: the stream has ended */
    MR_SCHED_WORKER_CRASHED, /* slot, incarnation, refs: tasks that ran when the worker crashed */
    MR_SCHED_WORKER_RETIRE,  /* slot, incarnation */
    MR_SCHED_STORE_REGISTER, /* store */
    MR_SCHED_STORE_HEARD,    /* store: it is alive */
    MR_SCHED_STORE_CLOSED,   /* store: its stream has ended */
    MR_SCHED_OBJECTS_LOST,   /* objects */
    /* objects that the store is about to drop; the core tells the store which of them are in use */
    MR_SCHED_OBJECTS_UNHELD,
    MR_SCHED_JOURNAL_ACKED, /* sequence: Redis has all records up to this one */
    MR_SCHED_JOURNAL_AWAY,
    MR_SCHED_JOURNAL_BACK,
    MR_SCHED_RECORD,    /* record: a record of the journal, in order; comes before RECOVERED only */
    MR_SCHED_RECOVERED, /* the whole journal is read: the core may begin */
};

struct mr_sched_event {
    enum mr_sched_event_type type;
    uint64_t wall_ns; /* since 1970; 0: the time of the last event still holds */
    uint64_t ticket;  /* number that the reply carries back */
    mr_job_id job;
    uint32_t index;
    uint32_t slot; /* position in the core's table of workers */
    uint64_t incarnation;
    /* the shell's number of the worker's stream; it is also in notes (effect.h) about the stream */
    uint64_t session;
    uint64_t sequence;
    struct mr_str text;
    struct mr_ws_refs refs;
    struct mr_sched_submit submit;
    struct mr_ws_register worker;
    struct mr_ws_up message;
    struct mr_sched_store store;
    struct mr_sched_objects objects;
    struct {
        uint32_t type; /* enum mr_sched_record */
        struct mr_str bytes;
    } record;
};
