/* Writes and reads the options of tasks and jobs as maps in MessagePack. The names are those of the
 * job's JSON. Durations are in ns and amounts in millionths, so that nothing is rounded. */
#include "graph/options_pack.h"

#include "base/limits.h"
#include "base/pack.h"
#include "graph/suggest.h"

static void key(struct mr_buf *b, const char *name)
{
    mr_pack_text(b, mr_str(name));
}

void mr_task_options_pack(struct mr_buf *b, const struct mr_task_options *o)
{
    mr_pack_map(b, (uint32_t)__builtin_popcount(o->given));
    if (o->given & MR_OPTION_RETRIES) key(b, "retries"), mr_pack_uint(b, o->retries);
    if (o->given & MR_OPTION_PRIORITY) key(b, "priority"), mr_pack_int(b, o->priority);
    if (o->given & MR_OPTION_TIMEOUT) key(b, "timeout_ns"), mr_pack_uint(b, o->timeout);
    if (o->given & MR_OPTION_WORKERS) {
        key(b, "workers");
        mr_pack_list(b, o->workers_count);
        for (uint32_t i = 0; i < o->workers_count; i++)
            mr_pack_text(b, o->workers[i]);
    }
    if (o->given & MR_OPTION_ALLOW_OTHER_WORKERS)
        key(b, "allow_other_workers"), mr_pack_bool(b, o->allow_other_workers);
    if (o->given & MR_OPTION_RESOURCES) {
        key(b, "resources");
        mr_pack_map(b, o->resources_count);
        for (uint32_t i = 0; i < o->resources_count; i++) {
            mr_pack_text(b, o->resources[i].name);
            mr_pack_uint(b, o->resources[i].amount_micro);
        }
    }
    if (o->given & MR_OPTION_PURE) key(b, "pure"), mr_pack_bool(b, o->pure);
    if (o->given & MR_OPTION_PERSIST) {
        key(b, "persist");
        if (o->persist && o->persist_name.n)
            mr_pack_text(b, o->persist_name);
        else
            mr_pack_bool(b, o->persist);
    }
    if (o->given & MR_OPTION_LONG_RUNNING) key(b, "long_running"), mr_pack_bool(b, o->long_running);
}

