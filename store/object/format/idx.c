/* Reads and writes IDX files, plain and gzipped. */
#include "store/object/format/idx.h"

#include "base/unconst.h"
#include "store/object/format/elements.h"
#include "store/object/value.h"

#include <assert.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

static const struct {
    unsigned char code;
    enum mr_dtype dtype;
} codes[] = {{0x08, MR_DTYPE_U8}, {0x09, MR_DTYPE_I8}, {0x0b, MR_DTYPE_I16}, {0x0c, MR_DTYPE_I32},
    {0x0d, MR_DTYPE_F32}, {0x0e, MR_DTYPE_F64}};

#define HEADER_BYTES_MAX (4 + 4 * MR_TENSOR_DIMS_MAX)

bool mr_idx_is_gzip(struct mr_str bytes)
{
    return bytes.n >= 2 && (unsigned char)bytes.p[0] == 0x1f && (unsigned char)bytes.p[1] == 0x8b;
}

int mr_idx_header_read(struct mr_str bytes, struct mr_idx_header *out, struct mr_error *e)
{
    const unsigned char *p = (const unsigned char *)bytes.p;
    if (bytes.n < 4) return mr_fail(e, MR_ERANGE, "IDX file cut off after %zu bytes", bytes.n);
    if (p[0] || p[1])
        return mr_fail(e, MR_EFORMAT, "not an IDX file: it does not start with two zero bytes");
    struct mr_idx_header h = {.ndim = p[3], .data_offset = 4 + 4 * (uint64_t)p[3]};
    for (size_t i = 0; i < MR_ARRAY_LEN(codes); i++)
        if (codes[i].code == p[2]) h.dtype = codes[i].dtype;
    if (h.dtype == MR_DTYPE_NONE)
        return mr_fail(e, MR_EFORMAT, "IDX file of unknown element type 0x%02x", p[2]);
    if (h.ndim > MR_TENSOR_DIMS_MAX)
        return mr_fail(
            e, MR_EFORMAT, "IDX file of %u axes; at most %d", h.ndim, MR_TENSOR_DIMS_MAX);
    if (bytes.n < h.data_offset)
        return mr_fail(e, MR_ERANGE, "IDX file cut off after %zu bytes, in its header", bytes.n);
    for (unsigned axis = 0; axis < h.ndim; axis++) {
        const unsigned char *q = p + 4 + 4 * axis;
        h.shape[axis] = (uint32_t)q[0] << 24 | (uint32_t)q[1] << 16 | (uint32_t)q[2] << 8 | q[3];
    }
    int err = mr_tensor_shape_check(h.dtype, h.ndim, h.shape, NULL, &h.data_bytes, e);
    if (err) return err;
    *out = h;
    return MR_OK;
}

void mr_idx_convert(const struct mr_idx_header *h, const void *data, void *out)
{
    size_t width = mr_dtype_bytes(h->dtype);
    mr_elements_swap(out, data, h->data_bytes / width, width);
}

void mr_idx_header_flatten(struct mr_idx_header *h)
{
    if (h->ndim < 2) return;
    for (unsigned axis = 2; axis < h->ndim; axis++) {
        bool over = __builtin_mul_overflow(h->shape[1], h->shape[axis], &h->shape[1]);
        /* The product can overflow only in a tensor without elements. */
        if (over) h->shape[1] = 0;
        h->shape[axis] = 0;
    }
    h->ndim = 2;
}

static int new_tensor(const struct mr_idx_header *h, bool rows, const struct mr_value_alloc *a,
    void **data, struct mr_error *e)
{
    struct mr_idx_header as = *h;
    if (rows) mr_idx_header_flatten(&as);
    return mr_tensor_new(a, as.dtype, as.ndim, as.shape, data, e);
}

static int cut_off(const struct mr_idx_header *h, uint64_t there, struct mr_error *e)
{
    return mr_fail(e, MR_EFORMAT,
        "IDX file with %" PRIu64 " bytes of elements; its header says %" PRIu64, there,
        h->data_bytes);
}

