/* Checks that the columns of a SchedulerMessage (session/refs.h) belong together. The worker's core
 * relies on this check. */
#include "session/down.h"

#include "base/limits.h"

/* Checks that the runs (consecutive rows of one job, struct mr_ws_run) cover exactly the rows, and
 * that each run has a job. A worker finds values by their job, and job 0 is no job. */
static int refs_check(const char *what, const struct mr_ws_refs *r, struct mr_error *e)
{
    for (uint32_t i = 0; i < r->runs_count; i++)
        if (!r->runs[i].job.v) return mr_fail(e, MR_EFORMAT, "%s: run %u has no job", what, i);
    return mr_ws_refs_check(what, r, e);
}

static int values_check(const struct mr_ws_values *v, struct mr_error *e)
{
    const struct mr_ws_refs rows = {v->runs, v->runs_count, v->index, NULL, v->count};
    int err = refs_check("values", &rows, e);
    if (err) return err;
    uint64_t bytes = 0;
    uint32_t objects = 0;
    for (uint32_t i = 0; i < v->count; i++) {
        bytes += v->inline_bytes[i];
        objects += !v->inline_bytes[i];
    }
    if (bytes != v->inlined.n)
        return mr_fail(e, MR_EFORMAT, "values: inline_bytes add up to %llu, inline has %zu",
            (unsigned long long)bytes, v->inlined.n);
    if (objects == v->objects_count) return MR_OK;
    return mr_fail(e, MR_EFORMAT, "values: %u rows are objects, the object columns have %u",
        objects, v->objects_count);
}

static int extras_check(const struct mr_ws_tasks *t, struct mr_error *e)
{
    for (uint32_t i = 0; i < t->extras_count; i++) {
        const struct mr_ws_extra *x = &t->extras[i];
        if (x->row >= t->count || (i && x->row <= t->extras[i - 1].row))
            return mr_fail(e, MR_EFORMAT, "tasks: extra %u is for row %u, which is %s", i, x->row,
                x->row >= t->count ? "not there" : "not above the one before");
        if (x->key.n > MR_KEY_BYTES_MAX || x->persist_name.n > MR_KEY_BYTES_MAX)
            return mr_fail(
                e, MR_EFORMAT, "tasks: extra %u has a name over %u bytes", i, MR_KEY_BYTES_MAX);
        if (x->definition.n && x->definition.n != 16)
            return mr_fail(
                e, MR_EFORMAT, "tasks: extra %u has a definition that is not 16 bytes", i);
        if (x->resources_count > MR_RESOURCES_MAX)
            return mr_fail(
                e, MR_EFORMAT, "tasks: extra %u wants more than %u resources", i, MR_RESOURCES_MAX);
    }
    return MR_OK;
}

static int tasks_check(const struct mr_ws_tasks *t, struct mr_error *e)
{
    const struct mr_ws_refs rows = {t->runs, t->runs_count, t->index, NULL, t->count};
    int err = refs_check("tasks", &rows, e);
    if (err) return err;
    uint64_t bytes = 0, inputs = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t n = mr_ws_cell(t->inputs_count, i, 0);
        bytes += t->args_bytes[i];
        inputs += n;
        if (n > MR_TASK_INPUTS_MAX)
            return mr_fail(
                e, MR_EFORMAT, "tasks: row %u has more than %u inputs", i, MR_TASK_INPUTS_MAX);
        if (!mr_ws_attempt(t, i)) return mr_fail(e, MR_EFORMAT, "tasks: row %u has attempt 0", i);
    }
    if (bytes != t->args.n)
        return mr_fail(e, MR_EFORMAT, "tasks: args_bytes add up to %llu, args has %zu",
            (unsigned long long)bytes, t->args.n);
    if (inputs != t->inputs_total)
        return mr_fail(e, MR_EFORMAT, "tasks: inputs_count add up to %llu, inputs has %u",
            (unsigned long long)inputs, t->inputs_total);
    for (uint32_t i = 0; i < t->last_use_count; i++)
        if (t->last_use[i] >= t->inputs_total || (i && t->last_use[i] <= t->last_use[i - 1]))
            return mr_fail(e, MR_EFORMAT, "tasks: last_use %u is out of order or range", i);
    return extras_check(t, e);
}

int mr_ws_down_check(const struct mr_ws_down *m, struct mr_error *e)
{
    int err = MR_OK;
    if (m->registered) {
        err = refs_check("adopt", &m->registered->adopt, e);
        if (!err) err = refs_check("keep", &m->registered->keep, e);
    }
    if (!err) err = values_check(&m->values, e);
    if (!err) err = tasks_check(&m->tasks, e);
    if (!err) err = refs_check("cancel", &m->cancel, e);
    if (!err) err = refs_check("release", &m->release, e);
    if (!err) err = refs_check("steal", &m->steal, e);
    if (!err) err = refs_check("fetch", &m->fetch, e);
    if (!err) err = refs_check("leave", &m->leave, e);
    return err;
}
