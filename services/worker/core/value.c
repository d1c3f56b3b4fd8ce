/* The values that the worker knows, by (job, index): the users of each value, where it is, and when
 * it is freed. Knows nothing of slots or messages. A strand is a list of tasks that one executor
 * runs back to back. */
#include "services/worker/core/internal.h"

#include "base/alloc.h"

static bool job_is(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_worker *w = ctx;
    return w->jobs[item].id.v == ((const mr_job_id *)key)->v;
}

static uint64_t job_hash(const void *ctx, uint32_t item)
{
    const struct mr_worker *w = ctx;
    return mr_hash_u64(w->jobs[item].id.v);
}

static uint32_t job_find(struct mr_worker *w, mr_job_id id)
{
    if (w->job_last != NONE && w->jobs[w->job_last].id.v == id.v) return w->job_last;
    uint32_t job = mr_index_find(&w->job_index, mr_hash_u64(id.v), job_is, w, &id);
    if (job != NONE) w->job_last = job;
    return job;
}

static uint32_t job_get(struct mr_worker *w, mr_job_id id)
{
    uint32_t job = job_find(w, id);
    if (job != NONE) return job;
    if (w->jobs_free != NONE) {
        job = w->jobs_free;
        w->jobs_free = w->jobs[job].next_free;
    } else {
        if (w->jobs_high >= JOBS_MAX) return NONE;
        job = w->jobs_high++;
    }
    w->jobs[job] = (struct job){.id = id};
    mr_list_init(&w->jobs[job].values);
    mr_index_add(&w->job_index, mr_hash_u64(id.v), job, job_hash, w);
    w->job_last = job;
    return job;
}

static void job_collect(struct mr_worker *w, uint32_t job)
{
    struct job *j = &w->jobs[job];
    if (j->values_count) return;
    (void)mr_index_remove(&w->job_index, mr_hash_u64(j->id.v), job);
    *j = (struct job){.next_free = w->jobs_free};
    w->jobs_free = job;
    if (w->job_last == job) w->job_last = NONE;
}

struct value_key {
    uint32_t job, index;
};

static uint64_t value_key_hash(struct value_key k)
{
    return mr_hash_u64((uint64_t)k.job << 32 | k.index);
}

static bool value_is(const void *ctx, uint32_t item, const void *key)
{
    const struct value *v = &((const struct mr_worker *)ctx)->values[item];
    const struct value_key *k = key;
    return v->index == k->index && v->job == k->job;
}

static uint64_t value_hash(const void *ctx, uint32_t item)
{
    const struct value *v = &((const struct mr_worker *)ctx)->values[item];
    return value_key_hash((struct value_key){v->job, v->index});
}

uint32_t mr_worker__value_find(struct mr_worker *w, mr_job_id id, uint32_t index)
{
    struct value_key k = {job_find(w, id), index};
    return mr_index_find(&w->value_index, value_key_hash(k), value_is, w, &k);
}

uint32_t mr_worker__value_get(struct mr_worker *w, mr_job_id id, uint32_t index)
{
    uint32_t job = job_get(w, id);
    if (job == NONE) return NONE;
    struct value_key k = {job, index};
    uint64_t hash = value_key_hash(k);
    uint32_t value = mr_index_find(&w->value_index, hash, value_is, w, &k);
    if (value != NONE) return value;
    if (w->values_free != NONE) {
        value = w->values_free;
        w->values_free = w->values[value].next;
    } else if (w->values_high < w->config.values_max) {
        value = w->values_high++;
    } else {
        job_collect(w, job);
        return NONE;
    }
    struct value *v = &w->values[value];
    *v = (struct value){.job = job, .index = index, .task = NONE, .fetch_at = NONE, .next = NONE};
    mr_list_init(&v->users);
    mr_list_add_tail(&w->jobs[job].values, &v->in_job);
    w->jobs[job].values_count++;
    w->values_count++;
    mr_index_add(&w->value_index, hash, value, value_hash, w);
    return value;
}

