/* Redis has the templates. Parsed templates are in an LRU cache. The cache needs no invalidation:
 * only this scheduler writes templates, since another one on the same Redis would have superseded
 * it. */
#include "services/scheduler/submit/templates.h"

#include "base/alloc.h"
#include "base/index.h"
#include "base/pack.h"
#include "host/clock.h"
#include "store/meta/keys.h"

#include <stdlib.h>

#define KEY MR_META_PREFIX MR_META_TEMPLATES
#define TEMPLATES_MAX 1000
#define NAME_BYTES_MAX 64
#define TEXT_BYTES_MAX ((size_t)16 << 20)
#define KEPT_MAX 64 /* limit of parsed templates in the cache */
#define KEPT_BYTES_MAX ((size_t)256 << 20)

struct kept {
    char *name; /* NULL: the entry is free */
    uint64_t installed_ns;
    struct mr_buf text;
    struct mr_json_template *parsed;
    uint64_t used;
};

struct mr_templates {
    struct mr_redis *redis;
    struct kept kept[KEPT_MAX];
    uint64_t clock;
    struct mr_buf params; /* owns the text `params` of the last mr_template_info */
};

struct mr_templates *mr_templates_new(struct mr_redis *redis)
{
    struct mr_templates *t = mr_alloc(sizeof *t);
    t->redis = redis;
    mr_buf_init(&t->params, (size_t)1 << 20);
    return t;
}

static void drop(struct kept *k)
{
    if (!k->name) return;
    mr_release(k->name);
    mr_buf_fini(&k->text);
    mr_json_template_free(&k->parsed);
    *k = (struct kept){0};
}

void mr_templates_free(struct mr_templates **tp)
{
    struct mr_templates *t = *tp;
    *tp = NULL;
    if (!t) return;
    for (uint32_t i = 0; i < KEPT_MAX; i++)
        drop(&t->kept[i]);
    mr_buf_fini(&t->params);
    mr_release(t);
}

static struct kept *find(struct mr_templates *t, struct mr_str name)
{
    for (uint32_t i = 0; i < KEPT_MAX; i++)
        if (t->kept[i].name && mr_str_eq(mr_str(t->kept[i].name), name)) {
            t->kept[i].used = ++t->clock;
            return &t->kept[i];
        }
    return NULL;
}

static struct kept *keep(struct mr_templates *t, struct mr_str name, struct mr_str text,
    uint64_t installed_ns, struct mr_json_template **parsed)
{
    struct kept *k = find(t, name);
    for (uint32_t i = 0; i < KEPT_MAX && !k; i++)
        if (!t->kept[i].name) k = &t->kept[i];
    if (!k) {
        k = &t->kept[0];
        for (uint32_t i = 1; i < KEPT_MAX; i++)
            if (t->kept[i].used < k->used) k = &t->kept[i];
    }
    struct mr_buf own;
    mr_buf_init(&own, TEXT_BYTES_MAX);
    /* the text is copied first, since it may belong to the entry that is replaced */
    mr_buf_add_str(&own, text);
    char *own_name = mr_alloc(name.n + 1);
    memcpy(own_name, name.p, name.n);
    drop(k);
    *k = (struct kept){
        .name = own_name, .installed_ns = installed_ns, .text = own, .used = ++t->clock};
    k->parsed = MR_STEAL(*parsed);
    return k;
}

static int check_name(struct mr_str name, struct mr_error *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    bool ok = name.n && name.n <= NAME_BYTES_MAX;
    for (size_t i = 0; i < name.n && ok; i++)
        ok = name.p[i] && strchr(allowed, name.p[i]);
    if (ok) return MR_OK;
    return mr_fail(e, MR_EINVAL,
        "name: a template's name has 1 to %d letters, digits, '_', '-', '.'%s", NAME_BYTES_MAX,
        name.n ? "" : "; give it as ?name=, or as the field \"name\" of the job");
}

static int no_such(struct mr_str name, struct mr_error *e)
{
    return mr_fail(e, MR_ENOENT, "there is no template \"%.*s\"", MR_STR_ARG(name));
}

/* Reads a record of Redis, which is a pack: [installed_ns, text]. */
static bool read_record(struct mr_str bytes, uint64_t *installed_ns, struct mr_str *text)
{
    struct mr_pack_reader r = mr_pack_read(bytes);
    struct mr_pack_item item;
    if (mr_pack_next(&r, &item) || item.type != MR_PACK_LIST || item.count != 2) return false;
    if (mr_pack_next(&r, &item) || item.type != MR_PACK_INT) return false;
    *installed_ns = (uint64_t)item.i;
    if (mr_pack_next(&r, &item) || item.type != MR_PACK_BYTES) return false;
    *text = item.bytes;
    return true;
}

