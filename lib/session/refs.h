/* Rows of tasks in the messages of the gRPC stream WorkerSession (proto/millrace/v1/session.proto).
 * Rows travel as columns: element i of each column belongs to row i. `runs` names the job of each
 * row: the first `count` rows belong to the job of the first run, the next rows to the job of the
 * second run, and so on. This header, down.h (scheduler to worker) and up.h (worker to scheduler)
 * define structs for these messages. The cores of both sides read and write the structs; encode.h
 * and decode.h turn them into bytes and back. mr_ws_ stands for WorkerSession. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/time.h"

struct mr_ws_run {
    mr_job_id job;
    uint32_t count; /* rows */
    bool unfused;   /* in Tasks: the worker runs and reports each task of the job separately */
};

struct mr_ws_refs { /* TaskRefs: attempts of tasks */
    const struct mr_ws_run *runs;
    uint32_t runs_count;
    const uint32_t *index;
    const uint32_t *attempt; /* NULL: all 0 */
    uint32_t count;          /* rows */
};

static inline uint32_t mr_ws_attempt_of(const struct mr_ws_refs *r, uint32_t row)
{
    return r->attempt ? r->attempt[row] : 0;
}

struct mr_ws_resource {
    struct mr_str name;
    uint64_t micro; /* millionths; UINT64_MAX: the number on the wire is not within 0 and 1e12 */
};

/* Returns a cell of a column. A column that is NULL has the value `usual` in each row. */
static inline uint32_t mr_ws_cell(const uint32_t *column, uint32_t row, uint32_t usual)
{
    return column ? column[row] : usual;
}

/* A walk over rows in order. It begins as {.runs = …}; mr_ws_walk_next returns the job of the next
 * row. */
struct mr_ws_walk {
    const struct mr_ws_run *runs;
    uint32_t run, left;
};

static inline mr_job_id mr_ws_walk_next(struct mr_ws_walk *w)
{
    while (!w->left)
        w->left = w->runs[w->run++].count;
    w->left--;
    return w->runs[w->run - 1].job;
}

/* True: the row that mr_ws_walk_next has visited last belongs to an unfused run (struct
 * mr_ws_run). */
static inline bool mr_ws_walk_is_unfused(const struct mr_ws_walk *w)
{
    return w->runs[w->run - 1].unfused;
}

/* Checks that the runs of a message from outside cover exactly its rows. MR_EFORMAT: they do not;
 * the error text begins with `what`. */
int mr_ws_refs_check(const char *what, const struct mr_ws_refs *r, struct mr_error *e);
