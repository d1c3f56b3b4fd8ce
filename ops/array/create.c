/* Operators that create arrays from constants, numbers, random streams and files: array.full,
 * zeros, arange, random, from_list, from_npy, from_idx. */
#include "ops/array/array.h"

#include "base/alloc.h"
#include "base/unconst.h"
#include "nn/model/npz_zip.h"
#include "ops/file.h"
#include "ops/kernel/random.h"
#include "store/object/format/idx.h"
#include "store/object/format/npy.h"
#include "store/object/gzip.h"

#include <inttypes.h>
#include <math.h>

#define NAME_BYTES_MAX 256 /* the longest name of an array in an archive */
#define HEADER_BYTES 65536 /* bytes that are read first; no header that is accepted is longer */

/* ---- constants and ranges ---- */

static int fill(struct mr_op_call *call, enum mr_dtype t, const struct mr_tensor *value)
{
    unsigned ndim = 0;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    int err = mr_array_shape(call, &call->args[0], "shape", &ndim, shape);
    if (err) return err;
    void *data = call->does->return_tensor(call, t, ndim, shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, t, ndim, shape, data);
    uint64_t made = mr_tensor_elements(&out);
    unsigned wanted = ndim;
    struct mr_tensor from = *value;
    struct mr_tensor *both[2] = {&from, &out};
    err = mr_array_broadcast(call, both, 2, &ndim, shape);
    if (err) return err;
    struct mr_tensor whole;
    mr_tensor_init(&whole, t, ndim, shape, data);
    if (mr_tensor_elements(&whole) != made || ndim != wanted)
        return call->does->fail(call, MR_EINVAL, "argument \"value\" is larger than the shape");
    return mr_array_cast(call, &from, &out);
}

static int refuse_number(
    struct mr_op_call *call, const char *name, enum mr_dtype from, const char *p, enum mr_dtype t)
{
    struct mr_buf number;
    mr_buf_init(&number, 64);
    int64_t v = 0;
    char *cells[2] = {mr_unconst(p), (char *)&v};
    if (mr_dtype_is_float(from))
        mr_buf_printf(&number, "%.17g", mr_dtype_get_f64(from, p));
    else
        mr_cast_kernel(from, MR_DTYPE_I64)(cells, 1, (const ptrdiff_t[2]){0, 0});
    if (!number.n)
        mr_buf_printf(&number, from == MR_DTYPE_U64 ? "%" PRIu64 : "%" PRId64, (uint64_t)v);
    int err = call->does->fail(call, MR_ERANGE, "argument \"%s\": %.*s does not fit %s", name,
        MR_STR_ARG(mr_buf_str(&number)), mr_dtype_name(t));
    mr_buf_fini(&number);
    return err;
}

/* Reads numbers into `x`, and sets `*t` to the type to which the caller casts them: the type that
 * "dtype" names, or else the numbers' own type. If "dtype" names an integer type, it must have room
 * for each number written in the arguments. A tensor is cast as by array.astype, without this
 * check. */
static int numbers_as(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    const struct mr_arg *dtype, struct mr_tensor *x, enum mr_dtype *t)
{
    bool is_own = dtype->type == MR_ARG_NIL;
    int err =
        is_own ? mr_array_tensor(call, arg, name, x) : mr_array_tensor_exact(call, arg, name, x);
    if (!err) *t = x->dtype;
    if (err || is_own) return err;
    err = mr_array_dtype(call, dtype, "dtype", t);
    if (err || arg->type == MR_ARG_TENSOR || !mr_dtype_is_integer(*t)) return err;
    uint64_t n = mr_tensor_elements(x), width = mr_dtype_bytes(x->dtype);
    for (uint64_t i = 0; i < n; i++) { /* `x` is contiguous, in memory of the call */
        const char *p = (const char *)x->data + i * width;
        if (!mr_array_number_fits(x->dtype, p, *t))
            return refuse_number(call, name, x->dtype, p, *t);
    }
    return MR_OK;
}

