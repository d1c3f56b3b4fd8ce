/* JSON, queries and headers become messages, and messages become JSON: tables of inputs and
 * expected outputs. */
#include "gateway/http/bind.h"
#include "gateway/http/collect.h"
#include "gateway/json/json_in.h"
#include "gateway/json/json_out.h"
#include "gateway/http/sse.h"
#include "gateway/json/status.h"
#include "millrace/v1/cluster.pb-c.h"
#include "millrace/v1/objects.pb-c.h"
#include "rpc/util/pb.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#define BYTES_MAX ((size_t)1 << 20)

static const ProtobufCMessageDescriptor *const graph =
    &millrace__v1__submit_graph_request__descriptor;

/* Converts JSON to a message and back. Returns the JSON text, or the error text if the JSON is
 * refused. The caller frees the text. */
static char *round_trip(const ProtobufCMessageDescriptor *type, struct mr_str json)
{
    struct mr_buf wire, out;
    struct mr_error e;
    struct mr_pb_arena arena;
    mr_buf_init(&wire, BYTES_MAX);
    mr_buf_init(&out, BYTES_MAX);
    mr_pb_arena_init(&arena, BYTES_MAX * 16);
    if (mr_json_to_wire(type, json, NULL, 0, &wire, &e)) {
        mr_buf_add_text(&out, e.text);
    } else {
        ProtobufCMessage *m = mr_pb_unpack(type, mr_buf_str(&wire), &arena, &e);
        assert_non_null(m);
        assert_int_equal(mr_json_from_message(m, &out), MR_OK);
    }
    mr_buf_add_byte(&out, 0);
    mr_pb_arena_fini(&arena);
    mr_buf_fini(&wire);
    return (char *)out.p;
}

static void check(const ProtobufCMessageDescriptor *type, const char *json, const char *expected)
{
    char *got = round_trip(type, mr_str(json));
    if (!strstr(got, expected)) fail_msg("%s gave %s, without %s", json, got, expected);
    mr_release(got);
}

#define TASK(field) "{\"tasks\":[{" field "}]}"

static void fields_of_all_kinds_come_back(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{}",
            "{\"request_id\":\"\",\"wait_s\":0,\"want_values\":false,\"tasks\":[],\"targets\":[],\"parent\":\"\","
            "\"repeat\":[]}"},
        {"{\"wait_s\":1.5}", "\"wait_s\":1.5,"},
        {"{\"wait_s\":1e3}", "\"wait_s\":1000,"},
        {"{\"waitS\":0.1}", "\"wait_s\":0.1,"},
        {"{\"want_values\":true}", "\"want_values\":true,"},
        {"{\"targets\":[\"a/b\",\"\\u00e4\\\"\\\\\\n\"]}",
            "\"targets\":[\"a/b\",\"ä\\\"\\\\\\n\"]"},
        {"{\"options\":{\"labels\":{\"a\":\"b\",\"c\":\"\"}}}",
            "\"labels\":{\"a\":\"b\",\"c\":\"\"}"},
        {"{\"options\":{\"on_error\":\"ON_ERROR_CONTINUE\"}}",
            "\"on_error\":\"ON_ERROR_CONTINUE\""},
        {"{\"options\":{\"priority\":-100}}", "\"priority\":-100"},
        {TASK("\"args\":[{\"integer\":\"-9007199254740993\"}]"),
            "{\"integer\":\"-9007199254740993\"}"},
        {TASK("\"args\":[{\"integer\":-7}]"), "{\"integer\":\"-7\"}"},
        {TASK("\"args\":[{\"integer\":1e2}]"), "{\"integer\":\"100\"}"},
        {TASK("\"args\":[{\"number\":-0.25}]"), "{\"number\":-0.25}"},
        {TASK("\"args\":[{\"pack\":\"_-8=\"}]"), "{\"pack\":\"/+8=\"}"},
        {TASK("\"args\":[{\"pack\":\"AA\"}]"), "{\"pack\":\"AA==\"}"},
        {TASK("\"args\":[{\"pack\":\"\"}]"), "{\"pack\":\"\"}"},
        {TASK("\"args\":[{\"boolean\":false}]"), "{\"boolean\":false}"},
        {TASK("\"args\":[{\"list\":{\"items\":[{\"ref\":\"x\"},{\"list\":{}}]}}]"),
            "{\"list\":{\"items\":[{\"ref\":\"x\"},{\"list\":{\"items\":[]}}]}}"},
        {TASK("\"kwargs\":{\"axis\":{\"integer\":0},\"out\":{}}"),
            "\"kwargs\":{\"axis\":{\"integer\":\"0\"},\"out\":{}}"},
        {TASK("\"options\":{\"retries\":3,\"resources\":{\"gpu\":0.5}}"),
            "\"retries\":3,\"priority\":0,\"timeout_s\":0,\"workers\":[],"
            "\"allow_other_workers\":false,\"resources\":{\"gpu\":0.5}"},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++)
        check(graph, cases[i][0], cases[i][1]);
}

