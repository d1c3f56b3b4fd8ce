/* The operator image.png makes a PNG image of a tensor. */
#include "ops/data/data.h"

#include "ops/array/array.h"
#include "store/object/format/png.h"

#define PNG_BYTES_MAX ((size_t)1 << 30)

static int run_png(struct mr_op_call *call)
{
    struct mr_tensor x;
    int err = mr_array_tensor(call, &call->args[0], "x", &x);
    if (err) return err;
    const struct mr_arg *low = &call->args[1];
    const struct mr_arg *high = &call->args[2];
    if ((low->type == MR_ARG_NIL) != (high->type == MR_ARG_NIL))
        return call->does->fail(call, MR_EINVAL, "\"low\" and \"high\" go together");
    struct mr_format_options o = {
        .has_range = low->type != MR_ARG_NIL, .low = mr_arg_f64(low), .high = mr_arg_f64(high)};
    struct mr_buf b;
    mr_buf_init(&b, PNG_BYTES_MAX);
    struct mr_error why = {0};
    err = mr_png_export(&x, &o, mr_sink_to_buf(&b), &why);
    if (err) err = call->does->fail(call, err, "%s", why.text);
    void *p = err ? NULL : call->does->return_bytes(call, b.n);
    if (p) memcpy(p, b.p, b.n);
    if (!err && !p) err = MR_ELIMIT;
    mr_buf_fini(&b);
    return err;
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param pictured[] = {
    {"x", MR_TAKES_ARRAY, NULL, "height × width (grey) or height × width × 3 (colour)."},
    {"low", MR_TAKES_REAL, "null",
        "The value that is black; null: the smallest element, or 0 for u8."},
    {"high", MR_TAKES_REAL, "null",
        "The value that is white; null: the largest element, or 255 for u8."},
};
const struct mr_op_desc *mr_image_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("image.png", D, pictured, 1000000, run_png, "bytes",
            "Makes a PNG image of 8 bits for each channel; values outside low … high are clamped."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
