#include "support/op_host.h"

#include "base/alloc.h"

#include <stdio.h>

static void *alloc_result(void *ctx, uint64_t bytes, struct mr_error *e)
{
    struct op_host *h = ctx;
    mr_release(h->result);
    h->result = NULL;
    if (bytes > (uint64_t)4 << 30) {
        (void)mr_fail(e, MR_ELIMIT, "more than this host has");
        return NULL;
    }
    h->result = mr_alloc_aligned((size_t)bytes, 64);
    /* Fills the result with bytes that are not zero, so that the test of an operator that expects
     * zeros fails. */
    memset(h->result, 0xa5, (size_t)bytes);
    return h->result;
}

static bool is_cancelled(void *ctx)
{
    return ((struct op_host *)ctx)->is_cancelled;
}

static void wait_ns(void *ctx, uint64_t ns)
{
    ((struct op_host *)ctx)->waited_ns += ns;
}

static void log_line(void *ctx, struct mr_str line)
{
    struct op_host *h = ctx;
    size_t n = strlen(h->log);
    (void)snprintf(h->log + n, sizeof h->log - n, "%.*s\n", MR_STR_ARG(line));
}

static int open_file(void *ctx, struct mr_str path, int *fd, struct mr_error *e)
{
    return mr_roots_open(&((struct op_host *)ctx)->roots, path, fd, e);
}

static int load(void *ctx, mr_object_id id, struct mr_str *extent, struct mr_error *e)
{
    struct op_host *h = ctx;
    if (id.number < 1 || id.number > MR_ARRAY_LEN(h->objects) || !h->objects[id.number - 1].n)
        return mr_fail(e, MR_ELOST, "no object %llu", (unsigned long long)id.number);
    *extent = h->objects[id.number - 1];
    return MR_OK;
}

static const struct mr_op_host host = {
    .alloc_result = alloc_result,
    .is_cancelled = is_cancelled,
    .wait = wait_ns,
    .log = log_line,
    .open = open_file,
    .load = load,
};

void op_host_init(struct op_host *h)
{
    *h = (struct op_host){0};
    h->registry = mr_registry_new();
    h->run = mr_op_run_new(&host, (uint64_t)2 << 30);
    mr_roots_init(&h->roots);
}

void op_host_fini(struct op_host *h)
{
    mr_op_run_free(&h->run);
    mr_registry_free(&h->registry);
    mr_roots_fini(&h->roots);
    mr_release(h->result);
}

int op_host_call(struct op_host *h, const char *op, struct mr_str args,
    const struct mr_op_input *inputs, uint32_t inputs_count, struct mr_op_result *result,
    struct mr_error *e)
{
    const struct mr_op_desc *desc = mr_registry_find(h->registry, mr_str(op));
    if (!desc) return mr_fail(e, MR_ENOENT, "no op \"%s\"", op);
    struct mr_op_task task = {.attempt = h->attempt, .key = MR_STR_INIT("test")};
    return mr_op_run(h->run, desc, &task, args, inputs, inputs_count, h, result, e);
}
