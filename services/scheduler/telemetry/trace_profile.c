#include "services/scheduler/telemetry/trace_profile.h"

#include "base/defs.h"
#include "base/unconst.h"
#include "services/scheduler/base/job_lookup.h"

#include <millrace/v1/jobs.pb-c.h>

/* Classes with their time. protobuf-c has a type for each map, but all have this layout. */
static size_t classes_out(struct mr_shell *sh, const struct mr_account_sums *sums,
    Millrace__V1__ProfileResponse__ClassesEntry ***out)
{
    size_t n = 0;
    *out = mr_shell_take(sh, MR_ACCOUNT_CLASSES * sizeof **out);
    for (uint32_t i = 0; i < MR_ACCOUNT_CLASSES; i++) {
        Millrace__V1__ProfileResponse__ClassesEntry *m = mr_shell_take(sh, sizeof *m);
        millrace__v1__profile_response__classes_entry__init(m);
        m->key = mr_unconst(mr_account_class_name((enum mr_account_class)i));
        m->value = sums->ns[i];
        (*out)[n++] = m;
    }
    return n;
}

static size_t path_classes_out(struct mr_shell *sh, const struct mr_account_sums *sums,
    Millrace__V1__CriticalPath__ClassesEntry ***out)
{
    size_t n = 0;
    *out = mr_shell_take(sh, MR_ACCOUNT_CLASSES * sizeof **out);
    for (uint32_t i = 0; i < MR_ACCOUNT_CLASSES; i++) {
        if (!sums->ns[i]) continue;
        Millrace__V1__CriticalPath__ClassesEntry *m = mr_shell_take(sh, sizeof *m);
        millrace__v1__critical_path__classes_entry__init(m);
        m->key = mr_unconst(mr_account_class_name((enum mr_account_class)i));
        m->value = sums->ns[i];
        (*out)[n++] = m;
    }
    return n;
}

static Millrace__V1__CriticalPath *path_out(
    struct mr_shell *sh, const struct mr_graph *graph, const struct mr_job_account *a)
{
    Millrace__V1__CriticalPath *p = mr_shell_take(sh, sizeof *p);
    millrace__v1__critical_path__init(p);
    p->n_classes = path_classes_out(sh, &a->path, &p->classes);
    p->is_cut = a->is_path_cut;
    p->n_steps = a->steps_count;
    p->steps = mr_shell_take(sh, MR_MAX(p->n_steps, (size_t)1) * sizeof *p->steps);
    for (uint32_t i = 0; i < a->steps_count; i++) {
        const struct mr_job_account_step *s = &a->steps[i];
        Millrace__V1__CriticalPathStep *m = mr_shell_take(sh, sizeof *m);
        millrace__v1__critical_path_step__init(m);
        m->from_ns = s->from_ns;
        m->to_ns = s->to_ns;
        m->class_ = mr_unconst(mr_account_class_name(s->class));
        if (s->index < graph->nodes_count)
            m->key = mr_shell_text(sh, mr_graph_key(graph, s->index));
        if (s->op < a->ops_count) m->op = mr_shell_text(sh, a->ops[s->op].name);
        p->steps[i] = m;
    }
    return p;
}

static Millrace__V1__ProfileRow *op_out(struct mr_shell *sh, const struct mr_job_account_op *o)
{
    Millrace__V1__ProfileRow *row = mr_shell_take(sh, sizeof *row);
    millrace__v1__profile_row__init(row);
    row->op = mr_shell_text(sh, o->name);
    row->tasks = o->attempts;
    row->wall_ns = o->wall_ns;
    row->cpu_ns = o->cpu_ns;
    row->queue_ns = o->queue_ns;
    row->nbytes = o->bytes;
    row->median_ns = o->median_ns;
    row->p99_ns = o->p99_ns;
    row->white_ns = o->white_ns;
    return row;
}

void mr_trace_profile_answer(struct mr_shell *sh, struct mr_rpc_call *call,
    const struct mr_graph *graph, const struct mr_trace_answer *answer)
{
    const struct mr_job_account *a = &answer->account;
    Millrace__V1__ProfileResponse m = MILLRACE__V1__PROFILE_RESPONSE__INIT;
    if (answer->err) {
        mr_shell_fail(call, answer->err, "%s",
            graph ? "the trace has nothing of that job"
                  : "namespace: no job of this namespace was in the cluster in the window");
        return;
    }
    m.from_ns = a->from_ns;
    m.until_ns = a->until_ns;
    m.wall_ns = a->until_ns - a->from_ns;
    m.slot_ns = a->slot_ns;
    m.slots = (a->slot_ns + m.wall_ns / 2) / m.wall_ns;
    m.processors = a->processors;
    if (a->slot_ns) m.white_space = 1.0 - (double)mr_job_account_busy(a) / (double)a->slot_ns;
    m.other_ns = a->other_ns;
    m.not_recorded = a->not_recorded;
    m.n_classes = classes_out(sh, &a->sums, &m.classes);
    if (graph && a->is_over) m.critical_path = path_out(sh, graph, a);
    m.n_ops = a->ops_count;
    m.ops = mr_shell_take(sh, MR_MAX(m.n_ops, (size_t)1) * sizeof *m.ops);
    for (uint32_t i = 0; i < a->ops_count; i++)
        m.ops[i] = op_out(sh, &a->ops[i]);
    (void)mr_rpc_call_reply_pb(call, &m.base);
}
