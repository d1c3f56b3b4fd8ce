/* Reads JSON into packs and tensors. yyjson parses the text into an array of nodes in the order of
 * the text. This file walks the array without recursion. */
#include "store/object/format/json.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "store/object/layout.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <yyjson.h>

static int read_text(struct mr_str text, yyjson_doc **out, struct mr_error *e)
{
    yyjson_read_err why = {0};
    /* yyjson does not write to the text, because YYJSON_READ_INSITU is not set. */
    yyjson_doc *doc =
        yyjson_read_opts(mr_unconst(text.p), text.n, YYJSON_READ_BIGNUM_AS_RAW, NULL, &why);
    if (!doc) {
        size_t line = 1;
        for (size_t i = 0; i < MR_MIN(why.pos, text.n); i++)
            line += text.p[i] == '\n';
        return mr_fail(e, MR_EFORMAT, "not JSON: %s at byte %zu, line %zu",
            why.msg ? why.msg : "empty", why.pos, line);
    }
    *out = doc;
    return MR_OK;
}

static void close_doc(yyjson_doc **doc)
{
    yyjson_doc_free(*doc);
    *doc = NULL;
}

/* ---- packs ----------------------------------------------------------------------------------- */

static struct mr_str node_str(yyjson_val *v)
{
    return mr_str_of(unsafe_yyjson_get_str(v), unsafe_yyjson_get_len(v));
}

static int compare_keys(const void *a, const void *b)
{
    yyjson_val *const *x = a;
    yyjson_val *const *y = b;
    return mr_str_cmp(node_str(*x), node_str(*y));
}

/* Up to this many keys, comparing all pairs is faster than sorting. */
#define FEW_KEYS 12

static int key_twice(yyjson_val *key, struct mr_error *e)
{
    return mr_fail(
        e, MR_EFORMAT, "JSON object has the key \"%.*s\" twice", MR_STR_ARG(node_str(key)));
}

static int check_few_keys(yyjson_val *map, size_t n, struct mr_error *e)
{
    struct mr_str keys[FEW_KEYS];
    yyjson_obj_iter it = yyjson_obj_iter_with(map);
    for (size_t i = 0; i < n; i++) {
        yyjson_val *key = yyjson_obj_iter_next(&it);
        keys[i] = node_str(key);
        for (size_t j = 0; j < i; j++)
            if (mr_str_eq(keys[i], keys[j])) return key_twice(key, e);
    }
    return MR_OK;
}

static int check_keys(yyjson_val *map, struct mr_error *e)
{
    size_t n = unsafe_yyjson_get_len(map);
    if (n <= FEW_KEYS) return check_few_keys(map, n, e);
    MR_AUTO(mr_free_ptr) yyjson_val **keys = mr_alloc_array(n, sizeof(yyjson_val *));
    yyjson_obj_iter it = yyjson_obj_iter_with(map);
    for (size_t i = 0; i < n; i++)
        keys[i] = yyjson_obj_iter_next(&it);
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 1; i < n; i++)
        if (compare_keys(&keys[i - 1], &keys[i]) == 0) return key_twice(keys[i], e);
    return MR_OK;
}

static int number_fail(yyjson_val *v, struct mr_error *e)
{
    struct mr_str raw = node_str(v);
    return mr_fail(e, MR_EFORMAT, "JSON number %.*s%s does not fit 64 bits",
        (int)MR_MIN(raw.n, (size_t)60), raw.p, raw.n > 60 ? "…" : "");
}

