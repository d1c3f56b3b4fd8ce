/* Writes and reads models as .npz archives. Each parameter is a member of the archive in the .npy
 * format (store/object/format/npy.h). The JSON text that describes the model is the member
 * model.json.npy, written as a NumPy array of dtype S and shape (). This member is read with dtype
 * uint8 or U, too; numpy.savez writes U for a Python string. */
#include "nn/model/npz.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "nn/model/npz_zip.h"
#include "store/object/format/npy.h"

#include <inttypes.h>
#include <stdio.h>

#define HEADER_BYTES_MAX 65600 /* limit of the bytes of an array's header */
#define NAME_MAX_BYTES 128
#define DEFLATE_MOST 1032 /* a byte of deflated data holds at most so many bytes */
#define TEXT_MEMBER "model.json.npy"
#define VERSION_MEMBER "model.version.npy"

static void member_name(
    const struct mr_nn_model *m, const struct mr_nn_param *p, char out[NAME_MAX_BYTES])
{
    (void)snprintf(out, NAME_MAX_BYTES, "%s/%s.npy", m->layers[p->layer].name, p->name);
}

/* ---- writing --------------------------------------------------------------------------------- */

uint64_t mr_nn_npz_bytes_max(const struct mr_nn_model *m)
{
    uint64_t members = (uint64_t)m->params_count + 2;
    return m->count * sizeof(float) + m->text_bytes + 4096 + members * (512 + 2 * NAME_MAX_BYTES);
}

static int add_tensor(struct mr_nn_zip_writer *w, const char *name, enum mr_dtype dtype,
    const struct mr_nn_shape *s, const void *data, struct mr_error *e)
{
    struct mr_tensor t = {.dtype = dtype, .ndim = s->rank, .data = data};
    for (uint32_t i = 0; i < s->rank; i++)
        t.shape[i] = s->dims[i];
    mr_tensor_strides(t.dtype, t.ndim, t.shape, t.strides);
    mr_nn_zip_begin(w, name);
    int err = mr_npy_export(&t, mr_sink_to_buf(w->out), e);
    mr_nn_zip_end(w);
    return err;
}

static void add_text(struct mr_nn_zip_writer *w, struct mr_str text)
{
    char header[128];
    int n = snprintf(header, sizeof header,
        "\x93NUMPY%c%c%c%c{'descr': '|S%zu', 'fortran_order': False, 'shape': (), }", 1, 0, 118, 0,
        text.n);
    mr_assert(n > 10 && n < 127);
    /* The header's text has 118 bytes, is padded with spaces, and ends with a newline. */
    memset(header + n, ' ', sizeof header - (size_t)n);
    header[127] = '\n';
    mr_nn_zip_begin(w, TEXT_MEMBER);
    mr_buf_add(w->out, header, sizeof header);
    mr_buf_add_str(w->out, text);
    mr_nn_zip_end(w);
}

int mr_nn_npz_write(const struct mr_nn_model *m, uint64_t version, const float *params,
    struct mr_buf *out, struct mr_error *e)
{
    MR_AUTO(mr_nn_zip_writer_fini) struct mr_nn_zip_writer w;
    mr_nn_zip_writer_init(&w, out);
    add_text(&w, mr_nn_model_text(m));
    const struct mr_nn_shape scalar = {0};
    int err = add_tensor(&w, VERSION_MEMBER, MR_DTYPE_U64, &scalar, &version, e);
    for (uint32_t i = 0; !err && i < m->params_count; i++) {
        const struct mr_nn_param *p = &m->params[i];
        char name[NAME_MAX_BYTES];
        member_name(m, p, name);
        err = add_tensor(&w, name, MR_DTYPE_F32, &p->shape, params + p->offset, e);
    }
    return err ? err : mr_nn_zip_finish(&w, e);
}

/* ---- the JSON text --------------------------------------------------------------------------- */

