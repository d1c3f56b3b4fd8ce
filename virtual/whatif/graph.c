/* The graph that is replayed: one task for each recorded task that ran. Inputs that did not run
 * (literals, stored objects, results of other jobs) came with the tasks, so they are left out. */
#include "virtual/whatif/internal.h"

#include "base/alloc.h"
#include "base/pack.h"
#include "graph/build/builder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool find_op(const void *ctx, struct mr_str op, struct mr_graph_op_info *out)
{
    (void)ctx;
    (void)op;
    *out = (struct mr_graph_op_info){.any_positional = true};
    return true;
}

static int node_of(struct mr_builder *b, uint32_t index, uint32_t *node, struct mr_error *e)
{
    char key[16];
    (void)snprintf(key, sizeof key, "%" PRIu32, index);
    return mr_builder_node(b, mr_str(key), node, e);
}

static int task_add(
    const struct mr_whatif_job *j, struct mr_builder *b, uint32_t index, struct mr_error *e)
{
    const struct mr_whatif_task *t = &j->tasks[index];
    uint32_t node = 0, input = 0, ran = 0;
    int err = node_of(b, index, &node, e);
    if (!err) err = mr_builder_task(b, node, j->ops[t->op], e);
    for (uint32_t k = 0; k < t->inputs_count; k++)
        ran += mr_whatif_ran(j, j->inputs[t->inputs_at + k]);
    if (!err) mr_pack_list(mr_builder_args(b), ran);
    for (uint32_t k = 0; !err && k < t->inputs_count; k++) {
        uint32_t from = j->inputs[t->inputs_at + k];
        if (!mr_whatif_ran(j, from)) continue;
        err = node_of(b, from, &input, e);
        if (!err) err = mr_builder_input(b, input, e);
    }
    if (!err) err = mr_builder_task_end(b, e);
    if (!err && t->is_target) err = mr_builder_target(b, node, e);
    return err;
}

/* Makes targets of the tasks whose value no task uses: the builder drops tasks that no target
 * needs.
 */
static int ends_add(const struct mr_whatif_job *j, struct mr_builder *b, struct mr_error *e)
{
    int err = MR_OK;
    uint32_t node = 0;
    MR_AUTO(mr_free_ptr) bool *is_used = mr_alloc_array(j->tasks_count, sizeof *is_used);
    for (uint32_t i = 0; i < j->tasks_count; i++)
        for (uint32_t k = 0; mr_whatif_ran(j, i) && k < j->tasks[i].inputs_count; k++)
            is_used[j->inputs[j->tasks[i].inputs_at + k]] = true;
    for (uint32_t i = 0; !err && i < j->tasks_count; i++) {
        if (!mr_whatif_ran(j, i) || is_used[i] || j->tasks[i].is_target) continue;
        err = node_of(b, i, &node, e);
        if (!err) err = mr_builder_target(b, node, e);
    }
    return err;
}

int mr_whatif__graph_make(struct mr_whatif_cluster *c)
{
    const struct mr_whatif_job *j = c->job;
    const struct mr_graph_catalogue catalogue = {.find = find_op};
    const struct mr_job_options options = {.unfused = j->is_unfused};
    MR_AUTO(mr_builder_free) struct mr_builder *b = mr_builder_new();
    uint32_t ran = 0;
    int err = mr_builder_job(b, &options, c->error);
    for (uint32_t i = 0; !err && i < j->tasks_count; i++) {
        if (!mr_whatif_ran(j, i)) continue;
        err = task_add(j, b, i, c->error);
        ran++;
    }
    if (!err && !ran) err = mr_fail(c->error, MR_EINVAL, "no task of the job has run");
    if (!err) err = ends_add(j, b, c->error);
    if (!err) err = mr_graph_build(&b, &catalogue, &c->graph, c->error);
    if (err) return err;
    c->task_of = mr_alloc_array(c->graph->nodes_count, sizeof *c->task_of);
    for (uint32_t i = 0; i < c->graph->nodes_count; i++) {
        char key[16] = {0};
        struct mr_str text = mr_graph_key(c->graph, i);
        memcpy(key, text.p, MR_MIN(text.n, sizeof key - 1));
        c->task_of[i] = (uint32_t)strtoul(key, NULL, 10);
    }
    return MR_OK;
}
