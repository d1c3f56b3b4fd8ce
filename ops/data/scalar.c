/* Arithmetic and comparison of numbers as in Python, except that an integer result outside 64 bits
 * is an error. If an operand is a tensor, the operators call ops/array/array.h, which works element
 * by element. */
#include "ops/data/data.h"

#include "ops/arg.h"
#include "ops/array/array.h"
#include "ops/kernel/floor_div.h"

#include <math.h>

/* An integer type that holds sums, differences and products of two 64-bit integers. */
__extension__ typedef __int128 wide;

struct number {
    bool is_float;
    wide i;
    double f;
};

static bool is_number(const struct mr_arg *a)
{
    return a->type == MR_ARG_BOOL || a->type == MR_ARG_INT || a->type == MR_ARG_UINT ||
           a->type == MR_ARG_FLOAT;
}

static struct number number_of(const struct mr_arg *a)
{
    struct number n = {.is_float = a->type == MR_ARG_FLOAT, .f = mr_arg_f64(a)};
    if (a->type == MR_ARG_BOOL) n.i = a->boolean;
    if (a->type == MR_ARG_INT) n.i = a->i;
    if (a->type == MR_ARG_UINT) n.i = (wide)a->u;
    return n;
}

static struct number of_int(wide i)
{
    return (struct number){.i = i, .f = (double)i};
}

static struct number of_float(double f)
{
    return (struct number){.is_float = true, .f = f};
}

static bool fits(wide i)
{
    return i >= INT64_MIN && i <= (wide)UINT64_MAX;
}

static int return_number(struct mr_op_call *call, struct number n)
{
    if (n.is_float) return call->does->return_float(call, n.f);
    if (!fits(n.i)) return call->does->fail(call, MR_ERANGE, "the result does not fit 64 bits");
    if (n.i <= INT64_MAX) return call->does->return_int(call, (int64_t)n.i);
    struct mr_arg big = {.type = MR_ARG_UINT, .u = (uint64_t)n.i, .input = MR_ARG_NO_INPUT};
    return call->does->return_arg(call, &big);
}

/* Stands for any integer result that does not fit into 64 bits. */
static const wide over = (wide)UINT64_MAX + 1;

static wide multiply(wide x, wide y)
{
    wide product = 0;
    return __builtin_mul_overflow(x, y, &product) ? over : product;
}

/* Returns x to the power of y, where y >= 0, by squaring. */
static wide power(wide x, wide y)
{
    wide result = 1;
    while (y) {
        if (y & 1) result = multiply(result, x);
        y >>= 1;
        if (!fits(result) || (y && !fits(x) && result != 0)) return over;
        if (y) x = multiply(x, x);
    }
    return result;
}

static wide floor_div(wide x, wide y)
{
    wide q = x / y;
    return (x % y != 0 && (x < 0) != (y < 0)) ? q - 1 : q;
}

static int zero_division(struct mr_op_call *call)
{
    return call->does->fail(call, MR_ERANGE, "division by zero");
}

static int divide(struct mr_op_call *call, enum mr_binary op, struct number a, struct number b)
{
    bool floats = a.is_float || b.is_float;
    if (floats ? b.f == 0 : b.i == 0) return zero_division(call);
    if (op == MR_DIV) return call->does->return_float(call, a.f / b.f);
    if (op == MR_FLOOR_DIV)
        return return_number(
            call, floats ? of_float(mr_floor_div_f64(a.f, b.f)) : of_int(floor_div(a.i, b.i)));
    if (!floats) return return_number(call, of_int(a.i - floor_div(a.i, b.i) * b.i));
    return call->does->return_float(call, mr_mod_f64(a.f, b.f));
}

static int raise_to(struct mr_op_call *call, struct number a, struct number b)
{
    if (!a.is_float && !b.is_float && b.i >= 0) return return_number(call, of_int(power(a.i, b.i)));
    if (a.f == 0 && b.f < 0) return zero_division(call);
    if (a.f < 0 && b.is_float && isfinite(b.f) && floor(b.f) != b.f)
        return call->does->fail(call, MR_ERANGE, "a negative number to a fractional power");
    return call->does->return_float(call, pow(a.f, b.f));
}

