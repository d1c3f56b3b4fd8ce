/* What the families of learning operators share: labels as classes, arrays as rows of f64, and
 * results that are dicts. */
#pragma once

#include "ops/array/array.h"

#define MR_CLASSES_MAX 65536

/* Labels as numbers of classes; classes ascend. Labels are integers, bools, floats that are not
 * NaN, or (a list of) texts. */
struct mr_classes {
    uint32_t count;
    uint64_t rows;
    uint32_t *of;               /* of each row */
    struct mr_tensor values;    /* i64 or f64 [count]; no axis when they are texts */
    const struct mr_str *texts; /* [count], when they are texts */
};

/* Class numbers of `y`; memory is the call's. */
int mr_classes_of(
    struct mr_op_call *call, const struct mr_arg *y, const char *name, struct mr_classes *out);
/* The same where several arrays share the classes: those that occur in any. */
int mr_classes_of_all(struct mr_op_call *call, const struct mr_arg *const *ys,
    const char *const *names, uint32_t count, struct mr_classes *outs);
/* The label of a class as a text: what a dict of classes is indexed by. Scratch; NULL: no room. */
const char *mr_class_text(struct mr_op_call *call, const struct mr_classes *c, uint32_t i);

/* A matrix as contiguous f64, itself or a copy. A vector is one column. */
int mr_ml_matrix(struct mr_op_call *call, const struct mr_arg *x, const char *name,
    const double **out, uint64_t *rows, uint64_t *columns);

/* Parts of results. Tensors are made in scratch: NULL in *data, and the code, when over the limit.
 */
struct mr_arg mr_ml_int(int64_t v);
struct mr_arg mr_ml_float(double v);
struct mr_arg mr_ml_text(const char *text);
int mr_ml_tensor(struct mr_op_call *call, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape,
    void **data, struct mr_arg *out);
struct mr_arg mr_ml_named(const char *name, struct mr_arg v);
struct mr_arg mr_ml_dict(const struct mr_arg *items, uint32_t count);
struct mr_arg mr_ml_list(const struct mr_arg *items, uint32_t count);

/* A member of a dict; NULL: there is none. */
const struct mr_arg *mr_ml_member(const struct mr_arg *dict, const char *name);

/* ---- families of operators ---- */

const struct mr_op_desc *mr_ml_fold_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_libsvm_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_linear_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_metrics_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_search_ops(uint32_t *count);
