/* Lists the cluster's operators. Built-in operators come from the registry that this program links.
 * Foreign operators come from workers that register; the first worker that offers a name documents
 * the operator. */
#include "services/scheduler/base/catalogue.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/page.h"
#include "host/os/log.h"
#include "ops/describe.h"
#include "ops/registry/registry.h"
#include "services/scheduler/submit/parser.h"

#include <stdlib.h>
#include <yyjson.h>

#define FOREIGN_MAX 65536
#define PARAMS_MAX 64

struct foreign {
    char *name;
    yyjson_doc *info; /* an OpInfo message; NULL: the worker sent none */
    bool deterministic;
    bool by_reference;
    uint64_t cost_ns;
};

struct mr_catalogue {
    struct mr_registry *registry;
    struct foreign *foreign; /* sorted by name */
    uint32_t count;
};

struct mr_catalogue *mr_catalogue_new(void)
{
    struct mr_catalogue *c = mr_alloc(sizeof *c);
    c->registry = mr_registry_new();
    return c;
}

void mr_catalogue_free(struct mr_catalogue **cp)
{
    struct mr_catalogue *c = *cp;
    *cp = NULL;
    if (!c) return;
    for (uint32_t i = 0; i < c->count; i++) {
        mr_release(c->foreign[i].name);
        yyjson_doc_free(c->foreign[i].info);
    }
    mr_release(c->foreign);
    mr_registry_free(&c->registry);
    mr_release(c);
}

static int by_name(const void *a, const void *b)
{
    const struct foreign *x = a;
    const struct foreign *y = b;
    return strcmp(x->name, y->name);
}

void mr_catalogue_add(struct mr_shell *sh, const struct mr_ws_operator *op)
{
    struct mr_catalogue *c = sh->catalogue;
    if (mr_registry_find(c->registry, op->name)) return;
    struct foreign key = {.name = mr_shell_text(sh, op->name)};
    if (c->count && bsearch(&key, c->foreign, c->count, sizeof *c->foreign, by_name)) return;
    if (c->count >= FOREIGN_MAX) {
        mr_log(MR_WARN, "catalogue.full", "max=%d", FOREIGN_MAX);
        return;
    }
    size_t old = c->count * sizeof *c->foreign;
    c->foreign = mr_grow(c->foreign, old, old + sizeof *c->foreign);
    c->foreign[c->count++] = (struct foreign){.name = mr_copy_text(key.name),
        .info = op->info_json.n ? yyjson_read(op->info_json.p, op->info_json.n, 0) : NULL,
        .deterministic = op->deterministic,
        .by_reference = op->by_reference,
        .cost_ns = op->cost_ns};
    qsort(c->foreign, c->count, sizeof *c->foreign, by_name);
    mr_parser_add_op(sh->parser, op->name);
}

static Millrace__V1__OpInfo *info_new(struct mr_shell *sh)
{
    Millrace__V1__OpInfo *m = mr_shell_take(sh, sizeof *m);
    millrace__v1__op_info__init(m);
    return m;
}

static Millrace__V1__OpParameter *param_new(struct mr_shell *sh)
{
    Millrace__V1__OpParameter *m = mr_shell_take(sh, sizeof *m);
    millrace__v1__op_parameter__init(m);
    return m;
}

