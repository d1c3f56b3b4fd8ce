/* The document of a session: its defaults and parameters, and the documents that are refused. */
#include "services/trainer/document/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MODEL                                                                                      \
    "\"model\":{\"input\":[784],\"layers\":[{\"type\":\"Dense\",\"units\":10}]},"                  \
    "\"data\":{\"train\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}}}"
#define SCORED                                                                                     \
    "\"model\":{\"input\":[784],\"layers\":[{\"type\":\"Dense\",\"units\":10}]},"                  \
    "\"data\":{\"train\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}},"                         \
    "\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}}}"

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

/* Checks that the document is refused with exactly the error text `words`. */
static void refused_so(const char *json, const char *words)
{
    struct mr_training_document *d = NULL;
    struct mr_error e = {0};
    assert_int_equal(mr_training_document_parse(mr_str(json), &d, &e), MR_EINVAL);
    assert_string_equal(e.text, words);
}

static bool says(const struct mr_training_document *d, const char *words)
{
    struct mr_str json = mr_training_document_json(d);
    return memmem(json.p, json.n, words, strlen(words)) != NULL;
}

/* The processes of the training read the completed JSON, so each default must be in it. */
static void a_short_document_gets_every_default(void **state)
{
    (void)state;
    static const char rest[] = ",\"name\":\"training\",\"save\":\"training/model\","
                               "\"update\":{\"rule\":\"async\"},"
                               "\"roles\":{\"worker\":1,\"ps\":1,\"scorer\":1},"
                               "\"optimizer\":{\"type\":\"adam\"},\"loss\":\"cross_entropy\","
                               "\"init\":{\"seed\":0},"
                               "\"stop\":{\"steps\":0,\"time_s\":0.0,\"epochs\":1},"
                               "\"score\":{\"every_s\":1.0,\"examples\":0},"
                               "\"checkpoint\":{\"every_steps\":0,\"keep\":2},"
                               "\"limits\":{\"forming_s\":60.0,\"recovering_s\":60.0,"
                               "\"stopping_s\":60.0,\"lease_s\":3.0,\"preparing_s\":3600.0}}";
    static const char data[] = ",\"batch\":64,\"shuffle\":true,\"seed\":0,\"remainder\":\"drop\"}";
    char json[2048];
    struct mr_training_document *d = parse("{" SCORED "}");
    (void)snprintf(json, sizeof json, "{%.*s%s%s", (int)sizeof SCORED - 2, SCORED, data, rest);
    assert_true(mr_str_eq(mr_training_document_json(d), mr_str(json)));
    assert_int_equal(d->roles[MR_TRAINING_PS], 1);
    assert_int_equal(d->roles[MR_TRAINING_WORKER], 1);
    assert_int_equal(d->roles[MR_TRAINING_SCORER], 1);
    assert_int_equal(d->rule, MR_TRAINING_ASYNC);
    assert_int_equal(d->epochs, 1);
    assert_int_equal(d->steps, 0);
    assert_int_equal(d->time, 0);
    assert_int_equal(d->checkpoint_every, 0);
    assert_int_equal(d->checkpoint_keep, 2);
    assert_true(d->forming == 60 * MR_SECOND && d->recovering == 60 * MR_SECOND);
    assert_true(d->stopping == 60 * MR_SECOND && d->lease == 3 * MR_SECOND);
    assert_true(d->preparing == 3600 * MR_SECOND);
    assert_true(mr_str_eq(d->save, MR_STR("training/model")));
    mr_training_document_free(&d);
    mr_training_document_free(&d); /* does nothing: the pointer is NULL */
    d = parse("{" SCORED ",\"stop\":{\"patience\":{\"field\":\"accuracy\"}}}");
    assert_true(
        says(d, "{\"field\":\"accuracy\",\"scores\":10,\"min_delta\":0.0,\"mode\":\"min\"}"));
    assert_true(d->patience.scores == 10 && d->patience.min_delta == 0 && !d->patience.is_max);
    mr_training_document_free(&d);
}

