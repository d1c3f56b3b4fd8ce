/* The document of a session, field by field: how fields are read, the bounds of their values, and
 * the parameters that replace "${name}" in texts. */
#include "base/limits.h"
#include "services/trainer/document/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DENSE "\"model\":{\"input\":[784],\"layers\":[{\"type\":\"Dense\",\"units\":10}]},"
#define TRAIN "\"train\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}}"
#define FED DENSE "\"data\":{" TRAIN /* the object "data" is still open */
#define MODEL FED "}"
#define SCORED FED ",\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}}}"
#define KEYS "\"graph\":{\"tasks\":{}}," DENSE "\"data\":{\"train\":{\"x\":\"a\",\"y\":\"b\"}"

static struct mr_training_document *parse(const char *json)
{
    struct mr_training_document *d = NULL;
    struct mr_error e = {0};
    if (mr_training_document_parse(mr_str(json), &d, &e)) fail_msg("%s: %s", json, e.text);
    return d;
}

static void refused(const char *json, const char *words)
{
    struct mr_training_document *d = NULL;
    struct mr_error e = {0};
    int err = mr_training_document_parse(mr_str(json), &d, &e);
    if (!err) fail_msg("accepted: %s", json);
    assert_null(d);
    if (!strstr(e.text, words)) fail_msg("\"%s\" does not say \"%s\"", e.text, words);
}

