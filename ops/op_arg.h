/* The argument of an operator, and the types that a parameter accepts. Part of ops/op.h. */
#pragma once

#include "base/id_type.h"
#include "base/str.h"
#include "store/object/tensor_type.h"

enum mr_arg_type {
    MR_ARG_NIL,
    MR_ARG_BOOL,
    MR_ARG_INT,
    MR_ARG_UINT, /* an integer above INT64_MAX */
    MR_ARG_FLOAT,
    MR_ARG_TEXT,
    MR_ARG_BYTES,
    MR_ARG_LIST,
    MR_ARG_DICT,
    MR_ARG_TENSOR, /* a tensor, in shared memory or inline */
    MR_ARG_VALUE,  /* any other stored value: table, collection, model … */
    MR_ARG_OBJECT, /* the id of a stored value that is not loaded */
};

#define MR_ARG_NO_INPUT UINT32_MAX

struct mr_arg {
    enum mr_arg_type type;
    uint32_t count; /* number of members of a LIST or DICT */
    /* Number of the input that is this whole argument. MR_ARG_NO_INPUT: the argument is no
     * input. */
    uint32_t input;
    struct mr_str name; /* the key of a member of a DICT */
    union {
        bool boolean;
        int64_t i;
        uint64_t u;
        double f;
        struct mr_str bytes;            /* of a TEXT or BYTES */
        const struct mr_arg *items;     /* of a LIST or DICT */
        const struct mr_tensor *tensor; /* of a TENSOR */
    };
    /* The value as one block of bytes with a header (store/object/value.h). TENSOR, VALUE and
     * BYTES: empty if the value is not there in this form. OBJECT: usually the header alone; empty
     * if the header is unknown. */
    struct mr_str extent;
    /* Id of an OBJECT, and of any input that is a stored value. */
    mr_object_id object;
};

/* What a parameter accepts. The types are checked before the function runs. */
enum {
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
    /* The operator converts each of these types to a tensor. */
    MR_TAKES_ARRAY = MR_TAKES_NUMBER | MR_TAKES_TENSOR | MR_TAKES_LIST,
    MR_TAKES_ANY = (1 << 11) - 1,
};
