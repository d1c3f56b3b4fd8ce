/* lib/nn/model: models as .npz archives. tests/integration/ops_nn.py tests the archives with
 * NumPy. */
#include "base/alloc.h"
#include "base/rng.h"
#include "nn/model/npz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <zlib.h>

#include <cmocka.h>

#define TEXT                                                                                       \
    "{\"input\":[4,4,2],\"layers\":["                                                              \
    "{\"type\":\"Conv2D\",\"filters\":3,\"kernel\":2,\"name\":\"eye\"},{\"type\":\"BatchNorm\"},"  \
    "{\"type\":\"Flatten\"},{\"type\":\"Dense\",\"units\":5,\"activation\":\"softmax\"}]}"

struct rig {
    struct mr_nn_model *model;
    float *params;
    struct mr_buf npz;
};

static struct rig rig_open(void)
{
    struct rig g = {0};
    struct mr_error e = {0};
    if (mr_nn_model_new(MR_STR(TEXT), &g.model, &e)) fail_msg("%s", e.text);
    g.params = mr_alloc_array(g.model->count, sizeof(float));
    mr_nn_model_init(g.model, 5, g.params);
    mr_buf_init(&g.npz, 1 << 20);
    if (mr_nn_npz_write(g.model, 1234, g.params, &g.npz, &e)) fail_msg("%s", e.text);
    return g;
}

static void rig_close(struct rig *g)
{
    mr_nn_model_free(&g->model);
    mr_release(g->params);
    mr_buf_fini(&g->npz);
}

/* Reads the archive into a new model. Returns MR_OK, or an error code. `params` gets the
 * parameters, which the caller frees. */
static int read_back(struct mr_str npz, float **params, uint64_t *version, struct mr_error *e)
{
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    int err = mr_nn_npz_model(npz, &m, version, e);
    if (err) return err;
    *params = mr_alloc_array(m->count, sizeof(float));
    return mr_nn_npz_read(npz, m, *params, e);
}

static void a_model_comes_back_from_its_archive(void **state)
{
    (void)state;
    struct rig g = rig_open();
    assert_true(g.npz.n <= mr_nn_npz_bytes_max(g.model));
    MR_AUTO(mr_free_ptr) float *params = NULL;
    uint64_t version = 0;
    struct mr_error e = {0};
    if (read_back(mr_buf_str(&g.npz), &params, &version, &e)) fail_msg("%s", e.text);
    assert_int_equal(version, 1234);
    assert_memory_equal(params, g.params, g.model->count * sizeof(float));
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    assert_int_equal(mr_nn_npz_model(mr_buf_str(&g.npz), &m, &version, &e), MR_OK);
    assert_true(mr_str_eq(mr_nn_model_text(m), MR_STR(TEXT)));
    rig_close(&g);
}

static void equal_models_are_equal_archives(void **state)
{
    (void)state;
    struct rig a = rig_open(), b = rig_open();
    assert_true(mr_str_eq(mr_buf_str(&a.npz), mr_buf_str(&b.npz)));
    rig_close(&a);
    rig_close(&b);
}

static void every_byte_counts_or_does_no_harm(void **state)
{
    (void)state;
    struct rig g = rig_open();
    MR_AUTO(mr_free_ptr) unsigned char *copy = mr_copy(g.npz.p, g.npz.n);
    for (size_t i = 0; i < g.npz.n; i++) {
        copy[i] ^= 0xff;
        MR_AUTO(mr_free_ptr) float *params = NULL;
        uint64_t version = 0;
        struct mr_error e = {0};
        int err = read_back(mr_str_of(copy, g.npz.n), &params, &version, &e);
        if (!err) /* the damage is in an ignored field such as a date: the content must be
                   * unchanged */
            assert_memory_equal(params, g.params, g.model->count * sizeof(float));
        copy[i] ^= 0xff;
    }
    for (size_t n = 0; n < g.npz.n; n++) {
        MR_AUTO(mr_free_ptr) unsigned char *cut = mr_copy(g.npz.p, n);
        MR_AUTO(mr_free_ptr) float *params = NULL;
        uint64_t version = 0;
        struct mr_error e = {0};
        assert_int_not_equal(read_back(mr_str_of(cut, n), &params, &version, &e), MR_OK);
    }
    rig_close(&g);
}

static void other_layers_than_the_archives_are_named(void **state)
{
    (void)state;
    struct rig g = rig_open();
    static const struct {
        const char *json, *words;
        int err;
    } others[] = {
        {"{\"input\":[3],\"layers\":[{\"type\":\"Dense\",\"units\":2,\"name\":\"no\"}]}",
            "no \"no/kernel.npy\" in the archive", MR_ENOENT},
        {"{\"input\":[3],\"layers\":[{\"type\":\"Dense\",\"units\":2,\"name\":\"eye\"}]}",
            "\"eye/kernel.npy\" is f32[2,2,2,3], but the model wants f32[3,2]", MR_EINVAL},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(others); i++) {
        MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
        assert_int_equal(mr_nn_model_new(mr_str(others[i].json), &m, NULL), MR_OK);
        float params[64];
        struct mr_error e = {0};
        int err = mr_nn_npz_read(mr_buf_str(&g.npz), m, params, &e);
        if (err != others[i].err || !strstr(e.text, others[i].words))
            fail_msg("%d %s", err, e.text);
    }
    rig_close(&g);
}

/* ---- archives made by hand ------------------------------------------------------------------- */

