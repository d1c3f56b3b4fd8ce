/* Paths and queries: how they are split, decoded and matched with routes, and which are refused. */
#include "gateway/http/route.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

/* Returns the method and its fields, such as "Get id=j1-7", or the name of the error. The caller
 * frees the text. */
static char *found(enum mr_http_verb verb, const char *path)
{
    size_t count;
    const struct mr_route *routes = mr_proto_routes(&count);
    struct mr_uri_text text;
    struct mr_match m;
    struct mr_error e;
    unsigned verbs;
    mr_uri_text_init(&text, strlen(path));
    int err = mr_route_match(routes, count, verb, mr_str(path), &text, &m, &verbs, &e);
    struct mr_buf b;
    mr_buf_init(&b, 4096);
    if (err) {
        mr_buf_add_text(&b, mr_err_name(err));
    } else {
        mr_buf_add_text(&b, mr_proto_method(m.route->method)->name);
        for (size_t i = 0; i < m.path_fields_count; i++)
            mr_buf_printf(
                &b, " %s=%.*s", m.path_fields[i].field, MR_STR_ARG(m.path_fields[i].value));
    }
    mr_buf_add_byte(&b, 0);
    mr_uri_text_fini(&text);
    return (char *)b.p;
}

static const struct {
    enum mr_http_verb verb;
    const char *path;
    const char *expected;
} cases[] = {
    {MR_HTTP_GET, "/v1/cluster/live", "Live"},
    {MR_HTTP_GET, "/v1/samples", "Samples"},
    {MR_HTTP_GET, "/v1/jobs", "List"},
    {MR_HTTP_POST, "/v1/jobs", "Submit"},
    {MR_HTTP_POST, "/v1/jobs:graph", "SubmitGraph"},
    {MR_HTTP_GET, "/v1/jobs/j1-7", "Get id=j1-7"},
    {MR_HTTP_DELETE, "/v1/jobs/j1-7", "Forget id=j1-7"},
    {MR_HTTP_POST, "/v1/jobs/j1-7:cancel", "Cancel id=j1-7"},
    {MR_HTTP_POST, "/v1/jobs/a:b:cancel", "Cancel id=a:b"},
    {MR_HTTP_POST, "/v1/jobs/a%3Acancel", "MR_EMETHOD"},
    {MR_HTTP_POST, "/v1/jobs/:cancel", "MR_EMETHOD"},
    {MR_HTTP_GET, "/v1/jobs/a:cancel", "Get id=a:cancel"},
    {MR_HTTP_GET, "/v1/jobs/a%2Fb", "Get id=a/b"},
    /* Names with slashes, plain and escaped. */
    {MR_HTTP_GET, "/v1/objects/name:a/b", "Get id=name:a/b"},
    {MR_HTTP_GET, "/v1/objects/name:a%2Fb", "Get id=name:a/b"},
    {MR_HTTP_GET, "/v1/objects/name:a/b/stat", "Stat id=name:a/b"},
    {MR_HTTP_GET, "/v1/objects/name:a/b%2Fstat", "Get id=name:a/b/stat"},
    {MR_HTTP_GET, "/v1/objects/name:stat/stat", "Stat id=name:stat"},
    {MR_HTTP_DELETE, "/v1/objects/name:a/b", "Delete id=name:a/b"},
    {MR_HTTP_POST, "/v1/objects/name:a/b:pin", "Pin id=name:a/b"},
    {MR_HTTP_POST, "/v1/objects/name:a/b:persist", "Persist id=name:a/b"},
    {MR_HTTP_GET, "/v1/objects", "List"},
    {MR_HTTP_GET, "/v1/objects/", "Get"},      /* the query has to name the object: ?id= */
    {MR_HTTP_GET, "/v1/objects/stat", "Stat"}, /* query: ?id= */
    {MR_HTTP_POST, "/v1/objects/:pin", "Pin"}, /* query: ?id= */
    {MR_HTTP_GET, "/v1/names/", "Resolve"},    /* query: ?name= */
    {MR_HTTP_GET, "/v1/jobs/a/results", "Results id=a"},
    {MR_HTTP_GET, "/v1/jobs/a/tiles", "Tiles id=a"},
    {MR_HTTP_GET, "/v1/jobs/a/whatif", "WhatIf id=a"},
    {MR_HTTP_GET, "/v1/jobs/a/results/z", "Result id=a key=z"},
    {MR_HTTP_GET, "/v1/jobs/a/results/svm/cv/fit-00", "Result id=a key=svm/cv/fit-00"},
    {MR_HTTP_GET, "/v1/jobs/a/results/x%2Fy/z", "Result id=a key=x/y/z"},
    {MR_HTTP_GET, "/v1/jobs/a/results/%252F", "Result id=a key=%2F"},
    {MR_HTTP_GET, "/v1/jobs/a/results/a+b", "Result id=a key=a+b"},
    {MR_HTTP_GET, "/v1/jobs/a/results/%C3%A4", "Result id=a key=\xc3\xa4"},
    {MR_HTTP_GET, "/v1/jobs/a/results/", "Result id=a"}, /* the query has to name the key: ?key= */
    {MR_HTTP_GET, "/v1/jobs/a/results/..", "Result id=a key=.."},
    {MR_HTTP_GET, "/v1/jobs/a/results/z%00", "MR_EINVAL"},
    {MR_HTTP_GET, "/v1/jobs/a/results/%ff", "MR_EINVAL"},
    {MR_HTTP_GET, "/v1/jobs/a/results/%C0%80", "MR_EINVAL"},
    {MR_HTTP_GET, "/v1/jobs/a/results/%ED%A0%80", "MR_EINVAL"},
    {MR_HTTP_GET, "/v1/jobs/a/results/%", "MR_EINVAL"},
    {MR_HTTP_GET, "/v1/jobs/a/results/%4", "MR_EINVAL"},
    {MR_HTTP_GET, "/v1/jobs/a/results/%zz", "MR_EINVAL"},
    {MR_HTTP_PUT, "/v1/names/a/b", "Name name=a/b"},
    {MR_HTTP_GET, "/v1/names", "Names"},
    {MR_HTTP_DELETE, "/v1/names", "Unname"},
    {MR_HTTP_POST, "/v1/names/a", "MR_EMETHOD"},
    {MR_HTTP_GET, "/v1/jobs/", "MR_ENOENT"},
    {MR_HTTP_GET, "/v1/jobs//events", "MR_ENOENT"},
    {MR_HTTP_GET, "/v1/jobs/a/events/", "MR_ENOENT"},
    {MR_HTTP_GET, "/v1/jobsx", "MR_ENOENT"},
    {MR_HTTP_GET, "/v1", "MR_ENOENT"},
    {MR_HTTP_GET, "//v1/jobs", "MR_ENOENT"},
    {MR_HTTP_GET, "/V1/jobs", "MR_ENOENT"},
    {MR_HTTP_GET, "/v1/channels", "List"},
    {MR_HTTP_POST, "/v1/queues/a:put", "Put queue=a"},
    /* only gRPC serves parameters, so there is no route */
    {MR_HTTP_GET, "/v1/parameters", "MR_ENOENT"},
    {MR_HTTP_PATCH, "/v1/jobs", "MR_EMETHOD"},
};