static int run_full(struct mr_op_call *call)
{
    struct mr_tensor value;
    enum mr_dtype t = MR_DTYPE_NONE;
    const struct mr_arg *dtype = &call->args[2];
    int err = numbers_as(call, &call->args[1], "value", dtype, &value, &t);
    return err ? err : fill(call, t, &value);
}

static int run_zeros(struct mr_op_call *call)
{
    static const int64_t zero = 0;
    struct mr_tensor value;
    mr_tensor_init(&value, MR_DTYPE_I64, 0, NULL, &zero);
    enum mr_dtype t = MR_DTYPE_NONE;
    int err = mr_array_dtype(call, &call->args[1], "dtype", &t);
    return err ? err : fill(call, t, &value);
}

static int arange_integers(
    struct mr_op_call *call, enum mr_dtype t, int64_t start, int64_t stop, int64_t step)
{
    uint64_t distance =
        step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = step > 0 ? (uint64_t)step : (uint64_t)0 - (uint64_t)step;
    bool empty = step > 0 ? stop <= start : stop >= start;
    uint64_t n = empty ? 0 : (distance - 1) / stride + 1;
    void *data = call->does->return_tensor(call, t, 1, &n);
    if (!data) return MR_ELIMIT;
    int64_t block[512];
    mr_kernel cast = mr_cast_kernel(MR_DTYPE_I64, t);
    for (uint64_t i = 0; i < n; i += MR_ARRAY_LEN(block)) {
        uint64_t m = MR_MIN(n - i, (uint64_t)MR_ARRAY_LEN(block));
        for (uint64_t k = 0; k < m; k++)
            block[k] = (int64_t)((uint64_t)start + (i + k) * (uint64_t)step);
        char *io[2] = {(char *)block, (char *)data + i * mr_dtype_bytes(t)};
        const ptrdiff_t steps[2] = {8, (ptrdiff_t)mr_dtype_bytes(t)};
        cast(io, (size_t)m, steps);
    }
    return MR_OK;
}

static int arange_floats(
    struct mr_op_call *call, enum mr_dtype t, double start, double stop, double step)
{
    double length = ceil((stop - start) / step);
    if (isnan(length) || length > 1e15)
        return call->does->fail(
            call, MR_ELIMIT, "from %g to %g by %g are too many", start, stop, step);
    uint64_t n = length > 0 ? (uint64_t)length : 0;
    void *data = call->does->return_tensor(call, t, 1, &n);
    if (!data) return MR_ELIMIT;
    double delta = (start + step) - start; /* computed in the way in which NumPy computes steps */
    double block[512];
    mr_kernel cast = mr_cast_kernel(MR_DTYPE_F64, t);
    for (uint64_t i = 0; i < n; i += MR_ARRAY_LEN(block)) {
        uint64_t m = MR_MIN(n - i, (uint64_t)MR_ARRAY_LEN(block));
        for (uint64_t k = 0; k < m; k++)
            block[k] = start + (double)(i + k) * delta;
        char *io[2] = {(char *)block, (char *)data + i * mr_dtype_bytes(t)};
        const ptrdiff_t steps[2] = {8, (ptrdiff_t)mr_dtype_bytes(t)};
        cast(io, (size_t)m, steps);
    }
    return MR_OK;
}