static void its_own_json_means_the_same(void **state)
{
    (void)state;
    struct mr_training_document *d = parse("{" SCORED ",\"stop\":{\"time_s\":2.5}}");
    struct mr_training_document *again = NULL;
    assert_int_equal(mr_training_document_parse(mr_training_document_json(d), &again, NULL), MR_OK);
    assert_true(mr_str_eq(mr_training_document_json(d), mr_training_document_json(again)));
    assert_true(again->time == 2500 * MR_MS);
    mr_training_document_free(&again);
    mr_training_document_free(&d);
}

static void parameters_keep_their_types_and_are_text_inside_texts(void **state)
{
    (void)state;
    struct mr_training_document *d =
        parse("{\"params\":{\"n\":3,\"who\":\"me\",\"data\":\"d\"},\"name\":\"of-${who}-${n}\","
              "\"graph\":{\"tasks\":{\"a\":{\"value\":\"${data}\"}}},"
              "\"model\":{\"input\":[784],\"layers\":[{\"type\":\"Dense\",\"units\":10}]},"
              "\"data\":{\"train\":{\"x\":\"a\",\"y\":\"a\"}},\"roles\":{\"worker\":\"${n}\"}}");
    assert_int_equal(d->roles[MR_TRAINING_WORKER], 3);
    assert_true(mr_str_eq(d->name, MR_STR("of-me-3")));
    assert_true(mr_str_eq(d->save, MR_STR("of-me-3/model")));
    /* "${data}" stays in the graph, because the scheduler replaces the graph's parameters. */
    assert_true(says(d, "\"value\":\"${data}\""));
    mr_training_document_free(&d);
    refused("{" MODEL ",\"name\":\"${nobody}\"}", "there is no \"nobody\"");
}

static void unknown_fields_are_refused_with_their_path(void **state)
{
    (void)state;
    refused("{" MODEL ",\"stop\":{\"threshhold\":1}}",
        "stop.threshhold: unknown field; known are threshold");
    refused("{" MODEL ",\"colour\":1}", "colour: unknown field");
    refused("{" MODEL ",\"roles\":{\"worker\":{\"number\":1}}}", "roles.worker.number: unknown");
    refused("{" MODEL ",\"loss\":\"mse\",\"loss\":\"mse\"}", "loss: given twice");
}

static void values_out_of_bounds_are_refused_with_the_bounds(void **state)
{
    (void)state;
    refused(
        "{" MODEL ",\"roles\":{\"worker\":1000}}", "roles.worker: expected a whole number from");
    refused("{" MODEL ",\"limits\":{\"lease_s\":0}}", "limits.lease_s: expected a number from 0.1");
    refused("{" MODEL ",\"limits\":{\"lease_s\":[0]}}", "to 2.592e+06, got [0]");
    refused("{" MODEL ",\"checkpoint\":{\"keep\":[1,{\"a\":2}]}}",
        "checkpoint.keep: expected a whole number from 1 to 16, got [1,{\"a\":2}]");
    refused("{" MODEL ",\"checkpoint\":{\"keep\":17}}", "checkpoint.keep");
    refused("{" MODEL ",\"update\":{\"rule\":\"magic\"}}",
        "update.rule: expected one of async sync allreduce");
    refused("{" MODEL ",\"loss\":\"mes\"}", "loss: expected one of");
    refused_so("{" MODEL ",\"optimizer\":{\"type\":\"adam\",\"rate\":1}}",
        "optimizer: adam has no field \"rate\"");
    refused("{}", "data.train");
    refused("[]", "no JSON object");
    refused("{\"a\"", "no JSON");
    refused("", "no JSON");
}

#define SIZED(batch)                                                                               \
    "\"model\":{\"input\":[4],\"layers\":[{\"type\":\"Dense\",\"units\":2}]},"                     \
    "\"data\":{\"train\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}},\"batch\":" batch "}"

