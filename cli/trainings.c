/* `millrace trainings`: the sessions there are, or one in full. */
#include "base/alloc.h"
#include "cli/train_follow.h"

#include <inttypes.h>
#include <string.h>

struct config {
    struct mr_client_options client;
};

static const struct mr_option options[] = {MR_CLIENT_OPTIONS};

static const struct mr_config_spec spec = {.program = "millrace trainings",
    .summary = "Lists the trainings, newest first, or shows one.",
    .usage = "[flags] [ID]",
    .examples = "  millrace trainings\n  millrace trainings t1-7\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_max = 1};

/* "cross_entropy 0.1134", or "-". */
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

static void print_list(yyjson_val *root)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *t = NULL;
    (void)printf(
        "%-10s %-10s %10s %12s  %-22s %s\n", "ID", "STATE", "STEP", "EXAMPLES", "SCORE", "NAME");
    yyjson_arr_foreach(yyjson_obj_get(root, "trainings"), at, max, t)
    {
        char score[64];
        score_text(t, score);
        (void)printf("%-10s %-10s %10" PRIu64 " %12" PRIu64 "  %-22s %s\n",
            mr_json_get_text(t, "id"), mr_train_state_word(mr_json_get_text(t, "state")),
            mr_json_get_u64(t, "version"),
            mr_json_get_u64(yyjson_obj_get(t, "counters"), "examples"), score,
            mr_json_get_text(t, "name"));
    }
    if (mr_json_get_text(root, "next_page_token")[0]) (void)printf("… and older ones\n");
}

static void print_members(yyjson_val *t)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *m = NULL;
    yyjson_arr_foreach(yyjson_obj_get(t, "members"), at, max, m)
    {
        static const char *const roles[][2] = {
            {"TRAINING_PS", "ps"}, {"TRAINING_WORKER", "worker"}, {"TRAINING_SCORER", "scorer"}};
        const char *role = mr_json_get_text(m, "role");
        yyjson_val *c = yyjson_obj_get(m, "counters");
        for (size_t i = 0; i < MR_ARRAY_LEN(roles); i++)
            if (!strcmp(roles[i][0], role)) role = roles[i][1];
        char name[32];
        (void)snprintf(name, sizeof name, "%s/%" PRIu64, role, mr_json_get_u64(m, "index"));
        (void)printf("  %-11s %-9s %s, task %s, %" PRIu64 " steps, %" PRIu64 " examples\n", name,
            mr_json_get_text(m, "state"), mr_json_get_text(m, "address"),
            mr_json_get_text(m, "task"), mr_json_get_u64(c, "steps"),
            mr_json_get_u64(c, "examples"));
    }
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
        (void)fwrite(text.p, 1, text.n, stdout);
        print_members(v.training);
    }
    mr_buf_fini(&text);
    mr_train_view_fini(&v);
    return err;
}

static int list(const struct mr_client *c, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    int err = mr_client_call(c, "GET", (struct mr_str){0}, &doc, e, "/v1/trainings");
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json) print_list(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return err;
}

int mr_command_trainings(int argc, char **argv)
{
    struct config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    mr_config_load(&spec, argc, argv, &k, &rest);
    int err = mr_client_open(&k.client, &c, &e);
    if (!err) err = rest.count ? show_one(&c, rest.items[0], &e) : list(&c, &e);
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    return err ? mr_client_fail("trainings", &e) : MR_EXIT_OK;
}