static void a_path_finds_the_method_that_its_template_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        char *got = found(cases[i].verb, cases[i].path);
        if (strcmp(got, cases[i].expected) != 0)
            fail_msg("%s %s: %s, not %s", mr_http_verb_name(cases[i].verb), cases[i].path, got,
                cases[i].expected);
        mr_release(got);
    }
}

/* Makes a path that matches the route's template: "x" for a field, "x/y" for a field that takes the
 * rest of the path. */
static void fill(const struct mr_route *r, struct mr_buf *path)
{
    for (unsigned i = 0; i < r->segments_count; i++) {
        const struct mr_route_segment *s = &r->segments[i];
        mr_buf_printf(path, "/%s", s->rest ? "x/y" : s->is_field ? "x" : s->text);
    }
    if (r->action) mr_buf_printf(path, ":%s", r->action);
}

static void every_route_finds_itself(void **state)
{
    (void)state;
    size_t count;
    const struct mr_route *routes = mr_proto_routes(&count);
    assert_true(count > 20);
    for (size_t i = 0; i < count; i++) {
        struct mr_buf path;
        mr_buf_init(&path, 4096);
        fill(&routes[i], &path);
        struct mr_uri_text text;
        struct mr_match m;
        unsigned verbs;
        mr_uri_text_init(&text, path.n);
        assert_int_equal(mr_route_match(routes, count, routes[i].verb, mr_buf_str(&path), &text, &m,
                             &verbs, NULL),
            MR_OK);
        assert_ptr_equal(m.route, &routes[i]);
        mr_uri_text_fini(&text);
        mr_buf_fini(&path);
    }
}

