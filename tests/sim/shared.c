/* Shared keys: s0, s1 … Many jobs of a run define them in the same way. Only the key with the
 * number sim.odd has a second definition (variant 1) with another argument. The jobs of one
 * namespace share one value of each shared key. A job without a namespace makes its own values.
 * Some shared keys have a name under which their values are persisted. This file also has the
 * directory of names. */
#include "tests/sim/sim.h"

#include "graph/build/builder.h"
#include "graph/explain.h"

#include <stdio.h>

void sim_shared_make(struct sim *s)
{
    struct sim_shared *x = s->shared;
    s->shared_count = sim_chance(s, 3) ? 0 : 2 + (uint32_t)sim_below(s, SHARED_MAX - 1);
    for (uint32_t i = 0; i < s->shared_count; i++) {
        static const enum sim_op ops[] = {OP_SMALL, OP_SMALL, OP_MEDIUM, OP_LARGE, OP_LARGE};
        x[i] = (struct sim_shared){.op = sim_chance(s, 12) ? OP_FLAKY : ops[sim_below(s, 5)],
            .arg = (int64_t)sim_below(s, 1u << 30),
            .has_name = sim_chance(s, 4)};
        for (uint32_t k = (uint32_t)sim_below(s, 3); k && i; k--) {
            uint32_t from = (uint32_t)sim_below(s, i);
            bool is_twice = x[i].inputs && x[i].in[0] == from;
            if (!is_twice) x[i].in[x[i].inputs++] = from;
        }
    }
    s->odd = sim_chance(s, 3) ? (uint32_t)sim_below(s, SHARED_MAX) : NONE;
    for (uint32_t i = 0; i < s->shared_count; i++) {
        x[i].is_odd = i == s->odd;
        for (uint32_t k = 0; k < x[i].inputs; k++)
            x[i].is_odd |= x[x[i].in[k]].is_odd;
    }
}

/* Returns the number of a shared key, or NONE. */
uint32_t sim_shared_of(const struct sim *s, struct mr_str key)
{
    uint32_t n = 0;
    if (key.n < 2 || key.n > 3 || key.p[0] != 's') return NONE;
    for (size_t i = 1; i < key.n; i++)
        n = n * 10 + (uint32_t)(key.p[i] - '0');
    return n < s->shared_count ? n : NONE;
}

/* Defines a shared key and its inputs in a job that is being built. Returns the key's node. */
static uint32_t define(
    struct sim *s, struct mr_builder *b, uint32_t shared, bool is_variant, uint32_t *node)
{
    for (uint32_t i = 0; i <= shared; i++) { /* inputs have smaller numbers than their users */
        const struct sim_shared *x = &s->shared[i];
        char text[16];
        char name[8];
        if (node[i] != NONE || !(s->shared[shared].needs >> i & 1)) continue;
        (void)snprintf(text, sizeof text, "s%" PRIu32, i);
        (void)snprintf(name, sizeof name, "p%" PRIu32, i);
        int err = mr_builder_node(b, mr_str(text), &node[i], NULL);
        mr_assert(!err);
        err = mr_builder_task(b, node[i], mr_str(sim_ops[x->op]), NULL);
        mr_assert(!err);
        mr_pack_list(mr_builder_args(b), x->inputs + 1);
        mr_pack_int(mr_builder_args(b), x->arg + (is_variant && i == s->odd));
        for (uint32_t k = 0; k < x->inputs; k++)
            (void)mr_builder_input(b, node[x->in[k]], NULL);
        err = mr_builder_task_end(b, NULL);
        mr_assert(!err);
        struct mr_task_options o = {.pure = true, .given = MR_OPTION_RETRIES, .retries = 3};
        if (x->has_name) {
            o.given |= MR_OPTION_PERSIST;
            o.persist = true;
            o.persist_name = mr_str(name);
        }
        err = mr_builder_options(b, node[i], &o, NULL);
        mr_assert(!err);
    }
    return node[shared];
}

/* Adds shared keys to a job and, in a namespace, references to keys that other jobs define. Returns
 * how many nodes `out` has. */
uint32_t sim_shared_use(struct sim *s, struct mr_builder *b, bool has_namespace, uint32_t *out)
{
    uint32_t node[SHARED_MAX];
    uint32_t n = 0;
    bool is_variant = s->odd != NONE && sim_chance(s, 3);
    memset(node, 0xff, sizeof node);
    for (uint32_t i = 0; i < s->shared_count; i++) {
        s->shared[i].needs = 1u << i;
        for (uint32_t k = 0; k < s->shared[i].inputs; k++)
            s->shared[i].needs |= s->shared[s->shared[i].in[k]].needs;
    }
    for (uint32_t left = s->shared_count ? (uint32_t)sim_below(s, 6) : 0; left; left--)
        out[n++] = define(s, b, (uint32_t)sim_below(s, s->shared_count), is_variant, node);
    if (!has_namespace || !sim_chance(s, 3)) return n;
    for (uint32_t i = 0; i < s->shared_count && n < SHARED_MAX; i++) {
        char text[16];
        if (node[i] != NONE || s->shared[i].is_odd || !sim_chance(s, 4)) continue;
        (void)snprintf(text, sizeof text, "s%" PRIu32, i);
        int err = mr_builder_node(b, mr_str(text), &out[n], NULL);
        mr_assert(!err);
        n++;
    }
    return n;
}

