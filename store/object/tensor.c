/* Properties of element types, and operations on views of tensors. */
#include "store/object/tensor.h"

#include "base/assert.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct dtype_row {
    const char *name;
    const char *alias; /* NumPy's name of the type */
    unsigned char bytes;
    bool is_float;
    bool is_integer;
    bool is_signed;
};

/* clang-format off */
static const struct dtype_row dtypes[MR_DTYPES_COUNT] = {
    [MR_DTYPE_NONE] = {"none", "none", 0, false, false, false},
    [MR_DTYPE_BOOL] = {"bool", "bool_", 1, false, false, false},
    [MR_DTYPE_I8] = {"i8", "int8", 1, false, true, true},
    [MR_DTYPE_I16] = {"i16", "int16", 2, false, true, true},
    [MR_DTYPE_I32] = {"i32", "int32", 4, false, true, true},
    [MR_DTYPE_I64] = {"i64", "int64", 8, false, true, true},
    [MR_DTYPE_U8] = {"u8", "uint8", 1, false, true, false},
    [MR_DTYPE_U16] = {"u16", "uint16", 2, false, true, false},
    [MR_DTYPE_U32] = {"u32", "uint32", 4, false, true, false},
    [MR_DTYPE_U64] = {"u64", "uint64", 8, false, true, false},
    [MR_DTYPE_F16] = {"f16", "float16", 2, true, false, true},
    [MR_DTYPE_F32] = {"f32", "float32", 4, true, false, true},
    [MR_DTYPE_F64] = {"f64", "float64", 8, true, false, true},
};
/* clang-format on */

size_t mr_dtype_bytes(enum mr_dtype t)
{
    mr_assert((unsigned)t < MR_DTYPES_COUNT);
    return dtypes[t].bytes;
}

const char *mr_dtype_name(enum mr_dtype t)
{
    mr_assert((unsigned)t < MR_DTYPES_COUNT);
    return dtypes[t].name;
}

int mr_dtype_parse(struct mr_str name, enum mr_dtype *out)
{
    for (unsigned i = MR_DTYPE_BOOL; i < MR_DTYPES_COUNT; i++) {
        if (!mr_str_eq(name, mr_str(dtypes[i].name)) && !mr_str_eq(name, mr_str(dtypes[i].alias)))
            continue;
        *out = (enum mr_dtype)i;
        return MR_OK;
    }
    return MR_EINVAL;
}

bool mr_dtype_is_valid(unsigned v)
{
    return v > MR_DTYPE_NONE && v < MR_DTYPES_COUNT;
}

bool mr_dtype_is_float(enum mr_dtype t)
{
    return dtypes[t].is_float;
}

bool mr_dtype_is_integer(enum mr_dtype t)
{
    return dtypes[t].is_integer;
}

bool mr_dtype_is_signed(enum mr_dtype t)
{
    return dtypes[t].is_signed;
}

void mr_tensor_strides(
    enum mr_dtype dtype, unsigned ndim, const uint64_t *shape, int64_t *strides_out)
{
    mr_assert(ndim <= MR_TENSOR_DIMS_MAX);
    int64_t stride = (int64_t)mr_dtype_bytes(dtype);
    for (unsigned axis = ndim; axis-- > 0;) {
        strides_out[axis] = stride;
        stride *= (int64_t)MR_MAX(shape[axis], (uint64_t)1);
    }
}

void mr_tensor_init(struct mr_tensor *t, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape,
    const void *data)
{
    mr_assert(ndim <= MR_TENSOR_DIMS_MAX);
    *t = (struct mr_tensor){.dtype = dtype, .ndim = ndim, .data = data};
    if (ndim) memcpy(t->shape, shape, ndim * sizeof *shape);
    mr_tensor_strides(dtype, ndim, shape, t->strides);
}

