/* Keys that the jobs of one namespace share. The first job that defines a key computes its value:
 * that job's task is the source. A task of a later job with the same definition shares the value:
 * it waits for the source, or takes the value if it exists, and the source counts it as a consumer.
 * If the source fails, is cancelled or has no value to give, the sharing task runs by itself.
 * An alias is a node that only refers to a key of another job, so it has nothing to run. It waits
 * until the source has a value, which is computed again if needed. The alias fails if no task can
 * compute the value. Tasks and jobs that a walk has still to visit are pushed on the stack of the
 * state (s->stack). */
#include "services/scheduler/core/task/shared_key.h"

#include "base/assert.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/inline_bytes.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/fused.h"
#include "services/scheduler/core/task/job_state.h"
#include "services/scheduler/core/task/journal.h"
#include "services/scheduler/core/task/lineage.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/task.h"
#include "services/scheduler/core/task/value.h"
#include "services/scheduler/core/task/value_delivery.h"

struct name {
    struct mr_str name_space;
    struct mr_str key;
};

static struct name name_of(const struct mr_sched *s, uint32_t task)
{
    const struct mr_graph *g = job_of(s, task)->graph;
    return (struct name){g->job.name_space, mr_graph_key(g, index_of(s, task))};
}

static uint64_t name_hash(struct name n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n.name_space.n; i++)
        h = (h ^ (unsigned char)n.name_space.p[i]) * 0x100000001b3u;
    h = (h ^ 0xff) * 0x100000001b3u; /* separates the two texts: no byte of UTF-8 is 0xff */
    for (size_t i = 0; i < n.key.n; i++)
        h = (h ^ (unsigned char)n.key.p[i]) * 0x100000001b3u;
    return mr_hash_u64(h);
}

static bool name_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct name *wanted = key;
    struct name n = name_of(ctx, item);
    return mr_str_eq(n.key, wanted->key) && mr_str_eq(n.name_space, wanted->name_space);
}

static uint64_t name_rehash(const void *ctx, uint32_t item)
{
    return name_hash(name_of(ctx, item));
}

static uint32_t find(const struct mr_sched *s, struct name n)
{
    uint32_t task = mr_index_find(&s->keys.index, name_hash(n), name_eq, s, &n);
    return task == MR_INDEX_NONE ? NONE : task;
}

/* True: the task failed, was cancelled or is being forgotten, so another job may define its key. */
static bool is_free_again(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    return t->state == MR_TASK_ERRED || t->state == MR_TASK_CANCELLED ||
           job_of(s, task)->flags & J_FORGETTING;
}

static void enter(struct mr_sched *s, uint32_t task)
{
    mr_index_add(&s->keys.index, name_hash(name_of(s, task)), task, name_rehash, s);
}

bool mr_sched__is_alias(const struct mr_sched *s, uint32_t task)
{
    return job_of(s, task)->graph->kind[index_of(s, task)] == MR_NODE_ALIAS;
}

/* Returns the source of an alias; NONE: `task` is no alias, or has no source. */
uint32_t mr_sched__shared_key_source(const struct mr_sched *s, uint32_t task)
{
    bool is_joined = mr_sched__is_alias(s, task) && s->tasks[task].flags & T_SHARED;
    return is_joined ? s->keys.source[task] - 1 : NONE;
}

bool mr_sched__shared_key_is_waited(const struct mr_sched *s, uint32_t source)
{
    if (!(s->tasks[source].flags & T_HAS_SHARERS)) return false;
    for (uint32_t t = s->keys.head[source]; t; t = s->keys.next[t - 1])
        if (is_unfinished(&s->tasks[t - 1])) return true;
    return false;
}

uint32_t mr_sched__shared_key_users(const struct mr_sched *s, uint32_t task)
{
    uint32_t n = 0;
    if (!(s->tasks[task].flags & T_HAS_SHARERS)) return 0;
    for (uint32_t t = s->keys.head[task]; t; t = s->keys.next[t - 1])
        n++;
    return n;
}