void mr_worker__value_clear(struct mr_worker *w, struct value *v)
{
    if (v->fetch_at != NONE) mr_worker__fetch_unwant(w, v);
    if (v->state == VALUE_FETCHING || v->fetched) {
        mr_worker__fx_add(w, MR_WORKER_UNPIN)->object.serial = v->serial;
        w->fetched_bytes -= v->object_bytes;
        if (v->state == VALUE_FETCHING) w->fetching_count--;
    }
    if (v->made) {
        w->held_bytes -= v->blob ? v->blob->bytes : v->object_bytes;
        if (!v->blob) {
            struct mr_worker_effect *e = mr_worker__fx_add(w, MR_WORKER_DROP);
            e->object.object = v->object;
            e->object.job = value_job(w, v);
        }
    }
    mr_worker__blob_put(&w->pool, &v->blob);
    v->state = VALUE_NONE;
    v->made = v->fetched = v->released = v->reported = false;
    v->offered = v->used = false;
}

void mr_worker__value_settle(struct mr_worker *w, uint32_t value)
{
    struct value *v = &w->values[value];
    if (v->fresh || !mr_list_is_empty(&v->users)) return;
    if (v->state != VALUE_NONE && (!v->made || v->released)) mr_worker__value_clear(w, v);
    if (v->state != VALUE_NONE || v->task != NONE) return;
    uint32_t job = v->job;
    (void)mr_index_remove(&w->value_index, value_hash(w, value), value);
    mr_list_remove(&v->in_job);
    v->job = NONE;
    v->next = w->values_free;
    w->values_free = value;
    w->values_count--;
    w->jobs[job].values_count--;
    job_collect(w, job);
}

bool mr_worker__value_serves(const struct mr_worker *w, const struct value *v, const struct task *t)
{
    if (w->ops[t->op].flags & MR_WORKER_OP_BY_REFERENCE) return v->state != VALUE_NONE;
    return v->state == VALUE_HERE;
}

void mr_worker__value_came(struct mr_worker *w, uint32_t value)
{
    struct value *v = &w->values[value];
    v->lost = false;
    MR_LIST_EACH(node, &v->users)
    {
        struct edge *e = MR_LIST_ITEM(node, struct edge, users);
        struct task *t = &w->tasks[e->task];
        if (e->has) continue;
        if (!mr_worker__value_serves(w, v, t)) {
            mr_worker__fetch_want(w, value, t);
            continue;
        }
        e->has = true;
        mr_assert(t->missing > 0);
        if (--t->missing) continue;
        if (!v->made) t->inputs_at = w->now;
        if (t->state == TASK_WAITING) mr_worker__task_ready(w, e->task);
    }
}

/* Called when the value is no longer here: tasks that are in no strand wait for it again. */
static void value_went(struct mr_worker *w, struct value *v)
{
    MR_LIST_EACH(node, &v->users)
    {
        struct edge *e = MR_LIST_ITEM(node, struct edge, users);
        struct task *t = &w->tasks[e->task];
        if (!e->has || mr_worker__value_serves(w, v, t)) continue;
        e->has = false;
        t->missing++;
        if (t->state == TASK_READY) mr_worker__task_unready(w, e->task);
    }
}

void mr_worker__value_withdraw(struct mr_worker *w, struct value *v)
{
    mr_worker__value_clear(w, v);
    value_went(w, v);
}

/* Ends each task that waits for the value and is in no strand: as LOST_INPUT if the value is lost.
 * Otherwise there is no memory to fetch the value, which stays where it is. The tasks end as
 * NO_ROOM, and the scheduler sends them again when there is more room. */
void mr_worker__value_users_end(struct mr_worker *w, uint32_t value, struct mr_str why)
{
    struct value *v = &w->values[value];
    bool fresh = v->fresh;
    v->fresh = true; /* keeps the row while its users go */
    MR_LIST_EACH(node, &v->users)
    {
        struct edge *e = MR_LIST_ITEM(node, struct edge, users);
        if (e->has || w->tasks[e->task].state != TASK_WAITING) continue;
        /* A task that uses the value twice has two edges side by side. Its end removes both, so the
         * walk skips the second one. */
        while (node_next_ != &v->users &&
               MR_LIST_ITEM(node_next_, struct edge, users)->task == e->task)
            node_next_ = node_next_->next;
        if (v->lost)
            mr_worker__task_lose(w, e->task, v->index, why);
        else
            mr_worker__task_fail(w, e->task, MR_OUTCOME_NO_ROOM, MR_ELIMIT, why);
    }
    v->fresh = fresh;
    mr_worker__value_settle(w, value);
}

/* Called when the value is lost. Ends the tasks that wait for the value and are in no strand. For a
 * task in a strand, the executor reports later whether it could read the value. */