int mr_tensor_shape_check(enum mr_dtype dtype, unsigned ndim, const uint64_t *shape,
    uint64_t *elements, uint64_t *bytes, struct mr_error *e)
{
    if (!mr_dtype_is_valid((unsigned)dtype))
        return mr_fail(e, MR_EINVAL, "a tensor needs an element type, not number %u", dtype);
    if (ndim > MR_TENSOR_DIMS_MAX)
        return mr_fail(e, MR_EINVAL, "a tensor of %u axes; at most %d", ndim, MR_TENSOR_DIMS_MAX);
    uint64_t room = MR_OBJECT_BYTES_MAX / mr_dtype_bytes(dtype);
    uint64_t product = 1;
    bool empty = false;
    for (unsigned axis = 0; axis < ndim; axis++) {
        empty |= shape[axis] == 0;
        uint64_t length = MR_MAX(shape[axis], (uint64_t)1);
        if (length > room / product)
            return mr_fail(e, MR_ELIMIT,
                "a tensor too large: axis %u of %" PRIu64 " takes it over the %" PRIu64
                " bytes an object may have",
                axis, shape[axis], MR_OBJECT_BYTES_MAX);
        product *= length;
    }
    if (empty) product = 0;
    if (elements) *elements = product;
    if (bytes) *bytes = product * mr_dtype_bytes(dtype);
    return MR_OK;
}

uint64_t mr_tensor_elements(const struct mr_tensor *t)
{
    uint64_t n = 1;
    for (unsigned axis = 0; axis < t->ndim; axis++)
        n *= t->shape[axis];
    return n;
}

uint64_t mr_tensor_data_bytes(const struct mr_tensor *t)
{
    return mr_tensor_elements(t) * mr_dtype_bytes(t->dtype);
}

bool mr_tensor_is_contiguous(const struct mr_tensor *t)
{
    if (mr_tensor_elements(t) == 0) return true;
    int64_t stride = (int64_t)mr_dtype_bytes(t->dtype);
    for (unsigned axis = t->ndim; axis-- > 0;) {
        /* With one item along this axis, its stride is never used. */
        if (t->shape[axis] == 1) continue;
        if (t->strides[axis] != stride) return false;
        stride *= (int64_t)t->shape[axis];
    }
    return true;
}

bool mr_tensor_same_shape(const struct mr_tensor *a, const struct mr_tensor *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, a->ndim * sizeof a->shape[0]) == 0;
}

struct mr_tensor mr_tensor_row(const struct mr_tensor *t, uint64_t i)
{
    mr_assert(t->ndim > 0);
    mr_assert(i < t->shape[0]);
    struct mr_tensor row = {.dtype = t->dtype, .ndim = t->ndim - 1};
    memcpy(row.shape, t->shape + 1, row.ndim * sizeof row.shape[0]);
    memcpy(row.strides, t->strides + 1, row.ndim * sizeof row.strides[0]);
    row.data = (const unsigned char *)t->data + (int64_t)i * t->strides[0];
    return row;
}

const void *mr_tensor_at(const struct mr_tensor *t, const uint64_t *index)
{
    int64_t offset = 0;
    for (unsigned axis = 0; axis < t->ndim; axis++) {
        mr_assert(index[axis] < t->shape[axis]);
        offset += (int64_t)index[axis] * t->strides[axis];
    }
    return (const unsigned char *)t->data + offset;
}

/* Copies `n` elements of one type. The elements of `in` are `stride` bytes apart. The elements of
 * `out` are contiguous. */
#define COPY_LINE(type)                                                                            \
    static void copy_line_##type(                                                                  \
        unsigned char *out, const unsigned char *in, uint64_t n, int64_t stride)                   \
    {                                                                                              \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            type v;                                                                                \
            memcpy(&v, in + (int64_t)i * stride, sizeof v);                                        \
            memcpy(out + i * sizeof v, &v, sizeof v);                                              \
        }                                                                                          \
    }
COPY_LINE(uint8_t)
COPY_LINE(uint16_t)
COPY_LINE(uint32_t)
COPY_LINE(uint64_t)

static void copy_line(
    unsigned char *out, const unsigned char *in, uint64_t n, int64_t stride, size_t width)
{
    if (stride == (int64_t)width)
        memcpy(out, in, n * width);
    else if (width == 1)
        copy_line_uint8_t(out, in, n, stride);
    else if (width == 2)
        copy_line_uint16_t(out, in, n, stride);
    else if (width == 4)
        copy_line_uint32_t(out, in, n, stride);
    else
        copy_line_uint64_t(out, in, n, stride);
}

/* Side of a tile in elements. A line of a tile fills at least one cache line. */
#define TILE_MAX 64

/* Two axes of a copy. The columns run along the last axis, along which the output is contiguous.
 * The rows run along the axis on which the input's elements are closest. */
struct plane {
    uint64_t rows;
    uint64_t columns;
    int64_t in_row;
    int64_t in_column;
    int64_t out_row;
    size_t width;
};