static Millrace__V1__OpInfo *builtin_info(struct mr_shell *sh, const struct mr_op_desc *op)
{
    Millrace__V1__OpInfo *m = info_new(sh);
    m->name = mr_shell_text(sh, mr_str(op->name));
    m->summary = mr_shell_text(sh, mr_str(op->summary));
    m->returns = mr_shell_text(sh, mr_str(op->result));
    m->runtime = mr_shell_text(sh, MR_STR("native"));
    m->variadic = (op->flags & MR_OP_VARIADIC) != 0;
    m->deterministic = (op->flags & MR_OP_DETERMINISTIC) != 0;
    m->by_reference = (op->flags & MR_OP_BY_REFERENCE) != 0;
    m->cost_ns = op->cost_ns;
    m->n_parameters = op->params_count;
    m->parameters = mr_shell_take(sh, op->params_count * sizeof *m->parameters);
    for (uint32_t i = 0; i < op->params_count; i++) {
        const struct mr_op_param *p = &op->params[i];
        Millrace__V1__OpParameter *row = param_new(sh);
        struct mr_buf words;
        mr_buf_init(&words, 1024);
        mr_op_takes_words(p->takes, &words);
        row->name = mr_shell_text(sh, mr_str(p->name));
        row->type = mr_shell_text(sh, mr_buf_str(&words));
        row->required = !p->fallback;
        if (p->fallback) row->default_json = mr_shell_text(sh, mr_str(p->fallback));
        row->doc = mr_shell_text(sh, mr_str(p->doc ? p->doc : ""));
        m->parameters[i] = row;
        mr_buf_fini(&words);
    }
    return m;
}

static char *member(struct mr_shell *sh, yyjson_val *object, const char *name)
{
    const char *text = yyjson_get_str(yyjson_obj_get(object, name));
    return mr_shell_text(sh, mr_str(text ? text : ""));
}

static Millrace__V1__OpInfo *foreign_info(struct mr_shell *sh, const struct foreign *f)
{
    Millrace__V1__OpInfo *m = info_new(sh);
    yyjson_val *root = yyjson_doc_get_root(f->info);
    yyjson_val *params = yyjson_obj_get(root, "parameters");
    m->name = mr_shell_text(sh, mr_str(f->name));
    m->summary = member(sh, root, "summary");
    m->returns = member(sh, root, "returns");
    m->runtime = member(sh, root, "runtime");
    m->variadic = yyjson_get_bool(yyjson_obj_get(root, "variadic"));
    m->deterministic = f->deterministic;
    m->by_reference = f->by_reference;
    m->cost_ns = f->cost_ns;
    m->n_parameters = MR_MIN(yyjson_arr_size(params), (size_t)PARAMS_MAX);
    m->parameters = mr_shell_take(sh, m->n_parameters * sizeof *m->parameters);
    for (size_t i = 0; i < m->n_parameters; i++) {
        yyjson_val *from = yyjson_arr_get(params, i);
        Millrace__V1__OpParameter *row = param_new(sh);
        row->name = member(sh, from, "name");
        row->type = member(sh, from, "type");
        row->doc = member(sh, from, "doc");
        row->default_json = member(sh, from, "default_json");
        row->required = yyjson_get_bool(yyjson_obj_get(from, "required"));
        m->parameters[i] = row;
    }
    return m;
}

Millrace__V1__OpInfo **mr_catalogue_list(
    struct mr_shell *sh, struct mr_str name, const struct mr_page *page, size_t *count, bool *more)
{
    struct mr_catalogue *c = sh->catalogue;
    uint32_t builtin = mr_registry_count(c->registry);
    Millrace__V1__OpInfo **out = mr_shell_take(sh, page->rows_max * sizeof *out);
    size_t n = 0;
    *more = false;
    for (uint32_t i = 0, j = 0; i < builtin || j < c->count;) { /* merges two sorted lists */
        const struct mr_op_desc *b = i < builtin ? mr_registry_at(c->registry, i) : NULL;
        const struct foreign *f = j < c->count ? &c->foreign[j] : NULL;
        bool take_builtin = b && (!f || strcmp(b->name, f->name) < 0);
        const char *its = take_builtin ? b->name : f->name;
        i += take_builtin;
        j += !take_builtin;
        if ((name.n && !mr_str_eq(name, mr_str(its))) || !mr_page_has(page, its)) continue;
        *more = n == page->rows_max;
        if (*more) break;
        out[n++] = take_builtin ? builtin_info(sh, b) : foreign_info(sh, f);
    }
    *count = n;
    return out;
}