static void link_to(struct mr_sched *s, uint32_t task, uint32_t source)
{
    s->tasks[task].flags |= T_SHARED;
    s->tasks[source].flags |= T_HAS_SHARERS;
    s->tasks[source].consumers++;
    job_of(s, source)->users++;
    s->keys.source[task] = source + 1;
    s->keys.next[task] = s->keys.head[source];
    s->keys.head[source] = task + 1;
    if (s->tasks[source].fused_use) mr_sched__fused_other(s, source);
}

void mr_sched__shared_key_leave(struct mr_sched *s, uint32_t task)
{
    uint32_t source = s->keys.source[task] - 1;
    mr_assert(s->tasks[task].flags & T_SHARED && s->keys.source[task]);
    uint32_t *at = &s->keys.head[source];
    while (*at != task + 1)
        at = &s->keys.next[*at - 1];
    *at = s->keys.next[task];
    s->keys.source[task] = s->keys.next[task] = 0;
    s->tasks[task].flags = (uint16_t)(s->tasks[task].flags & ~T_SHARED);
    if (!s->keys.head[source])
        s->tasks[source].flags = (uint16_t)(s->tasks[source].flags & ~T_HAS_SHARERS);
    mr_assert(job_of(s, source)->users > 0);
    job_of(s, source)->users--;
    mr_sched__unref_one(s, source);
}

/* Gives the sharing task a copy of the source's value. False: only a worker has the value, or the
 * cache is full. `passing`: the value's bytes if the caller has them, else empty. */
static bool copy_value(struct mr_sched *s, uint32_t task, uint32_t source, struct mr_str passing)
{
    uint32_t from = s->tasks[source].value;
    if (from == LITERAL) {
        passing = mr_graph_args(job_of(s, source)->graph, index_of(s, source));
    } else if (s->values[from].kind == V_OBJECT) {
        /* This value gets no hold of its own: the hold for the source keeps the object for both. */
        struct value *v = &s->values[mr_sched__value_new(s, task)];
        v->kind = V_OBJECT;
        v->object = s->values[from].object;
        v->bytes = s->values[from].bytes;
        v->store = s->values[from].store;
        return true;
    } else if (s->values[from].kind != V_AWAY) {
        passing = mr_sched__value_bytes(s, &s->values[from]);
    }
    if (!passing.n) return false;
    uint32_t to = mr_sched__value_new(s, task);
    mr_sched__value_set_inline(s, &s->values[to], passing);
    if (s->values[to].kind != V_AWAY) return true;
    mr_sched__value_release(s, to, true); /* the cache of small values is full */
    return false;
}

static void fail_alias(struct mr_sched *s, uint32_t task)
{
    struct failure st = mr_sched__failure_make(
        s, task, 9, MR_STR("the job that defines this key has no value for it"), NULL);
    mr_sched__task_fail(s, task, &st);
    mr_sched__failure_fini(&st);
}

/* True: the task belongs to a loop. Such tasks are not shared, since the job decides which of them
 * run. */
static bool is_private(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    if (!j->graph->slot_of) return false;
    return s->tasks[task].is_exit || j->graph->slot_of[task - j->base] != MR_NODE_NONE;
}

/* Enters the task under its key, unless another job has defined the key meanwhile. From now on
 * look-ups of the key find this task. */
static void take_name(struct mr_sched *s, uint32_t task)
{
    if (is_private(s, task)) return;
    const struct mr_graph *g = job_of(s, task)->graph;
    uint32_t i = index_of(s, task);
    bool is_task = g->kind[i] == MR_NODE_TASK && mr_graph_is_pure(g, i);
    struct name n = name_of(s, task);
    uint32_t owner = find(s, n);
    if ((!is_task && g->kind[i] != MR_NODE_LITERAL) || owner == task) return;
    if (owner != NONE && !is_free_again(s, owner)) return;
    if (owner != NONE) (void)mr_index_remove(&s->keys.index, name_hash(n), owner);
    enter(s, task);
}

