/* Converts runs of elements (byte order, bool), and writes the elements of a tensor. */
#include "store/object/format/elements.h"

#include "base/alloc.h"
#include "base/limits.h"

static void swap16(unsigned char *to, const unsigned char *from, uint64_t n)
{
    uint64_t i = 0;
    for (; i + 4 <= n; i += 4) { /* handles four elements in one 64-bit word */
        uint64_t v = 0;
        memcpy(&v, from + 2 * i, sizeof v);
        v = (v & 0x00ff00ff00ff00ffu) << 8 | (v >> 8 & 0x00ff00ff00ff00ffu);
        memcpy(to + 2 * i, &v, sizeof v);
    }
    for (; i < n; i++) {
        uint16_t v = 0;
        memcpy(&v, from + 2 * i, sizeof v);
        v = __builtin_bswap16(v);
        memcpy(to + 2 * i, &v, sizeof v);
    }
}

static void swap32(unsigned char *to, const unsigned char *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t v = 0;
        memcpy(&v, from + 4 * i, sizeof v);
        v = __builtin_bswap32(v);
        memcpy(to + 4 * i, &v, sizeof v);
    }
}

static void swap64(unsigned char *to, const unsigned char *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t v = 0;
        memcpy(&v, from + 8 * i, sizeof v);
        v = __builtin_bswap64(v);
        memcpy(to + 8 * i, &v, sizeof v);
    }
}

void mr_elements_swap(void *out, const void *in, uint64_t elements, size_t width)
{
    if (width == 2)
        swap16(out, in, elements);
    else if (width == 4)
        swap32(out, in, elements);
    else if (width == 8)
        swap64(out, in, elements);
    else if (out != in && elements)
        memcpy(out, in, elements * width);
}

void mr_elements_to_bool(void *data, uint64_t elements)
{
    uint8_t *p = data;
    for (uint64_t i = 0; i < elements; i++)
        p[i] = p[i] != 0;
}

/* Bytes of a piece, so few that they stay in the second-level cache between the copy and the
 * write. */
#define PIECE_BYTES ((uint64_t)262144)

static int write_piece(
    const struct mr_tensor *piece, bool swapped, void *stage, struct mr_sink sink)
{
    size_t width = mr_dtype_bytes(piece->dtype);
    uint64_t n = mr_tensor_elements(piece);
    if (swapped && mr_tensor_is_contiguous(piece)) {
        mr_elements_swap(stage, piece->data, n, width);
    } else {
        mr_tensor_copy(piece, stage);
        if (swapped) mr_elements_swap(stage, stage, n, width);
    }
    return sink.write(sink.ctx, stage, n * width);
}

/* Writes a tensor in pieces of at most PIECE_BYTES. A piece has as many of the last axes as fit and
 * some items of the axis before them; the indices of the axes before that one count like an
 * odometer. */
static int write_pieces(const struct mr_tensor *t, bool swapped, void *stage, struct mr_sink sink)
{
    unsigned whole = t->ndim; /* axes from this one on lie completely in every piece */
    uint64_t bytes = mr_dtype_bytes(t->dtype);
    while (whole && bytes * t->shape[whole - 1] <= PIECE_BYTES)
        bytes *= t->shape[--whole];
    if (!whole) return write_piece(t, swapped, stage, sink);
    unsigned cut = whole - 1;
    uint64_t step = PIECE_BYTES / bytes;
    struct mr_tensor piece = {.dtype = t->dtype, .ndim = t->ndim - cut};
    memcpy(piece.shape, t->shape + cut, piece.ndim * sizeof piece.shape[0]);
    memcpy(piece.strides, t->strides + cut, piece.ndim * sizeof piece.strides[0]);
    uint64_t index[MR_TENSOR_DIMS_MAX] = {0};
    for (bool more = true; more;) {
        int64_t offset = 0;
        for (unsigned axis = 0; axis < whole; axis++)
            offset += (int64_t)index[axis] * t->strides[axis];
        piece.data = (const unsigned char *)t->data + offset;
        piece.shape[0] = MR_MIN(step, t->shape[cut] - index[cut]);
        int err = write_piece(&piece, swapped, stage, sink);
        if (err) return err;
        index[cut] += piece.shape[0];
        more = index[cut] < t->shape[cut];
        if (!more) index[cut] = 0;
        for (unsigned axis = cut; !more && axis-- > 0;) {
            more = ++index[axis] < t->shape[axis];
            if (!more) index[axis] = 0;
        }
    }
    return MR_OK;
}

int mr_elements_write(const struct mr_tensor *t, bool swapped, struct mr_sink sink)
{
    uint64_t bytes = mr_tensor_data_bytes(t);
    if (!bytes) return MR_OK;
    if (mr_tensor_is_contiguous(t) && (!swapped || mr_dtype_bytes(t->dtype) == 1))
        return sink.write(sink.ctx, t->data, bytes);
    void *stage = mr_alloc(PIECE_BYTES);
    int err = write_pieces(t, swapped, stage, sink);
    mr_release(stage);
    return err;
}