static void put_utf8(struct mr_buf *b, uint32_t c)
{
    unsigned char u[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        u[i] = (unsigned char)(0x80 | (c & 0x3f));
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    u[0] = (unsigned char)(lead[n] | c);
    mr_buf_add(b, u, n);
}

/* Converts UCS-4 to UTF-8, and skips the zeros with which NumPy pads. The JSON parser later refuses
 * invalid characters. */
static void from_unicode(struct mr_str raw, struct mr_buf *out)
{
    for (size_t i = 0; i + 4 <= raw.n; i += 4) {
        uint32_t c = 0;
        memcpy(&c, raw.p + i, sizeof c);
        if (c) put_utf8(out, c & 0x1fffff);
    }
}

static int no_text(struct mr_error *e)
{
    return mr_fail(e, MR_EFORMAT,
        "npz: \"model.json\" is no text: an array of type S or <U without axes, or of bytes");
}

/* Sets `*descr` to the element type after 'descr', and `*data` to the offset of the elements.
 * False: the bytes are not a .npy array. */
static bool descr_of(struct mr_str npy, struct mr_str *descr, size_t *data)
{
    static const char key[] = "'descr': '";
    const unsigned char *p = (const unsigned char *)npy.p;
    if (npy.n < 12 || memcmp(p, "\x93NUMPY", 6) != 0) return false;
    size_t low = (size_t)p[8] | (size_t)p[9] << 8;
    *data = p[6] == 1 ? 10 + low : 12 + low + ((size_t)p[10] << 16 | (size_t)p[11] << 24);
    if (*data > npy.n) return false;
    const char *at = memmem(npy.p, *data, key, sizeof key - 1);
    if (!at) return false;
    at += sizeof key - 1;
    const char *end = memchr(at, '\'', (size_t)(npy.p + *data - at));
    if (!end) return false;
    *descr = mr_str_of(at, (size_t)(end - at));
    return true;
}

static int text_of(struct mr_str npy, struct mr_buf *out, struct mr_error *e)
{
    struct mr_str descr;
    size_t data = 0;
    if (!descr_of(npy, &descr, &data) || descr.n < 2) return no_text(e);
    struct mr_str raw = mr_str_of(npy.p + data, npy.n - data);
    if (mr_str_eq(mr_str_of(descr.p, 2), MR_STR("<U")))
        from_unicode(raw, out);
    else if (mr_str_eq(mr_str_of(descr.p, 2), MR_STR("|S")) || mr_str_eq(descr, MR_STR("|u1")))
        mr_buf_add_str(out, raw);
    else
        return no_text(e);
    while (out->n && !out->p[out->n - 1])
        out->n--; /* NumPy pads texts with zeros */
    int err = mr_buf_status(out);
    return err ? mr_fail(e, err, "npz: \"model.json\" is too long") : MR_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_version(const struct mr_nn_zip *z, uint64_t *out, struct mr_error *e)
{
    struct mr_error why = {0};
    struct mr_str npy;
    MR_AUTO(mr_free_ptr) void *owned = NULL;
    int err = mr_nn_zip_take(z, VERSION_MEMBER, HEADER_BYTES_MAX, &owned, &npy, &why);
    *out = 0;
    if (err == MR_ENOENT) return MR_OK;
    if (err) return mr_fail(e, err, "%s", why.text);
    struct mr_npy_header h;
    err = mr_npy_header_read(npy, &h, e);
    if (err) return err == MR_ERANGE ? MR_EFORMAT : err;
    bool whole = h.dtype == MR_DTYPE_U64 || h.dtype == MR_DTYPE_I64;
    if (!whole || h.data_bytes != sizeof *out || npy.n - h.data_offset != sizeof *out)
        return mr_fail(e, MR_EFORMAT, "npz: \"model.version\" is not one whole number of 8 bytes");
    uint64_t raw = 0;
    memcpy(&raw, npy.p + h.data_offset, sizeof raw);
    mr_npy_convert(&h, &raw, out);
    return MR_OK;
}

int mr_nn_npz_model(
    struct mr_str npz, struct mr_nn_model **out, uint64_t *version_out, struct mr_error *e)
{
    struct mr_nn_zip z;
    int err = mr_nn_zip_open(npz, &z, e);
    if (err) return err;
    struct mr_str npy;
    MR_AUTO(mr_free_ptr) void *owned = NULL;
    err = mr_nn_zip_take(
        &z, TEXT_MEMBER, 4 * MR_NN_MODEL_BYTES_MAX + HEADER_BYTES_MAX, &owned, &npy, e);
    if (err) return err;
    MR_AUTO(mr_buf_fini) struct mr_buf text;
    mr_buf_init(&text, 4 * MR_NN_MODEL_BYTES_MAX);
    err = text_of(npy, &text, e);
    if (err) return err;
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    err = mr_nn_model_new(mr_buf_str(&text), &m, e);
    if (err) return err;
    if (m->count * sizeof(float) / DEFLATE_MOST > npz.n)
        return mr_fail(e, MR_EFORMAT,
            "npz: %zu bytes cannot hold the %" PRIu64 " parameters that \"model.json\" describes",
            npz.n, m->count);
    uint64_t version = 0;
    err = read_version(&z, &version, e);
    if (err) return err;
    *version_out = version;
    *out = MR_STEAL(m);
    return MR_OK;
}

static bool same_shape(const struct mr_npy_header *h, const struct mr_nn_shape *s)
{
    bool same = h->ndim == s->rank;
    for (uint32_t i = 0; same && i < s->rank; i++)
        same = h->shape[i] == s->dims[i];
    return same;
}

/* Converts elements of type f32 or f64, of any byte order and axis order, through aligned
 * copies. */
static void convert(const struct mr_npy_header *h, const char *data, uint64_t count, float *out)
{
    MR_AUTO(mr_free_ptr) char *from = mr_alloc_aligned(h->data_bytes, 64);
    MR_AUTO(mr_free_ptr) char *to = mr_alloc_aligned(h->data_bytes, 64);
    memcpy(from, data, h->data_bytes);
    mr_npy_convert(h, from, to);
    if (h->dtype == MR_DTYPE_F32) {
        memcpy(out, to, h->data_bytes);
        return;
    }
    const double *wide = (const double *)(const void *)to;
    for (uint64_t i = 0; i < count; i++)
        out[i] = (float)wide[i];
}

static int read_param(const struct mr_nn_zip *z, const char *name, const struct mr_nn_param *p,
    float *out, struct mr_error *e)
{
    struct mr_str npy;
    MR_AUTO(mr_free_ptr) void *owned = NULL;
    uint64_t most = p->count * sizeof(double) + HEADER_BYTES_MAX;
    int err = mr_nn_zip_take(z, name, most, &owned, &npy, e);
    if (err) return err;
    struct mr_npy_header h;
    struct mr_error why = {0};
    err = mr_npy_header_read(npy, &h, &why);
    if (err) return mr_fail(e, MR_EFORMAT, "npz: \"%s\": %s", name, why.text);
    if (!same_shape(&h, &p->shape) || (h.dtype != MR_DTYPE_F32 && h.dtype != MR_DTYPE_F64)) {
        uint64_t shape[MR_NN_RANK_MAX];
        for (uint32_t i = 0; i < p->shape.rank; i++)
            shape[i] = p->shape.dims[i];
        char has[MR_TENSOR_TEXT_MAX], wants[MR_TENSOR_TEXT_MAX];
        mr_tensor_text(h.dtype, h.ndim, h.shape, has);
        mr_tensor_text(MR_DTYPE_F32, p->shape.rank, shape, wants);
        return mr_fail(e, MR_EINVAL, "npz: \"%s\" is %s, but the model wants %s", name, has, wants);
    }
    if (npy.n - h.data_offset != h.data_bytes)
        return mr_fail(e, MR_EFORMAT, "npz: \"%s\" has %zu bytes of elements, not %" PRIu64, name,
            npy.n - h.data_offset, h.data_bytes);
    if (h.dtype == MR_DTYPE_F32 && !h.fortran && !h.swapped)
        memcpy(out, npy.p + h.data_offset, h.data_bytes);
    else
        convert(&h, npy.p + h.data_offset, p->count, out);
    return MR_OK;
}

int mr_nn_npz_read(
    struct mr_str npz, const struct mr_nn_model *m, float *params, struct mr_error *e)
{
    struct mr_nn_zip z;
    int err = mr_nn_zip_open(npz, &z, e);
    for (uint32_t i = 0; !err && i < m->params_count; i++) {
        char name[NAME_MAX_BYTES];
        member_name(m, &m->params[i], name);
        err = read_param(&z, name, &m->params[i], params + m->params[i].offset, e);
    }
    return err;
}
