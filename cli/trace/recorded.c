#include "cli/trace/recorded.h"

#include "base/alloc.h"
#include "session/up.h"

#define SPANS_MAX (8u << 20)

void mr_recorded_init(struct mr_recorded *r)
{
    *r = (struct mr_recorded){0};
    mr_trace_names_init(&r->ops);
    mr_trace_names_init(&r->workers);
}

void mr_recorded_fini(struct mr_recorded *r)
{
    mr_trace_names_fini(&r->ops);
    mr_trace_names_fini(&r->workers);
    mr_release(r->job.tasks);
    mr_release(r->inputs);
    mr_release(r->node);
}

void mr_recorded_tasks(struct mr_recorded *r, uint32_t count)
{
    r->job.tasks_count = count;
    r->job.tasks = mr_alloc_array(MR_MAX(count, 1u), sizeof *r->job.tasks);
    for (uint32_t i = 0; i < count; i++)
        r->job.tasks[i].op = MR_WHATIF_NONE;
}

void mr_recorded_input(struct mr_recorded *r, uint32_t task, uint32_t input)
{
    struct mr_whatif_job *j = &r->job;
    if (j->inputs_count == r->inputs_room) {
        uint32_t room = MR_MAX(1024u, 2 * r->inputs_room);
        r->inputs =
            mr_grow(r->inputs, r->inputs_room * sizeof *r->inputs, room * sizeof *r->inputs);
        r->inputs_room = room;
    }
    if (!j->tasks[task].inputs_count++) j->tasks[task].inputs_at = j->inputs_count;
    r->inputs[j->inputs_count++] = input;
    j->inputs = r->inputs;
}

void mr_recorded_span(struct mr_recorded *r, const struct mr_trace_span *s)
{
    bool has_made = s->outcome == MR_OUTCOME_OK || s->outcome == MR_OUTCOME_USED_UP;
    if (!has_made || s->index >= r->job.tasks_count || !s->started) return;
    struct mr_whatif_task *t = &r->job.tasks[s->index];
    if (t->op != MR_WHATIF_NONE && t->accounted > s->accounted) return;
    t->op = s->op_id;
    t->worker = s->worker_id;
    t->slot = s->slot;
    t->ready = s->ready;
    t->sent = s->sent;
    t->received = s->received;
    t->inputs = s->inputs;
    t->started = s->started;
    t->finished = MR_MAX(s->finished, s->started);
    t->accounted = MR_MAX(s->accounted, t->finished);
    t->cpu_ns = s->cpu_ns;
    t->input_ns = s->input_ns;
    t->output_ns = s->output_ns;
    t->room_ns = s->room_ns;
    t->restore_ns = s->restore_ns;
    t->late_ns = s->late_ns;
    t->delayed_ns = s->delayed_ns;
    t->bytes = s->bytes;
}

int mr_recorded_graph(
    struct mr_recorded *r, struct mr_history *h, mr_job_id job, struct mr_error *e)
{
    struct mr_graph *g = NULL;
    int err = mr_history_graph(h, job, &g, e);
    if (err) return err;
    mr_recorded_tasks(r, g->nodes_count);
    r->job.is_unfused = g->job.unfused;
    for (uint32_t i = 0; i < g->nodes_count; i++)
        r->restricted += mr_graph_is_restricted(g, i);
    for (uint32_t i = 0; i < g->nodes_count; i++)
        for (uint32_t k = g->input_at[i]; k < g->input_at[i + 1]; k++)
            mr_recorded_input(r, i, g->inputs[k]);
    for (uint32_t i = 0; i < g->targets_count; i++)
        r->job.tasks[g->targets[i]].is_target = true;
    mr_graph_free(&g);
    return MR_OK;
}

int mr_recorded_spans(struct mr_recorded *r, struct mr_history *h, mr_job_id job,
    uint64_t *not_recorded, struct mr_error *e)
{
    const struct mr_trace_want want = {.kind = MR_TRACE_TIMELINE, .spans_max = SPANS_MAX};
    struct mr_trace_gather g;
    mr_trace_gather_init(&g, &want);
    int err = mr_history_trace(h, job, &g, not_recorded, e);
    for (uint32_t i = 0; !err && i < g.count; i++) {
        struct mr_trace_span s = g.spans[i];
        s.op_id = mr_trace_names_number(&r->ops, g.ops.names[s.op_id]);
        s.worker_id = mr_trace_names_number(&r->workers, g.workers.names[s.worker_id]);
        mr_recorded_span(r, &s);
    }
    r->spans_count = g.count;
    mr_trace_gather_fini(&g);
    return err;
}

int mr_recorded_finish(
    struct mr_recorded *r, const struct mr_recorded_times *times, struct mr_error *e)
{
    struct mr_whatif_job *j = &r->job;
    if (!r->workers.count) return mr_fail(e, MR_ENOENT, "no task of the job has run");
    j->ops = r->ops.names;
    j->ops_count = r->ops.count;
    j->workers_count = r->workers.count;
    j->slots = times->slots;
    j->processors = times->processors;
    j->submitted = times->submitted;
    j->over = times->over;
    r->node = mr_alloc_array(j->workers_count, sizeof *r->node);
    mr_whatif_nodes_find(j, r->node);
    j->node = r->node;
    return MR_OK;
}
