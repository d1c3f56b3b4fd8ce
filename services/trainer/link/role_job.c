/* Builds the JSON of a session's jobs from the session's document. The document was checked when
 * the session was accepted. The few checks here find what would make a job invalid. Without them
 * the scheduler would refuse the job, and its error would name a job that the user did not
 * write. */
#include "services/trainer/link/role_job.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#define PRIORITY 90 /* priority of the roles, higher than that of the tasks that feed a queue */

struct job {
    const struct mr_role_job_spec *spec;
    yyjson_doc *document;
    yyjson_val *root;
    yyjson_mut_doc *doc;
    yyjson_mut_val *out;
    uint32_t placed; /* number of roles that have got a worker */
    struct mr_error *e;
};

static const char *const sets[] = {"train", "validation", "test"};

static yyjson_mut_val *text(struct job *j, struct mr_str s)
{
    return yyjson_mut_strncpy(j->doc, s.p, s.n);
}

static void add(struct job *j, yyjson_mut_val *to, const char *name, yyjson_mut_val *value)
{
    bool done = yyjson_mut_obj_add(to, yyjson_mut_strcpy(j->doc, name), value);
    mr_assert(done);
}

static yyjson_doc *read(struct mr_str document)
{
    /* yyjson writes to the text only with YYJSON_READ_INSITU */
    return yyjson_read(document.p, document.n, 0);
}

static bool has_feed(yyjson_val *root)
{
    return yyjson_is_obj(yyjson_obj_get(root, "graph")) &&
           yyjson_is_str(yyjson_obj_get(yyjson_obj_get(root, "data"), "queue"));
}

static int begin(struct job *j, const struct mr_role_job_spec *spec, struct mr_error *e)
{
    *j = (struct job){.spec = spec, .e = e};
    j->document = read(spec->document);
    j->root = yyjson_doc_get_root(j->document);
    if (!yyjson_is_obj(j->root)) {
        yyjson_doc_free(j->document);
        return mr_fail(
            e, MR_EFORMAT, "session %.*s: its document is damaged", MR_STR_ARG(spec->session));
    }
    j->doc = yyjson_mut_doc_new(NULL);
    j->out = yyjson_mut_obj(j->doc);
    yyjson_mut_doc_set_root(j->doc, j->out);
    return MR_OK;
}

static int end(struct job *j, int err, struct mr_buf *out)
{
    size_t n = 0;
    char *written = err ? NULL : yyjson_mut_write(j->doc, 0, &n);
    if (written) mr_buf_add(out, written, n);
    if (!err && !written) err = mr_fail(j->e, MR_EINVAL, "graph: it cannot be written as JSON");
    if (!err && mr_buf_status(out))
        err = mr_fail(j->e, MR_ETOOBIG, "graph: larger than %zu bytes", out->bytes_max);
    free(written); /* yyjson has allocated the text */
    yyjson_mut_doc_free(j->doc);
    yyjson_doc_free(j->document);
    return err;
}

static void head(struct job *j, const char *what)
{
    const char *name = yyjson_get_str(yyjson_obj_get(j->root, "name"));
    char space[MR_KEY_BYTES_MAX];
    (void)snprintf(space, sizeof space, "training-%.*s", MR_STR_ARG(j->spec->session));
    char title[MR_KEY_BYTES_MAX];
    (void)snprintf(title, sizeof title, "%.200s %s", name ? name : "training", what);
    add(j, j->out, "name", yyjson_mut_strcpy(j->doc, title));
    add(j, j->out, "namespace", yyjson_mut_strcpy(j->doc, space));
    yyjson_mut_val *labels = yyjson_mut_obj(j->doc);
    add(j, labels, "training", text(j, j->spec->session));
    add(j, j->out, "labels", labels);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static bool has_text(yyjson_mut_val *list, const char *wanted)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_mut_val *item = NULL;
    yyjson_mut_arr_foreach(list, at, max, item)
    {
        if (yyjson_mut_equals_str(item, wanted)) return true;
    }
    return false;
}

/* Returns the job's targets: the keys that `data` names, each once. */
static yyjson_mut_val *targets(struct job *j)
{
    yyjson_mut_val *list = yyjson_mut_arr(j->doc);
    yyjson_val *data = yyjson_obj_get(j->root, "data");
    for (size_t i = 0; i < MR_ARRAY_LEN(sets); i++) {
        yyjson_val *set = yyjson_obj_get(data, sets[i]);
        const char *const keys[] = {
            yyjson_get_str(yyjson_obj_get(set, "x")), yyjson_get_str(yyjson_obj_get(set, "y"))};
        for (size_t k = 0; k < MR_ARRAY_LEN(keys); k++)
            if (keys[k] && !has_text(list, keys[k]))
                (void)yyjson_mut_arr_add_strcpy(j->doc, list, keys[k]);
    }
    return list;
}

