/* idx files: what is read is a value, and what is written of it reads back as the same value. */
#include "value_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    void *extent = NULL;
    struct mr_value_alloc a = {walk_alloc, &extent};
    struct mr_error e;
    if (mr_format_import(MR_FORMAT_IDX, mr_str_of(data, n), NULL, &a, &e) == MR_OK) {
        struct mr_value v = walk_open(extent);
        struct mr_buf out;
        mr_buf_init(&out, v.nbytes + 4096);
        void *again = NULL;
        struct mr_value_alloc b = {walk_alloc, &again};
        int err = mr_format_export(&v, MR_FORMAT_IDX, NULL, mr_sink_to_buf(&out), &e);
        if (!err) err = mr_format_import(MR_FORMAT_IDX, mr_buf_str(&out), NULL, &b, &e);
        mr_assert(err == MR_OK);
        mr_assert(memcmp(extent, again, v.nbytes) == 0);
        mr_release(again);
        mr_buf_fini(&out);
        walk_value(&v);
    }
    mr_release(extent);
    return 0;
}
