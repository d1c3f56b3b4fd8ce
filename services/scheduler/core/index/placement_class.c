/* Placement classes: tasks of one class may run on the same workers. If a task demands neither
 * resources nor named workers, its class is the number of its operator. Such demands make special
 * classes. A task that no worker can take now is parked on the list of its class, in the order of
 * the ready queue. */
#include "services/scheduler/core/index/placement_class.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "services/scheduler/core/index/ready_queue.h"
#include "services/scheduler/core/state/lookup.h"

#include <string.h>

#define PARK_LOOK 32

uint32_t mr_sched__resource(struct mr_sched *s, struct mr_str name)
{
    for (uint32_t i = 0; i < s->class_list.resources_count; i++)
        if (mr_str_eq(name, mr_str(s->class_list.resource_names[i]))) return i;
    if (s->class_list.resources_count == RESOURCES || !name.n || name.n >= NAME_BYTES) return NONE;
    memcpy(s->class_list.resource_names[s->class_list.resources_count], name.p, name.n);
    return s->class_list.resources_count++;
}

static bool is_class(
    const struct class *c, uint32_t op, const uint64_t *need, const struct mr_task_options *o)
{
    if (!c->users || c->op != op || memcmp(c->need, need, sizeof c->need) != 0) return false;
    if (c->names_count != o->workers_count) return false;
    if (c->any_worker != (o->allow_other_workers || !o->workers_count)) return false;
    for (uint32_t i = 0; i < c->names_count; i++)
        if (!mr_str_eq(c->names[i], o->workers[i])) return false;
    return true;
}

/* Returns a copy of the names in one block of memory: the array, then the texts. */
static struct mr_str *names_copy(const struct mr_str *names, uint32_t n)
{
    size_t bytes = n * sizeof *names;
    for (uint32_t i = 0; i < n; i++)
        bytes += names[i].n;
    struct mr_str *copy = mr_alloc(bytes);
    char *text = (char *)(copy + n);
    for (uint32_t i = 0; i < n; i++) {
        if (names[i].n) memcpy(text, names[i].p, names[i].n);
        copy[i] = mr_str_of(text, names[i].n);
        text += names[i].n;
    }
    return copy;
}

int mr_sched__class_of(struct mr_sched *s, uint32_t op, const struct mr_task_options *o,
    uint32_t *class, struct mr_error *e)
{
    *class = op;
    if (!o || (!o->resources_count && !o->workers_count)) return MR_OK;
    uint64_t need[RESOURCES] = {0};
    for (uint32_t i = 0; i < o->resources_count; i++) {
        uint32_t r = mr_sched__resource(s, o->resources[i].name);
        if (r == NONE)
            return mr_fail(e, MR_ELIMIT,
                "resources: \"%.*s\": the scheduler has no room for more than %u kinds",
                MR_STR_ARG(o->resources[i].name), (unsigned)RESOURCES);
        need[r] += o->resources[i].amount_micro;
    }
    uint32_t free_at = NONE;
    for (uint32_t i = s->config.ops_max; i < s->class_list.top; i++) {
        if (is_class(&s->classes[i], op, need, o)) {
            s->classes[i].users++;
            *class = i;
            return MR_OK;
        }
        if (!s->classes[i].users && !s->classes[i].parked && free_at == NONE) free_at = i;
    }
    if (free_at == NONE && s->class_list.top == 2 * s->config.ops_max)
        return mr_fail(e, MR_ELIMIT,
            "more than %u different combinations of op, resources and workers are in use",
            s->config.ops_max);
    if (free_at == NONE) free_at = s->class_list.top++;
    struct class *c = &s->classes[free_at];
    mr_release(c->names);
    *c = (struct class){.op = op,
        .users = 1,
        .parked_head = NONE,
        .parked_tail = NONE,
        .active_at = NONE,
        .names_count = o->workers_count};
    c->any_worker = o->allow_other_workers || !o->workers_count;
    memcpy(c->need, need, sizeof need);
    c->names = names_copy(o->workers, o->workers_count);
    *class = free_at;
    return MR_OK;
}

void mr_sched__class_drop(struct mr_sched *s, uint32_t class)
{
    if (class < s->config.ops_max) return;
    mr_assert(s->classes[class].users > 0);
    s->classes[class].users--;
}

/* Returns the parked task behind which `task` is to be inserted; NONE: `task` becomes the first.
 * The search is bounded. It visits a few tasks from the front, because the job of `task` may have
 * been served less than the jobs of those; and a few from the end, because `task` may be more
 * urgent than those. */
static uint32_t park_after(const struct mr_sched *s, const struct class *c, uint32_t task)
{
    uint32_t after = c->parked_tail, before = c->parked_head;
    if (after == NONE) return NONE;
    for (uint32_t i = 0; i < PARK_LOOK && job_of(s, after) != job_of(s, task); i++) {
        if (mr_sched__task_before(s, task, before)) return s->tasks[before].prev;
        before = s->tasks[before].next;
        if (before == NONE) break;
    }
    for (uint32_t i = 0; i < PARK_LOOK && after != NONE; i++) {
        if (!mr_sched__task_before(s, task, after)) break;
        after = s->tasks[after].prev;
    }
    return after;
}

void mr_sched__park(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    struct class *c = &s->classes[t->class];
    mr_assert(!(t->flags & (T_QUEUED | T_SENT | T_PARKED)));
    t->flags |= T_PARKED;
    uint32_t after = park_after(s, c, task);
    t->prev = after;
    t->next = after == NONE ? c->parked_head : s->tasks[after].next;
    if (t->prev == NONE)
        c->parked_head = task;
    else
        s->tasks[t->prev].next = task;
    if (t->next == NONE)
        c->parked_tail = task;
    else
        s->tasks[t->next].prev = task;
    if (!c->parked++) {
        c->active_at = s->class_list.active_count;
        s->class_list.active[s->class_list.active_count++] = t->class;
    }
}

void mr_sched__unpark(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    struct class *c = &s->classes[t->class];
    t->flags = (uint16_t)(t->flags & ~T_PARKED);
    if (t->prev == NONE)
        c->parked_head = t->next;
    else
        s->tasks[t->prev].next = t->next;
    if (t->next == NONE)
        c->parked_tail = t->prev;
    else
        s->tasks[t->next].prev = t->prev;
    t->prev = t->next = NONE;
    if (--c->parked) return;
    uint32_t last = s->class_list.active[--s->class_list.active_count];
    s->class_list.active[c->active_at] = last;
    s->classes[last].active_at = c->active_at;
    c->active_at = NONE;
}
