/* A strand is a list of tasks, its items, that one executor runs back to back, without returning to
 * the core. Each item needs only values that exist already or that an earlier item of the strand
 * makes. The core writes the items and lends them to the executor. The executor writes the result
 * of an item before the item is reported, and the core reads results of reported items only.
 *
 * An executor's reports go through an inbox. The core's thread also reads and cuts a running strand
 * through its atomic cursor (host/strand_cursor.h); a cut takes the last items off a strand. The
 * inbox and the cursor order the memory accesses. */
#pragma once

#include "session/down.h"

#define MR_STRAND_ITEMS_MAX 256
/* limit of strands that one executor has not released: the room of its inbox */
#define MR_SLOT_STRANDS_MAX 4

enum mr_strand_input_kind {
    MR_STRAND_PACK, /* an inline value: `pack` */
    /* an object: in this node's store, or, for an operator that gets only the ids of its inputs, on
     * any node */
    MR_STRAND_OBJECT,
    MR_STRAND_ITEM, /* the result of item `item` of this strand */
};

struct mr_strand_input {
    enum mr_strand_input_kind kind;
    uint32_t item;
    uint32_t index; /* index of the task that makes the input */
    uint32_t node;  /* MR_STRAND_OBJECT: row of the strand's `nodes` */
    struct mr_str pack;
    mr_object_id object;
    uint64_t object_bytes;
    void *held; /* only the core uses this member */
};

enum mr_strand_end {
    MR_STRAND_DONE,       /* the item has a value */
    MR_STRAND_FAILED,     /* `code`, `message` and `arguments` have the error */
    MR_STRAND_STORE_GONE, /* a store failed: `code`, `message` and `arguments` have the error; the
                             task may run again */
    MR_STRAND_STOPPED, /* the item's cancel flag was seen, before the start or while the item ran */
    MR_STRAND_SKIPPED, /* not run: an item that should have made an input has no value */
    MR_STRAND_INPUT_GONE, /* input `gone` could not be read */
    MR_STRAND_NO_ROOM,    /* the store had no room for an input or the result: see `message` */
};

struct mr_strand_result {
    size_t log_reported; /* bytes at the beginning of `log` that were reported while the item ran */
    /* bytes of output that were dropped before the part of `log` that is not reported */
    uint64_t log_lost;
    enum mr_strand_end end;
    bool used; /* DONE, and all users of the value are DONE: the executor has dropped the value */
    /* FAILED, STORE_GONE: the error, MR_E…. FAILED with MR_EINVAL or MR_EFORMAT: the task's
     * arguments are at fault. */
    int code;
    uint32_t gone;       /* INPUT_GONE: position in inputs */
    struct mr_str pack;  /* DONE: an inline value; empty: the value is `object` */
    mr_object_id object; /* an object of this node's store */
    uint64_t object_bytes;
    mr_time started_ns; /* 0: the item never started */
    mr_duration duration_ns;
    mr_duration cpu_ns;
    bool has_parts; /* the item has a row in `parts` of the strand; false: all of them are 0 */
    /* `message`, `arguments` and `log` are lent until the core has taken the report */
    struct mr_str message;   /* FAILED, STORE_GONE, INPUT_GONE and NO_ROOM: what went wrong */
    struct mr_str arguments; /* the arguments of a task that failed, as text; may be empty */
    struct mr_str log;       /* the task's output */
};

/* What the time of an item consisted of. Most items are tiny and have none of this. So these times
 * are not in mr_strand_result, which is written and read for each item. */
struct mr_strand_parts {
    /* input_ns, output_ns and late_ns are parts of duration_ns */
    mr_duration input_ns;   /* time to map and load inputs */
    mr_duration restore_ns; /* part of input_ns in which the store read inputs back from disk */
    mr_duration output_ns;  /* time to store the result; 0 for a small result */
    mr_duration room_ns;    /* part of output_ns in which the store had no room */
    mr_duration late_ns;    /* time in which the thread could run, but the kernel ran another */
    /* time before the start in which the worker's threads could run, but the kernel ran others */
    mr_duration delayed_ns;
    uint64_t training; /* shares of duration_ns (account/training_shares.h) */
};

struct mr_strand_item {
    mr_job_id job;
    uint32_t index;
    uint32_t attempt;
    uint32_t op; /* position in mr_worker_config.ops (core.h) */
    uint32_t inputs_count;
    const struct mr_strand_input *inputs;
    struct mr_str args;
    /* number of items of the strand that use this item's value, if nothing else uses the value; 0:
     * something else may use it */
    uint32_t uses;
    /* a task outside the strand waits for this item: the executor reports it at once */
    bool report;
    bool want_object; /* put even a small value into the store */
    bool persist;
    mr_duration timeout_ns; /* watched by the core, not by the executor; 0: no timeout */
    struct mr_str key;
    struct mr_str persist_name;
    struct mr_str definition;

    uint32_t task; /* only the core uses this member */
    struct mr_strand_result result;
};

struct mr_strand {
    uint32_t id; /* unique among the strands that are alive; used again later */
    /* below the number of slots: that slot's executor; from there on: a thread for long-running
     * tasks */
    uint32_t slot;
    uint32_t count;
    uint32_t nodes_count;           /* rows of `nodes` when the strand was made */
    const struct mr_ws_node *nodes; /* addresses end with a NUL; row 0: unknown */
    struct mr_strand_item items[MR_STRAND_ITEMS_MAX];
    /* parts[i] is only set if items[i].result.has_parts */
    struct mr_strand_parts parts[MR_STRAND_ITEMS_MAX];

    /* Only the core uses the members below; the executor reads `measured`, too. TAKE and LOOK are
     * effects of the core, CUT is an event (event.h). */
    uint32_t reported;
    uint32_t done; /* number of finished items, as the latest report says */
    uint32_t inputs_count;
    uint32_t take_from; /* the core wants a cut from this item on */
    uint32_t asked;     /* the last TAKE asked for a cut that begins at this item */
    uint32_t stop_at;   /* the item whose cancel flag was set */
    /* the item that continues without a slot, after the items behind it are cut off; NONE: none */
    uint32_t leave_at;
    int32_t priority; /* the smallest priority of the strand's tasks; larger numbers run first */
    bool alive;
    bool held;     /* the executor has not released the strand */
    bool taking;   /* the core has asked for a cut (TAKE), and the answer (CUT) has not come */
    bool left;     /* the strand has given up its slot and runs on like a long-running one */
    bool begun;    /* a CUT has shown that the executor has begun all items of the strand */
    bool measured; /* the costs of all its operators are measured */
    bool is_line;  /* each item needs the item before it, so no other slot could run any of them */
    uint8_t needs; /* what its tasks need to run (resources, alone): a row of the core's `needs` */
    uint64_t cost_ns; /* estimate */
    mr_time moved_ns; /* when the strand was given, or last reported */
    mr_time look_ns;  /* when the core next asks which items are finished (effect LOOK) */
    /* when the strand was given to an idle slot; 0: the slot had another strand */
    mr_time given_ns;
    mr_time stop_ns; /* when the running item reaches its timeout */
    mr_time kill_ns; /* when the process has to end if the item `stop_at` has not ended */
    struct mr_strand_input *inputs;
    void *inputs_held;
};