static int run_arange(struct mr_op_call *call)
{
    static const struct mr_arg zero = {.type = MR_ARG_INT};
    const struct mr_arg *start = &call->args[0];
    const struct mr_arg *stop = &call->args[1];
    const struct mr_arg *step = &call->args[2];
    if (stop->type == MR_ARG_NIL) {
        stop = start;
        start = &zero;
    }
    bool floats =
        start->type == MR_ARG_FLOAT || stop->type == MR_ARG_FLOAT || step->type == MR_ARG_FLOAT;
    enum mr_dtype t = floats ? MR_DTYPE_F64 : MR_DTYPE_I64;
    if (call->args[3].type != MR_ARG_NIL) {
        int err = mr_array_dtype(call, &call->args[3], "dtype", &t);
        if (err) return err;
    }
    if (mr_arg_f64(step) == 0)
        return call->does->fail(call, MR_EINVAL, "argument \"step\": expected not 0");
    if (!floats &&
        (start->type != MR_ARG_INT || stop->type != MR_ARG_INT || step->type != MR_ARG_INT))
        return call->does->fail(call, MR_ERANGE, "integers above 2^63 - 1 are not counted here");
    return floats ? arange_floats(call, t, mr_arg_f64(start), mr_arg_f64(stop), mr_arg_f64(step))
                  : arange_integers(call, t, start->i, stop->i, step->i);
}

static int run_from_list(struct mr_op_call *call)
{
    struct mr_tensor x;
    enum mr_dtype t = MR_DTYPE_NONE;
    int err = numbers_as(call, &call->args[0], "items", &call->args[1], &x, &t);
    if (err) return err;
    void *data = call->does->return_tensor(call, t, x.ndim, x.shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, t, x.ndim, x.shape, data);
    return mr_array_cast(call, &x, &out);
}

/* ---- random ---- */

enum distribution { UNIFORM, NORMAL, INTEGERS };

struct drawing {
    struct mr_stream stream;
    enum distribution distribution;
    enum mr_dtype t;
    double low;
    double high;
    int64_t first; /* the smallest integer that is drawn */
    uint64_t range;
};

static void draw(struct drawing *d, void *data, uint64_t from, uint64_t n)
{
    if (d->distribution == UNIFORM && d->t == MR_DTYPE_F32) {
        float *p = (float *)data + from;
        float low = (float)d->low;
        float width = (float)d->high - low;
        for (uint64_t i = 0; i < n; i++)
            p[i] = low + width * mr_stream_f32(&d->stream);
        return;
    }
    _Alignas(8) char block[1024 * 8];
    double *floats = (double *)(void *)block;
    int64_t *integers = (int64_t *)(void *)block;
    bool whole = d->distribution == INTEGERS;
    mr_kernel cast = mr_cast_kernel(whole ? MR_DTYPE_I64 : MR_DTYPE_F64, d->t);
    ptrdiff_t width = (ptrdiff_t)mr_dtype_bytes(d->t);
    for (uint64_t i = 0; i < n; i += 1024) {
        uint64_t m = MR_MIN(n - i, 1024u);
        for (uint64_t k = 0; k < m; k++) {
            if (whole)
                integers[k] = (int64_t)((uint64_t)d->first + mr_stream_upto(&d->stream, d->range));
            else if (d->distribution == NORMAL)
                floats[k] = d->low + d->high * mr_stream_normal(&d->stream);
            else
                floats[k] = d->low + (d->high - d->low) * mr_stream_f64(&d->stream);
        }
        char *io[2] = {block, (char *)data + (from + i) * (uint64_t)width};
        const ptrdiff_t steps[2] = {8, width};
        cast(io, (size_t)m, steps);
    }
}

static int draw_params(struct mr_op_call *call, struct drawing *d)
{
    struct mr_str name = call->args[2].bytes;
    const struct mr_arg *low = &call->args[3];
    const struct mr_arg *high = &call->args[4];
    if (mr_str_eq(name, MR_STR("uniform"))) {
        d->distribution = UNIFORM;
        d->low = mr_arg_f64(low);
        d->high = mr_arg_f64(high);
        if (!isfinite(d->low) || !isfinite(d->high))
            return call->does->fail(call, MR_EINVAL, "\"low\" and \"high\" must be finite");
        return MR_OK;
    }
    if (mr_str_eq(name, MR_STR("normal"))) {
        d->distribution = NORMAL;
        d->low = mr_arg_f64(&call->args[5]);
        d->high = mr_arg_f64(&call->args[6]);
        return d->high >= 0
                   ? MR_OK
                   : call->does->fail(call, MR_EINVAL, "argument \"std\": expected 0 or more");
    }
    if (!mr_str_eq(name, MR_STR("integers")))
        return call->does->fail(call, MR_EINVAL,
            "argument \"distribution\": expected uniform, normal or integers, got \"%.*s\"",
            (int)MR_MIN(name.n, 40u), name.p);
    d->distribution = INTEGERS;
    if (low->type != MR_ARG_INT || high->type != MR_ARG_INT || high->i <= low->i)
        return call->does->fail(
            call, MR_EINVAL, "integers need ints \"low\" < \"high\" (not included)");
    d->first = low->i;
    d->range = (uint64_t)high->i - (uint64_t)low->i - 1;
    return MR_OK;
}

