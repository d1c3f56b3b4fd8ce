/* Arguments and inputs of a task, as bytes from elsewhere, through resolution and a few operators.
 * The first byte chooses the operator, the second cuts the rest into arguments and one input. */
#include "base/alloc.h"
#include "ops/call.h"
#include "ops/registry.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void *memory;

static void *alloc_result(void *ctx, uint64_t bytes, struct mr_error *e)
{
    (void)ctx;
    mr_release(memory);
    memory = NULL;
    if (bytes > (uint64_t)16 << 20) {
        (void)mr_fail(e, MR_ELIMIT, "too large to fuzz");
        return NULL;
    }
    memory = mr_alloc_aligned((size_t)bytes, 64);
    return memory;
}

static bool is_cancelled(void *ctx)
{
    (void)ctx;
    return false;
}

static void wait_ns(void *ctx, uint64_t ns)
{
    (void)ctx;
    (void)ns;
}

static void log_line(void *ctx, struct mr_str line)
{
    (void)ctx;
    (void)line;
}

static int open_file(void *ctx, struct mr_str path, int *fd, struct mr_error *e)
{
    (void)ctx;
    (void)path;
    *fd = -1;
    return mr_fail(e, MR_EPERM, "no files");
}

static const struct mr_op_host host = {.alloc_result = alloc_result,
    .is_cancelled = is_cancelled,
    .wait = wait_ns,
    .log = log_line,
    .open = open_file};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct mr_registry *registry;
    static struct mr_op_run *run;
    if (!registry) registry = mr_registry_new();
    if (!run) run = mr_op_run_new(&host, (uint64_t)32 << 20);
    if (n < 2) return 0;
    const struct mr_op_desc *op = mr_registry_at(registry, data[0] % mr_registry_count(registry));
    size_t cut = 2 + (n - 2) * data[1] / 255;
    unsigned char *args = mr_copy(data + 2, cut - 2); /* of exact length, for the sanitizer */
    unsigned char *pack = mr_copy(data + cut, n - cut);
    void *extent = mr_alloc_aligned(n - cut, 64);
    memcpy(extent, data + cut, n - cut);
    struct mr_op_input inputs[2] = {
        {.pack = mr_str_of(pack, n - cut)}, {.extent = mr_str_of(extent, n - cut)}};
    struct mr_op_task task = {0};
    struct mr_op_result result;
    struct mr_error e;
    int err = mr_op_run(run, op, &task, mr_str_of(args, cut - 2), inputs, 2, NULL, &result, &e);
    if (err && !e.text[0]) __builtin_trap(); /* every failure has words */
    mr_release(args);
    mr_release(pack);
    mr_release(extent);
    mr_release(memory);
    memory = NULL;
    return 0;
}
