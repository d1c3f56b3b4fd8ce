/* test.record(value, seconds=0, bytes=0) lets a test count how often each task starts. It appends a
 * line "job index attempt" to the file that MILLRACE_RECORD named when the worker started, waits
 * `seconds`, and returns `value`. If `bytes` is not 0, it returns that many bytes instead, each of
 * which is the low byte of `value`. Loading the plug-in takes MILLRACE_TEST_LOAD_MS milliseconds.
 */
#include "ops/op.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void load(void)
{
    const char *ms = getenv("MILLRACE_TEST_LOAD_MS");
    if (ms) (void)usleep((useconds_t)(strtoul(ms, NULL, 10) * 1000));
}

static void record(const struct mr_op_call *call)
{
    const char *path = getenv("MILLRACE_RECORD");
    char line[96];
    if (!path) return;
    int n = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu32 " %" PRIu32 "\n", call->task.job.v,
        call->task.index, call->task.attempt);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return;
    /* A short line in one write is not mixed with lines of other processes. */
    ssize_t put = write(fd, line, (size_t)n);
    (void)put;
    (void)close(fd);
}

static int run_record(struct mr_op_call *call)
{
    const struct mr_arg *seconds = &call->args[1];
    double s = seconds->type == MR_ARG_INT ? (double)seconds->i : seconds->f;
    record(call);
    if (s > 0) {
        int err = call->does->wait(call, (uint64_t)(s * 1e9));
        if (err) return err;
    }
    if (call->args[2].i <= 0) return call->does->return_arg(call, &call->args[0]);
    unsigned char *p = call->does->return_bytes(call, (uint64_t)call->args[2].i);
    if (!p) return MR_ELIMIT;
    memset(p, (int)(call->args[0].i & 0xff), (size_t)call->args[2].i);
    return MR_OK;
}

/* test.size(values...) returns the number of bytes of all values. It fails if a value has two
 * different bytes. */
static int run_size(struct mr_op_call *call)
{
    int64_t n = 0;
    record(call);
    for (uint32_t i = 0; i < call->rest_count; i++) {
        const struct mr_arg *a = &call->rest[i];
        if (a->type != MR_ARG_BYTES) return call->does->fail(call, MR_EINVAL, "expected bytes");
        for (size_t k = 1; k < a->bytes.n; k++)
            if (a->bytes.p[k] != a->bytes.p[0])
                return call->does->fail(call, MR_ELOST, "byte %zu differs", k);
        n += (int64_t)a->bytes.n;
    }
    return call->does->return_int(call, n);
}

static const struct mr_op_param record_params[] = {
    {"value", MR_TAKES_ANY, NULL, "What is returned."},
    {"seconds", MR_TAKES_REAL, "0", "How long to wait."},
    {"bytes", MR_TAKES_INT, "0", "Return so many bytes instead."},
};
static const struct mr_op_param size_params[] = {
    {"values", MR_TAKES_ANY, NULL, "What is measured."},
};
static const struct mr_op_desc record_op = {.abi = MR_OP_ABI,
    .flags = MR_OP_DETERMINISTIC | MR_OP_MAY_BLOCK,
    .name = "test.record",
    .summary = "Notes that it started and returns its argument.",
    .result = "any",
    .params = record_params,
    .params_count = 3,
    .cost_ns = 10000,
    .run = run_record};
static const struct mr_op_desc size_op = {.abi = MR_OP_ABI,
    .flags = MR_OP_DETERMINISTIC | MR_OP_VARIADIC,
    .name = "test.size",
    .summary = "The bytes of all arguments.",
    .result = "int",
    .params = size_params,
    .params_count = 1,
    .cost_ns = 10000,
    .run = run_size};

const struct mr_op_desc *const *mr_plugin_ops(uint32_t abi, uint32_t *count);

const struct mr_op_desc *const *mr_plugin_ops(uint32_t abi, uint32_t *count)
{
    static const struct mr_op_desc *const ops[] = {&record_op, &size_op};
    if (abi != MR_OP_ABI) return NULL;
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
