/* Three operators in a shared library, as a user of millrace would write them:
 *
 *   cc -shared -fPIC -I<millrace> -I<millrace>/lib example_ops.c -o libexample_ops.so
 *   mr-worker --plugin ./libexample_ops.so …
 *
 * The library needs the header ops/op.h only and links nothing of millrace. */
#include "ops/op.h"

/* example.collatz(n): returns the number of steps until n reaches 1. */
static int run_collatz(struct mr_op_call *call)
{
    int64_t n = call->args[0].i;
    if (call->args[0].type != MR_ARG_INT || n < 1)
        return call->does->fail(call, MR_ERANGE, "argument \"n\": expected an int from 1");
    int64_t steps = 0;
    for (; n != 1; steps++) {
        if (n % 2 && n > INT64_MAX / 3 - 1)
            return call->does->fail(
                call, MR_ERANGE, "left 64 bits after %lld steps", (long long)steps);
        n = n % 2 ? 3 * n + 1 : n / 2;
    }
    return call->does->return_int(call, steps);
}

/* example.smooth(x, width): returns the means over a sliding window of an f32 tensor with one axis.
 * The result is written to its final place, without a copy. */
static int run_smooth(struct mr_op_call *call)
{
    const struct mr_tensor *x = call->args[0].tensor;
    int64_t width = call->args[1].i;
    if (x->dtype != MR_DTYPE_F32 || x->ndim != 1)
        return call->does->fail(call, MR_EINVAL, "argument \"x\": expected f32 with one axis");
    if (width < 1 || (uint64_t)width > x->shape[0])
        return call->does->fail(call, MR_ERANGE, "argument \"width\": expected 1 to %llu, got %lld",
            (unsigned long long)x->shape[0], (long long)width);
    uint64_t n = x->shape[0] - (uint64_t)width + 1;
    float *out = call->does->return_tensor(call, MR_DTYPE_F32, 1, &n);
    if (!out) return MR_ELIMIT;
    for (uint64_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint64_t k = 0; k < (uint64_t)width; k++)
            sum +=
                (double)*(const float *)((const char *)x->data + (int64_t)(i + k) * x->strides[0]);
        out[i] = (float)(sum / (double)width);
        if (i % 65536 == 0 && call->does->is_cancelled(call))
            return call->does->fail(call, MR_ECANCELED, "cancelled");
    }
    return MR_OK;
}

/* example.crash(): ends the worker's process, for tests of crashes. */
static int run_crash(struct mr_op_call *call)
{
    (void)call;
    __builtin_trap();
}

static const struct mr_op_param collatz_params[] = {
    {"n", MR_TAKES_INT, NULL, "The first number, at least 1."},
};
static const struct mr_op_param smooth_params[] = {
    {"x", MR_TAKES_TENSOR, NULL, "An f32 tensor with one axis."},
    {"width", MR_TAKES_INT, "3", "Elements in the window."},
};

static const struct mr_op_desc collatz = {
    .abi = MR_OP_ABI,
    .flags = MR_OP_DETERMINISTIC,
    .name = "example.collatz",
    .summary = "Counts the steps until n reaches 1.",
    .result = "int",
    .params = collatz_params,
    .params_count = 1,
    .cost_ns = 1000,
    .run = run_collatz,
};
static const struct mr_op_desc smooth = {
    .abi = MR_OP_ABI,
    .flags = MR_OP_DETERMINISTIC,
    .name = "example.smooth",
    .summary = "Computes the mean over a sliding window.",
    .result = "f32 tensor",
    .params = smooth_params,
    .params_count = 2,
    .cost_ns = 10000,
    .run = run_smooth,
};
static const struct mr_op_desc crash = {
    .abi = MR_OP_ABI,
    .name = "example.crash",
    .summary = "Ends the worker's process at once.",
    .result = "never",
    .cost_ns = 1000,
    .run = run_crash,
};

const struct mr_op_desc *const *mr_plugin_ops(uint32_t abi, uint32_t *count);

const struct mr_op_desc *const *mr_plugin_ops(uint32_t abi, uint32_t *count)
{
    static const struct mr_op_desc *const ops[] = {&collatz, &smooth, &crash};
    if (abi != MR_OP_ABI) return NULL;
    *count = sizeof ops / sizeof ops[0];
    return ops;
}
