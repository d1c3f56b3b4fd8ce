/* `millrace whatif`: how long a finished job would have taken on another cluster. */
#include "base/alloc.h"
#include "cli/internal.h"
#include "cli/term/table.h"
#include "cli/trace/whatif_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FACTOR_MAX 1e6

struct whatif_config {
    struct mr_client_options client;
    uint64_t slots;
    uint64_t processors;
    const char *bandwidth;
    struct mr_texts free;
    struct mr_texts op_speed;
    struct mr_offline_options offline;
};

static const struct mr_option whatif_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "slots",
        .type = MR_OPTION_U64,
        .value = "N",
        .help = "slots of all workers together (default: as recorded)",
        .at = offsetof(struct whatif_config, slots),
        .min = 1,
        .max = 1 << 20},
    {.name = "processors",
        .type = MR_OPTION_U64,
        .value = "N",
        .help = "processors of each node (default: as recorded)",
        .at = offsetof(struct whatif_config, processors),
        .min = 1,
        .max = 1 << 20},
    {.name = "bandwidth",
        .type = MR_OPTION_TEXT,
        .value = "xF",
        .help = "the network is F times as fast, for example x2 or x0.5",
        .at = offsetof(struct whatif_config, bandwidth)},
    {.name = "free",
        .type = MR_OPTION_TEXTS,
        .value = "CLASS",
        .help =
            "this class takes no time: scheduler (which is decide, report and send), decide, "
            "report, send, handoff, transfer, journal, input, output, preempted; commas between "
            "several classes",
        .at = offsetof(struct whatif_config, free)},
    {.name = "op-speed",
        .type = MR_OPTION_TEXTS,
        .value = "OP=F",
        .help = "the operator is F times as fast",
        .at = offsetof(struct whatif_config, op_speed)},
    MR_OFFLINE_OPTIONS(struct whatif_config, offline),
};

const struct mr_config_spec mr_whatif_spec = {.program = "millrace whatif",
    .summary = "Predicts how long a finished job would have taken with more or fewer slots, a "
               "faster network, faster operators, or without some cost.",
    .usage = "[flags] JOB",
    .examples = "  millrace whatif j1kq07ab-7 --slots 8\n"
                "  millrace whatif j1kq07ab-7 --bandwidth x2 --op-speed array.matmul=2\n"
                "  millrace whatif j1kq07ab-7 --free scheduler,transfer --json\n"
                "  millrace whatif j1kq07ab-7 --slots 8 --offline --dir ~/.millrace/cluster\n",
    .options = whatif_options,
    .options_count = MR_ARRAY_LEN(whatif_options),
    .rest_min = 1,
    .rest_max = 1};

/* ---- flags ----------------------------------------------------------------------------------- */

static bool factor_of(const char *text, double *out)
{
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && !*end && *out > 1 / FACTOR_MAX && *out < FACTOR_MAX;
}

static int free_of(const struct mr_texts *texts, uint32_t *out, struct mr_error *e)
{
    for (size_t i = 0; i < texts->count; i++) {
        for (const char *at = texts->items[i]; at;) {
            const char *comma = strchr(at, ',');
            struct mr_str name = comma ? mr_str_of(at, (size_t)(comma - at)) : mr_str(at);
            uint32_t bits = mr_whatif_free_of(name);
            if (!bits)
                return mr_fail(e, MR_EINVAL, "--free: expected %s, not \"%.*s\"",
                    mr_whatif_free_names(), (int)MR_MIN(name.n, (size_t)64), name.p);
            *out |= bits;
            at = comma ? comma + 1 : NULL;
        }
    }
    return MR_OK;
}

static int op_speed_of(
    const struct mr_texts *texts, const struct mr_whatif_job *j, double *out, struct mr_error *e)
{
    for (size_t i = 0; i < texts->count; i++) {
        const char *text = texts->items[i], *equal = strrchr(text, '=');
        double factor = 0;
        if (!equal || !factor_of(equal + 1, &factor))
            return mr_fail(e, MR_EINVAL,
                "--op-speed: expected OP=F with F above 0, for example array.matmul=2, not "
                "\"%.64s\"",
                text);
        struct mr_str name = mr_str_of(text, (size_t)(equal - text));
        uint32_t op = 0;
        while (op < j->ops_count && !mr_str_eq(j->ops[op], name))
            op++;
        if (op == j->ops_count)
            return mr_fail(e, MR_EINVAL, "--op-speed: no task of the job has the operator \"%.*s\"",
                (int)MR_MIN(name.n, (size_t)64), name.p);
        out[op] = factor;
    }
    return MR_OK;
}

