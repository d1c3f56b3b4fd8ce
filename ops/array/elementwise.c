/* Element-wise operations: chooses the kernel, the type to compute in and the result type, and
 * refuses undefined combinations. */
#include "ops/array/array.h"

#include "base/unconst.h"

static const char *const binary_names[MR_BINARIES_COUNT] = {
    [MR_ADD] = "add",
    [MR_SUB] = "subtract",
    [MR_MUL] = "multiply",
    [MR_DIV] = "divide",
    [MR_FLOOR_DIV] = "floor_divide",
    [MR_MOD] = "mod",
    [MR_POW] = "power",
    [MR_MIN] = "minimum",
    [MR_MAX] = "maximum",
    [MR_EQ] = "equal",
    [MR_NE] = "not_equal",
    [MR_LT] = "less",
    [MR_LE] = "less_equal",
    [MR_GT] = "greater",
    [MR_GE] = "greater_equal",
    [MR_AND] = "logical_and",
    [MR_OR] = "logical_or",
    [MR_XOR] = "logical_xor",
};

static bool is_comparison(enum mr_binary op)
{
    return op >= MR_EQ && op <= MR_GE;
}

static bool is_logical(enum mr_binary op)
{
    return op == MR_AND || op == MR_OR || op == MR_XOR;
}

/* Returns the type in which `op` is computed, where `t` is the common type of its operands. The
 * result has the same type, except that comparisons give bool. */
static enum mr_dtype computed_in(enum mr_binary op, enum mr_dtype t)
{
    if (is_logical(op)) return MR_DTYPE_BOOL;
    if (op == MR_DIV && !mr_dtype_is_float(t)) return MR_DTYPE_F64;
    /* These operations compute bools as i8. */
    bool is_numeric = op == MR_POW || op == MR_FLOOR_DIV || op == MR_MOD;
    return is_numeric && t == MR_DTYPE_BOOL ? MR_DTYPE_I8 : t;
}

/* Returns the type of the kernel. f16 is a storage type, and is computed in f32. */
static enum mr_dtype kernel_type(enum mr_dtype t)
{
    return t == MR_DTYPE_F16 ? MR_DTYPE_F32 : t;
}

/* Refuses negative exponents of integers, as NumPy does. */
static int check_exponents(struct mr_op_call *call, const struct mr_tensor *y, enum mr_dtype t)
{
    if (!mr_dtype_is_integer(t) || !mr_dtype_is_signed(t) || !mr_dtype_is_signed(y->dtype))
        return MR_OK;
    uint64_t n = mr_tensor_elements(y);
    unsigned char *negative = call->does->scratch(call, n + 8);
    int64_t *zero = call->does->scratch(call, sizeof *zero);
    if (!negative || !zero) return MR_ELIMIT;
    struct mr_tensor z;
    struct mr_tensor out;
    mr_tensor_init(&z, MR_DTYPE_I64, 0, NULL, zero);
    mr_tensor_init(&out, MR_DTYPE_BOOL, y->ndim, y->shape, negative);
    struct mr_loop l = {
        .ndim = y->ndim, .count = 3, .kernel = mr_binary_kernel(MR_LT, MR_DTYPE_I64)};
    memcpy(l.shape, y->shape, sizeof l.shape);
    mr_loop_operand_set(&l, 0, y, MR_DTYPE_I64);
    mr_loop_operand_set(&l, 1, &z, MR_DTYPE_I64);
    mr_loop_operand_set(&l, 2, &out, MR_DTYPE_BOOL);
    int err = mr_loop_run(call, &l);
    if (err) return err;
    return memchr(negative, 1, n) ? call->does->fail(call, MR_EINVAL,
                                        "integers cannot be raised to negative integer powers")
                                  : MR_OK;
}

static int no_kernel(struct mr_op_call *call, const char *what, enum mr_dtype t)
{
    return call->does->fail(call, MR_EINVAL, "%s is not defined for %s", what, mr_dtype_name(t));
}

/* Finds the common type of two operands. Logical operators convert each operand to bool from its
 * own type. */
static int common_type(
    struct mr_op_call *call, enum mr_binary op, struct mr_operand *o, enum mr_dtype *t)
{
    if (!is_logical(op)) return mr_array_common(call, o, 2, t);
    *t = MR_DTYPE_BOOL;
    return MR_OK;
}