static bool says(const struct mr_training_document *d, const char *words)
{
    struct mr_str json = mr_training_document_json(d);
    return memmem(json.p, json.n, words, strlen(words)) != NULL;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* Returns true if the document with `value` in place of `%s` is accepted. Returns false if it is
 * refused; then the error must name `path`. */
static bool takes(const char *format, const char *value, const char *path)
{
    char json[2048];
    struct mr_training_document *d = NULL;
    struct mr_error e = {0};
    const char *at = strstr(format, "%s");
    int n = snprintf(json, sizeof json, "%.*s%s%s", (int)(at - format), format, value, at + 2);
    assert_true(n > 0 && (size_t)n < sizeof json);
    int err = mr_training_document_parse(mr_str(json), &d, &e);
    if (err && !strstr(e.text, path)) fail_msg("\"%s\" does not name %s", e.text, path);
    mr_training_document_free(&d);
    return !err;
}

static void every_number_has_its_bounds(void **state)
{
    static const struct {
        const char *format, *path, *below, *least, *most, *above;
    } numbers[] = {
        {"{" SCORED ",\"roles\":{\"worker\":%s}}", "roles.worker", "0", "1", "256", "257"},
        {"{" SCORED ",\"roles\":{\"worker\":{\"count\":%s}}}", "roles.worker", "0", "1", "256",
            "257"},
        {"{" SCORED ",\"roles\":{\"ps\":%s}}", "roles.ps", "0", "1", "64", "65"},
        {"{" SCORED ",\"roles\":{\"scorer\":%s}}", "roles.scorer", "-1", "0", "256", "257"},
        {"{" SCORED ",\"roles\":{\"worker\":3},\"update\":{\"rule\":\"sync\","
         "\"replicas_to_aggregate\":%s}}",
            "update.replicas_to_aggregate", "0", "1", "3", "4"},
        {"{" FED ",\"batch\":%s}}", "data.batch", "0", "1", "65536", "65537"},
        {"{" FED ",\"seed\":%s}}", "data.seed", "-1", "0", "9007199254740992", "9007199254740993"},
        {"{" SCORED ",\"init\":{\"seed\":%s}}", "init.seed", "-1", "0", "9007199254740992",
            "9007199254740993"},
        {"{" SCORED ",\"stop\":{\"steps\":%s}}", "stop.steps", "-1", "0", "9007199254740992",
            "9007199254740993"},
        {"{" SCORED ",\"stop\":{\"steps\":1,\"epochs\":%s}}", "stop.epochs", "-1", "0",
            "9007199254740992", "9007199254740993"},
        {"{" SCORED ",\"stop\":{\"time_s\":%s}}", "stop.time_s", "-0.1", "0", "2592000",
            "2592000.1"},
        {"{" SCORED ",\"stop\":{\"patience\":{\"field\":\"accuracy\",\"scores\":%s}}}",
            "stop.patience.scores", "0", "1", "1000000", "1000001"},
        {"{" SCORED ",\"stop\":{\"patience\":{\"field\":\"accuracy\",\"min_delta\":%s}}}",
            "stop.patience.min_delta", "-1e-9", "0", "1e300", "1.1e300"},
        {"{" SCORED ",\"stop\":{\"threshold\":{\"field\":\"accuracy\",\"above\":%s}}}",
            "stop.threshold.above", "-1.1e300", "-1e300", "1e300", "1.1e300"},
        {"{" SCORED ",\"score\":{\"every_s\":%s}}", "score.every_s", "0.009", "0.01", "2592000",
            "2592001"},
        {"{" SCORED ",\"score\":{\"every_steps\":%s}}", "score.every_steps", "-1", "0",
            "9007199254740992", "9007199254740993"},
        {"{" SCORED ",\"score\":{\"examples\":%s}}", "score.examples", "-1", "0",
            "9007199254740992", "9007199254740993"},
        {"{" SCORED ",\"checkpoint\":{\"every_steps\":%s}}", "checkpoint.every_steps", "-1", "0",
            "9007199254740992", "9007199254740993"},
        {"{" SCORED ",\"checkpoint\":{\"keep\":%s}}", "checkpoint.keep", "0", "1", "16", "17"},
        {"{" SCORED ",\"limits\":{\"forming_s\":%s}}", "limits.forming_s", "0.09", "0.1", "2592000",
            "2592001"},
        {"{" SCORED ",\"limits\":{\"recovering_s\":%s}}", "limits.recovering_s", "0.09", "0.1",
            "2592000", "2592001"},
        {"{" SCORED ",\"limits\":{\"stopping_s\":%s}}", "limits.stopping_s", "0.09", "0.1",
            "2592000", "2592001"},
        {"{" SCORED ",\"limits\":{\"lease_s\":%s}}", "limits.lease_s", "0.09", "0.1", "2592000",
            "2592001"},
        {"{" SCORED ",\"limits\":{\"preparing_s\":%s}}", "limits.preparing_s", "0.09", "0.1",
            "2592000", "2592001"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const char *path = numbers[i].path;
        if (takes(numbers[i].format, numbers[i].below, path)) fail_msg("%s: below", path);
        if (!takes(numbers[i].format, numbers[i].least, path)) fail_msg("%s: least", path);
        if (!takes(numbers[i].format, numbers[i].most, path)) fail_msg("%s: most", path);
        if (takes(numbers[i].format, numbers[i].above, path)) fail_msg("%s: above", path);
        if (takes(numbers[i].format, "\"1\"", path)) fail_msg("%s: a text", path);
        if (takes(numbers[i].format, "true", path)) fail_msg("%s: a boolean", path);
    }
}

static void every_text_has_its_bound(void **state)
{
    static const struct {
        const char *format, *path;
        uint32_t most;
    } texts[] = {
        {"{" SCORED ",\"save\":\"s\",\"name\":\"%s\"}", "name", 200},
        {"{" SCORED ",\"save\":\"%s\"}", "save", 1024},
        {"{" SCORED ",\"channel\":\"%s\"}", "channel", 256},
        {"{" SCORED ",\"stop\":{\"threshold\":{\"field\":\"%s\",\"below\":1,\"channel\":\"c\"}}}",
            "stop.threshold.field", 128},
        {"{" SCORED ",\"stop\":{\"threshold\":{\"field\":\"f\",\"below\":1,\"channel\":\"%s\"}}}",
            "stop.threshold.channel", 256},
        {"{" SCORED ",\"init\":{\"model\":\"%s\"}}", "init.model", 1024},
        {"{" FED ",\"queue\":\"%s\"}}", "data.queue", 256},
        {"{" KEYS ",\"validation\":{\"x\":\"%s\",\"y\":\"b\"}}}", "data.validation.x", 1024},
        {"{" KEYS ",\"validation\":{\"x\":{\"name\":\"%s\"},\"y\":\"b\"}}}", "data.validation.x",
            1024},
    };
    char text[1026];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *path = texts[i].path;
        memset(text, 'a', sizeof text);
        text[texts[i].most + 1] = 0;
        if (takes(texts[i].format, text, path)) fail_msg("%s: too long", path);
        text[texts[i].most] = 0;
        /* The document has "train", too, which excludes "queue". */
        bool is_queue = !strcmp(path, "data.queue");
        if (takes(texts[i].format, text, is_queue ? "data.train" : path) == is_queue)
            fail_msg("%s: the longest", path);
        if (takes(texts[i].format, "", path)) fail_msg("%s: empty", path);
        /* A persisted name may have control characters. */
        bool is_name = strstr(texts[i].format, "{\"name\":\"%s");
        if (!is_name && takes(texts[i].format, "a\\u0007b", path))
            fail_msg("%s: a control character", path);
    }
}

static void what_is_of_the_wrong_kind_is_refused(void **state)
{
    static const char *const wrong[][2] = {
        {"{" MODEL ",\"params\":[1]}", "params: expected an object"},
        {"{" MODEL ",\"graph\":1}", "graph: expected a job"},
        {"{" MODEL ",\"roles\":[1]}", "roles: expected an object"},
        {"{" MODEL ",\"optimizer\":\"adam\"}", "optimizer: expected an object with type"},
        {"{" MODEL ",\"optimizer\":{\"type\":\"none\"}}", "optimizer"},
        {"{" MODEL ",\"loss\":1}", "loss: expected a text"},
        {"{" MODEL ",\"init\":{\"seed\":1,\"model\":\"m\"}}", "init: only one of"},
        {"{" MODEL ",\"init\":{\"checkpoint\":[]}}", "init.checkpoint: expected a list"},
        {"{" MODEL ",\"init\":{\"checkpoint\":[\"a\",1]}}", "init.checkpoint: expected a list"},
        {"{" MODEL ",\"init\":{\"checkpoint\":{\"a\":\"b\"}}}", "init.checkpoint: expected a list"},
        {"{" MODEL ",\"update\":{\"replicas_to_aggregate\":1}}", "only with \"rule\": \"sync\""},
        {"{" MODEL ",\"roles\":{\"worker\":{\"restart\":true}}}", "only with \"exec\""},
        {"{" FED ",\"shuffle\":1}}", "data.shuffle: expected true or false"},
        {"{" FED ",\"remainder\":\"lose\"}}", "data.remainder: expected one of drop keep"},
        {"{" FED ",\"remainder\":1}}", "data.remainder: expected one of drop keep"},
        {"{" FED ",\"queue\":\"q\"}}", "data.train: there is a \"queue\", too"},
        {"{\"model\":{\"input\":[4],\"layers\":[{\"type\":\"Dense\",\"units\":1}]},\"data\":{}}",
            "data.train: missing; or \"queue\""},
        {"{\"data\":{\"queue\":\"q\"}}", "model: expected an object"},
        {"{\"data\":{\"queue\":\"q\"},\"model\":{\"input\":[0]}}", "model"},
        {"{" MODEL ",\"stop\":{\"patience\":{\"field\":\"accuracy\"}}}", "no role writes scores"},
        {"{" SCORED ",\"stop\":{\"patience\":{\"scores\":3}}}", "stop.patience.field: expected"},
        {"{" SCORED ",\"stop\":{\"threshold\":{\"field\":\"accuracy\"}}}", "exactly one of"},
        {"{" FED ",\"validation\":{\"x\":\"k\",\"y\":{\"name\":\"y\"}}}}",
            "data.validation.x: a key, but there is no graph"},
        {"{" FED ",\"validation\":{\"x\":{\"name\":\"x\"},\"y\":1}}}", "data.validation.y"},
        {"{" FED ",\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{}}}}", "data.validation.y"},
        {"{" FED ",\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":1}}}}", "validation.y"},
        {"{" FED ",\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"\"}}}}", "ation.y"},
        {"{" FED ",\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{\"object\":\"o\"}}}}", "ation.y"},
        {"{" FED ",\"validation\":{\"x\":{\"name\":\"x\",\"a\":1},\"y\":{\"name\":\"y\"}}}}",
            "data.validation.x: expected a key"},
        {"{" DENSE "\"data\":{\"train\":{\"x\":1,\"y\":{\"name\":\"y\"}}}}",
            "data.train.x: expected a key"},
        {"{" FED ",\"test\":{\"x\":{\"name\":\"x\"}}}}", "data.test.y: expected a key"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused(wrong[i][0], wrong[i][1]);
}