/* Ends the sharing: the task runs by itself from now on. An alias fails. */
static void part(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    mr_sched__shared_key_leave(s, task);
    if (!is_unfinished(t) || job_of(s, task)->flags & J_STOPPED) return;
    if (mr_sched__is_alias(s, task)) {
        fail_alias(s, task);
        return;
    }
    take_name(s, task);
    t->waiting--;
    t->unsent--;
    if (!t->waiting) mr_sched__task_inputs_done(s, task, task);
}

static bool is_away(const struct mr_sched *s, uint32_t source)
{
    const struct task *t = &s->tasks[source];
    return is_done(t) && t->value < LITERAL && s->values[t->value].kind == V_AWAY;
}

/* True: the source has no value that can be copied now, but may get one. */
static bool may_come(const struct mr_sched *s, uint32_t source)
{
    const struct task *t = &s->tasks[source];
    if (is_unfinished(t) || is_away(s, source)) return true;
    return t->state == MR_TASK_RELEASED && !(job_of(s, source)->flags & (J_STOPPED | J_FORGETTING));
}

void mr_sched__shared_key_done(struct mr_sched *s, uint32_t source, struct mr_str bytes)
{
    uint32_t next;
    for (uint32_t at = s->keys.head[source]; at; at = next) {
        uint32_t task = at - 1;
        next = s->keys.next[task];
        struct task *t = &s->tasks[task];
        if (!is_unfinished(t) || job_of(s, task)->flags & J_STOPPED) continue;
        if (!copy_value(s, task, source, bytes)) {
            if (mr_sched__is_alias(s, task) && !bytes.n && is_away(s, source))
                mr_sched__send_fetch(s, source); /* the worker's answer brings the bytes */
            else
                part(s, task);
            continue;
        }
        mr_sched__task_done(s, task, NONE);
        /* an alias with a value does not count as a task */
        if (mr_sched__is_alias(s, task) && is_done(t)) {
            t->flags |= T_FIXED;
            job_of(s, task)->counts[MR_TASK_DONE]--;
        }
    }
}

void mr_sched__shared_key_failed(struct mr_sched *s, uint32_t source)
{
    uint32_t next;
    for (uint32_t at = s->keys.head[source]; at; at = next) {
        uint32_t task = at - 1;
        next = s->keys.next[task];
        if (is_unfinished(&s->tasks[task])) part(s, task);
    }
}

static int refuse_other(
    const struct mr_sched *s, uint32_t task, uint32_t source, struct mr_error *e)
{
    struct name n = name_of(s, task);
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format((mr_job_id){job_of(s, source)->id}, id);
    return mr_fail(e, MR_EEXIST,
        "key \"%.*s\" of namespace \"%.*s\" has another definition in job %s than in this one",
        MR_STR_ARG(n.key), MR_STR_ARG(n.name_space), id);
}

static int share_one(struct mr_sched *s, uint32_t task, uint32_t source, struct mr_error *e)
{
    struct job *j = job_of(s, task);
    struct task *t = &s->tasks[task];
    bool is_ref = mr_sched__is_alias(s, task);
    const struct task *from = &s->tasks[source];
    /* the value is a literal, or a result found by the name under which it was persisted */
    if (is_done(t) && !is_ref) return MR_OK;
    bool has_value = is_done(from) && from->value != NONE;
    if (has_value && copy_value(s, task, source, (struct mr_str){0})) {
        if (!is_ref) mr_sched__task_move(s, task, MR_TASK_DONE);
        link_to(s, task, source);
        j->joined++;
        return MR_OK;
    }
    if (is_unfinished(from) || (is_ref && may_come(s, source))) {
        if (is_ref) {
            t->flags = (uint16_t)(t->flags & ~T_FIXED);
            t->state = MR_TASK_NONE;
        }
        link_to(s, task, source);
        j->joined++;
        return MR_OK;
    }
    if (!is_ref) return MR_OK; /* the source was released: this task computes the value */
    struct name n = name_of(s, task);
    return mr_fail(e, MR_ENOENT,
        "key \"%.*s\": its value in namespace \"%.*s\" is not kept any more", MR_STR_ARG(n.key),
        MR_STR_ARG(n.name_space));
}

