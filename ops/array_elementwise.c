/* array.add … array.isfinite: operators that work element by element. */
#include "ops/array.h"
#include "ops/builtin.h"

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

/* Held between bounds; what is not given does not bind. The bounds' NaN spreads. */
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
    {"y", MR_TAKES_ARRAY, NULL, "The same; shapes are broadcast, types promoted."},
};
static const struct mr_op_param choice[] = {
    {"condition", MR_TAKES_ARRAY, NULL, "What is not zero counts as true."},
    {"x", MR_TAKES_ARRAY, NULL, "Where it is true."},
    {"y", MR_TAKES_ARRAY, NULL, "Where it is false; shapes are broadcast."},
};
static const struct mr_op_param bounds[] = {
    {"x", MR_TAKES_ARRAY, NULL, "A tensor, a number or a nested list of numbers."},
    {"low", MR_TAKES_ARRAY | MR_TAKES_NIL, "null", "Nothing below this."},
    {"high", MR_TAKES_ARRAY | MR_TAKES_NIL, "null", "Nothing above this."},
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
        BINARY(add, "x + y, element by element; integers wrap."),
        BINARY(subtract, "x - y, element by element; integers wrap."),
        BINARY(multiply, "x * y, element by element; integers wrap."),
        BINARY(divide, "x / y in floating point, element by element."),
        BINARY(floor_divide, "x / y rounded down; of integers by zero: 0."),
        BINARY(mod, "What floor_divide leaves, with the sign of y."),
        BINARY(power, "x to the power of y; integers take no negative powers."),
        BINARY(minimum, "The smaller of each pair; NaN spreads."),
        BINARY(maximum, "The larger of each pair; NaN spreads."),
        ASKS(equal, "x == y, element by element."),
        ASKS(not_equal, "x != y, element by element."),
        ASKS(less, "x < y, element by element."),
        ASKS(less_equal, "x <= y, element by element."),
        ASKS(greater, "x > y, element by element."),
        ASKS(greater_equal, "x >= y, element by element."),
        ASKS(logical_and, "Are both not zero?"),
        ASKS(logical_or, "Is one of the two not zero?"),
        ASKS(logical_xor, "Is exactly one of the two not zero?"),
        UNARY(abs, "Each element without its sign."),
        UNARY(neg, "Each element with the other sign."),
        UNARY(sign, "-1, 0 or 1 for each element."),
        UNARY(square, "x * x."),
        UNARY(sqrt, "The square root."),
        UNARY(reciprocal, "1 / x in floating point."),
        UNARY(exp, "e to the power of x."),
        UNARY(expm1, "exp(x) - 1, exact near 0."),
        UNARY(log, "The natural logarithm."),
        UNARY(log1p, "log(1 + x), exact near 0."),
        UNARY(log2, "The logarithm to base 2."),
        UNARY(log10, "The logarithm to base 10."),
        UNARY(sin, "The sine, of radians."),
        UNARY(cos, "The cosine, of radians."),
        UNARY(tan, "The tangent, of radians."),
        UNARY(tanh, "The hyperbolic tangent."),
        UNARY(sigmoid, "1 / (1 + exp(-x))."),
        UNARY(floor, "Rounded down."),
        UNARY(ceil, "Rounded up."),
        UNARY(trunc, "Rounded towards zero."),
        UNARY(round, "Rounded to the nearest, halves to even."),
        ASK(isnan, "Is it not a number?"),
        ASK(isinf, "Is it infinite?"),
        ASK(isfinite, "Is it neither NaN nor infinite?"),
        ASK(logical_not, "Is it zero?"),
        MR_OP_ROW("array.where", D, choice, 2000, run_where, "tensor",
            "Takes each element from x or from y."),
        MR_OP_ROW("array.clip", D, bounds, 2000, run_clip, "tensor",
            "Holds each element between two bounds."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
