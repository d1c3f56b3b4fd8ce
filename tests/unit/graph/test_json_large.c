/* Reads the JSON text of a graph in slices by several threads, or in pieces while it arrives. The
 * graph must be the same as that of the text read at once. */
#include "tests/unit/graph/fixture.h"
#include "tests/unit/graph/same.h"

#include "base/limits.h"
#include "base/rng.h"
#include "graph/bytes/bytes.h"
#include "graph/json/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

/* Writes the JSON text of a graph with `n` entries of all forms. */
static void write_many(struct mr_buf *b, const char *head, uint32_t n)
{
    mr_buf_add_text(b, head);
    for (uint32_t i = 0; i < n; i++) {
        switch (i % 6) {
        case 0: mr_buf_printf(b, "\"k%u\": %u", i, i); break;
        case 1: mr_buf_printf(b, "\"k%u\":[\"sum\",\"k%u\", \"}],{\"]", i, i - 1); break;
        case 2: mr_buf_printf(b, " \"\\u006b%u\" : \"\\\"for\\\\\"", i); break;
        case 3:
            mr_buf_printf(b,
                "\"k%u-${i}\": {\"op\": \"inc\", \"args\": [\"${i}\"], \"for\": "
                "{\"i\": 3}}",
                i);
            break;
        case 4:
            mr_buf_printf(b, "\"k%u\": {\"a\": [\"k%u\"], \"for\": 1}", i, (n - 1) / 6 * 6);
            break;
        default: mr_buf_printf(b, "\"k%u\": null\n", i); break;
        }
        mr_buf_add_text(b, i + 1 < n ? "," : "}");
    }
    mr_buf_add_text(b, ", \"params\": {}, \"targets\": [\"k1\", \"k4\", \"k10\", \"k30\"]}");
}

/* Writes one entry. Most entries are simple; some have another form. */
static void write_plain(struct mr_buf *b, uint32_t i, uint32_t n, bool dsk, struct mr_rng *r)
{
    uint32_t p = (uint32_t)mr_rng_below(r, i + 1), what = (uint32_t)mr_rng_below(r, 9);
    if (p == i) p = 0;
    if (i) mr_buf_add_text(b, ",");
    mr_buf_printf(b, "\"k%u\": ", i);
    if (!i || what == 0)
        mr_buf_printf(b, dsk ? "%u" : "{\"value\": %u}", i);
    else if (what == 1)
        mr_buf_printf(b,
            dsk ? "[\"sum\", \"k%u\", \"k%u#0\", -1.5, null]"
                : "{\"op\": \"sum\", \"args\": [{\"ref\": \"k%u\"}, \"k%u#0\", -1.5, null]}",
            p, p);
    else if (what == 2)
        mr_buf_printf(b,
            dsk ? "[\"add\", [\"inc\", \"k%u\"], true]"
                : "{\"op\": \"add\", \"args\": [{\"op\": \"inc\", \"args\": [{\"ref\": \"k%u\"}]}, true]}",
            p);
    else if (what == 3)
        mr_buf_printf(b,
            dsk ? "[\"any\", {\"a\": \"k%u\"}, \"outside-%u\"]"
                : "{\"op\": \"any\", \"args\": [{\"a\": {\"ref\": \"k%u\"}}], \"kwargs\": {\"x\": %u}, \"retries\": 2}",
            p, n);
    else if (what == 4 && !dsk)
        mr_buf_printf(b,
            "{\"op\": \"sum\", \"args\": [[{\"ref\": \"k%u\"}, [{\"ref\": \"out-%u\"}, []]]]}", p,
            i % 7);
    else if (what == 5)
        mr_buf_printf(b,
            dsk ? "[\"sum\", [\"k%u\", 7]]"
                : "{\"args\": [[{\"ref\": \"k%u\"}, 7]], \"op\": \"sum\"}",
            p);
    else
        mr_buf_printf(b,
            dsk ? "[\"add\", \"k%u\", \"k%u\"]"
                : "{\"op\": \"add\", \"args\": [{\"ref\": \"k%u\"}, {\"ref\": \"k%u\"}]}",
            p, mr_rng_below(r, 2) ? p : 0);
}

