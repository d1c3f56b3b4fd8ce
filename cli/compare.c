/* `millrace compare`: what changed from one job to another, by operator and by class of time. */
#include "cli/trace/compare.h"
#include "base/alloc.h"
#include "base/units.h"
#include "cli/internal.h"
#include "cli/term/table.h"
#include "cli/term/text.h"
#include "cli/trace/profile_answer.h"

#include <inttypes.h>
#include <stdlib.h>

#define STEPS_MAX 100000u
#define OPS_SHOWN 12u /* most operators in the table; --json shows all */

struct compare_config {
    struct mr_client_options client;
    struct mr_offline_options offline;
};

static const struct mr_option compare_options[] = {
    MR_CLIENT_OPTIONS,
    MR_OFFLINE_OPTIONS(struct compare_config, offline),
};

const struct mr_config_spec mr_compare_spec = {.program = "millrace compare",
    .summary =
        "Shows what changed from one job to another: the critical path, the time of all slots "
        "by class, and the operators.",
    .usage = "[flags] JOB JOB",
    .examples = "  millrace compare j1kq07ab-7 j1kq07ab-8\n"
                "  millrace compare j1kq07ab-7 j1kq07ab-8 --offline --dir ~/.millrace/cluster\n",
    .options = compare_options,
    .options_count = MR_ARRAY_LEN(compare_options),
    .rest_min = 2,
    .rest_max = 2};

/* Adds three cells: both times and the change. */
static void add_seconds(struct mr_table *t, int64_t before, int64_t after)
{
    mr_table_add(t, "%.3f", (double)before / 1e9);
    mr_table_add(t, "%.3f", (double)after / 1e9);
    mr_table_add(t, "%+.3f", (double)(after - before) / 1e9);
}

static void print_causes(const struct mr_compare *c)
{
    const struct mr_column columns[] = {
        {c->has_path ? "CRITICAL PATH" : "TIME OF A SLOT", MR_COLUMN_WORD, false},
        {"OPERATOR", MR_COLUMN_KEY, false}, {"FIRST s", MR_COLUMN_NUMBER, false},
        {"SECOND s", MR_COLUMN_NUMBER, false}, {"CHANGE s", MR_COLUMN_NUMBER, false}};
    struct mr_compare_time all = {0};
    MR_AUTO(mr_table_free) struct mr_table *t = mr_table_new(columns, MR_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < c->causes_count; i++) {
        const struct mr_compare_time *row = &c->causes[i];
        mr_table_add(t, "%s", row->class);
        mr_table_add(t, "%s", row->op);
        add_seconds(t, row->before, row->after);
        all.before += row->before;
        all.after += row->after;
    }
    mr_table_add(t, "all");
    mr_table_add(t, "%s", "");
    add_seconds(t, all.before, all.after);
    mr_table_print(t);
}

static void print_classes(const struct mr_compare *c)
{
    static const struct mr_column columns[] = {{"SLOT TIME", MR_COLUMN_WORD, false},
        {"FIRST s", MR_COLUMN_NUMBER, false}, {"SECOND s", MR_COLUMN_NUMBER, false},
        {"CHANGE s", MR_COLUMN_NUMBER, false}};
    MR_AUTO(mr_table_free) struct mr_table *t = mr_table_new(columns, MR_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < c->classes_count; i++) {
        mr_table_add(t, "%s", c->classes[i].class);
        add_seconds(t, c->classes[i].before, c->classes[i].after);
    }
    mr_table_add(t, "all");
    add_seconds(t, c->before.slot_ns, c->after.slot_ns);
    mr_table_print(t);
}

static void add_value(struct mr_table *t, enum mr_compare_measure measure, int64_t value)
{
    char bytes[MR_BYTES_TEXT_MAX];
    switch (measure) {
    case MR_COMPARE_TASKS: mr_table_add(t, "%" PRId64, value); break;
    case MR_COMPARE_BYTES:
        mr_bytes_text((uint64_t)value, bytes);
        mr_table_add(t, "%s", bytes);
        break;
    case MR_COMPARE_MEDIAN:
    case MR_COMPARE_P99: mr_table_add(t, "%.1f us", (double)value / 1e3); break;
    case MR_COMPARE_WALL:
    case MR_COMPARE_CPU:
    case MR_COMPARE_QUEUE:
    case MR_COMPARE_MEASURES: mr_table_add(t, "%.3f s", (double)value / 1e9); break;
    }
}

