/* The steps of a critical path cover the whole time of a job that is over. So the differences
 * between the parts of two critical paths add up to the difference between the wall times. */
#include "cli/trace/compare.h"

#include "account/class.h"
#include "base/alloc.h"
#include "cli/client/client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CAUSES_NAMED 3 /* most causes that mr_compare_sum_up names */

static const char *measure_name(enum mr_compare_measure measure)
{
    static const char *const names[] = {[MR_COMPARE_TASKS] = "tasks",
        [MR_COMPARE_WALL] = "wall_ns",
        [MR_COMPARE_CPU] = "cpu_ns",
        [MR_COMPARE_QUEUE] = "queue_ns",
        [MR_COMPARE_BYTES] = "nbytes",
        [MR_COMPARE_MEDIAN] = "median_ns",
        [MR_COMPARE_P99] = "p99_ns"};
    return names[measure];
}

static int64_t number_of(yyjson_val *from, const char *name)
{
    return (int64_t)mr_json_get_u64(from, name);
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct rows {
    struct mr_compare_time **rows;
    uint32_t *count, *room;
};

/* Adds a time to the row of a class and an operator, which is made if it does not exist. */
static void time_add(
    const struct rows *r, bool is_after, const char *class, const char *op, int64_t ns)
{
    uint32_t i = 0;
    while (i < *r->count && (strcmp((*r->rows)[i].class, class) || strcmp((*r->rows)[i].op, op)))
        i++;
    if (i == *r->room) {
        uint32_t more = MR_MAX(32u, *r->room * 2);
        *r->rows = mr_grow(*r->rows, *r->room * sizeof **r->rows, more * sizeof **r->rows);
        *r->room = more;
    }
    struct mr_compare_time *row = &(*r->rows)[i];
    if (i == *r->count) *row = (struct mr_compare_time){.class = class, .op = op};
    if (i == *r->count) ++*r->count;
    *(is_after ? &row->after : &row->before) += ns;
}

/* Adds the times in the member `classes` of `from`, each divided by `divisor`. */
static void classes_add(const struct rows *r, bool is_after, yyjson_val *from, int64_t divisor)
{
    size_t at = 0, max = 0;
    yyjson_val *key = NULL, *value = NULL;
    yyjson_val *classes = yyjson_obj_get(from, "classes");
    yyjson_obj_foreach(classes, at, max, key, value)
    {
        const char *class = yyjson_get_str(key);
        time_add(r, is_after, class, "", number_of(classes, class) / divisor);
    }
}

/* Adds the critical path. If a task ran in a step, the step's time goes to the row of the task's
 * operator, not to that of the class alone. */
static void path_add(const struct rows *r, bool is_after, yyjson_val *path)
{
    const char *ran = mr_account_class_name(MR_ACCOUNT_DEPENDENCY);
    size_t at = 0, max = 0;
    yyjson_val *step = NULL;
    classes_add(r, is_after, path, 1);
    yyjson_arr_foreach(yyjson_obj_get(path, "steps"), at, max, step)
    {
        const char *op = mr_json_get_text(step, "op");
        int64_t ns = number_of(step, "to_ns") - number_of(step, "from_ns");
        if (strcmp(mr_json_get_text(step, "class"), ran) || !op[0]) continue;
        time_add(r, is_after, ran, op, ns);
        time_add(r, is_after, ran, "", -ns);
    }
}

static struct mr_compare_op *op_of(struct mr_compare *c, const char *op)
{
    for (uint32_t i = 0; i < c->ops_count; i++)
        if (!strcmp(c->ops[i].op, op)) return &c->ops[i];
    if (c->ops_count == c->ops_room) {
        uint32_t more = MR_MAX(16u, c->ops_room * 2);
        c->ops = mr_grow(c->ops, c->ops_room * sizeof *c->ops, more * sizeof *c->ops);
        c->ops_room = more;
    }
    c->ops[c->ops_count].op = op;
    return &c->ops[c->ops_count++];
}

static void ops_add(struct mr_compare *c, bool is_after, yyjson_val *root)
{
    size_t at = 0, max = 0;
    yyjson_val *row = NULL;
    yyjson_arr_foreach(yyjson_obj_get(root, "ops"), at, max, row)
    {
        struct mr_compare_op *o = op_of(c, mr_json_get_text(row, "op"));
        for (unsigned i = 0; i < MR_COMPARE_MEASURES; i++)
            (is_after ? o->after : o->before)[i] =
                number_of(row, measure_name((enum mr_compare_measure)i));
    }
}

/* ---- order ----------------------------------------------------------------------------------- */

static int64_t size_of(int64_t change)
{
    return change < 0 ? -change : change;
}

static int by_change(const void *a, const void *b)
{
    const struct mr_compare_time *x = a, *y = b;
    int64_t p = size_of(x->after - x->before), q = size_of(y->after - y->before);
    if (p != q) return p > q ? -1 : 1;
    int order = strcmp(x->class, y->class);
    return order ? order : strcmp(x->op, y->op);
}

static int by_explanation(const void *a, const void *b)
{
    const struct mr_compare_op *x = a, *y = b;
    int64_t p = size_of(x->path_change), q = size_of(y->path_change);
    if (p != q) return p > q ? -1 : 1;
    p = size_of(x->after[MR_COMPARE_WALL] - x->before[MR_COMPARE_WALL]);
    q = size_of(y->after[MR_COMPARE_WALL] - y->before[MR_COMPARE_WALL]);
    if (p != q) return p > q ? -1 : 1;
    return strcmp(x->op, y->op);
}

/* Sorts rows and drops those that are 0 in both jobs. */
static void sort_times(const struct rows *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < *r->count; i++)
        if ((*r->rows)[i].before || (*r->rows)[i].after) (*r->rows)[n++] = (*r->rows)[i];
    *r->count = n;
    if (n) qsort(*r->rows, n, sizeof **r->rows, by_change);
}