static void numbers_that_no_role_could_serve_are_refused(void **state)
{
    (void)state;
    refused(
        "{" SIZED("65537") "}", "data.batch: expected a whole number from 1 to 65536, got 65537");
    refused("{" SIZED("\"many\"") "}", "got \"many\"");
    refused("{" SIZED("0") "}", "data.batch: expected a whole number from 1 to 65536, got 0");
    refused("{" SIZED("1") ",\"roles\":{\"ps\":65}}",
        "roles.ps: expected at most 64 parameter servers, got 65");
    refused("{" SIZED("1") ",\"roles\":{\"ps\":{\"count\":65}}}",
        "roles.ps: expected at most 64 parameter servers, got 65");
    refused("{" SIZED("1") ",\"roles\":{\"ps\":257}}",
        "roles.ps: expected a whole number from 0 to 256, got 257");
    refused("{" SIZED("1") ",\"update\":{\"rule\":\"allreduce\"},\"roles\":{\"worker\":65}}",
        "roles.worker: expected at most 64 workers under allreduce, got 65");
}

static void the_largest_numbers_that_roles_serve_are_accepted(void **state)
{
    (void)state;
    struct mr_training_document *d =
        parse("{" SIZED("65536") ",\"roles\":{\"ps\":64,\"worker\":256}}");
    mr_training_document_free(&d);
    d = parse("{" SIZED("1") ",\"update\":{\"rule\":\"allreduce\"},\"roles\":{\"worker\":64}}");
    mr_training_document_free(&d);
}

static void programs_of_foreign_roles_have_limits_of_their_own(void **state)
{
    (void)state;
    struct mr_training_document *d =
        parse("{\"roles\":{\"ps\":{\"count\":100,\"exec\":[\"x\"]},"
              "\"worker\":{\"count\":100,\"exec\":[\"x\"]}},\"data\":{\"batch\":100000}}");
    assert_int_equal(d->roles[MR_TRAINING_PS], 100);
    mr_training_document_free(&d);
}

static void rules_of_roles_are_checked(void **state)
{
    (void)state;
    refused("{" MODEL ",\"update\":{\"rule\":\"allreduce\"},\"roles\":{\"ps\":1}}",
        "roles.ps: must be 0 under allreduce");
    refused("{" MODEL ",\"roles\":{\"ps\":0}}", "roles.ps: must be at least 1");
    refused("{" MODEL ",\"roles\":{\"scorer\":1}}", "data.validation: a scorer needs it");
    refused("{" MODEL ",\"stop\":{\"threshold\":{\"field\":\"a\",\"below\":1}}}",
        "no role writes scores");
    refused("{" MODEL ",\"update\":{\"rule\":\"sync\",\"replicas_to_aggregate\":2}}",
        "update.replicas_to_aggregate");
    refused("{" SCORED ",\"stop\":{\"threshold\":{\"field\":\"a\",\"below\":1,\"above\":2}}}",
        "stop.threshold: expected exactly one of below and above");
    refused("{" MODEL ",\"roles\":{\"ps\":1,\"worker\":{\"exec\":[\"x\"]}}}", "do not mix");
}

static void a_rule_over_a_field_that_scores_lack_is_refused(void **state)
{
    (void)state;
    refused("{" SCORED ",\"stop\":{\"threshold\":{\"field\":\"cross_entrpy\",\"below\":1}}}",
        "stop.threshold.field: scores have no \"cross_entrpy\"");
    refused("{" SCORED ",\"loss\":\"mse\",\"stop\":{\"patience\":{\"field\":\"cross_entropy\"}}}",
        "stop.patience.field: scores have no \"cross_entropy\"; they have mse accuracy");
    struct mr_training_document *d = parse("{" SCORED ",\"stop\":{\"threshold\":"
                                           "{\"field\":\"mine\",\"below\":1,\"channel\":\"c\"}}}");
    mr_training_document_free(&d);
}

