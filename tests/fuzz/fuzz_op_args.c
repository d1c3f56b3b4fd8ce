/* Resolves arbitrary bytes as the arguments and inputs of a task, and runs an operator on them. Two
 * bytes choose the operator. The third divides the rest into the arguments and the bytes of the
 * inputs. */
#include "base/alloc.h"
#include "ops/call.h"
#include "ops/registry/registry.h"
#include "store/object/value.h"

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

/* Number of times that the cancel flag was read. Operators that would run for very many rounds are
 * cancelled. */
static unsigned asked;

static bool is_cancelled(void *ctx)
{
    (void)ctx;
    return ++asked > 64;
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

/* Chooses an operator by consistent hashing: the one whose hashed name follows `point` on a ring.
 * So a corpus keeps its meaning when operators are added. */
static const struct mr_op_desc *choose(const struct mr_registry *r, uint16_t point)
{
    const struct mr_op_desc *best = NULL;
    uint16_t nearest = UINT16_MAX;
    for (uint32_t i = 0; i < mr_registry_count(r); i++) {
        const struct mr_op_desc *op = mr_registry_at(r, i);
        uint32_t hash = 2166136261u; /* FNV-1a */
        for (const char *p = op->name; *p; p++)
            hash = (hash ^ (unsigned char)*p) * 16777619u;
        uint16_t distance = (uint16_t)((hash >> 16 ^ hash) - point);
        if (best && distance >= nearest) continue;
        best = op;
        nearest = distance;
    }
    return best;
}

/* Makes a tensor of up to four short axes; its elements repeat the bytes. */
static struct mr_str tensor_of(const unsigned char *p, size_t n)
{
    unsigned char head[6] = {0};
    memcpy(head, p, MR_MIN(n, sizeof head));
    enum mr_dtype t = (enum mr_dtype)(1 + head[0] % (MR_DTYPES_COUNT - 1));
    unsigned ndim = head[1] % 5;
    uint64_t shape[4] = {head[2] % 6, head[3] % 6, head[4] % 6, head[5] % 6};
    uint64_t bytes = mr_tensor_bytes(t, ndim, shape);
    unsigned char *extent = mr_alloc_aligned((size_t)bytes, 64);
    unsigned char *to = mr_tensor_build(extent, t, ndim, shape);
    for (uint64_t i = 0; n && i < (uint64_t)(extent + bytes - to); i++)
        to[i] = t == MR_DTYPE_BOOL ? p[i % n] & 1 : p[i % n];
    return mr_str_of(extent, (size_t)bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct mr_registry *registry;
    static struct mr_op_run *run;
    if (!registry) registry = mr_registry_new();
    if (!run) run = mr_op_run_new(&host, (uint64_t)32 << 20);
    if (n < 3) return 0;
    asked = 0;
    const struct mr_op_desc *op = choose(registry, (uint16_t)(data[0] << 8 | data[1]));
    size_t cut = 3 + (n - 3) * data[2] / 255;
    /* Copies of exact length, so that the sanitizer notices a read beyond them. */
    unsigned char *args = mr_copy(data + 3, cut - 3);
    unsigned char *pack = mr_copy(data + cut, n - cut);
    void *extent = mr_alloc_aligned(n - cut, 64);
    memcpy(extent, data + cut, n - cut);
    struct mr_str tensor = tensor_of(pack, n - cut);
    struct mr_op_input inputs[4] = {{.pack = mr_str_of(pack, n - cut)},
        {.extent = mr_str_of(extent, n - cut)}, {.extent = tensor},
        {.extent = tensor, .object = {.maker = 1, .number = 1}}};
    struct mr_op_task task = {0};
    struct mr_op_result result;
    struct mr_error e;
    int err = mr_op_run(run, op, &task, mr_str_of(args, cut - 3), inputs, 4, NULL, &result, &e);
    if (err && !e.text[0]) __builtin_trap(); /* every failure must have an error text */
    mr_release(args);
    mr_release(pack);
    mr_release(extent);
    mr_release((void *)(uintptr_t)tensor.p);
    mr_release(memory);
    memory = NULL;
    return 0;
}