static int stream_params(struct mr_op_call *call, struct drawing *d)
{
    struct mr_str name = call->args[7].bytes;
    bool pcg = mr_str_eq(name, MR_STR("pcg64"));
    if (!pcg && !mr_str_eq(name, MR_STR("philox")))
        return call->does->fail(call, MR_EINVAL,
            "argument \"generator\": expected pcg64 or philox, got \"%.*s\"",
            (int)MR_MIN(name.n, 40u), name.p);
    int64_t seed = 0;
    int64_t stream = 0;
    int err = mr_arg_int(call, &call->args[1], "seed", 0, INT64_MAX, &seed);
    bool numbered = call->args[8].type != MR_ARG_NIL;
    if (!err && numbered) err = mr_arg_int(call, &call->args[8], "stream", 0, INT64_MAX, &stream);
    if (err) return err;
    mr_stream_init(&d->stream, pcg ? MR_GENERATOR_PCG64 : MR_GENERATOR_PHILOX, (uint64_t)seed,
        numbered ? (uint64_t)stream : MR_STREAM_NONE);
    return MR_OK;
}

static int run_random(struct mr_op_call *call)
{
    struct drawing d = {0};
    unsigned ndim = 0;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    int err = mr_array_shape(call, &call->args[0], "shape", &ndim, shape);
    if (!err) err = draw_params(call, &d);
    if (!err) err = stream_params(call, &d);
    d.t = d.distribution == INTEGERS ? MR_DTYPE_I64 : MR_DTYPE_F64;
    if (!err && call->args[9].type != MR_ARG_NIL)
        err = mr_array_dtype(call, &call->args[9], "dtype", &d.t);
    if (err) return err;
    void *data = call->does->return_tensor(call, d.t, ndim, shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, d.t, ndim, shape, data);
    uint64_t n = mr_tensor_elements(&out);
    for (uint64_t i = 0; i < n; i += 1u << 20) {
        draw(&d, data, i, MR_MIN(n - i, (uint64_t)1 << 20));
        if (call->does->is_cancelled(call))
            return call->does->fail(call, MR_ECANCELED, "cancelled");
    }
    return MR_OK;
}

/* ---- files ---- */

static void *result_alloc(void *ctx, uint64_t bytes)
{
    struct mr_op_call *call = ctx;
    return call->does->return_extent(call, bytes);
}

typedef int (*import)(struct mr_str bytes, const struct mr_value_alloc *a, struct mr_error *e);

static int import_bytes(struct mr_op_call *call, struct mr_str bytes, struct mr_str path, import f)
{
    struct mr_value_alloc a = {.alloc = result_alloc, .ctx = call};
    struct mr_error why = {0};
    if (!f(bytes, &a, &why)) return MR_OK;
    return path.n ? call->does->fail(call, why.code, "\"%.*s\": %s", MR_STR_ARG(path), why.text)
                  : call->does->fail(call, why.code, "%s", why.text);
}

#define PACKED_BYTES_MAX ((uint64_t)4 << 30) /* bytes of an archive, and of one array in it */

static bool is_archive(struct mr_str bytes)
{
    return bytes.n > 4 && memcmp(bytes.p, "PK\3\4", 4) == 0;
}