static int change_of(const struct whatif_config *k, const struct mr_whatif_job *j,
    struct mr_whatif_change *out, double *speed, struct mr_error *e)
{
    *out = (struct mr_whatif_change){
        .slots = (uint32_t)k->slots, .processors = (uint32_t)k->processors, .op_speed = speed};
    if (k->bandwidth && (k->bandwidth[0] != 'x' || !factor_of(k->bandwidth + 1, &out->bandwidth)))
        return mr_fail(e, MR_EINVAL,
            "--bandwidth: expected x and a factor above 0, for example x2, not \"%.64s\"",
            k->bandwidth);
    int err = free_of(&k->free, &out->free, e);
    return err ? err : op_speed_of(&k->op_speed, j, speed, e);
}

/* ---- output ---------------------------------------------------------------------------------- */

struct answer {
    const struct mr_whatif_costs *costs;
    const struct mr_whatif_result *same, *predicted;
    yyjson_val *recorded; /* the answer of the API's method Profile */
    const char *job;
    uint64_t not_recorded;
    uint64_t restricted;
};

static void add_u64(yyjson_mut_doc *d, yyjson_mut_val *to, const char *name, uint64_t v)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, v);
    /* The number is quoted, as in the gateway's answers. */
    (void)yyjson_mut_obj_add_strcpy(d, to, name, text);
}

static void add_classes(yyjson_mut_doc *d, yyjson_mut_val *to, const struct mr_account_sums *s)
{
    yyjson_mut_val *classes = yyjson_mut_obj_add_obj(d, to, "classes");
    for (uint32_t i = 0; i < MR_ACCOUNT_CLASSES; i++)
        add_u64(d, classes, mr_account_class_name((enum mr_account_class)i), s->ns[i]);
}

static void add_result(
    yyjson_mut_doc *d, yyjson_mut_val *root, const char *name, const struct mr_whatif_result *r)
{
    yyjson_mut_val *o = yyjson_mut_obj_add_obj(d, root, name);
    add_u64(d, o, "wall_ns", r->wall_ns);
    (void)yyjson_mut_obj_add_uint(d, o, "slots", r->slots);
    add_classes(d, o, &r->sums);
    yyjson_mut_val *path = yyjson_mut_obj_add_obj(d, o, "critical_path");
    add_classes(d, path, &r->path);
    add_u64(d, o, "chain_ns", r->chain_ns);
    add_u64(d, o, "messages", r->messages);
}

static void add_cost(
    yyjson_mut_doc *d, yyjson_mut_val *to, const char *name, double ns, uint32_t samples)
{
    yyjson_mut_val *o = yyjson_mut_obj_add_obj(d, to, name);
    (void)yyjson_mut_obj_add_real(d, o, "ns", ns);
    (void)yyjson_mut_obj_add_uint(d, o, "samples", samples);
}

static void add_costs(yyjson_mut_doc *d, yyjson_mut_val *root, const struct mr_whatif_costs *k)
{
    yyjson_mut_val *o = yyjson_mut_obj_add_obj(d, root, "costs");
    (void)yyjson_mut_obj_add_real(d, o, "scale", k->scale);
    (void)yyjson_mut_obj_add_real(d, o, "processors_share", k->share);
    add_u64(d, o, "begin_ns", k->begin_ns);
    add_u64(d, o, "end_ns", k->end_ns);
    add_cost(d, o, "decide", k->decide_ns, k->decide_samples);
    add_cost(d, o, "send", k->send_ns, k->send_samples);
    add_cost(d, o, "report", k->report.first_ns, k->report_samples);
    add_cost(d, o, "report_each", k->report.each_ns, k->report_samples);
    add_cost(d, o, "handoff", k->handoff.first_ns, k->handoff_samples);
    add_cost(d, o, "handoff_each", k->handoff.each_ns, k->handoff_samples);
    add_cost(d, o, "local", k->local_ns, k->local_samples);
    add_cost(d, o, "gap", k->gap_ns, k->gap_samples);
    add_cost(d, o, "transfer", k->transfer.first_ns, k->transfer_samples);
    add_cost(d, o, "transfer_each_byte", k->transfer.each_ns, k->transfer_samples);
}

