/* Measures how fast operators run in one thread, compared with memcpy: the GB/s that they read and
 * write, and for small operators the nanoseconds of a call.
 *     ops_bench [filter] */
#include "support/op_host.h"

#include "base/alloc.h"
#include "base/pack.h"
#include "store/object/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REPEATS 7

/* Memory for results. It is kept from call to call, so that its pages are warm, as in a store's
 * arena. */
static void *heap_result;
static uint64_t heap_bytes;

static void *alloc_result(void *ctx, uint64_t bytes, struct mr_error *e)
{
    (void)ctx;
    (void)e;
    if (bytes > heap_bytes) {
        mr_release(heap_result);
        heap_result = mr_alloc_aligned((size_t)bytes, 64);
        heap_bytes = bytes;
    }
    return heap_result;
}

static bool is_cancelled(void *ctx)
{
    (void)ctx;
    return false;
}

static const struct mr_op_host host = {.alloc_result = alloc_result, .is_cancelled = is_cancelled};

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static struct mr_registry *registry;
static struct mr_op_run *runner;

struct bench {
    const char *op;
    struct mr_buf args; /* arguments, a pack that is a list */
    struct mr_op_input inputs[32];
    uint32_t inputs_count;
};

static double time_call(struct bench *b, unsigned calls)
{
    const struct mr_op_desc *op = mr_registry_find(registry, mr_str(b->op));
    struct mr_op_task task = {0};
    struct mr_op_result result;
    struct mr_error e;
    double seconds[REPEATS];
    for (int i = -1; i < REPEATS; i++) { /* run -1 warms up and is not counted */
        double start = now_s();
        for (unsigned k = 0; k < calls; k++) {
            int err = mr_op_run(runner, op, &task, mr_buf_str(&b->args), b->inputs, b->inputs_count,
                NULL, &result, &e);
            if (!err) continue;
            (void)fprintf(stderr, "%s\n", e.text);
            exit(EXIT_FAILURE);
        }
        if (i >= 0) seconds[i] = (now_s() - start) / calls;
    }
    qsort(seconds, REPEATS, sizeof *seconds, by_value);
    return seconds[REPEATS / 2];
}

static void *tensor(enum mr_dtype t, unsigned ndim, const uint64_t *shape, struct mr_str *extent)
{
    uint64_t bytes = mr_tensor_bytes(t, ndim, shape);
    void *p = mr_alloc_aligned((size_t)bytes, 64);
    *extent = mr_str_of(p, (size_t)bytes);
    return mr_tensor_build(p, t, ndim, shape);
}

/* Measures an operator and prints one line. The first arguments are `tensors` large arrays. `rest`
 * has the other `rest_count` arguments in MessagePack (base/pack.h). */
static void large(const char *name, const char *op, enum mr_dtype t, unsigned tensors,
    const char *rest, size_t rest_bytes, unsigned rest_count, double bytes_written)
{
    const uint64_t shape[2] = {60000, 784};
    struct bench b = {.op = op, .inputs_count = tensors};
    mr_buf_init(&b.args, 1000);
    mr_pack_list(&b.args, tensors + rest_count);
    double bytes = bytes_written;
    for (unsigned i = 0; i < tensors; i++) {
        unsigned char *p = tensor(t, 2, shape, &b.inputs[i].extent);
        uint64_t n = shape[0] * shape[1];
        for (uint64_t k = 0; k < n; k++) {
            if (t == MR_DTYPE_F32)
                ((float *)(void *)p)[k] = (float)(k % 251) / 251;
            else if (t == MR_DTYPE_F64)
                ((double *)(void *)p)[k] = (double)(k % 251) / 251;
            else
                p[k * mr_dtype_bytes(t)] = (unsigned char)(k % 251);
        }
        mr_pack_input(&b.args, i);
        bytes += (double)(n * mr_dtype_bytes(t));
    }
    mr_buf_add(&b.args, rest, rest_bytes);
    double s = time_call(&b, 1);
    (void)printf("%-34s %8.1f ms %8.2f GB/s\n", name, s * 1e3, bytes / s * 1e-9);
    for (unsigned i = 0; i < tensors; i++)
        mr_release((void *)(uintptr_t)b.inputs[i].extent.p);
    mr_buf_fini(&b.args);
}

static void small(const char *name, const char *op, const char *args, size_t n)
{
    struct bench b = {.op = op};
    mr_buf_init(&b.args, 1000);
    mr_buf_add(&b.args, args, n);
    (void)printf("%-34s %8.0f ns\n", name, time_call(&b, 100000) * 1e9);
    mr_buf_fini(&b.args);
}