/* Finds a template in the cache, or reads it from Redis into the cache. */
static int load(struct mr_templates *t, struct mr_str name, struct kept **out, struct mr_error *e)
{
    int err = check_name(name, e);
    if (err) return err;
    *out = find(t, name);
    if (*out) return MR_OK;
    const struct mr_str argv[] = {MR_STR("HGET"), MR_STR(KEY), name};
    struct mr_reply *reply = NULL;
    err = mr_redis_call(t->redis, MR_ARRAY_LEN(argv), argv, &reply, e);
    if (err) return err;
    uint64_t installed_ns = 0;
    struct mr_str text;
    struct mr_json_template *parsed = NULL;
    if (mr_reply_type(reply) == MR_REPLY_NIL)
        err = no_such(name, e);
    else if (!read_record(mr_reply_text(reply), &installed_ns, &text))
        err = mr_fail(e, MR_EFORMAT, "Redis: template \"%.*s\" is damaged", MR_STR_ARG(name));
    if (!err) err = mr_json_template_new(text, &parsed, e);
    if (!err) *out = keep(t, name, text, installed_ns, &parsed);
    mr_reply_free(&reply);
    return err;
}

static void info_of(struct mr_templates *t, const struct kept *k, struct mr_template_info *out)
{
    mr_buf_clear(&t->params);
    mr_json_template_params(k->parsed, &t->params);
    *out = (struct mr_template_info){.name = mr_str(k->name),
        .installed_ns = k->installed_ns,
        .nbytes = k->text.n,
        .params = mr_buf_str(&t->params),
        .json = mr_buf_str(&k->text)};
}

static int store(struct mr_templates *t, struct mr_str name, struct mr_str text, uint64_t now,
    struct mr_error *e)
{
    struct mr_buf record;
    struct mr_reply *reply = NULL;
    const struct mr_str count[] = {MR_STR("HLEN"), MR_STR(KEY)};
    int err = mr_redis_call(t->redis, MR_ARRAY_LEN(count), count, &reply, e);
    if (err) return err;
    bool is_full = mr_reply_int(reply) >= TEMPLATES_MAX;
    mr_reply_free(&reply);
    if (is_full)
        return mr_fail(e, MR_ELIMIT, "there are %d templates already; delete some", TEMPLATES_MAX);
    mr_buf_init(&record, TEXT_BYTES_MAX + 64);
    mr_pack_list(&record, 2);
    mr_pack_uint(&record, now);
    mr_pack_bytes(&record, text);
    const struct mr_str argv[] = {MR_STR("HSET"), MR_STR(KEY), name, mr_buf_str(&record)};
    err = mr_redis_call(t->redis, MR_ARRAY_LEN(argv), argv, &reply, e);
    mr_reply_free(&reply);
    mr_buf_fini(&record);
    return err;
}

/* If no name was given, uses the name in the text. */
static void name_in(const struct mr_graph *g, struct mr_str *name)
{
    if (!name->n) *name = g->job.name;
}

static int install(struct mr_templates *t, struct mr_str name, struct mr_str text, bool replace,
    struct mr_json_template **parsed, struct kept **out, struct mr_error *e)
{
    struct kept *old = NULL;
    int err = load(t, name, &old, NULL);
    if (err && err != MR_ENOENT && err != MR_EFORMAT && err != MR_EINVAL)
        return mr_fail(e, err, "the template cannot be kept: %s", mr_err_words(err));
    if (old && mr_str_eq(mr_buf_str(&old->text), text)) {
        *out = old;
        return MR_OK;
    }
    if (old && !replace)
        return mr_fail(e, MR_EEXIST,
            "there is another template \"%.*s\" already; install with replace=true, or delete it",
            MR_STR_ARG(name));
    uint64_t now = mr_clock_wall();
    err = store(t, name, text, now, e);
    if (!err) *out = keep(t, name, text, now, parsed);
    return err;
}