/* Links `task` to `source`, if the task's value was replayed from the journal and is the same
 * object as the source's value. Then the hold for the source keeps the object for both tasks.
 * Returns true for each alias whose value was replayed, linked or not: the caller need not link it.
 */
static bool read_back(struct mr_sched *s, uint32_t task, uint32_t source)
{
    const struct task *t = &s->tasks[task];
    if (t->value >= LITERAL) return false;
    const struct value *v = &s->values[t->value];
    uint32_t from = source == NONE ? NONE : s->tasks[source].value;
    if (v->kind == V_OBJECT && from < LITERAL && s->values[from].kind == V_OBJECT &&
        mr_object_id_eq(v->object, s->values[from].object)) {
        link_to(s, task, source);
        job_of(s, task)->joined++;
    }
    return mr_sched__is_alias(s, task);
}

int mr_sched__shared_key_link(struct mr_sched *s, uint32_t job, struct mr_error *e)
{
    const struct job *j = &s->jobs[job];
    const struct mr_graph *g = j->graph;
    if (!g->job.name_space.n) return MR_OK;
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        uint32_t task = j->base + i;
        if (is_private(s, task)) continue;
        bool is_ref = g->kind[i] == MR_NODE_ALIAS;
        if (!is_ref && g->kind[i] != MR_NODE_TASK && g->kind[i] != MR_NODE_LITERAL) continue;
        if (g->kind[i] == MR_NODE_TASK && !mr_graph_is_pure(g, i)) continue;
        struct name n = name_of(s, task);
        uint32_t source = find(s, n);
        if (source != NONE && is_free_again(s, source)) {
            (void)mr_index_remove(&s->keys.index, name_hash(n), source);
            source = NONE;
        }
        if (read_back(s, task, source)) continue;
        if (source == NONE && is_ref)
            return mr_fail(e, MR_ENOENT,
                "key \"%.*s\" is defined neither in this job nor by another of namespace \"%.*s\"",
                MR_STR_ARG(n.key), MR_STR_ARG(n.name_space));
        if (source == NONE) {
            enter(s, task);
            continue;
        }
        const struct mr_graph *other = job_of(s, source)->graph;
        if (!is_ref && !mr_graph_hash_eq(g->hash[i], other->hash[index_of(s, source)])) {
            /* A restart reads the journal. When job `j` was accepted, the key was free, because the
             * task of an older job had failed or was cancelled. The older job was retried later. */
            if (j->flags & J_HELD_BACK) continue;
            return refuse_other(s, task, source, e);
        }
        int err = share_one(s, task, source, e);
        if (err) return err;
        bool is_made_here = !is_ref && !(s->tasks[task].flags & T_SHARED);
        if (is_made_here && s->tasks[source].state == MR_TASK_RELEASED) {
            (void)mr_index_remove(&s->keys.index, name_hash(n), source);
            enter(s, task); /* later jobs find this task under the key */
        }
    }
    return MR_OK;
}

/* Returns the task that has, or will have, the value of an alias; NONE: there is no such task. */
static uint32_t source_of(const struct mr_sched *s, uint32_t task)
{
    uint32_t source = find(s, name_of(s, task));
    if (source == NONE || is_free_again(s, source)) return NONE;
    return is_done(&s->tasks[source]) || may_come(s, source) ? source : NONE;
}

/* Makes an alias that lost its value wait for its source. If the value of the source was released,
 * pushes the source on s->stack, so that the value is computed again. An alias without a source
 * fails. */
