/* Arguments that operators get from packs and inputs, and results of the operators on scalars and
 * containers. */
#include "support/op_test.h"

#include "base/alloc.h"
#include "base/pack.h"
#include "ops/describe.h"
#include "store/object/collection.h"
#include "store/object/format/json.h"
#include "store/object/value.h"
#include "store/object/value_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Runs `op` with arguments in JSON and with `count` inputs. Returns MR_OK, or an error code. */
static int run(const char *op, const char *args, const struct mr_op_input *inputs, uint32_t count,
    struct mr_op_result *result, struct mr_error *e)
{
    static unsigned char room[65536];
    struct mr_buf pack;
    mr_buf_init(&pack, sizeof room);
    assert_int_equal(mr_json_to_pack(mr_str(args), &pack, e), MR_OK);
    memcpy(room, pack.p, pack.n);
    struct mr_str copy = mr_str_of(room, pack.n);
    mr_buf_fini(&pack);
    return op_host_call(&host, op, copy, inputs, count, result, e);
}

static char *result_json(const struct mr_op_result *r)
{
    static char text[4096];
    struct mr_buf b;
    mr_buf_init(&b, sizeof text - 1);
    struct mr_error e = {0};
    if (r->kind == MR_OP_RESULT_EXTENT) {
        struct mr_value v;
        assert_int_equal(mr_value_check_deep(r->extent, &v, &e), MR_OK);
        assert_int_equal(mr_json_export(&v, NULL, mr_sink_to_buf(&b), &e), MR_OK);
    } else {
        assert_int_equal(r->kind, MR_OP_RESULT_PACK);
        assert_int_equal(mr_json_from_pack(r->pack, &b, &e), MR_OK);
    }
    memcpy(text, b.p, b.n);
    text[b.n] = 0;
    mr_buf_fini(&b);
    return text;
}

static void gives(const char *op, const char *args, const char *expected)
{
    struct mr_op_result r = {0};
    struct mr_error e = {0};
    if (run(op, args, NULL, 0, &r, &e)) fail_msg("%s %s: %s", op, args, e.text);
    if (strcmp(result_json(&r), expected) != 0)
        fail_msg("%s %s: %s, not %s", op, args, result_json(&r), expected);
}

static void fails(const char *op, const char *args, int code, const char *words)
{
    struct mr_op_result r = {0};
    struct mr_error e = {0};
    int err = run(op, args, NULL, 0, &r, &e);
    if (err != code || !strstr(e.text, words) || strncmp(e.text, op, strlen(op)) != 0)
        fail_msg("%s %s: %s \"%s\", not \"%s\"", op, args, mr_err_name(err), e.text, words);
}

static void scalars_follow_python(void **state)
{
    (void)state;
    gives("inc", "[1]", "2");
    gives("inc", "[1.5]", "2.5");
    gives("inc", "[9223372036854775807]", "9223372036854775808");
    gives("add", "[1, 2]", "3");
    gives("add", "[true, 2]", "3");
    gives("sub", "[1, 2.5]", "-1.5");
    gives("mul", "[4294967296, 4294967295]", "18446744069414584320");
    gives("div", "[7, 2]", "3.5");
    gives("div", "[6, 2]", "3.0");
    gives("floor_div", "[-7, 2]", "-4");
    gives("floor_div", "[1.0, 0.1]", "9.0");
    gives("mod", "[-7, 2]", "1");
    gives("mod", "[7.5, -2]", "-0.5");
    gives("pow", "[2, 63]", "9223372036854775808");
    gives("pow", "[-3, 3]", "-27");
    gives("pow", "[2, -1]", "0.5");
    gives("neg", "[5]", "-5");
    gives("abs", "[-9223372036854775808]", "9223372036854775808");
    gives("sum", "[[1, 2, 3]]", "6");
    gives("sum", "[1, 2, 3.5]", "6.5");
    gives("sum", "[[]]", "0");
    gives("min", "[3, 1, 2]", "1");
    gives("max", "[[3, 1.5, 2]]", "3");
    gives("not", "[0]", "true");
}