static int import_plain(
    struct mr_str bytes, bool rows, const struct mr_value_alloc *a, struct mr_error *e)
{
    struct mr_idx_header h;
    int err = mr_idx_header_read(bytes, &h, e);
    if (err)
        return err == MR_ERANGE ? mr_fail(e, MR_EFORMAT, "IDX file cut off in its header") : err;
    if (bytes.n - h.data_offset != h.data_bytes) return cut_off(&h, bytes.n - h.data_offset, e);
    void *data = NULL;
    err = new_tensor(&h, rows, a, &data, e);
    if (err) return err;
    mr_idx_convert(&h, bytes.p + h.data_offset, data);
    return MR_OK;
}

/* ---- gzip ------------------------------------------------------------------------------------ */

struct inflater {
    z_stream z;
    const unsigned char *p;
    size_t n; /* bytes of the file that zlib has not received yet */
    bool ended;
};

/* Unpacks until `n` bytes are there or the stream ends; `*got` receives the number of bytes. A gzip
 * file may have several members, which follow each other in the output. */
static int inflate_into(
    struct inflater *f, unsigned char *out, uint64_t n, uint64_t *got, struct mr_error *e)
{
    *got = 0;
    while (*got < n && !f->ended) {
        if (!f->z.avail_in) {
            size_t take = MR_MIN(f->n, (size_t)INT_MAX);
            f->z.next_in = mr_unconst(f->p);
            f->z.avail_in = (uInt)take;
            f->p += take;
            f->n -= take;
        }
        uInt room = (uInt)MR_MIN(n - *got, (uint64_t)INT_MAX);
        f->z.next_out = out + *got;
        f->z.avail_out = room;
        int z = inflate(&f->z, Z_NO_FLUSH);
        *got += room - f->z.avail_out;
        bool more = f->z.avail_in || f->n;
        if (z == Z_STREAM_END) {
            f->ended = !more;
            if (more) (void)inflateReset(&f->z);
        } else if (z != Z_OK || (!more && f->z.avail_out)) {
            return mr_fail(e, MR_EFORMAT,
                "gzipped IDX file is damaged after %" PRIu64 " unpacked bytes: %s", *got,
                z == Z_OK || z == Z_BUF_ERROR ? "it is cut off"
                : f->z.msg                    ? f->z.msg
                                              : "not gzip");
        }
    }
    return MR_OK;
}

/* Unpacks the whole file with libdeflate, which is three times as fast as zlib piece by piece. The
 * elements go to `data`. The file's header lands in front of `data`, over the last bytes of the
 * value's header. These bytes of the value's header are saved before and restored after. False:
 * libdeflate failed, or the file does not match its header; zlib will find the reason. */
static bool unpack_whole(struct mr_str packed, const struct mr_idx_header *h, unsigned char *data)
{
    static_assert(sizeof(struct mr_value_header) + 2 * 16 >= HEADER_BYTES_MAX,
        "the header of a value of two axes is longer than that of any file");
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    if (!d) return false;
    unsigned char kept[HEADER_BYTES_MAX];
    unsigned char *out = data - h->data_offset;
    memcpy(kept, out, h->data_offset);
    uint64_t whole = h->data_offset + h->data_bytes;
    uint64_t got = 0;
    bool ok = true;
    for (size_t at = 0; ok && at < packed.n;) { /* each round unpacks one member of the gzip file */
        size_t used = 0;
        size_t made = 0;
        ok = libdeflate_gzip_decompress_ex(d, packed.p + at, packed.n - at, out + got,
                 (size_t)(whole - got), &used, &made) == LIBDEFLATE_SUCCESS;
        at += used;
        got += made;
    }
    libdeflate_free_decompressor(d);
    memcpy(out, kept, h->data_offset);
    return ok && got == whole;
}

/* The most bytes that one packed byte can become. Deflate reaches at most 1032; the limit is a
 * little higher because of the headers. */
#define RATIO_MAX 1040

