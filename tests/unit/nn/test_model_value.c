/* lib/nn/model: a model becomes a value, and a value becomes a model or is refused. */
#include "base/alloc.h"
#include "base/pack.h"
#include "nn/model/model_value.h"
#include "store/object/value_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TEXT "{\"input\":[3],\"layers\":[{\"type\":\"Dense\",\"units\":2}]}"

static struct mr_str build(void **owned, uint64_t version)
{
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    struct mr_error e = {0};
    if (mr_nn_model_new(MR_STR(TEXT), &m, &e)) fail_msg("%s", e.text);
    struct mr_value_alloc a = {mr_value_heap_alloc, owned};
    float *params = NULL;
    if (mr_nn_model_value_new(&a, m, version, &params, &e)) fail_msg("%s", e.text);
    assert_int_equal((uintptr_t)params % 64, 0);
    for (uint64_t i = 0; i < m->count; i++)
        params[i] = (float)i;
    struct mr_value_header h;
    memcpy(&h, *owned, sizeof h);
    return mr_str_of(*owned, h.nbytes);
}

static void a_model_is_a_value_and_comes_back(void **state)
{
    (void)state;
    const uint64_t versions[] = {0, 1500, UINT64_MAX};
    for (size_t i = 0; i < MR_ARRAY_LEN(versions); i++) {
        MR_AUTO(mr_free_ptr) void *owned = NULL;
        struct mr_str extent = build(&owned, versions[i]);
        struct mr_value v;
        struct mr_error e = {0};
        if (mr_value_check_deep(extent, &v, &e)) fail_msg("%s", e.text);
        assert_int_equal(v.kind, MR_VALUE_MODEL);
        assert_int_equal(v.tensor.shape[0], 8);
        struct mr_nn_model_view view;
        MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
        if (mr_nn_model_value_open(&v, &view, &m, &e)) fail_msg("%s", e.text);
        assert_true(view.version == versions[i]);
        assert_int_equal(view.count, 8);
        assert_true(mr_str_eq(view.text, MR_STR(TEXT)));
        assert_true(view.params[7] == 7);
        assert_int_equal(m->count, 8);
    }
}

static void it_says_what_it_is_in_words(void **state)
{
    (void)state;
    MR_AUTO(mr_free_ptr) void *owned = NULL;
    struct mr_value v;
    assert_int_equal(mr_value_check(build(&owned, 3), &v, NULL), MR_OK);
    char words[MR_VALUE_SUMMARY_MAX];
    mr_value_summary(&v, words);
    assert_memory_equal(words, "model of 8 parameters ", 22);
}

static void equal_models_are_equal_bytes(void **state)
{
    (void)state;
    MR_AUTO(mr_free_ptr) void *a = NULL;
    MR_AUTO(mr_free_ptr) void *b = NULL;
    struct mr_str one = build(&a, 9), two = build(&b, 9);
    assert_true(mr_str_eq(one, two));
}

/* Makes a model's value with `count` parameters and the meta data that `fill` writes. Checks that
 * the value is refused as a model, with the error text `words`. */
static void refused(uint64_t count, void (*fill)(struct mr_buf *), const char *words)
{
    MR_AUTO(mr_buf_fini) struct mr_buf meta;
    mr_buf_init(&meta, 4096);
    fill(&meta);
    MR_AUTO(mr_free_ptr) void *owned = NULL;
    uint64_t bytes = mr_value_model_size(count, mr_buf_str(&meta));
    (void)mr_value_model_build(mr_value_heap_alloc(&owned, bytes), count, mr_buf_str(&meta));
    struct mr_value v;
    struct mr_error e = {0};
    if (mr_value_check(mr_str_of(owned, bytes), &v, &e)) fail_msg("%s", e.text);
    struct mr_nn_model_view view;
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    assert_int_not_equal(mr_nn_model_value_open(&v, &view, &m, &e), MR_OK);
    if (!strstr(e.text, words)) fail_msg("%s, but it should say: %s", e.text, words);
}

static void good(struct mr_buf *b)
{
    mr_pack_map(b, 3);
    mr_pack_text(b, MR_STR("other"));
    mr_pack_list(b, 1);
    mr_pack_nil(b);
    mr_pack_text(b, MR_STR("version"));
    mr_pack_int(b, 5);
    mr_pack_text(b, MR_STR("model"));
    mr_pack_text(b, MR_STR(TEXT));
}

static void no_map(struct mr_buf *b)
{
    mr_pack_int(b, 5);
}

static void no_text(struct mr_buf *b)
{
    mr_pack_map(b, 1);
    mr_pack_text(b, MR_STR("version"));
    mr_pack_int(b, 5);
}

static void negative_version(struct mr_buf *b)
{
    mr_pack_map(b, 2);
    mr_pack_text(b, MR_STR("model"));
    mr_pack_text(b, MR_STR(TEXT));
    mr_pack_text(b, MR_STR("version"));
    mr_pack_int(b, -5);
}

static void cut_off(struct mr_buf *b)
{
    mr_pack_map(b, 1000000);
    mr_pack_text(b, MR_STR("version"));
}

static void other_model(struct mr_buf *b)
{
    mr_pack_map(b, 2);
    mr_pack_text(b, MR_STR("model"));
    mr_pack_text(b, MR_STR("{\"input\":[3]}"));
    mr_pack_text(b, MR_STR("version"));
    mr_pack_int(b, 5);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    refused(9, good, "of 9 parameters, but the model it describes has 8");
    refused(8, no_map, "descriptor is no map");
    refused(8, no_text, "descriptor is no map");
    refused(8, negative_version, "descriptor is no map");
    refused(8, cut_off, "descriptor is no map");
    refused(8, other_model, "field \"layers\" must be");
    struct mr_nn_model_view view;
    struct mr_error e = {0};
    struct mr_value v = {.kind = MR_VALUE_TENSOR};
    assert_int_equal(mr_nn_model_value_view(&v, &view, &e), MR_EINVAL);
    assert_string_equal(e.text, "a tensor, but a model is needed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_a_value_and_comes_back),
        cmocka_unit_test(it_says_what_it_is_in_words),
        cmocka_unit_test(equal_models_are_equal_bytes),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