void mr_job_options_pack(struct mr_buf *b, const struct mr_job_options *o)
{
    mr_pack_map(b, o->unfused ? 9 : 8);
    key(b, "name"), mr_pack_text(b, o->name);
    key(b, "namespace"), mr_pack_text(b, o->name_space);
    key(b, "request_id"), mr_pack_text(b, o->request_id);
    key(b, "params"), mr_pack_bytes(b, o->params);
    key(b, "priority"), mr_pack_int(b, o->priority);
    key(b, "deadline_ns"), mr_pack_uint(b, o->deadline);
    key(b, "on_error"), mr_pack_uint(b, (uint64_t)o->on_error);
    key(b, "labels");
    mr_pack_map(b, o->labels_count);
    for (uint32_t i = 0; i < o->labels_count; i++) {
        mr_pack_text(b, o->labels[i].name);
        mr_pack_text(b, o->labels[i].value);
    }
    if (o->unfused) key(b, "fuse"), mr_pack_bool(b, false);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct source {
    struct mr_pack_reader r;
    struct mr_text_arena *pool;
    struct mr_error *e;
    struct mr_str field;
    struct mr_pack_item item;
};

static int wrong(struct source *s, const char *want)
{
    return mr_fail(s->e, MR_EFORMAT, "options: \"%.*s\" is not %s", MR_SHOWN(s->field), want);
}

static int read_bool(struct source *s, bool *out)
{
    if (s->item.type != MR_PACK_BOOL) return wrong(s, "true or false");
    *out = s->item.boolean;
    return MR_OK;
}

static int read_uint(struct source *s, uint64_t max, uint64_t *out)
{
    if (s->item.type != MR_PACK_INT || s->item.i < 0 || (uint64_t)s->item.i > max)
        return wrong(s, "an integer in its range");
    *out = (uint64_t)s->item.i;
    return MR_OK;
}

/* Reads a priority. A number outside the range becomes the nearest bound, because a journal may
 * hold jobs that an older version accepted. */
static int read_priority(struct source *s, int32_t *out)
{
    if (s->item.type != MR_PACK_INT || s->item.i < INT32_MIN || s->item.i > INT32_MAX)
        return wrong(s, "an integer in its range");
    *out = (int32_t)MR_MAX(-MR_PRIORITY_MAX, MR_MIN(MR_PRIORITY_MAX, s->item.i));
    return MR_OK;
}

static int read_text(struct source *s, struct mr_str *out)
{
    if (s->item.type != MR_PACK_TEXT) return wrong(s, "a text");
    *out = mr_text_arena_copy(s->pool, s->item.bytes);
    return MR_OK;
}

static int read_workers(struct source *s, struct mr_task_options *o)
{
    if (s->item.type != MR_PACK_LIST || s->item.count > MR_OPTION_WORKERS_MAX)
        return wrong(s, "a list of names");
    uint32_t n = s->item.count;
    struct mr_str *workers = mr_text_arena_take(s->pool, n * sizeof *workers);
    for (uint32_t i = 0; i < n; i++) {
        if (mr_pack_next(&s->r, &s->item)) return wrong(s, "whole");
        int err = read_text(s, &workers[i]);
        if (err) return err;
    }
    o->workers = workers;
    o->workers_count = n;
    return MR_OK;
}

static int read_resources(struct source *s, struct mr_task_options *o)
{
    if (s->item.type != MR_PACK_MAP || s->item.count > MR_RESOURCES_MAX)
        return wrong(s, "a map of amounts");
    uint32_t n = s->item.count;
    struct mr_graph_resource *r = mr_text_arena_take(s->pool, n * sizeof *r);
    for (uint32_t i = 0; i < n; i++) {
        if (mr_pack_next(&s->r, &s->item)) return wrong(s, "whole");
        int err = read_text(s, &r[i].name);
        if (err) return err;
        if (mr_pack_next(&s->r, &s->item)) return wrong(s, "whole");
        err = read_uint(s, MR_RESOURCE_AMOUNT_MICRO_MAX, &r[i].amount_micro);
        if (err) return err;
    }
    o->resources = r;
    o->resources_count = n;
    return MR_OK;
}

static int read_persist(struct source *s, struct mr_task_options *o)
{
    if (s->item.type == MR_PACK_BOOL) return read_bool(s, &o->persist);
    o->persist = true;
    if (!s->item.bytes.n) return wrong(s, "a name, true or false");
    return read_text(s, &o->persist_name);
}

static int read_task_field(struct source *s, struct mr_task_options *o, uint32_t *bit)
{
    static const char *const names[] = {"retries", "priority", "timeout_ns", "workers",
        "allow_other_workers", "resources", "pure", "persist", "long_running"};
    uint32_t at = 0;
    while (at < MR_ARRAY_LEN(names) && !mr_str_eq(s->field, mr_str(names[at])))
        at++;
    if (at == MR_ARRAY_LEN(names))
        return mr_fail(s->e, MR_EFORMAT, "options: \"%.*s\" is not known", MR_SHOWN(s->field));
    *bit = 1u << at;
    uint64_t n = 0;
    int err = MR_OK;
    switch (at) {
    case 0:
        err = read_uint(s, MR_RETRIES_MAX, &n);
        o->retries = (uint32_t)n;
        return err;
    case 1: return read_priority(s, &o->priority);
    case 2: return read_uint(s, (uint64_t)(MR_OPTION_SECONDS_MAX * 1e9), &o->timeout);
    case 3: return read_workers(s, o);
    case 4: return read_bool(s, &o->allow_other_workers);
    case 5: return read_resources(s, o);
    case 6: return read_bool(s, &o->pure);
    case 7: return read_persist(s, o);
    default: return read_bool(s, &o->long_running);
    }
}

/* Reads the next field's name and the first item of its value. */
static int next_field(struct source *s)
{
    if (mr_pack_next(&s->r, &s->item) || s->item.type != MR_PACK_TEXT)
        return mr_fail(s->e, MR_EFORMAT, "options: malformed");
    s->field = s->item.bytes;
    if (mr_pack_next(&s->r, &s->item)) return mr_fail(s->e, MR_EFORMAT, "options: malformed");
    return MR_OK;
}

static int open_map(struct source *s, uint32_t *count)
{
    if (mr_pack_next(&s->r, &s->item) || s->item.type != MR_PACK_MAP)
        return mr_fail(s->e, MR_EFORMAT, "options: not a map");
    *count = s->item.count;
    return MR_OK;
}

int mr_task_options_unpack(
    struct mr_str pack, struct mr_text_arena *p, struct mr_task_options *out, struct mr_error *e)
{
    struct source s = {.r = mr_pack_read(pack), .pool = p, .e = e};
    uint32_t count = 0;
    int err = open_map(&s, &count);
    if (err) return err;
    struct mr_task_options o = {0};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bit = 0;
        err = next_field(&s);
        if (!err) err = read_task_field(&s, &o, &bit);
        if (err) return err;
        if (bit <= o.given)
            return mr_fail(e, MR_EFORMAT, "options: \"%.*s\" is out of order", MR_SHOWN(s.field));
        o.given |= bit;
    }
    if (!mr_pack_at_end(&s.r)) return mr_fail(e, MR_EFORMAT, "options: bytes after the end");
    *out = o;
    return MR_OK;
}