/* Finds the member of an .npz that the argument "name" names ("x" or "x.npy"). Without a name, the
 * archive must have exactly one member. */
static int pick_member(
    struct mr_op_call *call, const struct mr_nn_zip *z, char name[NAME_BYTES_MAX])
{
    struct mr_error why = {0};
    struct mr_str wanted = call->args[1].type == MR_ARG_TEXT ? call->args[1].bytes : MR_STR("");
    struct mr_buf all;
    mr_buf_init(&all, MR_ERROR_TEXT_MAX / 2);
    uint32_t found = UINT32_MAX;
    int err = MR_OK;
    for (uint32_t i = 0; i < z->members && !err; i++) {
        struct mr_str own;
        err = mr_nn_zip_name(z, i, &own, &why);
        if (err) break;
        bool is_npy = own.n > 4 && memcmp(own.p + own.n - 4, ".npy", 4) == 0;
        struct mr_str stem = mr_str_of(own.p, own.n - (is_npy ? 4 : 0));
        bool is_it = wanted.n ? mr_str_eq(own, wanted) || mr_str_eq(stem, wanted) : z->members == 1;
        mr_buf_printf(&all, "%s%.*s", i ? ", " : "", MR_STR_ARG(stem));
        if (!is_it || own.n >= NAME_BYTES_MAX) continue;
        memcpy(name, own.p, own.n);
        name[own.n] = 0;
        found = i;
    }
    if (err)
        err = call->does->fail(call, err, "%s", why.text);
    else if (found == UINT32_MAX)
        err = call->does->fail(call, MR_ENOENT, "argument \"name\": %s; the archive has %.*s",
            wanted.n ? "there is no such array" : "say which array", MR_STR_ARG(mr_buf_str(&all)));
    mr_buf_fini(&all);
    return err;
}

/* Imports the bytes of an .npy file, or of a member of an .npz archive. */
static int npy_bytes(struct mr_op_call *call, struct mr_str bytes, struct mr_str path)
{
    struct mr_nn_zip z;
    struct mr_error why = {0};
    char name[NAME_BYTES_MAX];
    if (!is_archive(bytes)) return import_bytes(call, bytes, path, mr_npy_import);
    int err = mr_nn_zip_open(bytes, &z, &why);
    if (err) return call->does->fail(call, err, "%s", why.text);
    err = pick_member(call, &z, name);
    if (err) return err;
    MR_AUTO(mr_free_ptr) void *owned = NULL;
    struct mr_str npy;
    err = mr_nn_zip_take(&z, name, PACKED_BYTES_MAX, &owned, &npy, &why);
    return err ? call->does->fail(call, err, "%s", why.text)
               : import_bytes(call, npy, path, mr_npy_import);
}

static int npy_packed(struct mr_op_call *call, const struct mr_op_file *f)
{
    struct mr_buf room;
    struct mr_str all;
    mr_buf_init(&room, PACKED_BYTES_MAX);
    int err = mr_op_file_take_all(call, f, &room, &all);
    if (!err) err = npy_bytes(call, all, f->path);
    mr_buf_fini(&room);
    return err;
}

/* Imports an .npy file. Elements in row-major order are read directly into the result. Elements in
 * column-major order are read into scratch memory and then rearranged. A compressed file or an
 * archive is first read as a whole. */