static void what_does_not_fit_64_bits_is_refused(void **state)
{
    (void)state;
    fails("add", "[18446744073709551615, 1]", MR_ERANGE, "does not fit 64 bits");
    fails("mul", "[18446744073709551615, 18446744073709551615]", MR_ERANGE, "does not fit");
    fails("pow", "[10, 40]", MR_ERANGE, "does not fit");
    fails("pow", "[18446744073709551615, 18446744073709551615]", MR_ERANGE, "does not fit");
    fails("neg", "[9223372036854775809]", MR_ERANGE, "does not fit");
    fails("div", "[1, 0]", MR_ERANGE, "division by zero");
    fails("mod", "[1, 0]", MR_ERANGE, "division by zero");
    gives("pow", "[0, 18446744073709551615]", "0");
    gives("pow", "[-1, 18446744073709551615]", "-1");
}

static void comparison_knows_numbers_and_texts(void **state)
{
    (void)state;
    gives("compare", "[1, \"<\", 2]", "true");
    gives("compare", "[1, \"==\", 1.0]", "true");
    gives("compare", "[18446744073709551615, \">\", 9223372036854775807]", "true");
    gives("compare", "[\"a\", \"lt\", \"b\"]", "true");
    gives("compare", "[[1, {\"a\": null}], \"==\", [1, {\"a\": null}]]", "true");
    fails("compare", "[[1], \"<\", [2]]", MR_EINVAL, "no order");
    fails("compare", "[1, \"=\", 2]", MR_EINVAL, "expected one of == != < <= > >=, got \"=\"");
    gives("where", "[true, \"yes\", \"no\"]", "\"yes\"");
    gives("where", "[[true, false], 1, 2]", "[1,2]");
}

static void containers_are_made_and_looked_into(void **state)
{
    (void)state;
    gives("list", "[1, \"a\", null]", "[1,\"a\",null]");
    gives("list", "[]", "[]");
    gives("dict", "[[[\"a\", 1], [\"b\", 2], [\"a\", 3]]]", "{\"a\":3,\"b\":2}");
    gives("get_item", "[[1, 2, 3], -1]", "3");
    gives("get_item", "[{\"a\": {\"b\": 1}}, \"a\"]", "{\"b\":1}");
    gives("get_item", "[{}, \"a\", 7]", "7");
    fails("get_item", "[{}, \"a\"]", MR_ENOENT, "the dict has no \"a\"");
    fails("get_item", "[[1], 1]", MR_ENOENT, "no item 1 among 1");
    fails("get_item", "[[1], \"x\"]", MR_EINVAL, "expected int");
    gives("len", "[\"h\\u00e9\"]", "2");
    gives("len", "[{\"a\": 1}]", "1");
    gives("concat", "[\"ab\", \"c\"]", "\"abc\"");
    gives("concat", "[[1], [2, 3]]", "[1,2,3]");
    gives("range", "[3]", "[0,1,2]");
    gives("range", "[5, 0, -2]", "[5,3,1]");
    gives("range", "[-9223372036854775808, 9223372036854775807, 9223372036854775807]",
        "[-9223372036854775808,-1,9223372036854775806]");
    fails("range", "[0, 9223372036854775807]", MR_ELIMIT, "array.arange");
}

static void arguments_may_be_named(void **state)
{
    (void)state;
    gives("sub", "{\"\": [5], \"y\": 2}", "3");
    gives("sub", "{\"\": [], \"x\": 5, \"y\": 2}", "3");
    gives("sum", "{\"\": [], \"values\": [1, 2]}", "3");
    fails("sub", "{\"\": [5], \"z\": 2}", MR_EINVAL, "has no parameter \"z\"");
    fails("sub", "{\"\": [5], \"x\": 2}", MR_EINVAL, "argument \"x\" is given twice");
    fails("sub", "[5]", MR_EINVAL, "argument \"y\" is missing; it is called as sub(x, y)");
    fails("sub", "[5, 6, 7]", MR_EINVAL, "takes at most 2 arguments, 3 were given");
    fails("sub", "[5, \"a\"]", MR_EINVAL, "argument \"y\": expected array, got text");
}

static struct mr_str pack_of(struct mr_buf *b, const char *json)
{
    mr_buf_init(b, 65536);
    assert_int_equal(mr_json_to_pack(mr_str(json), b, NULL), MR_OK);
    return mr_buf_str(b);
}