static int read_labels(struct source *s, struct mr_job_options *o)
{
    if (s->item.type != MR_PACK_MAP || s->item.count > MR_LABELS_MAX)
        return wrong(s, "a map of texts");
    uint32_t n = s->item.count;
    struct mr_graph_label *labels = mr_text_arena_take(s->pool, n * sizeof *labels);
    for (uint32_t i = 0; i < n; i++) {
        if (mr_pack_next(&s->r, &s->item)) return wrong(s, "whole");
        int err = read_text(s, &labels[i].name);
        if (err) return err;
        if (mr_pack_next(&s->r, &s->item)) return wrong(s, "whole");
        err = read_text(s, &labels[i].value);
        if (err) return err;
    }
    o->labels = labels;
    o->labels_count = n;
    return MR_OK;
}

static int read_params(struct source *s, struct mr_job_options *o)
{
    if (s->item.type != MR_PACK_BYTES) return wrong(s, "bytes");
    if (s->item.bytes.n) {
        int err = mr_pack_check(s->item.bytes, 0, s->e);
        if (err) return err;
    }
    o->params = mr_text_arena_copy(s->pool, s->item.bytes);
    return MR_OK;
}

static int read_job_field(struct source *s, uint32_t at, struct mr_job_options *o)
{
    uint64_t n = 0;
    int err = MR_OK;
    switch (at) {
    case 0: return read_text(s, &o->name);
    case 1: return read_text(s, &o->name_space);
    case 2: return read_text(s, &o->request_id);
    case 3: return read_params(s, o);
    case 4: return read_priority(s, &o->priority);
    case 5: return read_uint(s, (uint64_t)(MR_OPTION_SECONDS_MAX * 1e9), &o->deadline);
    case 6:
        err = read_uint(s, MR_ON_ERROR_CONTINUE, &n);
        o->on_error = (enum mr_on_error)n;
        return err;
    case 7: return read_labels(s, o);
    default:
        if (s->item.type != MR_PACK_BOOL) return wrong(s, "a bool");
        o->unfused = !s->item.boolean;
        return MR_OK;
    }
}

int mr_job_options_unpack(
    struct mr_str pack, struct mr_text_arena *p, struct mr_job_options *out, struct mr_error *e)
{
    static const char *const names[] = {"name", "namespace", "request_id", "params", "priority",
        "deadline_ns", "on_error", "labels", "fuse"};
    struct source s = {.r = mr_pack_read(pack), .pool = p, .e = e};
    uint32_t count = 0;
    int err = open_map(&s, &count);
    if (err) return err;
    if (count != MR_ARRAY_LEN(names) && count != MR_ARRAY_LEN(names) - 1)
        return mr_fail(e, MR_EFORMAT, "options of the job: %u fields, not %zu or one less", count,
            MR_ARRAY_LEN(names));
    struct mr_job_options o = {0};
    for (uint32_t i = 0; i < count; i++) {
        err = next_field(&s);
        if (!err && !mr_str_eq(s.field, mr_str(names[i])))
            err = mr_fail(e, MR_EFORMAT, "options of the job: \"%.*s\" where \"%s\" belongs",
                MR_SHOWN(s.field), names[i]);
        if (!err) err = read_job_field(&s, i, &o);
        if (err) return err;
    }
    if (!mr_pack_at_end(&s.r)) return mr_fail(e, MR_EFORMAT, "options: bytes after the end");
    *out = o;
    return MR_OK;
}
