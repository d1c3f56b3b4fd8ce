/* Reads JSON values. An accepted text becomes a pack (base/pack.h); the pack's own JSON must become
 * the same pack. Nested lists are also read as tensors of the type that the first byte chooses. */
#include "store/object/format/json.h"
#include "value_walk.h"

static void as_tensor(struct mr_str text, enum mr_dtype t)
{
    struct mr_format_options o = {.dtype = t};
    void *extent = NULL;
    struct mr_value_alloc a = {walk_alloc, &extent};
    struct mr_error e;
    if (mr_json_import(text, &o, &a, &e) == MR_OK) {
        struct mr_value v = walk_open(extent);
        struct mr_buf out;
        mr_buf_init(&out, 64 * text.n + 4096);
        void *again = NULL;
        struct mr_value_alloc b = {walk_alloc, &again};
        int err = mr_json_export(&v, NULL, mr_sink_to_buf(&out), &e);
        if (!err) err = mr_json_import(mr_buf_str(&out), &o, &b, &e);
        mr_assert(err == MR_OK);
        struct mr_value w = walk_open(again);
        /* The text does not show the lengths of axes that follow an axis of length 0. */
        bool same = mr_tensor_same_shape(&v.tensor, &w.tensor);
        mr_assert(same || !mr_tensor_elements(&v.tensor));
        if (same) mr_assert(memcmp(extent, again, v.nbytes) == 0);
        mr_release(again);
        mr_buf_fini(&out);
    }
    mr_release(extent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    struct mr_str text = mr_str_of(data + 1, n - 1);
    struct mr_error e;
    struct mr_buf pack;
    mr_buf_init(&pack, 64 * n + 4096);
    if (mr_json_to_pack(text, &pack, &e) == MR_OK) {
        int err = mr_pack_check(mr_buf_str(&pack), 0, &e);
        mr_assert(err == MR_OK);
        struct mr_buf out;
        struct mr_buf again;
        mr_buf_init(&out, 64 * n + 4096);
        mr_buf_init(&again, 64 * n + 4096);
        err = mr_json_from_pack(mr_buf_str(&pack), &out, &e);
        if (!err) err = mr_json_to_pack(mr_buf_str(&out), &again, &e);
        mr_assert(err == MR_OK);
        mr_assert(mr_str_eq(mr_buf_str(&pack), mr_buf_str(&again)));
        mr_buf_fini(&out);
        mr_buf_fini(&again);
    }
    mr_buf_fini(&pack);
    as_tensor(text, (enum mr_dtype)(1 + data[0] % (MR_DTYPES_COUNT - 1)));
    return 0;
}
