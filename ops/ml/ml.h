/* What operators for learning share: labels as class numbers, arrays as matrices of f64, and
 * results that are dicts. */
#pragma once

#include "ops/array/array.h"

#define MR_CLASSES_MAX 65536

/* Labels as class numbers; the classes are in ascending order. Labels are integers, bools, floats
 * other than NaN, or a list of texts. */
struct mr_classes {
    uint32_t count;
    uint64_t rows;
    uint32_t *of; /* by row: number of its class */
    /* The classes as i64 or f64 of shape [count]. Without axes if the labels are texts. */
    struct mr_tensor values;
    const struct mr_str *texts; /* the `count` classes if the labels are texts */
};

/* Converts labels to class numbers in memory of the call. */
int mr_classes_of(
    struct mr_op_call *call, const struct mr_arg *y, const char *name, struct mr_classes *out);
/* Converts several arrays of labels. All arrays get the same classes: every label that occurs in at
 * least one of the arrays. */
int mr_classes_of_all(struct mr_op_call *call, const struct mr_arg *const *ys,
    const char *const *names, uint32_t count, struct mr_classes *outs);
/* Returns the label of a class as text, for the key of a dict, in memory of the call. NULL: the
 * memory is used up. */
const char *mr_class_text(struct mr_op_call *call, const struct mr_classes *c, uint32_t i);

/* Reads a matrix of contiguous f64: the argument itself, or a converted copy. A vector is one
 * column. */
int mr_ml_matrix(struct mr_op_call *call, const struct mr_arg *x, const char *name,
    const double **out, uint64_t *rows, uint64_t *columns);

/* Make parts of results. mr_ml_tensor allocates scratch memory for a tensor, and sets `*data` to
 * its elements. MR_ELIMIT: the tensor is too large. */
struct mr_arg mr_ml_int(int64_t v);
struct mr_arg mr_ml_float(double v);
struct mr_arg mr_ml_text(const char *text);
int mr_ml_tensor(struct mr_op_call *call, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape,
    void **data, struct mr_arg *out);
struct mr_arg mr_ml_named(const char *name, struct mr_arg v);
struct mr_arg mr_ml_dict(const struct mr_arg *items, uint32_t count);
struct mr_arg mr_ml_list(const struct mr_arg *items, uint32_t count);

/* Returns a member of a dict. NULL: the dict has no such member. */
const struct mr_arg *mr_ml_member(const struct mr_arg *dict, const char *name);

/* ---- families of operators ---- */

const struct mr_op_desc *mr_ml_fold_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_libsvm_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_linear_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_metrics_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_search_ops(uint32_t *count);