/* Compares a tensor of integers with a number outside the range of the tensor's type. 1: the number
 * is larger than every element. -1: the number is smaller. 0: the number is in range, or the
 * operands are not a tensor of integers and a plain integer. */
static int side_of(const struct mr_operand *tensor, const struct mr_operand *number)
{
    if (tensor->weak != MR_WEAK_NO || number->weak != MR_WEAK_INT) return 0;
    if (!mr_dtype_is_integer(tensor->t.dtype)) return 0;
    if (mr_array_number_fits(number->t.dtype, number->cell, tensor->t.dtype)) return 0;
    bool is_negative = number->t.dtype == MR_DTYPE_I64 && *(const int64_t *)number->cell < 0;
    return is_negative ? -1 : 1;
}

/* Returns the result of comparing a tensor with a number outside the tensor's type. As in NumPy,
 * the result is the same for every element. */
static int run_outside(
    struct mr_op_call *call, enum mr_binary op, const struct mr_tensor *x, bool is_less)
{
    bool answer = op == MR_NE || ((op == MR_LT || op == MR_LE) && is_less) ||
                  ((op == MR_GT || op == MR_GE) && !is_less);
    void *data = call->does->return_tensor(call, MR_DTYPE_BOOL, x->ndim, x->shape);
    if (!data) return MR_ELIMIT;
    memset(data, answer, mr_tensor_elements(x));
    return MR_OK;
}

static int run_binary(struct mr_op_call *call, enum mr_binary op, struct mr_operand *o)
{
    if (is_comparison(op)) {
        int right = side_of(&o[0], &o[1]), left = side_of(&o[1], &o[0]);
        if (right) return run_outside(call, op, &o[0].t, right > 0);
        if (left) return run_outside(call, op, &o[1].t, left < 0);
    }
    enum mr_dtype t = MR_DTYPE_NONE;
    int err = common_type(call, op, o, &t);
    if (err) return err;
    enum mr_dtype computed = computed_in(op, t);
    if (op == MR_POW) {
        err = check_exponents(call, &o[1].t, computed);
        if (err) return err;
    }
    enum mr_dtype inner = kernel_type(computed);
    struct mr_loop l = {.count = 3, .kernel = mr_binary_kernel(op, inner)};
    if (!l.kernel) return no_kernel(call, binary_names[op], t);
    struct mr_tensor *both[2] = {&o[0].t, &o[1].t};
    err = mr_array_broadcast(call, both, 2, &l.ndim, l.shape);
    if (err) return err;
    bool to_bool = is_comparison(op);
    enum mr_dtype result = to_bool ? MR_DTYPE_BOOL : computed;
    void *data = call->does->return_tensor(call, result, l.ndim, l.shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, result, l.ndim, l.shape, data);
    mr_loop_operand_set(&l, 0, &o[0].t, inner);
    mr_loop_operand_set(&l, 1, &o[1].t, inner);
    mr_loop_operand_set(&l, 2, &out, to_bool ? MR_DTYPE_BOOL : inner);
    return mr_loop_run(call, &l);
}

int mr_array_binary(struct mr_op_call *call, enum mr_binary op, const struct mr_arg *a,
    const struct mr_arg *b, const char *a_name, const char *b_name)
{
    struct mr_operand o[2];
    int err = mr_array_operand(call, a, a_name, &o[0]);
    if (err) return err;
    err = mr_array_operand(call, b, b_name, &o[1]);
    return err ? err : run_binary(call, op, o);
}

/* ---- one operand ---- */

struct unary_rule {
    const char *name;
    bool floats;  /* integers are converted to floats first */
    bool to_bool; /* the result is bool */
    bool as_bool; /* the operand is converted to bool */
};

