#include "services/scheduler/submit/names.h"

#include "base/alloc.h"
#include "base/assert.h"

struct found { /* what the directory of objects in Redis says about a name */
    int err;
    mr_object_id object;
    uint64_t nbytes;
    /* the object is persisted, and the definition of the task that computed it is known */
    bool is_durable;
    unsigned char definition[16];
};

struct search {
    struct mr_graph *graph;
    struct mr_str *names;
    struct found *found; /* in the order of `names` */
    uint32_t count, answers;
};

static struct mr_str name_of(const struct mr_graph *g, uint32_t node, bool results)
{
    if (!results) return g->kind[node] == MR_NODE_NAME ? mr_graph_text(g, node) : MR_STR("");
    if (g->kind[node] == MR_NODE_NAME || g->kind[node] == MR_NODE_OBJECT) return MR_STR("");
    const struct mr_task_options *o = g->option_of ? mr_graph_options(g, node) : NULL;
    return o ? o->persist_name : MR_STR("");
}

static void on_found(void *ctx, int err, const struct mr_name_record *record)
{
    struct search *s = ctx;
    mr_assert(s->answers < s->count);
    struct found *f = &s->found[s->answers++];
    *f = (struct found){.err = err};
    if (err) return;
    f->object = record->object;
    f->nbytes = record->nbytes;
    f->is_durable = record->durable && record->has_definition;
    memcpy(f->definition, record->definition, sizeof f->definition);
}

/* Looks up names in the directory: if `results`, the names under which tasks persist their results;
 * else the names by which nodes refer to objects. */
static int look_up(
    struct mr_directory *directory, struct search *s, bool results, struct mr_error *e)
{
    const struct mr_graph *g = s->graph;
    for (uint32_t i = 0; i < g->nodes_count; i++)
        s->count += name_of(g, i, results).n != 0;
    if (!s->count) return MR_OK;
    s->names = mr_alloc_array(s->count, sizeof *s->names);
    s->found = mr_alloc_array(s->count, sizeof *s->found);
    for (uint32_t i = 0, n = 0; i < g->nodes_count; i++)
        if (name_of(g, i, results).n) s->names[n++] = name_of(g, i, results);
    return mr_directory_resolve_sync(directory, s->names, s->count, on_found, s, e);
}

static void search_fini(struct search *s)
{
    mr_release(s->names);
    mr_release(s->found);
}

/* Checks that every name exists. The id of the named object becomes the node's definition hash. */
static int names_settle(const struct search *s, struct mr_error *e)
{
    struct mr_graph *g = s->graph;
    for (uint32_t i = 0, n = 0; i < g->nodes_count && n < s->count; i++) {
        if (!name_of(g, i, false).n) continue;
        const struct found *f = &s->found[n];
        struct mr_str name = s->names[n++];
        if (f->err == MR_ENOENT)
            return mr_fail(e, MR_ENOENT, "no object is named \"%.*s\"", MR_STR_ARG(name));
        if (f->err)
            return mr_fail(
                e, f->err, "Redis: the record of name \"%.*s\" is damaged", MR_STR_ARG(name));
        if (g->hash) mr_graph_set_hash(g, i, (mr_graph_hash){f->object.maker, f->object.number});
    }
    if (s->count && g->hash) mr_graph_rehash(g);
    return MR_OK;
}

static bool is_same(const struct mr_graph *g, uint32_t node, const struct found *f)
{
    unsigned char definition[16];
    if (f->err || !f->is_durable || !g->hash) return false;
    mr_object_id_to_bytes((mr_object_id){g->hash[node].hi, g->hash[node].lo}, definition);
    return !memcmp(definition, f->definition, sizeof definition);
}

static void add(struct mr_parser_result *d, uint32_t index, mr_object_id object, uint64_t bytes)
{
    size_t old = d->resolved_count * sizeof *d->resolved;
    d->resolved = mr_grow(d->resolved, old, old + sizeof *d->resolved);
    d->resolved[d->resolved_count++] =
        (struct mr_sched_resolved){.index = index, .object = object, .bytes = bytes};
}

static void add_all(
    struct mr_parser_result *d, const struct search *names, const struct search *results)
{
    const struct mr_graph *g = d->graph;
    const struct found *name = names->found, *result = results->found;
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        if (g->kind[i] == MR_NODE_OBJECT) {
            add(d, i, mr_graph_object(g, i), 0);
        } else if (name_of(g, i, false).n) {
            add(d, i, name->object, name->nbytes);
            name++;
        } else if (results->count && name_of(g, i, true).n) {
            if (is_same(g, i, result)) add(d, i, result->object, result->nbytes);
            result++;
        }
    }
}

int mr_parser_resolve_names(
    struct mr_directory *directory, struct mr_parser_result *d, struct mr_error *e)
{
    struct mr_graph *g = d->graph;
    struct search names = {.graph = g}, results = {.graph = g};
    bool has_names = memchr(g->kind, MR_NODE_NAME, g->nodes_count);
    if (!has_names && !g->option_of && !memchr(g->kind, MR_NODE_OBJECT, g->nodes_count))
        return MR_OK;
    int err = has_names ? look_up(directory, &names, false, e) : MR_OK;
    if (!err) err = names_settle(&names, e);
    /* If Redis does not answer, no result is reused. */
    if (!err && g->option_of && look_up(directory, &results, true, NULL)) results.count = 0;
    if (!err) add_all(d, &names, &results);
    search_fini(&names);
    search_fini(&results);
    return err;
}