/* Copies a tile of a transposed matrix through a buffer. Input and output are accessed in whole
 * cache lines. Rows that are a power of two apart do not evict each other from the cache. */
static void copy_tile(const struct plane *p, const unsigned char *in, unsigned char *out,
    uint64_t rows, uint64_t columns)
{
    unsigned char tile[TILE_MAX * TILE_MAX * 8];
    size_t line = rows * p->width;
    for (uint64_t j = 0; j < columns; j++)
        memcpy(tile + j * line, in + (int64_t)j * p->in_column, line);
    for (uint64_t i = 0; i < rows; i++)
        copy_line(
            out + (int64_t)i * p->out_row, tile + i * p->width, columns, (int64_t)line, p->width);
}

static void copy_tiles(const struct plane *p, const unsigned char *in, unsigned char *out)
{
    uint64_t side = TILE_MAX;
    for (uint64_t i = 0; i < p->rows; i += side) {
        uint64_t rows = MR_MIN(side, p->rows - i);
        for (uint64_t j = 0; j < p->columns; j += side)
            copy_tile(p, in + i * p->width + (int64_t)j * p->in_column,
                out + (int64_t)i * p->out_row + j * p->width, rows, MR_MIN(side, p->columns - j));
    }
}

static void copy_plane(const struct plane *p, const unsigned char *in, unsigned char *out)
{
    if (p->in_row == (int64_t)p->width && p->in_column != p->in_row) {
        copy_tiles(p, in, out);
        return;
    }
    for (uint64_t i = 0; i < p->rows; i++)
        copy_line(out + (int64_t)i * p->out_row, in + (int64_t)i * p->in_row, p->columns,
            p->in_column, p->width);
}

/* Returns the axis along which the input's elements are closest, among all axes but the last. */
static unsigned closest_axis(const struct mr_tensor *t)
{
    unsigned best = t->ndim - 2;
    for (unsigned axis = 0; axis + 1 < t->ndim; axis++)
        if (t->shape[axis] > 1 &&
            (t->shape[best] == 1 || llabs(t->strides[axis]) < llabs(t->strides[best])))
            best = axis;
    return best;
}

/* Copies the tensor as planes of the last axis and `row_axis`; the indices of the other axes count
 * like an odometer. */
static void copy_planes(const struct mr_tensor *t, unsigned row_axis, unsigned char *out)
{
    int64_t out_strides[MR_TENSOR_DIMS_MAX];
    mr_tensor_strides(t->dtype, t->ndim, t->shape, out_strides);
    unsigned last = t->ndim - 1;
    struct plane p = {.rows = t->shape[row_axis],
        .columns = t->shape[last],
        .in_row = t->strides[row_axis],
        .in_column = t->strides[last],
        .out_row = out_strides[row_axis],
        .width = mr_dtype_bytes(t->dtype)};
    uint64_t planes = mr_tensor_elements(t) / (p.rows * p.columns);
    uint64_t index[MR_TENSOR_DIMS_MAX] = {0};
    const unsigned char *in = t->data;
    for (uint64_t i = 0; i < planes; i++) {
        copy_plane(&p, in, out);
        for (unsigned axis = last; axis-- > 0;) {
            if (axis == row_axis) continue;
            in += t->strides[axis];
            out += out_strides[axis];
            if (++index[axis] < t->shape[axis]) break;
            in -= (int64_t)t->shape[axis] * t->strides[axis];
            out -= (int64_t)t->shape[axis] * out_strides[axis];
            index[axis] = 0;
        }
    }
}

void mr_tensor_copy(const struct mr_tensor *t, void *out)
{
    uint64_t bytes = mr_tensor_data_bytes(t);
    if (!bytes) return;
    if (mr_tensor_is_contiguous(t))
        memcpy(out, t->data, bytes);
    else if (t->ndim == 1)
        copy_line(out, t->data, t->shape[0], t->strides[0], mr_dtype_bytes(t->dtype));
    else
        copy_planes(t, closest_axis(t), out);
}

#define GET(type)                                                                                  \
    do {                                                                                           \
        type v;                                                                                    \
        memcpy(&v, element, sizeof v);                                                             \
        return (double)v;                                                                          \
    } while (0)

