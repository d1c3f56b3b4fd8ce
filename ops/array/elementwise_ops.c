/* The element-wise operators on arrays: array.add … array.clip. */
#include "ops/array/array.h"

#define BINARY_RUN(name, op)                                                                       \
    static int run_##name(struct mr_op_call *call)                                                 \
    {                                                                                              \
        return mr_array_binary(call, op, &call->args[0], &call->args[1], "x", "y");                \
    }
BINARY_RUN(add, MR_ADD)
BINARY_RUN(subtract, MR_SUB)
BINARY_RUN(multiply, MR_MUL)
BINARY_RUN(divide, MR_DIV)
BINARY_RUN(floor_divide, MR_FLOOR_DIV)
BINARY_RUN(mod, MR_MOD)
BINARY_RUN(power, MR_POW)
BINARY_RUN(minimum, MR_MIN)
BINARY_RUN(maximum, MR_MAX)
BINARY_RUN(equal, MR_EQ)
BINARY_RUN(not_equal, MR_NE)
BINARY_RUN(less, MR_LT)
BINARY_RUN(less_equal, MR_LE)
BINARY_RUN(greater, MR_GT)
BINARY_RUN(greater_equal, MR_GE)
BINARY_RUN(logical_and, MR_AND)
BINARY_RUN(logical_or, MR_OR)
BINARY_RUN(logical_xor, MR_XOR)

#define UNARY_RUN(name, op)                                                                        \
    static int run_##name(struct mr_op_call *call)                                                 \
    {                                                                                              \
        return mr_array_unary(call, op, &call->args[0]);                                           \
    }
UNARY_RUN(abs, MR_ABS)
UNARY_RUN(neg, MR_NEG)
UNARY_RUN(sign, MR_SIGN)
UNARY_RUN(square, MR_SQUARE)
UNARY_RUN(sqrt, MR_SQRT)
UNARY_RUN(reciprocal, MR_RECIPROCAL)
UNARY_RUN(exp, MR_EXP)
UNARY_RUN(expm1, MR_EXPM1)
UNARY_RUN(log, MR_LOG)
UNARY_RUN(log1p, MR_LOG1P)
UNARY_RUN(log2, MR_LOG2)
UNARY_RUN(log10, MR_LOG10)
UNARY_RUN(sin, MR_SIN)
UNARY_RUN(cos, MR_COS)
UNARY_RUN(tan, MR_TAN)
UNARY_RUN(tanh, MR_TANH)
UNARY_RUN(sigmoid, MR_SIGMOID)
UNARY_RUN(floor, MR_FLOOR)
UNARY_RUN(ceil, MR_CEIL)
UNARY_RUN(trunc, MR_TRUNC)
UNARY_RUN(round, MR_ROUND)
UNARY_RUN(isnan, MR_ISNAN)
UNARY_RUN(isinf, MR_ISINF)
UNARY_RUN(isfinite, MR_ISFINITE)
UNARY_RUN(logical_not, MR_NOT)

static int run_where(struct mr_op_call *call)
{
    return mr_array_where(call, &call->args[0], &call->args[1], &call->args[2]);
}

