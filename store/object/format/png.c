/* Writes PNG pictures with libpng's simplified API, which reports errors without setjmp in this
 * code. */
#include "store/object/format/png.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <png.h>

static void find_range(
    const struct mr_tensor *t, const void *elements, uint64_t n, double *low, double *high)
{
    size_t width = mr_dtype_bytes(t->dtype);
    *low = (double)INFINITY;
    *high = -(double)INFINITY;
    for (uint64_t i = 0; i < n; i++) {
        double v = mr_dtype_get_f64(t->dtype, (const unsigned char *)elements + i * width);
        if (!isfinite(v)) continue;
        *low = fmin(*low, v);
        *high = fmax(*high, v);
    }
    if (*low > *high) *low = *high = 0; /* there was no finite element */
}

/* Converts elements to grey levels; NaN becomes black. */
static void scale_levels(const struct mr_tensor *t, const void *elements, uint64_t n,
    const struct mr_format_options *o, unsigned char *out)
{
    double low = 0;
    double high = 1;
    if (o && o->has_range) {
        low = o->low;
        high = o->high;
    } else if (t->dtype != MR_DTYPE_BOOL) {
        find_range(t, elements, n, &low, &high);
    }
    double factor = high > low ? 255 / (high - low) : 0;
    size_t width = mr_dtype_bytes(t->dtype);
    for (uint64_t i = 0; i < n; i++) {
        double v = mr_dtype_get_f64(t->dtype, (const unsigned char *)elements + i * width);
        double level = (v - low) * factor;
        out[i] = level >= 255 ? 255 : level > 0 ? (unsigned char)(level + 0.5) : 0;
    }
}

static int check_picture(const struct mr_tensor *t, struct mr_error *e)
{
    bool flat = t->ndim == 2;
    if (!flat && !(t->ndim == 3 && t->shape[2] == 3))
        return mr_fail(
            e, MR_EACCEPT, "a picture is a tensor of shape [height,width] or [height,width,3]");
    for (unsigned axis = 0; axis < 2; axis++)
        if (t->shape[axis] < 1 || t->shape[axis] > MR_PNG_SIDE_MAX)
            return mr_fail(e, MR_EACCEPT, "a picture with a side of %" PRIu64 "; 1 to %d",
                t->shape[axis], MR_PNG_SIDE_MAX);
    if (mr_tensor_elements(t) > MR_PNG_ELEMENTS_MAX)
        return mr_fail(e, MR_EACCEPT, "a picture of %" PRIu64 " elements; at most %" PRIu64,
            mr_tensor_elements(t), MR_PNG_ELEMENTS_MAX);
    return MR_OK;
}

static int encode(
    const struct mr_tensor *t, const unsigned char *levels, struct mr_sink sink, struct mr_error *e)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
        .width = (png_uint_32)t->shape[1],
        .height = (png_uint_32)t->shape[0],
        .format = t->ndim == 2 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
    png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
    MR_AUTO(mr_free_ptr) void *out = mr_alloc(bytes);
    int ok = png_image_write_to_memory(&image, out, &bytes, 0, levels, 0, NULL);
    if (!ok) {
        int err = mr_fail(e, MR_EINTERNAL, "png: %s", image.message);
        png_image_free(&image);
        return err;
    }
    int err = sink.write(sink.ctx, out, bytes);
    return err ? mr_fail(e, err, "PNG export: %s", mr_err_words(err)) : MR_OK;
}

int mr_png_export(const struct mr_tensor *t, const struct mr_format_options *o, struct mr_sink sink,
    struct mr_error *e)
{
    int err = check_picture(t, e);
    if (err) return err;
    MR_AUTO(mr_free_ptr) void *elements = mr_alloc(mr_tensor_data_bytes(t));
    mr_tensor_copy(t, elements);
    if (t->dtype == MR_DTYPE_U8 && !(o && o->has_range)) return encode(t, elements, sink, e);
    uint64_t n = mr_tensor_elements(t);
    MR_AUTO(mr_free_ptr) unsigned char *levels = mr_alloc(n);
    scale_levels(t, elements, n, o, levels);
    return encode(t, levels, sink, e);
}
