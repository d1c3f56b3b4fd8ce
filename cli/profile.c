/* `millrace profile`: what the time of all slots went into while a job, or the roles of a training
 * session, were in the cluster; or in a window of time, for all jobs or those of a namespace. */
#include "base/alloc.h"
#include "base/units.h"
#include "cli/internal.h"
#include "cli/trace/profile_answer.h"
#include "cli/term/table.h"
#include "host/clock.h"

#include <inttypes.h>

#define BAR_MAX 30 /* length of the bar of a class that took all of the time */

struct profile_config {
    struct mr_client_options client;
    uint64_t steps;
    const char *name_space;
    uint64_t from_ns, until_ns;
    mr_duration last;
    struct mr_offline_options offline;
};

static const struct mr_option profile_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "steps",
        .type = MR_OPTION_U64,
        .value = "N",
        .init = "0",
        .help = "show the last N steps of the critical path",
        .at = offsetof(struct profile_config, steps),
        .max = 100000},
    {.name = "namespace",
        .type = MR_OPTION_TEXT,
        .value = "NAME",
        .help = "without a job: account for the jobs of this namespace",
        .at = offsetof(struct profile_config, name_space),
        .without_arguments = true},
    {.name = "from",
        .type = MR_OPTION_U64,
        .value = "NS",
        .help = "without a job: account from this time on, in ns since 1970",
        .at = offsetof(struct profile_config, from_ns),
        .without_arguments = true},
    {.name = "to",
        .type = MR_OPTION_U64,
        .value = "NS",
        .help = "without a job: account until this time, in ns since 1970 (default: now)",
        .at = offsetof(struct profile_config, until_ns),
        .without_arguments = true},
    {.name = "last",
        .type = MR_OPTION_DURATION,
        .value = "TIME",
        .init = "1m",
        .help = "without a job and without --from: account for this time until --to",
        .at = offsetof(struct profile_config, last),
        .not_with = "from",
        .without_arguments = true,
        .min = MR_MS,
        .max = 366 * 24 * 3600 * MR_SECOND},
    MR_OFFLINE_OPTIONS(struct profile_config, offline),
};

const struct mr_config_spec mr_profile_spec = {.program = "millrace profile",
    .summary =
        "Shows what the time of all slots went into while a job or a training was in the cluster, "
        "or in the last minute, for all jobs or those of a namespace.",
    .usage = "[flags] [JOB|TRAINING]",
    .examples = "  millrace profile j1kq07ab-7\n"
                "  millrace profile t1-7\n"
                "  millrace profile --last 10m\n"
                "  millrace profile --namespace beamline --last 1h\n"
                "  millrace profile --from $(date -d 8:00 +%s%N) --to $(date -d 9:00 +%s%N)\n"
                "  millrace profile j1kq07ab-7 --offline --dir ~/.millrace/cluster\n"
                "  millrace profile j1kq07ab-7 --steps 20\n",
    .options = profile_options,
    .options_count = MR_ARRAY_LEN(profile_options),
    .rest_max = 1};

static double seconds(yyjson_val *row, const char *name)
{
    return (double)mr_json_get_u64(row, name) / 1e9;
}

static const char *bar_of(double share)
{
    static char bar[4 * BAR_MAX + 1];
    size_t n = (size_t)(share * BAR_MAX + 0.5), at = 0;
    for (size_t i = 0; i < n && i < BAR_MAX; i++)
        at += (size_t)snprintf(bar + at, sizeof bar - at, "▇");
    bar[at] = 0;
    return bar;
}

/* Prints the time of each class in `from`, and its share of `all`, the total in seconds. `title`:
 * the heading of the column of times. */
