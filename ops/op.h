/* What an operator is and what it is handed, built-in or from a plug-in: a shared library that
 * exports `mr_plugin_ops` and links nothing of millrace, for all it needs comes through the call.
 * See examples/plugin/. Arguments and their bytes are lent until the function returns. */
#pragma once

#include "base/err_code.h"
#include "ops/op_arg.h"

#define MR_OP_ABI 2
#define MR_OP_PARAMS_MAX 16

struct mr_op_param {
    const char *name;
    uint32_t takes;
    const char *fallback; /* default, as JSON; NULL: required */
    const char *doc;      /* one sentence */
};

enum {
    MR_OP_DETERMINISTIC = 1 << 0, /* same arguments, same bytes: a lost result may be remade */
    MR_OP_BY_REFERENCE = 1 << 1,  /* inputs are not loaded: arguments of type OBJECT */
    MR_OP_LONG_RUNNING = 1 << 2,  /* leaves its slot */
    MR_OP_MAY_BLOCK = 1 << 3,     /* waits or reads files: keep other tasks off its thread */
    MR_OP_VARIADIC = 1 << 4,      /* the last parameter repeats (at least once if it is required) */
    MR_OP_PASSES = 1 << 6,        /* its result may hold an argument as it is, references and all */
    MR_OP_SMALL = 1 << 5,         /* of a few numbers and texts it makes no more, in microseconds */
};
struct mr_op_call;

struct mr_op_desc {
    uint32_t abi; /* MR_OP_ABI */
    uint32_t flags;
    const char *name;    /* "array.mean" */
    const char *summary; /* one sentence */
    const char *result;  /* what it returns, a few words */
    const struct mr_op_param *params;
    uint32_t params_count;
    uint64_t cost_ns; /* guess for a small call, until it has been measured */
    int (*run)(struct mr_op_call *call);
};

struct mr_op_task { /* who is running: effects outside are at-least-once */
    mr_job_id job;
    uint32_t index;
    uint32_t attempt;
    struct mr_str key;
};

/* What the function may ask for. What returns int answers MR_OK or an error that is already in
 * words: pass it on. One of the `return_…` must succeed: `return call->does->return_int(call, 3);`.
 */
struct mr_op_services {
    /* A result of `bytes`, made where it will stay, 64-byte aligned, not zeroed: the caller writes
     * a whole value extent there. NULL: refused, already in words. */
    void *(*return_extent)(struct mr_op_call *call, uint64_t bytes);
    /* A tensor result, row-major; write its data at the returned address. NULL: refused. */
    void *(*return_tensor)(
        struct mr_op_call *call, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape);
    void *(*return_bytes)(struct mr_op_call *call, uint64_t bytes);       /* a bytes value */
    int (*return_arg)(struct mr_op_call *call, const struct mr_arg *arg); /* no copy of an input */
    int (*return_pack)(struct mr_op_call *call, struct mr_str pack);      /* copied */
    int (*return_nil)(struct mr_op_call *call);
    int (*return_bool)(struct mr_op_call *call, bool v);
    int (*return_int)(struct mr_op_call *call, int64_t v);
    int (*return_float)(struct mr_op_call *call, double v);
    int (*return_text)(struct mr_op_call *call, struct mr_str text);

    /* Fails the task with a sentence; the op's name is put in front of it. Returns `code`. */
    int (*fail)(struct mr_op_call *call, int code, const char *fmt, ...) MR_PRINTF(3, 4);
    /* Has the task been cancelled? Ask every few milliseconds of work. */
    bool (*is_cancelled)(struct mr_op_call *call);
    /* Waits; MR_ECANCELED (in words) as soon as the task is cancelled. */
    int (*wait)(struct mr_op_call *call, uint64_t ns);
    void (*log)(struct mr_op_call *call, const char *fmt, ...) MR_PRINTF(2, 3);
    /* Opens a file beneath the data roots for reading; the function closes `*fd`. */
    int (*open)(struct mr_op_call *call, struct mr_str path, int *fd);
    /* The value of a stored object, until the function returns. */
    int (*load)(struct mr_op_call *call, mr_object_id id, struct mr_str *extent);
    /* Memory until the return: zeroed, 64-byte aligned. NULL: over the limit, in words. */
    void *(*scratch)(struct mr_op_call *call, uint64_t bytes);

    /* How many threads may work on blocks of this call at once: 1 to 32, the same for all of it. */
    uint32_t (*lanes)(struct mr_op_call *call);
    /* Calls `block` once for each number below `blocks`: on this thread, and on those of this
     * worker whose slots have nothing to run. They begin in the order of their numbers. At most one
     * at a time has a `lane` (below lanes()), so what a block works in is an array by lane; what it
     * finds belongs to its number, and is put together here afterwards: then the result is the same
     * bits whoever helped. A task that comes to a helper's slot waits for its block: 30 to 100 us
     * are right, where claiming one costs less than 1. A block touches nothing of the call, and
     * asks it for nothing, not for more blocks either. Cancelling is looked for between blocks:
     * MR_ECANCELED (in words), with some left out. An error of a block, negative as in base/err.h,
     * ends the work; that of the lowest number is returned (in words, which `fail` replaces by
     * better ones). The time of helpers counts as this task's. */
    int (*parallel)(struct mr_op_call *call, uint32_t blocks,
        int (*block)(void *ctx, uint32_t block, uint32_t lane), void *ctx);
    /* The result is made of data that was drawn as none was given. It says so, and so does what is
     * made of it: values of more than a few numbers keep the mark. */
    void (*mark_drawn)(struct mr_op_call *call);
};

struct mr_op_call {
    const struct mr_op_desc *op;
    const struct mr_op_services *does;
    struct mr_op_task task;
    /* One per parameter, defaults filled in; a variadic op finds its last one's in `rest`. */
    const struct mr_arg *args;
    const struct mr_arg *rest;
    uint32_t args_count;
    uint32_t rest_count;
};

/* A plug-in's entry point. `abi` is what the loader speaks; NULL refuses it. */
typedef const struct mr_op_desc *const *(*mr_plugin_entry)(uint32_t abi, uint32_t *count);
#define MR_PLUGIN_ENTRY "mr_plugin_ops"
