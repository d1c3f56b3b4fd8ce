/* Asserts every invariant of the worker's core and changes nothing. I21, for example, is the
 * invariant of that number in docs/invariants.md. A strand is a list of tasks that one executor
 * runs back to back. */
#include "services/worker/core/internal.h"

#include "base/unconst.h"

static void check_value(const struct mr_worker *w, uint32_t value)
{
    const struct value *v = &w->values[value];
    mr_assert(v->job < w->jobs_high);
    mr_assert(w->jobs[v->job].id.v);
    mr_assert(!v->fresh);
    mr_assert(v->made ? v->state == VALUE_HERE : true);
    mr_assert(v->fetched ? v->state == VALUE_HERE && !v->made : true);
    mr_assert(v->blob ? v->state == VALUE_HERE : true);
    mr_assert(v->fetch_at == NONE || w->fetch_heap[v->fetch_at] == value);
    mr_assert(v->fetch_at == NONE || v->state == VALUE_PLACED);
    mr_assert(v->task == NONE || w->tasks[v->task].value == value);
    /* I21: the row of a value lives only while something keeps it. */
    bool users = !mr_list_is_empty((struct mr_list *)mr_unconst(&v->users));
    mr_assert(users || v->task != NONE || (v->made && !v->released));
    const struct mr_list *head = &v->users;
    for (const struct mr_list *node = head->next; node != head; node = node->next) {
        const struct edge *e =
            MR_CONTAINER_OF((struct mr_list *)mr_unconst(node), struct edge, users);
        mr_assert(e->value == value);
        mr_assert(w->tasks[e->task].state != TASK_FREE);
        mr_assert(e->has == mr_worker__value_serves(w, v, &w->tasks[e->task]));
    }
}

static void check_task(const struct mr_worker *w, const struct task *t)
{
    uint32_t task = (uint32_t)(t - w->tasks), missing = 0;
    mr_assert(t->state != TASK_FREE);
    mr_assert(w->values[t->value].task == task);
    const struct edge *edges = task_edges(t);
    for (uint32_t i = 0; i < t->inputs_count; i++) {
        mr_assert(edges[i].task == task);
        missing += !edges[i].has;
    }
    mr_assert(missing == t->missing); /* I20 */
    if (t->state == TASK_WAITING) mr_assert(missing > 0);
    if (t->state == TASK_READY) {
        mr_assert(missing == 0);
        mr_assert(w->needs[t->needs].heap[t->heap_at] == task);
    }
    if (t->state == TASK_GIVEN) {
        const struct mr_strand *s = &w->strands[t->strand];
        mr_assert(s->alive);
        mr_assert(t->item >= s->reported);
        mr_assert(t->item < s->count);
        mr_assert(s->items[t->item].task == task);
    } else {
        mr_assert(!t->mute);
        mr_assert(!t->cancel);
        mr_assert(!t->steal);
    }
}

/* Checks the counts of held strands. A strand is held by its executor from START until the
 * executor's last report. */
static void check_held(const struct mr_worker *w)
{
    uint32_t held = 0, of_strands = 0, free = 0;
    for (uint32_t k = 0; k < w->slots_count; k++) {
        mr_assert(w->slots[k].held <= MR_SLOT_STRANDS_MAX);
        held += w->slots[k].held;
    }
    for (uint32_t i = 0; i < w->strands_high; i++) {
        of_strands += w->strands[i].held;
        free += !w->strands[i].held && !w->strands[i].alive;
    }
    mr_assert(held == of_strands);
    mr_assert(free == w->strands_free_count);
}

static void check_slots(const struct mr_worker *w)
{
    uint32_t strands = 0, given = 0, in_slots = 0;
    uint64_t taken[MR_RESOURCES_MAX] = {0};
    for (uint32_t k = 0; k < w->slots_count; k++) {
        for (uint32_t i = 0; i < w->slots[k].count; i++) {
            const struct mr_strand *s = w->slots[k].strands[i];
            mr_assert(s->alive);
            mr_assert(s->slot == k);
            mr_assert(s->reported < s->count || s->taking);
            given += s->count - s->reported;
            strands++;
            in_slots += k < w->config.slots;
            for (uint32_t r = 0; s->needs && r < w->config.resources_count; r++)
                taken[r] += w->needs[s->needs].micro[r];
        }
    }
    mr_assert(strands == w->running_strands);
    mr_assert(given == w->given_count);
    for (uint32_t r = 0; r < w->config.resources_count; r++)
        mr_assert(w->resources_free[r] + taken[r] == w->resources[r]); /* I24 */
    mr_assert(!w->alone_running || (w->alone_running == 1 && in_slots == 1));
}

void mr_worker_check(const struct mr_worker *w)
{
    uint32_t values = 0, tasks = 0, ready = 0, given = 0, fetching = 0;
    uint64_t held = 0, fetched = 0, cost = 0;
    for (uint32_t i = 0; i < w->values_high; i++) {
        const struct value *v = &w->values[i];
        if (v->job == NONE) continue;
        check_value(w, i);
        values++;
        if (v->made) held += v->blob ? v->blob->bytes : v->object_bytes;
        if (v->fetched || v->state == VALUE_FETCHING) fetched += v->object_bytes;
        fetching += v->state == VALUE_FETCHING;
    }
    const struct mr_list *head = &w->tasks_all;
    for (const struct mr_list *node = head->next; node != head; node = node->next) {
        const struct task *t =
            MR_CONTAINER_OF((struct mr_list *)mr_unconst(node), struct task, all);
        check_task(w, t);
        tasks++;
        ready += t->state == TASK_READY;
        given += t->state == TASK_GIVEN;
        cost += t->cost_ns;
    }
    mr_assert(values == w->values_count);
    mr_assert(w->value_index.count == values);
    mr_assert(tasks == w->tasks_count);
    mr_assert(ready == w->ready_count);
    mr_assert(given == w->given_count);
    mr_assert(held == w->held_bytes);
    mr_assert(fetched == w->fetched_bytes);
    mr_assert(fetching == w->fetching_count);
    mr_assert(cost == w->queue_cost_ns);
    check_slots(w);
    check_held(w);
}

const char *mr_worker_leftover(const struct mr_worker *w)
{
    if (w->tasks_count) return "tasks";
    if (w->values_count) return "values";
    if (w->job_index.count) return "jobs";
    if (w->out_count || w->missing_count) return "completions to be told";
    if (w->given.count || w->started.count || w->unknown.count) return "answers to be told";
    if (w->held_bytes || w->fetched_bytes || w->fetch_count) return "bytes of objects";
    if (w->pool.bytes) return "bytes of arguments and small values";
    if (w->running_strands || w->queue_cost_ns || w->alone_running) return "strands";
    return NULL;
}

bool mr_worker_keeps(const struct mr_worker *w, mr_job_id job, uint32_t index)
{
    for (uint32_t i = 0; i < w->values_high; i++) {
        const struct value *v = &w->values[i];
        if (v->job == NONE || v->index != index || w->jobs[v->job].id.v != job.v) continue;
        return v->made && !v->released;
    }
    return false;
}
