/* The table of formats: their names, their media types, and the functions that import and export
 * them. The format "value" is the extent of a value: its header and data, with the same bytes as in
 * memory. */
#include "store/object/format/format.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "store/object/format/csv.h"
#include "store/object/format/csv_write.h"
#include "store/object/format/elements.h"
#include "store/object/format/idx.h"
#include "store/object/format/json.h"
#include "store/object/layout.h"
#include "store/object/format/npy.h"
#include "store/object/format/png.h"
#include "store/object/value_text.h"

#include <inttypes.h>

/* ---- the formats "value", "raw" and "text" --------------------------------------------------- */

static int import_value(struct mr_str bytes, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e)
{
    (void)o;
    struct mr_value_header h;
    if (bytes.n < sizeof h) return mr_fail(e, MR_EFORMAT, "value cut off: %zu bytes", bytes.n);
    memcpy(&h, bytes.p, sizeof h);
    if (h.magic != MR_VALUE_MAGIC) return mr_fail(e, MR_EFORMAT, "not a value extent");
    if (h.nbytes != bytes.n)
        return mr_fail(
            e, MR_EFORMAT, "value of %" PRIu64 " bytes in a body of %zu", h.nbytes, bytes.n);
    void *extent = NULL;
    int err = mr_value_take(a, bytes.n, &extent, e);
    if (err) return err;
    memcpy(extent, bytes.p, bytes.n);
    struct mr_value v;
    return mr_value_check_deep(mr_str_of(extent, bytes.n), &v, e);
}

static int export_value(const struct mr_value *v, const struct mr_format_options *o,
    struct mr_sink sink, struct mr_error *e)
{
    (void)o;
    int err = MR_OK;
    if (v->extent) {
        err = sink.write(sink.ctx, v->extent, v->nbytes);
    } else {
        /* A pack without an extent gets the header that its extent would have. */
        _Alignas(MR_VALUE_ALIGN) unsigned char header[MR_VALUE_ALIGN];
        (void)mr_value_pack_build(header, v->data_bytes);
        err = sink.write(sink.ctx, header, sizeof header);
        if (!err) err = sink.write(sink.ctx, v->data, v->data_bytes);
    }
    return err ? mr_fail(e, err, "export: %s", mr_err_words(err)) : MR_OK;
}

static int import_raw(struct mr_str bytes, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e)
{
    (void)o;
    return mr_value_put_bytes(a, bytes, e);
}

static int import_text(struct mr_str bytes, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e)
{
    (void)o;
    if (!mr_utf8_is_valid(bytes)) return mr_fail(e, MR_EFORMAT, "text is not UTF-8");
    if (bytes.n > UINT32_MAX) return mr_fail(e, MR_ELIMIT, "text of %zu bytes", bytes.n);
    MR_AUTO(mr_buf_fini) struct mr_buf pack;
    mr_buf_init(&pack, bytes.n + 16);
    mr_pack_text(&pack, bytes);
    return mr_value_put_pack(a, mr_buf_str(&pack), e);
}

/* Sets `*out` to the content of a pack that is a single text or byte string. False: the value is no
 * such pack. */
static bool pack_bytes(const struct mr_value *v, bool text_only, struct mr_str *out)
{
    if (v->kind != MR_VALUE_PACK) return false;
    struct mr_pack_reader r = mr_pack_read(mr_str_of(v->data, v->data_bytes));
    struct mr_pack_item item;
    if (mr_pack_next(&r, &item)) return false;
    if (item.type != MR_PACK_TEXT && (text_only || item.type != MR_PACK_BYTES)) return false;
    *out = item.bytes;
    return true;
}

static int export_raw(const struct mr_value *v, const struct mr_format_options *o,
    struct mr_sink sink, struct mr_error *e)
{
    (void)o;
    struct mr_str bytes = mr_str_of(v->data, v->data_bytes);
    int err = MR_OK;
    if (v->kind == MR_VALUE_TENSOR)
        err = mr_elements_write(&v->tensor, false, sink);
    else if (v->kind == MR_VALUE_BYTES || pack_bytes(v, false, &bytes))
        err = bytes.n ? sink.write(sink.ctx, bytes.p, bytes.n) : MR_OK;
    return err ? mr_fail(e, err, "export: %s", mr_err_words(err)) : MR_OK;
}