static void inputs_stand_where_their_slots_are(void **state)
{
    (void)state;
    struct mr_buf one;
    struct mr_buf two;
    struct mr_buf args;
    struct mr_op_input inputs[2] = {
        {.pack = pack_of(&one, "{\"a\": [1, {\"b\": 2}]}")}, {.pack = pack_of(&two, "\"end\"")}};
    mr_buf_init(&args, 1000);
    mr_pack_list(&args, 3);
    mr_pack_input(&args, 0);
    mr_pack_list(&args, 2);
    mr_pack_input(&args, 1);
    mr_pack_input(&args, 0);
    mr_pack_int(&args, 9);
    struct mr_op_result r = {0};
    struct mr_error e = {0};
    assert_int_equal(op_host_call(&host, "list", mr_buf_str(&args), inputs, 2, &r, &e), MR_OK);
    assert_string_equal(
        result_json(&r), "[{\"a\":[1,{\"b\":2}]},[\"end\",{\"a\":[1,{\"b\":2}]}],9]");
    mr_buf_fini(&one);
    mr_buf_fini(&two);
    mr_buf_fini(&args);
}

static void an_input_that_is_returned_is_not_copied(void **state)
{
    (void)state;
    struct mr_buf args;
    mr_buf_init(&args, 100);
    mr_pack_list(&args, 1);
    mr_pack_input(&args, 1);
    struct mr_buf value;
    struct mr_str list = pack_of(&value, "[1, 2]");
    struct mr_op_input inputs[2] = {{.pack = list}, {.pack = list}};
    struct mr_op_result r = {0};
    struct mr_error e = {0};
    assert_int_equal(op_host_call(&host, "identity", mr_buf_str(&args), inputs, 2, &r, &e), MR_OK);
    assert_int_equal(r.kind, MR_OP_RESULT_INPUT);
    assert_int_equal(r.input, 1);
    mr_buf_fini(&args);
    mr_buf_fini(&value);
}

static void a_small_tensor_inside_a_pack_is_a_tensor(void **state)
{
    (void)state;
    uint64_t shape[1] = {3};
    _Alignas(64) unsigned char extent[512];
    uint64_t n = mr_tensor_bytes(MR_DTYPE_I32, 1, shape);
    int32_t *p = mr_tensor_build(extent, MR_DTYPE_I32, 1, shape);
    p[0] = 1;
    p[1] = -2;
    p[2] = 3;
    /* Each round puts the tensor at another alignment in the pack. */
    for (unsigned shift = 0; shift < 3; shift++) {
        struct mr_buf value;
        mr_buf_init(&value, 2000);
        mr_pack_list(&value, 1 + shift);
        for (unsigned i = 0; i < shift; i++)
            mr_pack_nil(&value);
        mr_pack_ext(&value, MR_PACK_EXT_VALUE, mr_str_of(extent, (size_t)n));
        struct mr_op_input input = {.pack = mr_buf_str(&value)};
        struct mr_buf args;
        mr_buf_init(&args, 100);
        mr_pack_list(&args, 2);
        mr_pack_input(&args, 0);
        mr_pack_int(&args, (int64_t)shift);
        struct mr_op_result r = {0};
        struct mr_error e = {0};
        assert_int_equal(
            op_host_call(&host, "get_item", mr_buf_str(&args), &input, 1, &r, &e), MR_OK);
        assert_string_equal(result_json(&r), "[1,-2,3]");
        mr_buf_fini(&value);
        mr_buf_fini(&args);
    }
}

/* Makes object `number`, a tensor f32[rows, 2]. Returns an input that has only the header of the
 * object. */
static struct mr_op_input object(uint64_t number, uint64_t rows)
{
    uint64_t shape[2] = {rows, 2};
    uint64_t bytes = mr_tensor_bytes(MR_DTYPE_F32, 2, shape);
    void *extent = mr_alloc_aligned((size_t)bytes, 64);
    float *p = mr_tensor_build(extent, MR_DTYPE_F32, 2, shape);
    for (uint64_t i = 0; i < 2 * rows; i++)
        p[i] = (float)(100 * number + i);
    host.objects[number - 1] = mr_str_of(extent, (size_t)bytes);
    return (struct mr_op_input){
        .extent = mr_str_of(extent, 64 + 4 * 8), .object = {.maker = 9, .number = number}};
}