static void copy(void)
{
    size_t n = (size_t)60000 * 784 * 4;
    void *from = mr_alloc_aligned(n, 64);
    void *to = mr_alloc_aligned(n, 64);
    double seconds[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        double start = now_s();
        memcpy(to, from, n);
        seconds[i] = now_s() - start;
    }
    qsort(seconds, REPEATS, sizeof *seconds, by_value);
    (void)printf("%-34s %8.1f ms %8.2f GB/s\n", "memcpy (60000, 784) f32",
        seconds[REPEATS / 2] * 1e3, 2 * (double)n / seconds[REPEATS / 2] * 1e-9);
    mr_release(from);
    mr_release(to);
}

#define LARGE(name, op, t, tensors, rest, count, written)                                          \
    do {                                                                                           \
        if (strstr(name, filter))                                                                  \
            large(name, op, t, tensors, rest, sizeof(rest) - 1, count, written);                   \
    } while (0)

int main(int argc, char **argv)
{
    const char *filter = argc > 1 ? argv[1] : "";
    registry = mr_registry_new();
    runner = mr_op_run_new(&host, (uint64_t)4 << 30);
    const double f32 = 60000.0 * 784 * 4;
    copy();
    LARGE("sum axis 0 f32", "array.sum", MR_DTYPE_F32, 1, "\x00", 1, 0);
    LARGE("sum axis 1 f32", "array.sum", MR_DTYPE_F32, 1, "\x01", 1, 0);
    LARGE("sum all f32", "array.sum", MR_DTYPE_F32, 1, "", 0, 0);
    LARGE("sum axis 0 f64", "array.sum", MR_DTYPE_F64, 1, "\x00", 1, 0);
    LARGE("sum axis 0 u8", "array.sum", MR_DTYPE_U8, 1, "\x00", 1, 0);
    LARGE("mean axis 0 f32", "array.mean", MR_DTYPE_F32, 1, "\x00", 1, 0);
    LARGE("moments axis 0 f32", "array.moments", MR_DTYPE_F32, 1, "\x00", 1, 0);
    LARGE("moments axis 1 f32", "array.moments", MR_DTYPE_F32, 1, "\x01", 1, 0);
    LARGE("moments axis 0 f64", "array.moments", MR_DTYPE_F64, 1, "\x00", 1, 0);
    LARGE("moments axis 0 u8", "array.moments", MR_DTYPE_U8, 1, "\x00", 1, 0);
    LARGE("max axis 0 f32", "array.max", MR_DTYPE_F32, 1, "\x00", 1, 0);
    LARGE("max all f32", "array.max", MR_DTYPE_F32, 1, "", 0, 0);
    LARGE("argmax axis 1 f32", "array.argmax", MR_DTYPE_F32, 1, "\x01", 1, 0);
    LARGE("scale u8 to f32", "array.scale", MR_DTYPE_U8, 1, "", 0, f32);
    LARGE("astype u8 to f32", "array.astype", MR_DTYPE_U8, 1,
        "\xa3"
        "f32",
        1, f32);
    LARGE("astype f32 to f16", "array.astype", MR_DTYPE_F32, 1,
        "\xa3"
        "f16",
        1, f32 / 2);
    LARGE("add f32", "array.add", MR_DTYPE_F32, 2, "", 0, f32);
    LARGE("multiply f32 by a number", "array.multiply", MR_DTYPE_F32, 1, "\x02", 1, f32);
    LARGE("add f16", "array.add", MR_DTYPE_F16, 2, "", 0, f32 / 2);
    LARGE("less f32", "array.less", MR_DTYPE_F32, 2, "", 0, f32 / 4);
    LARGE("sqrt f32", "array.sqrt", MR_DTYPE_F32, 1, "", 0, f32);
    LARGE("exp f32", "array.exp", MR_DTYPE_F32, 1, "", 0, f32);
    LARGE("transpose f32", "array.transpose", MR_DTYPE_F32, 1, "", 0, f32);
    LARGE("copy f32", "array.copy", MR_DTYPE_F32, 1, "", 0, f32);
    if (!*filter) {
        small("inc(1)", "inc", "\x91\x01", 2);
        small("add(1, 2.5)", "add", "\x92\x01\xcb\x40\x04\0\0\0\0\0\0", 11);
        small("list(1, 2, 3)", "list", "\x93\x01\x02\x03", 4);
        small("array.add([1, 2], 3)", "array.add", "\x92\x92\x01\x02\x03", 5);
    }
    mr_op_run_free(&runner);
    mr_registry_free(&registry);
    mr_release(heap_result);
    return EXIT_SUCCESS;
}