/* ---- the other formats ----------------------------------------------------------------------- */

static int import_npy(struct mr_str bytes, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e)
{
    (void)o;
    return mr_npy_import(bytes, a, e);
}

static int export_npy(const struct mr_value *v, const struct mr_format_options *o,
    struct mr_sink sink, struct mr_error *e)
{
    (void)o;
    return mr_npy_export(&v->tensor, sink, e);
}

static int import_idx(struct mr_str bytes, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e)
{
    (void)o;
    return mr_idx_import(bytes, a, e);
}

static int export_idx(const struct mr_value *v, const struct mr_format_options *o,
    struct mr_sink sink, struct mr_error *e)
{
    (void)o;
    return mr_idx_export(&v->tensor, sink, e);
}

/* Sets `*out` to the bytes of a value that is a PNG picture already. False: the value is no PNG
 * picture. */
static bool png_bytes(const struct mr_value *v, struct mr_str *out)
{
    static const char signature[] = "\x89PNG\r\n\x1a\n";
    *out = mr_str_of(v->data, v->data_bytes);
    if (v->kind != MR_VALUE_BYTES && !(v->kind == MR_VALUE_PACK && pack_bytes(v, false, out)))
        return false;
    return out->n >= sizeof signature - 1 && !memcmp(out->p, signature, sizeof signature - 1);
}

static int export_png(const struct mr_value *v, const struct mr_format_options *o,
    struct mr_sink sink, struct mr_error *e)
{
    struct mr_str bytes;
    if (png_bytes(v, &bytes)) return export_raw(v, o, sink, e);
    return mr_png_export(&v->tensor, o, sink, e);
}

/* ---- which values a format can hold ---------------------------------------------------------- */

static bool holds_any(const struct mr_value *v)
{
    return v->kind != MR_VALUE_NONE;
}

static bool holds_tensor(const struct mr_value *v)
{
    return v->kind == MR_VALUE_TENSOR;
}

static bool holds_idx(const struct mr_value *v)
{
    if (v->kind != MR_VALUE_TENSOR) return false;
    enum mr_dtype t = v->tensor.dtype;
    return t == MR_DTYPE_U8 || t == MR_DTYPE_I8 || t == MR_DTYPE_I16 || t == MR_DTYPE_I32 ||
           t == MR_DTYPE_F32 || t == MR_DTYPE_F64;
}

static bool holds_json(const struct mr_value *v)
{
    return v->kind != MR_VALUE_NONE && v->kind != MR_VALUE_MODEL;
}

static bool holds_csv(const struct mr_value *v)
{
    bool lines = v->kind == MR_VALUE_TENSOR && (v->tensor.ndim == 1 || v->tensor.ndim == 2);
    return lines || v->kind == MR_VALUE_TABLE;
}

static bool holds_raw(const struct mr_value *v)
{
    struct mr_str bytes;
    return v->kind == MR_VALUE_TENSOR || v->kind == MR_VALUE_BYTES || pack_bytes(v, false, &bytes);
}

static bool holds_text(const struct mr_value *v)
{
    struct mr_str text;
    return pack_bytes(v, true, &text);
}

static bool holds_png(const struct mr_value *v)
{
    const struct mr_tensor *t = &v->tensor;
    struct mr_str bytes;
    if (png_bytes(v, &bytes)) return true;
    return v->kind == MR_VALUE_TENSOR && (t->ndim == 2 || (t->ndim == 3 && t->shape[2] == 3));
}

/* ---- the table ------------------------------------------------------------------------------- */

struct format_row {
    const char *name;
    const char *mime;
    const char *extension;
    bool (*holds)(const struct mr_value *v);
    int (*import)(struct mr_str bytes, const struct mr_format_options *o,
        const struct mr_value_alloc *a, struct mr_error *e);
    int (*export)(const struct mr_value *v, const struct mr_format_options *o, struct mr_sink sink,
        struct mr_error *e);
    /* The values that the format can hold, for error texts. */
    const char *takes;
};