void mr_sched__shared_key_wait(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    uint32_t source = source_of(s, task);
    t->refs = REF_ALL;
    t->worker = NONE;
    t->waiting = t->unsent = source != NONE;
    mr_sched__task_move(s, task, MR_TASK_WAITING);
    if (source == NONE) {
        fail_alias(s, task);
        return;
    }
    link_to(s, task, source);
    if (is_done(&s->tasks[source]))
        mr_sched__shared_key_done(s, source, (struct mr_str){0});
    else if (s->tasks[source].state == MR_TASK_RELEASED)
        s->stack[s->stack_count++] = source;
}

/* Called before a failed job is retried. If a key that the job refers to does not exist, returns
 * MR_ESTATE and changes nothing. */
int mr_sched__shared_key_retry(struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    for (uint32_t i = 0; i < j->graph->nodes_count && j->graph->job.name_space.n; i++) {
        uint32_t task = j->base + i;
        if (!mr_sched__is_alias(s, task) || s->tasks[task].value != NONE) continue;
        if (source_of(s, task) == NONE) return MR_ESTATE;
    }
    for (uint32_t i = 0; i < j->graph->nodes_count && j->graph->job.name_space.n; i++) {
        uint32_t task = j->base + i;
        struct task *t = &s->tasks[task];
        take_name(s, task);
        if (!mr_sched__is_alias(s, task) || t->value != NONE || t->flags & T_SHARED) continue;
        /* a restart of the scheduler has left the alias in the state DONE without a value */
        if (t->flags & T_FIXED) {
            t->flags = (uint16_t)(t->flags & ~T_FIXED);
            t->state = MR_TASK_NONE;
        }
        link_to(s, task, find(s, name_of(s, task)));
    }
    return MR_OK;
}

/* Called after the job was planned: takes the values that sources have, and plans each released
 * source again. */
void mr_sched__shared_key_settle(struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    uint32_t nodes = j->graph->job.name_space.n ? j->graph->nodes_count : 0;
    for (uint32_t i = 0; i < nodes && j->state <= MR_JOB_RUNNING; i++) {
        uint32_t task = j->base + i;
        if (!(s->tasks[task].flags & T_SHARED) || !is_unfinished(&s->tasks[task])) continue;
        uint32_t source = s->keys.source[task] - 1;
        if (is_done(&s->tasks[source]))
            mr_sched__shared_key_done(s, source, (struct mr_str){0});
        else if (s->tasks[source].state == MR_TASK_RELEASED)
            mr_sched__task_again(s, source);
    }
}

/* Writes to the journal the targets that took another job's value at once, so that a restart finds
 * their values. */
void mr_sched__shared_key_journal(struct mr_sched *s, uint32_t job)
{
    const struct mr_graph *g = s->jobs[job].graph;
    for (uint32_t i = 0; g->job.name_space.n && i < g->targets_count; i++) {
        uint32_t task = s->jobs[job].base + g->targets[i];
        bool is_another = s->tasks[task].flags & T_SHARED && !mr_sched__is_alias(s, task);
        if (is_another && is_done(&s->tasks[task])) mr_sched__journal_part(s, task);
    }
}

/* Enters a key of a replayed, ended job into the index of shared keys, if the key has a value or
 * its value can be computed again. */
static void enter_again(struct mr_sched *s, uint32_t task, uint32_t source)
{
    const struct job *j = job_of(s, task);
    uint32_t i = index_of(s, task);
    bool is_task = j->graph->kind[i] == MR_NODE_TASK && mr_graph_is_pure(j->graph, i);
    bool is_value = j->graph->kind[i] == MR_NODE_LITERAL || (is_task && is_done(&s->tasks[task]));
    bool may_be = is_task && may_come(s, task);
    if (source != NONE && is_value && s->tasks[source].state == MR_TASK_RELEASED) {
        (void)mr_index_remove(&s->keys.index, name_hash(name_of(s, source)), source);
        source = NONE;
    }
    if (source == NONE && (is_value || may_be)) enter(s, task);
}

