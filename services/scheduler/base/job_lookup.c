#include "services/scheduler/base/job_lookup.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "graph/explain.h"

#include <inttypes.h>

bool mr_job_is_over(enum mr_job_state state)
{
    return state == MR_JOB_DONE || state == MR_JOB_FAILED || state == MR_JOB_CANCELLED;
}

static char *text_of(struct mr_shell *sh, char *made)
{
    char *text = mr_shell_text(sh, mr_str(made));
    mr_release(made);
    return text;
}

char *mr_task_complaint(
    struct mr_shell *sh, const struct mr_sched_job_info *info, uint32_t node, int *code)
{
    struct mr_sched_task_info task = {.cause = MR_NODE_NONE};
    (void)mr_sched_task(sh->core, info->id, node, &task);
    bool has_own = task.has_error && task.error.message.n;
    bool was_cancelled = task.state == MR_TASK_CANCELLED;
    bool job_cancelled = info->state == MR_JOB_CANCELLED;
    *code = has_own && task.error.code
                ? task.error.code
                : mr_err_grpc(was_cancelled && job_cancelled ? MR_ECANCELED : MR_ESTATE);
    if (has_own) return mr_shell_text(sh, task.error.message);
    struct mr_str why = info->has_error ? info->error.message : MR_STR("");
    if (task.cause != MR_NODE_NONE) {
        struct mr_str key = mr_graph_key(info->graph, task.cause);
        why = task.cause_error.message;
        return text_of(sh,
            mr_format("%s \"%.*s\"%s failed%s%.*s",
                was_cancelled ? "it did not run: the job ended when" : "it needs", MR_STR_ARG(key),
                was_cancelled ? "" : ", which", why.n ? ": " : "", MR_STR_ARG(why)));
    }
    if (task.state == MR_TASK_ERRED)
        return mr_shell_text(sh, MR_STR("it failed; its error text is no longer kept"));
    if (was_cancelled)
        return text_of(sh, mr_format("it was cancelled%s%.*s", why.n ? ": " : "", MR_STR_ARG(why)));
    return mr_shell_text(sh, MR_STR("its value no longer exists"));
}

bool mr_job_lookup(struct mr_shell *sh, struct mr_rpc_call *call, const char *id, mr_job_id *out,
    struct mr_sched_job_info *info)
{
    if (mr_job_id_parse(mr_str(id), out)) {
        mr_shell_fail(
            call, MR_EINVAL, "id: \"%.64s\" is no job id (they look like j1kq07ab-7)", id);
        return false;
    }
    if (mr_sched_job(sh->core, *out, info)) return true;
    uint64_t wall_ns = mr_sched_forgotten(sh->core, *out);
    if (wall_ns)
        mr_shell_fail(call, MR_ENOENT, "job %s was forgotten at %" PRIu64 " s since 1970", id,
            wall_ns / MR_SECOND);
    else if (mr_sched_is_lost_journal(sh->core, mr_job_id_tag(*out)))
        mr_shell_fail(call, MR_ENOENT,
            "job %s is from a journal that Redis has lost: Redis came back empty, or from an older "
            "copy, without the scheduler that accepted the job",
            id);
    else
        mr_shell_fail(call, MR_ENOENT, "there is no job %s", id);
    return false;
}

bool mr_job_node(
    struct mr_rpc_call *call, const struct mr_sched_job_info *info, const char *key, uint32_t *node)
{
    *node = mr_graph_find(info->graph, mr_str(key));
    if (*node != MR_NODE_NONE) return true;
    if (mr_graph_was_culled(info->graph, mr_str(key)))
        mr_shell_fail(call, MR_ENOENT, "key \"%s\" was culled: no target needs it", key);
    else
        mr_shell_fail(call, MR_ENOENT, "the job has no key \"%s\"", key);
    return false;
}