static void a_collection_refers_to_objects_by_their_headers(void **state)
{
    (void)state;
    struct mr_op_input parts[2] = {object(1, 3), object(2, 1)};
    struct mr_buf args;
    mr_buf_init(&args, 100);
    mr_pack_list(&args, 2);
    mr_pack_input(&args, 0);
    mr_pack_input(&args, 1);
    struct mr_op_result r = {0};
    struct mr_error e = {0};
    assert_int_equal(op_host_call(&host, "collection", mr_buf_str(&args), parts, 2, &r, &e), MR_OK);
    struct mr_value v;
    struct mr_collection c;
    struct mr_collection_part part;
    assert_int_equal(mr_value_check_deep(r.extent, &v, &e), MR_OK);
    assert_int_equal(mr_collection_open(&v, &c, &e), MR_OK);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.shape[0], 4);
    assert_int_equal(mr_collection_part(&c, 1, &part, &e), MR_OK);
    assert_int_equal(part.id.number, 2);
    assert_int_equal(part.start[0], 3);
    assert_int_equal(part.nbytes, host.objects[1].n);

    void *copy = mr_alloc_aligned(r.extent.n, 64);
    memcpy(copy, r.extent.p, r.extent.n);
    struct mr_op_input whole = {.extent = mr_str_of(copy, r.extent.n)};
    mr_buf_clear(&args);
    mr_pack_list(&args, 2);
    mr_pack_input(&args, 0);
    mr_pack_int(&args, -1);
    assert_int_equal(
        op_host_call(&host, "array.partition", mr_buf_str(&args), &whole, 1, &r, &e), MR_OK);
    assert_string_equal(result_json(&r), "[[200.0,201.0]]");
    mr_release((void *)(uintptr_t)host.objects[1].p);
    host.objects[1] = (struct mr_str){0};
    assert_int_equal(
        op_host_call(&host, "array.partition", mr_buf_str(&args), &whole, 1, &r, &e), MR_ELOST);
    assert_string_equal(e.text, "array.partition: no object 2");
    mr_release(copy);
    mr_release((void *)(uintptr_t)host.objects[0].p);
    host.objects[0] = (struct mr_str){0};
    mr_buf_fini(&args);
}

static void a_plug_in_must_be_one(void **state)
{
    (void)state;
    struct mr_registry *r = mr_registry_new();
    struct mr_error e = {0};
    assert_int_equal(mr_registry_load_plugin(r, "/absent/lib.so", &e), MR_ENOENT);
    assert_int_equal(mr_registry_load_plugin(r, "libm.so.6", &e), MR_EFORMAT);
    assert_non_null(strstr(e.text, "does not export mr_plugin_ops"));
    struct mr_op_desc op = *mr_registry_find(r, MR_STR("inc"));
    assert_int_equal(mr_registry_add(r, &op, &e), MR_EEXIST);
    op.name = "a.new.one";
    op.abi = MR_OP_ABI + 1;
    assert_int_equal(mr_registry_add(r, &op, &e), MR_EFORMAT);
    assert_non_null(strstr(e.text, "is built for ABI"));
    op.abi = MR_OP_ABI;
    op.params_count = MR_OP_PARAMS_MAX + 1;
    assert_int_equal(mr_registry_add(r, &op, &e), MR_EFORMAT);
    op.params_count = 1;
    assert_int_equal(mr_registry_add(r, &op, &e), MR_OK);
    assert_ptr_equal(mr_registry_find(r, MR_STR("a.new.one")), &op);
    struct mr_graph_catalogue c = mr_registry_catalogue(r);
    struct mr_graph_op_info info;
    assert_true(c.find(c.ctx, MR_STR("a.new.one"), &info));
    assert_int_equal(info.params_count, 1);
    assert_true(info.params[0].required);
    mr_registry_free(&r);
}

static void an_argument_of_the_wrong_type_names_itself(void **state)
{
    (void)state;
    fails("array.sum", "[[1, 2], [0], true, 4]", MR_EINVAL, "takes at most 3 arguments");
    fails(
        "array.sum", "[[1, 2], 0, 1]", MR_EINVAL, "argument \"keepdims\": expected bool, got int");
    gives("array.sum", "[[1, 2], null, null]", "3");
}

static void damaged_arguments_are_refused(void **state)
{
    (void)state;
    struct mr_op_result r = {0};
    struct mr_error e = {0};
    static const struct {
        struct mr_str pack;
        const char *words;
    } rows[] = {
        {MR_STR_INIT(""), "not a well-formed pack"},
        {MR_STR_INIT("\x92\x01"), "not a well-formed pack"},
        {MR_STR_INIT("\x01"), "the arguments are not a list"},
        {MR_STR_INIT("\x91\xd6\x01\x00\x00\x00\x05"), "input 5 of 0"},
        {MR_STR_INIT("\x91\xd4\x02\x00"), ""},
        {MR_STR_INIT("\x81\xa1x\x01"), "named arguments without"},
        {MR_STR_INIT("\x91\x81\x01\x01"), "the name of a dict's member is not a text"},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        assert_int_not_equal(op_host_call(&host, "identity", rows[i].pack, NULL, 0, &r, &e), MR_OK);
        if (!strstr(e.text, rows[i].words)) fail_msg("row %zu: %s", i, e.text);
    }
    unsigned char deep[400];
    memset(deep, 0x91, sizeof deep);
    struct mr_str pack = mr_str_of(deep, sizeof deep);
    assert_int_equal(op_host_call(&host, "identity", pack, NULL, 0, &r, &e), MR_ELIMIT);
    assert_non_null(strstr(e.text, "too deeply"));
}

