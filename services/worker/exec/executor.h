/* Executors: threads that run strands. Each has an inbox of runs and reports to the core's thread
 * through one function. Knows operators, the object store and the crash record; does not know the
 * scheduler. */
#pragma once

#include "host/strand_cursor.h"
#include "host/flag.h"
#include "host/tail.h"
#include "host/wake_counter.h"
#include "ops/registry/registry.h"
#include "ops/roots.h"
#include "services/worker/core/strand_item.h"
#include "services/worker/exec/crash_record.h"
#include "store/arena/client.h"

struct mr_executor;
struct mr_work_sharing;

/* One strand on its way: made by the core's thread, freed there after its last report. */
struct mr_run {
    struct mr_strand *strand; /* items that the cursor gave may be touched, no others */
    uint32_t id;              /* the strand's */
    uint32_t slot;
    uint32_t count;
    uint32_t reported; /* of the core's thread */
    struct mr_strand_cursor cursor;
    struct mr_run_chunk *texts; /* what results lend */
    struct mr_flag stop[MR_STRAND_ITEMS_MAX];
};

struct mr_run_report {
    struct mr_run *run;
    uint32_t done;
    uint32_t fresh; /* of them, since the report before */
    bool last;      /* nothing of the run is touched any more */
    bool quiet;     /* all fresh ones are done, and there is nothing remarkable about them */
    bool idle;      /* the executor has nothing else to run */
};

struct mr_executor_env {                 /* shared by all executors, constant while they run */
    const struct mr_op_desc *const *ops; /* by the core's numbers */
    uint32_t ops_count;
    struct mr_store *store; /* NULL: none; values stay inline or fail */
    const char *store_address;
    const struct mr_credential *credential; /* for stores; NULL: none */
    const struct mr_roots *roots;
    struct mr_crash_record *crash_record; /* NULL: none is kept */
    struct mr_work_sharing
        *work_sharing; /* a place for each executor with a thread; NULL: nobody helps */
    uint32_t slots;    /* threads that may work on one call's blocks */
    struct mr_wake_counter *wake_counter; /* its spare ones are kept: strands not begun, and what of
                               one is not; NULL: nobody asks */
    uint64_t scratch_bytes_max;
    void (*report)(void *ctx, const struct mr_run_report *r); /* any thread; may wait */
    void (*logged)(void *ctx); /* any thread: mr_executor_take_log has something; NULL: no use */
    void *ctx;
};

struct mr_executor *mr_executor_start(const struct mr_executor_env *env, uint32_t slot);
/* One without a thread, for mr_executor_run_here: the strand runs on the caller's thread, as its
 * slot, and is reported before the return. */
struct mr_executor *mr_executor_new(const struct mr_executor_env *env);
/* Has it a slot of ordinary tasks? Then it helps others while it has nothing to run, and is helped.
 */
void mr_executor_help(struct mr_executor *x, bool on);
void mr_executor_run_here(struct mr_executor *x, struct mr_run *run);
/* Is its work so small that a hand-off would take longer: one item, an op and arguments that say
 * so? */
bool mr_executor_is_small(const struct mr_executor_env *env, const struct mr_strand *strand);
void mr_executor_stop(struct mr_executor **x); /* after its runs have ended; joins */

/* Any thread: takes what its task has written since the last time. `tag`: job, index, attempt. */
bool mr_executor_take_log(
    struct mr_executor *x, uint64_t tag[MR_TAIL_TAG], struct mr_buf *out, uint64_t *lost);

struct mr_run *mr_run_new(struct mr_strand *strand);
void mr_run_free(struct mr_run **run);
void mr_executor_give(struct mr_executor *x, struct mr_run *run);
void mr_run_stop(struct mr_run *run, uint32_t item); /* sets the flag of one item */