static int put_node(yyjson_val *v, struct mr_buf *out, struct mr_error *e)
{
    size_t n = unsafe_yyjson_get_len(v);
    switch (unsafe_yyjson_get_type(v)) {
    case YYJSON_TYPE_NULL: mr_pack_nil(out); return MR_OK;
    case YYJSON_TYPE_BOOL: mr_pack_bool(out, unsafe_yyjson_get_bool(v)); return MR_OK;
    case YYJSON_TYPE_STR: mr_pack_text(out, node_str(v)); return MR_OK;
    case YYJSON_TYPE_RAW: return number_fail(v, e);
    case YYJSON_TYPE_NUM:
        switch (unsafe_yyjson_get_subtype(v)) {
        case YYJSON_SUBTYPE_UINT: mr_pack_uint(out, unsafe_yyjson_get_uint(v)); return MR_OK;
        case YYJSON_SUBTYPE_SINT: mr_pack_int(out, unsafe_yyjson_get_sint(v)); return MR_OK;
        default: mr_pack_float(out, unsafe_yyjson_get_real(v)); return MR_OK;
        }
    case YYJSON_TYPE_ARR:
    case YYJSON_TYPE_OBJ:
        if (n > UINT32_MAX) return mr_fail(e, MR_ELIMIT, "JSON container of %zu items", n);
        if (unsafe_yyjson_get_type(v) == YYJSON_TYPE_ARR) {
            mr_pack_list(out, (uint32_t)n);
            return MR_OK;
        }
        mr_pack_map(out, (uint32_t)n);
        return check_keys(v, e);
    default: return mr_fail(e, MR_EFORMAT, "JSON node of unknown type");
    }
}

/* Converts a tree that yyjson has read with YYJSON_READ_BIGNUM_AS_RAW. */
static int node_to_pack(struct yyjson_val *node, struct mr_buf *out, struct mr_error *e)
{
    /* For each level of nesting: how many nodes of the open list or object are still to come. */
    uint64_t left[MR_DEPTH_MAX + 1] = {1};
    unsigned depth = 0;
    const yyjson_val *end = unsafe_yyjson_get_next(node);
    for (yyjson_val *v = node; v < end; v++) {
        while (!left[depth])
            depth--;
        left[depth]--;
        int err = put_node(v, out, e);
        if (err) return err;
        if (!unsafe_yyjson_is_ctn(v)) continue;
        if (depth == MR_DEPTH_MAX)
            return mr_fail(e, MR_ELIMIT, "JSON nested deeper than %d", MR_DEPTH_MAX);
        uint64_t n = unsafe_yyjson_get_len(v);
        left[++depth] = unsafe_yyjson_get_type(v) == YYJSON_TYPE_OBJ ? 2 * n : n;
    }
    if (mr_buf_status(out))
        return mr_fail(e, MR_ELIMIT, "JSON value takes more than %zu bytes packed", out->bytes_max);
    return MR_OK;
}

int mr_json_to_pack(struct mr_str text, struct mr_buf *out, struct mr_error *e)
{
    MR_AUTO(close_doc) yyjson_doc *doc = NULL;
    int err = read_text(text, &doc, e);
    if (err) return err;
    return node_to_pack(yyjson_doc_get_root(doc), out, e);
}

/* ---- tensors from nested lists --------------------------------------------------------------- */

/* Derives the shape from the first item at each level. Later items must agree, which the caller
 * checks. */
static int first_shape(yyjson_val *node, unsigned *ndim, uint64_t *shape, struct mr_error *e)
{
    *ndim = 0;
    for (yyjson_val *v = node; yyjson_is_arr(v); v = yyjson_arr_get_first(v)) {
        if (*ndim == MR_TENSOR_DIMS_MAX)
            return mr_fail(e, MR_EFORMAT, "lists nested deeper than the %d axes of a tensor",
                MR_TENSOR_DIMS_MAX);
        shape[(*ndim)++] = unsafe_yyjson_get_len(v);
    }
    return MR_OK;
}

static bool node_f64(yyjson_val *v, double *out)
{
    if (yyjson_is_num(v)) {
        *out = yyjson_get_num(v);
        return true;
    }
    if (!yyjson_is_str(v)) return false;
    struct mr_str s = node_str(v);
    if (mr_str_eq(s, MR_STR("NaN")))
        *out = (double)NAN;
    else if (mr_str_eq(s, MR_STR("Infinity")))
        *out = (double)INFINITY;
    else if (mr_str_eq(s, MR_STR("-Infinity")))
        *out = -(double)INFINITY;
    else
        return false;
    return true;
}

static bool store_float(yyjson_val *v, enum mr_dtype t, void *out)
{
    double d = 0;
    if (!node_f64(v, &d)) return false;
    if (t == MR_DTYPE_F64) {
        memcpy(out, &d, sizeof d);
    } else if (t == MR_DTYPE_F32) {
        float f = (float)d;
        memcpy(out, &f, sizeof f);
    } else {
        uint16_t h = mr_f16_from_f64(d);
        memcpy(out, &h, sizeof h);
    }
    return true;
}