static void long_work_stops_when_it_is_cancelled(void **state)
{
    (void)state;
    host.is_cancelled = true;
    fails("array.random", "[3000000, 1]", MR_ECANCELED, "cancelled");
    fails("array.full", "[3000000, 1.5]", MR_ECANCELED, "cancelled");
    fails("array.matmul", "[[[1.0]], [[2.0]]]", MR_ECANCELED, "cancelled");
    fails("array.copy", "[[1, 2]]", MR_ECANCELED, "cancelled");
    fails("digits.draw", "[2]", MR_ECANCELED, "cancelled");
    fails("array.sum", "[[1, 2]]", MR_ECANCELED, "cancelled");
    host.is_cancelled = false;
}

static void sleep_and_fail_do_as_they_are_told(void **state)
{
    (void)state;
    host.waited_ns = 0;
    gives("sleep", "[0.25, \"up\"]", "\"up\"");
    assert_int_equal(host.waited_ns, 250000000);
    host.is_cancelled = true;
    fails("sleep", "[0.25]", MR_ECANCELED, "cancelled");
    host.is_cancelled = false;
    fails("sleep", "[-1]", MR_EINVAL, "0 to 1e9");
    fails("fail", "[\"as asked\"]", MR_EUNKNOWN, "as asked");
    host.attempt = 2;
    gives("fail", "[\"early\", 2, 5]", "5");
    host.attempt = 0;
    fails("fail", "[\"early\", 2, 5]", MR_EUNKNOWN, "early");
}

static void every_summary_is_a_sentence_and_every_name_is_found(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < mr_registry_count(host.registry); i++) {
        const struct mr_op_desc *op = mr_registry_at(host.registry, i);
        size_t n = strlen(op->summary);
        if (n < 3 || (op->summary[n - 1] != '.' && op->summary[n - 1] != '?'))
            fail_msg("%s: the summary is no sentence", op->name);
        assert_ptr_equal(mr_registry_find(host.registry, mr_str(op->name)), op);
    }
    assert_null(mr_registry_find(host.registry, MR_STR("no such op")));
}

/* Results computed from drawn (random) data are marked as drawn: arrays, small values and
 * collections. */
static void what_is_made_of_drawn_data_is_marked(void **state)
{
    (void)state;
    struct mr_op_result r = {0};
    struct mr_error e = {0};
    struct mr_value v;
    assert_int_equal(run("digits.load", "[null, 9, 1]", NULL, 0, &r, &e), MR_OK);
    assert_int_equal(mr_value_check_deep(r.extent, &v, &e), MR_OK);
    assert_true(v.is_drawn);
    void *drawn = mr_alloc_aligned(r.extent.n, 64);
    memcpy(drawn, r.extent.p, r.extent.n);
    struct mr_op_input in = {.extent = mr_str_of(drawn, r.extent.n)};

    struct mr_buf args, pack;
    mr_buf_init(&args, 100);
    mr_buf_init(&pack, 65536);
    mr_pack_list(&args, 1);
    mr_pack_input(&args, 0);
    const struct mr_str one = mr_buf_str(&args);
    assert_int_equal(op_host_call(&host, "array.mean", one, &in, 1, &r, &e), MR_OK);
    assert_true(r.is_drawn || mr_value_is_drawn(r.extent));
    assert_int_equal(op_host_call(&host, "array.copy", one, &in, 1, &r, &e), MR_OK);
    assert_int_equal(mr_value_check_deep(r.extent, &v, &e), MR_OK);
    assert_true(v.is_drawn);
    char words[MR_VALUE_SUMMARY_MAX];
    mr_value_summary(&v, words);
    assert_string_equal(words, "u8[9,28,28] 7.0 KiB, of drawn data");

    /* The mark survives when the value is sent inline, as a pack. */
    assert_int_equal(run("digits.load", "[null, 3, 1, \"labels\"]", NULL, 0, &r, &e), MR_OK);
    assert_int_equal(mr_value_check_deep(r.extent, &v, &e), MR_OK);
    assert_int_equal(mr_value_to_pack(&v, &pack), MR_OK);
    in = (struct mr_op_input){.pack = mr_buf_str(&pack)};
    assert_int_equal(op_host_call(&host, "array.copy", one, &in, 1, &r, &e), MR_OK);
    assert_true(mr_value_is_drawn(r.extent));
    mr_buf_fini(&pack);
    mr_buf_fini(&args);
    mr_release(drawn);

    assert_int_equal(run("array.full", "[[2000], 1.5]", NULL, 0, &r, &e), MR_OK);
    assert_int_equal(mr_value_check_deep(r.extent, &v, &e), MR_OK);
    assert_false(v.is_drawn);
    host.objects[0] = (struct mr_str){0};
}