static void what_is_wrong_is_named_with_its_place(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"nothing\":1}", "\"nothing\" is not a field of SubmitGraphRequest"},
        {"{\"wait_s\":1,\"waitS\":2}", "wait_s occurs twice"},
        {"{\"wait_s\":1,\"wait_s\":2}", "wait_s occurs twice"},
        {"{\"wait_s\":null}", "wait_s: null is not a value here"},
        {"{\"wait_s\":\"1\"}", "wait_s: a text stands where a number is wanted"},
        {"{\"wait_s\":-1}", "wait_s: -1 is not within 0 to 3600"},
        {"{\"wait_s\":1e999}", "the body is not JSON"},
        {"{\"want_values\":1}", "want_values: uint stands where true or false is wanted"},
        {"{\"targets\":\"z\"}", "targets: string stands where an array is wanted"},
        {"{\"targets\":[\"a\",7]}", "targets[1]: targets: uint stands where a text is wanted"},
        {"{\"targets\":[\"a\\u0000b\"]}",
            "targets[0]: targets: the character U+0000 is not allowed"},
        {"{\"tasks\":[{},{\"kye\":\"x\"}]}", "tasks[1].\"kye\" is not a field of Task"},
        {"{\"tasks\":[{\"kwargs\":{\"a\":{},\"a\":{}}}]}", "tasks[0].kwargs: \"a\" occurs twice"},
        {"{\"tasks\":[{\"kwargs\":{\"a\":{\"ref\":1}}}]}", "tasks[0].kwargs[\"a\"].ref: uint"},
        {TASK("\"args\":[{\"ref\":\"x\",\"name\":\"y\"}]"),
            "tasks[0].args[0].name: \"ref\" is given already; only one may be"},
        {TASK("\"args\":[{\"integer\":1.5}]"), "integer: a whole number of 64 bits"},
        {TASK("\"args\":[{\"integer\":\"9223372036854775808\"}]"),
            "integer: a whole number of 64 bits"},
        {TASK("\"args\":[{\"integer\":\"x\"}]"), "integer: a whole number of 64 bits"},
        {TASK("\"args\":[{\"pack\":\"*\"}]"), "pack is not base64"},
        {TASK("\"options\":{\"retries\":4294967296}"),
            "retries: a whole number from 0 to 4294967295"},
        {TASK("\"options\":{\"retries\":-1}"), "retries: a whole number from 0 to 4294967295"},
        {TASK("\"options\":{\"retries\":\"3\"}"),
            "retries: a text stands where a number is wanted"},
        {TASK("\"options\":{\"retries\":1001}"), "retries: 1001 is not within 0 to 1000"},
        {"{\"options\":{\"on_error\":\"stop\"}}",
            "options.on_error: \"stop\" is none of ON_ERROR_STOP"},
        {"[]", "the body is array, and an object is wanted"},
        {"", "the body is not JSON"},
        {"{", "line 1, column 2"},
        {"{}x", "the body is not JSON"},
        {"{\"a\":01}", "the body is not JSON"},
        {"{\"a\":NaN}", "the body is not JSON"},
        {"{\"a\":\"\xff\"}", "the body is not JSON"},
        {"{\"a\":\"\\ud800\"}", "the body is not JSON"},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++)
        check(graph, cases[i][0], cases[i][1]);
}