static void print_ops(const struct mr_compare *c)
{
    static const struct mr_column columns[] = {{"OPERATOR", MR_COLUMN_KEY, false},
        {"MEASURE", MR_COLUMN_WORD, false}, {"FIRST", MR_COLUMN_NUMBER, false},
        {"SECOND", MR_COLUMN_NUMBER, false}, {"CHANGE", MR_COLUMN_NUMBER, false}};
    static const char *const names[] = {[MR_COMPARE_TASKS] = "attempts",
        [MR_COMPARE_WALL] = "wall",
        [MR_COMPARE_CPU] = "CPU",
        [MR_COMPARE_QUEUE] = "queued",
        [MR_COMPARE_BYTES] = "made",
        [MR_COMPARE_MEDIAN] = "median",
        [MR_COMPARE_P99] = "p99"};
    MR_AUTO(mr_table_free) struct mr_table *t = mr_table_new(columns, MR_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < MR_MIN(c->ops_count, OPS_SHOWN); i++) {
        const struct mr_compare_op *o = &c->ops[i];
        bool is_in_both = o->before[MR_COMPARE_TASKS] && o->after[MR_COMPARE_TASKS];
        bool is_named = false;
        for (unsigned k = 0; k < MR_COMPARE_MEASURES; k++) {
            if (o->before[k] == o->after[k]) continue;
            if (!is_in_both && k != MR_COMPARE_TASKS && k != MR_COMPARE_WALL) continue;
            mr_table_add(t, "%s", is_named ? "" : o->op);
            is_named = true;
            mr_table_add(t, "%s", names[k]);
            add_value(t, (enum mr_compare_measure)k, o->before[k]);
            add_value(t, (enum mr_compare_measure)k, o->after[k]);
            if (o->before[k])
                mr_table_add(t, "%+.1f %%",
                    (double)(o->after[k] - o->before[k]) * 100 / (double)o->before[k]);
            else
                mr_table_add(t, "new");
        }
    }
    mr_table_print(t);
    if (c->ops_count > OPS_SHOWN)
        (void)printf("%" PRIu32 " more operators: see --json\n", c->ops_count - OPS_SHOWN);
}

static void print_all(const struct mr_compare *c, const struct mr_texts *jobs)
{
    struct mr_buf sentence;
    (void)printf("first:  job %s, %.3f s on %" PRId64 " slots\n", jobs->items[0],
        (double)c->before.wall_ns / 1e9, c->before.slots);
    (void)printf("second: job %s, %.3f s on %" PRId64 " slots\n\n", jobs->items[1],
        (double)c->after.wall_ns / 1e9, c->after.slots);
    print_causes(c);
    (void)printf("\n");
    print_classes(c);
    (void)printf("\n");
    print_ops(c);
    mr_buf_init(&sentence, 4096);
    mr_compare_sum_up(c, jobs->items[0], jobs->items[1], &sentence);
    (void)printf("\n");
    mr_text_print(0, "%.*s\n", MR_STR_ARG(mr_buf_str(&sentence)));
    mr_buf_fini(&sentence);
}

int mr_command_compare(int argc, char **argv)
{
    struct compare_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    yyjson_doc *docs[2] = {0};
    mr_config_load(&mr_compare_spec, argc, argv, &k, &rest);
    const struct mr_profile_source source = {&k.client, &k.offline};
    int err = MR_OK;
    for (unsigned i = 0; i < 2 && !err; i++)
        err = mr_profile_answer(&source, rest.items[i], STEPS_MAX, &docs[i], &e);
    if (!err) {
        struct mr_compare c;
        mr_compare_profiles(yyjson_doc_get_root(docs[0]), yyjson_doc_get_root(docs[1]), &c);
        if (k.client.json) {
            yyjson_mut_doc *made = mr_compare_document(&c, rest.items[0], rest.items[1]);
            yyjson_doc *doc = yyjson_mut_doc_imut_copy(made, NULL);
            mr_client_print(doc);
            yyjson_doc_free(doc);
            yyjson_mut_doc_free(made);
        } else {
            print_all(&c, &rest);
        }
        mr_compare_fini(&c);
    }
    yyjson_doc_free(docs[0]);
    yyjson_doc_free(docs[1]);
    mr_texts_fini(&rest);
    mr_config_fini(&mr_compare_spec, &k);
    return err ? mr_client_fail("compare", &e) : MR_EXIT_OK;
}
