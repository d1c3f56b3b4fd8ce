#include "cli/trace/profile_offline.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>

struct making {
    yyjson_mut_doc *doc;
    const struct mr_job_account *account;
    const struct mr_graph *graph; /* NULL: the journal does not have the job's graph */
};

static void add_u64(struct making *m, yyjson_mut_val *to, const char *name, uint64_t v)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, v);
    /* The number is quoted, as in the gateway's answers. */
    (void)yyjson_mut_obj_add_strcpy(m->doc, to, name, text);
}

static void add_text(struct making *m, yyjson_mut_val *to, const char *name, struct mr_str s)
{
    (void)yyjson_mut_obj_add_strncpy(m->doc, to, name, s.p ? s.p : "", s.n);
}

static void add_classes(struct making *m, yyjson_mut_val *to, const struct mr_account_sums *sums)
{
    yyjson_mut_val *classes = yyjson_mut_obj_add_obj(m->doc, to, "classes");
    for (uint32_t i = 0; i < MR_ACCOUNT_CLASSES; i++)
        add_u64(m, classes, mr_account_class_name((enum mr_account_class)i), sums->ns[i]);
}

static void add_op(struct making *m, yyjson_mut_val *ops, const struct mr_job_account_op *o)
{
    yyjson_mut_val *row = yyjson_mut_arr_add_obj(m->doc, ops);
    add_text(m, row, "op", o->name);
    add_u64(m, row, "tasks", o->attempts);
    add_u64(m, row, "wall_ns", o->wall_ns);
    add_u64(m, row, "cpu_ns", o->cpu_ns);
    add_u64(m, row, "queue_ns", o->queue_ns);
    add_u64(m, row, "nbytes", o->bytes);
    add_u64(m, row, "median_ns", o->median_ns);
    add_u64(m, row, "p99_ns", o->p99_ns);
    add_u64(m, row, "white_ns", o->white_ns);
}

static void add_step(struct making *m, yyjson_mut_val *steps, const struct mr_job_account_step *s)
{
    const struct mr_job_account *a = m->account;
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(m->doc, steps);
    bool has_key = m->graph && s->index < m->graph->nodes_count;
    add_u64(m, o, "from_ns", s->from_ns);
    add_u64(m, o, "to_ns", s->to_ns);
    (void)yyjson_mut_obj_add_str(m->doc, o, "class", mr_account_class_name(s->class));
    add_text(m, o, "key", has_key ? mr_graph_key(m->graph, s->index) : MR_STR(""));
    add_text(m, o, "op", s->op < a->ops_count ? a->ops[s->op].name : MR_STR(""));
}

static void make(struct making *m)
{
    const struct mr_job_account *a = m->account;
    yyjson_mut_val *root = yyjson_mut_obj(m->doc);
    yyjson_mut_doc_set_root(m->doc, root);
    yyjson_mut_val *ops = yyjson_mut_obj_add_arr(m->doc, root, "ops");
    for (uint32_t i = 0; i < a->ops_count; i++)
        add_op(m, ops, &a->ops[i]);
    uint64_t wall = a->until_ns - a->from_ns, busy = mr_job_account_busy(a);
    add_u64(m, root, "wall_ns", wall);
    add_u64(m, root, "slots", (a->slot_ns + wall / 2) / wall);
    (void)yyjson_mut_obj_add_uint(m->doc, root, "processors", a->processors);
    (void)yyjson_mut_obj_add_real(
        m->doc, root, "white_space", a->slot_ns ? 1.0 - (double)busy / (double)a->slot_ns : 0.0);
    add_u64(m, root, "slot_ns", a->slot_ns);
    add_classes(m, root, &a->sums);
    add_u64(m, root, "other_ns", a->other_ns);
    add_u64(m, root, "not_recorded", a->not_recorded);
    add_u64(m, root, "from_ns", a->from_ns);
    add_u64(m, root, "until_ns", a->until_ns);
    if (!a->is_over) return;
    yyjson_mut_val *path = yyjson_mut_obj_add_obj(m->doc, root, "critical_path");
    add_classes(m, path, &a->path);
    (void)yyjson_mut_obj_add_bool(m->doc, path, "is_cut", a->is_path_cut);
    yyjson_mut_val *steps = yyjson_mut_obj_add_arr(m->doc, path, "steps");
    for (uint32_t i = 0; i < a->steps_count; i++)
        add_step(m, steps, &a->steps[i]);
}

int mr_profile_offline(const struct mr_offline_options *o, const char *job_text, uint32_t steps_max,
    yyjson_doc **out, struct mr_error *e)
{
    mr_job_id job;
    struct mr_history *h = NULL;
    struct mr_job_account account = {0};
    struct mr_graph *graph = NULL;
    int err = mr_offline_open(o, job_text, &job, &h, e);
    if (!err) err = mr_history_account(h, job, steps_max, &account, e);
    if (!err) {
        (void)mr_history_graph(h, job, &graph, NULL); /* without the graph, steps have no keys */
        struct making m = {yyjson_mut_doc_new(NULL), &account, graph};
        make(&m);
        *out = yyjson_mut_doc_imut_copy(m.doc, NULL);
        yyjson_mut_doc_free(m.doc);
    }
    mr_graph_free(&graph);
    mr_job_account_fini(&account);
    mr_history_close(&h);
    return err;
}