static int from_pieces(struct mr_str text, struct mr_rng *r, const struct mr_json_limits *limits,
    struct mr_graph **out, struct mr_error *e)
{
    struct mr_json_stream *a = mr_json_stream_new_within(limits);
    size_t most = 1 + mr_rng_below(r, 1u << mr_rng_below(r, 14));
    for (size_t at = 0; at < text.n;) {
        size_t n = 1 + (size_t)mr_rng_below(r, most);
        n = MR_MIN(n, text.n - at);
        struct mr_buf piece;
        mr_buf_init(&piece, n);
        mr_buf_add(&piece, text.p + at, n);
        mr_json_stream_feed(a, &fixture_catalogue, &piece);
        at += n;
    }
    int err = mr_json_stream_end(a, &fixture_catalogue, out, e);
    mr_json_stream_free(&a);
    return err;
}

static void threads_and_pieces_make_the_same_graph(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct mr_buf text, bytes[3];
        struct mr_rng r;
        struct mr_graph *whole = NULL, *pieces = NULL;
        bool dsk = seed % 2;
        mr_rng_init(&r, seed);
        mr_buf_init(&text, 1 << 20);
        mr_buf_printf(&text, "{\"namespace\": \"n\", \"%s\": {", dsk ? "dsk" : "tasks");
        uint32_t n = 2 + (uint32_t)mr_rng_below(&r, 300);
        for (uint32_t i = 0; i < n; i++)
            write_plain(&text, i, n, dsk, &r);
        mr_buf_printf(&text, "}%s}", seed % 3 ? "" : ", \"targets\": [\"k1\"]");
        for (int i = 0; i < 3; i++) {
            const struct mr_json_limits limits = {MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX,
                i ? 64 : 1 << 20, i == 2 ? &fixture_parallel : NULL};
            struct mr_error e = {0};
            mr_graph_free(&whole);
            if (mr_graph_from_json_within(
                    mr_buf_str(&text), &fixture_catalogue, &limits, &whole, &e))
                fail_msg("%s\n%.*s", e.text, (int)text.n, (char *)text.p);
            mr_graph_check(whole);
            mr_buf_init(&bytes[i], 1 << 20);
            assert_int_equal(mr_graph_to_bytes(whole, &bytes[i], NULL), 0);
        }
        for (int i = 2; i >= 0; i--) {
            if (!mr_str_eq(mr_buf_str(&bytes[0]), mr_buf_str(&bytes[i])))
                fail_msg("seed %u, limits %d", (unsigned)seed, i);
            mr_buf_fini(&bytes[i]);
        }
        const struct mr_json_limits limits = {
            MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX, 64, &fixture_parallel};
        assert_int_equal(from_pieces(mr_buf_str(&text), &r, &limits, &pieces, NULL), MR_OK);
        mr_graph_check(pieces);
        if (!same_graph(whole, pieces)) fail_msg("seed %u, in pieces", (unsigned)seed);
        mr_graph_free(&whole);
        mr_graph_free(&pieces);
        mr_buf_fini(&text);
    }
}

static void threads_refuse_arguments_that_are_too_large_for_a_task(void **state)
{
    (void)state;
    enum { NUMBERS = 150000 }; /* a number takes four bytes as text and nine as a value */
    struct mr_buf text;
    mr_buf_init(&text, 1 << 20);
    mr_buf_add_text(&text, "{\"tasks\": {");
    for (uint32_t i = 0; i < 32; i++)
        mr_buf_printf(&text, "\"k%u\": {\"op\": \"sum\", \"args\": [1]}, ", i);
    mr_buf_add_text(&text, "\"large\": {\"op\": \"sum\", \"args\": [[0");
    for (uint32_t i = 0; i < NUMBERS; i++)
        mr_buf_add_text(&text, ",9e9");
    mr_buf_add_text(&text, "]]}}}");
    for (int i = 0; i < 2; i++) {
        const struct mr_json_limits limits = {
            MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX, 64, i ? &fixture_parallel : NULL};
        struct mr_graph *g = NULL;
        struct mr_error e = {0};
        assert_int_equal(
            mr_graph_from_json_within(mr_buf_str(&text), &fixture_catalogue, &limits, &g, &e),
            MR_ELIMIT);
        assert_non_null(strstr(e.text, "large"));
    }
    mr_buf_fini(&text);
}