static struct number smaller(struct number a, struct number b, bool larger)
{
    if (a.is_float && isnan(a.f)) return a;
    if (b.is_float && isnan(b.f)) return b;
    bool less = a.is_float || b.is_float ? b.f < a.f : b.i < a.i;
    bool more = a.is_float || b.is_float ? b.f > a.f : b.i > a.i;
    return (larger ? more : less) ? b : a;
}

static int combine(struct mr_op_call *call, enum mr_binary op, struct number a, struct number b,
    struct number *out)
{
    bool floats = a.is_float || b.is_float;
    /* The callers pass MR_ADD, MR_MUL, MR_SUB, MR_MIN or MR_MAX. */
    switch ((int)op) {
    case MR_ADD: *out = floats ? of_float(a.f + b.f) : of_int(a.i + b.i); break;
    case MR_MUL: *out = floats ? of_float(a.f * b.f) : of_int(multiply(a.i, b.i)); break;
    case MR_SUB: *out = floats ? of_float(a.f - b.f) : of_int(a.i - b.i); break;
    case MR_MIN: *out = smaller(a, b, false); break;
    default: *out = smaller(a, b, true); break;
    }
    if (!out->is_float && !fits(out->i))
        return call->does->fail(call, MR_ERANGE, "the result does not fit 64 bits");
    return MR_OK;
}

static int binary(struct mr_op_call *call, enum mr_binary op)
{
    const struct mr_arg *x = &call->args[0];
    const struct mr_arg *y = &call->args[1];
    if (!is_number(x) || !is_number(y)) return mr_array_binary(call, op, x, y, "x", "y");
    struct number a = number_of(x);
    struct number b = number_of(y);
    if (op == MR_DIV || op == MR_FLOOR_DIV || op == MR_MOD) return divide(call, op, a, b);
    if (op == MR_POW) return raise_to(call, a, b);
    struct number out;
    int err = combine(call, op, a, b, &out);
    return err ? err : return_number(call, out);
}

#define BINARY_RUN(name, op)                                                                       \
    static int run_##name(struct mr_op_call *call)                                                 \
    {                                                                                              \
        return binary(call, op);                                                                   \
    }
BINARY_RUN(add, MR_ADD)
BINARY_RUN(sub, MR_SUB)
BINARY_RUN(mul, MR_MUL)
BINARY_RUN(div, MR_DIV)
BINARY_RUN(floor_div, MR_FLOOR_DIV)
BINARY_RUN(mod, MR_MOD)
BINARY_RUN(pow, MR_POW)

static int run_inc(struct mr_op_call *call)
{
    static const struct mr_arg one = {.type = MR_ARG_INT, .i = 1, .input = MR_ARG_NO_INPUT};
    const struct mr_arg *x = &call->args[0];
    if (!is_number(x)) return mr_array_binary(call, MR_ADD, x, &one, "x", "1");
    struct number out;
    int err = combine(call, MR_ADD, number_of(x), of_int(1), &out);
    return err ? err : return_number(call, out);
}

static int run_neg(struct mr_op_call *call)
{
    const struct mr_arg *x = &call->args[0];
    if (!is_number(x)) return mr_array_unary(call, MR_NEG, x);
    struct number n = number_of(x);
    return return_number(call, n.is_float ? of_float(-n.f) : of_int(-n.i));
}

static int run_abs(struct mr_op_call *call)
{
    const struct mr_arg *x = &call->args[0];
    if (!is_number(x)) return mr_array_unary(call, MR_ABS, x);
    struct number n = number_of(x);
    return return_number(call, n.is_float ? of_float(fabs(n.f)) : of_int(n.i < 0 ? -n.i : n.i));
}

/* Folds several values, or the items of one list, by `op`. A single tensor is reduced over all
 * axes. */