static void deep_json_is_refused_before_it_costs(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, BYTES_MAX);
    mr_buf_add_text(&b, "{\"tasks\":[{\"args\":[");
    for (int i = 0; i < 5000; i++)
        mr_buf_add_text(&b, "{\"list\":{\"items\":[");
    for (int i = 0; i < 5000; i++)
        mr_buf_add_text(&b, "]}}");
    mr_buf_add_text(&b, "]}]}");
    char *got = round_trip(graph, mr_buf_str(&b));
    assert_non_null(strstr(got, "nests deeper than 64 levels"));
    mr_release(got);
    mr_buf_fini(&b);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Makes a request of a verb, a target, the value of the route's first header, and a body. Returns
 * the request message as JSON, or the error text. The caller frees the text. */
static char *request(
    enum mr_http_verb verb, const char *target, const char *header, const char *body)
{
    size_t count;
    const struct mr_route *routes = mr_proto_routes(&count);
    struct mr_uri uri;
    struct mr_uri_text text;
    struct mr_match m;
    struct mr_error e;
    unsigned verbs;
    struct mr_bind_header headers[MR_BIND_HEADERS_MAX] = {{{0}}};
    headers[0].value = mr_str(header);
    struct mr_buf wire, out;
    struct mr_pb_arena arena;
    mr_buf_init(&wire, BYTES_MAX);
    mr_buf_init(&out, BYTES_MAX);
    mr_pb_arena_init(&arena, BYTES_MAX);
    mr_uri_text_init(&text, strlen(target));
    assert_int_equal(mr_uri_split(mr_str(target), &uri, NULL), MR_OK);
    int err = mr_route_match(routes, count, verb, uri.path, &text, &m, &verbs, &e);
    struct mr_bind_input in = {&m, uri.query, headers, &text};
    if (!err) err = mr_bind_fields(&in, &wire, &e);
    if (!err && body) err = mr_bind_body(&m, mr_str(body), &wire, &e);
    if (err) {
        mr_buf_add_text(&out, e.text);
    } else {
        const ProtobufCMessageDescriptor *type = mr_proto_method(m.route->method)->request;
        ProtobufCMessage *message = mr_pb_unpack(type, mr_buf_str(&wire), &arena, NULL);
        assert_non_null(message);
        assert_int_equal(mr_json_from_message(message, &out), MR_OK);
    }
    mr_buf_add_byte(&out, 0);
    mr_uri_text_fini(&text);
    mr_pb_arena_fini(&arena);
    mr_buf_fini(&wire);
    return (char *)out.p;
}