/* Returns the graph's own parameters, overridden by those of the session. */
static yyjson_mut_val *params(struct job *j, yyjson_val *graph)
{
    yyjson_val *const from[] = {yyjson_obj_get(graph, "params"), yyjson_obj_get(j->root, "params")};
    yyjson_mut_val *out = yyjson_mut_obj(j->doc);
    for (size_t i = 0; i < MR_ARRAY_LEN(from); i++) {
        size_t at = 0;
        size_t max = 0;
        yyjson_val *key = NULL;
        yyjson_val *value = NULL;
        yyjson_obj_foreach(from[i], at, max, key, value)
        {
            (void)yyjson_mut_obj_put(
                out, yyjson_val_mut_copy(j->doc, key), yyjson_val_mut_copy(j->doc, value));
        }
    }
    return out;
}

/* Copies the graph into the job, except for the fields that the session sets. */
static void copy_graph(struct job *j, yyjson_val *graph, const char *what)
{
    static const char *const ours[] = {"name", "namespace", "labels", "params", "targets"};
    head(j, what);
    add(j, j->out, "params", params(j, graph));
    size_t at = 0;
    size_t max = 0;
    yyjson_val *key = NULL;
    yyjson_val *value = NULL;
    yyjson_obj_foreach(graph, at, max, key, value)
    {
        bool is_ours = false;
        for (size_t i = 0; i < MR_ARRAY_LEN(ours); i++)
            is_ours = is_ours || yyjson_equals_str(key, ours[i]);
        if (!is_ours)
            (void)yyjson_mut_obj_add(
                j->out, yyjson_val_mut_copy(j->doc, key), yyjson_val_mut_copy(j->doc, value));
    }
}

/* Makes a job with one empty task. Used if the session's graph only fills the queue that the
 * session trains from, so that there is no data to prepare before the training. */
static void copy_nothing(struct job *j)
{
    yyjson_mut_val *tasks = yyjson_mut_obj(j->doc);
    yyjson_mut_val *nothing = yyjson_mut_obj(j->doc);
    head(j, "data");
    add(j, nothing, "value", yyjson_mut_null(j->doc));
    add(j, tasks, "nothing", nothing);
    add(j, j->out, "tasks", tasks);
}

static void add_own_targets(struct job *j, yyjson_val *graph)
{
    yyjson_val *own = yyjson_obj_get(graph, "targets");
    if (own) add(j, j->out, "targets", yyjson_val_mut_copy(j->doc, own));
}

int mr_role_job_graph(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e)
{
    struct job j;
    int err = begin(&j, spec, e);
    if (err) return err;
    yyjson_val *graph = yyjson_obj_get(j.root, "graph");
    yyjson_mut_val *wanted = targets(&j);
    if (yyjson_mut_arr_size(wanted)) {
        copy_graph(&j, graph, "data");
        add(&j, j.out, "targets", wanted);
    } else if (has_feed(j.root)) {
        copy_nothing(&j);
    } else {
        copy_graph(&j, graph, "data");
        add_own_targets(&j, graph);
    }
    return end(&j, MR_OK, out);
}

int mr_role_job_feed(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e)
{
    struct job j;
    int err = begin(&j, spec, e);
    if (err) return err;
    yyjson_val *graph = yyjson_obj_get(j.root, "graph");
    copy_graph(&j, graph, "feed");
    add_own_targets(&j, graph);
    return end(&j, MR_OK, out);
}

/* ---- the roles ------------------------------------------------------------------------------- */

/* Adds `part`, "x" or "y", of the data set `set` to `to`. If the part is a key of the graph, adds a
 * reference to the key's value. A stored value, {"name": …} or {"object": …}, stays as it is. */
static int add_part(struct job *j, yyjson_mut_val *to, const char *set, const char *part)
{
    yyjson_val *data = yyjson_obj_get(j->root, "data");
    yyjson_val *v = yyjson_obj_get(yyjson_obj_get(data, set), part);
    const char *key = yyjson_get_str(v);
    if (!key && !yyjson_is_obj(v))
        return mr_fail(j->e, MR_EINVAL,
            "data.%s.%s: expected a key of the graph, {\"name\": …} or {\"object\": …}", set, part);
    if (!key) {
        add(j, to, part, yyjson_val_mut_copy(j->doc, v));
        return MR_OK;
    }
    yyjson_mut_val *ref = yyjson_mut_obj(j->doc);
    add(j, ref, "ref", yyjson_mut_strcpy(j->doc, key));
    add(j, to, part, ref);
    return MR_OK;
}

/* True: the role gets the set. Workers get "train". The saver gets the sets to score; the saver is
 * the scorer, or worker 0 if there is none. */
