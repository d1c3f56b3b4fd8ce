/* Executors run strands. A strand is a list of tasks that one executor runs in order; its tasks are
 * called items. mr_executor_start makes an executor with a thread and an inbox of strands, and
 * mr_executor_new makes one without a thread. An executor reports through one function
 * (mr_executor_env.report). It knows operators, the object store and the crash record. It does not
 * know the scheduler. */
#pragma once

#include "host/strand_cursor.h"
#include "host/flag.h"
#include "host/pulse.h"
#include "host/tail.h"
#include "host/wake_counter.h"
#include "ops/registry/registry.h"
#include "ops/roots.h"
#include "services/worker/core/strand_item.h"
#include "services/worker/exec/crash_record.h"
#include "store/arena/client.h"

struct mr_executor;
struct mr_work_sharing;

/* A strand at an executor. The core's thread makes the run and frees it after the last report. */
struct mr_run {
    struct mr_strand *strand; /* the executor may touch only items that the cursor gave out */
    uint32_t id;              /* number of the strand */
    uint32_t slot;
    uint32_t count;
    uint32_t reported; /* owned by the core's thread: items that the core knows to be done */
    struct mr_strand_cursor cursor;
    struct mr_run_chunk *texts; /* memory of texts that results refer to */
    struct mr_flag stop[MR_STRAND_ITEMS_MAX];
};

struct mr_run_report {
    struct mr_run *run;
    uint32_t done;  /* number of items finished so far */
    uint32_t fresh; /* number of items finished since the report before */
    bool last;      /* the executor no longer touches the run */
    bool quiet;     /* all fresh items succeeded, without output and without the value `true` */
    bool idle;      /* the executor has no other run */
};

struct mr_executor_env { /* shared by all executors; constant while they run */
    /* indexed by the number that the core gives to an operator */
    const struct mr_op_desc *const *ops;
    uint32_t ops_count;
    struct mr_store *store; /* NULL: none; a task whose result is too large to be inline fails */
    const char *store_address;
    const struct mr_credential *credential; /* for calls to object stores; NULL: none */
    const struct mr_roots *roots;
    struct mr_crash_record *crash_record; /* NULL: there is none */
    /* the group in which idle executors help busy ones; each executor with a thread has a slot in
     * the group. NULL: executors do not help each other */
    struct mr_work_sharing *work_sharing;
    uint32_t slots; /* threads that may share the work of one operator call (ops/op.h: lanes) */
    /* counts the items that were reported; its member `spare` counts the strands with items that
     * have not begun; NULL: nothing is counted */
    struct mr_wake_counter *wake_counter;
    uint64_t scratch_bytes_max;
    /* mr_clock_delay_open of the thread that hands out strands; -1: none */
    int network_delay_fd;
    void (*report)(void *ctx, const struct mr_run_report *r); /* called on any thread; may wait */
    /* called on any thread when mr_executor_take_log has output; NULL: not called */
    void (*logged)(void *ctx);
    void *ctx;
};

struct mr_executor *mr_executor_start(const struct mr_executor_env *env, uint32_t slot);
/* Makes an executor without a thread. mr_executor_run_here runs a strand on the caller's thread,
 * and has reported the strand when it returns. */
struct mr_executor *mr_executor_new(const struct mr_executor_env *env);
/* `on`: the executor belongs to a slot. Then it helps other executors while it has nothing to run,
 * and they help it. */
void mr_executor_help(struct mr_executor *x, bool on);
void mr_executor_run_here(struct mr_executor *x, struct mr_run *run);
/* True: the strand has one item, with a cheap operator and small arguments. Then it takes less time
 * to run the item than to hand the strand over to a thread. */
bool mr_executor_is_small(const struct mr_executor_env *env, const struct mr_strand *strand);
/* Waits until the executor has run all strands that it was given, and frees the executor. */
void mr_executor_stop(struct mr_executor **x);
/* Returns the times at which the executor was alive. Any thread may read them. */
const struct mr_pulse *mr_executor_pulse(const struct mr_executor *x);

/* Called on any thread. Appends to `out` what the running task has written since the last call.
 * `tag`: job, index and attempt of the task. `lost`: bytes before this output that were dropped.
 * False: there is no output. */
bool mr_executor_take_log(
    struct mr_executor *x, uint64_t tag[MR_TAIL_TAG], struct mr_buf *out, uint64_t *lost);

struct mr_run *mr_run_new(struct mr_strand *strand);
void mr_run_free(struct mr_run **run);
void mr_executor_give(struct mr_executor *x, struct mr_run *run);
void mr_run_stop(struct mr_run *run, uint32_t item); /* sets the cancel flag of one item */