static void print_classes(yyjson_val *from, const char *title, double all)
{
    const struct mr_column columns[] = {{"CLASS", MR_COLUMN_WORD, false},
        {title, MR_COLUMN_NUMBER, false}, {"SHARE", MR_COLUMN_NUMBER, false},
        {"", MR_COLUMN_WORD, true}};
    struct mr_class_time classes[MR_PROFILE_CLASSES_MAX];
    size_t n = mr_profile_classes(from, classes);
    MR_AUTO(mr_table_free) struct mr_table *t = mr_table_new(columns, MR_ARRAY_LEN(columns));
    for (size_t i = 0; i < n; i++) {
        double share = all > 0 ? classes[i].seconds / all : 0;
        mr_table_add(t, "%s", classes[i].name);
        mr_table_add(t, "%.3f", classes[i].seconds);
        mr_table_add(t, "%.1f %%", share * 100);
        mr_table_add(t, "%s", bar_of(share));
    }
    mr_table_add(t, "all");
    mr_table_add(t, "%.3f", all);
    mr_table_add(t, "100.0 %%");
    mr_table_add(t, "%s", "");
    mr_table_print(t);
}

static void print_ops(yyjson_val *root)
{
    static const struct mr_column columns[] = {{"OPERATOR", MR_COLUMN_KEY, false},
        {"ATTEMPTS", MR_COLUMN_NUMBER, false}, {"WALL s", MR_COLUMN_NUMBER, false},
        {"CPU s", MR_COLUMN_NUMBER, false}, {"MEDIAN us", MR_COLUMN_NUMBER, true},
        {"P99 us", MR_COLUMN_NUMBER, true}, {"QUEUED s", MR_COLUMN_NUMBER, true},
        {"IDLE FOR IT s", MR_COLUMN_NUMBER, true}, {"MADE", MR_COLUMN_NUMBER, true}};
    size_t at = 0, max = 0;
    yyjson_val *row = NULL;
    MR_AUTO(mr_table_free) struct mr_table *t = mr_table_new(columns, MR_ARRAY_LEN(columns));
    yyjson_arr_foreach(yyjson_obj_get(root, "ops"), at, max, row)
    {
        char made[MR_BYTES_TEXT_MAX];
        mr_bytes_text(mr_json_get_u64(row, "nbytes"), made);
        mr_table_add(t, "%s", mr_json_get_text(row, "op"));
        mr_table_add(t, "%" PRIu64, mr_json_get_u64(row, "tasks"));
        mr_table_add(t, "%.3f", seconds(row, "wall_ns"));
        mr_table_add(t, "%.3f", seconds(row, "cpu_ns"));
        mr_table_add(t, "%.1f", seconds(row, "median_ns") * 1e6);
        mr_table_add(t, "%.1f", seconds(row, "p99_ns") * 1e6);
        mr_table_add(t, "%.3f", seconds(row, "queue_ns"));
        mr_table_add(t, "%.3f", seconds(row, "white_ns"));
        mr_table_add(t, "%s", made);
    }
    mr_table_print(t);
}

static void print_path(yyjson_val *root, yyjson_val *path, bool has_steps)
{
    static const struct mr_column columns[] = {{"AT s", MR_COLUMN_NUMBER, false},
        {"TIME us", MR_COLUMN_NUMBER, false}, {"CLASS", MR_COLUMN_WORD, false},
        {"OPERATOR", MR_COLUMN_KEY, true}, {"KEY", MR_COLUMN_KEY, false}};
    size_t at = 0, max = 0;
    yyjson_val *step = NULL;
    (void)printf("\n");
    print_classes(path, "CRITICAL PATH s", seconds(root, "wall_ns"));
    if (!has_steps) return;
    (void)printf("\n");
    MR_AUTO(mr_table_free) struct mr_table *t = mr_table_new(columns, MR_ARRAY_LEN(columns));
    yyjson_arr_foreach(yyjson_obj_get(path, "steps"), at, max, step)
    {
        uint64_t from = mr_json_get_u64(step, "from_ns"), to = mr_json_get_u64(step, "to_ns");
        mr_table_add(t, "%.6f", (double)(from - mr_json_get_u64(root, "from_ns")) / 1e9);
        mr_table_add(t, "%.1f", (double)(to - from) / 1e3);
        mr_table_add(t, "%s", mr_json_get_text(step, "class"));
        mr_table_add(t, "%s", mr_json_get_text(step, "op"));
        mr_table_add(t, "%s", mr_json_get_text(step, "key"));
    }
    mr_table_print(t);
}