void mr_sched__shared_key_enter(struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    const struct mr_graph *g = j->graph;
    if (!g->job.name_space.n) return;
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        uint32_t task = j->base + i;
        struct task *t = &s->tasks[task];
        if (is_private(s, task)) continue;
        uint32_t source = find(s, name_of(s, task));
        (void)read_back(s, task, source);
        enter_again(s, task, source);
        if (!mr_sched__is_alias(s, task) || t->value != NONE || j->flags & J_STOPPED) continue;
        /* the alias asks its source when a client wants the value */
        t->flags = (uint16_t)(t->flags & ~T_FIXED);
        t->state = MR_TASK_NONE;
        mr_sched__task_move(s, task, MR_TASK_RELEASED);
    }
}

void mr_sched__shared_key_drop_job(struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    if (!j->graph->job.name_space.n) return;
    for (uint32_t i = 0; i < j->graph->nodes_count; i++) {
        uint32_t task = j->base + i;
        if (s->tasks[task].flags & T_SHARED) mr_sched__shared_key_leave(s, task);
        /* the sharers leave, even those of jobs that are being forgotten */
        while (s->tasks[task].flags & T_HAS_SHARERS)
            mr_sched__shared_key_leave(s, s->keys.head[task] - 1);
        if (find(s, name_of(s, task)) == task)
            (void)mr_index_remove(&s->keys.index, name_hash(name_of(s, task)), task);
    }
}

/* True: another job shares keys of this job and is not being forgotten itself. */
bool mr_sched__shared_key_is_held(const struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    for (uint32_t i = 0; i < j->graph->nodes_count && j->users; i++)
        for (uint32_t t = s->keys.head[j->base + i]; t; t = s->keys.next[t - 1])
            if (!(job_of(s, t - 1)->flags & J_FORGETTING)) return true;
    return false;
}

/* Pushes the jobs that share keys of `job` onto s->stack, each job once. False: one of these jobs
 * has to stay, because no client has asked to forget that job. */
static bool push_holders(struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    for (uint32_t i = 0; i < j->graph->nodes_count; i++) {
        for (uint32_t at = s->keys.head[j->base + i]; at; at = s->keys.next[at - 1]) {
            uint32_t holder = job_no(s, &s->tasks[at - 1]);
            struct job *h = &s->jobs[holder];
            if (h->flags & (J_MARKED | J_FORGETTING)) continue;
            if (!(h->flags & J_UNWANTED)) return false;
            h->flags |= J_MARKED;
            s->stack[s->stack_count++] = holder;
        }
    }
    return true;
}

/* Forgets the job and all jobs that share its keys, also through other jobs. After a retry, jobs
 * may share keys with each other in a cycle. They are forgotten together, as soon as a client has
 * asked to forget each of them. False: one of the jobs has to stay, because no client has asked to
 * forget it, so all stay. */
bool mr_sched__shared_key_forget_all(struct mr_sched *s, uint32_t job)
{
    uint32_t bottom = s->stack_count;
    bool are_unwanted = true;
    s->jobs[job].flags |= J_UNWANTED | J_MARKED;
    s->stack[s->stack_count++] = job;
    for (uint32_t i = bottom; i < s->stack_count && are_unwanted; i++)
        are_unwanted = push_holders(s, s->stack[i]);
    for (uint32_t i = bottom; i < s->stack_count; i++)
        s->jobs[s->stack[i]].flags &= ~(uint32_t)J_MARKED;
    uint32_t top = s->stack_count;
    for (uint32_t i = bottom; i < top && are_unwanted; i++)
        mr_sched__job_forget(s, s->stack[i]);
    s->stack_count = bottom;
    return are_unwanted;
}