/* Runs array.clip. A bound that is null does not clamp. NaN in a bound gives NaN. */
static int run_clip(struct mr_op_call *call)
{
    const struct mr_arg *low = &call->args[1];
    const struct mr_arg *high = &call->args[2];
    if (low->type == MR_ARG_NIL && high->type == MR_ARG_NIL)
        return call->does->fail(call, MR_EINVAL, "needs \"low\" or \"high\"");
    if (high->type == MR_ARG_NIL)
        return mr_array_binary(call, MR_MAX, &call->args[0], low, "x", "low");
    if (low->type == MR_ARG_NIL)
        return mr_array_binary(call, MR_MIN, &call->args[0], high, "x", "high");
    return mr_array_clip(call, &call->args[0], low, high);
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param one[] = {
    {"x", MR_TAKES_ARRAY, NULL, "A tensor, a number or a nested list of numbers."},
};
static const struct mr_op_param two[] = {
    {"x", MR_TAKES_ARRAY, NULL, "A tensor, a number or a nested list of numbers."},
    {"y", MR_TAKES_ARRAY, NULL,
        "A tensor, a number or a nested list of numbers; shapes are broadcast, types promoted."},
};
static const struct mr_op_param choice[] = {
    {"condition", MR_TAKES_ARRAY, NULL, "The condition; a value other than 0 counts as true."},
    {"x", MR_TAKES_ARRAY, NULL, "Elements where the condition is true."},
    {"y", MR_TAKES_ARRAY, NULL, "Elements where the condition is false; shapes are broadcast."},
};
static const struct mr_op_param bounds[] = {
    {"x", MR_TAKES_ARRAY, NULL, "A tensor, a number or a nested list of numbers."},
    {"low", MR_TAKES_ARRAY | MR_TAKES_NIL, "null", "Lower bound; null: none."},
    {"high", MR_TAKES_ARRAY | MR_TAKES_NIL, "null", "Upper bound; null: none."},
};

#define BINARY(name, summary) MR_OP_ROW("array." #name, D, two, 2000, run_##name, "tensor", summary)
#define ASKS(name, summary)                                                                        \
    MR_OP_ROW("array." #name, D, two, 2000, run_##name, "tensor of bools", summary)
#define UNARY(name, summary) MR_OP_ROW("array." #name, D, one, 2000, run_##name, "tensor", summary)
#define ASK(name, summary)                                                                         \
    MR_OP_ROW("array." #name, D, one, 2000, run_##name, "tensor of bools", summary)

const struct mr_op_desc *mr_elementwise_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        BINARY(add, "Adds x and y, element by element; integers wrap."),
        BINARY(subtract, "Subtracts y from x, element by element; integers wrap."),
        BINARY(multiply, "Multiplies x and y, element by element; integers wrap."),
        BINARY(divide, "Divides x by y in floating point, element by element."),
        BINARY(floor_divide, "Divides x by y and rounds down; an integer divided by zero is 0."),
        BINARY(mod, "Computes the remainder of floor_divide; it has the sign of y."),
        BINARY(power, "Raises x to the power of y; integers refuse negative powers."),
        BINARY(minimum, "Takes the smaller of each pair; NaN if one of the pair is NaN."),
        BINARY(maximum, "Takes the larger of each pair; NaN if one of the pair is NaN."),
        ASKS(equal, "Tests x == y, element by element."),
        ASKS(not_equal, "Tests x != y, element by element."),
        ASKS(less, "Tests x < y, element by element."),
        ASKS(less_equal, "Tests x <= y, element by element."),
        ASKS(greater, "Tests x > y, element by element."),
        ASKS(greater_equal, "Tests x >= y, element by element."),
        ASKS(logical_and, "Tests whether both elements are not zero."),
        ASKS(logical_or, "Tests whether at least one of the two elements is not zero."),
        ASKS(logical_xor, "Tests whether exactly one of the two elements is not zero."),
        UNARY(abs, "Computes the absolute value of each element."),
        UNARY(neg, "Negates each element."),
        UNARY(sign, "Computes the sign of each element: -1, 0 or 1."),
        UNARY(square, "Computes x * x."),
        UNARY(sqrt, "Computes the square root."),
        UNARY(reciprocal, "Computes 1 / x in floating point."),
        UNARY(exp, "Computes e to the power of x."),
        UNARY(expm1, "Computes exp(x) - 1, accurate near 0."),
        UNARY(log, "Computes the natural logarithm."),
        UNARY(log1p, "Computes log(1 + x), accurate near 0."),
        UNARY(log2, "Computes the logarithm to base 2."),
        UNARY(log10, "Computes the logarithm to base 10."),
        UNARY(sin, "Computes the sine of radians."),
        UNARY(cos, "Computes the cosine of radians."),
        UNARY(tan, "Computes the tangent of radians."),
        UNARY(tanh, "Computes the hyperbolic tangent."),
        UNARY(sigmoid, "Computes 1 / (1 + exp(-x))."),
        UNARY(floor, "Rounds down."),
        UNARY(ceil, "Rounds up."),
        UNARY(trunc, "Rounds towards zero."),
        UNARY(round, "Rounds to the nearest whole number, halves to even."),
        ASK(isnan, "Tests whether each element is NaN."),
        ASK(isinf, "Tests whether each element is infinite."),
        ASK(isfinite, "Tests whether each element is neither NaN nor infinite."),
        ASK(logical_not, "Tests whether each element is zero."),
        MR_OP_ROW("array.where", D, choice, 2000, run_where, "tensor",
            "Takes each element from x or from y, as the condition says."),
        MR_OP_ROW("array.clip", D, bounds, 2000, run_clip, "tensor",
            "Clamps each element to two bounds, one of which may be null; NaN in a bound gives NaN."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
