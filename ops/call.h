/* Running one operator: arguments from a pack and its inputs, the function, its result. The host (a
 * worker, or a test) lends memory for results, says whether the task was cancelled, takes log lines
 * and opens files. One call belongs to one thread. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "host/pool/work_sharing.h"
#include "ops/op.h"
#include "store/object/tensor.h"

/* One input of the task, in the order of its slots. */
struct mr_op_input {
    struct mr_str pack;   /* a scalar/JSON value (or extension 2) inline; else empty */
    struct mr_str extent; /* a value extent, 64-byte aligned. For an op by reference its header is
                             enough: mr_value_header.header_bytes bytes */
    mr_object_id object;  /* none for an inline value */
};

enum mr_op_result_kind {
    MR_OP_RESULT_NONE,
    MR_OP_RESULT_PACK,   /* `pack`: the value itself, in the call's memory */
    MR_OP_RESULT_EXTENT, /* `extent`: what the host's alloc_result returned, written */
    MR_OP_RESULT_INPUT,  /* input `input`, unchanged: the same value, no copy was made */
};

struct mr_op_result {
    enum mr_op_result_kind kind;
    uint32_t input;
    struct mr_str pack;
    struct mr_str extent; /* marked, when it is of drawn data */
    bool is_drawn;        /* of a pack: its value is to be marked, if it becomes an extent */
};

struct mr_op_host {
    /* Where a value extent of `bytes` will stay; 64-byte aligned, not zeroed, the host's. At most
     * one is alive at a time: a second request replaces the first. NULL with `*e` filled: refused.
     */
    void *(*alloc_result)(void *ctx, uint64_t bytes, struct mr_error *e);
    bool (*is_cancelled)(void *ctx);
    /* Waits for `ns` or until the task is cancelled. */
    void (*wait)(void *ctx, uint64_t ns);
    void (*log)(void *ctx, struct mr_str line); /* without newline */
    /* Opens a file for reading beneath the data roots: see ops/roots.h. */
    int (*open)(void *ctx, struct mr_str path, int *fd, struct mr_error *e);
    /* The extent of a stored object, fetched if need be, until the call ends. NULL: cannot. */
    int (*load)(void *ctx, mr_object_id id, struct mr_str *extent, struct mr_error *e);
    /* Threads that may work on blocks of one call at once, and the work. NULL: the caller alone. */
    uint32_t (*lanes)(void *ctx);
    struct mr_blocks_end (*work)(void *ctx, const struct mr_blocks *work);
};

struct mr_op_run; /* memory of calls, reused from one to the next */

/* `scratch_bytes_max`: bound of the memory of one call. The host is borrowed. */
struct mr_op_run *mr_op_run_new(const struct mr_op_host *host, uint64_t scratch_bytes_max);
void mr_op_run_free(struct mr_op_run **r);

/* Runs `op` on the task's arguments, laid out as graph/args.h says. `ctx` is handed to the host's
 * functions. On MR_OK `*result` is filled and lent until the next call with `r`; on failure `*e`
 * (wanted, not NULL) begins with the op's name. */
int mr_op_run(struct mr_op_run *r, const struct mr_op_desc *op, const struct mr_op_task *task,
    struct mr_str args, const struct mr_op_input *inputs, uint32_t inputs_count, void *ctx,
    struct mr_op_result *result, struct mr_error *e);