static void a_text_that_cannot_be_read_early_is_read_as_a_whole(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"params\": {\"n\": 3}, \"tasks\": {\"a\": {\"op\": \"inc\", \"args\": [\"${n}\"]}}}",
        "{\"tasks\": {\"a\": {\"op\": \"inc\", \"args\": [\"${n}\"]}}, \"params\": {\"n\": 3}}",
        "{\"tasks\": {\"a-${i}\": {\"op\": \"inc\", \"args\": [1], \"for\": {\"i\": 3}}}}",
        "{\"tasks\": {\"\\u0061\": {\"value\": 1}}, \"targets\": [\"a\"]}", "{\"tasks\": {}}",
        "{\"tasks\": {\"a\": 1}}", "{\"dsk\": {\"a\": 1}, \"tasks\": {}}",
        "{\"dsk\": {\"a\": 1}, \"x\": 2}", "{\"dsk\": {\"a\": 1}}}", "{\"dsk\": {\"a\": 1},}",
        "{\"dsk\": {\"a\": 1, \"a\": 2}}", "{\"dsk\": {\"a\": 1",
        "{\"dsk\": {\"a\": [\"inc\", \"b\"], \"b\": [\"inc\", \"a\"]}}", "{\"dsk\": {\"a\" 1}}", "",
        "[]", "{\"dsk\": {\"a\": [\"nope\", 1]}}", "{\"dsk\": {\"a\": 1, }}",
        "{\"tasks\": {\"a\": {\"ref\": \"b\"}}}"};
    struct mr_rng r;
    mr_rng_init(&r, 7);
    for (size_t i = 0; i < MR_ARRAY_LEN(texts); i++)
        for (int round = 0; round < 20; round++) {
            const struct mr_json_limits limits = {
                MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX, 64, &fixture_parallel};
            struct mr_graph *whole = NULL, *pieces = NULL;
            struct mr_error want = {0}, e = {0};
            int err = mr_graph_from_json(mr_str(texts[i]), &fixture_catalogue, &whole, &want);
            assert_int_equal(from_pieces(mr_str(texts[i]), &r, &limits, &pieces, &e), err);
            assert_string_equal(e.text, want.text);
            assert_int_equal(whole != NULL, pieces != NULL);
            if (whole) assert_true(same_graph(whole, pieces));
            mr_graph_free(&whole);
            mr_graph_free(&pieces);
        }
}

static void slices_and_the_whole_text_mean_the_same(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "{\"dsk\": {", "{\"name\": \"a{\\\"\", \"labels\": {\"tasks\": \"{\"}, \"dsk\" : {"};
    for (uint32_t n = 31; n < 200; n += 7) {
        struct mr_buf text, bytes[3];
        mr_buf_init(&text, 1 << 20);
        write_many(&text, heads[n % 2], n);
        for (int i = 0; i < 3; i++) {
            const struct mr_json_limits limits = {MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX,
                i ? n / 2 : 1 << 20, i == 2 ? &fixture_parallel : NULL};
            struct mr_graph *g = NULL;
            struct mr_error e = {0};
            if (mr_graph_from_json_within(mr_buf_str(&text), &fixture_catalogue, &limits, &g, &e))
                fail_msg("%s\n%.*s", e.text, (int)text.n, (char *)text.p);
            mr_graph_check(g);
            mr_buf_init(&bytes[i], 1 << 20);
            assert_int_equal(mr_graph_to_bytes(g, &bytes[i], NULL), 0);
            mr_graph_free(&g);
        }
        for (int i = 0; i < 3; i++) {
            assert_true(mr_str_eq(mr_buf_str(&bytes[0]), mr_buf_str(&bytes[i])));
            if (i) mr_buf_fini(&bytes[i]);
        }
        mr_buf_fini(&bytes[0]);
        struct mr_graph *g = NULL;
        assert_int_equal(mr_graph_from_json_buf(&text, &fixture_catalogue, NULL, &g, NULL), 0);
        assert_null(text.p);
        mr_graph_free(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_that_cannot_be_read_early_is_read_as_a_whole),
        cmocka_unit_test(slices_and_the_whole_text_mean_the_same),
        cmocka_unit_test(threads_and_pieces_make_the_same_graph),
        cmocka_unit_test(threads_refuse_arguments_that_are_too_large_for_a_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