static int fold(struct mr_op_call *call, enum mr_binary op)
{
    const struct mr_arg *items = call->rest;
    uint32_t count = call->rest_count;
    if (count == 1 && items[0].type == MR_ARG_TENSOR)
        return mr_array_reduce_all(call, op, &items[0]);
    if (count == 1 && items[0].type == MR_ARG_LIST) {
        count = items[0].count;
        items = items[0].items;
    }
    if (!count) {
        if (op == MR_ADD) return call->does->return_int(call, 0);
        return call->does->fail(call, MR_EINVAL, "of nothing at all");
    }
    for (uint32_t i = 0; i < count; i++)
        if (!is_number(&items[i])) return mr_array_fold(call, op, items, count, "values");
    struct number total = number_of(&items[0]);
    for (uint32_t i = 1; i < count; i++) {
        int err = combine(call, op, total, number_of(&items[i]), &total);
        if (err) return err;
    }
    return return_number(call, total);
}

static int run_sum(struct mr_op_call *call)
{
    return fold(call, MR_ADD);
}

static int run_min(struct mr_op_call *call)
{
    return fold(call, MR_MIN);
}

static int run_max(struct mr_op_call *call)
{
    return fold(call, MR_MAX);
}

/* ---- compare, where, not ---- */

static int compare_op(struct mr_op_call *call, struct mr_str text, enum mr_binary *out)
{
    static const struct {
        const char *sign;
        const char *word;
        enum mr_binary op;
    } rows[] = {
        {"==", "eq", MR_EQ},
        {"!=", "ne", MR_NE},
        {"<", "lt", MR_LT},
        {"<=", "le", MR_LE},
        {">", "gt", MR_GT},
        {">=", "ge", MR_GE},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        if (!mr_str_eq(text, mr_str(rows[i].sign)) && !mr_str_eq(text, mr_str(rows[i].word)))
            continue;
        *out = rows[i].op;
        return MR_OK;
    }
    return call->does->fail(call, MR_EINVAL,
        "argument \"op\": expected one of == != < <= > >=, got \"%.*s\"", (int)MR_MIN(text.n, 40u),
        text.p);
}

static int return_order(
    struct mr_op_call *call, enum mr_binary op, bool less, bool equal, bool more)
{
    bool answer = equal;
    if (op == MR_NE) answer = !equal;
    if (op == MR_LT) answer = less;
    if (op == MR_LE) answer = less || equal;
    if (op == MR_GT) answer = more;
    if (op == MR_GE) answer = more || equal;
    return call->does->return_bool(call, answer);
}

static int compare_numbers(
    struct mr_op_call *call, enum mr_binary op, struct number a, struct number b)
{
    if (!a.is_float && !b.is_float) return return_order(call, op, a.i<b.i, a.i == b.i, a.i> b.i);
    return return_order(call, op, a.f<b.f, a.f == b.f, a.f> b.f);
}

/* Compares values that are not two numbers, two texts or tensors, such as lists, dicts and null.
 * Two values are equal if their packs are equal. */
static int compare_packs(
    struct mr_op_call *call, enum mr_binary op, const struct mr_arg *x, const struct mr_arg *y)
{
    if (op != MR_EQ && op != MR_NE)
        return call->does->fail(call, MR_EINVAL, "%s and %s have no order",
            mr_arg_type_name(x->type), mr_arg_type_name(y->type));
    struct mr_buf a;
    struct mr_buf b;
    mr_buf_init(&a, (size_t)1 << 30);
    mr_buf_init(&b, (size_t)1 << 30);
    struct mr_error why = {0};
    int err = mr_arg_pack(x, &a, &why);
    if (!err) err = mr_arg_pack(y, &b, &why);
    bool equal = !err && mr_str_eq(mr_buf_str(&a), mr_buf_str(&b));
    mr_buf_fini(&a);
    mr_buf_fini(&b);
    if (err) return call->does->fail(call, err, "%s", why.text);
    return call->does->return_bool(call, equal == (op == MR_EQ));
}