static struct mr_compare_job job_of(yyjson_val *root)
{
    return (struct mr_compare_job){
        number_of(root, "wall_ns"), number_of(root, "slot_ns"), number_of(root, "slots")};
}

void mr_compare_profiles(yyjson_val *before, yyjson_val *after, struct mr_compare *out)
{
    yyjson_val *roots[] = {before, after};
    *out = (struct mr_compare){.before = job_of(before), .after = job_of(after)};
    const struct rows causes = {&out->causes, &out->causes_count, &out->causes_room};
    const struct rows classes = {&out->classes, &out->classes_count, &out->classes_room};
    out->has_path =
        yyjson_obj_get(before, "critical_path") && yyjson_obj_get(after, "critical_path");
    for (unsigned i = 0; i < 2; i++) {
        int64_t slots = MR_MAX(number_of(roots[i], "slots"), (int64_t)1);
        classes_add(&classes, i == 1, roots[i], 1);
        ops_add(out, i == 1, roots[i]);
        if (out->has_path)
            path_add(&causes, i == 1, yyjson_obj_get(roots[i], "critical_path"));
        else
            classes_add(&causes, i == 1, roots[i], slots);
    }
    sort_times(&causes);
    sort_times(&classes);
    for (uint32_t i = 0; i < out->causes_count; i++)
        if (out->causes[i].op[0])
            op_of(out, out->causes[i].op)->path_change =
                out->causes[i].after - out->causes[i].before;
    if (out->ops_count) qsort(out->ops, out->ops_count, sizeof *out->ops, by_explanation);
}

void mr_compare_fini(struct mr_compare *c)
{
    mr_release(c->causes);
    mr_release(c->classes);
    mr_release(c->ops);
}

/* ---- answers --------------------------------------------------------------------------------- */

void mr_compare_sum_up(
    const struct mr_compare *c, const char *before, const char *after, struct mr_buf *out)
{
    int64_t change = c->after.wall_ns - c->before.wall_ns;
    unsigned named = 0;
    if (!c->before.wall_ns || size_of(change) * 100 < c->before.wall_ns) {
        mr_buf_printf(out, "job %s took as long as job %s, within 1 %%", after, before);
        return;
    }
    mr_buf_printf(out, "job %s took %.3f s (%.1f %%) %s than job %s", after,
        (double)size_of(change) / 1e9, (double)size_of(change) * 100 / (double)c->before.wall_ns,
        change < 0 ? "less" : "more", before);
    for (uint32_t i = 0; i < c->causes_count && named < CAUSES_NAMED; i++) {
        const struct mr_compare_time *t = &c->causes[i];
        int64_t part = t->after - t->before;
        if ((part < 0) != (change < 0) || size_of(part) * 10 < size_of(change)) continue;
        mr_buf_printf(out, "%s%s%s%s%s %+.3f s", named ? ", " : ": ", t->class,
            t->op[0] ? " (" : "", t->op, t->op[0] ? ")" : "", (double)part / 1e9);
        named++;
    }
}

