/* Records of values, one for each node with a value. The bytes of a small value are in the record,
 * in blocks of the cache, or at its worker only (V_AWAY). An object is known by its id and store.
 * The worker that made a value is its keeper until the scheduler releases the value. A store holds
 * an object until it is told to unhold it. */
#include "services/scheduler/core/task/value.h"

#include "base/assert.h"
#include "services/scheduler/core/state/batch.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/inline_bytes.h"
#include "services/scheduler/core/state/lookup.h"

uint32_t mr_sched__value_new(struct mr_sched *s, uint32_t task)
{
    uint32_t v = s->value_list.free;
    if (v != NONE)
        s->value_list.free = s->values[v].next;
    else
        v = s->value_list.top++;
    mr_assert(v < s->config.tasks_max); /* there is at most one value for each task */
    s->value_list.count++;
    s->values[v] = (struct value){.task = task, .worker = NONE, .prev = NONE, .next = NONE};
    s->tasks[task].value = v;
    return v;
}

void mr_sched__value_keep(struct mr_sched *s, uint32_t value, uint32_t worker)
{
    struct value *v = &s->values[value];
    struct worker *w = &s->workers[worker];
    mr_assert(v->worker == NONE);
    v->worker = worker;
    v->next = w->held_head;
    if (v->next != NONE) s->values[v->next].prev = value;
    w->held_head = value;
    w->held_bytes += v->bytes;
    if (v->kind == V_OBJECT) s->stores[v->store].kept_bytes += v->bytes;
}

void mr_sched__value_unkeep(struct mr_sched *s, uint32_t value)
{
    struct value *v = &s->values[value];
    if (v->worker == NONE) return;
    struct worker *w = &s->workers[v->worker];
    if (v->prev == NONE)
        w->held_head = v->next;
    else
        s->values[v->prev].next = v->next;
    if (v->next != NONE) s->values[v->next].prev = v->prev;
    w->held_bytes -= v->bytes;
    if (v->kind == V_OBJECT) s->stores[v->store].kept_bytes -= v->bytes;
    v->worker = v->prev = v->next = NONE;
    v->flags &= (uint8_t) ~(V_FETCHING | V_LAST);
}

void mr_sched__value_hold(struct mr_sched *s, struct value *v)
{
    if (v->kind != V_OBJECT || !v->store || v->flags & V_HELD) return;
    /* the value is shared with a task of another job, for which the store holds the object
     * already */
    if (s->tasks[v->task].flags & T_SHARED) return;
    if (!s->stores[v->store].is_alive) return;
    v->flags |= V_HELD;
    struct mr_sched_store_batch *b = mr_sched__store_batch(s, v->store);
    mr_buf_add(v->flags & V_DOUBTED ? &b->verify : &b->hold, &v->object, sizeof v->object);
}

void mr_sched__value_release(struct mr_sched *s, uint32_t value, bool dropped)
{
    struct value *v = &s->values[value];
    uint32_t task = v->task;
    if (v->worker != NONE && !dropped && s->workers[v->worker].state == W_CONNECTED) {
        struct mr_sched_batch *b = mr_sched__batch(s, v->worker);
        mr_sched__refs_add(&b->release, job_of(s, task)->id, index_of(s, task), v->attempt);
        b->frees_objects = b->frees_objects || v->kind == V_OBJECT;
    }
    if (v->flags & V_HELD && s->stores[v->store].is_alive)
        mr_buf_add(&mr_sched__store_batch(s, v->store)->unhold, &v->object, sizeof v->object);
    mr_sched__value_unkeep(s, value);
    mr_sched__value_uncache(&s->blocks, v);
    s->tasks[task].value = NONE;
    *v = (struct value){.kind = V_FREE, .next = s->value_list.free, .worker = NONE};
    s->value_list.free = value;
    s->value_list.count--;
}

void mr_sched__value_check(const struct mr_sched *s)
{
    uint32_t count = 0, blocks = 0;
    for (uint32_t i = 0; i < s->value_list.top; i++) {
        const struct value *v = &s->values[i];
        if (v->kind == V_FREE) continue;
        count++;
        mr_assert(s->tasks[v->task].value == i);
        mr_assert(is_done(&s->tasks[v->task]));
        mr_assert(v->kind != V_AWAY || v->worker != NONE);
        if (v->kind == V_BLOCKS) blocks += (uint32_t)((v->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES);
        if (v->worker != NONE) mr_assert(s->workers[v->worker].state != W_FREE);
    }
    mr_assert(count == s->value_list.count);
    mr_assert(blocks + s->blocks.left == s->config.inline_blocks);
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        uint32_t prev = NONE;
        for (uint32_t v = s->workers[i].held_head; v != NONE; v = s->values[v].next) {
            mr_assert(s->values[v].worker == i);
            mr_assert(s->values[v].prev == prev);
            prev = v;
        }
    }
}
