/* The state of one executor, its inputs and its results. For the files of this folder. An executor
 * runs strands: a strand is a list of tasks, its items, that run in order. */
#pragma once

#include "base/buf.h"
#include "host/pool/work_sharing.h"
#include "host/stop.h"
#include "host/tail.h"
#include "ops/call.h"
#include "services/worker/exec/executor.h"
#include "store/arena/client_stop.h"
#include "store/object/value.h"

struct mr_credential;

/* results up to this size are made in the executor's own memory first */
#define MR_SMALL_RESULT_BYTES 8192

#define MR_LOCAL_VALUES_SPARE 8

struct mr_run_chunk {
    struct mr_run_chunk *next;
    size_t used, room;
    char data[];
};

struct mr_local_value { /* a large value that only its strand uses, in a buffer of the executor */
    unsigned char *p;
    uint64_t bytes, room;
};

struct mr_executor {
    const struct mr_executor_env *env;
    uint32_t slot;
    uint32_t work_slot; /* place in work_sharing: the slot with which the executor started */
    struct mr_thread *thread;
    struct mr_inbox *inbox; /* of struct mr_run * */
    struct mr_op_run *call;
    struct mr_flag helps;
    uint64_t *took_ns;    /* last duration of each operator */
    mr_duration cpu_seen; /* last reading of the thread's CPU clock, at the time `cpu_seen_at` */
    mr_time cpu_seen_at;
    uint64_t cpu_thread; /* the thread whose clock was read */
    /* sum of the times of items since that reading; each was too short for a reading of its own */
    mr_duration cpu_short;

    struct mr_pulse pulse;         /* marked at the end of each item */
    int late_fd;                   /* descriptor of mr_clock_delay_open; -1: none */
    mr_duration late_seen;         /* delay that was last read from late_fd */
    mr_duration network_late_seen; /* the same for network_delay_fd */
    mr_time ended_at;              /* when the last item ended; 0: there was none */
    mr_duration late_ahead;        /* delay that was read too early: a part of the next item's */

    /* the item that runs */
    struct mr_run *run;
    uint32_t at;
    /* for each item of the strand, how often items that have not run use its value */
    uint32_t uses[MR_STRAND_ITEMS_MAX];
    uint32_t in_use; /* number of items whose `uses` is above 0 */
    struct mr_local_value local_values[MR_STRAND_ITEMS_MAX];
    struct mr_local_value made;  /* the local value that the running item makes */
    uint32_t local_values_count; /* number of local values in use */
    /* buffers to be used again while they are in the processor's cache */
    struct mr_local_value spare[MR_LOCAL_VALUES_SPARE];
    uint64_t local_values_bytes; /* room of all buffers: in use, being made, and spare */
    uint32_t settled;            /* items before this one will not change any more */
    struct mr_strand_item *item;
    mr_duration input_ns;                 /* time that the item spent on its inputs */
    mr_duration restore_ns;               /* part of input_ns: the store read inputs from disk */
    mr_duration output_ns;                /* time that the item spent on storing its result */
    mr_duration room_ns;                  /* part of output_ns in which the store had no room */
    struct mr_op_training_times training; /* of an item that is a training role; else 0 */
    mr_duration waited_cpu;               /* CPU time that the item spent waiting for helpers */
    mr_duration stolen_cpu;               /* CPU time that helpers spent on the item */
    struct mr_op_input *inputs;
    struct mr_store_view *views;
    uint32_t inputs_room, views_room, views_count;
    struct mr_store_draft draft;
    bool has_draft;
    bool gave_up;         /* the running item was cancelled while it waited */
    bool lacks_store;     /* a call of the item to a store failed as if the store had died */
    uint64_t lacks_bytes; /* size of a result for which the store had no memory; 0: none */
    unsigned char *small; /* MR_SMALL_RESULT_BYTES, aligned */
    struct mr_buf log;    /* the end of the item's output */
    uint64_t log_lost;    /* bytes of output before `log` */
    struct mr_tail tail;  /* the part of the output that was not reported yet */
    struct mr_buf text;   /* scratch memory */
};