#define EXEC(more) "{\"roles\":{\"worker\":{\"exec\":[\"x\"]" more "}}}"

static void what_a_program_cannot_have_in_its_environment_is_refused(void **state)
{
    static const char *const wrong[] = {
        EXEC(",\"env\":[\"A\"]"),
        EXEC(",\"env\":\"A\""),
        EXEC(",\"env\":{\"A\":1}"),
        EXEC(",\"env\":{\"A\":\"b\\u0000c\"}"),
        EXEC(",\"env\":{\"A\\u0000B\":\"c\"}"),
        EXEC(",\"env\":{\"\":\"c\"}"),
        EXEC(",\"env\":{\"=\":\"c\"}"),
        EXEC(",\"env\":{\"GOOD\":\"c\",\"A=\":\"c\"}"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused(wrong[i], "roles.worker.env: expected an object");
    refused("{\"roles\":{\"worker\":{\"exec\":[\"a\\u0000b\"]}}}", "roles.worker.exec");
    refused("{\"roles\":{\"worker\":{\"exec\":\"x\"}}}", "roles.worker.exec");
    refused(EXEC(",\"restart\":1"), "roles.worker.restart: expected true or false");
    struct mr_training_document *d =
        parse(EXEC(",\"env\":{\"A\":\"\",\"B\":\"x=y\"},\"restart\":true"));
    assert_true(d->exec[MR_TRAINING_WORKER] && !d->exec[MR_TRAINING_PS]);
    assert_int_equal(d->roles[MR_TRAINING_WORKER], 1);
    assert_int_equal(d->roles[MR_TRAINING_SCORER], 0);
    assert_true(says(d, "\"restart\":true"));
    mr_training_document_free(&d);
    d = parse(EXEC(",\"count\":3"));
    assert_true(says(d, "\"restart\":false"));
    mr_training_document_free(&d);
}

/* Returns true if a list of `count` texts is accepted as "exec" or, if `is_env`, `count` variables
 * as "env". */
static bool takes_so_many(uint32_t count, bool is_env)
{
    struct mr_buf b;
    mr_buf_init(&b, 1 << 20);
    mr_buf_add_text(&b, is_env ? "{\"roles\":{\"worker\":{\"exec\":[\"x\"],\"env\":{"
                               : "{\"roles\":{\"worker\":{\"exec\":[");
    for (uint32_t i = 0; i < count; i++)
        mr_buf_printf(&b, "%s\"v%u\"%s", i ? "," : "", i, is_env ? ":\"\"" : "");
    mr_buf_add_text(&b, is_env ? "}}}}" : "]}}}");
    struct mr_training_document *d = NULL;
    int err = mr_training_document_parse(mr_buf_str(&b), &d, NULL);
    mr_training_document_free(&d);
    mr_buf_fini(&b);
    return !err;
}

static void a_program_has_so_many_words_and_no_more(void **state)
{
    (void)state;
    assert_true(takes_so_many(1024, false) && takes_so_many(1024, true));
    assert_false(takes_so_many(1025, false) || takes_so_many(1025, true));
}

/* ---- what is read ---------------------------------------------------------------------------- */

#define FULL                                                                                         \
    "{\"name\":\"n\",\"save\":\"s\",\"channel\":\"c\",\"loss\":\"mse\","                             \
    "\"model\":{\"input\":[4],\"layers\":[{\"type\":\"Dense\",\"units\":1}]},"                       \
    "\"data\":{\"queue\":\"q\",\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}}},"     \
    "\"graph\":{\"tasks\":{}},\"roles\":{\"ps\":2,\"worker\":3,\"scorer\":1},"                       \
    "\"update\":{\"rule\":\"sync\",\"replicas_to_aggregate\":2},"                                    \
    "\"stop\":{\"threshold\":{\"field\":\"mse\",\"below\":-2.5,\"channel\":\"t\"},"                  \
    "\"patience\":{\"field\":\"accuracy\",\"scores\":7,\"min_delta\":0.25,\"mode\":\"max\"},"        \
    "\"epochs\":4,\"steps\":500,\"time_s\":60.5},"                                                   \
    "\"score\":{\"every_steps\":11,\"examples\":12},\"checkpoint\":{\"every_steps\":50,\"keep\":3}," \
    "\"limits\":{\"forming_s\":1,\"recovering_s\":2,\"stopping_s\":3.5,\"lease_s\":4,"               \
    "\"preparing_s\":5}}"

static void what_a_document_says_is_what_is_read(void **state)
{
    (void)state;
    struct mr_training_document *d = parse(FULL);
    assert_true(mr_str_eq(d->name, MR_STR("n")) && mr_str_eq(d->save, MR_STR("s")));
    assert_true(mr_str_eq(d->channel, MR_STR("c")));
    assert_true(mr_str_eq(mr_training_document_text(d), MR_STR(FULL)));
    assert_true(d->has_graph && d->has_feed && !d->is_exec);
    assert_int_equal(d->roles[MR_TRAINING_PS], 2);
    assert_int_equal(d->roles[MR_TRAINING_WORKER], 3);
    assert_int_equal(d->roles[MR_TRAINING_SCORER], 1);
    assert_int_equal(d->rule, MR_TRAINING_SYNC);
    assert_int_equal(d->replicas_to_aggregate, 2);
    assert_string_equal(mr_nn_loss_name(d->loss), "mse");
    assert_true(mr_str_eq(d->threshold.field, MR_STR("mse")));
    assert_true(!d->threshold.is_above && d->threshold.value == -2.5);
    assert_true(mr_str_eq(d->threshold_channel, MR_STR("t")));
    assert_true(mr_str_eq(d->patience.field, MR_STR("accuracy")));
    assert_true(d->patience.is_max && d->patience.min_delta == 0.25);
    assert_int_equal(d->patience.scores, 7);
    assert_int_equal(d->epochs, 4);
    assert_int_equal(d->steps, 500);
    assert_true(d->time == 60500 * MR_MS);
    assert_int_equal(d->checkpoint_every, 50);
    assert_int_equal(d->checkpoint_keep, 3);
    assert_true(d->forming == MR_SECOND && d->recovering == 2 * MR_SECOND);
    assert_true(d->stopping == 3500 * MR_MS && d->lease == 4 * MR_SECOND);
    assert_true(d->preparing == 5 * MR_SECOND);
    assert_int_equal(mr_training_document_shards(d), 2);
    assert_false(says(d, "every_s\"")); /* the document says "every_steps" */
    mr_training_document_trim(d);
    assert_true(mr_str_eq(d->name, MR_STR("n")) && mr_str_eq(d->save, MR_STR("s")));
    assert_true(mr_str_eq(d->threshold.field, MR_STR("mse")));
    assert_true(mr_str_eq(d->threshold_channel, MR_STR("t")));
    assert_true(mr_str_eq(d->patience.field, MR_STR("accuracy")));
    mr_training_document_free(&d);
}

static void a_rule_that_is_not_given_leaves_one_epoch(void **state)
{
    static const struct {
        const char *json;
        uint64_t epochs;
    } rules[] = {
        {"{" SCORED ",\"stop\":{}}", 1},
        {"{" SCORED ",\"stop\":{\"epochs\":0}}", 1},
        {"{" SCORED ",\"stop\":{\"epochs\":5}}", 5},
        {"{" SCORED ",\"stop\":{\"steps\":9}}", 0},
        {"{" SCORED ",\"stop\":{\"time_s\":9}}", 0},
        {"{" SCORED ",\"stop\":{\"threshold\":{\"field\":\"accuracy\",\"above\":1}}}", 0},
        {"{" SCORED ",\"stop\":{\"patience\":{\"field\":\"accuracy\"}}}", 0},
        {"{" SCORED ",\"stop\":{\"epochs\":0,\"steps\":9}}", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct mr_training_document *d = parse(rules[i].json);
        if (d->epochs != rules[i].epochs)
            fail_msg("%s: %llu", rules[i].json, (unsigned long long)d->epochs);
        mr_training_document_free(&d);
    }
    refused("{" SCORED ",\"stop\":{\"epochs\":\"1\"}}", "stop.epochs");
    struct mr_training_document *d =
        parse("{" SCORED ",\"stop\":{\"threshold\":{\"field\":\"accuracy\",\"above\":0.5}}}");
    assert_true(d->threshold.is_above && d->threshold.value == 0.5);
    assert_int_equal(d->threshold_channel.n, 0);
    mr_training_document_free(&d);
}

static void roles_follow_the_rule_and_the_data(void **state)
{
    (void)state;
    struct mr_training_document *d =
        parse("{" MODEL ",\"update\":{\"rule\":\"allreduce\"},\"roles\":{\"worker\":4}}");
    assert_int_equal(d->rule, MR_TRAINING_ALLREDUCE);
    assert_int_equal(d->roles[MR_TRAINING_PS], 0);
    assert_int_equal(d->roles[MR_TRAINING_SCORER], 0); /* there is no validation data */
    assert_int_equal(mr_training_document_shards(d), 4);
    mr_training_document_free(&d);
    d = parse("{" SCORED ",\"update\":{\"rule\":\"sync\"},\"roles\":{\"worker\":5}}");
    assert_int_equal(d->replicas_to_aggregate, 5);
    assert_true(says(d, "\"replicas_to_aggregate\":5"));
    assert_false(d->has_graph || d->has_feed);
    mr_training_document_free(&d);
    d = parse("{\"update\":{\"rule\":\"allreduce\"},\"roles\":{\"worker\":{\"exec\":[\"x\"]},"
              "\"ps\":{\"exec\":[\"y\"],\"count\":2}}}");
    /* Roles that execute the user's programs have no update rule, so the default stands. */
    assert_int_equal(d->rule, MR_TRAINING_ASYNC);
    assert_int_equal(d->roles[MR_TRAINING_PS], 2);
    assert_true(d->exec[MR_TRAINING_PS] && !d->exec[MR_TRAINING_SCORER]);
    mr_training_document_free(&d);
    d = parse("{" KEYS "}}");
    assert_true(d->has_graph && !d->has_feed); /* the graph makes the data that `train` names */
    mr_training_document_free(&d);
    /* a program of the user may score any fields */
    d = parse(
        "{\"roles\":{\"worker\":{\"exec\":[\"x\"]}},"
        "\"stop\":{\"patience\":{\"field\":\"p\"},\"threshold\":{\"field\":\"t\",\"above\":1}}}");
    mr_training_document_free(&d);
    refused("{\"roles\":{\"ps\":1,\"worker\":{\"exec\":[\"x\"]}}}", "do not mix");
    refused("{" SCORED ",\"roles\":{\"scorer\":{\"exec\":[\"x\"]}}}", "do not mix");
}

/* ---- parameters ------------------------------------------------------------------------------ */

static bool is_written(const char *json, const char *words)
{
    struct mr_training_document *d = parse(json);
    bool is = says(d, words);
    mr_training_document_free(&d);
    return is;
}

static void parameters_are_put_in_wherever_a_text_is(void **state)
{
    (void)state;
#define WITH(params, word)                                                                         \
    "{\"params\":{" params "},\"roles\":{\"worker\":{\"exec\":[\"a\",\"" word "\",\"z\"]}}}"
    assert_true(is_written(WITH("\"n\":\"x\"", "${n}"), "[\"a\",\"x\",\"z\"]"));
    assert_true(is_written(WITH("\"n\":7", "-${n}-${n}"), "[\"a\",\"-7-7\",\"z\"]"));
    assert_true(is_written(WITH("\"n\":true", "${n}${n}"), "[\"a\",\"truetrue\",\"z\"]"));
    assert_true(is_written(WITH("\"n\":\"x\"", "${n}y"), "[\"a\",\"xy\",\"z\"]"));
    assert_true(is_written(WITH("\"n\":\"x\"", "$n {n} ${n $"), "[\"a\",\"$n {n} ${n $\",\"z\"]"));
    assert_true(is_written(WITH("\"\":\"x\"", "${}"), "[\"a\",\"x\",\"z\"]"));
    /* The value of a parameter is not searched for parameters. */
    assert_true(is_written(WITH("\"n\":\"${m}\"", "${n}"), "[\"a\",\"${m}\",\"z\"]"));
    /* A parameter that is the whole text keeps its type, here a number, and "exec" takes only
     * texts. */
    refused(WITH("\"n\":7", "${n}"), "roles.worker.exec");
    refused(WITH("\"n\":7", "${no}"), "params: there is no \"no\"");
    refused("{\"roles\":{\"worker\":{\"exec\":[\"${n}\"]}}}", "params: there is no \"n\"");
#undef WITH
    assert_true(is_written("{\"params\":{\"env\":{\"A\":\"b\"},\"l\":[\"x\",\"y\"]},\"roles\":"
                           "{\"worker\":{\"env\":\"${env}\",\"exec\":\"${l}\"}}}",
        "\"env\":{\"A\":\"b\"},\"exec\":[\"x\",\"y\"]"));
    /* each role gets its own copy */
    assert_true(is_written("{\"params\":{\"w\":{\"exec\":[\"x\"]}},\"roles\":"
                           "{\"worker\":\"${w}\",\"ps\":\"${w}\"}}",
        "{\"worker\":{\"exec\":[\"x\"],\"restart\":false,\"count\":1},"
        "\"ps\":{\"exec\":[\"x\"],\"restart\":false,\"count\":1},\"scorer\":0}"));
}

static void a_text_that_grows_too_long_is_refused(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 4 << 20);
    mr_buf_add_text(&b, "{\"params\":{\"p\":\"");
    for (uint32_t i = 0; i < 1024; i++)
        mr_buf_add_byte(&b, 'p');
    mr_buf_add_text(&b, "\"},\"roles\":{\"worker\":{\"exec\":[\"");
    for (uint32_t i = 0; i < 1025; i++)
        mr_buf_add_text(&b, "${p}");
    mr_buf_add_text(&b, "\"]}}}");
    struct mr_training_document *d = NULL;
    struct mr_error e = {0};
    assert_int_equal(mr_training_document_parse(mr_buf_str(&b), &d, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "a text becomes too long"));
    mr_buf_fini(&b);
}

static void what_was_a_parameter_is_hidden_in_environments(void **state)
{
    (void)state;
    struct mr_training_document *d =
        parse("{\"params\":{\"e\":{\"KEY\":\"s3cret\"}},\"roles\":{\"ps\":{\"exec\":[\"y\"],"
              "\"env\":{\"OF_PS\":\"s3cret\"}},\"worker\":{\"exec\":[\"x\"],\"env\":\"${e}\"}}}");
    struct mr_buf shown;
    mr_buf_init(&shown, 4096);
    mr_training_document_show(d, &shown);
    assert_non_null(memmem(shown.p, shown.n, "{\"OF_PS\":\"(hidden)\"}", 20));
    assert_non_null(memmem(shown.p, shown.n, "\"env\":null", 10));
    mr_buf_fini(&shown);
    mr_training_document_free(&d);
    d = parse("{\"name\":\"n\",\"roles\":{\"worker\":{\"exec\":[\"x\"]}}}");
    mr_buf_init(&shown, 4096);
    mr_training_document_show(d, &shown);
    assert_null(memmem(shown.p, shown.n, "env", 3));
    mr_buf_fini(&shown);
    mr_training_document_free(&d);
    d = parse(FULL);
    mr_buf_init(&shown, 4096);
    mr_training_document_show(d, &shown);
    assert_true(mr_str_eq(mr_buf_str(&shown), MR_STR(FULL)));
    mr_buf_fini(&shown);
    mr_training_document_free(&d);
}

/* Returns true if a document of depth `depth` is accepted. Its graph is nested to this
 * depth. The brackets in the document's name must not count. */
static bool takes_depth(uint32_t depth)
{
    struct mr_buf b;
    mr_buf_init(&b, 65536);
    mr_buf_add_text(&b, "{\"name\":\"[[[\\\"{{{\"," SCORED ",\"graph\":{\"a\":");
    for (uint32_t i = 2; i < depth; i++)
        mr_buf_add_text(&b, i % 2 ? "[" : "{\"a\":");
    mr_buf_add_byte(&b, '1');
    for (uint32_t i = depth; i-- > 2;)
        mr_buf_add_byte(&b, i % 2 ? ']' : '}');
    mr_buf_add_text(&b, "}}");
    struct mr_training_document *d = NULL;
    int err = mr_training_document_parse(mr_buf_str(&b), &d, NULL);
    mr_training_document_free(&d);
    mr_buf_fini(&b);
    return !err;
}

static void a_document_is_as_deep_as_a_graph_may_be(void **state)
{
    (void)state;
    assert_true(takes_depth(MR_DEPTH_MAX));
    assert_false(takes_depth(MR_DEPTH_MAX + 1));
}

static void a_document_that_is_too_large_is_refused(void **state)
{
    (void)state;
    struct mr_training_document *d = NULL;
    struct mr_buf b;
    mr_buf_init(&b, 8 << 20);
    mr_buf_add_text(&b, "{" SCORED "}");
    while (b.n < MR_TRAINING_DOCUMENT_BYTES_MAX)
        mr_buf_add_byte(&b, ' ');
    assert_int_equal(mr_training_document_parse(mr_buf_str(&b), &d, NULL), MR_OK);
    mr_training_document_free(&d);
    mr_buf_add_byte(&b, ' ');
    assert_int_equal(mr_training_document_parse(mr_buf_str(&b), &d, NULL), MR_ETOOBIG);
    assert_null(d);
    mr_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_has_its_bounds),
        cmocka_unit_test(every_text_has_its_bound),
        cmocka_unit_test(what_is_of_the_wrong_kind_is_refused),
        cmocka_unit_test(what_a_program_cannot_have_in_its_environment_is_refused),
        cmocka_unit_test(a_program_has_so_many_words_and_no_more),
        cmocka_unit_test(what_a_document_says_is_what_is_read),
        cmocka_unit_test(a_rule_that_is_not_given_leaves_one_epoch),
        cmocka_unit_test(roles_follow_the_rule_and_the_data),
        cmocka_unit_test(parameters_are_put_in_wherever_a_text_is),
        cmocka_unit_test(a_text_that_grows_too_long_is_refused),
        cmocka_unit_test(what_was_a_parameter_is_hidden_in_environments),
        cmocka_unit_test(a_document_is_as_deep_as_a_graph_may_be),
        cmocka_unit_test(a_document_that_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