void mr_worker__value_lost(struct mr_worker *w, uint32_t value, struct mr_str why)
{
    struct value *v = &w->values[value];
    mr_worker__value_withdraw(w, v);
    v->lost = true;
    mr_worker__value_users_end(w, value, why);
}

void mr_worker__value_release(struct mr_worker *w, mr_job_id job, uint32_t index, uint32_t attempt)
{
    uint32_t value = mr_worker__value_find(w, job, index);
    if (value == NONE) return; /* the value was dropped after its last use */
    struct value *v = &w->values[value];
    if (!v->made || (attempt && attempt != v->attempt)) return;
    v->released = true;
    mr_worker__value_settle(w, value);
}

static void bring_inline(struct mr_worker *w, uint32_t value, struct mr_str pack)
{
    struct value *v = &w->values[value];
    if (v->state == VALUE_HERE) return;
    struct mr_blob *blob = mr_worker__blob_copy(&w->pool, pack);
    if (!blob) {
        w->no_room = true;
        return;
    }
    mr_worker__value_clear(w, v);
    v->blob = blob;
    v->state = VALUE_HERE;
    mr_worker__value_came(w, value);
}

static void bring_object(
    struct mr_worker *w, uint32_t value, uint32_t node, mr_object_id object, uint64_t bytes)
{
    struct value *v = &w->values[value];
    if (v->state == VALUE_HERE && v->blob) return;
    bool is_coming = v->state == VALUE_FETCHING || v->state == VALUE_HERE;
    if (is_coming && mr_object_id_eq(v->object, object)) return;
    /* the object and the node that the scheduler names replace those that the worker knew */
    mr_worker__value_clear(w, v);
    v->node = node;
    v->object = object;
    v->object_bytes = bytes;
    bool local = w->config.store.v && w->nodes[node].id.v == w->config.store.v;
    v->state = local ? VALUE_HERE : VALUE_PLACED;
    value_went(w, v);
    mr_worker__value_came(w, value);
}

void mr_worker__values_bring(struct mr_worker *w, const struct mr_ws_values *m)
{
    struct mr_ws_walk walk = {.runs = m->runs};
    size_t at = 0;
    uint32_t o = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        mr_job_id job = mr_ws_walk_next(&walk);
        uint32_t bytes = m->inline_bytes[i];
        uint32_t value = mr_worker__value_get(w, job, m->index[i]);
        if (value == NONE) {
            w->no_room = true;
        } else {
            struct value *v = &w->values[value];
            if (!v->fresh) {
                v->fresh = true;
                v->next = w->brought;
                w->brought = value;
            }
            if (bytes) {
                bring_inline(w, value, mr_str_of(m->inlined.p + at, bytes));
            } else {
                uint32_t n = m->object_node[o];
                bool known = n >= 1 && n <= w->session_nodes_count;
                mr_object_id id = {m->object_maker[o], m->object_number[o]};
                bring_object(w, value, known ? w->session_nodes[n - 1] : 0, id, m->object_bytes[o]);
            }
        }
        at += bytes;
        o += !bytes;
    }
}

/* Called after a message: frees the values that the message brought and that have no user. */
void mr_worker__values_sweep(struct mr_worker *w)
{
    while (w->brought != NONE) {
        uint32_t value = w->brought;
        struct value *v = &w->values[value];
        w->brought = v->next;
        v->fresh = false;
        mr_worker__value_settle(w, value);
    }
}

void mr_worker__job_forget(struct mr_worker *w, mr_job_id id)
{
    uint32_t job = job_find(w, id);
    if (job == NONE) return;
    struct job *j = &w->jobs[job];
    j->values_count++; /* keeps the job's row while its values go */
    MR_LIST_EACH(node, &j->values)
    MR_LIST_ITEM(node, struct value, in_job)->fresh = true; /* keeps all values in the list */
    MR_LIST_EACH(node, &j->values)
    {
        uint32_t task = MR_LIST_ITEM(node, struct value, in_job)->task;
        if (task != NONE) mr_worker__task_stop(w, task, true);
    }
    MR_LIST_EACH(node, &j->values)
    {
        struct value *v = MR_LIST_ITEM(node, struct value, in_job);
        v->fresh = false;
        v->released = true; /* a task that is being stopped may still read the value */
        mr_worker__value_settle(w, (uint32_t)(v - w->values));
    }
    j->values_count--;
    job_collect(w, job);
}