/* Return memory that is freed with the run. mr_run_keep copies `bytes` into it. */
struct mr_str mr_run_keep(struct mr_run *run, struct mr_str bytes);
void *mr_run_take(struct mr_run *run, size_t bytes);

/* Returns the cancel flag of the running item, for all its waits. */
struct mr_stop mr_executor_stop_of(const struct mr_executor *x);

/* inputs.c: maps the inputs of the item. After an error, the item's result is written: SKIPPED,
 * STOPPED, NO_ROOM or INPUT_GONE. */
int mr_executor_inputs(struct mr_executor *x);
void mr_executor_inputs_release(struct mr_executor *x);
int mr_executor_load(void *ctx, mr_object_id id, struct mr_str *extent, struct mr_error *e);
void mr_executor_summary(
    struct mr_executor *x, struct mr_buf *out); /* a summary of the arguments, for people */

/* Notes how a call of the running item to a store ended. Returns `err`. */
int mr_executor_store_answered(struct mr_executor *x, int err);

/* results.c */
void *mr_executor_alloc_result(void *ctx, uint64_t bytes, struct mr_error *e);
/* Makes the operator's result the value of the running item: an inline value, a local value, or an
 * object in the store. The object is also persisted if the job asks for that. */
int mr_executor_result(
    struct mr_executor *x, const struct mr_op_result *result, struct mr_error *e);
void mr_executor_result_drop(struct mr_executor *x); /* frees a draft that will not be sealed */

/* times.c */
#define MR_EXECUTOR_CPU_WORTH (20 * MR_US) /* the CPU time of a shorter item is its wall time */
/* Called before the item x->item, which begins at `now`. Returns how long the kernel delayed this
 * thread and the thread that hands out strands, since the last item ended. */
mr_duration mr_executor_times_begin(struct mr_executor *x, mr_time now);
/* Returns the CPU time of the item that ran from `from` to `end`. The CPU time of an item that took
 * longer than expected is counted from the last reading, less the time of short items since. */
mr_duration mr_executor_cpu_of(struct mr_executor *x, mr_time from, mr_time end);
/* Returns the delay of an item that ended at x->ended_at, took `took`, and used `cpu` of it. */
mr_duration mr_executor_late_of(struct mr_executor *x, mr_duration took, mr_duration cpu);
/* Writes what the item's time consisted of into the strand, unless all of it is 0. `took`: its
 * duration; `late`: its delay; `delayed`: the delay before it. */
void mr_executor_parts(
    struct mr_executor *x, mr_duration took, mr_duration late, mr_duration delayed);

/* local_value.c: keeps large values that only one strand uses in the executor's own memory. */
/* Returns a buffer for the value of the running item; NULL: the value goes to the store. */
void *mr_executor_local_value_take(struct mr_executor *x, uint64_t bytes);
/* The buffer of the last `take` becomes the item's value. `bytes`: size of the value. */
void mr_executor_local_value_keep(struct mr_executor *x, uint64_t bytes);
/* Releases the buffer of the last `take`, because the item has another value or none. */
void mr_executor_local_value_drop(struct mr_executor *x);
/* Called when no item will use the value of this item again. */
void mr_executor_local_value_consumed(struct mr_executor *x, uint32_t item);
/* Copies all local values to the store, because they are reported next. False: one of them could
 * not be copied, and its item counts as failed. */
bool mr_executor_local_value_settle(struct mr_executor *x);
void mr_executor_local_value_fini(struct mr_executor *x);
int mr_executor_put(struct mr_executor *x, struct mr_str extent, struct mr_error *e);

/* remote_store.c: blocking calls to object stores. Each opens a connection of its own. */
int mr_remote_header(const char *address, const struct mr_credential *credential, mr_object_id id,
    struct mr_stop stop, struct mr_buf *out, struct mr_error *e);
int mr_remote_persist(const struct mr_executor_env *env, mr_object_id id,
    const struct mr_strand_item *item, struct mr_stop stop, struct mr_error *e);
