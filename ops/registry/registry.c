/* Keeps the descriptors of all operators, sorted by name, and loads plug-ins (registry.h). */
#include "ops/registry/registry.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "ops/registry/builtin.h"

#include <dlfcn.h>
#include <stdlib.h>

struct entry {
    const struct mr_op_desc *op;
    /* The parameters in the form that the check of a graph needs. */
    struct mr_graph_param params[MR_OP_PARAMS_MAX];
};

struct mr_registry {
    struct entry **ops; /* sorted by name */
    uint32_t count;
    uint32_t room;
};

static int by_name(const void *a, const void *b)
{
    const struct entry *const *x = a;
    const struct entry *const *y = b;
    return strcmp((*x)->op->name, (*y)->op->name);
}

/* Returns the index of `name`, or the index at which it would be inserted. */
static uint32_t place_of(const struct mr_registry *r, struct mr_str name, bool *found)
{
    uint32_t low = 0;
    uint32_t high = r->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int c = mr_str_cmp(mr_str(r->ops[middle]->op->name), name);
        if (c == 0) {
            *found = true;
            return middle;
        }
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = false;
    return low;
}

static void append(struct mr_registry *r, const struct mr_op_desc *op)
{
    if (r->count == r->room) {
        uint32_t room = MR_MAX(2 * r->room, 256u);
        r->ops = mr_grow(r->ops, r->room * sizeof(void *), room * sizeof(void *));
        r->room = room;
    }
    mr_assert(op->params_count <= MR_OP_PARAMS_MAX);
    struct entry *x = mr_alloc(sizeof *x);
    x->op = op;
    for (uint32_t i = 0; i < op->params_count; i++)
        x->params[i] = (struct mr_graph_param){
            .name = mr_str(op->params[i].name), .required = !op->params[i].fallback};
    r->ops[r->count++] = x;
}

struct mr_registry *mr_registry_new(void)
{
    struct mr_registry *r = mr_alloc(sizeof *r);
    uint32_t families = 0;
    const mr_op_family *all = mr_op_families(&families);
    for (uint32_t f = 0; f < families; f++) {
        uint32_t count = 0;
        const struct mr_op_desc *ops = all[f](&count);
        for (uint32_t i = 0; i < count; i++)
            append(r, &ops[i]);
    }
    qsort(r->ops, r->count, sizeof(void *), by_name);
    for (uint32_t i = 1; i < r->count; i++)
        mr_assert(strcmp(r->ops[i - 1]->op->name, r->ops[i]->op->name) < 0);
    return r;
}

void mr_registry_free(struct mr_registry **r)
{
    if (!*r) return;
    for (uint32_t i = 0; i < (*r)->count; i++)
        mr_release((*r)->ops[i]);
    mr_release((*r)->ops);
    mr_release(*r);
    *r = NULL;
}

/* Checks a descriptor. Descriptors of plug-ins are checked once, here, and trusted afterwards. */
static int check_desc(const struct mr_op_desc *op, struct mr_error *e)
{
    if (!op || !op->name) return mr_fail(e, MR_EFORMAT, "an operator without a name");
    struct mr_str name = mr_str(op->name);
    if (!mr_utf8_is_key(name, MR_OP_NAME_BYTES_MAX))
        return mr_fail(e, MR_EFORMAT,
            "operator \"%s\": a name is 1-%d bytes of UTF-8 without control characters", op->name,
            MR_OP_NAME_BYTES_MAX);
    if (op->abi != MR_OP_ABI)
        return mr_fail(e, MR_EFORMAT, "operator \"%s\" is built for ABI %u, this is %d", op->name,
            op->abi, MR_OP_ABI);
    if (!op->run || !op->summary || !op->result)
        return mr_fail(
            e, MR_EFORMAT, "operator \"%s\": summary, result or function is missing", op->name);
    if (op->params_count > MR_OP_PARAMS_MAX || (op->params_count && !op->params))
        return mr_fail(e, MR_EFORMAT, "operator \"%s\": %u parameters, at most %d are allowed",
            op->name, op->params_count, MR_OP_PARAMS_MAX);
    if ((op->flags & MR_OP_VARIADIC) && !op->params_count)
        return mr_fail(e, MR_EFORMAT, "operator \"%s\" is variadic without a parameter", op->name);
    for (uint32_t i = 0; i < op->params_count; i++) {
        const struct mr_op_param *p = &op->params[i];
        if (!p->name || !p->doc || !p->takes || (p->fallback && !p->fallback[0]))
            return mr_fail(
                e, MR_EFORMAT, "operator \"%s\": parameter %u is incomplete", op->name, i);
    }
    return MR_OK;
}