static bool wants_set(const struct job *j, const char *role, uint64_t index, size_t set)
{
    yyjson_val *data = yyjson_obj_get(j->root, "data");
    if (!yyjson_is_obj(yyjson_obj_get(data, sets[set]))) return false;
    if (!strcmp(role, "ps")) return false;
    if (!strcmp(role, "scorer")) return set != 0;
    if (set == 0) return true;
    yyjson_val *scorers = yyjson_obj_get(yyjson_obj_get(j->root, "roles"), "scorer");
    bool has_scorer = yyjson_is_obj(scorers) || yyjson_get_uint(scorers);
    return index == 0 && !has_scorer;
}

static int add_data(struct job *j, yyjson_mut_val *task, const char *role, uint64_t index)
{
    yyjson_mut_val *data = yyjson_mut_obj(j->doc);
    for (size_t i = 0; i < MR_ARRAY_LEN(sets); i++) {
        if (!wants_set(j, role, index, i)) continue;
        yyjson_mut_val *set = yyjson_mut_obj(j->doc);
        int err = add_part(j, set, sets[i], "x");
        if (!err) err = add_part(j, set, sets[i], "y");
        if (err) return err;
        add(j, data, sets[i], set);
    }
    if (!yyjson_mut_obj_size(data)) return MR_OK;
    yyjson_mut_val *kwargs = yyjson_mut_obj(j->doc);
    add(j, kwargs, "data", data);
    add(j, task, "kwargs", kwargs);
    return MR_OK;
}

static int add_role(struct job *j, yyjson_mut_val *tasks, const char *role, uint64_t index)
{
    const struct mr_role_job_spec *s = j->spec;
    yyjson_val *wanted = yyjson_obj_get(yyjson_obj_get(j->root, "roles"), role);
    yyjson_mut_val *task = yyjson_mut_obj(j->doc);
    yyjson_mut_val *args = yyjson_mut_arr(j->doc);
    bool is_exec = yyjson_obj_get(wanted, "exec") != NULL;
    char op[32];
    (void)snprintf(op, sizeof op, "train.%s", is_exec ? "exec" : role);
    add(j, task, "op", yyjson_mut_strcpy(j->doc, op));
    (void)yyjson_mut_arr_append(args, text(j, s->session));
    (void)yyjson_mut_arr_append(args, yyjson_mut_uint(j->doc, index));
    (void)yyjson_mut_arr_append(args, text(j, s->trainer));
    add(j, task, "args", args);
    int err = is_exec ? MR_OK : add_data(j, task, role, index);
    if (err) return err;
    add(j, task, "retries", yyjson_mut_uint(j->doc, MR_RETRIES_MAX));
    add(j, task, "priority", yyjson_mut_sint(j->doc, PRIORITY));
    add(j, task, "pure", yyjson_mut_bool(j->doc, false));
    add(j, task, "long_running", yyjson_mut_bool(j->doc, true));
    if (s->workers_count) {
        yyjson_mut_val *where = yyjson_mut_arr(j->doc);
        (void)yyjson_mut_arr_append(where, text(j, s->workers[j->placed++ % s->workers_count]));
        add(j, task, "workers", where);
        add(j, task, "allow_other_workers", yyjson_mut_bool(j->doc, true));
    }
    char key[64];
    (void)snprintf(key, sizeof key, "%s/%llu", role, (unsigned long long)index);
    add(j, tasks, key, task);
    return MR_OK;
}

int mr_role_job_roles(const struct mr_role_job_spec *spec, struct mr_buf *out, struct mr_error *e)
{
    static const char *const roles[] = {"ps", "worker", "scorer"};
    struct job j;
    int err = begin(&j, spec, e);
    if (err) return err;
    head(&j, "roles");
    yyjson_mut_val *tasks = yyjson_mut_obj(j.doc);
    for (size_t r = 0; r < MR_ARRAY_LEN(roles) && !err; r++) {
        yyjson_val *wanted = yyjson_obj_get(yyjson_obj_get(j.root, "roles"), roles[r]);
        yyjson_val *number = yyjson_is_obj(wanted) ? yyjson_obj_get(wanted, "count") : wanted;
        uint64_t count = yyjson_is_obj(wanted) && !number ? 1 : yyjson_get_uint(number);
        if (count > MR_ROLE_JOB_ROLES_MAX)
            err = mr_fail(e, MR_EINVAL, "roles.%s: at most %d", roles[r], MR_ROLE_JOB_ROLES_MAX);
        for (uint64_t i = 0; i < count && !err; i++)
            err = add_role(&j, tasks, roles[r], i);
    }
    if (!err && !yyjson_mut_obj_size(tasks)) err = mr_fail(e, MR_EINVAL, "roles: none");
    add(&j, j.out, "tasks", tasks);
    return end(&j, err, out);
}