/* clang-format off */
static const struct format_row rows[MR_FORMATS_COUNT] = {
    [MR_FORMAT_VALUE] = {"value", "application/vnd.millrace.value", ".mrv", holds_any, import_value, export_value, "any value"},
    [MR_FORMAT_NPY] = {"npy", "application/x-npy", ".npy", holds_tensor, import_npy, export_npy, "tensors"},
    [MR_FORMAT_IDX] = {"idx", "application/x-idx", ".idx", holds_idx, import_idx, export_idx, "tensors of u8, i8, i16, i32, f32 and f64"},
    [MR_FORMAT_JSON] = {"json", "application/json", ".json", holds_json, mr_json_import, mr_json_export, "anything but models"},
    [MR_FORMAT_CSV] = {"csv", "text/csv", ".csv", holds_csv, mr_csv_import, mr_csv_export, "tables, and tensors of one or two axes"},
    [MR_FORMAT_RAW] = {"raw", "application/octet-stream", ".bin", holds_raw, import_raw, export_raw, "bytes, texts and tensors"},
    [MR_FORMAT_TEXT] = {"text", "text/plain", ".txt", holds_text, import_text, export_raw, "texts"},
    [MR_FORMAT_PNG] = {"png", "image/png", ".png", holds_png, NULL, export_png, "tensors [height,width] and [height,width,3], and the bytes of a PNG"},
};
/* clang-format on */

const char *mr_format_name(enum mr_format f)
{
    return rows[f].name;
}

const char *mr_format_mime(enum mr_format f)
{
    return rows[f].mime;
}

const char *mr_format_upload_mime(enum mr_format f)
{
    return f == MR_FORMAT_TEXT ? MR_TEXT_UPLOAD_MIME : rows[f].mime;
}

const char *mr_format_extension(enum mr_format f)
{
    return rows[f].extension;
}

bool mr_format_can_import(enum mr_format f)
{
    return rows[f].import != NULL;
}

bool mr_format_can_export(enum mr_format f, const struct mr_value *v)
{
    return rows[f].holds(v);
}

enum mr_format mr_format_default(const struct mr_value *v)
{
    struct mr_str bytes;
    if (png_bytes(v, &bytes)) return MR_FORMAT_PNG;
    switch (v->kind) {
    case MR_VALUE_TENSOR: return MR_FORMAT_NPY;
    case MR_VALUE_TABLE: return MR_FORMAT_CSV;
    case MR_VALUE_BYTES: return MR_FORMAT_RAW;
    case MR_VALUE_PACK:
    case MR_VALUE_COLLECTION: return MR_FORMAT_JSON;
    case MR_VALUE_MODEL:
    case MR_VALUE_NONE: break;
    }
    return MR_FORMAT_VALUE;
}

int mr_format_import(enum mr_format f, struct mr_str bytes, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e)
{
    if (!rows[f].import)
        return mr_fail(e, MR_EMEDIA, "%s can be written, but not read", rows[f].name);
    return rows[f].import(bytes, o, a, e);
}

int mr_format_export(const struct mr_value *v, enum mr_format f, const struct mr_format_options *o,
    struct mr_sink sink, struct mr_error *e)
{
    if (!rows[f].holds(v)) {
        char summary[MR_VALUE_SUMMARY_MAX];
        mr_value_summary(v, summary);
        return mr_fail(e, MR_EACCEPT, "%s holds %s, not %s", rows[f].name, rows[f].takes, summary);
    }
    return rows[f].export(v, o, sink, e);
}

static int buf_write(void *ctx, const void *p, size_t n)
{
    struct mr_buf *b = ctx;
    mr_buf_add(b, p, n);
    return mr_buf_status(b);
}

struct mr_sink mr_sink_to_buf(struct mr_buf *b)
{
    return (struct mr_sink){buf_write, b};
}