static const struct unary_rule unary_rules[MR_UNARIES_COUNT] = {
    [MR_ABS] = {"abs", false, false, false},
    [MR_NEG] = {"neg", false, false, false},
    [MR_SIGN] = {"sign", false, false, false},
    [MR_SQUARE] = {"square", false, false, false},
    [MR_SQRT] = {"sqrt", true, false, false},
    [MR_RECIPROCAL] = {"reciprocal", true, false, false},
    [MR_EXP] = {"exp", true, false, false},
    [MR_EXPM1] = {"expm1", true, false, false},
    [MR_LOG] = {"log", true, false, false},
    [MR_LOG1P] = {"log1p", true, false, false},
    [MR_LOG2] = {"log2", true, false, false},
    [MR_LOG10] = {"log10", true, false, false},
    [MR_SIN] = {"sin", true, false, false},
    [MR_COS] = {"cos", true, false, false},
    [MR_TAN] = {"tan", true, false, false},
    [MR_TANH] = {"tanh", true, false, false},
    [MR_SIGMOID] = {"sigmoid", true, false, false},
    [MR_FLOOR] = {"floor", false, false, false},
    [MR_CEIL] = {"ceil", false, false, false},
    [MR_TRUNC] = {"trunc", false, false, false},
    [MR_ROUND] = {"round", false, false, false},
    [MR_ISNAN] = {"isnan", false, true, false},
    [MR_ISINF] = {"isinf", false, true, false},
    [MR_ISFINITE] = {"isfinite", false, true, false},
    [MR_NOT] = {"not", false, true, true},
};

int mr_array_unary(struct mr_op_call *call, enum mr_unary op, const struct mr_arg *a)
{
    const struct unary_rule *rule = &unary_rules[op];
    struct mr_tensor x;
    int err = mr_array_tensor(call, a, "x", &x);
    if (err) return err;
    enum mr_dtype computed = rule->floats ? mr_dtype_float_of(x.dtype) : x.dtype;
    if (rule->as_bool) computed = MR_DTYPE_BOOL;
    /* The square of a bool is an i8, as in NumPy. */
    if (op == MR_SQUARE && computed == MR_DTYPE_BOOL) computed = MR_DTYPE_I8;
    enum mr_dtype inner = kernel_type(computed);
    struct mr_loop l = {.ndim = x.ndim, .count = 2, .kernel = mr_unary_kernel(op, inner)};
    if (!l.kernel) return no_kernel(call, rule->name, x.dtype);
    memcpy(l.shape, x.shape, sizeof l.shape);
    enum mr_dtype result = rule->to_bool ? MR_DTYPE_BOOL : computed;
    void *data = call->does->return_tensor(call, result, x.ndim, x.shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, result, x.ndim, x.shape, data);
    mr_loop_operand_set(&l, 0, &x, inner);
    mr_loop_operand_set(&l, 1, &out, rule->to_bool ? MR_DTYPE_BOOL : inner);
    return mr_loop_run(call, &l);
}

/* ---- where ---- */

int mr_array_where(struct mr_op_call *call, const struct mr_arg *condition, const struct mr_arg *a,
    const struct mr_arg *b)
{
    struct mr_tensor c;
    struct mr_operand o[2];
    enum mr_dtype t = MR_DTYPE_NONE;
    int err = mr_array_tensor(call, condition, "condition", &c);
    if (!err) err = mr_array_operand(call, a, "x", &o[0]);
    if (!err) err = mr_array_operand(call, b, "y", &o[1]);
    if (!err) err = mr_array_common(call, o, 2, &t);
    if (err) return err;
    struct mr_tensor *all[3] = {&c, &o[0].t, &o[1].t};
    struct mr_loop l = {.count = 4, .kernel = mr_where_kernel(t)};
    err = mr_array_broadcast(call, all, 3, &l.ndim, l.shape);
    if (err) return err;
    void *data = call->does->return_tensor(call, t, l.ndim, l.shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, t, l.ndim, l.shape, data);
    mr_loop_operand_set(&l, 0, &c, MR_DTYPE_BOOL);
    mr_loop_operand_set(&l, 1, &o[0].t, t);
    mr_loop_operand_set(&l, 2, &o[1].t, t);
    mr_loop_operand_set(&l, 3, &out, t);
    return mr_loop_run(call, &l);
}

/* ---- many operands ---- */

#define SLAB_BYTES ((uint64_t)32 << 20) /* bytes copied between two checks for cancellation */

