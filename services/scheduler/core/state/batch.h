/* A batch: the columns of one SchedulerMessage to one worker. A worker has a batch only while there
 * is something to send to it. After the sending the batch returns to a pool. So each turn (one pass
 * of the shell's loop) writes into memory that the last turn has used and that the CPU still
 * caches, however many workers there are. */
#pragma once

#include "base/buf.h"
#include "services/scheduler/core/state/event.h"

struct mr_sched_runs_out { /* an array that grows, as do the arrays of the structs below */
    struct mr_ws_run *p;
    uint32_t count, room;
};

struct mr_sched_refs_out { /* TaskRefs of session.proto */
    struct mr_sched_runs_out runs;
    uint32_t *index; /* block with the columns `index` and `attempt`, each of `room` rows */
    union {
        uint32_t *attempt;
        uint32_t *inline_bytes; /* used in Values instead of `attempt`; 0: the value is an object */
    };
    uint32_t count, room;
};

enum mr_sched_column { /* columns of Tasks; int32 for the priority, else uint32 */
    MR_COLUMN_INDEX,
    MR_COLUMN_ARGS_BYTES,
    MR_COLUMN_ATTEMPT,      /* usually 1 */
    MR_COLUMN_OP,           /* number for mr_sched_op_name; usually that of the first row */
    MR_COLUMN_INPUTS_COUNT, /* usually 0, as are the columns below */
    MR_COLUMN_USES,
    MR_COLUMN_PRIORITY,
    MR_COLUMNS,
};

/* Rows of Tasks. The columns INDEX and ARGS_BYTES are always written. Every other column has a
 * usual value, and is written only if some row differs from this value. */
struct mr_sched_rows {
    struct mr_sched_runs_out runs;
    uint32_t *block; /* MR_COLUMNS columns of `room` rows */
    uint32_t count, room;
    uint32_t filled; /* a bit for each written column */
    uint32_t usual_op;
};

/* Returns the column; NULL: every row has the column's usual value. */
static inline uint32_t *mr_sched_column(const struct mr_sched_rows *r, enum mr_sched_column c)
{
    return r->filled >> c & 1 ? r->block + (size_t)c * r->room : NULL;
}

static inline uint32_t mr_sched_usual(const struct mr_sched_rows *r, enum mr_sched_column c)
{
    return c == MR_COLUMN_OP ? r->usual_op : c == MR_COLUMN_ATTEMPT;
}

static inline uint32_t mr_sched_cell(
    const struct mr_sched_rows *r, enum mr_sched_column c, uint32_t row)
{
    const uint32_t *column = mr_sched_column(r, c);
    return column ? column[row] : mr_sched_usual(r, c);
}

/* TaskExtra of session.proto. Texts are in `text` of the batch, by offset and length. */
struct mr_sched_extra {
    uint32_t row;
    bool long_running;
    bool alone;
    bool want_object;
    bool persist;
    uint64_t timeout_ns;
    uint32_t key_at, key_bytes;
    uint32_t persist_name_at, persist_name_bytes;
    uint32_t resources_at, resources_count; /* range of `resources` of the batch */
    mr_graph_hash definition;
};

struct mr_sched_amount {
    uint32_t kind; /* number of the resource's name: mr_sched_resource_name */
    uint64_t micro;
};

/* The members that hold columns of the message are its sections. The worker applies them in the
 * order that session.proto states for SchedulerMessage. The sections that few batches have stand
 * after `next`. A function that writes one of these rare sections sets has_more. Without has_more a
 * reader skips the rare sections and their cache lines. */
struct mr_sched_batch {
    bool has_more;
    bool drain;
    /* the batch answers Register; `adopt` and `keep` are part of that answer */
    bool has_registered;
    bool frees_objects; /* some value in `release` has bytes in a store */
    uint32_t serial;    /* number that no other batch has */
    uint64_t incarnation;
    uint64_t session;
    uint64_t heard;
    struct mr_sched_rows tasks;
    struct mr_buf args;     /* bytes */
    struct mr_buf inputs;   /* u32 */
    struct mr_buf last_use; /* u32: positions in `inputs` */
    struct mr_sched_refs_out values;
    struct mr_buf value_inline; /* bytes */
    struct mr_sched_refs_out release;
    struct mr_sched_batch *next; /* the next free batch, while in the pool */

    struct mr_buf value_object;       /* mr_object_id of the rows of `values` that are objects */
    struct mr_buf value_object_bytes; /* u64, of the same rows */
    struct mr_buf value_object_store; /* u32 store numbers (0: unknown), of the same rows */
    struct mr_sched_refs_out cancel, steal, fetch, leave;
    struct mr_buf extra;     /* struct mr_sched_extra */
    struct mr_buf resources; /* struct mr_sched_amount */
    struct mr_buf text;
    struct mr_sched_refs_out adopt, keep;
};

struct mr_sched_batch *mr_sched_batch_new(void);
void mr_sched_batch_free(struct mr_sched_batch **b);
/* Clears all sections. Keeps memory that is enough for a usual batch. */
void mr_sched_batch_clear(struct mr_sched_batch *b);

void mr_sched_rows_grow(struct mr_sched_rows *r);
/* Prepares the columns. Called before the first row is added. */
static inline void mr_sched_rows_begin(struct mr_sched_rows *r, uint32_t op)
{
    r->filled = 1u << MR_COLUMN_INDEX | 1u << MR_COLUMN_ARGS_BYTES;
    r->usual_op = op;
}
void mr_sched_rows_fill(struct mr_sched_rows *r, enum mr_sched_column c);
void mr_sched_runs_grow(struct mr_sched_runs_out *r);
static inline void mr_sched_runs_add(struct mr_sched_runs_out *r, uint64_t job, bool is_unfused)
{
    if (r->count && r->p[r->count - 1].job.v == job) {
        r->p[r->count - 1].count++;
        return;
    }
    if (r->count == r->room) mr_sched_runs_grow(r);
    r->p[r->count++] = (struct mr_ws_run){.job = {job}, .count = 1, .unfused = is_unfused};
}

/* Appends a row to the task references. */
void mr_sched__refs_add(
    struct mr_sched_refs_out *r, uint64_t job, uint32_t index, uint32_t attempt);