/* ---- jobs that the scheduler is right to refuse ---------------------------------------------- */

static bool is_there(struct sim *s, mr_job_id job, uint32_t index)
{
    struct mr_sched_task_info t;
    return mr_sched_task(s->sched, job, index, &t) && t.state != MR_TASK_ERRED &&
           t.state != MR_TASK_CANCELLED;
}

/* Returns whether a job of g's namespace has released the task with the key of node `index`. */
static bool is_released(struct sim *s, const struct mr_graph *g, uint32_t index)
{
    mr_job_id id = mr_sched_job_newest(s->sched);
    for (; id.v; id = mr_sched_job_older(s->sched, id)) {
        struct mr_sched_job_info info;
        struct mr_sched_task_info t;
        (void)mr_sched_job(s->sched, id, &info);
        if (!mr_str_eq(info.graph->job.name_space, g->job.name_space)) continue;
        uint32_t at = mr_graph_find(info.graph, mr_graph_key(g, index));
        if (at != MR_NODE_NONE && mr_sched_task(s->sched, id, at, &t) &&
            t.state == MR_TASK_RELEASED)
            return true;
    }
    return false;
}

/* Returns whether the job refers to a released key, whose value has to be made again. */
bool sim_shared_revives(struct sim *s, const struct mr_graph *g)
{
    for (uint32_t i = 0; i < g->nodes_count; i++)
        if (g->kind[i] == MR_NODE_ALIAS && is_released(s, g, i)) return true;
    return false;
}

/* Looks for the key of node `index` in the other jobs of g's namespace. `alias` false: returns
 * whether one of them has the key with another definition. `alias` true: returns whether one of
 * them has, or is about to have, a value of the key that an alias (a reference to a key of another
 * job) can take. */
static bool is_elsewhere(struct sim *s, const struct mr_graph *g, uint32_t index, bool alias)
{
    mr_job_id id = mr_sched_job_newest(s->sched);
    for (; id.v; id = mr_sched_job_older(s->sched, id)) {
        struct mr_sched_job_info info;
        (void)mr_sched_job(s->sched, id, &info);
        if (!mr_str_eq(info.graph->job.name_space, g->job.name_space)) continue;
        uint32_t at = mr_graph_find(info.graph, mr_graph_key(g, index));
        if (at == MR_NODE_NONE || info.graph->kind[at] == MR_NODE_ALIAS) continue;
        struct mr_sched_task_info t;
        struct mr_sched_value v;
        struct mr_buf bytes;
        mr_buf_init(&bytes, 8192);
        if (alias && mr_sched_task(s->sched, id, at, &t) && t.state >= MR_TASK_WAITING &&
            t.state <= MR_TASK_DONE && mr_sched_value(s->sched, id, at, &bytes, &v) &&
            v.kind != MR_SCHED_VALUE_AWAY) {
            mr_buf_fini(&bytes);
            return true;
        }
        mr_buf_fini(&bytes);
        if (!alias && is_there(s, id, at) &&
            !mr_graph_hash_eq(g->hash[index], info.graph->hash[at]))
            return true;
    }
    return false;
}

/* Returns whether it was right to refuse the job with `code` because of keys of other jobs. */
bool sim_shared_is_refused(struct sim *s, const struct mr_graph *g, int code)
{
    bool is_alias_missing = false;
    bool is_other_there = false;
    if (!g->job.name_space.n) return false;
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        if (g->kind[i] == MR_NODE_ALIAS)
            is_alias_missing |= !is_elsewhere(s, g, i, true) || is_released(s, g, i) ||
                                /* The scheduler's cache of small values may have no room for a
                                 * copy of the key's value. */
                                s->config.inline_blocks < 1000;
        if (g->kind[i] == MR_NODE_TASK) is_other_there |= is_elsewhere(s, g, i, false);
    }
    return code == MR_EEXIST ? is_other_there : code == MR_ENOENT && is_alias_missing;
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint32_t name_of(const struct sim *s, struct mr_str name)
{
    uint32_t n = 0;
    for (size_t i = 1; i < name.n; i++)
        n = n * 10 + (uint32_t)(name.p[i] - '0');
    mr_assert(name.n >= 2 && name.p[0] == 'p' && n < s->shared_count);
    return n;
}

/* Makes `object` the object of a name. Called when a store persists a result under this name. */
void sim_name_set(struct sim *s, struct mr_str name, mr_graph_hash definition, mr_object_id object,
    uint64_t bytes)
{
    struct sim_shared *x = &s->shared[name_of(s, name)];
    x->object = object;
    x->bytes = bytes;
    x->definition = definition;
}

/* Finds the tasks of a graph whose values exist already under their names. Returns how many. */
uint32_t sim_names_resolve(
    const struct sim *s, const struct mr_graph *g, struct mr_sched_resolved *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        const struct mr_task_options *o = mr_graph_options(g, i);
        if (g->kind[i] != MR_NODE_TASK || !o || !o->persist_name.n) continue;
        const struct sim_shared *x = &s->shared[name_of(s, o->persist_name)];
        if (!x->object.number || !mr_graph_hash_eq(x->definition, g->hash[i])) continue;
        out[n++] = (struct mr_sched_resolved){.index = i, .object = x->object, .bytes = x->bytes};
    }
    return n;
}