static void foreign_roles_need_no_model(void **state)
{
    (void)state;
    struct mr_training_document *d =
        parse("{\"roles\":{\"worker\":{\"count\":2,\"exec\":[\"python3\",\"train.py\"],"
              "\"env\":{\"A\":\"1\"}}}}");
    assert_true(d->is_exec);
    assert_int_equal(d->roles[MR_TRAINING_PS], 0);
    assert_int_equal(d->roles[MR_TRAINING_WORKER], 2);
    assert_int_equal(mr_training_document_shards(d), 0);
    mr_training_document_free(&d);
    refused("{\"roles\":{\"worker\":{\"exec\":[]}}}", "roles.worker.exec");
    refused(
        "{\"roles\":{\"worker\":{\"exec\":[\"x\"],\"env\":{\"A=B\":\"1\"}}}}", "roles.worker.env");
}

static void nesting_without_end_is_refused(void **state)
{
    (void)state;
    char deep[400];
    memset(deep, '[', sizeof deep);
    struct mr_error e = {0};
    struct mr_training_document *d = NULL;
    assert_int_equal(mr_training_document_parse(mr_str_of(deep, sizeof deep), &d, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "deeper"));
}

/* The depth of a document does not grow with its number of values: a long, flat document is
 * accepted. */
static void many_members_are_not_deep(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 65536);
    mr_buf_add_text(&b, "{" SCORED ",\"graph\":{\"tasks\":{");
    for (int i = 0; i < 200; i++)
        mr_buf_printf(
            &b, "%s\"t%d\":{\"op\":\"array.full\",\"args\":[[%d],1]}", i ? "," : "", i, i + 1);
    mr_buf_add_text(&b, "}}}");
    struct mr_error e = {0};
    struct mr_training_document *d = NULL;
    if (mr_training_document_parse(mr_buf_str(&b), &d, &e)) fail_msg("%s", e.text);
    mr_training_document_free(&d);
    mr_buf_fini(&b);
}

static void values_of_environments_are_for_roles_only(void **state)
{
    (void)state;
    struct mr_training_document *d =
        parse("{\"name\":\"n\",\"roles\":{\"worker\":{\"exec\":[\"x\"],"
              "\"env\":{\"KEY\":\"s3cret\"}}}}");
    struct mr_buf shown;
    mr_buf_init(&shown, 4096);
    mr_training_document_show(d, &shown);
    assert_null(memmem(shown.p, shown.n, "s3cret", 6));
    assert_non_null(memmem(shown.p, shown.n, "\"KEY\"", 5));
    assert_true(says(d, "s3cret"));
    mr_buf_fini(&shown);
    mr_training_document_free(&d);
}

static void a_trimmed_document_keeps_its_texts(void **state)
{
    (void)state;
    struct mr_training_document *d = parse("{\"name\":\"n\",\"channel\":\"c\"," SCORED "}");
    mr_training_document_trim(d);
    mr_training_document_trim(d);
    assert_true(mr_str_eq(d->name, MR_STR("n")));
    assert_true(mr_str_eq(d->save, MR_STR("n/model")));
    assert_true(mr_str_eq(d->channel, MR_STR("c")));
    assert_int_equal(mr_training_document_json(d).n, 0);
    assert_true(mr_training_document_text(d).n > 0);
    mr_training_document_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_document_gets_every_default),
        cmocka_unit_test(its_own_json_means_the_same),
        cmocka_unit_test(parameters_keep_their_types_and_are_text_inside_texts),
        cmocka_unit_test(unknown_fields_are_refused_with_their_path),
        cmocka_unit_test(values_out_of_bounds_are_refused_with_the_bounds),
        cmocka_unit_test(numbers_that_no_role_could_serve_are_refused),
        cmocka_unit_test(the_largest_numbers_that_roles_serve_are_accepted),
        cmocka_unit_test(programs_of_foreign_roles_have_limits_of_their_own),
        cmocka_unit_test(rules_of_roles_are_checked),
        cmocka_unit_test(a_rule_over_a_field_that_scores_lack_is_refused),
        cmocka_unit_test(foreign_roles_need_no_model),
        cmocka_unit_test(values_of_environments_are_for_roles_only),
        cmocka_unit_test(a_trimmed_document_keeps_its_texts),
        cmocka_unit_test(nesting_without_end_is_refused),
        cmocka_unit_test(many_members_are_not_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
