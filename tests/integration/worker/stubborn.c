/* A plug-in with an operator that ignores its cancel flag, and an operator that kills the worker's
 * process. */
#include "ops/op.h"

#include <signal.h>
#include <unistd.h>

static int stubborn(struct mr_op_call *call)
{
    for (int i = 0; i < 600; i++)
        (void)usleep(100000);
    return call->does->return_nil(call);
}

static int die(struct mr_op_call *call)
{
    (void)kill(getpid(), SIGKILL);
    return call->does->return_nil(call);
}

static const struct mr_op_desc stubborn_op = {.abi = MR_OP_ABI,
    .name = "test.stubborn",
    .summary = "Runs for a minute, whatever happens.",
    .result = "nothing",
    .run = stubborn};
static const struct mr_op_desc die_op = {.abi = MR_OP_ABI,
    .name = "test.die",
    .summary = "Kills its process.",
    .result = "nothing",
    .run = die};

const struct mr_op_desc *const *mr_plugin_ops(uint32_t abi, uint32_t *count);

const struct mr_op_desc *const *mr_plugin_ops(uint32_t abi, uint32_t *count)
{
    static const struct mr_op_desc *const ops[] = {&die_op, &stubborn_op};
    *count = 2;
    return abi == MR_OP_ABI ? ops : NULL;
}