static void add_change(
    yyjson_mut_doc *d, yyjson_mut_val *to, const char *suffix, int64_t before, int64_t after)
{
    const char *const names[] = {"before", "after", "change"};
    const int64_t values[] = {before, after, after - before};
    for (unsigned i = 0; i < 3; i++) {
        char name[32], text[24];
        (void)snprintf(name, sizeof name, "%s%s", names[i], suffix);
        (void)snprintf(text, sizeof text, "%" PRId64, values[i]);
        /* The number is quoted, as in the gateway's answers. */
        (void)yyjson_mut_obj_add(to, yyjson_mut_strcpy(d, name), yyjson_mut_strcpy(d, text));
    }
}

static void add_times(yyjson_mut_doc *d, const char *name, const struct mr_compare_time *rows,
    uint32_t count, bool has_op)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(d, yyjson_mut_doc_get_root(d), name);
    for (uint32_t i = 0; i < count; i++) {
        yyjson_mut_val *row = yyjson_mut_arr_add_obj(d, list);
        (void)yyjson_mut_obj_add_strcpy(d, row, "class", rows[i].class);
        if (has_op) (void)yyjson_mut_obj_add_strcpy(d, row, "op", rows[i].op);
        add_change(d, row, "_ns", rows[i].before, rows[i].after);
    }
}

static void add_job(
    yyjson_mut_doc *d, const char *name, const char *id, const struct mr_compare_job *job)
{
    yyjson_mut_val *o = yyjson_mut_obj_add_obj(d, yyjson_mut_doc_get_root(d), name);
    const char *const names[] = {"wall_ns", "slots", "slot_ns"};
    const int64_t values[] = {job->wall_ns, job->slots, job->slot_ns};
    (void)yyjson_mut_obj_add_strcpy(d, o, "job", id);
    for (unsigned i = 0; i < 3; i++) {
        char text[24];
        (void)snprintf(text, sizeof text, "%" PRId64, values[i]);
        (void)yyjson_mut_obj_add(o, yyjson_mut_strcpy(d, names[i]), yyjson_mut_strcpy(d, text));
    }
}

yyjson_mut_doc *mr_compare_document(
    const struct mr_compare *c, const char *before, const char *after)
{
    yyjson_mut_doc *d = mr_json_object();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(d);
    struct mr_buf sentence;
    add_job(d, "before", before, &c->before);
    add_job(d, "after", after, &c->after);
    (void)yyjson_mut_obj_add_bool(d, root, "has_critical_path", c->has_path);
    add_times(d, "causes", c->causes, c->causes_count, true);
    add_times(d, "classes", c->classes, c->classes_count, false);
    yyjson_mut_val *ops = yyjson_mut_obj_add_arr(d, root, "ops");
    for (uint32_t i = 0; i < c->ops_count; i++) {
        yyjson_mut_val *row = yyjson_mut_arr_add_obj(d, ops);
        (void)yyjson_mut_obj_add_strcpy(d, row, "op", c->ops[i].op);
        for (unsigned k = 0; k < MR_COMPARE_MEASURES; k++) {
            yyjson_mut_val *measure = yyjson_mut_obj(d);
            (void)yyjson_mut_obj_add(
                row, yyjson_mut_str(d, measure_name((enum mr_compare_measure)k)), measure);
            add_change(d, measure, "", c->ops[i].before[k], c->ops[i].after[k]);
        }
    }
    mr_buf_init(&sentence, 4096);
    mr_compare_sum_up(c, before, after, &sentence);
    (void)yyjson_mut_obj_add_strncpy(d, root, "summary", (const char *)sentence.p, sentence.n);
    mr_buf_fini(&sentence);
    return d;
}
