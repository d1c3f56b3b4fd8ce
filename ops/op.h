/* The interface between operators and the process that runs them. An operator is built in or comes
 * from a plug-in: a shared library that exports `mr_plugin_ops`. A plug-in links nothing of
 * millrace, because its functions reach every service through the call. Arguments and their bytes
 * are lent until the operator's function `run` returns. examples/plugin/ is a plug-in. */
#pragma once

#include "base/err_code.h"
#include "ops/op_arg.h"

#define MR_OP_ABI 2
#define MR_OP_PARAMS_MAX 16

struct mr_op_param {
    const char *name;
    uint32_t takes;
    const char *fallback; /* the default, as JSON; NULL: the parameter is required */
    const char *doc;      /* one sentence */
};

enum {
    /* The same arguments give the same bytes, so a lost result may be computed again. */
    MR_OP_DETERMINISTIC = 1 << 0,
    /* Stored inputs arrive as ids (MR_ARG_OBJECT) and are not loaded. */
    MR_OP_BY_REFERENCE = 1 << 1,
    MR_OP_LONG_RUNNING = 1 << 2, /* the task does not occupy a slot of the worker while it runs */
    /* The operator waits or reads files, so no other task waits behind it on its thread. */
    MR_OP_MAY_BLOCK = 1 << 3,
    /* The last parameter takes any number of arguments, at least one if it is required. */
    MR_OP_VARIADIC = 1 << 4,
    /* The result may contain an argument of the call, and with it references to stored objects. */
    MR_OP_PASSES = 1 << 6,
    /* The operator never waits. Small inputs give a small result in microseconds. */
    MR_OP_SMALL = 1 << 5,
};
struct mr_op_call;

struct mr_op_desc {
    uint32_t abi; /* MR_OP_ABI */
    uint32_t flags;
    const char *name;    /* for example "array.mean" */
    const char *summary; /* one sentence */
    const char *result;  /* what the operator returns, in a few words */
    const struct mr_op_param *params;
    uint32_t params_count;
    /* Time of a call with small inputs. The scheduler uses this guess until workers have measured
     * calls of the operator. */
    uint64_t cost_ns;
    int (*run)(struct mr_op_call *call);
};

/* The task of a call. A task may run more than once, and its effects on other programs or files
 * then happen more than once. */
struct mr_op_task {
    mr_job_id job;
    uint32_t index;
    uint32_t attempt;
    struct mr_str key;
};

/* What the time of a training role went into, in ns. */
struct mr_op_training_times {
    uint64_t feed; /* fetching batches */
    uint64_t pull; /* fetching parameters */
    uint64_t push; /* sending gradients */
    uint64_t wait; /* waiting for other roles */
};

/* The services of a call. A service that returns int returns MR_OK, or a negative code of
 * base/err.h after it has recorded an error text. The operator's `run` passes this code on. Before
 * `run` returns MR_OK, it has called one of the `return_…` services: `return
 * call->does->return_int(call, 3);`. */
struct mr_op_services {
    /* Returns memory for a result of `bytes` bytes in its final place, 64-byte aligned and not
     * zeroed. The caller writes a whole value extent there (store/object/value.h). NULL: refused,
     * and the error text is recorded. */
    void *(*return_extent)(struct mr_op_call *call, uint64_t bytes);
    /* Returns memory for the elements of a tensor result, row-major. NULL: refused, as in
     * return_extent. */
    void *(*return_tensor)(
        struct mr_op_call *call, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape);
    /* Returns memory for the content of a bytes result. NULL: refused, as in return_extent. */
    void *(*return_bytes)(struct mr_op_call *call, uint64_t bytes);
    /* Makes an argument the result. An argument that is an input of the task is not copied. */
    int (*return_arg)(struct mr_op_call *call, const struct mr_arg *arg);
    int (*return_pack)(struct mr_op_call *call, struct mr_str pack); /* copied */
    int (*return_nil)(struct mr_op_call *call);
    int (*return_bool)(struct mr_op_call *call, bool v);
    int (*return_int)(struct mr_op_call *call, int64_t v);
    int (*return_float)(struct mr_op_call *call, double v);
    int (*return_text)(struct mr_op_call *call, struct mr_str text);

