/* Checks and reads values. The input is the bytes of a value. This fuzz target corrects the
 * checksum in the value's header, so that mutations get past the check of the checksum. */
#include "value_walk.h"

#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    unsigned char *extent = mr_alloc_aligned(n, MR_VALUE_ALIGN);
    memcpy(extent, data, n);
    struct mr_value_header h;
    if (n >= sizeof h) {
        memcpy(&h, extent, sizeof h);
        h.magic = MR_VALUE_MAGIC;
        h.checksum = 0;
        memcpy(extent, &h, sizeof h);
        if (h.header_bytes >= sizeof h && h.header_bytes <= n) {
            h.checksum = XXH3_64bits(extent, h.header_bytes);
            memcpy(extent, &h, sizeof h);
        }
    }
    struct mr_value v;
    struct mr_error e;
    /* The shallow check does not read the value's data, so reading a value that passes must be safe
     * whatever its data contains. */
    if (mr_value_check(mr_str_of(extent, n), &v, &e) == MR_OK) walk_value(&v);
    (void)mr_value_check_deep(mr_str_of(extent, n), &v, &e);
    mr_release(extent);
    return 0;
}
