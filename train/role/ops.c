/* Registers the operators. */
#include "train/role/ops.h"

#include "train/queue/close.h"
#include "train/queue/put.h"
#include "train/role/exec.h"
#include "train/role/ps.h"
#include "train/role/scorer.h"
#include "train/role/worker.h"

int mr_role_add_ops(struct mr_registry *r, bool with_exec, struct mr_error *e)
{
    static const struct mr_op_desc *const ops[] = {&mr_train_ps_op, &mr_train_worker_op,
        &mr_train_scorer_op, &mr_queue_put_op, &mr_queue_close_op};
    int err = with_exec ? mr_registry_add(r, &mr_train_exec_op, e) : MR_OK;
    for (size_t i = 0; i < MR_ARRAY_LEN(ops) && !err; i++)
        err = mr_registry_add(r, ops[i], e);
    return err;
}