static void paths_never_leave_the_data_roots(void **state)
{
    (void)state;
    char base[] = "/tmp/mr-roots-XXXXXX";
    assert_non_null(mkdtemp(base));
    char path[4][64];
    (void)snprintf(path[0], sizeof path[0], "%s/data", base);
    (void)snprintf(path[1], sizeof path[1], "%s/data/in", base);
    (void)snprintf(path[2], sizeof path[2], "%s/out", base);
    (void)snprintf(path[3], sizeof path[3], "%s/data/link", base);
    assert_int_equal(mkdir(path[0], 0700), 0);
    for (int i = 1; i <= 2; i++) {
        FILE *f = fopen(path[i], "w");
        assert_non_null(f);
        (void)fclose(f);
    }
    assert_int_equal(symlink("../out", path[3]), 0);
    struct mr_roots r;
    mr_roots_init(&r);
    struct mr_error e = {0};
    int fd = -1;
    assert_int_equal(mr_roots_open(&r, MR_STR("in"), &fd, &e), MR_EPERM);
    assert_non_null(strstr(e.text, "--data-root"));
    assert_int_equal(mr_roots_add(&r, path[0], &e), MR_OK);
    assert_int_equal(mr_roots_open(&r, MR_STR("in"), &fd, &e), MR_OK);
    (void)close(fd);
    assert_int_equal(mr_roots_open(&r, mr_str(path[1]), &fd, &e), MR_OK);
    (void)close(fd);
    const char *outside[] = {"../out", "link", path[2], path[3], "/etc/passwd", "../data/in"};
    for (size_t i = 0; i < MR_ARRAY_LEN(outside); i++) {
        int err = mr_roots_open(&r, mr_str(outside[i]), &fd, &e);
        if (err != MR_EPERM || !strstr(e.text, "--data-root") || !strstr(e.text, outside[i]))
            fail_msg("%s: %d %s", outside[i], err, e.text);
    }
    assert_int_equal(mr_roots_open(&r, MR_STR("absent"), &fd, &e), MR_ENOENT);
    mr_roots_fini(&r);
    (void)unlink(path[3]);
    (void)unlink(path[1]);
    (void)unlink(path[2]);
    (void)rmdir(path[0]);
    (void)rmdir(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_follow_python),
        cmocka_unit_test(what_does_not_fit_64_bits_is_refused),
        cmocka_unit_test(comparison_knows_numbers_and_texts),
        cmocka_unit_test(containers_are_made_and_looked_into),
        cmocka_unit_test(arguments_may_be_named),
        cmocka_unit_test(inputs_stand_where_their_slots_are),
        cmocka_unit_test(an_input_that_is_returned_is_not_copied),
        cmocka_unit_test(a_small_tensor_inside_a_pack_is_a_tensor),
        cmocka_unit_test(a_collection_refers_to_objects_by_their_headers),
        cmocka_unit_test(a_plug_in_must_be_one),
        cmocka_unit_test(an_argument_of_the_wrong_type_names_itself),
        cmocka_unit_test(damaged_arguments_are_refused),
        cmocka_unit_test(long_work_stops_when_it_is_cancelled),
        cmocka_unit_test(sleep_and_fail_do_as_they_are_told),
        cmocka_unit_test(every_summary_is_a_sentence_and_every_name_is_found),
        cmocka_unit_test(what_is_made_of_drawn_data_is_marked),
        cmocka_unit_test(paths_never_leave_the_data_roots),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