static void put(struct mr_buf *b, unsigned bytes, uint64_t v)
{
    for (unsigned i = 0; i < bytes; i++)
        mr_buf_add_byte(b, (unsigned char)(i < 8 ? v >> 8 * i : 0));
}

struct one { /* an archive with one member, and the fields of its central directory */
    const char *name;
    struct mr_str packed;
    uint32_t method, crc, bytes, flags, members;
};

static void archive(struct mr_buf *b, const struct one *o)
{
    mr_buf_init(b, 1 << 20);
    uint32_t name = (uint32_t)strlen(o->name);
    put(b, 4, 0x04034b50);
    put(b, 22, 0);
    put(b, 2, name);
    put(b, 2, 0);
    mr_buf_add_text(b, o->name);
    mr_buf_add_str(b, o->packed);
    uint32_t at = (uint32_t)b->n;
    put(b, 4, 0x02014b50);
    put(b, 4, 20);
    put(b, 2, o->flags);
    put(b, 2, o->method);
    put(b, 4, 0);
    put(b, 4, o->crc);
    put(b, 4, o->packed.n);
    put(b, 4, o->bytes);
    put(b, 2, name);
    put(b, 8, 0);
    put(b, 4, 0);
    put(b, 4, 0); /* offset of the member's local header */
    mr_buf_add_text(b, o->name);
    uint32_t end = (uint32_t)b->n;
    put(b, 4, 0x06054b50);
    put(b, 4, 0);
    put(b, 2, o->members);
    put(b, 2, o->members);
    put(b, 4, end - at);
    put(b, 4, at);
    put(b, 2, 0);
}

static void refused(const struct one *o, int want, const char *words)
{
    MR_AUTO(mr_buf_fini) struct mr_buf b;
    archive(&b, o);
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    uint64_t version = 0;
    struct mr_error e = {0};
    int err = mr_nn_npz_model(mr_buf_str(&b), &m, &version, &e);
    if (err != want || !strstr(e.text, words)) fail_msg("%d %s", err, e.text);
}

/* Writes a text to `out` as a .npy file of NumPy's dtype U, four bytes a character. */
static struct mr_str unicode(const char *text, char out[8192])
{
    size_t n = strlen(text);
    char header[128];
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\0\x76\0", 10);
    int used =
        snprintf(header + 10, 110, "{'descr': '<U%zu', 'fortran_order': False, 'shape': (), }", n);
    header[10 + used] = ' ';
    memcpy(out, header, sizeof header);
    memset(out + sizeof header, 0, 4 * n);
    for (size_t i = 0; i < n; i++)
        out[sizeof header + 4 * i] = text[i];
    return mr_str_of(out, sizeof header + 4 * n);
}

static struct mr_str deflated(struct mr_str raw, unsigned char *out, size_t room)
{
    z_stream s = {0};
    assert_int_equal(deflateInit2(&s, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    s.next_in = (unsigned char *)(uintptr_t)raw.p;
    s.avail_in = (uInt)raw.n;
    s.next_out = out;
    s.avail_out = (uInt)room;
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    size_t n = room - s.avail_out;
    (void)deflateEnd(&s);
    return mr_str_of(out, n);
}

static void a_deflated_text_of_unicode_is_read(void **state)
{
    (void)state;
    char text[8192];
    unsigned char packed[8192];
    struct mr_str raw = unicode(TEXT, text);
    struct one o = {.name = "model.json.npy", .method = 8, .bytes = (uint32_t)raw.n, .members = 1};
    o.crc = (uint32_t)crc32_z(0, (const unsigned char *)raw.p, raw.n);
    o.packed = deflated(raw, packed, sizeof packed);
    assert_true(o.packed.n < raw.n / 2);
    MR_AUTO(mr_buf_fini) struct mr_buf b;
    archive(&b, &o);
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    uint64_t version = 7;
    struct mr_error e = {0};
    if (mr_nn_npz_model(mr_buf_str(&b), &m, &version, &e)) fail_msg("%s", e.text);
    assert_int_equal(version, 0);
    assert_true(mr_str_eq(mr_nn_model_text(m), MR_STR(TEXT)));

    struct one bad = o;
    bad.crc++;
    refused(&bad, MR_EFORMAT, "checksum does not agree");
    bad = o;
    bad.bytes--;
    refused(&bad, MR_EFORMAT, "does not unpack");
    bad.bytes += 2;
    refused(&bad, MR_EFORMAT, "does not unpack");
    bad.bytes = UINT32_MAX - 1; /* the member claims to unpack to 4 GiB */
    refused(&bad, MR_ELIMIT, "at most");
    bad = o;
    bad.flags = 1;
    refused(&bad, MR_EFORMAT, "encrypted");
    bad = o;
    bad.method = 14;
    refused(&bad, MR_EFORMAT, "method 14");
    bad = o;
    bad.name = "model.txt";
    refused(&bad, MR_ENOENT, "no \"model.json.npy\"");
    bad = o;
    bad.members = 2;
    bad.name = "other";
    refused(&bad, MR_EFORMAT, "directory does not hold together");
    bad.members = 60000;
    refused(&bad, MR_ELIMIT, "60000 members");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_comes_back_from_its_archive),
        cmocka_unit_test(equal_models_are_equal_archives),
        cmocka_unit_test(every_byte_counts_or_does_no_harm),
        cmocka_unit_test(other_layers_than_the_archives_are_named),
        cmocka_unit_test(a_deflated_text_of_unicode_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