static int import_inflated(struct inflater *f, struct mr_str packed, bool rows,
    const struct mr_value_alloc *a, struct mr_error *e)
{
    unsigned char header[HEADER_BYTES_MAX];
    uint64_t got = 0;
    struct mr_idx_header h;
    int err = inflate_into(f, header, 4, &got, e);
    if (err) return err;
    if (got == 4 && header[3] <= MR_TENSOR_DIMS_MAX) {
        err = inflate_into(f, header + 4, 4 * (uint64_t)header[3], &got, e);
        if (err) return err;
        got += 4;
    }
    err = mr_idx_header_read(mr_str_of(header, got), &h, e);
    if (err)
        return err == MR_ERANGE ? mr_fail(e, MR_EFORMAT, "IDX file cut off in its header") : err;
    if (h.data_bytes / RATIO_MAX > packed.n) /* this check comes before memory is allocated */
        return mr_fail(e, MR_EFORMAT,
            "IDX file's header says %" PRIu64 " bytes; the %zu packed ones cannot hold them",
            h.data_bytes, packed.n);
    void *data = NULL;
    err = new_tensor(&h, rows, a, &data, e);
    if (err) return err;
    if (unpack_whole(packed, &h, data)) {
        mr_idx_convert(&h, data, data);
        return MR_OK;
    }
    err = inflate_into(f, data, h.data_bytes, &got, e);
    if (err) return err;
    if (got != h.data_bytes) return cut_off(&h, got, e);
    unsigned char beyond = 0;
    err = inflate_into(f, &beyond, 1, &got, e); /* this read also makes zlib check the checksum */
    if (err) return err;
    if (got) return mr_fail(e, MR_EFORMAT, "IDX file with bytes after its elements");
    mr_idx_convert(&h, data, data);
    return MR_OK;
}

static int import(
    struct mr_str bytes, bool rows, const struct mr_value_alloc *a, struct mr_error *e)
{
    if (!mr_idx_is_gzip(bytes)) return import_plain(bytes, rows, a, e);
    struct inflater f = {.p = (const unsigned char *)bytes.p, .n = bytes.n};
    if (inflateInit2(&f.z, MAX_WBITS + 16) != Z_OK)
        return mr_fail(e, MR_EINTERNAL, "zlib does not start");
    int err = import_inflated(&f, bytes, rows, a, e);
    (void)inflateEnd(&f.z);
    return err;
}

int mr_idx_import(struct mr_str bytes, const struct mr_value_alloc *a, struct mr_error *e)
{
    return import(bytes, false, a, e);
}

int mr_idx_import_rows(struct mr_str bytes, const struct mr_value_alloc *a, struct mr_error *e)
{
    return import(bytes, true, a, e);
}

int mr_idx_export(const struct mr_tensor *t, struct mr_sink sink, struct mr_error *e)
{
    unsigned char header[HEADER_BYTES_MAX] = {0};
    for (size_t i = 0; i < MR_ARRAY_LEN(codes); i++)
        if (codes[i].dtype == t->dtype) header[2] = codes[i].code;
    if (!header[2])
        return mr_fail(e, MR_EACCEPT,
            "IDX has no element type for %s; convert to u8, i8, i16, "
            "i32, f32 or f64",
            mr_dtype_name(t->dtype));
    header[3] = (unsigned char)t->ndim;
    for (unsigned axis = 0; axis < t->ndim; axis++) {
        uint64_t length = t->shape[axis];
        if (length > UINT32_MAX)
            return mr_fail(e, MR_EACCEPT, "IDX cannot hold an axis of %" PRIu64, length);
        for (unsigned i = 0; i < 4; i++)
            header[4 + 4 * axis + i] = (unsigned char)(length >> (24 - 8 * i));
    }
    int err = sink.write(sink.ctx, header, 4 + 4 * (size_t)t->ndim);
    if (!err) err = mr_elements_write(t, true, sink);
    return err ? mr_fail(e, err, "IDX export: %s", mr_err_words(err)) : MR_OK;
}