static void path_query_header_and_body_fill_the_request(void **state)
{
    (void)state;
    static const struct {
        enum mr_http_verb verb;
        const char *target, *header, *body, *expected;
    } cases[] = {
        {MR_HTTP_GET, "/v1/jobs/j1-7?wait_s=2.5", NULL, NULL, "{\"id\":\"j1-7\",\"wait_s\":2.5}"},
        {MR_HTTP_GET, "/v1/jobs/x/results?key=a%2Fb&key=c", NULL, NULL, "\"key\":[\"a/b\",\"c\"]"},
        {MR_HTTP_GET, "/v1/jobs?state=JOB_DONE&page_size=5", NULL, NULL,
            "{\"page_size\":5,\"page_token\":\"\",\"state\":\"JOB_DONE\""},
        {MR_HTTP_GET, "/v1/jobs?state=done", NULL, NULL, "state: \"done\" is none of"},
        {MR_HTTP_GET, "/v1/jobs?page_size=1001", NULL, NULL, "page_size: 1001 is not within"},
        {MR_HTTP_GET, "/v1/jobs?page_size=x", NULL, NULL, "page_size: a whole number"},
        {MR_HTTP_GET, "/v1/jobs?page_size=1&page_size=2", NULL, NULL, "page_size is given twice"},
        {MR_HTTP_GET, "/v1/jobs?pagesize=1", NULL, NULL, "the query has \"pagesize\", which"},
        {MR_HTTP_GET, "/v1/jobs?pageSize=1", NULL, NULL, "{\"page_size\":1"},
        {MR_HTTP_GET, "/v1/jobs/x?id=y", NULL, NULL, "id is given twice"},
        {MR_HTTP_GET, "/v1/jobs/x?wait_s=nan", NULL, NULL, "wait_s: \"nan\" is not a number"},
        {MR_HTTP_GET, "/v1/jobs/x?wait_s=1e400", NULL, NULL, "wait_s: a finite number"},
        {MR_HTTP_GET, "/v1/jobs/x/events", "17", NULL, "\"last_event_id\":\"17\""},
        {MR_HTTP_GET, "/v1/jobs/x/events?last_event_id=3", "17", NULL, "\"last_event_id\":\"17\""},
        {MR_HTTP_GET, "/v1/jobs/x/results/?key=q", NULL, NULL, "\"key\":\"q\""},
        {MR_HTTP_GET, "/v1/jobs/x/results/", NULL, NULL, "key is missing"},
        {MR_HTTP_POST, "/v1/jobs/x:cancel", NULL, "{\"reason\":\"r\"}",
            "{\"id\":\"x\",\"reason\":\"r\"}"},
        {MR_HTTP_POST, "/v1/jobs/x:cancel", NULL, "", "{\"id\":\"x\",\"reason\":\"\"}"},
        {MR_HTTP_POST, "/v1/jobs/x:cancel", NULL, "{\"id\":\"y\"}",
            "id is given in the path already"},
        {MR_HTTP_POST, "/v1/jobs/x:cancel?reason=r", NULL, NULL, "reason belongs in the body"},
        {MR_HTTP_PUT, "/v1/names?name=a", NULL, "{\"object\":\"0\"}",
            "{\"name\":\"a\",\"object\":\"0\""},
        {MR_HTTP_POST, "/v1/jobs?wait_s=1&want_values=1", "k-1", NULL,
            "{\"request_id\":\"k-1\",\"wait_s\":1,\"want_values\":true,\"parent\":\"\"}"},
        {MR_HTTP_POST, "/v1/jobs?body=x", NULL, NULL, "the query has \"body\""},
        {MR_HTTP_POST, "/v1/jobs:graph", "k-1", "{\"request_id\":\"k-2\"}",
            "\"request_id\":\"k-2\""},
        {MR_HTTP_POST, "/v1/objects?replace=yes", NULL, NULL,
            "replace: \"yes\" is neither true nor"},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        char *got = request(cases[i].verb, cases[i].target, cases[i].header, cases[i].body);
        if (!strstr(got, cases[i].expected))
            fail_msg("%s gave %s, without %s", cases[i].target, got, cases[i].expected);
        mr_release(got);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static void numbers_are_written_so_that_they_read_back_the_same(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0, "0"}, {0.1, "0.1"}, {1.0 / 3, "0.3333333333333333"}, {1e300, "1e+300"},
        {-0.0, "-0.0"}, {123456789012345678.0, "1.2345678901234568e+17"}, {NAN, "\"NaN\""},
        {INFINITY, "\"Infinity\""}, {-INFINITY, "\"-Infinity\""}};
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        struct mr_buf b;
        mr_buf_init(&b, 100);
        mr_json_real(&b, cases[i].v);
        mr_buf_add_byte(&b, 0);
        assert_string_equal(b.p, cases[i].text);
        mr_buf_fini(&b);
    }
}

static void text_that_is_not_utf8_is_replaced(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 100);
    mr_json_text(&b, mr_str_of("a\xff\xc3\xa4\xe2\x82\0\x7f", 8));
    assert_true(mr_str_eq(mr_buf_str(&b), MR_STR("\"a\\ufffdä\\ufffd\\ufffd\\u0000\\u007f\"")));
    mr_buf_fini(&b);
}