static int run_compare(struct mr_op_call *call)
{
    const struct mr_arg *x = &call->args[0];
    const struct mr_arg *y = &call->args[2];
    enum mr_binary op = MR_EQ;
    int err = compare_op(call, call->args[1].bytes, &op);
    if (err) return err;
    if (is_number(x) && is_number(y)) return compare_numbers(call, op, number_of(x), number_of(y));
    if (x->type == MR_ARG_TENSOR || y->type == MR_ARG_TENSOR)
        return mr_array_binary(call, op, x, y, "x", "y");
    bool texts = x->type == MR_ARG_TEXT || x->type == MR_ARG_BYTES;
    if (texts && x->type == y->type) {
        int c = mr_str_cmp(x->bytes, y->bytes);
        return return_order(call, op, c<0, c == 0, c> 0);
    }
    return compare_packs(call, op, x, y);
}

/* Returns the truth of a value. As in Python, empty, zero and null are false. */
static bool truth(const struct mr_arg *a)
{
    switch (a->type) {
    case MR_ARG_NIL: return false;
    case MR_ARG_BOOL: return a->boolean;
    case MR_ARG_INT:
    case MR_ARG_UINT: return a->u != 0;
    case MR_ARG_FLOAT: return a->f != 0;
    case MR_ARG_TEXT:
    case MR_ARG_BYTES: return a->bytes.n != 0;
    case MR_ARG_LIST:
    case MR_ARG_DICT: return a->count != 0;
    case MR_ARG_TENSOR:
    case MR_ARG_VALUE:
    case MR_ARG_OBJECT: return true;
    }
    return true;
}

static int run_where(struct mr_op_call *call)
{
    const struct mr_arg *c = &call->args[0];
    const struct mr_arg *x = &call->args[1];
    const struct mr_arg *y = &call->args[2];
    if (c->type == MR_ARG_TENSOR || c->type == MR_ARG_LIST) return mr_array_where(call, c, x, y);
    return call->does->return_arg(call, truth(c) ? x : y);
}

static int run_not(struct mr_op_call *call)
{
    const struct mr_arg *x = &call->args[0];
    if (x->type == MR_ARG_TENSOR) return mr_array_unary(call, MR_NOT, x);
    return call->does->return_bool(call, !truth(x));
}

/* ---- sleep, fail ---- */

static int run_sleep(struct mr_op_call *call)
{
    double seconds = mr_arg_f64(&call->args[0]);
    if (!(seconds >= 0 && seconds <= 1e9))
        return call->does->fail(
            call, MR_EINVAL, "argument \"seconds\": expected 0 to 1e9, got %g", seconds);
    int err = call->does->wait(call, (uint64_t)(seconds * 1e9));
    return err ? err : call->does->return_arg(call, &call->args[1]);
}

static int run_fail(struct mr_op_call *call)
{
    const struct mr_arg *before = &call->args[1];
    struct mr_str message = call->args[0].bytes;
    if (before->type == MR_ARG_INT && (int64_t)call->task.attempt >= before->i)
        return call->does->return_arg(call, &call->args[2]);
    return call->does->fail(
        call, MR_EUNKNOWN, "%.*s", (int)MR_MIN(message.n, 900u), message.p ? message.p : "");
}

/* ---- descriptors ---- */

#define D MR_OP_DETERMINISTIC
#define DS (MR_OP_DETERMINISTIC | MR_OP_SMALL)
#define DVS (MR_OP_DETERMINISTIC | MR_OP_VARIADIC | MR_OP_SMALL)