int mr_registry_add(struct mr_registry *r, const struct mr_op_desc *op, struct mr_error *e)
{
    int err = check_desc(op, e);
    if (err) return err;
    bool found = false;
    uint32_t at = place_of(r, mr_str(op->name), &found);
    if (found) return mr_fail(e, MR_EEXIST, "operator \"%s\" exists already", op->name);
    append(r, op);
    struct entry *added = r->ops[r->count - 1];
    memmove(&r->ops[at + 1], &r->ops[at], (r->count - 1 - at) * sizeof(void *));
    r->ops[at] = added;
    return MR_OK;
}

static int add_all(struct mr_registry *r, const char *path, const struct mr_op_desc *const *ops,
    uint32_t count, struct mr_error *e)
{
    for (uint32_t i = 0; i < count; i++) {
        struct mr_error why = {0};
        int err = mr_registry_add(r, ops[i], &why);
        if (err) return mr_fail(e, err, "plug-in %s: %s", path, why.text);
    }
    return MR_OK;
}

int mr_registry_load_plugin(struct mr_registry *r, const char *path, struct mr_error *e)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return mr_fail(e, MR_ENOENT, "plug-in %s: %s", path, dlerror());
    union { /* ISO C has no cast from a data pointer to a function pointer */
        void *data;
        mr_plugin_entry entry;
    } symbol = {.data = dlsym(library, MR_PLUGIN_ENTRY)};
    int err = MR_OK;
    uint32_t count = 0;
    const struct mr_op_desc *const *ops = NULL;
    if (!symbol.data)
        err = mr_fail(e, MR_EFORMAT, "plug-in %s: does not export %s", path, MR_PLUGIN_ENTRY);
    else
        ops = symbol.entry(MR_OP_ABI, &count);
    if (!err && !ops) err = mr_fail(e, MR_EFORMAT, "plug-in %s: refuses ABI %d", path, MR_OP_ABI);
    if (err) {
        (void)dlclose(library);
        return err;
    }
    /* The plug-in stays loaded, because its descriptors are in use. */
    return add_all(r, path, ops, count, e);
}

const struct mr_op_desc *mr_registry_find(const struct mr_registry *r, struct mr_str name)
{
    bool found = false;
    uint32_t at = place_of(r, name, &found);
    return found ? r->ops[at]->op : NULL;
}

uint32_t mr_registry_count(const struct mr_registry *r)
{
    return r->count;
}

const struct mr_op_desc *mr_registry_at(const struct mr_registry *r, uint32_t i)
{
    mr_assert(i < r->count);
    return r->ops[i]->op;
}

static bool catalogue_find(const void *ctx, struct mr_str name, struct mr_graph_op_info *out)
{
    const struct mr_registry *r = ctx;
    bool found = false;
    uint32_t at = place_of(r, name, &found);
    if (!found) return false;
    const struct entry *x = r->ops[at];
    *out = (struct mr_graph_op_info){.params = x->params,
        .params_count = x->op->params_count,
        .any_positional = x->op->flags & MR_OP_VARIADIC};
    return true;
}

static struct mr_str catalogue_name_at(const void *ctx, uint32_t i)
{
    const struct mr_registry *r = ctx;
    return i < r->count ? mr_str(r->ops[i]->op->name) : (struct mr_str){0};
}

struct mr_graph_catalogue mr_registry_catalogue(const struct mr_registry *r)
{
    return (struct mr_graph_catalogue){
        .find = catalogue_find, .name_at = catalogue_name_at, .ctx = r};
}