int mr_templates_install(struct mr_templates *t, struct mr_str name, struct mr_str text,
    bool replace, const struct mr_graph_catalogue *catalogue, struct mr_template_info *out,
    struct mr_error *e)
{
    struct mr_json_template *parsed = NULL;
    MR_AUTO(mr_graph_free) struct mr_graph *g = NULL;
    struct kept *k = NULL;
    if (text.n > TEXT_BYTES_MAX)
        return mr_fail(
            e, MR_ETOOBIG, "a template of %zu bytes, the limit is %zu", text.n, TEXT_BYTES_MAX);
    int err = mr_json_template_new(text, &parsed, e);
    if (!err) err = mr_json_template_graph(parsed, (struct mr_str){0}, catalogue, &g, NULL, e);
    if (!err) name_in(g, &name);
    if (!err) err = check_name(name, e);
    if (!err) err = install(t, name, text, replace, &parsed, &k, e);
    mr_json_template_free(&parsed);
    if (err) return err;
    info_of(t, k, out);
    out->tasks = g->nodes_count;
    return MR_OK;
}

int mr_templates_get(struct mr_templates *t, struct mr_str name,
    const struct mr_graph_catalogue *catalogue, struct mr_template_info *out, struct mr_error *e)
{
    struct kept *k = NULL;
    MR_AUTO(mr_graph_free) struct mr_graph *g = NULL;
    struct mr_error why;
    int err = load(t, name, &k, e);
    if (err) return err;
    info_of(t, k, out);
    if (!mr_json_template_graph(k->parsed, (struct mr_str){0}, catalogue, &g, NULL, &why))
        out->tasks = g->nodes_count; /* `tasks` stays 0 if an operator no longer exists */
    return MR_OK;
}

static int by_name(const void *a, const void *b)
{
    return mr_str_cmp(
        ((const struct mr_template_info *)a)->name, ((const struct mr_template_info *)b)->name);
}

int mr_templates_list(struct mr_templates *t,
    void (*fn)(void *ctx, const struct mr_template_info *info), void *ctx, struct mr_error *e)
{
    const struct mr_str argv[] = {MR_STR("HGETALL"), MR_STR(KEY)};
    struct mr_reply *reply = NULL;
    int err = mr_redis_call(t->redis, MR_ARRAY_LEN(argv), argv, &reply, e);
    if (err) return err;
    size_t n = mr_reply_count(reply) / 2, good = 0;
    struct mr_template_info *list = mr_alloc_array(n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        struct mr_str text;
        struct mr_template_info *x = &list[good];
        x->name = mr_reply_text(mr_reply_at(reply, 2 * i));
        if (!read_record(mr_reply_text(mr_reply_at(reply, 2 * i + 1)), &x->installed_ns, &text))
            continue;
        x->nbytes = text.n;
        good++;
    }
    qsort(list, good, sizeof *list, by_name);
    for (size_t i = 0; i < good; i++)
        fn(ctx, &list[i]);
    mr_release(list);
    mr_reply_free(&reply);
    return MR_OK;
}

int mr_templates_delete(struct mr_templates *t, struct mr_str name, struct mr_error *e)
{
    const struct mr_str argv[] = {MR_STR("HDEL"), MR_STR(KEY), name};
    struct mr_reply *reply = NULL;
    int err = check_name(name, e);
    if (!err) err = mr_redis_call(t->redis, MR_ARRAY_LEN(argv), argv, &reply, e);
    if (err) return err;
    struct kept *k = find(t, name);
    if (k) drop(k);
    if (!mr_reply_int(reply)) err = no_such(name, e);
    mr_reply_free(&reply);
    return err;
}

/* Evicts the least recently used entries while the cached graphs have too many bytes. Keeps
 * `now`. */
static void bound(struct mr_templates *t, const struct kept *now)
{
    for (;;) {
        size_t bytes = 0;
        struct kept *oldest = NULL;
        for (uint32_t i = 0; i < KEPT_MAX; i++) {
            struct kept *k = &t->kept[i];
            size_t own = k->name ? mr_json_template_cached_bytes(k->parsed) : 0;
            bytes += own;
            if (own && k != now && (!oldest || k->used < oldest->used)) oldest = k;
        }
        if (bytes <= KEPT_BYTES_MAX || !oldest) return;
        mr_json_template_drop(oldest->parsed);
    }
}

int mr_templates_graph(struct mr_templates *t, struct mr_str name, struct mr_str given,
    const struct mr_graph_catalogue *catalogue, struct mr_graph **out, uint64_t *id,
    struct mr_error *e)
{
    struct kept *k = NULL;
    uint64_t shape = 0;
    int err = load(t, name, &k, e);
    if (!err) err = mr_json_template_graph(k->parsed, given, catalogue, out, &shape, e);
    if (err) return err;
    *id = mr_hash_u64(k->installed_ns ^ shape) | 1;
    bound(t, k);
    return MR_OK;
}
