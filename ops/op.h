/* What an operator is and what it is handed, built-in or from a plug-in: a shared library that
 * exports `mr_plugin_ops` and links nothing of millrace, for all it needs comes through the call.
 * See examples/plugin/. Arguments and their bytes are lent until the function returns. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "store/object/tensor.h"

#define MR_OP_ABI 1
#define MR_OP_PARAMS_MAX 16
enum mr_arg_type {
    MR_ARG_NIL,
    MR_ARG_BOOL,
    MR_ARG_INT,
    MR_ARG_UINT, /* above INT64_MAX */
    MR_ARG_FLOAT,
    MR_ARG_TEXT,
    MR_ARG_BYTES,
    MR_ARG_LIST,
    MR_ARG_DICT,
    MR_ARG_TENSOR, /* a tensor value, mapped or inline */
    MR_ARG_VALUE,  /* any other value extent: table, collection, model … */
    MR_ARG_OBJECT, /* by reference: an id, not loaded */
};

#define MR_ARG_NO_INPUT UINT32_MAX

struct mr_arg {
    enum mr_arg_type type;
    uint32_t count;     /* of LIST and DICT */
    uint32_t input;     /* the input slot this argument is as a whole, else MR_ARG_NO_INPUT */
    struct mr_str name; /* of a member of a DICT */
    union {
        bool boolean;
        int64_t i;
        uint64_t u;
        double f;
        struct mr_str bytes;            /* TEXT, BYTES */
        const struct mr_arg *items;     /* LIST, DICT */
        const struct mr_tensor *tensor; /* TENSOR */
    };
    struct mr_str
        extent; /* the whole value in its layout: TENSOR, VALUE; of OBJECT when it is mapped */
    mr_object_id object; /* of OBJECT; of an input that has one */
};

enum { /* what a parameter accepts; checked before the function runs */
    MR_TAKES_NIL = 1 << 0,
    MR_TAKES_BOOL = 1 << 1,
    MR_TAKES_INT = 1 << 2, /* i64 or u64 */
    MR_TAKES_FLOAT = 1 << 3,
    MR_TAKES_TEXT = 1 << 4,
    MR_TAKES_BYTES = 1 << 5,
    MR_TAKES_LIST = 1 << 6,
    MR_TAKES_DICT = 1 << 7,
    MR_TAKES_TENSOR = 1 << 8,
    MR_TAKES_VALUE = 1 << 9,
    MR_TAKES_OBJECT = 1 << 10,
    MR_TAKES_REAL = MR_TAKES_INT | MR_TAKES_FLOAT,
    MR_TAKES_NUMBER = MR_TAKES_BOOL | MR_TAKES_INT | MR_TAKES_FLOAT,
    MR_TAKES_ARRAY = MR_TAKES_NUMBER | MR_TAKES_TENSOR | MR_TAKES_LIST, /* what becomes a tensor */
    MR_TAKES_ANY = (1 << 11) - 1,
};
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