/* What the profile is of. */
struct subject {
    const char *job;        /* the id of a job or of a training; NULL: a window of time */
    const char *name_space; /* NULL: all jobs of the window */
};

static void print_profile(yyjson_val *root, const struct subject *of, bool has_steps)
{
    const char *job = of->job, *name = job ? job : of->name_space ? of->name_space : "";
    uint64_t lost = mr_json_get_u64(root, "not_recorded");
    yyjson_val *path = yyjson_obj_get(root, "critical_path");
    const char *what = !job && !of->name_space ? "the cluster" : !job ? "namespace " : "job ";
    if (job && *job == 't') what = "training ";
    (void)printf("%s%s: %.3f s on %" PRIu64 " slots make %.3f s of slot time, %.0f %% unused\n",
        what, name, seconds(root, "wall_ns"), mr_json_get_u64(root, "slots"),
        seconds(root, "slot_ns"), mr_json_get_real(root, "white_space") * 100);
    if (of->name_space)
        (void)printf("%.3f s of it went into tasks of other jobs\n", seconds(root, "other_ns"));
    (void)printf("\n");
    print_classes(root, "SLOT TIME s", seconds(root, "slot_ns"));
    (void)printf("\n");
    print_ops(root);
    if (path) print_path(root, path, has_steps);
    if (lost) (void)printf("\n%" PRIu64 " attempts were not recorded\n", lost);
}

/* Asks for the account of a window of time. */
static int ask_window(const struct profile_config *k, yyjson_doc **doc, struct mr_error *e)
{
    struct mr_client c = {0};
    uint64_t end = k->until_ns ? k->until_ns : mr_clock_wall();
    uint64_t from = k->from_ns ? k->from_ns : end - MR_MIN(k->last, end - 1);
    MR_AUTO(mr_free_ptr) char *space = mr_http_escape(mr_str(k->name_space ? k->name_space : ""));
    int err = mr_client_open(&k->client, &c, e);
    if (!err)
        err = mr_client_call(&c, "GET", (struct mr_str){0}, doc, e,
            "/v1/account?from_ns=%" PRIu64 "&until_ns=%" PRIu64 "&namespace=%s", from, k->until_ns,
            space);
    mr_client_fini(&c);
    return err;
}

static int check(const struct profile_config *k, const char *job, struct mr_error *e)
{
    if (k->name_space && !*k->name_space)
        return mr_fail(e, MR_EINVAL, "--namespace: expected the name of a namespace");
    if (k->steps && !job)
        return mr_fail(e, MR_EINVAL, "--steps: expected the id of a job or training");
    return MR_OK;
}

int mr_command_profile(int argc, char **argv)
{
    struct profile_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    yyjson_doc *doc = NULL;
    mr_config_load(&mr_profile_spec, argc, argv, &k, &rest);
    const char *job = rest.count ? rest.items[0] : NULL;
    const struct subject of = {job, k.name_space};
    const struct mr_profile_source source = {&k.client, &k.offline};
    int err = check(&k, job, &e);
    if (!err && mr_offline_is_wanted(&k.offline) && !job)
        err = mr_fail(&e, MR_EINVAL, "--offline: expected the id of a job");
    else if (!err && job)
        err = mr_profile_answer(&source, job, (uint32_t)k.steps, &doc, &e);
    else if (!err)
        err = ask_window(&k, &doc, &e);
    if (!err && k.client.json) mr_client_print(doc);
    if (!err && !k.client.json) print_profile(yyjson_doc_get_root(doc), &of, k.steps > 0);
    yyjson_doc_free(doc);
    mr_texts_fini(&rest);
    mr_config_fini(&mr_profile_spec, &k);
    return err ? mr_client_fail("profile", &e) : MR_EXIT_OK;
}
