/* Runs one operator: decodes the arguments, calls the operator's function, returns the result. The
 * *host* is the process in which the operator runs, a worker or a test. The host provides memory
 * for results, cancellation, the log and files. A call belongs to one thread.
 *
 * A pack is a value as MessagePack (base/pack.h). An extent is a value as one block of bytes with a
 * header (store/object/value.h). */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "host/pool/work_sharing.h"
#include "ops/op.h"
#include "store/object/tensor.h"

/* One input of the task. The pack of arguments refers to inputs by their index. */
struct mr_op_input {
    struct mr_str pack; /* the value as a pack, if it travels inline; else empty */
    /* The value as an extent, 64-byte aligned. For an operator with MR_OP_BY_REFERENCE the header
     * alone is enough: mr_value_header.header_bytes bytes. */
    struct mr_str extent;
    mr_object_id object; /* id of the value; zero for an inline value */
};

enum mr_op_result_kind {
    MR_OP_RESULT_NONE,
    MR_OP_RESULT_PACK,   /* `pack` is the value, in memory of the call */
    MR_OP_RESULT_EXTENT, /* `extent` is the value, in memory from the host's alloc_result */
    MR_OP_RESULT_INPUT,  /* the value is input number `input`, unchanged and not copied */
};

struct mr_op_result {
    enum mr_op_result_kind kind;
    uint32_t input;
    struct mr_str pack;
    struct mr_str extent; /* for synthetic data its header has the flag MR_VALUE_DRAWN already */
    /* True: the data are synthetic. A host that stores `pack` as an extent marks that extent
     * (mr_value_mark_drawn). */
    bool is_drawn;
};

struct mr_op_host {
    /* Allocates memory of the host for a value extent of `bytes` bytes, 64-byte aligned and not
     * zeroed. At most one such extent exists in a call: a second request replaces the first. NULL:
     * refused, and `*e` says why. */
    void *(*alloc_result)(void *ctx, uint64_t bytes, struct mr_error *e);
    bool (*is_cancelled)(void *ctx);
    /* Waits for `ns`, or for less if the task is cancelled. */
    void (*wait)(void *ctx, uint64_t ns);
    void (*log)(void *ctx, struct mr_str line); /* `line` has no newline at its end */
    /* Opens a file below the data roots for reading (ops/roots.h). */
    int (*open)(void *ctx, struct mr_str path, int *fd, struct mr_error *e);
    /* Sets `*extent` to the extent of a stored object, valid until the call ends. The host fetches
     * the object if necessary. If `load` is NULL, the host cannot load objects. */
    int (*load)(void *ctx, mr_object_id id, struct mr_str *extent, struct mr_error *e);
    /* The functions for work sharing (mr_op_services.parallel). NULL: all blocks run on the calling
     * thread. */
    uint32_t (*lanes)(void *ctx);
    struct mr_blocks_end (*work)(void *ctx, const struct mr_blocks *work);
    /* Takes the times of a training role. NULL: the host does not record them. */
    void (*note_training)(void *ctx, const struct mr_op_training_times *times);
};

struct mr_op_run; /* memory in which one thread makes its calls, one after the other */

/* Makes the memory. `scratch_bytes_max` bounds the memory of one call. The host is borrowed. */
struct mr_op_run *mr_op_run_new(const struct mr_op_host *host, uint64_t scratch_bytes_max);
void mr_op_run_free(struct mr_op_run **r);

/* Runs `op` on arguments in the form of graph/args.h. `ctx` is passed to the host's functions.
 * MR_OK: `*result` is filled and lent until the next call with `r`. After an error the text of `*e`
 * begins with the operator's name; `e` is not NULL. */
int mr_op_run(struct mr_op_run *r, const struct mr_op_desc *op, const struct mr_op_task *task,
    struct mr_str args, const struct mr_op_input *inputs, uint32_t inputs_count, void *ctx,
    struct mr_op_result *result, struct mr_error *e);