/* Stores an integer. On little-endian machines the low bytes of a 64-bit integer are the narrower
 * integer. False: the integer is out of the type's range. */
static bool store_integer(yyjson_val *v, enum mr_dtype t, void *out)
{
    size_t bits = 8 * mr_dtype_bytes(t);
    uint64_t u = unsafe_yyjson_get_uint(v);
    if (yyjson_is_uint(v)) {
        unsigned drop = (unsigned)(64 - bits) + (mr_dtype_is_signed(t) ? 1 : 0);
        if (u > UINT64_MAX >> drop) return false;
    } else if (yyjson_is_sint(v)) { /* a negative integer */
        if (!mr_dtype_is_signed(t)) return false;
        if (bits < 64 && (int64_t)u < -((int64_t)1 << (bits - 1))) return false;
    } else {
        return false;
    }
    memcpy(out, &u, bits / 8);
    return true;
}

static bool store_element(yyjson_val *v, enum mr_dtype t, void *out)
{
    if (mr_dtype_is_float(t)) return store_float(v, t, out);
    if (mr_dtype_is_integer(t)) return store_integer(v, t, out);
    if (!yyjson_is_bool(v)) return false;
    *(uint8_t *)out = yyjson_get_bool(v);
    return true;
}

static int fill(yyjson_val *node, enum mr_dtype t, unsigned ndim, const uint64_t *shape,
    unsigned char *data, struct mr_error *e)
{
    uint64_t left[MR_TENSOR_DIMS_MAX + 1] = {1};
    unsigned depth = 0;
    uint64_t element = 0;
    const yyjson_val *end = unsafe_yyjson_get_next(node);
    for (yyjson_val *v = node; v < end; v++) {
        while (!left[depth])
            depth--;
        left[depth]--;
        if (depth < ndim) {
            if (!yyjson_is_arr(v) || unsafe_yyjson_get_len(v) != shape[depth])
                return mr_fail(e, MR_EFORMAT,
                    "lists of different lengths: axis %u is %" PRIu64 " long in the first, but not "
                    "everywhere (near element %" PRIu64 ")",
                    depth, shape[depth], element);
            left[depth + 1] = shape[depth];
            depth++;
            continue;
        }
        if (!store_element(v, t, data + element * mr_dtype_bytes(t)))
            return mr_fail(e, MR_EFORMAT, "element %" PRIu64 " is %s that does not fit %s", element,
                unsafe_yyjson_is_ctn(v) ? "a list" : yyjson_get_type_desc(v), mr_dtype_name(t));
        element++;
    }
    return MR_OK;
}

static int import_tensor(
    yyjson_val *root, enum mr_dtype t, const struct mr_value_alloc *a, struct mr_error *e)
{
    unsigned ndim = 0;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    int err = first_shape(root, &ndim, shape, e);
    if (err) return err;
    uint64_t elements = 0;
    err = mr_tensor_shape_check(t, ndim, shape, &elements, NULL, e);
    if (err) return err;
    /* Each element is a node. So a shape with more elements than the text has nodes is wrong, and
     * no memory is allocated for it. */
    if (elements > (uint64_t)(unsafe_yyjson_get_next(root) - root))
        return mr_fail(e, MR_EFORMAT, "lists of different lengths: no tensor");
    void *data = NULL;
    err = mr_tensor_new(a, t, ndim, shape, &data, e);
    if (err) return err;
    return fill(root, t, ndim, shape, data, e);
}

int mr_json_import(struct mr_str text, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e)
{
    MR_AUTO(close_doc) yyjson_doc *doc = NULL;
    int err = read_text(text, &doc, e);
    if (err) return err;
    yyjson_val *root = yyjson_doc_get_root(doc);
    if (o && o->dtype != MR_DTYPE_NONE) return import_tensor(root, o->dtype, a, e);
    MR_AUTO(mr_buf_fini) struct mr_buf pack;
    mr_buf_init(&pack, (size_t)MR_OBJECT_BYTES_MAX);
    err = node_to_pack(root, &pack, e);
    if (err) return err;
    return mr_value_put_pack(a, mr_buf_str(&pack), e);
}
