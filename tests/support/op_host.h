/* A host for operators in a test's process. Results are on the heap, operators read files below the
 * given roots, and the test sets the cancel flag. */
#pragma once

#include "ops/call.h"
#include "ops/registry/registry.h"
#include "ops/roots.h"

struct op_host {
    struct mr_registry *registry;
    struct mr_op_run *run;
    struct mr_roots roots;
    void *result; /* memory of the last result; owned by the host */
    bool is_cancelled;
    uint64_t waited_ns;
    uint32_t attempt;
    struct mr_str objects[8]; /* the extents of the objects with ids 1 to 8 */
    char log[4096];
};

void op_host_init(struct op_host *h);
void op_host_fini(struct op_host *h);

int op_host_call(struct op_host *h, const char *op, struct mr_str args,
    const struct mr_op_input *inputs, uint32_t inputs_count, struct mr_op_result *result,
    struct mr_error *e);