static const struct mr_op_param one_array[] = {
    {"x", MR_TAKES_ARRAY, NULL, "A number, a tensor or a nested list of numbers."},
};
static const struct mr_op_param two_arrays[] = {
    {"x", MR_TAKES_ARRAY, NULL, "A number, a tensor or a nested list of numbers."},
    {"y", MR_TAKES_ARRAY, NULL,
        "A number, a tensor or a nested list of numbers; shapes are broadcast."},
};
static const struct mr_op_param any_value[] = {
    {"x", MR_TAKES_ANY, NULL, "Any value."},
};
static const struct mr_op_param folded[] = {
    {"values", MR_TAKES_ARRAY, NULL, "Values, one list of values, or one tensor."},
};
static const struct mr_op_param compared[] = {
    {"x", MR_TAKES_ANY, NULL, "A value; numbers and texts have an order."},
    {"op", MR_TAKES_TEXT, NULL, "One of == != < <= > >=."},
    {"y", MR_TAKES_ANY, NULL, "A value to compare with."},
};
static const struct mr_op_param chosen[] = {
    {"condition", MR_TAKES_ANY, NULL,
        "A tensor or list of bools, or one value that counts as true or false."},
    {"x", MR_TAKES_ANY, NULL, "Result where the condition is true."},
    {"y", MR_TAKES_ANY, NULL, "Result where the condition is false."},
};
static const struct mr_op_param slept[] = {
    {"seconds", MR_TAKES_REAL, NULL, "Seconds to wait, 0 or more."},
    {"value", MR_TAKES_ANY, "null", "The value to return."},
};
static const struct mr_op_param failing[] = {
    {"message", MR_TAKES_TEXT, "\"failed on purpose\"", "Text of the error."},
    {"before_attempt", MR_TAKES_INT, "null",
        "Fail only if the number of the attempt is below this."},
    {"value", MR_TAKES_ANY, "null", "The value to return otherwise."},
};

const struct mr_op_desc *mr_scalar_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("inc", DS, one_array, 300, run_inc, "number or tensor", "Adds 1."),
        MR_OP_ROW("add", DS, two_arrays, 300, run_add, "number or tensor", "Computes x + y."),
        MR_OP_ROW("sub", DS, two_arrays, 300, run_sub, "number or tensor", "Computes x - y."),
        MR_OP_ROW("mul", DS, two_arrays, 300, run_mul, "number or tensor", "Computes x * y."),
        MR_OP_ROW("div", DS, two_arrays, 300, run_div, "float or tensor of floats",
            "Computes x / y, always in floating point."),
        MR_OP_ROW("floor_div", DS, two_arrays, 300, run_floor_div, "number or tensor",
            "Computes x / y, rounded down."),
        MR_OP_ROW("mod", DS, two_arrays, 300, run_mod, "number or tensor",
            "Computes the remainder of floor_div; it has the sign of y."),
        MR_OP_ROW("pow", DS, two_arrays, 300, run_pow, "number or tensor",
            "Computes x to the power of y."),
        MR_OP_ROW("neg", DS, one_array, 300, run_neg, "number or tensor", "Computes -x."),
        MR_OP_ROW("abs", DS, one_array, 300, run_abs, "number or tensor",
            "Computes the absolute value of x."),
        MR_OP_ROW("sum", DVS, folded, 500, run_sum, "number or tensor",
            "Adds values, the items of a list (tensors element by element), or all elements of a "
            "tensor."),
        MR_OP_ROW("min", DVS, folded, 500, run_min, "number or tensor",
            "Finds the smallest of values, of a list (tensors element by element), or of a "
            "tensor."),
        MR_OP_ROW("max", DVS, folded, 500, run_max, "number or tensor",
            "Finds the largest of values, of a list (tensors element by element), or of a tensor."),
        MR_OP_ROW("compare", DS, compared, 300, run_compare, "bool or tensor of bools",
            "Compares two values, tensors element by element."),
        MR_OP_ROW("where", DS, chosen, 300, run_where, "one of the two, or a tensor",
            "Chooses between two values, element by element if the condition is a tensor."),
        MR_OP_ROW("not", DS, any_value, 300, run_not, "bool or tensor of bools",
            "Tests whether a value is zero, null or empty; tensors element by element."),
        MR_OP_ROW("sleep", D | MR_OP_MAY_BLOCK, slept, 1000000, run_sleep, "value",
            "Waits, then returns a value; a cancelled task stops early."),
        MR_OP_ROW(
            "fail", 0, failing, 300, run_fail, "never, or value", "Fails on purpose, for tests."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