static void an_enum_of_a_newer_peer_is_a_number(void **state)
{
    (void)state;
    Millrace__V1__Job job = MILLRACE__V1__JOB__INIT;
    job.state = (Millrace__V1__JobState)77;
    struct mr_buf b;
    mr_buf_init(&b, BYTES_MAX);
    assert_int_equal(mr_json_from_message(&job.base, &b), MR_OK);
    assert_non_null(memmem(b.p, b.n, "\"state\":77,", 11));
    mr_buf_fini(&b);
}

static void a_pack_field_is_shown_as_its_value(void **state)
{
    (void)state;
    Millrace__V1__TargetValue v = MILLRACE__V1__TARGET_VALUE__INIT;
    unsigned char pack[] = {0x92, 1, 0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0};
    v.key = (char *)(uintptr_t) "z";
    v.pack.data = pack;
    v.pack.len = sizeof pack;
    struct mr_buf b;
    mr_buf_init(&b, BYTES_MAX);
    assert_int_equal(mr_json_from_message(&v.base, &b), MR_OK);
    mr_buf_add_byte(&b, 0);
    assert_string_equal(b.p, "{\"key\":\"z\",\"value\":[1,1.0]}");
    mr_buf_fini(&b);
    v.pack.len = 1; /* the pack is cut short */
    mr_buf_init(&b, BYTES_MAX);
    assert_int_equal(mr_json_from_message(&v.base, &b), MR_OK);
    mr_buf_add_byte(&b, 0);
    assert_string_equal(b.p, "{\"key\":\"z\",\"value\":null}");
    mr_buf_fini(&b);
}

static void results_are_collected_into_one_object(void **state)
{
    (void)state;
    char *keys[] = {(char *)(uintptr_t) "a", (char *)(uintptr_t) "b"};
    uint32_t pack_bytes[] = {1, 1};
    unsigned char packs[] = {3, 4};
    Millrace__V1__ResultItem item = MILLRACE__V1__RESULT_ITEM__INIT;
    item.n_keys = item.n_pack_bytes = 2;
    item.keys = keys;
    item.pack_bytes = pack_bytes;
    item.packs.data = packs;
    item.packs.len = 2;
    struct mr_collect c;
    struct mr_buf b;
    mr_buf_init(&b, BYTES_MAX);
    mr_collect_init(&c);
    mr_collect_begin(&b);
    mr_collect_add(&c, &item, &b);
    pack_bytes[1] = 1000; /* the length exceeds the pack, so the item has no value */
    mr_collect_add(&c, &item, &b);
    mr_collect_end(&c, MR_STR("{}"), &b);
    mr_buf_add_byte(&b, 0);
    assert_string_equal(
        b.p, "{\"results\":{\"a\":3,\"b\":4,\"a\":3},\"places\":{},\"errors\":{},\"error\":{}}");
    mr_collect_fini(&c);
    mr_buf_fini(&b);
}

static void events_are_framed_line_by_line(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    mr_sse_event(&b, MR_STR("7\n8"), "error", MR_STR("a\nb"));
    mr_sse_event(&b, MR_STR(""), NULL, MR_STR("{}"));
    mr_buf_add_byte(&b, 0);
    assert_string_equal(b.p, "id: 78\nevent: error\ndata: a\ndata: b\n\ndata: {}\n\n");
    mr_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_all_kinds_come_back),
        cmocka_unit_test(what_is_wrong_is_named_with_its_place),
        cmocka_unit_test(deep_json_is_refused_before_it_costs),
        cmocka_unit_test(path_query_header_and_body_fill_the_request),
        cmocka_unit_test(numbers_are_written_so_that_they_read_back_the_same),
        cmocka_unit_test(text_that_is_not_utf8_is_replaced),
        cmocka_unit_test(an_enum_of_a_newer_peer_is_a_number),
        cmocka_unit_test(a_pack_field_is_shown_as_its_value),
        cmocka_unit_test(results_are_collected_into_one_object),
        cmocka_unit_test(events_are_framed_line_by_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
