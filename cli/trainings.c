/* `millrace trainings`: lists the sessions, or shows one. */
#include "base/alloc.h"
#include "cli/internal.h"
#include "cli/term/table.h"
#include "cli/term/text.h"
#include "cli/view/train_follow.h"

#include <inttypes.h>
#include <string.h>

struct config {
    struct mr_client_options client;
};

static const struct mr_option options[] = {MR_CLIENT_OPTIONS};

const struct mr_config_spec mr_trainings_spec = {.program = "millrace trainings",
    .summary = "Lists the trainings, newest first, or shows one.",
    .usage = "[flags] [ID]",
    .examples = "  millrace trainings\n  millrace trainings t1-7\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_max = 1};

/* Writes the latest score of a session, such as "cross_entropy 0.1134", or "-" if there is none. */
static void score_text(yyjson_val *training, char out[64])
{
    static const char *const losses[] = {"cross_entropy", "mse", "hinge"};
    const char *json = mr_json_get_text(training, "score_json");
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    yyjson_val *score = yyjson_doc_get_root(doc);
    (void)snprintf(out, 64, "-");
    for (size_t i = 0; i < MR_ARRAY_LEN(losses); i++)
        if (yyjson_obj_get(score, losses[i]))
            (void)snprintf(out, 64, "%s %.4f", losses[i], mr_json_get_real(score, losses[i]));
    yyjson_doc_free(doc);
}

static const struct mr_column columns[] = {{"ID", MR_COLUMN_WORD, false},
    {"STATE", MR_COLUMN_WORD, false}, {"STEP", MR_COLUMN_NUMBER, false},
    {"EXAMPLES", MR_COLUMN_NUMBER, false}, {"SCORE", MR_COLUMN_WORD, false},
    {"NAME", MR_COLUMN_KEY, false}};

static void print_list(yyjson_val *root)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *t = NULL;
    MR_AUTO(mr_table_free) struct mr_table *table = mr_table_new(columns, MR_ARRAY_LEN(columns));
    yyjson_arr_foreach(yyjson_obj_get(root, "trainings"), at, max, t)
    {
        char score[64];
        score_text(t, score);
        mr_table_add(table, "%s", mr_json_get_text(t, "id"));
        mr_table_add(table, "%s", mr_train_state_word(mr_json_get_text(t, "state")));
        mr_table_add(table, "%" PRIu64, mr_json_get_u64(t, "version"));
        mr_table_add(table, "%" PRIu64, mr_json_get_u64(yyjson_obj_get(t, "counters"), "examples"));
        mr_table_add(table, "%s", score);
        mr_table_add(table, "%s", mr_json_get_text(t, "name"));
    }
    mr_table_print(table);
}

static const struct mr_column member_columns[] = {{"MEMBER", MR_COLUMN_WORD, false},
    {"STATE", MR_COLUMN_WORD, false}, {"STEPS", MR_COLUMN_NUMBER, false},
    {"EXAMPLES", MR_COLUMN_NUMBER, false}, {"TASK", MR_COLUMN_KEY, true},
    {"ADDRESS", MR_COLUMN_KEY, true}};

static void print_members(yyjson_val *t)
{
    static const char *const roles[][2] = {
        {"TRAINING_PS", "ps"}, {"TRAINING_WORKER", "worker"}, {"TRAINING_SCORER", "scorer"}};
    size_t at = 0;
    size_t max = 0;
    yyjson_val *m = NULL;
    MR_AUTO(mr_table_free)
    struct mr_table *table = mr_table_new(member_columns, MR_ARRAY_LEN(member_columns));
    yyjson_arr_foreach(yyjson_obj_get(t, "members"), at, max, m)
    {
        const char *role = mr_json_get_text(m, "role");
        yyjson_val *c = yyjson_obj_get(m, "counters");
        for (size_t i = 0; i < MR_ARRAY_LEN(roles); i++)
            if (!strcmp(roles[i][0], role)) role = roles[i][1];
        mr_table_add(table, "%s/%" PRIu64, role, mr_json_get_u64(m, "index"));
        mr_table_add(table, "%s", mr_json_get_text(m, "state"));
        mr_table_add(table, "%" PRIu64, mr_json_get_u64(c, "steps"));
        mr_table_add(table, "%" PRIu64, mr_json_get_u64(c, "examples"));
        mr_table_add(table, "%s", mr_json_get_text(m, "task"));
        mr_table_add(table, "%s", mr_json_get_text(m, "address"));
    }
    if (max) mr_table_print(table);
}

static int show_one(const struct mr_client *c, const char *id, struct mr_error *e)
{
    struct mr_train_view v;
    struct mr_buf text;
    mr_train_view_init(&v);
    mr_buf_init(&text, (size_t)1 << 20);
    int err = mr_train_get(c, id, &v, e);
    if (!err && c->json) mr_client_print(v.doc);
    if (!err && !c->json) {
        mr_train_view_table(&v, &text);
        mr_text_print(14, "%.*s", MR_STR_ARG(mr_buf_str(&text)));
        print_members(v.training);
    }
    mr_buf_fini(&text);
    mr_train_view_fini(&v);
    return err;
}

static int trainings(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    (void)config;
    (void)code;
    if (rest->count) return show_one(c, rest->items[0], e);
    return mr_client_show_list(c, print_list, "/v1/trainings", "trainings", e);
}

int mr_command_trainings(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_trainings_spec, argc, argv, &k, trainings);
}
