/* A strand: tasks in order, each needing only what is here or what an earlier item of the strand
 * makes, run back to back by one executor without returning to the core. The core writes the items
 * and lends them; the executor writes each item's result before it reports the item; the core reads
 * results of reported items only. Reports and cuts travel as messages, which order the memory. */
#pragma once

#include "services/worker/core/session.h"

#define MR_STRAND_ITEMS_MAX 256
#define MR_SLOT_STRANDS_MAX 4 /* at one executor, until it lets go of them: room of its inbox */

enum mr_strand_input_kind {
    MR_STRAND_PACK,   /* inline */
    MR_STRAND_OBJECT, /* in this node's store, or, of an op by reference, anywhere */
    MR_STRAND_ITEM,   /* made by item `item` of this strand */
};

struct mr_strand_input {
    enum mr_strand_input_kind kind;
    uint32_t item;
    uint32_t index; /* of the node of the job */
    uint32_t node;  /* of an object: a row of the strand's nodes */
    struct mr_str pack;
    mr_object_id object;
    uint64_t object_bytes;
    void *held; /* the core's own */
};

enum mr_strand_end {
    MR_STRAND_DONE,       /* with a value */
    MR_STRAND_FAILED,     /* `code` and the texts have the error */
    MR_STRAND_STORE_GONE, /* a store failed: `code` and the texts have the error; the task may run
                             again */
    MR_STRAND_STOPPED,    /* its cancel flag was seen, before the start or while it ran */
    MR_STRAND_SKIPPED,    /* not run: the item that was to make an input has no value */
    MR_STRAND_INPUT_GONE, /* input `gone` could not be read */
    MR_STRAND_NO_ROOM,    /* the store had no room for an input or the result: `message` */
};

struct mr_strand_result {
    size_t log_reported; /* bytes of `log`, from its beginning, that were reported while it ran */
    uint64_t log_lost;   /* bytes before the rest of it, or before all of it, that are not in it */
    enum mr_strand_end end;
    bool used;           /* DONE, as are all its uses: its value is consumed */
    int code;            /* FAILED: MR_E…; EINVAL and EFORMAT are the argument's fault */
    uint32_t gone;       /* INPUT_GONE: position in inputs */
    struct mr_str pack;  /* DONE: an inline value, or empty: */
    mr_object_id object; /* an object of this node's store */
    uint64_t object_bytes;
    mr_time started_ns; /* 0: never started */
    mr_duration duration_ns;
    mr_duration cpu_ns;
    struct mr_str
        message; /* of FAILED, STORE_GONE, INPUT_GONE and NO_ROOM; lent until the report is taken */
    struct mr_str arguments;
    struct mr_str log;
};

struct mr_strand_item {
    mr_job_id job;
    uint32_t index;
    uint32_t attempt;
    uint32_t op; /* in the config's table */
    uint32_t inputs_count;
    const struct mr_strand_input *inputs;
    struct mr_str args;
    uint32_t
        uses;    /* so many items of the strand use its value, and no other task does; 0: others */
    bool report; /* another task waits for this one: report at once */
    bool want_object; /* put even a small value into the store */
    bool persist;
    mr_duration timeout_ns; /* the core watches it; for runtimes that can pass it on */
    struct mr_str key;
    struct mr_str persist_name;
    struct mr_str definition;

    uint32_t task; /* the core's own */
    struct mr_strand_result result;
};

struct mr_strand {
    uint32_t id;   /* of strands alive at one time; reused */
    uint32_t slot; /* below slots: an executor; from slots on: a thread for long-running tasks */
    uint32_t count;
    uint32_t nodes_count;           /* known when it was made */
    const struct mr_ws_node *nodes; /* addresses end with NUL; row 0: unknown */
    struct mr_strand_item items[MR_STRAND_ITEMS_MAX];

    /* the core's own */
    uint32_t reported;
    uint32_t done; /* the report being taken goes up to here */
    uint32_t inputs_count;
    uint32_t take_from; /* a cut is wanted from this item on */
    uint32_t asked;     /* the cut that was asked for last */
    uint32_t stop_at;   /* this item was asked to stop */
    uint32_t leave_at;  /* this item, the last then, is to run on without a slot */
    int32_t priority;   /* the lowest in it */
    bool alive;
    bool held;        /* by its executor, until that reports for the last time */
    bool taking;      /* TAKE was sent, CUT did not come yet */
    bool left;        /* it had a slot, and left it */
    bool begun;       /* all that is left of it has begun, though not all is reported */
    bool measured;    /* every op in it has been */
    bool is_line;     /* each item needs the one before it: no other slot could run any */
    uint8_t needs;    /* class of its tasks */
    uint64_t cost_ns; /* estimate */
    mr_time moved_ns; /* given, or last report */
    mr_time look_ns;  /* not to be looked at before */
    mr_time given_ns; /* to a slot that was idle; 0: it had another strand before it */
    mr_time stop_ns;  /* the item runs into its timeout */
    mr_time kill_ns;  /* the item runs into the grace */
    struct mr_strand_input *inputs;
    void *inputs_held;
};