static int npy_file(struct mr_op_call *call, const struct mr_op_file *f)
{
    struct mr_str head;
    int err = mr_op_file_take(call, f, 0, MR_MIN(f->bytes, (uint64_t)HEADER_BYTES), &head);
    if (err) return err;
    if (mr_gzip_is(head) || is_archive(head)) return npy_packed(call, f);
    struct mr_npy_header h;
    struct mr_error why = {0};
    if (mr_npy_header_read(head, &h, &why))
        return call->does->fail(call, why.code, "\"%.*s\": %s", MR_STR_ARG(f->path), why.text);
    if (f->bytes < h.data_offset || f->bytes - h.data_offset < h.data_bytes)
        return call->does->fail(call, MR_EFORMAT,
            "\"%.*s\": the file is shorter than its header says", MR_STR_ARG(f->path));
    void *data = call->does->return_tensor(call, h.dtype, h.ndim, h.shape);
    if (!data) return MR_ELIMIT;
    void *into = h.fortran ? call->does->scratch(call, MR_MAX(h.data_bytes, 1u)) : data;
    if (!into) return MR_ELIMIT;
    err = mr_op_file_read(call, f, h.data_offset, into, h.data_bytes);
    if (!err) mr_npy_convert(&h, into, data);
    return err;
}

int mr_array_read_idx(struct mr_op_call *call, const struct mr_op_file *f, bool rows)
{
    struct mr_str head;
    int err = mr_op_file_take(call, f, 0, MR_MIN(f->bytes, (uint64_t)256), &head);
    if (err) return err;
    if (mr_idx_is_gzip(head)) {
        struct mr_str all;
        err = mr_op_file_take(call, f, 0, f->bytes, &all);
        return err ? err
                   : import_bytes(call, all, f->path, rows ? mr_idx_import_rows : mr_idx_import);
    }
    struct mr_idx_header h;
    struct mr_error why = {0};
    if (mr_idx_header_read(head, &h, &why))
        return call->does->fail(call, why.code, "\"%.*s\": %s", MR_STR_ARG(f->path), why.text);
    if (f->bytes < h.data_offset || f->bytes - h.data_offset < h.data_bytes)
        return call->does->fail(call, MR_EFORMAT,
            "\"%.*s\": the file is shorter than its header says", MR_STR_ARG(f->path));
    if (rows) mr_idx_header_flatten(&h);
    void *data = call->does->return_tensor(call, h.dtype, h.ndim, h.shape);
    if (!data) return MR_ELIMIT;
    err = mr_op_file_read(call, f, h.data_offset, data, h.data_bytes);
    if (!err) mr_idx_convert(&h, data, data);
    return err;
}

static int from_file(
    struct mr_op_call *call, int (*read)(struct mr_op_call *call, const struct mr_op_file *f))
{
    const struct mr_arg *source = &call->args[0];
    struct mr_op_file file;
    int err = mr_op_file_open(call, source->bytes, &file);
    if (err) return err;
    err = read(call, &file);
    mr_op_file_close(&file);
    return err;
}

static int run_from_npy(struct mr_op_call *call)
{
    if (call->args[0].type != MR_ARG_BYTES) return from_file(call, npy_file);
    struct mr_buf room;
    struct mr_str bytes;
    mr_buf_init(&room, PACKED_BYTES_MAX);
    int err = mr_op_unpack(call, call->args[0].bytes, (struct mr_str){0}, &room, &bytes);
    if (!err) err = npy_bytes(call, bytes, (struct mr_str){0});
    mr_buf_fini(&room);
    return err;
}

static int idx_file(struct mr_op_call *call, const struct mr_op_file *f)
{
    return mr_array_read_idx(call, f, false);
}

static int run_from_idx(struct mr_op_call *call)
{
    const struct mr_arg *source = &call->args[0];
    if (source->type == MR_ARG_BYTES)
        return import_bytes(call, source->bytes, (struct mr_str){0}, mr_idx_import);
    return from_file(call, idx_file);
}

/* ---- descriptors ---- */

#define D MR_OP_DETERMINISTIC
#define SHAPE_PARAM                                                                                \
    {                                                                                              \
        "shape", MR_TAKES_INT | MR_TAKES_LIST, NULL, "Lengths of the axes; [] makes one element."  \
    }
#define DTYPE_PARAM(fallback, doc)                                                                 \
    {                                                                                              \
        "dtype", MR_TAKES_TEXT, fallback, doc                                                      \
    }

