/* Names of objects, and places (directory.h). Without Redis the names are in a sorted table, owned
 * by the gRPC thread. All durable names are written to the file `names` in the store's directory
 * after each change of a durable name. This is cheap enough, because there are thousands of names,
 * not millions. */
#include "services/objectstore/control/directory.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "host/os/file.h"
#include "host/os/log.h"
#include "store/meta/redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 1048576u
#define FILE_BYTES_MAX ((size_t)1 << 30)
#define PAGE_MAX 1000u
#define NOTED_MAX 8192u /* a power of two */

struct entry {
    char *name;
    mr_object_id object;
    bool has_definition;
    unsigned char definition[16];
    uint64_t nbytes;
    uint64_t created_ns;
    char *summary;
    char *node;
    char *address;
    bool durable;
};

struct mr_names {
    struct mr_redis *redis;
    struct mr_directory *directory; /* the directory in Redis; NULL: `entries` is used instead */
    struct mr_names_config config;
    char *path;
    struct entry **entries; /* sorted by the bytes of their names */
    uint32_t count;
    uint32_t room;
    /* A cache: finds a name by its hash (mr_names_note). If a name is not in the cache, messages to
     * users say "a name" instead. */
    struct {
        uint64_t key;
        char *name;
    } noted[NOTED_MAX];
};

/* ---- the table --------------------------------------------------------------------------------*/

static struct mr_name_record record_of(const struct entry *x)
{
    struct mr_name_record r = {
        .name = mr_str(x->name),
        .object = x->object,
        .has_definition = x->has_definition,
        .nbytes = x->nbytes,
        .summary = mr_str(x->summary),
        .node = mr_str(x->node),
        .address = mr_str(x->address),
        .created_ns = x->created_ns,
        .durable = x->durable,
    };
    memcpy(r.definition, x->definition, sizeof r.definition);
    return r;
}

static char *text_of(struct mr_str s)
{
    return mr_format("%.*s", MR_STR_ARG(s));
}

static void entry_free(struct entry *x)
{
    mr_release(x->name);
    mr_release(x->summary);
    mr_release(x->node);
    mr_release(x->address);
    mr_release(x);
}

/* Returns the index of the first entry whose name is not less than `name`. `found`: that entry has
 * this name. */