    /* Records the error text with the operator's name in front, and returns `code`. The task fails
     * when `run` returns this code. */
    int (*fail)(struct mr_op_call *call, int code, const char *fmt, ...) MR_PRINTF(3, 4);
    /* True: the task has been cancelled. Long work calls this every few milliseconds. */
    bool (*is_cancelled)(struct mr_op_call *call);
    /* Waits for `ns`. Returns MR_ECANCELED as soon as the task is cancelled. */
    int (*wait)(struct mr_op_call *call, uint64_t ns);
    void (*log)(struct mr_op_call *call, const char *fmt, ...) MR_PRINTF(2, 3);
    /* Opens a file below the data roots for reading. The operator's function closes `*fd`. */
    int (*open)(struct mr_op_call *call, struct mr_str path, int *fd);
    /* Sets `*extent` to the value extent of a stored object, lent until `run` returns. */
    int (*load)(struct mr_op_call *call, mr_object_id id, struct mr_str *extent);
    /* Returns memory that is valid until `run` returns, zeroed and 64-byte aligned. NULL: the call
     * would have more memory than its limit; the error text is recorded. */
    void *(*scratch)(struct mr_op_call *call, uint64_t bytes);

    /* Returns how many threads may work on blocks of this call at the same time: 1 to 32. The
     * number does not change during the call. */
    uint32_t (*lanes)(struct mr_op_call *call);
    /* Work sharing: calls `block` once for each number below `blocks`, on this thread and on
     * threads of this worker whose slots are idle. Blocks start in the order of their numbers.
     * - `lane` is below lanes(), and no two blocks have the same lane at the same time: working
     * memory is an array indexed by `lane`.
     * - The operator stores the result of each block by the block's number, and combines these
     * results after this call. So the final result has the same bits however many threads helped.
     * - A block uses no service of the call, this one included.
     * - A new task for the slot of a helping thread waits until the thread's block ends. Blocks of
     * 30 to 100 us are right: claiming a block costs less than 1 us.
     * - Cancellation is checked between blocks. MR_ECANCELED: some blocks did not run.
     * - A negative code from a block ends the work. The code of the lowest such block is returned
     * with a general text, which `fail` may replace.
     * The CPU time of helping threads is accounted to this task. */
    int (*parallel)(struct mr_op_call *call, uint32_t blocks,
        int (*block)(void *ctx, uint32_t block, uint32_t lane), void *ctx);
    /* Marks the result as synthetic: an operator drew its data because no data was given. A result
     * with a marked input is marked as well. Values of only a few numbers do not keep the mark. */
    void (*mark_drawn)(struct mr_op_call *call);
    /* Says what the time of a training role went into. The span of the call's task gets these
     * times, and so does the profile of the job. A later call replaces the times of an earlier one.
     */
    void (*note_training)(struct mr_op_call *call, const struct mr_op_training_times *times);
};

struct mr_op_call {
    const struct mr_op_desc *op;
    const struct mr_op_services *does;
    struct mr_op_task task;
    /* One argument for each parameter, with defaults filled in. A variadic operator finds the
     * arguments of its last parameter in `rest`. */
    const struct mr_arg *args;
    const struct mr_arg *rest;
    uint32_t args_count;
    uint32_t rest_count;
};

/* The entry point of a plug-in, which returns its descriptors. `abi` is the version that the loader
 * speaks. NULL: the plug-in does not support this version. */
typedef const struct mr_op_desc *const *(*mr_plugin_entry)(uint32_t abi, uint32_t *count);
#define MR_PLUGIN_ENTRY "mr_plugin_ops"