double mr_dtype_get_f64(enum mr_dtype t, const void *element)
{
    switch (t) {
    case MR_DTYPE_NONE: break;
    case MR_DTYPE_BOOL: return *(const uint8_t *)element ? 1 : 0;
    case MR_DTYPE_I8: GET(int8_t);
    case MR_DTYPE_I16: GET(int16_t);
    case MR_DTYPE_I32: GET(int32_t);
    case MR_DTYPE_I64: GET(int64_t);
    case MR_DTYPE_U8: GET(uint8_t);
    case MR_DTYPE_U16: GET(uint16_t);
    case MR_DTYPE_U32: GET(uint32_t);
    case MR_DTYPE_U64: GET(uint64_t);
    case MR_DTYPE_F16: {
        uint16_t h = 0;
        memcpy(&h, element, sizeof h);
        return (double)mr_f16_to_f32(h);
    }
    case MR_DTYPE_F32: GET(float);
    case MR_DTYPE_F64: GET(double);
    }
    return 0;
}

void mr_tensor_text(
    enum mr_dtype dtype, unsigned ndim, const uint64_t *shape, char out[MR_TENSOR_TEXT_MAX])
{
    mr_assert(ndim <= MR_TENSOR_DIMS_MAX);
    size_t n = (size_t)snprintf(out, MR_TENSOR_TEXT_MAX, "%s[", mr_dtype_name(dtype));
    for (unsigned axis = 0; axis < ndim; axis++)
        n += (size_t)snprintf(
            out + n, MR_TENSOR_TEXT_MAX - n, "%s%" PRIu64, axis ? "," : "", shape[axis]);
    (void)snprintf(out + n, MR_TENSOR_TEXT_MAX - n, "]");
}

static_assert(8 + MR_TENSOR_DIMS_MAX * 21 < MR_TENSOR_TEXT_MAX, "any shape fits its text");

float mr_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = (h >> 10) & 0x1fu;
    uint32_t fraction = h & 0x3ffu;
    uint32_t bits = sign;
    if (exponent == 31) {
        bits |= 0x7f800000u | fraction << 13;
    } else if (exponent) {
        bits |= (exponent + 112) << 23 | fraction << 13;
    } else if (fraction) { /* a subnormal number, fraction × 2^-24, which is exact in binary32 */
        float f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    float f = 0;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Rounds 1.fraction × 2^exponent, where `fraction` has `fraction_bits` bits, and returns the
 * nearest binary16. Converts from binary32 and from binary64. */
static uint16_t round_f16(
    uint16_t sign, int exponent, uint64_t fraction, unsigned fraction_bits, bool is_zero)
{
    if (is_zero || exponent < -25) return sign;
    if (exponent > 15) return sign | 0x7c00u;
    uint64_t whole = fraction | (uint64_t)1 << fraction_bits;
    unsigned drop = fraction_bits - 10;
    int field = exponent + 15;
    /* A subnormal number: the implicit leading bit moves into the fraction. */
    if (field < 1) {
        drop += (unsigned)(1 - field);
        field = 0;
    }
    uint64_t kept = whole >> drop;
    uint64_t rest = whole & (((uint64_t)1 << drop) - 1);
    uint64_t half = (uint64_t)1 << (drop - 1);
    if (rest > half || (rest == half && (kept & 1))) kept++;
    /* The implicit leading bit is removed. A carry out of the fraction increments the exponent. */
    if (field) kept -= 1u << 10;
    return (uint16_t)(sign | (((unsigned)field << 10) + (unsigned)kept));
}

uint16_t mr_f16_from_f32(float f)
{
    uint32_t bits = 0;
    memcpy(&bits, &f, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    unsigned field = bits >> 23 & 0xffu;
    uint32_t fraction = bits & 0x7fffffu;
    if (field == 255) return sign | 0x7c00u | (fraction ? 0x200u | (uint16_t)(fraction >> 13) : 0u);
    return round_f16(sign, (int)field - 127, fraction, 23, field == 0);
}

uint16_t mr_f16_from_f64(double d)
{
    uint64_t bits = 0;
    memcpy(&bits, &d, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000u);
    unsigned field = bits >> 52 & 0x7ffu;
    uint64_t fraction = bits & 0xfffffffffffffu;
    if (field == 2047)
        return sign | 0x7c00u | (fraction ? 0x200u | (uint16_t)(fraction >> 42) : 0u);
    return round_f16(sign, (int)field - 1023, fraction, 52, field == 0);
}