static void the_document_has_every_route(void **state)
{
    (void)state;
    size_t count;
    const struct mr_route *routes = mr_proto_routes(&count);
    struct mr_str document = mr_proto_openapi();
    for (size_t i = 0; i < count; i++) {
        struct mr_buf quoted;
        mr_buf_init(&quoted, 4096);
        mr_buf_add_byte(&quoted, '"');
        const char *p = routes[i].path;
        while (*p) {
            if (!strncmp(p, "=**", 3))
                p += 3;
            else
                mr_buf_add_byte(&quoted, (unsigned char)*p++);
        }
        mr_buf_add_byte(&quoted, '"');
        if (!memmem(document.p, document.n, quoted.p, quoted.n))
            fail_msg("%.*s is not in openapi.json", (int)quoted.n, (const char *)quoted.p);
        mr_buf_fini(&quoted);
    }
}

static void methods_are_found_by_path_with_their_streaming_flags(void **state)
{
    (void)state;
    for (int i = 0; i < MR_METHOD_COUNT; i++) {
        const struct mr_proto_method *m = mr_proto_method((enum mr_method_id)i);
        assert_ptr_equal(mr_proto_method_find(mr_str(m->path)), m);
    }
    assert_null(mr_proto_method_find(MR_STR("/millrace.v1.Jobs/Nothing")));
    assert_true(mr_proto_method(MR_METHOD_JOBS_SUBMIT)->client_streaming);
    assert_false(mr_proto_method(MR_METHOD_JOBS_SUBMIT)->server_streaming);
    assert_true(mr_proto_method(MR_METHOD_WORKER_SESSION_CONNECT)->client_streaming);
    assert_true(mr_proto_method(MR_METHOD_WORKER_SESSION_CONNECT)->server_streaming);
}

static void a_query_is_split_and_decoded_once(void **state)
{
    (void)state;
    struct mr_str rest = MR_STR("&key=a%2Fb&&key=c+d%2B&empty=&bare&%6bey=%2525");
    const char *expected[] = {"key", "a/b", "key", "c d+", "empty", "", "bare", "", "key", "%25"};
    struct mr_uri_text text;
    struct mr_str name, value;
    mr_uri_text_init(&text, rest.n);
    for (size_t i = 0; i < MR_ARRAY_LEN(expected); i += 2) {
        assert_int_equal(mr_uri_query_next(&rest, &text, &name, &value, NULL), MR_OK);
        assert_true(mr_str_eq(name, mr_str(expected[i])));
        assert_true(mr_str_eq(value, mr_str(expected[i + 1])));
    }
    assert_int_equal(mr_uri_query_next(&rest, &text, &name, &value, NULL), MR_ENOENT);
    mr_uri_text_fini(&text);
}

static void a_bad_query_names_its_parameter(void **state)
{
    (void)state;
    struct mr_str rest = MR_STR("key=%00");
    struct mr_uri_text text;
    struct mr_str name, value;
    struct mr_error e;
    mr_uri_text_init(&text, rest.n);
    assert_int_equal(mr_uri_query_next(&rest, &text, &name, &value, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "\"key\""));
    mr_uri_text_fini(&text);
}

static void a_target_with_control_characters_is_refused(void **state)
{
    (void)state;
    struct mr_uri u;
    assert_int_equal(mr_uri_split(MR_STR("/v1/jobs?a=b?c"), &u, NULL), MR_OK);
    assert_true(mr_str_eq(u.query, MR_STR("a=b?c")));
    assert_int_equal(mr_uri_split(MR_STR("v1"), &u, NULL), MR_EINVAL);
    assert_int_equal(mr_uri_split(MR_STR(""), &u, NULL), MR_EINVAL);
    assert_int_equal(mr_uri_split(MR_STR("/a\tb"), &u, NULL), MR_EINVAL);
    assert_int_equal(mr_uri_split(MR_STR("/a\x7f"), &u, NULL), MR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_finds_the_method_that_its_template_names),
        cmocka_unit_test(every_route_finds_itself),
        cmocka_unit_test(the_document_has_every_route),
        cmocka_unit_test(methods_are_found_by_path_with_their_streaming_flags),
        cmocka_unit_test(a_query_is_split_and_decoded_once),
        cmocka_unit_test(a_bad_query_names_its_parameter),
        cmocka_unit_test(a_target_with_control_characters_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