static const struct mr_op_param full[] = {
    SHAPE_PARAM,
    {"value", MR_TAKES_ARRAY, NULL, "The value of every element; a tensor is broadcast."},
    DTYPE_PARAM("null", "Element type; null: the type of the value."),
};
static const struct mr_op_param zeros[] = {SHAPE_PARAM, DTYPE_PARAM("\"f64\"", "Element type.")};
static const struct mr_op_param arange[] = {
    {"start", MR_TAKES_REAL, NULL,
        "The first number. Given alone, it is the stop, and the start is 0."},
    {"stop", MR_TAKES_REAL, "null", "The end, not included."},
    {"step", MR_TAKES_REAL, "1", "Difference between neighbours."},
    DTYPE_PARAM("null", "Element type; null: i64, or f64 if a number is a float."),
};
static const struct mr_op_param listed[] = {
    {"items", MR_TAKES_ARRAY, NULL, "A nested list of numbers."},
    DTYPE_PARAM(
        "null", "Element type; null: bool, i64, u64 or f64, the first that holds every number."),
};
static const struct mr_op_param random_params[] = {
    SHAPE_PARAM,
    {"seed", MR_TAKES_INT, NULL, "Seed, at least 0; the same seed gives the same numbers."},
    {"distribution", MR_TAKES_TEXT, "\"uniform\"", "Distribution: uniform, normal or integers."},
    {"low", MR_TAKES_REAL, "0", "Smallest value, for uniform and integers."},
    {"high", MR_TAKES_REAL, "1", "Upper bound, not included, for uniform and integers."},
    {"mean", MR_TAKES_REAL, "0", "Mean of normal."},
    {"std", MR_TAKES_REAL, "1", "Standard deviation of normal."},
    {"generator", MR_TAKES_TEXT, "\"pcg64\"",
        "pcg64 or philox: NumPy's bit generator of that name."},
    {"stream", MR_TAKES_INT, "null", "Number of an independent stream of the seed (spawn_key)."},
    DTYPE_PARAM("null", "Element type; null: f64, or i64 for integers."),
};
#define SOURCE_PARAM                                                                               \
    {                                                                                              \
        "source", MR_TAKES_TEXT | MR_TAKES_BYTES, NULL,                                            \
            "The path of a file below a data root, or the bytes of the file."                      \
    }
static const struct mr_op_param from_source[] = {SOURCE_PARAM};
static const struct mr_op_param from_numpy[] = {
    SOURCE_PARAM,
    {"name", MR_TAKES_NIL | MR_TAKES_TEXT, "null",
        "Name of an array in an .npz file; null: the only array."},
};

const struct mr_op_desc *mr_array_create_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("array.full", D, full, 2000, run_full, "tensor",
            "Makes a tensor filled with one value; a number that does not fit the type is an error."),
        MR_OP_ROW("array.zeros", D, zeros, 2000, run_zeros, "tensor", "Makes a tensor of zeros."),
        MR_OP_ROW("array.arange", D, arange, 2000, run_arange, "tensor [n]",
            "Makes the numbers from start up to, but not including, stop."),
        MR_OP_ROW("array.from_list", D, listed, 2000, run_from_list, "tensor",
            "Makes a tensor from a nested list of numbers; a number that does not fit the type is an error."),
        MR_OP_ROW("array.random", D, random_params, 5000, run_random, "tensor",
            "Draws random numbers; uniform and integers equal NumPy's bit for bit, normal is by "
            "inversion (AS 241) and does not."),
        MR_OP_ROW("array.from_npy", MR_OP_MAY_BLOCK, from_numpy, 1000000, run_from_npy, "tensor",
            "Reads a NumPy file: .npy, plain or gzipped, or an array of an .npz."),
        MR_OP_ROW("array.from_idx", MR_OP_MAY_BLOCK, from_source, 1000000, run_from_idx, "tensor",
            "Reads an IDX file, plain or gzipped, such as those of MNIST."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