static void print_json(const struct answer *a)
{
    yyjson_mut_doc *d = mr_json_object();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(d);
    yyjson_mut_val *recorded = yyjson_mut_obj_add_obj(d, root, "recorded");
    add_u64(d, recorded, "wall_ns", mr_json_get_u64(a->recorded, "wall_ns"));
    (void)yyjson_mut_obj_add_uint(d, recorded, "slots", mr_json_get_u64(a->recorded, "slots"));
    (void)yyjson_mut_obj_add_val(
        d, recorded, "classes", yyjson_val_mut_copy(d, yyjson_obj_get(a->recorded, "classes")));
    add_result(d, root, "replayed", a->same);
    add_result(d, root, "predicted", a->predicted);
    add_costs(d, root, a->costs);
    add_u64(d, root, "not_recorded", a->not_recorded);
    add_u64(d, root, "restricted", a->restricted);
    yyjson_doc *doc = yyjson_mut_doc_imut_copy(d, NULL);
    yyjson_mut_doc_free(d);
    mr_client_print(doc);
    yyjson_doc_free(doc);
}

static void print_classes(const struct answer *a)
{
    static const struct mr_column columns[] = {{"CLASS", MR_COLUMN_WORD, false},
        {"RECORDED s", MR_COLUMN_NUMBER, false}, {"PREDICTED s", MR_COLUMN_NUMBER, false},
        {"CRITICAL PATH s", MR_COLUMN_NUMBER, true}};
    yyjson_val *classes = yyjson_obj_get(a->recorded, "classes");
    MR_AUTO(mr_table_free) struct mr_table *t = mr_table_new(columns, MR_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < MR_ACCOUNT_CLASSES; i++) {
        const char *name = mr_account_class_name((enum mr_account_class)i);
        uint64_t was = mr_json_get_u64(classes, name), is = a->predicted->sums.ns[i];
        if (!was && !is) continue;
        mr_table_add(t, "%s", name);
        mr_table_add(t, "%.3f", (double)was / 1e9);
        mr_table_add(t, "%.3f", (double)is / 1e9);
        mr_table_add(t, "%.3f", (double)a->predicted->path.ns[i] / 1e9);
    }
    mr_table_print(t);
}

static void print(const struct answer *a)
{
    double was = (double)mr_json_get_u64(a->recorded, "wall_ns") / 1e9;
    double is = (double)a->predicted->wall_ns / 1e9, same = (double)a->same->wall_ns / 1e9;
    (void)printf("job %s: %.3f s on %" PRIu64 " slots; predicted: %.3f s on %u slots (%+.1f %%)\n",
        a->job, was, mr_json_get_u64(a->recorded, "slots"), is, a->predicted->slots,
        was > 0 ? (is / was - 1) * 100 : 0.0);
    (void)printf(
        "the longest chain of tasks: %.3f s; a replay without a change: %.3f s (%+.1f %%)\n\n",
        (double)a->predicted->chain_ns / 1e9, same, was > 0 ? (same / was - 1) * 100 : 0.0);
    print_classes(a);
    if (mr_json_get_u64(a->recorded, "other_ns"))
        (void)printf("\nslots ran tasks of other jobs for %.3f s; the prediction leaves them out\n",
            (double)mr_json_get_u64(a->recorded, "other_ns") / 1e9);
    if (a->restricted)
        (void)printf("\nwarning: %" PRIu64
                     " tasks name workers or ask for resources; the prediction "
                     "ignores this and runs them on any worker\n",
            a->restricted);
    if (a->not_recorded)
        (void)printf("\n%" PRIu64 " attempts were not recorded; the prediction leaves them out\n",
            a->not_recorded);
}

int mr_command_whatif(int argc, char **argv)
{
    struct whatif_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_whatif_reading r = {0};
    struct mr_whatif_change change;
    struct mr_whatif_costs costs;
    struct mr_whatif_result same, predicted;
    mr_config_load(&mr_whatif_spec, argc, argv, &k, &rest);
    int err = mr_whatif_read(&k.client, &k.offline, rest.items[0], &r, &e);
    if (!r.job.processors) r.job.processors = (uint32_t)k.processors;
    MR_AUTO(mr_free_ptr)
    double *speed = mr_alloc_array(MR_MAX(r.job.ops_count, 1u), sizeof *speed);
    if (!err) err = change_of(&k, &r.job, &change, speed, &e);
    if (!err) err = mr_whatif_calibrate(&r.job, &costs, &same, &e);
    if (!err) err = mr_whatif_replay(&r.job, &costs, &change, &predicted, &e);
    const struct answer a = {.costs = &costs,
        .same = &same,
        .predicted = &predicted,
        .recorded = yyjson_doc_get_root(r.profile),
        .job = rest.items[0],
        .not_recorded = r.not_recorded,
        .restricted = r.restricted};
    if (!err && k.client.json) print_json(&a);
    if (!err && !k.client.json) print(&a);
    mr_whatif_reading_fini(&r);
    mr_texts_fini(&rest);
    mr_config_fini(&mr_whatif_spec, &k);
    return err ? mr_client_fail("whatif", &e) : MR_EXIT_OK;
}