int mr_array_copy(struct mr_op_call *call, const struct mr_tensor *t, void *to)
{
    struct mr_tensor from = *t;
    while (from.ndim && from.shape[0] == 1)
        from = mr_tensor_row(&from, 0);
    uint64_t rows = from.ndim ? from.shape[0] : 1;
    uint64_t row_bytes = rows ? mr_tensor_data_bytes(&from) / rows : 0;
    if (!row_bytes) return MR_OK;
    uint64_t step = MR_MAX(SLAB_BYTES / row_bytes, 1u);
    for (uint64_t i = 0; i < rows; i += step) {
        struct mr_tensor slab = from;
        if (from.ndim) {
            slab.shape[0] = MR_MIN(step, rows - i);
            slab.data = (const char *)from.data + (int64_t)i * from.strides[0];
        }
        mr_tensor_copy(&slab, (char *)to + i * row_bytes);
        if (call->does->is_cancelled(call))
            return call->does->fail(call, MR_ECANCELED, "cancelled");
    }
    return MR_OK;
}

int mr_array_cast(struct mr_op_call *call, const struct mr_tensor *from, const struct mr_tensor *to)
{
    if (from->dtype == to->dtype && mr_tensor_is_contiguous(to))
        return mr_array_copy(call, from, mr_unconst(to->data));
    struct mr_loop l = {
        .ndim = to->ndim, .count = 2, .kernel = mr_cast_kernel(from->dtype, to->dtype)};
    memcpy(l.shape, to->shape, sizeof l.shape);
    mr_loop_operand_set(&l, 0, from, from->dtype);
    mr_loop_operand_set(&l, 1, to, to->dtype);
    return mr_loop_run(call, &l);
}

/* Replaces `out` by kernel(out, x), element by element. */
static int gather(struct mr_op_call *call, const struct mr_tensor *out, mr_kernel kernel,
    const struct mr_tensor *x, enum mr_dtype inner)
{
    struct mr_loop l = {.ndim = out->ndim, .count = 3, .kernel = kernel};
    memcpy(l.shape, out->shape, sizeof l.shape);
    mr_loop_operand_set(&l, 0, out, inner);
    mr_loop_operand_set(&l, 1, x, inner);
    mr_loop_operand_set(&l, 2, out, inner);
    return mr_loop_run(call, &l);
}

int mr_array_fold(struct mr_op_call *call, enum mr_binary op, const struct mr_arg *items,
    uint32_t count, const char *name)
{
    struct mr_operand *o = call->does->scratch(call, count * sizeof *o);
    struct mr_tensor **all = call->does->scratch(call, count * sizeof *all);
    if (!o || !all) return MR_ELIMIT;
    for (uint32_t i = 0; i < count; i++) {
        int err = mr_array_operand(call, &items[i], name, &o[i]);
        if (err) return err;
        all[i] = &o[i].t;
    }
    enum mr_dtype t = MR_DTYPE_NONE;
    unsigned ndim = 0;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    int err = mr_array_common(call, o, count, &t);
    if (err) return err;
    enum mr_dtype inner = kernel_type(t);
    mr_kernel kernel = mr_binary_kernel(op, inner);
    if (!kernel) return no_kernel(call, binary_names[op], t);
    err = mr_array_broadcast(call, all, count, &ndim, shape);
    if (err) return err;
    void *data = call->does->return_tensor(call, t, ndim, shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, t, ndim, shape, data);
    err = mr_array_cast(call, &o[0].t, &out);
    for (uint32_t i = 1; i < count && !err; i++)
        err = gather(call, &out, kernel, &o[i].t, inner);
    return err;
}

int mr_array_clip(struct mr_op_call *call, const struct mr_arg *x, const struct mr_arg *low,
    const struct mr_arg *high)
{
    struct mr_operand o[3];
    enum mr_dtype t = MR_DTYPE_NONE;
    unsigned ndim = 0;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    int err = mr_array_operand(call, x, "x", &o[0]);
    if (!err) err = mr_array_operand(call, low, "low", &o[1]);
    if (!err) err = mr_array_operand(call, high, "high", &o[2]);
    if (!err) err = mr_array_common(call, o, 3, &t);
    struct mr_tensor *all[3] = {&o[0].t, &o[1].t, &o[2].t};
    if (!err) err = mr_array_broadcast(call, all, 3, &ndim, shape);
    if (err) return err;
    enum mr_dtype inner = kernel_type(t);
    void *data = call->does->return_tensor(call, t, ndim, shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, t, ndim, shape, data);
    err = mr_array_cast(call, &o[0].t, &out);
    if (!err) err = gather(call, &out, mr_binary_kernel(MR_MAX, inner), &o[1].t, inner);
    if (!err) err = gather(call, &out, mr_binary_kernel(MR_MIN, inner), &o[2].t, inner);
    return err;
}