static uint32_t lower_bound(const struct mr_names *n, struct mr_str name, bool *found)
{
    uint32_t low = 0;
    uint32_t high = n->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (mr_str_cmp(mr_str(n->entries[middle]->name), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < n->count && mr_str_eq(mr_str(n->entries[low]->name), name);
    return low;
}

static struct entry *entry_new(const struct mr_name_record *r)
{
    struct entry *x = mr_alloc(sizeof *x);
    *x = (struct entry){
        .name = text_of(r->name),
        .object = r->object,
        .has_definition = r->has_definition,
        .nbytes = r->nbytes,
        .created_ns = r->created_ns,
        .summary = text_of(r->summary),
        .node = text_of(r->node),
        .address = text_of(r->address),
        .durable = r->durable,
    };
    memcpy(x->definition, r->definition, sizeof x->definition);
    return x;
}

static void insert(struct mr_names *n, uint32_t at, const struct mr_name_record *r)
{
    if (n->count == n->room) {
        uint32_t room = n->room ? n->room * 2 : 64;
        n->entries = mr_grow(n->entries, n->room * sizeof(void *), room * sizeof(void *));
        n->room = room;
    }
    memmove(&n->entries[at + 1], &n->entries[at], (n->count - at) * sizeof(void *));
    n->entries[at] = entry_new(r);
    n->count++;
}

static void erase(struct mr_names *n, uint32_t at)
{
    entry_free(n->entries[at]);
    n->count--;
    memmove(&n->entries[at], &n->entries[at + 1], (n->count - at) * sizeof(void *));
}

/* ---- the file: a line for each name, fields separated by tabs; no name has a tab --------------*/

static void hex_out(struct mr_buf *b, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mr_buf_printf(b, "%02x", p[i]);
}

static void save(struct mr_names *n)
{
    if (!n->path) return;
    struct mr_buf b;
    mr_buf_init(&b, FILE_BYTES_MAX);
    for (uint32_t i = 0; i < n->count; i++) {
        const struct entry *x = n->entries[i];
        if (!x->durable) continue;
        char id[MR_OBJECT_ID_TEXT_MAX];
        mr_object_id_format(x->object, id);
        mr_buf_printf(&b, "%s\t%" PRIu64 "\t%" PRIu64 "\t", id, x->nbytes, x->created_ns);
        if (x->has_definition) hex_out(&b, x->definition, sizeof x->definition);
        mr_buf_printf(&b, "\t%s\t%s\n", x->name, x->summary);
    }
    struct mr_error e;
    if (mr_file_write(n->path, mr_buf_str(&b), 0600, &e))
        mr_log(MR_ERROR, "names.write_failed", "what=\"%s\"", e.text);
    mr_buf_fini(&b);
}

static struct mr_str cut(struct mr_str *line, char at)
{
    const char *end = line->n ? memchr(line->p, at, line->n) : NULL;
    size_t n = end ? (size_t)(end - line->p) : line->n;
    struct mr_str field = {line->p, n};
    size_t skip = end ? n + 1 : n;
    *line = (struct mr_str){line->p + skip, line->n - skip};
    return field;
}

static bool hex_in(struct mr_str s, unsigned char *out, size_t n)
{
    if (s.n != 2 * n) return false;
    for (size_t i = 0; i < n; i++) {
        char two[3] = {s.p[2 * i], s.p[2 * i + 1], 0};
        char *end;
        out[i] = (unsigned char)strtoul(two, &end, 16);
        if (*end) return false;
    }
    return true;
}

static uint64_t number_in(struct mr_str s)
{
    char text[24] = "";
    memcpy(text, s.p, MR_MIN(s.n, sizeof text - 1));
    return strtoull(text, NULL, 10);
}

static bool load_line(struct mr_names *n, struct mr_str line)
{
    struct mr_name_record r = {.durable = true};
    if (mr_object_id_parse(cut(&line, '\t'), &r.object)) return false;
    r.nbytes = number_in(cut(&line, '\t'));
    r.created_ns = number_in(cut(&line, '\t'));
    struct mr_str definition = cut(&line, '\t');
    r.has_definition = definition.n > 0;
    if (r.has_definition && !hex_in(definition, r.definition, sizeof r.definition)) return false;
    r.name = cut(&line, '\t');
    r.summary = line;
    if (!mr_utf8_is_key(r.name, MR_KEY_BYTES_MAX)) return false;
    bool found;
    uint32_t at = lower_bound(n, r.name, &found);
    if (!found && n->count < NAMES_MAX) insert(n, at, &r);
    return true;
}

static int load(struct mr_names *n, struct mr_error *e)
{
    struct mr_buf b;
    mr_buf_init(&b, FILE_BYTES_MAX);
    int err = mr_file_read(n->path, &b, e);
    if (err == MR_ENOENT) {
        mr_buf_fini(&b);
        return MR_OK;
    }
    struct mr_str rest = mr_buf_str(&b);
    for (int line = 1; !err && rest.n; line++)
        if (!load_line(n, cut(&rest, '\n')))
            mr_log(MR_ERROR, "names.damaged", "file=%s line=%d", n->path, line);
    mr_buf_fini(&b);
    return err;
}

/* ---- names and places -------------------------------------------------------------------------*/

static void on_state(void *ctx, bool here, const char *why)
{
    const struct mr_names *n = ctx;
    (void)why;
    if (here && n->config.here) n->config.here(n->config.ctx);
}

int mr_names_open(const struct mr_names_config *config, struct mr_names **out, struct mr_error *e)
{
    struct mr_names *n = mr_alloc(sizeof *n);
    n->config = *config;
    int err = MR_OK;
    if (config->redis) {
        struct mr_redis_config redis = {
            .address = config->redis, .password = config->password, .on_state = on_state, .ctx = n};
        err = mr_redis_open(&redis, &n->redis, e);
        if (!err) n->directory = mr_directory_new(n->redis, NULL);
    } else if (config->dir) {
        n->path = mr_format("%s/names", config->dir);
        err = load(n, e);
    }
    if (err) {
        mr_names_close(&n);
        return err;
    }
    *out = n;
    return MR_OK;
}

void mr_names_close(struct mr_names **pn)
{
    struct mr_names *n = MR_STEAL(*pn);
    if (!n) return;
    /* comes first, since the connection's thread calls functions of the directory */
    mr_redis_close(&n->redis);
    if (n->directory) mr_directory_free(&n->directory);
    for (uint32_t i = 0; i < n->count; i++)
        entry_free(n->entries[i]);
    for (uint32_t i = 0; i < NOTED_MAX; i++)
        mr_release(n->noted[i].name);
    mr_release(n->entries);
    mr_release(n->path);
    mr_release(n);
}

void mr_names_set(
    struct mr_names *n, const struct mr_name_record *record, bool replace, mr_name_fn fn, void *ctx)
{
    if (n->directory) {
        mr_directory_name(n->directory, record, replace, fn, ctx);
        return;
    }
    bool found;
    uint32_t at = lower_bound(n, record->name, &found);
    bool other = found && !mr_object_id_eq(n->entries[at]->object, record->object);
    int err = MR_OK;
    if (other && !replace) err = MR_EEXIST;
    if (!found && n->count == NAMES_MAX) {
        fn(ctx, MR_ELIMIT, NULL);
        return;
    }
    if (!err) {
        bool was_durable = found && n->entries[at]->durable;
        /* read now, since `record` may lie in the entry that is freed below */
        bool durable = record->durable;
        struct entry *old = found ? n->entries[at] : NULL;
        if (found)
            n->entries[at] = entry_new(record);
        else
            insert(n, at, record);
        if (old) entry_free(old);
        if (durable || was_durable) save(n);
    }
    struct mr_name_record now = record_of(n->entries[at]);
    fn(ctx, err, &now);
}

void mr_names_resolve(struct mr_names *n, struct mr_str name, mr_name_fn fn, void *ctx)
{
    if (n->directory) {
        mr_directory_resolve(n->directory, name, fn, ctx);
        return;
    }
    bool found;
    uint32_t at = lower_bound(n, name, &found);
    struct mr_name_record r = {0};
    if (found) r = record_of(n->entries[at]);
    fn(ctx, found ? MR_OK : MR_ENOENT, found ? &r : NULL);
}

void mr_names_remove(
    struct mr_names *n, struct mr_str name, mr_object_id only, mr_name_fn fn, void *ctx)
{
    if (n->directory) {
        mr_directory_unname(n->directory, name, only, fn, ctx);
        return;
    }
    bool found;
    uint32_t at = lower_bound(n, name, &found);
    bool any = mr_object_id_is_none(only);
    if (!found || (!any && !mr_object_id_eq(n->entries[at]->object, only))) {
        fn(ctx, MR_ENOENT, NULL);
        return;
    }
    struct mr_name_record r = record_of(n->entries[at]);
    bool durable = r.durable;
    fn(ctx, MR_OK, &r);
    erase(n, at);
    if (durable) save(n);
}

void mr_names_list(struct mr_names *n, struct mr_str prefix, struct mr_str after,
    uint32_t count_max, mr_names_fn fn, void *ctx)
{
    if (n->directory) {
        mr_directory_names(n->directory, prefix, after, count_max, fn, ctx);
        return;
    }
    bool found;
    bool from_after = mr_str_cmp(after, prefix) > 0;
    uint32_t at = lower_bound(n, from_after ? after : prefix, &found);
    if (found && from_after) at++;
    count_max = MR_MIN(count_max, PAGE_MAX);
    struct mr_name_record *records = mr_alloc_array(count_max + 1, sizeof *records);
    size_t count = 0;
    bool more = false;
    for (; at < n->count; at++) {
        struct mr_str name = mr_str(n->entries[at]->name);
        if (name.n < prefix.n || memcmp(name.p, prefix.p, prefix.n)) break;
        more = count == count_max;
        if (more) break;
        records[count++] = record_of(n->entries[at]);
    }
    fn(ctx, MR_OK, records, count, more);
    mr_release(records);
}

void mr_names_place(
    struct mr_names *n, const struct mr_place_record *record, mr_done_fn fn, void *ctx)
{
    if (n->directory)
        mr_directory_place(n->directory, record, fn, ctx);
    else
        fn(ctx, MR_OK);
}

void mr_names_unplace(
    struct mr_names *n, mr_object_id id, struct mr_str node, mr_done_fn fn, void *ctx)
{
    if (n->directory)
        mr_directory_unplace(n->directory, id, node, fn, ctx);
    else
        fn(ctx, MR_OK);
}

void mr_names_places(struct mr_names *n, struct mr_str cursor, mr_places_fn fn, void *ctx)
{
    if (n->directory)
        mr_directory_places(n->directory, cursor, fn, ctx);
    else
        fn(ctx, MR_OK, NULL, 0, MR_STR("0"));
}

void mr_names_find(struct mr_names *n, mr_object_id id, mr_place_fn fn, void *ctx)
{
    if (n->directory)
        mr_directory_find(n->directory, id, fn, ctx);
    else
        fn(ctx, MR_ENOENT, NULL);
}

void mr_names_note(struct mr_names *n, uint64_t key, struct mr_str name)
{
    uint32_t at = (uint32_t)key & (NOTED_MAX - 1);
    mr_release(n->noted[at].name);
    n->noted[at].key = key;
    n->noted[at].name = text_of(name);
}

const char *mr_names_by_key(const struct mr_names *n, uint64_t key)
{
    uint32_t at = (uint32_t)key & (NOTED_MAX - 1);
    return n->noted[at].name && n->noted[at].key == key ? n->noted[at].name : NULL;
}
