/* Reads packs (base/pack.h). The reader must agree with the check. A pack that passes the check can
 * be written again, in at most twice its length and 100 bytes. */
#include "base/assert.h"
#include "base/pack.h"

static void rewrite(const struct mr_pack_item *item, struct mr_buf *out)
{
    switch (item->type) {
    case MR_PACK_NIL: mr_pack_nil(out); break;
    case MR_PACK_BOOL: mr_pack_bool(out, item->boolean); break;
    case MR_PACK_INT: mr_pack_int(out, item->i); break;
    case MR_PACK_UINT: mr_pack_uint(out, item->u); break;
    case MR_PACK_FLOAT: mr_pack_float(out, item->f); break;
    case MR_PACK_TEXT: mr_pack_text(out, item->bytes); break;
    case MR_PACK_BYTES: mr_pack_bytes(out, item->bytes); break;
    case MR_PACK_LIST: mr_pack_list(out, item->count); break;
    case MR_PACK_MAP: mr_pack_map(out, item->count); break;
    case MR_PACK_EXT: mr_pack_ext(out, item->ext, item->bytes); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mr_str bytes = mr_str_of(data, n);
    struct mr_pack_reader r = mr_pack_read(bytes);
    struct mr_pack_item item;
    while (mr_pack_next(&r, &item) == MR_OK) /* reading unchecked bytes must be harmless */
        mr_assert(item.bytes.n <= n);
    r = mr_pack_read(bytes);
    struct mr_str whole;
    int skipped = mr_pack_skip(&r, &whole);
    if (mr_pack_check(bytes, 4, NULL) != MR_OK) return 0;
    mr_assert(skipped == MR_OK);
    mr_assert(whole.n == n);

    struct mr_buf out;
    mr_buf_init(&out, 2 * n + 100); /* an f32 is written as an f64, so the pack may grow */
    for (r = mr_pack_read(bytes); !mr_pack_at_end(&r);) {
        int err = mr_pack_next(&r, &item);
        mr_assert(err == MR_OK);
        rewrite(&item, &out);
    }
    mr_assert(mr_buf_status(&out) == MR_OK);
    mr_assert(mr_pack_check(mr_buf_str(&out), 4, NULL) == MR_OK);
    mr_buf_fini(&out);
    return 0;
}
