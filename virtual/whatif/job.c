#include "virtual/whatif/job.h"

#include "base/alloc.h"
#include "base/defs.h"

#include <stdlib.h>

#define LARGE 4097 /* least bytes of a value that is an object in a store, not in a message */

uint32_t mr_whatif_slots(const struct mr_whatif_job *j)
{
    uint32_t seen = 0;
    uint32_t *most = mr_alloc_array(MR_MAX(j->workers_count, 1u), sizeof *most);
    for (uint32_t i = 0; i < j->tasks_count; i++)
        if (mr_whatif_ran(j, i))
            most[j->tasks[i].worker] = MR_MAX(most[j->tasks[i].worker], j->tasks[i].slot + 1);
    for (uint32_t w = 0; w < j->workers_count; w++)
        seen += most[w];
    mr_release(most);
    return MR_MAX(seen, j->slots);
}

/* Returns the first worker of the group of worker `w`. A group is the workers of one node. */
static uint32_t group_of(const uint32_t *group, uint32_t w)
{
    while (group[w] != w)
        w = group[w];
    return w;
}

static int by_receipt(const void *a, const void *b, void *ctx)
{
    const struct mr_whatif_task *tasks = ctx;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    mr_time x = tasks[i].received, y = tasks[k].received;
    return x != y ? (x < y ? -1 : 1) : i < k ? -1 : i > k;
}

/* Looks at the large inputs of task `t` that other workers made and that the task's worker uses for
 * the first time. If `t` did not wait for inputs, joins the groups of these workers. `used`: by
 * task, a bit for each worker that has used the task's value. Returns whether `t` waited for such
 * an input. */
static bool uses_look(
    const struct mr_whatif_job *j, const struct mr_whatif_task *t, uint64_t *used, uint32_t *group)
{
    bool has_waited = false;
    uint64_t own = 1ull << t->worker % 64;
    for (uint32_t k = 0; k < t->inputs_count; k++) {
        uint32_t input = j->inputs[t->inputs_at + k];
        const struct mr_whatif_task *from = &j->tasks[input];
        if (!mr_whatif_ran(j, input) || from->bytes < LARGE || from->worker == t->worker) continue;
        bool is_first = !(used[input] & own);
        used[input] |= own;
        if (!is_first) continue;
        has_waited |= t->inputs != 0;
        uint32_t a = group_of(group, t->worker), b = group_of(group, from->worker);
        if (!t->inputs) group[MR_MAX(a, b)] = MR_MIN(a, b);
    }
    return has_waited;
}

void mr_whatif_nodes_find(const struct mr_whatif_job *j, uint32_t *node)
{
    bool has_waited = false;
    uint32_t ran = 0;
    uint32_t *order = mr_alloc_array(MR_MAX(j->tasks_count, 1u), sizeof *order);
    uint64_t *used = mr_alloc_array(MR_MAX(j->tasks_count, 1u), sizeof *used);
    uint32_t *group = mr_alloc_array(MR_MAX(j->workers_count, 1u), sizeof *group);
    for (uint32_t w = 0; w < j->workers_count; w++)
        group[w] = w;
    for (uint32_t i = 0; i < j->tasks_count; i++)
        if (mr_whatif_ran(j, i)) order[ran++] = i;
    if (ran) qsort_r(order, ran, sizeof *order, by_receipt, j->tasks);
    for (uint32_t i = 0; i < ran; i++)
        has_waited |= uses_look(j, &j->tasks[order[i]], used, group);
    for (uint32_t w = 0; w < j->workers_count; w++)
        node[w] = has_waited ? group_of(group, w) : 0;
    mr_release(order);
    mr_release(used);
    mr_release(group);
}

bool mr_whatif_is_unfused(const struct mr_whatif_job *j)
{
    bool is_reported = false, is_used_up = false;
    uint32_t *uses = mr_alloc_array(MR_MAX(j->tasks_count, 1u), sizeof *uses);
    for (uint32_t i = 0; i < j->tasks_count; i++)
        for (uint32_t k = 0; mr_whatif_ran(j, i) && k < j->tasks[i].inputs_count; k++)
            uses[j->inputs[j->tasks[i].inputs_at + k]]++;
    for (uint32_t i = 0; i < j->tasks_count; i++) {
        const struct mr_whatif_task *t = &j->tasks[i];
        if (!mr_whatif_ran(j, i) || !t->inputs_count) continue;
        uint32_t last = j->inputs[t->inputs_at + t->inputs_count - 1];
        const struct mr_whatif_task *u = &j->tasks[last];
        bool is_same = mr_whatif_ran(j, last) && u->worker == t->worker && u->slot == t->slot;
        if (!is_same || uses[last] != 1 || u->is_target) continue;
        is_reported |= u->bytes != 0;
        is_used_up |= u->bytes == 0;
    }
    mr_release(uses);
    return is_reported && !is_used_up;
}
